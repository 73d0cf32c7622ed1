"""The peers: what to install, what is counted, and what hinders a fair comparison."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """A tool to compare with."""

    name: str
    script: str
    """The script of this folder that runs in the peer's environment."""
    requirements: tuple[str, ...]
    counted: str
    handicaps: str
    """What differs, in its favour or against it."""
    bayesian: bool = True


PEERS = (
    Peer(
        "autora-theorist-bsr",
        "run_bsr.py",
        ("autora-theorist-bsr==1.0.0",),
        "proposals: calls of `prop_new`. Each evaluates one new tree on all rows; the old tree, "
        "which it evaluates three more times per call, is not counted.",
        "Three terms, all it can run with. At three terms it evaluates the wrong trees for the "
        "other terms, so that every proposal fails a test of rank and is rejected before its "
        "likelihood is computed: in its favour here. Operators: inv and neg instead of /, exp "
        "and inv softened.",
    ),
    Peer(
        "autora-theorist-bms",
        "run_bms.py",
        ("autora-theorist-bms==1.0.6",),
        "proposals: steps of its 20 tempered chains together (`Tree.mcmc_step`); evaluated: calls "
        "of `Tree.get_sse` that fit parameters. Many proposals are known formulas and end "
        "without an evaluation.",
        "One tree with 4 constants instead of a sum of terms; fits its constants by non-linear "
        "least squares for every new formula, which costs it many evaluations that are not "
        "counted. Operators cut to the same set; - has one operand; no lt.",
    ),
    Peer(
        "pysips",
        "run_pysips.py",
        ("pysips==0.2.0", "smcpy==0.1.14", "bingo-nasa==0.5.7", "mpich==5.0.2"),
        "proposals: calls of the proposal; evaluated: calls of the likelihood `LaplaceNmll`, which "
        "include the first population and the current expressions of every round again.",
        "One expression instead of a sum of terms; fits its constants by non-linear least squares "
        "for every expression (evaluations inside, below, not counted as trees). No square, cube "
        "or lt: the compiled evaluation that it uses by default has none.",
    ),
    Peer(
        "gplearn",
        "run_gplearn.py",
        ("gplearn==0.4.3",),
        "population 1,000 times generations; every program of a generation is evaluated, copies "
        "too.",
        "Protected /, exp cut off at exp(100); constants instead of lt. No coefficients or "
        "constants are fitted: in its favour. Programs get longer with the generations (nodes "
        "per tree): against it, so its fastest generation is shown as well.",
        bayesian=False,
    ),
)

#: Compiled like symbayes, so it has a measure of its own.
PYOPERON = Peer(
    "pyoperon",
    "run_pyoperon.py",
    ("pyoperon==0.6.2",),
    "trees: calls of the evaluator of R2, the only one that looks at the rows, by its own counter; "
    "evaluations inside: those of residuals and of derivatives within its local search "
    "(Levenberg-Marquardt), by its own counters.",
    "Single precision, half the memory and twice the numbers per instruction: in its favour. One "
    "tree instead of a sum of terms; without local search it fits slope and intercept only, while "
    "each of our proposals is judged with all coefficients fitted: in its favour. It evaluates the "
    "whole tree for every offspring, where we evaluate the term that changes: against it.",
    bayesian=False,
)
