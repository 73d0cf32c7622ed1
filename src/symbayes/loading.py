"""Models from files."""

from __future__ import annotations

import os

from .regressor import BayesianSymbolicRegressor
from .storage.model_file import load_model

#: Files that are larger are not read, unless the user says so.
MOST_BYTES = 100_000_000


def load(path: str | os.PathLike[str], *, max_bytes: int = MOST_BYTES) -> BayesianSymbolicRegressor:
    """Load a model that was saved with `BayesianSymbolicRegressor.save`.

    Nothing in a file is run, whatever it holds, so that files of strangers are safe to load. What
    they say may be wrong all the same.

    Parameters
    ----------
    path : str or path-like
        The file.
    max_bytes : int, default=100_000_000
        Larger files are refused, before they are read.

    Returns
    -------
    BayesianSymbolicRegressor
        Fitted, with the same parameters, formulas and predictions as the one that was saved.

    Raises
    ------
    ModelFileError
        If the file is damaged, saved by a newer version of symbayes, or something else.
    OSError
        If it cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> from symbayes import BayesianSymbolicRegressor, load
    >>> from symbayes.datasets import paper_task
    >>> X, y = paper_task("f2", random_state=0)
    >>> model = BayesianSymbolicRegressor(["+", "square", "cube"], random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.symbayes")
    ...     loaded = load(f"{folder}/model.symbayes")
    >>> bool((loaded.predict(X) == model.predict(X)).all())
    True
    """
    return load_model(BayesianSymbolicRegressor, path, max_bytes)
