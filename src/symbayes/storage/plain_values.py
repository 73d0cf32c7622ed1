"""Parameters and records as JSON. What JSON does not have is a dict of one entry, under its kind.

The kinds are "tuple", "dict", "float" (one that is not finite), "array" (type and shape; the values
of all arrays of a type are one array of the file) and the names of a few classes of settings. No
other name in a file means anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..inputs.prior import NoisePrior, TermsPrior, TreePrior
from ..inputs.sampler_settings import PaperSampler, TemperedSampler
from .archive import DTYPES, Arrays
from .parts import Parts
from .stored_zip import Damage

_CLASSES: dict[str, type] = {
    kind.__name__: kind
    for kind in (NoisePrior, PaperSampler, TemperedSampler, TermsPrior, TreePrior)
}
_NOT_FINITE = ("nan", "inf", "-inf")


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
            return self._array(value)
        if isinstance(value, list):
            return [self.plain(item) for item in value]
        if isinstance(value, tuple):
            return {"tuple": [self.plain(item) for item in value]}
        if isinstance(value, Mapping):
            return {"dict": [[self.plain(key), self.plain(item)] for key, item in value.items()]}
        name = type(value).__name__
        if _CLASSES.get(name) is type(value):
            return {name: [[key, self.plain(item)] for key, item in vars(value).items()]}
        raise TypeError(f"an object of type {name} cannot be kept in a file")

    def _array(self, array: np.ndarray) -> Any:
        name = array.dtype.name
        if name not in DTYPES:
            return self.plain(array.tolist())
        self._flat.setdefault(name, []).append(np.asarray(array).ravel())
        return {"array": [name, list(array.shape)]}

    def arrays(self) -> Arrays:
        """Return the values of all arrays so far, one array a type."""
        return {f"values/{name}": np.concatenate(flat) for name, flat in self._flat.items()}


class ValueReader:
    """Turns JSON into the values that a `ValueWriter` was given, in the same order."""

    def __init__(self, parts: Parts):
        self._parts = parts
        self._flat: dict[str, np.ndarray] = {}

    def value(self, plain: Any) -> Any:
        """Return a value, or raise a Damage."""
        if isinstance(plain, list):
            return [self.value(item) for item in plain]
        if not isinstance(plain, dict):
            return plain
        if len(plain) != 1:
            raise Damage("it has a value of no kind")
        ((kind, content),) = plain.items()
        if kind == "float" and isinstance(content, str) and content in _NOT_FINITE:
            return float(content)
        if not isinstance(content, list):
            raise Damage(f"it has a value that is no {kind[:20]!r}")
        if kind == "tuple":
            return tuple(self.value(item) for item in content)
        if kind == "dict":
            return self._dict(content)
        if kind == "array":
            return self._array(content)
        if kind in _CLASSES:
            try:
                return _CLASSES[kind](**self._dict(content))
            except (TypeError, ValueError) as error:
                raise Damage(f"it has settings that cannot be ({error})") from None
        raise Damage(f"it has a value of the unknown kind {kind[:20]!r}")

    def _dict(self, content: list) -> dict[Any, Any]:
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in content):
            raise Damage("it has a dict that is none")
        keys = [key for key, _ in content]
        if not all(type(key) in (str, int) for key in keys) or len(set(keys)) != len(keys):
            raise Damage("it has a dict whose keys are no names or numbers, or occur twice")
        return {key: self.value(item) for key, item in content}

    def _array(self, content: list) -> np.ndarray:
        name, shape = content if len(content) == 2 else (None, None)
        if (
            not isinstance(name, str)
            or name not in DTYPES
            or not isinstance(shape, list)
            or not all(type(n) is int and n >= 0 for n in shape)
        ):
            raise Damage("it has an array of no type or shape")
        if name not in self._flat:
            self._flat[name] = self._parts.take(f"values/{name}", DTYPES[name].type, (None,))
        flat, size = self._flat[name], math.prod(shape)
        if size > len(flat):
            raise Damage(f"the array values/{name} is too short")
        self._flat[name] = flat[size:]
        try:
            return flat[:size].reshape(shape).copy()
        except ValueError:  # too many dimensions, or too large ones around none
            raise Damage("it has an array of a shape that cannot be") from None

    def finish(self) -> None:
        """Complain about values that were not used."""
        for name, flat in self._flat.items():
            if len(flat):
                raise Damage(f"the array values/{name} is too long")
