"""Checkpoints: a run on disk, every minute or so, from which it can be gone on with.

A file has the estimator's parameters, checksums of the table, the seed, and a moment of the run.
The one before it stays beside it, so that there is never only one copy.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..cautions import SamplingWarning
from ..inputs.checksums import checksum
from ..inputs.task import Task
from ..inputs.validation import Table, feature_names
from ..samplers.run.clock import Watch
from ..samplers.sampling import state_like
from ..samplers.trace import RunState, Trace
from ..version import __version__
from .archive import Arrays, ModelFileError, damaged, read_archive, write_archive
from .parts import Parts
from .plain_values import ValueReader, ValueWriter
from .regular_file import open_file
from .stored_parameters import parameters_from_plain, parameters_to_plain
from .stored_runs import from_parts, to_parts
from .stored_zip import Damage
from .whole_file import previous_of, remove_unfinished

_KIND, _VERSION = "checkpoint", 1
#: Seconds between two checkpoints, and the largest part of the time that goes into writing them.
SECONDS_BETWEEN, _MOST_OF_THE_TIME = 60.0, 0.02
_VALUES = "values/"
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


class Checkpoints:
    """The checkpoints of one run, which are written one after the other to the same file.

    Parameters
    ----------
    path : str
    lasting : dict
        What all of them have in common, as JSON.
    values : dict of str to ndarray
        The arrays that belong to it.
    damaged : bool
        Whether what is there cannot be read, so that it takes no other one's place.
    """

    def __init__(
        self, path: str, lasting: dict[str, Any], values: Arrays, damaged: bool = False
    ) -> None:
        self.path = path
        self._lasting, self._values = lasting, values
        self._damaged = damaged
        self._due = time.monotonic() + SECONDS_BETWEEN
        self._warned = False

    @property
    def advice(self) -> str:
        """How to go on with a run that has stopped."""
        return f"BayesianSymbolicRegressor.resume({self.path!r}, X, y) goes on from its checkpoint"

    def write(self, point: RunState, seconds: float) -> None:
        """Write a checkpoint, of a run that has taken so many seconds, or raise an error."""
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
        """Write the end of a run, unless the user has ended it: then it is left to be gone on."""
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
                    f"the checkpoint {self.path!r} could not be written ({why}); the run goes on, "
                    "the last one that was written stays, and another is tried every minute or so",
                    SamplingWarning,
                    stacklevel=2,
                )
        now = time.monotonic()
        self._due = now + max(SECONDS_BETWEEN, (now - began) / _MOST_OF_THE_TIME)


def begin_checkpoints(
    path: str, model: Any, table: Table, entropy: list[int], point: RunState
) -> Checkpoints:
    """Write the first checkpoint of a run, so that there is one from its very beginning."""
    writer = ValueWriter()
    lasting = {
        "symbayes": __version__,
        "parameters": parameters_to_plain(writer, model),
        "table": _about_table(model, table),
        "entropy": entropy,
        "origin": model._origin,
    }
    remove_unfinished(path)
    checkpoints = Checkpoints(path, lasting, writer.arrays())
    checkpoints.write(point, 0.0)
    return checkpoints


def refuse_existing(path: str | os.PathLike[str]) -> str:
    """Return the path of a new checkpoint; complain if there is one already."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"checkpoint must be a str or a pathlib.Path, not {type(path).__name__}")
    name = os.fsdecode(path)
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
            f"{one!r} exists, and may be the checkpoint of another run; go on with that one by "
            f"BayesianSymbolicRegressor.resume({name!r}, X, y), remove it (and what is kept of the "
            "one before it), or name another file"
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
class Stored:
    """A checkpoint that was read."""

    path: str
    lasting: dict[str, Any]
    values: Arrays
    parameters: dict[str, Any]
    seconds: float
    """How long the run had taken."""
    run: Any
    arrays: Arrays
    damaged: bool
    """Whether it is the one before that of this path, which cannot be read."""

    @property
    def entropy(self) -> list[int]:
        """What the seeds of the run come from."""
        return self.lasting["entropy"]

    @property
    def finished(self) -> bool:
        """Whether the run had come to its end."""
        return isinstance(self.run, dict) and self.run.get("finished") is True

    @property
    def origin(self) -> Any:
        """What the command line has noted, None from elsewhere."""
        return self.lasting["origin"]

    def checkpoints(self) -> Checkpoints:
        """Return what goes on writing them."""
        remove_unfinished(self.path)
        return Checkpoints(self.path, self.lasting, self.values, self.damaged)

    def check_table(self, model: Any, table: Table) -> None:
        """Complain about another table than that of the run."""
        now = _about_table(model, table)
        changed = [what for key, what in _TABLE.items() if now[key] != self.lasting["table"][key]]
        if changed:
            raise ValueError(
                f"the checkpoint {self.path!r} is of a run on another table (other "
                f"{', '.join(changed)}); resume it with the table it was begun with"
            )

    def point(self, task: Task, chains: int) -> RunState:
        """Return the moment that the run is at."""
        parts = Parts(self.arrays)
        like = state_like(task.sampler, task.problem)
        try:
            point = from_parts(self.run, parts, chains, like, task.problem)
            parts.finish()
        except Damage as damage:
            raise damaged(self.path, str(damage)) from None
        return point


