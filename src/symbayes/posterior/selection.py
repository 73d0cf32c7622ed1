"""Which formula is the best: rules that have a name, and the best one of each size."""

from __future__ import annotations

import numpy as np
import pandas as pd


def select(formulas: pd.DataFrame, rule: str, near: float) -> int:
    """Return the place of the best formula in a table of formulas.

    Parameters
    ----------
    formulas : DataFrame
        With `n_nodes` and `rmse`, the most probable formula first.
    rule : str
        "probability": the most probable; "one_standard_error": the simplest whose mean squared
        error is within one standard error of the smallest; "accuracy": the smallest error.
    near : float
        The RMSE whose square is one standard error above the smallest.
    """
    if rule == "probability":
        return 0
    rmse = formulas["rmse"].to_numpy()
    if rule == "accuracy":
        return int(np.argmin(rmse))
    close = np.flatnonzero(rmse <= max(near, rmse.min()))
    # Among the simplest of them the most probable, which comes first.
    return int(close[np.argmin(formulas["n_nodes"].to_numpy()[close])])


def pareto(formulas: pd.DataFrame) -> pd.DataFrame:
    """Return the formulas to which no other is both shorter and closer, the shortest first."""
    ranked = formulas.sort_values(["n_nodes", "rmse"], kind="stable")
    best_so_far = ranked["rmse"].cummin().shift(fill_value=np.inf)
    return ranked[ranked["rmse"] < best_so_far]
