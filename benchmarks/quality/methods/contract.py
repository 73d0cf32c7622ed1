"""What the harness and a method's script pass to each other, in that method's own environment.

`python run_X.py job.npz job.json result.json`. Standard library only, except for NumPy when called.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def read_job() -> dict[str, Any]:
    """Return job.json's entries (seconds, cores, seed, operators, ...) and X, y, X_test."""
    import numpy as np

    arrays, entries, _ = sys.argv[1:]
    with np.load(arrays) as data:
        return {**json.loads(Path(entries).read_text()), **{name: data[name] for name in data}}


def write_result(
    formulas: list[tuple[str, float | None]],
    prediction: Any,
    seconds: float,
    history: Sequence[tuple[float, str]] = (),
    lower: Any = None,
    upper: Any = None,
    inclusion: Any = None,
    extra: dict[str, Any] | None = None,
) -> None:
    """Write result.json.

    Parameters
    ----------
    formulas : list of (text, probability or None)
        The best first.
    prediction : array
        By the method itself, for X_test.
    seconds : float
        Time of the fit, imports aside.
    history : list of (seconds, text)
        Whenever the best formula changed.
    lower, upper : array, optional
        90 % predictive interval.
    inclusion : array, optional
        Probability that a column is used, for each column.
    extra : dict, optional
    """
    numbers = {"prediction": prediction, "lower": lower, "upper": upper, "inclusion": inclusion}
    result = {
        "formulas": [{"text": text, "probability": p} for text, p in formulas],
        "history": [[seconds, text] for seconds, text in history],
        **{name: None if v is None else [float(x) for x in v] for name, v in numbers.items()},
        "seconds": seconds,
        "extra": extra or {},
    }
    Path(sys.argv[3]).write_text(json.dumps(result))
