"""Data to try things on: the simulated tasks of the paper, and Boyle's measurements."""

from __future__ import annotations

import numpy as np
import pandas as pd

#: The six tasks of the paper: their formulas as text.
PAPER_FORMULAS: dict[str, str] = {
    "f1": "2.5*x0**4 - 1.3*x0**3 + 0.5*x1**2 - 1.7*x1",
    "f2": "8*x0**2 + 8*x1**3 - 15",
    "f3": "0.2*x0**3 + 0.5*x1**3 - 1.2*x1 - 0.5*x0",
    "f4": "1.5*exp(x0) + 5*cos(x1)",
    "f5": "6*sin(x0)*cos(x1)",
    "f6": "1.35*x0*x1 + 5.5*sin((x0 - 1)*(x1 - 1))",
}


def paper_task(
    name: str,
    n_rows: int = 100,
    low: float = -3.0,
    high: float = 3.0,
    noise: float = 0.0,
    random_state: int | np.random.Generator | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return X and y of one of the paper's six simulated tasks.

    Parameters
    ----------
    name : str
        ``"f1"`` to ``"f6"``.
    n_rows : int
    low, high : float
        Both columns are uniform on this range. The paper trains on [-3, 3] and tests on [-3, 3],
        [-6, 6] and [3, 6].
    noise : float
        Standard deviation of Gaussian noise, in units of the root mean square of y.
    random_state : int, Generator or None

    Examples
    --------
    >>> from symbayes.datasets import paper_task
    >>> X, y = paper_task("f2", random_state=0)
    >>> X.shape, y.shape
    ((100, 2), (100,))
    """
    if name not in PAPER_FORMULAS:
        raise ValueError(f"there is no task {name!r}; the tasks are {', '.join(PAPER_FORMULAS)}")
    rng = np.random.default_rng(random_state)
    X = rng.uniform(low, high, (n_rows, 2))
    # The formulas are our own text, so nothing of a stranger's is run here.
    functions = {"sin": np.sin, "cos": np.cos, "exp": np.exp}
    y = eval(PAPER_FORMULAS[name], functions, {"x0": X[:, 0], "x1": X[:, 1]})
    if noise > 0:
        y = y + rng.normal(0.0, noise * np.sqrt(np.mean(y**2)), n_rows)
    return X, y


# Columns A and D of the table of the condensation of the air; whole inches and sixteenths.
_BOYLE = {
    48: (29, 2), 46: (30, 9), 44: (31, 15), 42: (33, 8), 40: (35, 5), 38: (37, 0), 36: (39, 5),
    34: (41, 10), 32: (44, 3), 30: (47, 1), 28: (50, 5), 26: (54, 5), 24: (58, 13), 23: (61, 5),
    22: (64, 1), 21: (67, 1), 20: (70, 11), 19: (74, 2), 18: (77, 14), 17: (82, 12), 16: (87, 14),
    15: (93, 1), 14: (100, 7), 13: (107, 13), 12: (117, 9),
}  # fmt: skip


def boyle() -> tuple[pd.DataFrame, pd.Series]:
    """Return Robert Boyle's measurements of the pressure of air at 25 volumes.

    From "A Defence of the Doctrine Touching the Spring and Weight of the Air", London, 1662, in the
    public domain. The air was shut into the short leg of a bent glass tube and compressed by
    mercury poured into the long one.

    Returns
    -------
    X : DataFrame
        One column, `volume`: the length of the enclosed air, in marks of a quarter of an inch.
    y : Series
        `pressure`, in inches of mercury.

    Examples
    --------
    >>> from symbayes.datasets import boyle
    >>> X, y = boyle()
    >>> (X["volume"] * y).round().head(3).tolist()
    [1398.0, 1406.0, 1405.0]
    """
    X = pd.DataFrame({"volume": list(_BOYLE)}, dtype=float)
    y = pd.Series([inches + parts / 16 for inches, parts in _BOYLE.values()], name="pressure")
    return X, y
