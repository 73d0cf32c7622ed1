"""One file of JSON and arrays: saved whole or not at all, and read without trusting it.

The file is a zip without compression (stored_zip.py says why) with the members

- `symbayes.json`: what the file is, its document, and name, type, shape and SHA-256 of each array;
- `symbayes.json.sha256`: the SHA-256 of that;
- `arrays/NAME.bin`: the bytes of an array, little-endian, the last index running fastest.

Nothing in a file is executed, no name in it becomes a path, and reading takes little more memory
than the file has bytes. The checksums notice damage. They are no signature: who alters a file on
purpose can write new ones, so callers check a document and arrays as they would check a user's.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedReader
from typing import Any

import numpy as np

from ..version import __version__
from . import strict_json
from .regular_file import NotAFile, open_file
from .stored_zip import (
    LONGEST_NAME,
    MOST_BYTES,
    MOST_MEMBERS,
    Damage,
    Member,
    read_directory,
    starts_with,
    write_zip,
)
from .whole_file import replacing

Arrays = dict[str, np.ndarray]

_FORMAT = "symbayes"
_HEAD, _HEAD_SHA256 = "symbayes.json", "symbayes.json.sha256"
_HEAD_KEYS = {"format", "kind", "version", "symbayes_version", "document", "arrays"}
_ARRAY_KEYS = {"name", "dtype", "shape", "sha256"}
_NAME = re.compile(r"[a-z0-9_-]+(/[a-z0-9_-]+)*")
DTYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float32", "float64"),
    )
}
# What every NumPy can address, also where one of the sizes is 0.
_MOST_DIMENSIONS, _MOST_ADDRESSED = 32, 2**63 - 1
# More than the headers of a member in the file and in its directory.
_MEMBER_OVERHEAD = 400


class ModelFileError(ValueError):
    """A file that cannot be loaded: damaged, of a newer version, or not a symbayes file."""


class _Refusal(Exception):
    """Why a file is not read, to be put behind its name."""


@dataclass(frozen=True)
class _Description:
    """What the list of arrays says about one."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    sha256: Any


def write_archive(
    path: str | os.PathLike[str],
    kind: str,
    version: int,
    document: dict[str, Any],
    arrays: Mapping[str, np.ndarray],
    *,
    keep: bool = False,
) -> None:
    """Save a document and arrays in one file: the same bytes for the same content.

    Parameters
    ----------
    path : str or path-like
        Where to; the folder must exist. A file of that name is replaced when the new one is
        complete, and keeps its permissions.
    kind : str
        What the file holds, for example "model".
    version : int
        Of the document and of this format together, from 1 up; readers refuse newer ones.
    document : dict
        Of str, bool, int, finite float, None, and lists and dicts (with str as keys) of these.
        Numbers that may be nan or inf go into arrays.
    arrays : dict of str to ndarray
        Of bool, int8 to int64, uint8 to uint64, float32 or float64; a structured array goes in
        field by field. Names are of a-z, 0-9, "_" and "-", with "/" between parts.
    keep : bool
        Whether a file that is replaced stays beside the new one (`whole_file.previous_of`).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/a.symbayes"
    ...     write_archive(path, "example", 1, {"names": ["x"]}, {"x": np.arange(3.0)})
    ...     document, arrays = read_archive(path, "example", 1)
    >>> document, arrays
    ({'names': ['x']}, {'x': array([0., 1., 2.])})
    """
    target = _text(path)
    stored = {name: _little_endian(name, array) for name, array in arrays.items()}
    head = _head(kind, version, document, stored)
    members: dict[str, bytes | memoryview] = {_HEAD: head, _HEAD_SHA256: _sha256(head).encode()}
    members |= {_member_name(name): _bytes_of(array) for name, array in stored.items()}
    size = sum(len(data) + _MEMBER_OVERHEAD for data in members.values())
    if size > MOST_BYTES or len(members) > MOST_MEMBERS:
        raise ValueError(
            f"{target!r} would have {size} bytes in {len(members)} members, and a file can have "
            f"{MOST_BYTES} in {MOST_MEMBERS}; save less"
        )
    with replacing(target, keep=keep) as file:
        write_zip(file, members)


