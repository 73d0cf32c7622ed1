"""What is known of a run, read from a file: it has to be what those who show it expect."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .stored_zip import Damage

_HISTORY = {"chain": np.int64, "trees": np.int64, "rmse": np.float64, "n_nodes": np.int64}
# Entries of the diagnostics: values of a type, numbers by name, and arrays with one dimension or
# two and numbers of a type, of which there is one for each chain.
_VALUES: dict[str, tuple[type, ...]] = {
    "proposals": (int,), "evaluations": (int,), "seconds": (float,), "interrupted": (bool,),
    "timed_out": (bool,), "settled": (bool,), "restarts": (int,), "thinning": (int,),
    "converged": (bool,), "search_agreed": (bool, type(None)), "verdict": (str,),
    "chains_disagree": (bool,), "stacking_gain": (float, type(None)),
}  # fmt: skip
_NUMBERS_BY_NAME = ("acceptance", "r_hat", "effective_draws")
_ARRAYS_BY_CHAIN = {
    "log_likelihood": 1, "log_likelihood_by_temperature": 2, "powers": 1, "swap_rates": 1,
}  # fmt: skip
_NUMBERS_BY_CHAIN = {"leading_by_chain": float, "round_trips": int, "stacking_weights": float}
# Not there without temperatures.
_OF_LADDERS = ("powers", "swap_rates", "round_trips")
# None where chains were not stacked.
_OF_STACKING = "stacking_weights"


def check_diagnostics(diagnostics: Any, n_chains: int) -> None:
    """Complain about diagnostics that lack something, or have something else in its place."""
    if not isinstance(diagnostics, dict):
        raise Damage("its diagnostics are no dict")
    for name, types in _VALUES.items():
        _require(name, type(diagnostics.get(name)) in types)
    for name in _NUMBERS_BY_NAME:
        numbers = diagnostics.get(name)
        _require(
            name,
            isinstance(numbers, dict)
            and all(type(key) is str and type(number) is float for key, number in numbers.items()),
        )
    for name in (*_ARRAYS_BY_CHAIN, *_NUMBERS_BY_CHAIN):
        entries: Any = diagnostics.get(name)
        if name == _OF_STACKING and entries is None:
            continue
        lengths = (0, n_chains) if name in _OF_LADDERS else (n_chains,)
        _require(
            name,
            isinstance(entries, list)
            and len(entries) in lengths
            and all(_is_of_chain(name, entry) for entry in entries),
        )
    found = diagnostics.get("found")
    _require("found", isinstance(found, list) and all(map(_is_find, found)))


def _require(name: str, fine: bool) -> None:
    if not fine:
        raise Damage(f"{name!r} of its diagnostics cannot be")


def _is_of_chain(name: str, entry: Any) -> bool:
    if name in _NUMBERS_BY_CHAIN:
        return type(entry) is _NUMBERS_BY_CHAIN[name]
    return (
        isinstance(entry, np.ndarray)
        and entry.dtype == np.float64
        and entry.ndim == _ARRAYS_BY_CHAIN[name]
    )


def _is_find(entry: Any) -> bool:
    return isinstance(entry, tuple) and [type(part) for part in entry] == [float, str]


def history_of(history: pd.DataFrame | None) -> dict[str, np.ndarray] | None:
    """Return the record of the paper's sampler by column, None where there is none."""
    if history is None:
        return None
    return {name: history[name].to_numpy(dtype) for name, dtype in _HISTORY.items()}


def history_from(columns: Any) -> pd.DataFrame | None:
    """Return that record as a table again."""
    if columns is None:
        return None
    if (
        not isinstance(columns, dict)
        or list(columns) != list(_HISTORY)
        or not all(
            isinstance(columns[name], np.ndarray)
            and columns[name].dtype == dtype
            and columns[name].ndim == 1
            for name, dtype in _HISTORY.items()
        )
        or len({len(column) for column in columns.values()}) != 1
    ):
        raise Damage("its history cannot be")
    return pd.DataFrame(columns)
