"""Files that are written whole or not at all, and opened only where they are files."""

from __future__ import annotations

import errno
import glob
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from typing import BinaryIO

_PREVIOUS, _NEW = ".previous", ".new"


class NotAFile(OSError):
    """A device, a pipe or a socket in place of a file."""


def open_file(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a file for reading; anything else is refused before it is opened.

    Opening a pipe means waiting until somebody writes to it, and some devices have no end.
    """
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "this is a folder, not a file", os.fsdecode(path))
    if not stat.S_ISREG(mode):
        raise NotAFile(errno.EINVAL, "this is a device or a pipe, not a file", os.fsdecode(path))
    return open(path, "rb")


@contextmanager
def replacing(path: str, *, keep: bool = False) -> Iterator[BinaryIO]:
    """Yield a file to write to, which takes the place of `path` once it is complete on disk.

    If anything goes wrong, the old file stays as it was. Otherwise the new one takes over its
    permissions, and where `path` is a link, what it leads to is replaced. With `keep` the old file
    stays beside the new one, under the name that `previous_of` returns.
    """
    _refuse(path)
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    token = secrets.token_hex(8)
    # Checkpoints may be left behind by a kill, so their name says which run may remove them.
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
    """Return where `replacing` with `keep` puts the file that was there before."""
    return os.path.realpath(path) + _PREVIOUS


def remove_unfinished(path: str) -> None:
    """Remove what a killed process was writing with `keep`."""
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
    # Replacing a file needs no right to write to it, but whoever protected it wants it to stay.
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "this file is write-protected", path)