def read_archive(
    path: str | os.PathLike[str],
    kind: str,
    newest_version: int,
    *,
    max_bytes: int = MOST_BYTES,
) -> tuple[dict[str, Any], Arrays]:
    """Read a file that `write_archive` made, and refuse any other.

    Parameters
    ----------
    path : str or path-like
        The file.
    kind : str
        What it has to hold.
    newest_version : int
        The newest version that the caller understands.
    max_bytes : int
        Larger files are refused.

    Returns
    -------
    document : dict
    arrays : dict of str to ndarray
        New arrays in C order, whatever their order was, that may be written to.

    Raises
    ------
    ModelFileError
        If the file is damaged, altered, of a newer version, of another kind or something else.
    OSError
        If it cannot be opened: it does not exist, is a folder, or reading it is not permitted.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/a.symbayes"
    ...     write_archive(path, "example", 2, {}, {})
    ...     try:
    ...         read_archive(path, "example", 1)
    ...     except ModelFileError as error:
    ...         print(error)
    '...a.symbayes' was saved by a newer version of symbayes ('...', file format 2; this one reads
    up to 1); upgrade symbayes
    """
    name = _text(path)
    try:
        opened = open_file(name)
    except NotAFile:
        raise ModelFileError(f"{name!r} is a device or a pipe, not a symbayes file") from None
    with opened as file:
        try:
            return _read(file, kind, newest_version, max_bytes)
        except Damage as damage:
            raise damaged(name, str(damage)) from None
        except _Refusal as refusal:
            raise ModelFileError(f"{name!r} {refusal}") from None


def damaged(path: str | os.PathLike[str], what: str) -> ModelFileError:
    """Return the error to raise where the content of a file cannot be what was saved."""
    return ModelFileError(f"{_text(path)!r} is damaged: {what}; use a backup or make it anew")


def _text(path: str | os.PathLike[str]) -> str:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a str or a pathlib.Path, not {type(path).__name__}")
    return os.fsdecode(path)


def _little_endian(name: str, array: np.ndarray) -> np.ndarray:
    if not isinstance(name, str) or not _is_name(name):
        raise ValueError(f"{name!r} cannot be the name of an array in a file")
    # A subclass is more than its numbers: a masked array would lose its mask.
    if type(array) is not np.ndarray:
        raise TypeError(f"{name} must be a NumPy array, not {type(array).__name__}")
    if array.dtype.name not in DTYPES or array.ndim > _MOST_DIMENSIONS:
        raise TypeError(
            f"{name} is of {array.dtype} with {array.ndim} dimensions; an array in a file can be "
            f"of {', '.join(DTYPES)}, with up to {_MOST_DIMENSIONS} dimensions"
        )
    return array.astype(DTYPES[array.dtype.name], order="C", copy=False)


def _is_name(name: str) -> bool:
    return len(_member_name(name)) <= LONGEST_NAME and _NAME.fullmatch(name) is not None


def _member_name(name: str) -> str:
    return f"arrays/{name}.bin"


