"""Trees per second, against other tools on the same data in the same run."""

from __future__ import annotations

from typing import Any

from benchmarks.chains import OPERATORS, Rates, median, problem_for, rates
from benchmarks.peers.environments import PeerFailed, install, run
from benchmarks.peers.registry import PEERS
from benchmarks.report import Cell, Section, Table, at_least, show
from symbayes import OPERATOR_SETS, TermsPrior
from symbayes.datasets import paper_task

_BAYESIAN_TARGET, _GENETIC_TARGET = 1_000.0, 200.0


def measure(quick: bool) -> Section:
    """Run symbayes before and after every peer, so that both see the same disturbances."""
    seconds, settle, peer_seconds = (1.0, 0.5, 4.0) if quick else (5.0, 1.0, 20.0)
    X, y = paper_task("f1", random_state=0)
    problem = problem_for(X, y, TermsPrior(most=4))
    outcomes: dict[str, dict[str, Any] | str] = {}
    for peer in PEERS:
        try:
            install(peer)
        except PeerFailed as failure:
            outcomes[peer.name] = f"not installed: {failure}"
    runs = [rates(problem, 0, seconds, settle)]
    for seed, peer in enumerate(PEERS, start=1):
        if peer.name not in outcomes:
            try:
                outcomes[peer.name] = run(peer, X, y, peer_seconds, seed=0)
            except PeerFailed as failure:
                outcomes[peer.name] = f"failed: {failure}"
        runs.append(rates(problem, seed, seconds, settle))
    ours = median(runs)
    return Section(
        "throughput",
        "Trees per second (100 rows, 2 features)",
        [_table(ours, outcomes)],
        _targets(ours, outcomes),
        [
            f"Task f1 of the paper, no noise. symbayes: operators {_list_operators()}, up to 4 "
            f"terms, one replica on one core, {seconds:g} s after {settle:g} s to settle, median "
            f"of {len(runs)} seeds, run between the peers "
            f"(evaluated trees/s {', '.join(show(r.trees) for r in runs)}). Evaluated: new trees "
            "computed on all rows, each with a least-squares fit of the whole model; proposals to "
            "drop a term, and those that change nothing or are impossible, are left out. A sum "
            "split into two terms, and two terms that exchange parts, are two new trees each.",
            f"Peers: one thread, each in its own environment, {peer_seconds:g} s from the first "
            "counted call.",
            "Ratios: our evaluated trees over the larger of a peer's two figures, which is in the "
            "peer's favour.",
            *(f"{peer.name}. Counted: {peer.counted}" for peer in PEERS),
            *(f"{peer.name}. Handicaps: {peer.handicaps}" for peer in PEERS),
            *_remarks(ours, outcomes),
        ],
    )


def _table(ours: Rates, outcomes: dict[str, dict[str, Any] | str]) -> Table:
    rows: list[list[Cell]] = [["symbayes", ours.proposals, ours.trees, ours.nodes, None, ""]]
    for peer in PEERS:
        outcome = outcomes[peer.name]
        requirement = peer.requirements[0].replace("==", " ")
        if isinstance(outcome, str):
            rows.append([requirement, None, None, None, None, outcome])
            continue
        rows.append(
            [
                requirement,
                outcome["proposals"] / outcome["seconds"],
                outcome["evaluated"] / outcome["seconds"],
                outcome["remarks"].get("nodes"),
                ours.trees / _speed(outcome),
                "",
            ]
        )
    columns = ["tool", "proposals/s", "evaluated trees/s", "nodes per tree", "symbayes / tool"]
    if not any(row[-1] for row in rows):
        return Table(columns, [row[:-1] for row in rows])
    return Table([*columns, "problem"], rows)


def _targets(ours: Rates, outcomes: dict[str, dict[str, Any] | str]):
    def ratio(bayesian: bool) -> float | None:
        speeds = [_speed(outcomes[peer.name]) for peer in PEERS if peer.bayesian == bayesian]
        fastest = max(speeds, default=0.0)
        return ours.trees / fastest if fastest else None

    return [
        at_least("symbayes / fastest Bayesian peer", _BAYESIAN_TARGET, ratio(True)),
        at_least("symbayes / gplearn", _GENETIC_TARGET, ratio(False)),
    ]


def _speed(outcome: dict[str, Any] | str) -> float:
    if isinstance(outcome, str):
        return 0.0
    return max(outcome["proposals"], outcome["evaluated"]) / outcome["seconds"]


def _remarks(ours: Rates, outcomes: dict[str, dict[str, Any] | str]) -> list[str]:
    """Return what else the scripts report, and the ratios that follow from it."""
    lines = []
    for peer in PEERS:
        outcome = outcomes[peer.name]
        if isinstance(outcome, str) or not outcome["remarks"]:
            continue
        remarks, seconds = outcome["remarks"], outcome["seconds"]
        figures = ", ".join(f"{k.replace('_', ' ')} {show(v)}" for k, v in remarks.items())
        line = f"{peer.name}, in {seconds:.1f} s: {figures}."
        if "evaluations_inside" in remarks:
            inside = (outcome["evaluated"] + remarks["evaluations_inside"]) / seconds
            line += (
                f" Counting every evaluation of a formula on the rows, those inside the fit of its "
                f"constants too, it makes {show(inside)} per second, and symbayes "
                f"{show(ours.trees / inside)} times as many."
            )
        if "nodes" in remarks:
            nodes = _speed(outcome) * remarks["nodes"]
            line += (
                f" Counted in nodes it evaluates {show(nodes)} per second, and symbayes "
                f"{show(ours.trees * ours.nodes / nodes)} times as many."
            )
        if "fastest_generation" in remarks:
            line += (
                f" symbayes is {show(ours.trees / remarks['fastest_generation'])} times as fast as "
                "its fastest generation, in trees per second."
            )
        lines.append(line)
    return lines


def _list_operators() -> str:
    return " ".join(OPERATOR_SETS[OPERATORS])
