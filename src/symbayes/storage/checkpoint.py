"""Checkpoints: a run on disk, every minute or so, from which it can be resumed.

A file has the estimator's parameters, checksums of the table, the seed, and a moment of the run.
The one before it stays beside it, so that there is never only one copy.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..cautions import SamplingWarning
from ..formula.trees import split_terms
from ..inputs.checksums import checksum
from ..inputs.problem import Problem
from ..inputs.task import Task
from ..inputs.validation import Table, feature_names
from ..kernels.moves.choice import N_MOVES
from ..kernels.opcodes import N_OPCODES
from ..kernels.run import KEPT
from ..kernels.tree import NODE
from ..samplers.run.clock import Watch
from ..samplers.sampling import state_like
from ..samplers.trace import (
    ChainTrace,
    DrawingState,
    Find,
    LadderRecord,
    LadderState,
    RunState,
    SearchState,
    Trace,
)
from ..version import __version__
from .archive import Arrays, ModelFileError, naming, path_text, read_archive, require, write_archive
from .atomic import open_file, previous_of, remove_unfinished
from .values import (
    LARGEST,
    Field,
    Layout,
    ValueReader,
    ValueWriter,
    check_arrays,
    check_trees,
    nodes_from,
    nodes_to_arrays,
    split,
)

_KIND, _VERSION = "checkpoint", 1
#: Seconds between two checkpoints, and the largest part of the time that goes into writing them.
SECONDS_BETWEEN, _MOST_OF_THE_TIME = 60.0, 0.02
# What is the same in all checkpoints of a run.
_LASTING = {"symbayes", "parameters", "table", "entropy", "origin"}
_KEYS = {*_LASTING, "seconds", "point"}
_TABLE = {
    "rows": "number of rows", "columns": "number of columns", "names": "names of columns",
    "X": "values of X", "y": "values of y", "weights": "row weights",
}  # fmt: skip
_N_ENTROPY = 4


class NoCheckpoint(FileExistsError):
    """A file that a checkpoint would replace is something else."""


class CheckpointWriter:
    """Writes the checkpoints of one run, one after the other, to the same file.

    `lasting` is what all of them have in common, as JSON, and `values` the arrays that belong to
    it. A file that is `damaged` does not become the previous one.
    """

    def __init__(
        self, path: str, lasting: dict[str, Any], values: Arrays, damaged: bool = False
    ) -> None:
        self.path = path
        self._lasting, self._values = lasting, values
        self._damaged = damaged
        self._due = time.monotonic() + SECONDS_BETWEEN
        self._warned = False

    def write(self, point: RunState, seconds: float) -> None:
        """Write a checkpoint of a run that has taken this many seconds, or raise an error."""
        run, arrays = to_parts(point)
        document = {**self._lasting, "seconds": float(seconds), "point": run}
        keep = not self._damaged
        write_archive(self.path, _KIND, _VERSION, document, arrays | self._values, keep=keep)
        self._damaged = False

    def save(self, watch: Watch, make: Callable[[], RunState]) -> None:
        """Write a checkpoint if it is time for one, or if the user ends the run here.

        Not of a run that was cut short already: it is not where it would have been.
        """
        if not watch.heeded and (watch.interrupted or time.monotonic() >= self._due):
            self._try_to_write(make(), watch)

    def finish(self, watch: Watch, trace: Trace) -> None:
        """Write the end of a run, unless the user has ended it: then it can still be resumed."""
        if not watch.interrupted:
            self._try_to_write(RunState(trace, finished=True), watch)

    def _try_to_write(self, point: RunState, watch: Watch) -> None:
        began = time.monotonic()
        try:
            self.write(point, watch.seconds)
        except (OSError, ValueError, MemoryError) as error:
            if not self._warned:
                self._warned = True
                why = getattr(error, "strerror", None) or str(error) or type(error).__name__
                warnings.warn(
                    f"the checkpoint {self.path!r} could not be written ({why}); the run "
                    "continues, the last one that was written stays, and another is tried every "
                    "minute or so",
                    SamplingWarning,
                    stacklevel=2,
                )
        now = time.monotonic()
        self._due = now + max(SECONDS_BETWEEN, (now - began) / _MOST_OF_THE_TIME)


def begin_checkpoints(
    path: str, model: Any, table: Table, entropy: list[int], point: RunState
) -> CheckpointWriter:
    """Write the first checkpoint of a run, so that there is one from its very beginning."""
    values = ValueWriter()
    lasting = {
        "symbayes": __version__,
        "parameters": values.parameters(model),
        "table": _about_table(model, table),
        "entropy": entropy,
        "origin": model._origin,
    }
    remove_unfinished(path)
    writer = CheckpointWriter(path, lasting, values.arrays())
    writer.write(point, 0.0)
    return writer


def refuse_existing(path: str | os.PathLike[str]) -> str:
    """Return the path of a new checkpoint; complain if there is one already."""
    name = path_text(path, "checkpoint")
    for one in (name, previous_of(name)):
        try:
            os.stat(one)
        except FileNotFoundError:
            continue
        if os.path.isdir(name):
            break  # the first checkpoint complains about that
        if not _may_be_checkpoint(one):
            raise NoCheckpoint(f"{one!r} exists, and is no checkpoint; name another file")
        raise FileExistsError(
            f"{one!r} exists, and may be the checkpoint of another run; resume that run with "
            f"BayesianSymbolicRegressor.resume({name!r}, X, y), remove the file (and the previous "
            "one that is kept beside it), or name another file"
        )
    return name


def _may_be_checkpoint(path: str) -> bool:
    """Return whether a file begins like a checkpoint; an empty one may be a damaged one."""
    try:
        with open_file(path) as file:
            start = file.read(4)
    except OSError:
        return False
    return start in (b"", b"PK\x03\x04")


@dataclass(frozen=True)
class LoadedCheckpoint:
    """A checkpoint that was read; its run is checked once its table is there."""

    path: str
    parameters: dict[str, Any]
    entropy: list[int]
    """What the seeds of the run come from."""
    origin: dict[str, Any] | None
    """What the command line has noted, None for a run begun in Python."""
    seconds: float
    """How long the run had taken."""
    finished: bool
    """Whether the run had come to its end."""
    damaged: bool
    """Whether it is the one before that of this path, which cannot be read."""
    document: dict[str, Any]
    values: Arrays
    """Arrays of the parameters."""
    arrays: Arrays
    """Arrays of the run."""

    def writer(self) -> CheckpointWriter:
        """Return what writes the further checkpoints of the run."""
        remove_unfinished(self.path)
        lasting = {key: self.document[key] for key in _LASTING}
        return CheckpointWriter(self.path, lasting, self.values, self.damaged)

    def check_table(self, model: Any, table: Table) -> None:
        """Complain about another table than that of the run."""
        now, then = _about_table(model, table), self.document["table"]
        changed = [what for key, what in _TABLE.items() if now[key] != then[key]]
        if changed:
            raise ValueError(
                f"the checkpoint {self.path!r} is of a run on another table (other "
                f"{', '.join(changed)}); resume it with the table it was begun with"
            )

    def point(self, task: Task, chains: int) -> RunState:
        """Return the moment that the run is at."""
        like = state_like(task.sampler, task.problem)
        with naming(self.path):
            return from_parts(self.document["point"], self.arrays, chains, like, task.problem)


def read_checkpoint(path: str | os.PathLike[str], kind: Any) -> LoadedCheckpoint:
    """Read the checkpoint of an estimator of a class, or the one before it if it is damaged."""
    name = path_text(path)
    previous = previous_of(name)
    try:
        return _read(name, name, kind)
    except (ModelFileError, FileNotFoundError) as error:
        if not os.path.exists(previous):
            raise
        try:
            loaded = _read(previous, name, kind)
        except ModelFileError:
            raise ModelFileError(
                f"{error}; the one before it, {previous!r}, cannot be read either"
            ) from None
        why = f"{name!r} does not exist" if isinstance(error, FileNotFoundError) else str(error)
        warnings.warn(
            f"{why}. The run resumes from the checkpoint before it, {previous!r}",
            SamplingWarning,
            stacklevel=3,
        )
        return loaded


def _read(path: str, name: str, kind: Any) -> LoadedCheckpoint:
    document, arrays = read_archive(path, _KIND, _VERSION)
    with naming(path):
        _check_document(document)
        if document["symbayes"] != __version__:
            raise ModelFileError(
                f"{path!r} was written by symbayes {document['symbayes'][:30]}, and this is "
                f"{__version__}, which may not make the same draws; resume it with that version, "
                "or fit again"
            )
        reader = ValueReader(arrays)
        parameters = reader.parameters(kind, document["parameters"])
        reader.finish()
    run = document["point"]
    return LoadedCheckpoint(
        path=name,
        parameters=parameters,
        entropy=document["entropy"],
        origin=document["origin"],
        seconds=document["seconds"],
        finished=isinstance(run, dict) and run.get("finished") is True,
        damaged=path != name and os.path.exists(name),
        document=document,
        values=reader.arrays,
        arrays=arrays,
    )


def _check_document(document: dict[str, Any]) -> None:
    require(document.keys() == _KEYS, "its document does not have the expected entries")
    entropy, table, seconds = document["entropy"], document["table"], document["seconds"]
    fine = {
        "symbayes": isinstance(document["symbayes"], str),
        "entropy": _are_counts(entropy, _N_ENTROPY) and max(entropy) < 2**31,
        "table": isinstance(table, dict) and table.keys() == _TABLE.keys(),
        "seconds": type(seconds) is float and seconds >= 0,
        "origin": isinstance(document["origin"], dict | None),
    }
    for name, is_fine in fine.items():
        require(is_fine, f"{name!r} of its document is impossible")


def _are_counts(numbers: Any, n: int) -> bool:
    return (
        isinstance(numbers, list)
        and len(numbers) == n
        and all(type(number) is int and number >= 0 for number in numbers)
    )


def _about_table(model: Any, table: Table) -> dict[str, Any]:
    """Return what tells a table from another."""
    return {
        "rows": len(table.y),
        "columns": table.X.shape[1],
        "names": checksum(feature_names(model)),
        "X": checksum([table.X]),
        "y": checksum([table.y]),
        "weights": checksum([table.weights]),
    }


# A moment of a run as JSON and arrays.

_OF_TRACE: dict[str, tuple[type, ...]] = {
    "seconds": (float,), "warmed_up": (bool,), "timed_out": (bool,), "settled": (bool,),
    "restarts": (int,), "search_cut": (bool,), "search_agreed": (bool, type(None)),
}  # fmt: skip
_OF_PAUSE: dict[str, tuple[type, ...]] = {
    "made": (int,), "spent": (float,), "exact": (bool,), "may_restart": (bool,),
}  # fmt: skip
_OF_SEARCH: dict[str, tuple[type, ...]] = {
    "done": (int,), "spent": (float,), "stage": (int,), "in_stage": (int,),
}  # fmt: skip


def to_parts(point: RunState) -> tuple[dict[str, Any], Arrays]:
    """Return a moment of a run as a document and arrays."""
    document: dict[str, Any] = {
        "settling": None if point.settling is None else list(point.settling),
        "finished": point.finished,
        "trace": None,
        "search": None,
    }
    arrays: Arrays = {}
    if point.trace is not None:
        document["trace"], arrays = _trace_to_parts(point.trace)
    elif point.search is not None:
        document["search"], arrays = _plain(point.search, _OF_SEARCH), _search_arrays(point.search)
    return document, arrays


def _trace_to_parts(trace: Trace) -> tuple[dict[str, Any], Arrays]:
    pause, chains, records = trace.state, trace.chains, trace.ladders
    document = _plain(trace, _OF_TRACE) | {
        "pause": _plain(pause, _OF_PAUSE),
        "most": chains[0].most,
        "searched": trace.search_counts is not None,
        "recorded": bool(records),
    }
    numbers = [row for chain in chains for row in chain.numbers]
    width = KEPT + _n_temperatures(pause.ladders[0])
    arrays = {
        "draws/count": np.array([len(chain) for chain in chains], np.int64),
        "draws/made": np.array([chain.made for chain in chains], np.int64),
        "draws/stride": np.array([chain.stride for chain in chains], np.int64),
        "draws/numbers": np.array(numbers, np.float64).reshape(len(numbers), width),
        "draws/times": np.array([t for chain in chains for t in chain.times], np.int64),
        "weights": np.concatenate([np.empty(0), *trace.weights]),
        "counts": trace.counts,
    }
    arrays |= _packs_to_arrays(
        "draws/nodes",
        [nodes for chain in chains for nodes in chain.nodes],
        [terms for chain in chains for terms in chain.n_terms],
    )
    arrays |= _ladders_to_arrays("ladders", pause.ladders) | _finds_to_arrays("found", trace.search)
    if trace.search_counts is not None:
        arrays["search_counts"] = trace.search_counts
    if records:
        arrays["records/power"] = np.array([one.power for one in records])
        arrays["records/swap_rate"] = np.array([one.swap_rate for one in records])
        arrays["records/round_trips"] = np.array([one.round_trips for one in records], np.int64)
    return document, arrays


def _search_arrays(search: SearchState) -> Arrays:
    with_others = sorted(search.others)
    return {
        "search/stages": np.array(search.stages, np.int64),
        "search/spawned": np.array(search.spawned, np.int64),
        "search/counts": search.counts,
        "search/with_others": np.array(with_others, np.int32),
        **_ladders_to_arrays("search/ladders", search.ladders),
        **_ladders_to_arrays("search/others", [search.others[i] for i in with_others]),
        **_finds_to_arrays("search/best", [search.best]),
        **_finds_to_arrays("search/history", search.history),
        **_finds_to_arrays("search/ends", search.ends),
    }


def from_parts(
    document: Any, arrays: Arrays, chains: int, like: LadderState, problem: Problem
) -> RunState:
    """Return the moment that a document and arrays hold, or refuse them.

    All ladders of the run have the size of `like`, whatever its state is.
    """
    require(
        isinstance(document, dict)
        and document.keys() == {"settling", "finished", "trace", "search"},
        "what it says about its run does not have the expected entries",
    )
    trace, search, settling = document["trace"], document["search"], document["settling"]
    require(settling is None or _are_counts(settling, 2), "where its settling is, is impossible")
    finished = document["finished"]
    require(
        type(finished) is bool and not (finished and trace is None),
        "whether its run is finished cannot be told",
    )
    if trace is not None:
        made = _trace_from_parts(trace, arrays, chains, like, problem)
        return RunState(made, None if settling is None else tuple(settling), finished=finished)
    if search is not None:
        return RunState(search=_search_from_parts(search, arrays, chains, like, problem))
    check_arrays(arrays, {}, {})
    return RunState()


def _trace_from_parts(
    document: Any, arrays: Arrays, n: int, like: LadderState, problem: Problem
) -> Trace:
    own = _values(document, _OF_TRACE, ("pause", "most", "searched", "recorded"))
    most, temperatures = document["most"], _n_temperatures(like)
    require(
        most is None or (type(most) is int and most >= 2 and most % 2 == 0),
        "the most draws that it keeps are impossible",
    )
    layout = {
        "draws/count": Field("int64", (n,), 0),
        "draws/made": Field("int64", (n,), 0),
        "draws/stride": Field("int64", (n,), 1),
        "draws/numbers": Field("float64", ("draws", KEPT + temperatures), None),
        "draws/times": Field("int64", ("times",), 0),
        "weights": Field("float64", ("weights",), 0.0),
        "counts": Field("int64", (n, 3, N_MOVES), 0),
        **_packs_layout("draws/nodes", "draws"),
        **_ladders_layout("ladders", n, like),
        **_finds_layout("found"),
    }
    if document["searched"]:
        layout["search_counts"] = Field("int64", (3, N_MOVES), 0)
    if document["recorded"]:
        layout |= {
            "records/power": Field("float64", (n, temperatures), 0.0, 1.0),
            "records/swap_rate": Field("float64", (n, temperatures - 1)),
            "records/round_trips": Field("int64", (n,), 0),
        }
    sizes = check_arrays(arrays, layout, {})
    require(
        sizes["times"] in (0, sizes["draws"]) and sizes["weights"] in (0, sizes["draws"]),
        "the times or the weights of its draws are not one per draw",
    )
    ladders = _ladders("ladders", arrays, like, problem)
    chains = _chains(arrays, most, problem)
    for chain, ladder in zip(chains, ladders, strict=True):
        times = np.array([*chain.times, int(ladder.own["clock"][0]) + 1])
        require(not chain.times or (np.diff(times) >= 0).all(), "the times of its draws go back")
    weights = arrays["weights"]
    records: Any = ()
    if document["recorded"]:
        trips = arrays["records/round_trips"].tolist()
        records = zip(arrays["records/power"], arrays["records/swap_rate"], trips, strict=True)
    return Trace(
        chains=chains,
        weights=split("weights", weights, arrays["draws/count"]) if len(weights) else [],
        counts=arrays["counts"],
        **own,
        search_counts=arrays.get("search_counts"),
        search=_finds("found", arrays, problem),
        ladders=[LadderRecord(*record) for record in records],
        state=DrawingState(ladders, **_values(document["pause"], _OF_PAUSE)),
    )


def _chains(arrays: Arrays, most: int | None, problem: Problem) -> list[ChainTrace]:
    nodes, terms = _packs("draws/nodes", arrays, problem)
    numbers, times = arrays["draws/numbers"], arrays["draws/times"]
    rows = split("draws/numbers", np.arange(len(numbers)), arrays["draws/count"])
    made, stride = arrays["draws/made"].tolist(), arrays["draws/stride"].tolist()
    chains = []
    for i, own in enumerate(rows):
        of = slice(own[0], own[-1] + 1) if len(own) else slice(0)
        drawn = nodes[of], terms[of], list(numbers[of]), times[of].tolist()
        chains.append(ChainTrace(*drawn, most, made[i], stride[i]))
    return chains


def _search_from_parts(
    document: Any, arrays: Arrays, n: int, like: LadderState, problem: Problem
) -> SearchState:
    own = _values(document, _OF_SEARCH)
    with_others = arrays.get("search/with_others", np.empty(0))
    layout = {
        "search/stages": Field("int64", (n,), 0),
        "search/spawned": Field("int64", (n,), 0),
        "search/counts": Field("int64", (3, N_MOVES), 0),
        "search/with_others": Field("int32", ("others",), 0, n - 1),
        **_ladders_layout("search/ladders", n, like),
        **_ladders_layout("search/others", with_others.size, like),
        **_finds_layout("search/best"),
        **_finds_layout("search/history"),
        **_finds_layout("search/ends"),
    }
    sizes = check_arrays(arrays, layout, {})
    require(sizes["search/best"] == 1, "its search has no best state")
    others = _ladders("search/others", arrays, like, problem)
    (best,) = _finds("search/best", arrays, problem)
    return SearchState(
        **own,
        ladders=_ladders("search/ladders", arrays, like, problem),
        others=dict(zip(with_others.tolist(), others, strict=True)),
        stages=arrays["search/stages"].tolist(),
        spawned=arrays["search/spawned"].tolist(),
        best=best,
        history=_finds("search/history", arrays, problem),
        ends=_finds("search/ends", arrays, problem),
        counts=arrays["search/counts"],
    )


def _plain(source: Any, types: dict[str, tuple[type, ...]]) -> dict[str, Any]:
    """Return attributes as JSON has them, without the types of NumPy."""
    values = {name: getattr(source, name) for name in types}
    return {name: None if x is None else types[name][0](x) for name, x in values.items()}


def _values(
    document: Any, types: dict[str, tuple[type, ...]], others: Sequence[str] = ()
) -> dict[str, Any]:
    """Return entries of a document, each of which has to be of a type; numbers are at least 0."""
    require(
        isinstance(document, dict) and document.keys() == {*types, *others},
        "what it says about its run does not have the expected entries",
    )
    for name, allowed in types.items():
        value = document[name]
        fine = type(value) in allowed and (type(value) not in (int, float) or value >= 0)
        require(fine, f"{name!r} of its run is impossible")
    return {name: document[name] for name in types}


# Packs of trees: the states of chains, one after the other, each of some trees.


def _packs_to_arrays(
    prefix: str, packs: Sequence[np.ndarray], n_trees: Sequence[int] | np.ndarray
) -> Arrays:
    return {
        f"{prefix}/length": np.array([len(pack) for pack in packs], np.int64),
        f"{prefix}/trees": np.array(n_trees, np.int64).reshape(len(packs)),
        **nodes_to_arrays(prefix, packs),
    }


def _packs_layout(prefix: str, n: int | str) -> Layout:
    nodes = (f"nodes of {prefix}",)
    return {
        f"{prefix}/length": Field("int64", (n,), 0),
        f"{prefix}/trees": Field("int64", (n,), 0),
        f"{prefix}/op": Field("uint8", nodes, 0, N_OPCODES - 1),
        f"{prefix}/feature": Field("int32", nodes),
        f"{prefix}/a": Field("float64", nodes, None),
        f"{prefix}/b": Field("float64", nodes, None),
    }


def _packs(prefix: str, arrays: Arrays, problem: Problem) -> tuple[list[np.ndarray], list[int]]:
    """Return packed trees, and how many each pack has."""
    nodes, lengths = nodes_from(arrays, prefix), arrays[f"{prefix}/length"]
    n_trees = arrays[f"{prefix}/trees"]
    check_trees(prefix, nodes, lengths, n_trees, len(problem.feature_weights))
    return [pack.copy() for pack in split(prefix, nodes, lengths)], n_trees.tolist()


def _finds_to_arrays(prefix: str, finds: Sequence[Find]) -> Arrays:
    packs = [np.concatenate([np.empty(0, NODE), *find.trees]) for find in finds]
    return {
        **_packs_to_arrays(f"{prefix}/nodes", packs, [len(find.trees) for find in finds]),
        f"{prefix}/seconds": np.array([find.seconds for find in finds], np.float64),
        f"{prefix}/score": np.array([find.score for find in finds], np.float64),
    }


def _finds_layout(prefix: str) -> Layout:
    return {
        **_packs_layout(f"{prefix}/nodes", prefix),
        f"{prefix}/seconds": Field("float64", (prefix,), 0.0),
        f"{prefix}/score": Field("float64", (prefix,), None),
    }


def _finds(prefix: str, arrays: Arrays, problem: Problem) -> list[Find]:
    packs = zip(*_packs(f"{prefix}/nodes", arrays, problem), strict=True)
    numbers = (arrays[f"{prefix}/{name}"].tolist() for name in ("seconds", "score"))
    return [
        Find(seconds, score, split_terms(pack, n))
        for seconds, score, (pack, n) in zip(*numbers, packs, strict=True)
    ]


# The states of ladders. Compiled code trusts what it is given, so they are checked before.

_GROUPS = ("chains", "priors", "own")


def _ladders_to_arrays(prefix: str, ladders: Sequence[LadderState]) -> Arrays:
    """Return the states of ladders of one size as arrays."""
    n_trees = [_n_trees(one.chains) for one in ladders]
    arrays = _packs_to_arrays(f"{prefix}/nodes", [one.nodes for one in ladders], n_trees)
    arrays[f"{prefix}/share"] = np.array([one.share for one in ladders], np.float64)
    for group in _GROUPS:
        for name in getattr(ladders[0], group) if ladders else ():
            stacked = np.stack([getattr(one, group)[name] for one in ladders])
            arrays[f"{prefix}/{group}/{name}"] = stacked
    return arrays


def _ladders_layout(prefix: str, n: int, like: LadderState) -> Layout:
    layout = {
        **_packs_layout(f"{prefix}/nodes", n),
        f"{prefix}/share": Field("float64", (n,), 0.0, 1.0),
    }
    for group in _GROUPS if n else ():
        for name, own in getattr(like, group).items():
            layout[f"{prefix}/{group}/{name}"] = Field(own.dtype.name, (n, *own.shape), None)
    return layout


def _ladders(prefix: str, arrays: Arrays, like: LadderState, problem: Problem) -> list[LadderState]:
    """Return the states of ladders on a problem."""
    ladders = []
    for i, (nodes, n_trees) in enumerate(
        zip(*_packs(f"{prefix}/nodes", arrays, problem), strict=True)
    ):
        chains, priors, own = (
            {name: arrays[f"{prefix}/{group}/{name}"][i].copy() for name in getattr(like, group)}
            for group in _GROUPS
        )
        ladder = LadderState(nodes, chains, priors, own, float(arrays[f"{prefix}/share"][i]))
        require(_is_sound(ladder, n_trees, problem), f"the state of one of {prefix} is impossible")
        ladders.append(ladder)
    return ladders


def _n_temperatures(ladder: LadderState) -> int:
    return len(ladder.own["power"]) if "power" in ladder.own else 0


def _n_trees(chains: Mapping[str, Any]) -> int:
    return int(np.maximum(chains["n_terms"], 0).sum())


def _is_sound(ladder: LadderState, n_trees: int, problem: Problem) -> bool:
    """Return whether a state stays within the arrays that compiled code gets."""
    chains, own = ladder.chains, ladder.own
    most, terms = problem.most_terms, chains["n_terms"]
    if (terms < -1 - most).any() or (terms > most).any() or n_trees != _n_trees(chains):
        return False
    if any(len(tree) > problem.max_nodes for tree in split_terms(ladder.nodes, n_trees)):
        return False
    tiny = np.finfo(float).tiny
    in_order = "replica" not in own or (
        (np.sort(own["replica"]) == np.arange(len(own["replica"]))).all()
        and own["rng"].any()
        and _within(own["power"], tiny, 1.0)
    )
    return bool(
        (np.sort(chains["slots"], axis=1) == np.arange(most + 2)).all()
        and chains["rng"].any(axis=1).all()
        and all(_is_cdf(ladder.priors[name]) for name in ("operator_cdf", "feature_cdf"))
        and _within(ladder.priors["scales"], tiny, LARGEST)
        and (own["clock"] >= 0).all()
        and in_order
    )


def _is_cdf(cdf: np.ndarray) -> bool:
    rising = (np.diff(cdf, axis=-1) >= 0.0).all()
    return bool(rising and _within(cdf, 0.0, 1.0 + 1e-6) and (cdf[..., -1] > 1.0 - 1e-6).all())


def _within(values: np.ndarray, least: float, most: float) -> bool:
    return bool(((values >= least) & (values <= most)).all())