def _bytes_of(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _sha256(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


def _head(kind: str, version: int, document: dict[str, Any], arrays: Arrays) -> bytes:
    if not isinstance(kind, str) or not isinstance(document, dict):
        raise TypeError("kind must be a str and document a dict")
    if type(version) is not int or version < 1:
        raise ValueError(f"version must be an integer from 1 up, not {version!r}")
    rows = [
        {
            "name": name,
            "dtype": array.dtype.name,
            "shape": list(array.shape),
            "sha256": _sha256(_bytes_of(array)),
        }
        for name, array in arrays.items()
    ]
    head = {
        "format": _FORMAT,
        "kind": kind,
        "version": version,
        "symbayes_version": __version__,
        "document": document,
        "arrays": rows,
    }
    try:
        return strict_json.to_json(head)
    except ValueError as error:
        raise ValueError(f"the document cannot be saved: {error}") from None


def _read(
    file: BufferedReader, kind: str, newest_version: int, max_bytes: int
) -> tuple[dict[str, Any], Arrays]:
    size = os.fstat(file.fileno()).st_size
    if size == 0:
        raise _Refusal("is empty; use a backup or make it anew")
    if not starts_with(file, _HEAD):
        raise _Refusal("is not a symbayes file; choose one that symbayes saved")
    if size > max_bytes:
        raise _Refusal(f"has {size} bytes, more than the {max_bytes} that are read (max_bytes)")
    members = read_directory(file, size)
    head = _checked_head(members, kind, newest_version)
    rows = [_description(row) for row in head["arrays"]]
    names = [_member_name(row.name) for row in rows]
    if sorted(members) != sorted([_HEAD, _HEAD_SHA256, *names]):
        raise Damage("it does not have the arrays that it lists")
    return head["document"], {
        row.name: _array(members[name], row) for row, name in zip(rows, names, strict=True)
    }


def _checked_head(members: dict[str, Member], kind: str, newest_version: int) -> dict[str, Any]:
    if not {_HEAD, _HEAD_SHA256} <= members.keys():
        raise Damage(f"{_HEAD} or its checksum is missing")
    text = members[_HEAD].read(strict_json.MOST_BYTES)
    if members[_HEAD_SHA256].read(64) != _sha256(text).encode():
        raise Damage(f"{_HEAD} has changed")
    try:
        head = strict_json.from_json(text)
    except ValueError as error:
        raise Damage(f"{_HEAD} cannot be read ({error})") from None
    if not isinstance(head, dict) or head.get("format") != _FORMAT:
        raise _Refusal("is not a symbayes file; choose one that symbayes saved")
    if head.get("kind") != kind:
        raise _Refusal(f"holds {reprlib.repr(head.get('kind'))}, not {kind!r}; choose another file")
    # Before anything that a later version may do in another way.
    version = head.get("version")
    if type(version) is not int or version < 1:
        raise Damage("its version is not a number from 1 up")
    if version > newest_version:
        raise _Refusal(
            "was saved by a newer version of symbayes "
            f"({reprlib.repr(head.get('symbayes_version'))}, file format {version}; this one reads "
            f"up to {newest_version}); upgrade symbayes"
        )
    if (
        head.keys() != _HEAD_KEYS
        or not isinstance(head["document"], dict)
        or not isinstance(head["arrays"], list)
    ):
        raise Damage(f"{_HEAD} does not have the expected entries")
    return head


def _description(row: Any) -> _Description:
    if not isinstance(row, dict) or row.keys() != _ARRAY_KEYS:
        raise Damage("the list of arrays does not have the expected entries")
    name, dtype, shape = row["name"], row["dtype"], row["shape"]
    if not isinstance(name, str) or not _is_name(name):
        raise Damage(f"an array has the name {reprlib.repr(name)}")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise Damage(f"array {name!r} has the type {reprlib.repr(dtype)}")
    if (
        not isinstance(shape, list)
        or len(shape) > _MOST_DIMENSIONS
        or not all(type(n) is int and n >= 0 for n in shape)
        or math.prod(max(n, 1) for n in shape) * DTYPES[dtype].itemsize > _MOST_ADDRESSED
    ):
        raise Damage(f"array {name!r} has the shape {reprlib.repr(shape)}")
    return _Description(name, DTYPES[dtype], tuple(shape), row["sha256"])


def _array(member: Member, row: _Description) -> np.ndarray:
    # Before it is allocated: a member is no larger than the file.
    size = math.prod(row.shape) * row.dtype.itemsize
    if member.size != size:
        raise Damage(f"{member.name} has {member.size} bytes, not the {size} of its shape")
    array = np.empty(row.shape, row.dtype)
    member.read_into(_bytes_of(array))
    if _sha256(_bytes_of(array)) != row.sha256:
        raise Damage(f"{member.name} has changed")
    # Other bytes are neither true nor false: NumPy and compiled code may differ on them.
    if row.dtype.kind == "b" and (array.view(np.uint8) > 1).any():
        raise Damage(f"{member.name} is not an array of true and false")
    native = np.dtype(row.dtype.name)
    # A view, for a type that names its byte order prints and pickles as another one.
    return array.view(native) if row.dtype.isnative else array.astype(native)
