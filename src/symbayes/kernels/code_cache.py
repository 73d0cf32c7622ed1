"""Where compiled code is kept for the next process: one file for each entry point.

Numba trusts its own files as they are: one that is cut off ends a fit with a traceback, and a
flipped bit in machine code may end the process. So a file here carries a checksum, which is checked
before anything else is read. Whatever is wrong with a file or a folder costs time and one warning.
"""

import hashlib
import os
import pickle
import secrets
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl
from numba.core.registry import cpu_target
from numba.core.serialize import dumps

_BEGINNING = b"symbayes kernel\n"
_DIGEST = hashlib.sha256().digest_size
# What a process has complained about: once is enough.
_said: set[str] = set()


class CodeCache:
    """What Numba asks of a cache, for one function that has no closure.

    Parameters
    ----------
    function : callable
        The function in Python.
    stamp : str
        What changes with any source that its machine code depends on.
    """

    def __init__(self, function: Callable, stamp: str):
        self._stamp = stamp
        self.cache_path: str | None = None
        with suppress(RuntimeError):  # Numba has found no folder that can be written to
            self._numba = CompileResultCacheImpl(function)
            self.cache_path = self._numba.locator.get_cache_path()

    def has(self, signature: Any) -> bool:
        """Return whether there is code for a signature that can be loaded."""
        try:
            return self._read(signature) is not None
        except (OSError, ValueError) as error:
            self._say_useless(error)  # whoever compiles it again need not be this process
            return False

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return what was compiled before for a signature; None if there is nothing of use."""
        try:
            data = self._read(signature)
            target.refresh()
            return None if data is None else self._numba.rebuild(target, pickle.loads(data))
        except Exception as error:
            self._say_useless(error)
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep what was compiled for a signature."""
        try:
            if self.cache_path is None:
                raise OSError("no folder can be written to")
            if self._numba.check_cachable(result):
                self._numba.locator.ensure_cache_path()
                self._write(signature, dumps(self._numba.reduce(result)))
        except OSError as error:
            where = "" if self.cache_path is None else f" in {self.cache_path}"
            _say_once(
                f"compiled code cannot be kept{where} ({error.strerror or error}), so that every "
                "process compiles it again; let NUMBA_CACHE_DIR name a folder with room"
            )

    def _say_useless(self, error: Exception) -> None:
        why = getattr(error, "strerror", None) or error
        _say_once(
            f"compiled code that was kept in {self.cache_path} is of no use ({why}) and is "
            "compiled again, which takes some seconds"
        )

    def _read(self, signature: Any) -> bytes | None:
        """Return what is kept for a signature; ValueError if it is not what was written."""
        if self.cache_path is None:
            return None
        try:
            with open(self._path(), "rb") as file:
                content = file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        head = self._head(signature)
        start = len(head) + _DIGEST
        if not content.startswith(_BEGINNING) or len(content) < start:
            raise ValueError("a file is not what was written")
        if not content.startswith(head):
            return None  # of other sources, or another version of Numba
        data = content[start:]
        if hashlib.sha256(data).digest() != content[len(head) : start]:
            raise ValueError("a file is damaged")
        return data

    def _write(self, signature: Any, data: bytes) -> None:
        """Let a file take the place of the one before, whole, whoever else is writing it."""
        temporary = f"{self._path()}.{secrets.token_hex(8)}.tmp"
        try:
            with open(temporary, "xb") as file:
                file.write(self._head(signature) + hashlib.sha256(data).digest() + data)
            os.replace(temporary, self._path())
        except BaseException:
            with suppress(OSError):
                os.remove(temporary)
            raise

    def _path(self) -> str:
        # Computers of several kinds may share the folder.
        machine = hashlib.sha256(repr(_machine()).encode()).hexdigest()[:8]
        return os.path.join(self.cache_path, f"{self._numba.filename_base}.{machine}.nbc")

    def _head(self, signature: Any) -> bytes:
        """Return what a file of this code begins with."""
        key = (numba.__version__, self._stamp, self._numba.filename_base, signature, _machine())
        return _BEGINNING + hashlib.sha256(repr(key).encode()).digest()


def _machine() -> tuple:
    return cpu_target.target_context.codegen().magic_tuple()


def _say_once(message: str) -> None:
    kind = message.partition(" in ")[0]
    if kind not in _said:
        _said.add(kind)
        warnings.warn(message, RuntimeWarning, stacklevel=2)
