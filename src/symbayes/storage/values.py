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
NODE_FIELDS = ("op", "feature", "a", "b")

_SETTINGS: dict[str, type] = {
    kind.__name__: kind
    for kind in (NoisePrior, PaperSampler, TemperedSampler, TermsPrior, TreePrior)
}
#: Parameters of the estimator that files of the first version do not have.
_LATER_PARAMETERS = {"tolerance"}
_NOT_FINITE = {text: float(text) for text in ("nan", "inf", "-inf")}
_PREFIX = "values/"


class ValueWriter:
    """Turns values into JSON, and collects their arrays."""

    def __init__(self) -> None:
        self._flat: dict[str, list[np.ndarray]] = {}

    def plain(self, value: Any) -> Any:
        """Return a value as JSON; numbers of NumPy become those of Python."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, str | bool | int | None):
            return value
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
        """Return all parameters of an estimator; what cannot be kept, as what comes closest."""
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
        try:
            return self._value(plain)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            why = f"{type(error).__name__}: {str(error)[:300]}"
            raise DamagedFile(f"it has a value that cannot be ({why})") from None

    def _value(self, plain: Any) -> Any:
        if isinstance(plain, list):
            return [self._value(item) for item in plain]
        if not isinstance(plain, dict):
            return plain
        ((kind, content),) = plain.items()
        if kind == "float":
            return _NOT_FINITE[content]
        if kind == "tuple":
            return tuple(self._value(item) for item in content)
        if kind == "array":
            name, shape = content
            if min(shape, default=0) < 0:  # which reshape would take for the size that is left
                raise ValueError("an array has a size below 0")
            flat, size = self._left[name], math.prod(shape)
            self._left[name] = flat[size:]
            return flat[:size].reshape(shape).copy()
        values = {key: self._value(item) for key, item in content}
        return values if kind == "dict" else _SETTINGS[kind](**values)

    def parameters(self, kind: Any, plain: Any) -> dict[str, Any]:
        """Return the parameters of a class of estimators; those that came later may be missing."""
        require(
            isinstance(plain, dict)
            and plain.keys() | _LATER_PARAMETERS == set(kind._get_param_names()),
            "it does not have the parameters of a model",
        )
        return {name: self.value(value) for name, value in plain.items()}

    def finish(self) -> None:
        """Complain about values that were not used."""
        for name, flat in self._left.items():
            require(len(flat) == 0, f"the array {_PREFIX}{name} is too long")


def kind_of(value: Any) -> str:
    """Return the type of a value and of what is in it: "int", "[float64 1]", "{str: float}"."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name} {value.ndim}"
    if isinstance(value, tuple):
        return f"({', '.join(map(kind_of, value))})"
    if isinstance(value, list):
        return f"[{' or '.join(sorted({kind_of(item) for item in value}))}]"
    if isinstance(value, dict):
        kinds = {f"{kind_of(key)}: {kind_of(item)}" for key, item in value.items()}
        return f"{{{' or '.join(sorted(kinds))}}}"
    return "None" if value is None else type(value).__name__


def check_kinds(what: str, entries: Any, kinds: Mapping[str, str]) -> None:
    """Refuse entries that are not of one of the kinds that their names say, divided by bars."""
    require(isinstance(entries, dict), f"its {what} is no dict")
    for name, allowed in kinds.items():
        fine = name in entries and kind_of(entries[name]) in allowed.split(" | ")
        require(fine, f"{name!r} of its {what} is impossible")


@dataclass(frozen=True)
class Field:
    """What an array of a file has to be.

    A size of its shape may have a name; it is then the same wherever that name is used.
    """

    dtype: str
    shape: tuple[int | str, ...]
    least: Any = -LARGEST
    """The least value, or an array of them; None allows all, nan among them."""
    most: Any = LARGEST
    """The largest value, or an array of them; a name is that of a size, of which all are less."""
    lengths: str | None = None
    """The array that has the lengths of the parts of this one, which follow each other."""


def check_arrays(
    arrays: Arrays, layout: Mapping[str, Field], sizes: Mapping[str, int]
) -> dict[str, int]:
    """Refuse arrays that are not as a layout says; return `sizes` and all others by name."""
    for name in layout:
        require(name in arrays, f"the array {name} is missing")
    extra = min(arrays.keys() - layout.keys(), default="")
    require(not extra, f"it has arrays that belong to nothing, such as {extra}")
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
        if field.least is not None:
            most = found[field.most] - 1 if isinstance(field.most, str) else field.most
            fine = (arrays[name] >= field.least) & (arrays[name] <= most)
            require(fine.all(), f"the array {name} has impossible values")
        if field.lengths is not None:
            check_lengths(name, arrays[name], arrays[field.lengths])
    return found


def check_lengths(name: str, flat: np.ndarray, lengths: np.ndarray) -> None:
    """Refuse an array whose parts do not have these lengths together."""
    # As floats, whose sum does not wrap around; it is exact up to more than any file has.
    require(
        flat.shape[-1] == lengths.sum(dtype=np.float64),
        f"the array {name} does not have the length that its parts have together",
    )


def split(flat: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
    """Return consecutive parts of an array, along its last axis; their lengths were checked."""
    ends = np.cumsum(lengths, dtype=np.int64)
    pairs = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
    return [flat[..., start:end] for start, end in pairs]


def nodes_to_arrays(prefix: str, trees: Sequence[np.ndarray]) -> Arrays:
    """Return the nodes of trees as arrays, one after the other."""
    nodes = np.concatenate([np.empty(0, NODE), *trees], dtype=NODE)
    arrays = {f"{prefix}/{name}": nodes[name] for name in NODE_FIELDS}
    return arrays | {f"{prefix}/op": nodes["op"].astype(np.uint8)}


def checked_nodes(
    prefix: str, arrays: Arrays, lengths: np.ndarray, n_trees: np.ndarray, n_columns: int
) -> np.ndarray:
    """Return nodes that are whole trees over `n_columns` columns; compiled code trusts them.

    The nodes are packed: the i-th of `lengths` is how many nodes the next `n_trees[i]` trees have.
    """
    op = arrays[f"{prefix}/op"]
    nodes = np.zeros(len(op), NODE)
    for name in NODE_FIELDS:
        nodes[name] = arrays[f"{prefix}/{name}"]
    used = nodes["feature"][op == FEATURE]
    # After each node this many subtrees are missing in its pack; at its end none, and never before.
    change = (op > FEATURE).astype(np.int64) + (op >= FIRST_BINARY) - 1
    so_far, ends = np.append(0, np.cumsum(change)), np.cumsum(lengths, dtype=np.int64)
    missing = so_far[1:] + np.repeat(n_trees - so_far[ends - lengths], lengths)
    last = np.zeros(len(op), bool)
    last[ends[lengths > 0] - 1] = True
    fine = (
        ((used >= 0) & (used < n_columns)).all()
        and ((lengths == 0) == (n_trees == 0)).all()
        and (missing >= 0).all()
        and ((missing == 0) == last).all()
    )
    require(fine, f"a tree of {prefix} is not complete or has a column that is not there")
    return nodes
