"""Checkpoints: a run on disk, every minute or so, from which it can be resumed.

A file has the estimator's parameters, checksums of the table, the seed, and a moment of the run.
The one before it stays beside it, so that there is never only one copy.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from ..cautions import SamplingWarning
from ..formula.trees import concatenated, split_terms
from ..inputs.checksums import checksum
from ..inputs.problem import Problem
from ..inputs.task import Task
from ..inputs.validation import Table, feature_names
from ..kernels.front import LARGEST as LARGEST_SHOWN
from ..kernels.moves.choice import N_MOVES
from ..kernels.opcodes import N_OPCODES
from ..kernels.run import KEPT
from ..kernels.tree import NODE
from ..samplers.front import Met, nothing_met
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
    VisitedState,
)
from ..version import __version__
from .archive import Arrays, ModelFileError, naming, path_text, read_archive, require, write_archive
from .atomic import open_file, previous_of, remove_unfinished
from .values import (
    LARGEST,
    Field,
    ValueReader,
    ValueWriter,
    check_arrays,
    check_kinds,
    check_lengths,
    checked_nodes,
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
_KINDS, _N_ENTROPY = {"symbayes": "str", "entropy": "[int]", "seconds": "float"}, 4


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
    path: str,
    model: Any,
    table: Table,
    entropy: list[int],
    point: RunState,
    note: dict[str, Any] | None,
) -> CheckpointWriter:
    """Write the first checkpoint of a run, so that there is one from its very beginning."""
    values = ValueWriter()
    lasting = {
        "symbayes": __version__,
        "parameters": values.parameters(model),
        "table": _about_table(model, table),
        "entropy": entropy,
        "origin": note,
    }
    remove_unfinished(path)
    writer = CheckpointWriter(path, lasting, values.arrays())
    writer.write(point, 0.0)
    return writer


def checked_note(note: dict[str, Any] | None, path: str | None) -> dict[str, Any] | None:
    """Return a note as a checkpoint will have it; complain about one that is not JSON."""
    if note is not None and path is None:
        raise ValueError("note is written into checkpoints, and there are none: give checkpoint")
    if note is None or (isinstance(note, dict) and all(isinstance(key, str) for key in note)):
        with contextlib.suppress(TypeError, ValueError):
            return json.loads(json.dumps(note, allow_nan=False))
    raise TypeError(f"note must be a dict of what JSON can hold, not {note!r}")


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
            return file.read(4) in (b"", b"PK\3\4")
    except OSError:
        return False


class LoadedCheckpoint:
    """A checkpoint of the run of `name`, read from `path`: the same file, or the one before it.

    Its run is checked once its table is there.
    """

    def __init__(self, path: str, kind: Any, name: str) -> None:
        document, self._arrays = read_archive(path, _KIND, _VERSION)
        with naming(path):
            require(document.keys() == _KEYS, "its document does not have the expected entries")
            check_kinds("document", document, _KINDS)
            entropy, table, origin = (document[name] for name in ("entropy", "table", "origin"))
            require(
                len(entropy) == _N_ENTROPY
                and 0 <= min(entropy) <= max(entropy) < 2**31
                and document["seconds"] >= 0.0
                and isinstance(table, dict)
                and table.keys() == _TABLE.keys()
                and isinstance(origin, dict | None),
                "its document is impossible",
            )
            if document["symbayes"] != __version__:
                raise ModelFileError(
                    f"{path!r} was written by symbayes {document['symbayes'][:30]}, and this is "
                    f"{__version__}, which may not make the same draws; resume it with that "
                    "version, or fit again"
                )
            reader = ValueReader(self._arrays)
            self.parameters = reader.parameters(kind, document["parameters"])
            reader.finish()
        self.path = name
        self.entropy: list[int] = entropy
        """What the seeds of the run come from."""
        self.origin: dict[str, Any] | None = origin
        """The note that the fit was given; that of the command line is its call."""
        self.seconds: float = document["seconds"]
        """How long the run had taken."""
        self._point = document["point"]
        self.finished = isinstance(self._point, dict) and self._point.get("finished") is True
        """Whether the run had come to its end."""
        self._document, self._values = document, reader.arrays
        self._damaged = path != name and os.path.exists(name)

    def writer(self) -> CheckpointWriter:
        """Return what writes the further checkpoints of the run."""
        remove_unfinished(self.path)
        lasting = {key: self._document[key] for key in _LASTING}
        return CheckpointWriter(self.path, lasting, self._values, self._damaged)

    def check_table(self, model: Any, table: Table) -> None:
        """Complain about another table than that of the run."""
        now, then = _about_table(model, table), self._document["table"]
        changed = [what for key, what in _TABLE.items() if now[key] != then[key]]
        if changed:
            raise ValueError(
                f"the checkpoint {self.path!r} is of a run on another table (other "
                f"{', '.join(changed)}); resume it with the table it was begun with"
            )

    def point(self, task: Task, chains: int) -> RunState:
        """Return the moment that the run is at, or refuse the file."""
        # All ladders of a run have the same size.
        stored = self._arrays, chains, state_like(task.sampler, task.problem), task.problem
        with naming(self.path):
            kinds = {"settling": "[int] | None", "finished": "bool"}
            check_kinds("run", self._point, kinds)
            trace, search = self._point.get("trace"), self._point.get("search")
            settling, finished = self._point["settling"], self._point["finished"]
            require(
                settling is None or (len(settling) == 2 and min(settling) >= 0),
                "where its settling is, is impossible",
            )
            require(trace is not None or not finished, "its run is finished, and has no draws")
            if trace is not None:
                made = _trace_from_parts(trace, *stored)
                shares = [ladder.share for ladder in made.state.ladders]
                require(
                    settling is not None or not any(shares),
                    "its draws would be made with optimised constants",
                )
                return RunState(made, settling and tuple(settling), finished=finished)
            if search is not None:
                return RunState(search=_search_from_parts(search, *stored))
            check_arrays(self._arrays, {}, {})
            return RunState()


def read_checkpoint(path: str | os.PathLike[str], kind: Any) -> LoadedCheckpoint:
    """Read the checkpoint of an estimator of a class, or the one before it if it is damaged."""
    name = path_text(path)
    previous = previous_of(name)
    try:
        return LoadedCheckpoint(name, kind, name)
    except (ModelFileError, FileNotFoundError) as error:
        if not os.path.exists(previous):
            raise
        try:
            loaded = LoadedCheckpoint(previous, kind, name)
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


# A moment of a run as JSON and arrays. Its numbers and flags are entries of the JSON, by name.

_PLAIN: dict[Any, type] = {"int": int, "float": float, "bool": bool, "bool | None": bool}


def _kinds(kind: Any) -> dict[str, Any]:
    """Return the types of those fields of a class that are numbers or flags, by name."""
    # A run that the user has ended has no checkpoint of its end.
    known = [one for one in fields(kind) if one.type in _PLAIN and one.name != "interrupted"]
    return {one.name: one.type for one in known}


def _entries(source: Any) -> dict[str, Any]:
    """Return numbers and flags as JSON has them, without the types of NumPy."""
    entries = {}
    for name, of in _kinds(type(source)).items():
        value = getattr(source, name)
        entries[name] = None if value is None else _PLAIN[of](value)
    return entries


def _from_entries(document: Any, kind: type) -> dict[str, Any]:
    """Return numbers and flags for an object of a class; numbers are at least 0."""
    check_kinds("run", document, _kinds(kind))
    own = {name: document[name] for name in _kinds(kind)}
    require(all(value is None or value >= 0 for value in own.values()), "a number is below 0")
    return own


def to_parts(point: RunState) -> tuple[dict[str, Any], Arrays]:
    """Return a moment of a run as a document and arrays."""
    trace, search = point.trace, point.search
    document: dict[str, Any] = {
        "settling": None if point.settling is None else list(point.settling),
        "finished": point.finished,
        "trace": None,
        "search": None,
    }
    if trace is not None:
        document["trace"] = _entries(trace) | {
            "pause": _entries(trace.state),
            "most": trace.chains[0].most,
            "searched": trace.search_counts is not None,
            "recorded": bool(trace.ladders),
        }
        return document, _trace_to_arrays(trace)
    if search is not None:
        document["search"] = _entries(search)
        return document, _search_to_arrays(search)
    return document, {}


def _trace_to_arrays(trace: Trace) -> Arrays:
    chains, ladders, records = trace.chains, trace.state.ladders, trace.ladders
    numbers = [row for chain in chains for row in chain.numbers]
    width = KEPT + _n_temperatures(ladders[0])
    arrays = {
        "draws/count": _integers(len(chain) for chain in chains),
        "draws/made": _integers(chain.made for chain in chains),
        "draws/stride": _integers(chain.stride for chain in chains),
        "draws/numbers": np.array(numbers, np.float64).reshape(len(numbers), width),
        "draws/times": _integers(t for chain in chains for t in chain.times),
        "weights": np.concatenate([np.empty(0), *trace.weights]),
        "counts": trace.counts,
        **_packs_to_arrays(
            "draws/nodes",
            [nodes for chain in chains for nodes in chain.nodes],
            [terms for chain in chains for terms in chain.n_terms],
        ),
        **_ladders_to_arrays("ladders", ladders),
        **_finds_to_arrays("found", trace.search),
        **_lists_to_arrays(trace.state),
        **_met_to_arrays("found/met", [trace.search_met]),
    }
    if trace.search_counts is not None:
        arrays["search_counts"] = trace.search_counts
    if records:
        arrays["records/power"] = np.array([one.power for one in records])
        arrays["records/swap_rate"] = np.array([one.swap_rate for one in records])
        arrays["records/round_trips"] = _integers(one.round_trips for one in records)
    return arrays


def _trace_from_parts(
    document: Any, arrays: Arrays, n: int, like: LadderState, problem: Problem
) -> Trace:
    own = _from_entries(document, Trace)
    check_kinds("run", document, {"most": "int | None", "searched": "bool", "recorded": "bool"})
    most, t = document["most"], _n_temperatures(like)
    require(
        most is None or (most >= 2 and most % 2 == 0),
        "the most draws that it keeps are impossible",
    )
    layout = {
        "draws/count": Field("int64", (n,), 0),
        "draws/made": Field("int64", (n,), 0),
        "draws/stride": Field("int64", (n,), 1),
        "draws/numbers": Field("float64", ("draws", KEPT + t), None),
        "draws/times": Field("int64", ("times",), 0),
        "weights": Field("float64", ("weights",), 0.0),
        "counts": Field("int64", (n, 3, N_MOVES), 0),
        **_packs_layout("draws/nodes", "draws"),
        **_ladders_layout("ladders", n, like, arrays),
        **_finds_layout("found"),
        **_lists_layout(arrays),
        **_met_layout("found/met", 1, arrays),
    }
    if document["searched"]:
        layout["search_counts"] = Field("int64", (3, N_MOVES), 0)
    if document["recorded"]:
        layout["records/power"] = Field("float64", (n, t), 0.0, 1.0)
        layout["records/swap_rate"] = Field("float64", (n, t - 1))
        layout["records/round_trips"] = Field("int64", (n,), 0)
    sizes = check_arrays(arrays, layout, {})
    times, weights, counts = arrays["draws/times"], arrays["weights"], arrays["draws/count"]
    check_lengths("draws/numbers", arrays["draws/numbers"].T, counts)
    require(
        sizes["times"] in (0, sizes["draws"]) and sizes["weights"] in (0, sizes["draws"]),
        "the times or the weights of its draws are not one per draw",
    )
    ladders = _ladders("ladders", arrays, like, problem)
    nodes, n_terms = _packs("draws/nodes", arrays, problem)
    made, stride = arrays["draws/made"].tolist(), arrays["draws/stride"].tolist()
    chains, stops = [], np.cumsum(counts).tolist()
    for i, (start, stop) in enumerate(zip([0, *stops], stops, strict=False)):
        of = slice(start, stop)
        until_now = np.append(times[of], ladders[i].own["clock"][0] + 1)
        require(not times[of].size or (np.diff(until_now) >= 0).all(), "its draws go back in time")
        drawn = nodes[of], n_terms[of], list(arrays["draws/numbers"][of]), times[of].tolist()
        chains.append(ChainTrace(*drawn, most, made[i], stride[i]))
    records: Any = ()
    if document["recorded"]:
        trips = arrays["records/round_trips"].tolist()
        records = zip(arrays["records/power"], arrays["records/swap_rate"], trips, strict=True)
    return Trace(
        chains=chains,
        weights=split(weights, counts) if len(weights) else [],
        counts=arrays["counts"],
        **own,
        search_counts=arrays.get("search_counts"),
        search=_finds("found", arrays, problem),
        search_met=_met("found/met", 1, arrays, problem)[0],
        ladders=[LadderRecord(*record) for record in records],
        state=DrawingState(
            ladders,
            **_from_entries(document.get("pause"), DrawingState),
            **_lists_from_arrays(arrays, problem),
        ),
    )


def _search_to_arrays(search: SearchState) -> Arrays:
    with_others = sorted(search.others)
    return {
        "search/stages": _integers(search.stages),
        "search/spawned": _integers(search.spawned),
        "search/counts": search.counts,
        "search/with_others": np.array(with_others, np.int32),
        **_ladders_to_arrays("search/ladders", search.ladders),
        **_ladders_to_arrays("search/others", [search.others[i] for i in with_others]),
        **_finds_to_arrays("search/best", [search.best]),
        **_finds_to_arrays("search/history", search.history),
        **_finds_to_arrays("search/ends", search.ends),
        **_met_to_arrays("search/met", [search.met]),
    }


def _search_from_parts(
    document: Any, arrays: Arrays, n: int, like: LadderState, problem: Problem
) -> SearchState:
    own = _from_entries(document, SearchState)
    with_others = arrays.get("search/with_others", np.empty(0))
    layout = {
        "search/stages": Field("int64", (n,), 0),
        "search/spawned": Field("int64", (n,), 0),
        "search/counts": Field("int64", (3, N_MOVES), 0),
        "search/with_others": Field("int32", ("others",), 0, n - 1),
        **_ladders_layout("search/ladders", n, like, arrays),
        **_ladders_layout("search/others", with_others.size, like, arrays),
        **_met_layout("search/met", 1, arrays),
        **_finds_layout("search/best"),
        **_finds_layout("search/history"),
        **_finds_layout("search/ends"),
    }
    check_arrays(arrays, layout, {"search/best": 1})
    others = _ladders("search/others", arrays, like, problem)
    return SearchState(
        **own,
        ladders=_ladders("search/ladders", arrays, like, problem),
        others=dict(zip(with_others.tolist(), others, strict=True)),
        stages=arrays["search/stages"].tolist(),
        spawned=arrays["search/spawned"].tolist(),
        best=_finds("search/best", arrays, problem)[0],
        history=_finds("search/history", arrays, problem),
        ends=_finds("search/ends", arrays, problem),
        counts=arrays["search/counts"],
        met=_met("search/met", 1, arrays, problem)[0],
    )


def _integers(numbers: Iterable[int]) -> np.ndarray:
    return np.fromiter(numbers, np.int64)


# Packs of trees: the states of chains, one after the other, each of some trees.


def _packs_to_arrays(prefix: str, packs: Sequence[np.ndarray], n_trees: Sequence[int]) -> Arrays:
    return {
        f"{prefix}/length": _integers(map(len, packs)),
        f"{prefix}/trees": _integers(n_trees),
        **nodes_to_arrays(prefix, packs),
    }


def _packs_layout(prefix: str, n: int | str) -> dict[str, Field]:
    nodes, lengths = (f"nodes of {prefix}",), f"{prefix}/length"
    return {
        lengths: Field("int64", (n,), 0),
        f"{prefix}/trees": Field("int64", (n,), 0),
        f"{prefix}/op": Field("uint8", nodes, 0, N_OPCODES - 1, lengths),
        f"{prefix}/feature": Field("int32", nodes),
        f"{prefix}/a": Field("float64", nodes, None),
        f"{prefix}/b": Field("float64", nodes, None),
    }


def _packs(prefix: str, arrays: Arrays, problem: Problem) -> tuple[list[np.ndarray], list[int]]:
    """Return packed trees, and how many each pack has."""
    lengths, n_trees = arrays[f"{prefix}/length"], arrays[f"{prefix}/trees"]
    nodes = checked_nodes(prefix, arrays, lengths, n_trees, len(problem.feature_weights))
    return [pack.copy() for pack in split(nodes, lengths)], n_trees.tolist()


def _finds_to_arrays(prefix: str, finds: Sequence[Find]) -> Arrays:
    packs = [np.concatenate([np.empty(0, NODE), *find.trees]) for find in finds]
    return {
        **_packs_to_arrays(f"{prefix}/nodes", packs, [len(find.trees) for find in finds]),
        f"{prefix}/seconds": np.array([find.seconds for find in finds], np.float64),
        f"{prefix}/score": np.array([find.score for find in finds], np.float64),
    }


def _finds_layout(prefix: str) -> dict[str, Field]:
    return {
        **_packs_layout(f"{prefix}/nodes", prefix),
        f"{prefix}/seconds": Field("float64", (prefix,), 0.0),
        f"{prefix}/score": Field("float64", (prefix,), None),
    }


def _finds(prefix: str, arrays: Arrays, problem: Problem) -> list[Find]:
    numbers = (arrays[f"{prefix}/{name}"].tolist() for name in ("seconds", "score"))
    rows = zip(*numbers, *_packs(f"{prefix}/nodes", arrays, problem), strict=True)
    return [Find(seconds, score, split_terms(pack, n)) for seconds, score, pack, n in rows]


# What ladders have visited, and what they teleport between; the first files have neither.

_LISTS = "visited", "listed"


def _lists_to_arrays(state: DrawingState) -> Arrays:
    if not (state.visited or state.listed):
        return {}
    visited = [one.nodes for one in state.visited]
    listed = [np.concatenate([np.empty(0, NODE), *trees]) for trees in state.listed]
    return {
        **_packs_to_arrays("visited", visited, [one.n_terms for one in state.visited]),
        "visited/log_likelihood": np.array([one.log_likelihood for one in state.visited], float),
        **_packs_to_arrays("listed", listed, [len(trees) for trees in state.listed]),
    }


def _lists_layout(arrays: Arrays) -> dict[str, Field]:
    if "visited/length" not in arrays:
        return {}
    return {
        **_packs_layout("visited", "visited"),
        "visited/log_likelihood": Field("float64", ("visited",), None),
        **_packs_layout("listed", "listed"),
    }


def _lists_from_arrays(arrays: Arrays, problem: Problem) -> dict[str, Any]:
    if "visited/length" not in arrays:
        return {}
    visited, listed = (zip(*_packs(name, arrays, problem), strict=True) for name in _LISTS)
    log_likelihood = arrays["visited/log_likelihood"].tolist()
    met = [VisitedState(*one, x) for one, x in zip(visited, log_likelihood, strict=True)]
    lists = [split_terms(nodes, n) for nodes, n in listed]
    states = [*lists, *(split_terms(one.nodes, one.n_terms) for one in met)]
    require(
        all(
            len(trees) <= problem.most_terms
            and all(len(tree) <= problem.max_nodes for tree in trees)
            for trees in states
        ),
        "it lists states that are too large",
    )
    return {"visited": met, "listed": lists}


# The best state of each size that was met. Files of versions that did not keep it have none.


def _met_to_arrays(prefix: str, parts: Sequence[Met]) -> Arrays:
    return {
        f"{prefix}/count": _integers(len(met.size) for met in parts),
        f"{prefix}/size": np.concatenate([np.empty(0, np.int64), *(met.size for met in parts)]),
        f"{prefix}/rss": np.concatenate([np.empty(0), *(met.rss for met in parts)]),
        **_packs_to_arrays(
            f"{prefix}/nodes",
            [concatenated(trees) for met in parts for trees in met.states()],
            [n for met in parts for n in met.n_terms.tolist()],
        ),
    }


def _met_layout(prefix: str, n: int, arrays: Arrays) -> dict[str, Field]:
    if f"{prefix}/count" not in arrays:
        return {}
    return {
        f"{prefix}/count": Field("int64", (n,), 0, LARGEST_SHOWN),
        f"{prefix}/size": Field("int64", (prefix,), 1, LARGEST_SHOWN, f"{prefix}/count"),
        f"{prefix}/rss": Field("float64", (prefix,), 0.0),
        **_packs_layout(f"{prefix}/nodes", prefix),
    }


def _met(prefix: str, n: int, arrays: Arrays, problem: Problem) -> list[Met]:
    """Return what each of n ladders has met."""
    if f"{prefix}/count" not in arrays:
        return [nothing_met()] * n
    packs, n_terms = _packs(f"{prefix}/nodes", arrays, problem)
    counts, found, at = arrays[f"{prefix}/count"], [], 0
    for size, rss in zip(
        split(arrays[f"{prefix}/size"], counts), split(arrays[f"{prefix}/rss"], counts), strict=True
    ):
        here = slice(at, at + len(size))
        at += len(size)
        require(
            (np.diff(size) > 0).all()
            and all(0 < k <= problem.most_terms for k in n_terms[here])
            and all(len(pack) <= most for pack, most in zip(packs[here], size, strict=True)),
            f"the states of {prefix} do not have the sizes that it says",
        )
        met = Met(size, rss, np.array(n_terms[here], np.int64), concatenated(packs[here]))
        fits = all(len(tree) <= problem.max_nodes for trees in met.states() for tree in trees)
        require(fits, f"a tree of {prefix} is too large")
        found.append(met)
    return found


# The states of ladders. Compiled code trusts what it is given, so they are checked before.

_GROUPS = ("chains", "priors", "own")
# Counts that ladders of the first files do not have.
_LATER = {"teleports"}


def _ladders_to_arrays(prefix: str, ladders: Sequence[LadderState]) -> Arrays:
    """Return the states of ladders of one size as arrays."""
    n_trees = [_n_trees(one.chains) for one in ladders]
    arrays = _packs_to_arrays(f"{prefix}/nodes", [one.nodes for one in ladders], n_trees)
    arrays[f"{prefix}/share"] = np.array([one.share for one in ladders], np.float64)
    for group in _GROUPS:
        for name in getattr(ladders[0], group) if ladders else ():
            stacked = np.stack([getattr(one, group)[name] for one in ladders])
            arrays[f"{prefix}/{group}/{name}"] = stacked
    return arrays | _met_to_arrays(f"{prefix}/met", [one.met for one in ladders])


def _ladders_layout(prefix: str, n: int, like: LadderState, arrays: Arrays) -> dict[str, Field]:
    layout = _packs_layout(f"{prefix}/nodes", n)
    layout[f"{prefix}/share"] = Field("float64", (n,), 0.0, 1.0)
    for group in _GROUPS if n else ():
        for name, own in getattr(like, group).items():
            if name not in _LATER or f"{prefix}/{group}/{name}" in arrays:
                layout[f"{prefix}/{group}/{name}"] = Field(own.dtype.name, (n, *own.shape), None)
    return layout | _met_layout(f"{prefix}/met", n, arrays)


def _ladders(prefix: str, arrays: Arrays, like: LadderState, problem: Problem) -> list[LadderState]:
    """Return the states of ladders on a problem."""
    packs, ladders = zip(*_packs(f"{prefix}/nodes", arrays, problem), strict=True), []
    met = _met(f"{prefix}/met", len(arrays[f"{prefix}/share"]), arrays, problem)
    for i, (nodes, n_trees) in enumerate(packs):
        chains, priors, own = (
            {
                name: arrays[f"{prefix}/{group}/{name}"][i].copy()
                if f"{prefix}/{group}/{name}" in arrays
                else np.zeros_like(own)
                for name, own in getattr(like, group).items()
            }
            for group in _GROUPS
        )
        share = float(arrays[f"{prefix}/share"][i])
        ladder = LadderState(nodes, chains, priors, own, share, met[i])
        require(_is_sound(ladder, n_trees, problem), f"the state of one of {prefix} is impossible")
        ladders.append(ladder)
    return ladders


def _n_temperatures(ladder: LadderState) -> int:
    return len(ladder.own["power"]) if "power" in ladder.own else 0


def _n_trees(chains: Mapping[str, Any]) -> int:
    return int(np.maximum(chains["n_terms"], 0).sum())


def _is_sound(ladder: LadderState, n_trees: int, problem: Problem) -> bool:
    """Return whether a state stays within the arrays that compiled code gets."""
    chains, priors, own = ladder.chains, ladder.priors, ladder.own
    most, tiny = problem.most_terms, float(np.finfo(float).tiny)
    # Its trees are split only if it has as many of them as it says.
    fine = _within(chains["n_terms"], -1 - most, most) and n_trees == _n_trees(chains)
    fine = fine and all(
        len(tree) <= problem.max_nodes for tree in split_terms(ladder.nodes, n_trees)
    )
    fine &= (np.sort(chains["slots"], axis=1) == np.arange(most + 2)).all()
    fine &= chains["rng"].any(axis=1).all()
    fine &= _within(priors["scales"], tiny, LARGEST) and _within(own["clock"], 0, LARGEST)
    for cdf in (priors["operator_cdf"], priors["feature_cdf"]):
        fine &= _within(cdf, 0.0, 1.0 + 1e-6) and _within(cdf[..., -1], 1.0 - 1e-6, LARGEST)
        fine &= (np.diff(cdf, axis=-1) >= 0.0).all()
    if "replica" in own:
        fine &= (np.sort(own["replica"]) == np.arange(len(own["replica"]))).all()
        fine &= own["rng"].any() and _within(own["power"], tiny, 1.0)
    return bool(fine)


def _within(values: np.ndarray, least: float, most: float) -> bool:
    return bool(((values >= least) & (values <= most)).all())
