"""One HTML page about a fitted model: the answer, then trust, then detail."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ...storage.atomic import replacing
from .answer import answer
from .detail import detail
from .markup import Markup, element, joined
from .trust import trust

# Nothing is fetched and nothing is run; a browser refuses both.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def write_report(model: Any, path: str | os.PathLike[str], title: str | None = None) -> Path:
    """Write a page that shows a fitted model to a reader: formulas, trust, detail.

    It is one HTML file that needs nothing else, neither network nor scripts. The same model gives
    the same file.

    Parameters
    ----------
    model : BayesianSymbolicRegressor
        Fitted.
    path : path-like
        The file to write. One that is there is replaced once the new one is complete.
    title : str, optional
        "A formula for" the name of y, if not given.

    Returns
    -------
    Path
        Where it was written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from symbayes import BayesianSymbolicRegressor
    >>> from symbayes.datasets import paper_task
    >>> from symbayes.show.report import write_report
    >>> X, y = paper_task("f2", random_state=0)
    >>> model = BayesianSymbolicRegressor(["square", "cube"], draws=50, tune=50, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(model.fit(X, y), Path(folder) / "f2.html").name
    'f2.html'
    """
    check_is_fitted(model)
    path = Path(path)
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title must be a str or None, not {type(title).__name__}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; add a file name, such as report.html")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent}; create it first")
    page = _page(model, title or f"A formula for {model._target}")
    with replacing(os.fspath(path)) as file:
        file.write(page.encode("utf-8", "xmlcharrefreplace"))
    return path


def _page(model: Any, title: str) -> str:
    style = files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    head = element(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        element("title", title),
        element("style", Markup(style)),
    )
    links = [("#answer", "Answer"), ("#trust", "Trust"), ("#detail", "Detail")]
    header = element(
        "header",
        element("h1", title),
        element("nav", joined(element("a", name, href=target) for target, name in links)),
    )
    body = element("body", header, element("main", answer(model), trust(model), detail(model)))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"
