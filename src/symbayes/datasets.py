"""The simulated tasks of the paper, ready to fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

#: The six tasks of the paper: their formulas as text.
PAPER_FORMULAS: dict[str, str] = {
    "f1": "2.5*x0**4 - 1.3*x0**3 + 0.5*x1**2 - 1.7*x1",
    "f2": "8*x0**2 + 8*x1**3 - 15",
    "f3": "0.2*x0**3 + 0.5*x1**3 - 1.2*x1 - 0.5*x0",
    "f4": "1.5*exp(x0) + 5*cos(x1)",
    "f5": "6*sin(x0)*cos(x1)",
    "f6": "1.35*x0*x1 + 5.5*sin((x0 - 1)*(x1 - 1))",
}

_FUNCTIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "f1": lambda x, y: 2.5 * x**4 - 1.3 * x**3 + 0.5 * y**2 - 1.7 * y,
    "f2": lambda x, y: 8 * x**2 + 8 * y**3 - 15,
    "f3": lambda x, y: 0.2 * x**3 + 0.5 * y**3 - 1.2 * y - 0.5 * x,
    "f4": lambda x, y: 1.5 * np.exp(x) + 5 * np.cos(y),
    "f5": lambda x, y: 6 * np.sin(x) * np.cos(y),
    "f6": lambda x, y: 1.35 * x * y + 5.5 * np.sin((x - 1) * (y - 1)),
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
    if name not in _FUNCTIONS:
        raise ValueError(f"there is no task {name!r}; the tasks are {', '.join(_FUNCTIONS)}")
    rng = np.random.default_rng(random_state)
    X = rng.uniform(low, high, (n_rows, 2))
    y = _FUNCTIONS[name](X[:, 0], X[:, 1])
    if noise > 0:
        y = y + rng.normal(0.0, noise * np.sqrt(np.mean(y**2)), n_rows)
    return X, y
