"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO


@contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """Give a file to write to, which takes the place of `path` once it is complete on disk.

    If anything goes wrong, a file that was there stays as it was. If not, its permissions stay, and
    so does a link: what it leads to is replaced.
    """
    _refuse(path)
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".symbayes-{secrets.token_hex(8)}.tmp")
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
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.remove(temporary)
        raise


def _refuse(path: str) -> None:
    if os.path.isdir(path) or not os.path.basename(path):
        raise IsADirectoryError(errno.EISDIR, "this is a folder; add the name of a file", path)
    if not os.path.exists(path):
        return
    if not os.path.isfile(path):
        raise FileExistsError(errno.EEXIST, "this is a device or a pipe; choose another name", path)
    # Replacing a file takes no right to write to it, but who protected it wants it to stay.
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "this file is write-protected", path)
