"""From stored runs to figures: selection, shares with their uncertainty, medians."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from .store import Record
from .sweeps import Sweep

#: For intervals that cover 95 %.
_Z = 1.959964


@dataclass(frozen=True)
class Runs:
    """The runs of one method in one sweep, or a part of them, and how many there should be."""

    method: str
    records: tuple[Record, ...]
    planned: int
    version: str = ""

    def __len__(self) -> int:
        return len(self.records)

    def where(self, planned: int, **values: Any) -> Runs:
        """Return the runs with these values, of which `planned` were planned."""
        kept = tuple(r for r in self.records if all(r[k] == v for k, v in values.items()))
        return Runs(self.method, kept, planned, self.version)

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return len(self) >= self.planned

    @property
    def missing(self) -> str:
        """What to say about runs that are missing: "" if none is."""
        if self.complete:
            return ""
        if not self.records:
            return f"not run (0 of {self.planned})"
        return f"{self.planned - len(self)} of {self.planned} not run"

    def count(self, verdict: str) -> int:
        """Return in how many runs a verdict is yes; a run that failed has none."""
        return sum(bool(record.get(verdict)) for record in self.records)

    def share(self, verdict: str) -> str:
        """Return the share of a verdict with its 95 % interval."""
        if not self.records:
            return self.missing
        low, high = wilson(self.count(verdict), len(self))
        share = self.count(verdict) / len(self)
        text = f"{self.count(verdict)} of {len(self)}, {share:.0%} ({low:.0%} to {high:.0%})"
        return text if self.complete else f"{text}; {self.missing}"

    def median(self, figure: str, worst: float = math.inf) -> float | None:
        """Return the median of a figure; runs without one count as the worst.

        None where that is the median.
        """
        values = [value_or(record.get(figure), worst) for record in self.records]
        middle = median(values) if values else math.inf
        return middle if math.isfinite(middle) else None

    def mean(self, figure: str) -> float | None:
        """Return the mean of a figure over the runs that have one."""
        values = [r[figure] for r in self.records if r.get(figure) is not None]
        return sum(values) / len(values) if values else None


def value_or(value: float | None, otherwise: float) -> float:
    """Return a value, or a substitute for a missing one."""
    return otherwise if value is None else value


def select(
    records: Iterable[Record], sweep: Sweep, method: str, versions: Mapping[str, str]
) -> Runs:
    """Return the runs of a method that belong to a sweep.

    Of several versions the latest run counts, unless `versions` names one.
    """
    found = [
        record
        for record in records
        if record["method"] == method
        and record["suite"] == sweep.suite
        and (record["seconds"], record["cores"]) == (sweep.seconds, sweep.cores)
        and record["seed"] < sweep.seeds
        and (record["noise"] in sweep.noise or sweep.suite in ("columns", "calibration"))
        and record["place"] % sweep.every == 0
    ]
    planned = sweep.runs * len(sweep.noise)
    if not found:
        return Runs(method, (), planned)
    version = versions.get(method) or max(found, key=lambda record: record["date"])["version"]
    kept = tuple(record for record in found if record["version"] == version)
    return Runs(method, kept, planned, version)


def wilson(yes: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval for a share."""
    if n == 0:
        return 0.0, 1.0
    share, z2 = yes / n, _Z**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    # The ends are exact at 0 and 1, but for rounding.
    return (0.0 if yes == 0 else centre - half), (1.0 if yes == n else centre + half)


@dataclass(frozen=True)
class Fifth:
    """Formulas reported with a probability in one fifth of [0, 1]."""

    low: float
    formulas: int
    reported: float
    """Mean probability."""
    true: int

    @property
    def share(self) -> float:
        """Share that is true."""
        return self.true / self.formulas


def fifths(records: Iterable[Record]) -> list[Fifth]:
    """Return how often reported formulas are true, by fifths; fifths without any are left out."""
    reported = [
        (probability, true)
        for record in records
        for probability, _, true in record.get("reported", [])
        if probability is not None and true is not None
    ]
    result = []
    for i in range(5):
        inside = [(p, t) for p, t in reported if i / 5 < p <= (i + 1) / 5 + 1e-9 * (i == 4)]
        if inside:
            mean = sum(p for p, _ in inside) / len(inside)
            result.append(Fifth(i / 5, len(inside), mean, sum(t for _, t in inside)))
    return result


def by_problem(runs: Runs, figure: Callable[[Runs], Any]) -> dict[str, Any]:
    """Return a figure for each problem, by name."""
    names: Sequence[str] = sorted({record["problem"] for record in runs.records})
    return {name: figure(runs.where(0, problem=name)) for name in names}
