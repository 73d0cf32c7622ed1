"""What models and checkpoints have in common: values as JSON, and checks of arrays and of trees.

What JSON does not have is a dict of one entry, under its kind: "tuple", "dict", "float" (one that
is not finite), "array" (type and shape; the values of all arrays of a type are one array of the
file) and the names of a few classes of settings. No other name in a file means anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..inputs.prior import NoisePrior, TermsPrior, TreePrior
from ..inputs.sampler_settings import PaperSampler, TemperedSampler
from ..inputs.user_formulas import texts_of
from ..kernels.opcodes import FEATURE, FIRST_BINARY
from ..kernels.tree import NODE
from .archive import DTYPES, Arrays, DamagedFile, require

#: Bounds of what is finite, and of what is positive.
LARGEST = float(np.finfo(np.float64).max)
SMALLEST = float(np.nextafter(0.0, 1.0))

_SETTINGS: dict[str, type] = {
    kind.__name__: kind
    for kind in (NoisePrior, PaperSampler, TemperedSampler, TermsPrior, TreePrior)
}
_NOT_FINITE = ("nan", "inf", "-inf")
_PREFIX = "values/"


class ValueWriter:
    """Turns values into JSON, and collects their arrays."""

    def __init__(self) -> None:
        self._flat: dict[str, list[np.ndarray]] = {}

    def plain(self, value: Any) -> Any:
        """Return a value as JSON; numbers of NumPy become those of Python."""
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bool | np.bool_):
            return bool(value)
        if isinstance(value, Integral):
            return int(value)
        if isinstance(value, Real):
            number = float(value)
            return number if math.isfinite(number) else {"float": str(number)}
        if isinstance(value, np.ndarray):
            name = value.dtype.name
            if name not in DTYPES:
                return self.plain(value.tolist())
            self._flat.setdefault(name, []).append(np.asarray(value).ravel())
            return {"array": [name, list(value.shape)]}
        if isinstance(value, list):
            return [self.plain(item) for item in value]
        if isinstance(value, tuple):
            return {"tuple": [self.plain(item) for item in value]}
        if isinstance(value, Mapping):
            return {"dict": [[self.plain(key), self.plain(item)] for key, item in value.items()]}
        name = type(value).__name__
        if _SETTINGS.get(name) is type(value):
            return {name: [[key, self.plain(item)] for key, item in vars(value).items()]}
        raise TypeError(f"an object of type {name} cannot be kept in a file")

    def parameters(self, model: Any) -> dict[str, Any]:
        """Return all parameters of an estimator: what JSON cannot keep, as what comes closest."""
        kept = {}
        for name, value in model.get_params(deep=False).items():
            if name == "progress" and callable(value):
                value = False
            elif name == "random_state" and not isinstance(value, Integral):
                value = None
            elif name in ("known_terms", "initial_formulas") and value is not None:
                texts = texts_of(name, value)
                value = tuple(texts) if isinstance(value, tuple) else texts
            elif name in ("operators", "feature_weights") and not isinstance(
                value, str | list | tuple | np.ndarray | Mapping | None
            ):
                value = list(value)
            try:
                kept[name] = self.plain(value)
            except TypeError as error:
                raise TypeError(f"this model cannot be saved: {name}: {error}") from None
        return kept

    def arrays(self) -> Arrays:
        """Return the values of all arrays so far, one array per type."""
        return {f"{_PREFIX}{name}": np.concatenate(flat) for name, flat in self._flat.items()}


class ValueReader:
    """Turns JSON into the values that a `ValueWriter` was given, in the same order.

    Of all arrays of a file, those that the writer collected are taken out.
    """

    def __init__(self, arrays: Arrays):
        names = [name for name in arrays if name.startswith(_PREFIX)]
        self.arrays = {name: arrays.pop(name) for name in names}
        self._left = {name.removeprefix(_PREFIX): array for name, array in self.arrays.items()}
        for name, array in self._left.items():
            require(
                array.dtype.name == name and array.ndim == 1,
                f"the array {_PREFIX}{name} is of another type or shape",
            )

    def value(self, plain: Any) -> Any:
        """Return a value, or refuse the file."""
        if isinstance(plain, list):
            return [self.value(item) for item in plain]
        if not isinstance(plain, dict):
            return plain
        require(len(plain) == 1, "it has a value of no kind")
        ((kind, content),) = plain.items()
        if kind == "float" and isinstance(content, str) and content in _NOT_FINITE:
            return float(content)
        require(isinstance(content, list), f"it has a value that is no {kind[:20]!r}")
        if kind == "tuple":
            return tuple(self.value(item) for item in content)
        if kind == "dict":
            return self._dict(content)
        if kind == "array":
            return self._array(content)
        require(kind in _SETTINGS, f"it has a value of the unknown kind {kind[:20]!r}")
        try:
            return _SETTINGS[kind](**self._dict(content))
        except (TypeError, ValueError) as error:
            raise DamagedFile(f"it has impossible settings ({error})") from None

    def _dict(self, content: list) -> dict[Any, Any]:
        require(
            all(isinstance(pair, list) and len(pair) == 2 for pair in content),
            "it has a dict that is none",
        )
        keys = [key for key, _ in content]
        require(
            all(type(key) in (str, int) for key in keys) and len(set(keys)) == len(keys),
            "it has a dict whose keys are no names or numbers, or occur twice",
        )
        return {key: self.value(item) for key, item in content}

    def _array(self, content: list[Any]) -> np.ndarray:
        require(len(content) == 2, "it has an array of no type or shape")
        name, shape = content
        require(
            isinstance(name, str)
            and isinstance(shape, list)
            and len(shape) <= 32
            and all(type(n) is int and n >= 0 for n in shape),
            "it has an array of no type or shape",
        )
        require(name in self._left, f"the array {_PREFIX}{name[:20]} is missing")
        flat, size = self._left[name], math.prod(shape)
        require(size <= len(flat), f"the array {_PREFIX}{name} is too short")
        self._left[name] = flat[size:]
        try:
            return flat[:size].reshape(shape).copy()
        except ValueError:  # too large sizes beside one of 0
            raise DamagedFile("it has an array of an impossible shape") from None

    def parameters(self, kind: Any, plain: Any) -> dict[str, Any]:
        """Return the parameters of an estimator of a class."""
        require(
            isinstance(plain, dict) and plain.keys() == set(kind._get_param_names()),
            "it does not have the parameters of a model",
        )
        return {name: self.value(value) for name, value in plain.items()}

    def finish(self) -> None:
        """Complain about values that were not used."""
        for name, flat in self._left.items():
            require(len(flat) == 0, f"the array {_PREFIX}{name} is too long")


@dataclass(frozen=True)
class Field:
    """What an array of a file has to be.

    A size of its shape may have a name; it is then the same wherever that name is used.
    """

    dtype: str
    shape: tuple[int | str, ...]
    least: float | None = -LARGEST
    """The least value; None allows all, nan among them."""
    most: float = LARGEST
    places_in: str | None = None
    """Values are indices into something of the size of this name, instead of `least` to `most`."""


Layout = Mapping[str, Field]


def check_arrays(arrays: Arrays, layout: Layout, sizes: Mapping[str, int]) -> dict[str, int]:
    """Refuse arrays that are not as a layout says; return `sizes` and all others by name."""
    for name in layout:
        require(name in arrays, f"the array {name} is missing")
    if arrays.keys() != layout.keys():
        extra = min(arrays.keys() - layout.keys())
        raise DamagedFile(f"it has arrays that belong to nothing, such as {extra}")
    found = dict(sizes)
    for name, field in layout.items():
        array = arrays[name]
        fits = array.dtype.name == field.dtype and array.ndim == len(field.shape)
        for wanted, size in zip(field.shape, array.shape, strict=False):
            expected = found.setdefault(wanted, size) if isinstance(wanted, str) else wanted
            fits &= expected == size
        require(
            fits,
            f"the array {name} is of {array.dtype} with the shape {array.shape}, which does not "
            "fit the rest",
        )
    for name, field in layout.items():
        least, most = field.least, field.most
        if field.places_in is not None:
            least, most = 0, found[field.places_in] - 1
        if least is not None:
            fine = (arrays[name] >= least) & (arrays[name] <= most)
            require(fine.all(), f"the array {name} has impossible values")
    return found


def split(name: str, flat: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
    """Return consecutive parts of an array, along its last axis."""
    check_lengths(name, flat, lengths)
    ends = np.cumsum(lengths, dtype=np.int64)
    pairs = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
    return [flat[..., start:end] for start, end in pairs]


def check_lengths(name: str, flat: np.ndarray, lengths: np.ndarray) -> None:
    """Refuse an array whose parts do not have these lengths together."""
    # As floats, whose sum does not wrap around; it is exact up to more than any file has.
    require(
        flat.shape[-1] == lengths.sum(dtype=np.float64),
        f"the array {name} does not have the length that its parts have together",
    )


def nodes_from(arrays: Arrays, prefix: str, op: np.ndarray | None = None) -> np.ndarray:
    """Return the nodes of trees whose fields are arrays under a prefix."""
    op = arrays[f"{prefix}/op"] if op is None else op
    nodes = np.zeros(len(op), NODE)
    nodes["op"] = op
    for name in ("feature", "a", "b"):
        nodes[name] = arrays[f"{prefix}/{name}"]
    return nodes


def nodes_to_arrays(prefix: str, trees: Sequence[np.ndarray]) -> Arrays:
    """Return the nodes of trees as arrays, one after the other."""
    nodes = np.concatenate([np.empty(0, NODE), *trees], dtype=NODE)
    return {
        f"{prefix}/op": nodes["op"].astype(np.uint8),
        f"{prefix}/feature": nodes["feature"],
        f"{prefix}/a": nodes["a"],
        f"{prefix}/b": nodes["b"],
    }


def check_trees(
    name: str,
    nodes: np.ndarray,
    lengths: np.ndarray,
    n_trees: np.ndarray,
    n_columns: int,
) -> None:
    """Refuse nodes that are not whole trees over `n_columns` columns; compiled code trusts them.

    The nodes are packed: the i-th of `lengths` is how many nodes the next `n_trees[i]` trees have.
    """
    op = nodes["op"]
    used = nodes["feature"][op == FEATURE]
    check_lengths(f"{name}/op", op, lengths)
    fine = ((used >= 0) & (used < n_columns)).all() and ((lengths == 0) == (n_trees == 0)).all()
    require(fine, f"a tree of {name} is not complete or has a column that is not there")
    # After each node this many subtrees are missing in its pack; at its end none, and never before.
    missing = np.cumsum((op > FEATURE).astype(np.int64) + (op >= FIRST_BINARY) - 1)
    lengths, n_trees = lengths[lengths > 0], n_trees[lengths > 0]
    ends = np.cumsum(lengths) - 1
    before = np.concatenate([[0], missing[ends[:-1]]]) if len(ends) else np.zeros(0, np.int64)
    missing += np.repeat(n_trees - before, lengths)
    last = np.zeros(len(op), bool)
    last[ends] = True
    fine = (missing[last] == 0).all() and (missing[~last] > 0).all()
    require(fine, f"a tree of {name} is not complete or has a column that is not there")
