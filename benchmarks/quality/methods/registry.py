"""The peers: what to install, the settings of each, and what hinders a fair comparison.

All get the same rows, seconds, cores and seeds, and the operators as far as they allow; constants
are always allowed, which is what lt provides. A fit whose error falls below 1e-7 of the spread
of the response ends, so that problems without noise end early; pyoperon, which cannot be stopped,
takes its whole time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Method:
    """A tool that returns formulas."""

    name: str
    """Also that of its environment."""
    script: str
    """The script of this folder that runs it."""
    requirements: tuple[str, ...]
    """None: it runs in the interpreter of the harness."""
    settings: str
    handicaps: str
    """What differs, in its favour or against it."""
    tested: bool = True
    """Whether its script was ever run."""
    build_requirements: tuple[str, ...] = ()
    """Installed first, for packages that do not say what they are built with."""

    @property
    def path(self) -> Path:
        """The script."""
        return _FOLDER / self.script

    @property
    def label(self) -> str:
        """The name, with what a reader has to know about it."""
        return self.name if self.tested else f"{self.name} (adapter untested)"


PEERS = (
    Method(
        "gplearn",
        "run_gplearn.py",
        ("gplearn==0.4.3",),
        "Population 1,000, generation by generation until time is up, constants from -5 to 5, "
        "rmse, parsimony 0.001 of the spread of the response; the best of all generations by its "
        "penalised fitness.",
        "Constants are drawn and never fitted. Division, log and sqrt are protected: the absolute "
        "value under log and sqrt is written where it matters on the training rows, the rest is "
        "written unprotected, so that its formula may differ from what it computes. exp is cut "
        "off at exp(100), arcsin and arccos are clipped. One core whatever it is given: two were "
        "slower on a busy machine. In its favour: NaN, which would win its tournaments, counts as "
        "the worst fitness, and the best of all generations is kept where it would answer with "
        "that of the last.",
    ),
    Method(
        "pyoperon",
        "run_pyoperon.py",
        ("pyoperon==0.6.2",),
        "Objectives R2 and length, ten iterations of Levenberg-Marquardt for each tree, at most "
        "50 nodes, one run with its time limit, the choice from its front by BIC.",
        "Single precision: constants carry seven digits, which a refit makes up for. No cube, neg "
        "or inv. A slope and an intercept are added to every formula and every variable has a "
        "factor, which its own length does not count. It does not stop at a perfect fit. In its "
        "favour: constants are optimised, which is off by default. Its front is looked at after "
        "each generation, which costs it less than a hundredth of its time.",
    ),
    Method(
        "rils-rols",
        "run_rils_rols.py",
        ("rils-rols==1.6.7",),
        "Complexity penalty 0.001, at most 50 nodes, all rows, one run with its time limit.",
        "No choice of operators: always + - * / sin cos log exp sqrt square, in its favour where "
        "a problem allows more, against it where it needs tan, tanh or an inverse function. One "
        "core whatever it is given. It prints constants to six decimals: the others are recovered "
        "by fitting them to its own predictions, and its own simplification follows, both outside "
        "its time. In its favour: it is stopped at a perfect fit.",
        build_requirements=("pybind11==3.0.1", "setuptools==80.9.0", "wheel==0.45.1"),
    ),
    Method(
        "hroch",
        "run_hroch.py",
        ("HROCH==1.4.12", "scikit-learn==1.5.2"),
        "Its defaults in double precision, arithmetic tried ten times as often as functions; the "
        "same climbers continue until time is up, the best by mean squared error.",
        "No cube. No penalty on length, so that formulas come as long as its programs allow. "
        "Constants are found by mutation and are good to about seven digits. It runs in slices, "
        "which cost it up to a thirtieth of its time. Needs an old scikit-learn.",
    ),
    Method(
        "pysips",
        "run_pysips.py",
        ("pysips==0.2.0", "smcpy==0.1.14", "bingo-nasa==0.5.7", "mpich==5.0.2"),
        "Its defaults (50 particles, 5 steps each), started again until time is up; the mode of "
        "the particles, its default, of the fit whose mode has the highest marginal likelihood.",
        "Its seed does not reproduce a run. log and sqrt take the absolute value first, which is "
        "written where it matters on the training rows. One core whatever it is given. Where no "
        "fit ends in time, or an expression fits perfectly, the best that was evaluated is taken. "
        "In its favour: NaN, which would break its tempering, counts as the worst; bingo's "
        "evaluation in Python, as fast here, replaces the compiled one, which lacks square, cube, "
        "tan, tanh and the inverse functions. Intervals and probabilities are those of its best "
        "finished fit, and missing where none finished. This way to use the time was chosen, "
        "among others, by a trial on 13 of the problems of the table.",
    ),
    Method(
        "autora-theorist-bms",
        "run_bms.py",
        ("autora-theorist-bms==1.0.6",),
        "Its 20 temperatures and its prior, as many constants as columns but 4 to 10, until time "
        "is up; the formula of least description length at the lowest temperature.",
        "Its prior on operators comes from formulas in an encyclopedia, not from the set given. - "
        "has one operand, no inv. arcsin, arccos and arctan, which it lacks, are added with the "
        "prior of tan. One core whatever it is given, and Python throughout: 10 to 30 epochs "
        "per second where its default is 1,500. Intervals and probabilities are those of the "
        "second half of its chain.",
    ),
    Method(
        "bingo",
        "run_bingo.py",
        ("bingo-nasa==0.5.7", "mpich==5.0.2"),
        "As its own SRBench entry: population 500, 24 commands, Levenberg-Marquardt, age-fitness "
        "selection, one run with its time limit, the expression of least error.",
        "No penalty on length in its answer. log and sqrt take the absolute value first, which is "
        "written where it matters on the training rows. From 1,200 rows on it fits to a sample. "
        "Its evaluation is that in Python, for the sake of operators (see pysips). One core "
        "whatever it is given: two were slower on a busy machine.",
    ),
    Method(
        "pysr",
        "run_pysr.py",
        ("pysr==2.7.2",),
        "Its defaults, as its guide to tuning recommends, in double precision, with no operator "
        'twice (neg beside -, inv beside /); its "best" from the front.',
        "Needs Julia, which it downloads when first imported. A short fit before, not counted, "
        "compiles. No history.",
        tested=False,
    ),
)

#: Known, tried and not compared with, each with the reason: "it ...".
LEFT_OUT = {
    "autora-theorist-bsr 1.0.0": "crashes with one and two terms, and with three accepts no tree",
    "eggp 2.2.2": (
        "found neither formula it was tried on in 28 s on one core, and with its final "
        "simplification took 176 s of them for one"
    ),
    "feyn 3.5.0": "has no sine or cosine and rescales every column inside its formulas",
    "PS-Tree and Evolutionary Forest": "make ensembles and not formulas",
}
