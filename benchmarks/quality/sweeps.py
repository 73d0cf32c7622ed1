"""The runs that the tables of the report are made of, and the commands that make them."""

from __future__ import annotations

from dataclasses import dataclass

from .registry import COMPARED


@dataclass(frozen=True)
class Sweep:
    """Problems, methods and a budget."""

    suite: str
    problems: int
    """How many there are, after `every`."""
    seconds: float
    cores: int
    seeds: int = 1
    noise: tuple[float, ...] = (0.0,)
    """Where the suite leaves the choice."""
    every: int = 1
    only: tuple[str, ...] = ()
    """Names of problems, where a suite has more than the table is about."""
    methods: tuple[str, ...] = ("symbayes",)

    @property
    def runs(self) -> int:
        """Runs per method and noise level."""
        return self.problems * self.seeds

    @property
    def options(self) -> list[str]:
        """The options of the command."""
        words = ["--suite", self.suite]
        if self.suite in ("paper", "classic", "feynman"):
            words += ["--noise", *(f"{level:g}" for level in self.noise)]
        if self.every > 1:
            words += ["--every", str(self.every)]
        if self.only:
            words += ["--only", *self.only]
        words += ["--methods", *self.methods]
        words += ["--seconds", f"{self.seconds:g}", "--cores", str(self.cores)]
        return [*words, "--seeds", str(self.seeds)]

    @property
    def command(self) -> str:
        """The command that reproduces it."""
        options = self.options
        if self.only:  # too long to type
            options = ["--sweep", next(name for name, sweep in SWEEPS.items() if sweep == self)]
        return " ".join(["python -m benchmarks.quality.run", *options])


_MEASURED = (
    "1027_ESL", "192_vineyard", "210_cloud", "228_elusage", "230_machine_cpu", "519_vinnie",
    "523_analcatdata_neavote", "556_analcatdata_apnea2", "663_rabe_266",
    "678_visualizing_environmental", "690_visualizing_galaxy", "712_chscase_geyser1",
    "AirfoilSelfNoise", "Concrete", "Nikuradse_1", "uci_yacht",
)  # fmt: skip

SWEEPS = {
    "paper": Sweep("paper", 6, 60, 2, seeds=50),
    "classic": Sweep("classic", 35, 60, 2),
    "feynman": Sweep("feynman", 63, 60, 2, noise=(0.0, 0.001, 0.01, 0.1)),
    "peers": Sweep("feynman", 21, 30, 1, noise=(0.0, 0.01), every=3, methods=COMPARED),
    "real": Sweep("real", 16, 30, 1, seeds=5, only=_MEASURED, methods=("symbayes", "pyoperon")),
    "columns": Sweep("columns", 1, 60, 2, seeds=5),
    "calibration": Sweep("calibration", 360, 60, 2),
}
