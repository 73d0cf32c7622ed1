"""The parameters of an estimator in a file."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np

from ..inputs.user_formulas import texts_of
from .plain_values import ValueReader, ValueWriter
from .stored_zip import Damage


def parameters_to_plain(writer: ValueWriter, model: Any) -> dict[str, Any]:
    """Return all parameters as JSON: what cannot be kept as it is, as what comes closest."""
    return {
        name: _plain(writer, name, value) for name, value in model.get_params(deep=False).items()
    }


def _plain(writer: ValueWriter, name: str, value: Any) -> Any:
    if name == "progress" and callable(value):
        value = False
    if name == "random_state" and not isinstance(value, Integral):
        value = None
    if name in ("known_terms", "initial_formulas") and value is not None:
        value = tuple(texts_of(name, value)) if isinstance(value, tuple) else texts_of(name, value)
    if name in ("operators", "feature_weights") and not (
        value is None or isinstance(value, str | list | tuple | np.ndarray | Mapping)
    ):
        value = list(value)
    try:
        return writer.plain(value)
    except TypeError as error:
        raise TypeError(f"this model cannot be saved: {name}: {error}") from None


def parameters_from_plain(reader: ValueReader, kind: Any, plain: Any) -> dict[str, Any]:
    """Return the parameters of a class that a file holds, or raise a Damage."""
    if not isinstance(plain, dict) or plain.keys() != set(kind._get_param_names()):
        raise Damage("it does not have the parameters of a model")
    return {name: reader.value(value) for name, value in plain.items()}
