"""Files of a user, opened to be read."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader


class NotAFile(OSError):
    """A device, a pipe or a socket in place of a file."""


def open_file(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a file to be read, and refuse all that is none before it is opened.

    To open a pipe is to wait until somebody writes to it, and some devices have no end.
    """
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "this is a folder, not a file", os.fsdecode(path))
    if not stat.S_ISREG(mode):
        raise NotAFile(errno.EINVAL, "this is a device or a pipe, not a file", os.fsdecode(path))
    return open(path, "rb")
