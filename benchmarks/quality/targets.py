"""The targets that were set for symbayes, and whether it reaches them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from .suites.columns import RELEVANT
from .summary import Runs, fifths, value_or

_EXACT = "right"
Select = Callable[[str, str], Runs]
"""The runs of a sweep, by its name, and a method."""


@dataclass(frozen=True)
class Goal:
    """One row of the table."""

    problems: str
    measure: str
    target: str
    reached: str
    verdict: str
    """yes, no, or not run."""


def goals(select: Select) -> list[Goal]:
    """Return the rows of the table of targets."""
    return [
        *_paper(select("paper", "symbayes")),
        _classic(select("classic", "symbayes")),
        *_feynman(select("feynman", "symbayes")),
        *_peers(select),
        *_real(select("real", "symbayes"), select("real", "pyoperon")),
        *_coverage(select),
        _columns(select("columns", "symbayes")),
        _calibration(select("calibration", "symbayes")),
    ]


def _goal(problems: str, measure: str, target: str, runs: Runs, reached: str, ok: bool) -> Goal:
    """Return a row; where runs are missing the verdict is open."""
    if not runs.records:
        return Goal(problems, measure, target, runs.missing, "not run")
    if not runs.complete:
        return Goal(problems, measure, target, f"{reached}; {runs.missing}", "incomplete")
    return Goal(problems, measure, target, reached, "yes" if ok else "no")


def _paper(runs: Runs) -> list[Goal]:
    result = []
    for i in range(1, 7):
        task = runs.where(runs.planned // 6, problem=f"f{i}")
        exact, slowest = task.count(_EXACT), 5.0 if i == 6 else 1.0
        time = median(_times(task)) if task.records else math.inf
        reached = f"{exact} of {len(task)} (SRBench {task.count('srbench')}); {_seconds(time)}"
        ok = exact == task.planned and time <= slowest
        target = f"50 of 50; {slowest:g} s or less"
        result.append(
            _goal(
                f"the paper's f{i}", "exact; median time to the formula", target, task, reached, ok
            )
        )
    return result


def _times(runs: Runs) -> list[float]:
    """Return when the formula was found; infinity if it was not."""
    return [r["found_at"] if r.get(_EXACT) else math.inf for r in runs.records]


def _seconds(value: float) -> str:
    return f"{value:.2g} s" if math.isfinite(value) else "not found in most runs"


def _classic(runs: Runs) -> Goal:
    ok = runs.count(_EXACT) >= 0.9 * runs.planned
    reached = _both(runs)
    return _goal("classic formulas", "exact", "90 %", runs, reached, ok)


def _feynman(runs: Runs) -> list[Goal]:
    result = []
    for noise, least, wished in ((0.0, 85, 95), (0.001, 80, 90), (0.01, 70, 85), (0.1, 40, 60)):
        part = runs.where(runs.planned // 4, noise=noise)
        ok = part.count(_EXACT) >= least / 100 * part.planned
        result.append(
            _goal(
                f"Feynman formulas, noise {noise:g}",
                "right structure",
                f"{least} %; {wished} % would be better",
                part,
                _both(part),
                ok,
            )
        )
    return result


def _both(runs: Runs) -> str:
    """Return both verdicts in short."""
    if not runs.records:
        return runs.missing
    n = len(runs)
    return (
        f"{runs.count(_EXACT) / n:.0%} ({runs.count(_EXACT)} of {n}; "
        f"SRBench {runs.count('srbench')})"
    )


def _peers(select: Select) -> list[Goal]:
    from .sweeps import SWEEPS

    sweep = SWEEPS["peers"]
    result = []
    for noise in sweep.noise:
        parts = {m: select("peers", m).where(sweep.runs, noise=noise) for m in sweep.methods}
        ours = parts.pop("symbayes")
        run = {name: part for name, part in parts.items() if part.records}
        ahead = all(ours.count(_EXACT) > part.count(_EXACT) for part in run.values())
        operon = parts["pyoperon"]
        smaller = value_or(ours.median("nodes"), math.inf) < value_or(operon.median("nodes"), 0.0)
        best = max(run.values(), key=lambda part: part.count(_EXACT), default=operon)
        reached = (
            f"symbayes {ours.count(_EXACT)}, best peer {best.method} {best.count(_EXACT)} of "
            f"{sweep.runs}; nodes {_number(ours.median('nodes'))} and pyoperon "
            f"{_number(operon.median('nodes'))}"
        )
        missing = [name for name, part in parts.items() if not part.complete]
        goal = _goal(
            f"every third Feynman formula, noise {noise:g}",
            "right structure; median nodes",
            "ahead of every peer, fewer nodes than pyoperon",
            ours,
            reached,
            ahead and smaller,
        )
        if missing and goal.verdict in ("yes", "no"):
            text = f"{goal.reached}; not complete: {', '.join(missing)}"
            goal = Goal(goal.problems, goal.measure, goal.target, text, "incomplete")
        result.append(goal)
    return result


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def _real(ours: Runs, operon: Runs) -> list[Goal]:
    r2, theirs = (runs.median("r2", -math.inf) for runs in (ours, operon))
    nodes, their_nodes = (runs.median("nodes") for runs in (ours, operon))
    known = r2 is not None and theirs is not None
    both = ours if not ours.complete else operon
    return [
        _goal(
            "real data, 5 splits",
            "median R2 on test",
            "at least pyoperon's",
            both,
            f"{value_or(r2, math.nan):.4f}, pyoperon {value_or(theirs, math.nan):.4f}",
            known and value_or(r2, 0.0) >= value_or(theirs, 0.0),
        ),
        _goal(
            "real data, 5 splits",
            "median nodes",
            "at most half of pyoperon's",
            both,
            f"{_number(nodes)}, pyoperon {_number(their_nodes)}",
            known and value_or(nodes, math.inf) <= 0.5 * value_or(their_nodes, 0.0),
        ),
    ]


def _coverage(select: Select) -> list[Goal]:
    feynman = select("feynman", "symbayes")
    result = []
    for label, runs in (
        ("real data", select("real", "symbayes")),
        ("Feynman formulas, noise 0.1", feynman.where(feynman.planned // 4, noise=0.1)),
    ):
        mean = value_or(runs.mean("coverage"), math.nan)
        result.append(
            _goal(
                label,
                "coverage of 90 % predictive intervals",
                "87 to 93 % on average",
                runs,
                f"{100 * mean:.1f} %",
                0.87 <= mean <= 0.93,
            )
        )
    return result


def columns_found(record: dict) -> tuple[int, int]:
    """Return how many relevant and how many other columns are more probable than not."""
    likely = {name for name, p in (record.get("inclusion") or {}).items() if p > 0.5}
    relevant = set(RELEVANT[record["problem"]])
    return len(likely & relevant), len(likely - relevant)


def _columns(runs: Runs) -> Goal:
    found = [columns_found(record) for record in runs.records]
    good = sum(pair == (5, 0) for pair in found)
    return _goal(
        "5 relevant columns of 200, 500 rows, 10 % noise",
        "relevant columns found",
        "all five, no other above 0.5",
        runs,
        f"in {good} of {len(found)} runs",
        good == len(found),
    )


def _calibration(runs: Runs) -> Goal:
    parts = fifths(runs.records)
    worst = max((abs(part.share - part.reported) for part in parts), default=math.nan)
    return _goal(
        "formulas reported with probability p",
        "share that is true",
        "within 10 points of p in each fifth",
        runs,
        f"at most {100 * worst:.0f} points off in {len(parts)} of 5 fifths",
        worst <= 0.1 and len(parts) == 5,
    )
