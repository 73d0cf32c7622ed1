"""What each chain on a cluster costs the calling process, besides the work of a worker."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np

from benchmarks.chains import problem_for
from benchmarks.problems import charge_in_fields
from benchmarks.report import Section, Table
from symbayes import TermsPrior
from symbayes.inputs.sampler_settings import TemperedSampler
from symbayes.samplers.ladder import LARGEST_ROUND, Replicas, Round
from symbayes.samplers.run.remote import Batch, Executor, Problems, run_batch
from symbayes.samplers.run.workers import Workers
from symbayes.samplers.trace import ChainTrace

_ROWS, _NOISE = 1_000, 0.01
_LADDERS = 10_000


class _Here(Executor):
    """Workers of this very process, whose seconds and bytes are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds, self.sent, self.returned = 0.0, 0, 0

    def slots(self) -> int:
        return 8

    def run(self, batches: Sequence[Batch], problems: Problems) -> list[bytes]:
        start = perf_counter()
        answers = [run_batch(batch, {k: problems[k] for k in batch.keys}) for batch in batches]
        self.seconds += perf_counter() - start
        self.sent += sum(len(batch.requests) for batch in batches)
        self.returned += sum(map(len, answers))
        return answers

    def close(self) -> None:
        pass


def _bytes(ladder: Replicas) -> int:
    """Return the size of all arrays of a ladder but for the table, which ladders share."""
    table = {id(array) for array in ladder.problem.data}
    scratch = (ladder.scratch, ladder.scratch.moves, ladder.scratch.optimise)
    groups = (
        ladder.chains, ladder.priors, ladder.ladder, ladder.output, ladder.tables.few, *scratch
    )  # fmt: skip
    arrays = [a for group in groups for a in group if isinstance(a, np.ndarray)]
    return sum(array.nbytes for array in arrays if id(array) not in table)


def measure(quick: bool) -> Section:
    """Advance many ladders by rounds, and subtract the work of the workers from the time."""
    n, rounds = (16, 3) if quick else (64, 7)
    X, y = charge_in_fields(_ROWS, _NOISE)
    problem, sampler = problem_for(X, y, TermsPrior()), TemperedSampler()
    ladders = [
        Replicas(problem, seed, sampler.powers(_ROWS))
        for seed in np.random.SeedSequence(0).spawn(n)
    ]
    order = Round(sampler.steps_per_draw, LARGEST_ROUND, keep=True)
    found = []
    for i in range(rounds + 1):
        place, traces = _Here(), [ChainTrace() for _ in ladders]
        start = perf_counter()
        Workers(executor=place).advance(ladders, [order] * n)
        for ladder, trace in zip(ladders, traces, strict=True):
            trace.extend(ladder.output, LARGEST_ROUND)
        end = perf_counter()
        if i:  # the first loads compiled code
            found.append(
                (
                    1e3 * place.seconds / n,
                    1e3 * (end - start - place.seconds) / n,
                    place.sent / n / 1e3,
                    place.returned / n / 1e3,
                )
            )
    worker, carrying, sent, returned = np.median(found, axis=0).tolist()
    most = worker / carrying
    return Section(
        "driver",
        "What a chain costs the calling process",
        [
            Table(
                ["per chain and round", "amount"],
                [
                    ["worker, ms", worker],
                    ["calling process: states and draws, ms", carrying],
                    ["sent, kB", sent],
                    ["returned, kB", returned],
                    ["calling process: memory, MB", _bytes(ladders[0]) / 1e6],
                    ["workers that one calling process keeps busy", most],
                    [f"minutes of 1,000 draws with {_LADDERS:,} chains, at least",
                     _LADDERS * carrying * 1000 / LARGEST_ROUND / 6e4],
                ],
            )
        ],
        [],
        [
            f"y = x0 (x1 + x2 x3 sin(x4)), {_ROWS:,} rows, noise {_NOISE:.0%}; {n} chains, rounds "
            f"of {LARGEST_ROUND} draws, median of {rounds}. The workers are in the same process, "
            "and their work is subtracted; the network is not included. Memory: all arrays of a "
            "ladder, without its draws.",
        ],
    )  # fmt: skip
