"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import glob
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

_PREVIOUS, _NEW = ".previous", ".new"


@contextmanager
def replacing(path: str, *, keep: bool = False) -> Iterator[BinaryIO]:
    """Give a file to write to, which takes the place of `path` once it is complete on disk.

    If anything goes wrong, a file that was there stays as it was. If not, its permissions stay, and
    so does a link: what it leads to is replaced. With `keep` it stays beside the new one, by the
    name that `previous_of` tells.
    """
    _refuse(path)
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    token = secrets.token_hex(8)
    # A name that tells whose it is, where it may be left behind and has to be found again.
    name = f"{os.path.basename(target)}.{token}{_NEW}" if keep else f".symbayes-{token}.tmp"
    temporary = os.path.join(folder, name)
    try:
        # Not by `tempfile`, whose files are private; this one gets what the user's umask says.
        file = open(temporary, "xb")  # noqa: SIM115
    except OSError as error:
        advice = "choose another" if os.path.isdir(folder) else "create it first"
        why = f"no file can be made in this folder ({error.strerror}); {advice}"
        raise OSError(error.errno, why, folder) from None
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            shutil.copymode(target, temporary)
            if keep:
                os.replace(target, previous_of(path))
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.remove(temporary)
        raise


def previous_of(path: str) -> str:
    """Return where the file is that was there before, if it was kept."""
    return os.path.realpath(path) + _PREVIOUS


def remove_unfinished(path: str) -> None:
    """Remove what was being written with `keep` when the process that wrote it was ended."""
    target = os.path.realpath(path)
    for name in glob.glob(f"{glob.escape(target)}.{'[0-9a-f]' * 16}{_NEW}"):
        with suppress(OSError):
            os.remove(name)


def _refuse(path: str) -> None:
    if not path:
        raise FileNotFoundError(errno.ENOENT, "the name of the file is empty", path)
    if os.path.isdir(path) or not os.path.basename(path):
        raise IsADirectoryError(errno.EISDIR, "this is a folder; add the name of a file", path)
    if not os.path.exists(path):
        return
    if not os.path.isfile(path):
        raise FileExistsError(errno.EEXIST, "this is a device or a pipe; choose another name", path)
    # Replacing a file takes no right to write to it, but who protected it wants it to stay.
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "this file is write-protected", path)
