"""Where results are written: checked before any work starts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

from ..storage.atomic import replacing
from .messages import UsageError

_RESCUED = "symbayes-interrupted"


class _Enough(Exception):
    """Nothing is to be written yet."""


def check_destination(option: str, path: str, others: Sequence[str]) -> None:
    """Complain now about a file that could not be written later.

    Parameters
    ----------
    option : str
        The option that names it.
    path : str
    others : sequence of str
        Other files of the same call, which it must not replace.
    """
    if path == "-":
        raise UsageError(f"{option} needs the name of a file, not '-'")
    for other in others:
        if os.path.realpath(path) == os.path.realpath(other):
            raise UsageError(f"{option} {path} would replace another file of this call")
    with suppress(_Enough), replacing(path):
        raise _Enough


def rescue_path() -> str:
    """Return where to save what nobody named a file for: a new one in the working folder.

    If nothing can be written there, it is in the folder for temporary files.
    """
    problem: OSError | None = None
    for folder in (".", tempfile.gettempdir()):
        path = _free(Path(folder))
        try:
            check_destination("", path, [])
        except OSError as error:
            problem = problem or error
        else:
            return path
    assert problem is not None
    raise problem


def _free(folder: Path) -> str:
    """Return the first name that is not taken."""
    names = (f"{_RESCUED}{'' if i == 1 else f'-{i}'}.symbayes" for i in count(1))
    return next(os.fspath(folder / name) for name in names if not (folder / name).exists())