def read_checkpoint(path: str | os.PathLike[str], kind: Any) -> Stored:
    """Read the checkpoint of an estimator of a class, or the one before it if it is damaged."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a str or a pathlib.Path, not {type(path).__name__}")
    name = os.fsdecode(path)
    previous = previous_of(name)
    try:
        return _read(name, name, kind)
    except (ModelFileError, FileNotFoundError) as error:
        if not os.path.exists(previous):
            raise
        try:
            stored = _read(previous, name, kind)
        except ModelFileError:
            raise ModelFileError(
                f"{error}; the one before it, {previous!r}, cannot be read either"
            ) from None
        why = f"{name!r} does not exist" if isinstance(error, FileNotFoundError) else str(error)
        warnings.warn(
            f"{why}. The run goes on from the checkpoint before it, {previous!r}",
            SamplingWarning,
            stacklevel=3,
        )
        return stored


def _read(path: str, name: str, kind: Any) -> Stored:
    document, arrays = read_archive(path, _KIND, _VERSION)
    try:
        _check_document(document)
        if document["symbayes"] != __version__:
            raise ModelFileError(
                f"{path!r} was written by symbayes {document['symbayes'][:30]}, and this is "
                f"{__version__}, which may not make the same draws; resume it with that version, "
                "or fit anew"
            )
        values = {key: array for key, array in arrays.items() if key.startswith(_VALUES)}
        parts = Parts(values)
        reader = ValueReader(parts)
        parameters = parameters_from_plain(reader, kind, document["parameters"])
        reader.finish()
        parts.finish()
    except Damage as damage:
        raise damaged(path, str(damage)) from None
    return Stored(
        path=name,
        lasting={key: document[key] for key in _LASTING},
        values=values,
        parameters=parameters,
        seconds=document["seconds"],
        run=document["point"],
        arrays={key: array for key, array in arrays.items() if key not in values},
        damaged=path != name and os.path.exists(name),
    )


def _check_document(document: dict[str, Any]) -> None:
    if document.keys() != _KEYS:
        raise Damage("its document does not have the expected entries")
    entropy, table, seconds = document["entropy"], document["table"], document["seconds"]
    if not (
        isinstance(entropy, list)
        and len(entropy) == _N_ENTROPY
        and all(type(number) is int and 0 <= number < 2**31 for number in entropy)
    ):
        raise Damage("its seed cannot be")
    if not isinstance(table, dict) or table.keys() != _TABLE.keys():
        raise Damage("what it says about its table does not have the expected entries")
    if type(seconds) is not float or seconds < 0 or not isinstance(document["symbayes"], str):
        raise Damage("its time or its version cannot be")
    if not isinstance(document["origin"], dict | None):
        raise Damage("what the command line has noted cannot be")


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
