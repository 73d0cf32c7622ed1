"""One file of JSON and arrays: saved whole or not at all, and read without trusting it.

The file is a zip without compression, so that any tool opens it, it cannot unpack to more than its
own size, and the same content gives the same bytes on every platform. Its members are

- `symbayes.json`: what the file is, its document, and name, type, shape and SHA-256 of each array;
- `symbayes.json.sha256`: the SHA-256 of that;
- `arrays/NAME.bin`: the bytes of an array, little-endian, the last index running fastest.

Nothing in a file is executed, no name in it becomes a path, and reading takes little more memory
than the file has bytes. The checksums notice damage. They are no signature: whoever alters a file
on purpose can write new ones, so callers check a document and arrays as they would check a user's.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import reprlib
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from typing import Any, BinaryIO, cast

import numpy as np

from ..version import __version__
from .atomic import NotAFile, open_file, replacing

Arrays = dict[str, np.ndarray]

# Below 2**31, so that no Python writes the extension for large files.
MOST_BYTES = 2_000_000_000
MOST_MEMBERS = 10_000
_LONGEST_NAME = 120
MOST_JSON_BYTES = 4_000_000
_DEEPEST = 50

_FORMAT = "symbayes"
_HEAD, _HEAD_SHA256 = "symbayes.json", "symbayes.json.sha256"
_HEAD_KEYS = {"format", "kind", "version", "symbayes_version", "document", "arrays"}
_ARRAY_KEYS = ("name", "dtype", "shape", "sha256")
_NAME = re.compile(r"[a-z0-9_-]+(/[a-z0-9_-]+)*")
DTYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float32", "float64"),
    )
}

# Sizes of the records of a zip: before each member, for each in the directory, and at the end.
_LOCAL, _ENTRY, _END = 30, 46, struct.Struct("<4s4H2IH")
_LOCAL_MARK, _END_MARK, _ZIP64_MARK, _ZIP64_SIZE = b"PK\3\4", b"PK\5\6", b"PK\6\7", 20
# What `zipfile` answers to damage, which is not the same in every Python.
_ZIP_ERRORS = (
    zipfile.BadZipFile, struct.error, EOFError, IndexError, NotImplementedError, OverflowError,
    RuntimeError, ValueError,
)  # fmt: skip


class ModelFileError(ValueError):
    """A file that cannot be loaded: damaged, of a newer version, or not a symbayes file."""


class RefusedFile(Exception):
    """Why a file is not read: a sentence that begins with the name of the file."""


class DamagedFile(RefusedFile):
    """What is wrong in a file that was not saved like this."""

    def __str__(self) -> str:
        return f"is damaged: {self.args[0]}; restore a backup or fit again"


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Turn the refusal of a file into the error that names it."""
    try:
        yield
    except RefusedFile as refusal:
        raise ModelFileError(f"{path!r} {refusal}") from None


def require(fine: bool | np.bool_, what: str) -> None:
    """Refuse a file as damaged, and say `what` is wrong, unless it is fine."""
    if not fine:
        raise DamagedFile(what)


def path_text(path: str | os.PathLike[str], name: str = "path") -> str:
    """Return a path as text."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name} must be a str or a pathlib.Path, not {type(path).__name__}")
    return os.fsdecode(path)


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

    Readers refuse a newer `version` than theirs, which counts from 1 up. Numbers of the document
    are finite; an array is of a type in `DTYPES`, a structured one goes in field by field. With
    `keep` a file that is replaced stays beside the new one (`atomic.previous_of`).

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
    target = path_text(path)
    stored = {
        name: array.astype(DTYPES[array.dtype.name], order="C", copy=False)
        for name, array in arrays.items()
    }
    head = {
        "format": _FORMAT,
        "kind": kind,
        "version": version,
        "symbayes_version": __version__,
        "document": document,
        "arrays": [
            {
                "name": name,
                "dtype": array.dtype.name,
                "shape": list(array.shape),
                "sha256": _sha256(_bytes_of(array)),
            }
            for name, array in stored.items()
        ],
    }
    text = _to_json(head)
    members: dict[str, bytes | memoryview] = {_HEAD: text, _HEAD_SHA256: _sha256(text).encode()}
    members |= {_member_name(name): _bytes_of(array) for name, array in stored.items()}
    size = _size_of_zip({name: len(data) for name, data in members.items()})
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
    """Read a file that `write_archive` made; any other gives a ModelFileError.

    An OSError says that the file cannot be opened. The arrays are new ones in C order.
    """
    name = path_text(path)
    try:
        opened = open_file(name)
    except NotAFile:
        raise ModelFileError(f"{name!r} is a device or a pipe, not a symbayes file") from None
    with opened as file, naming(name):
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            raise RefusedFile("is empty; restore a backup or fit again")
        start = file.read(_LOCAL + len(_HEAD))
        if start[:4] != _LOCAL_MARK or start[_LOCAL:] != _HEAD.encode():
            raise RefusedFile("is not a symbayes file; choose one that symbayes saved")
        if size > max_bytes:
            raise RefusedFile(
                f"has {size} bytes, more than the {max_bytes} that are read (max_bytes)"
            )
        with open_zip(file, size) as archive:
            head = _read_head(archive, kind, newest_version)
            rows = [_described(row) for row in head["arrays"]]
            names = [_HEAD, _HEAD_SHA256, *(_member_name(name) for name, *_ in rows)]
            require(
                sorted(archive.namelist()) == sorted(names),
                "it does not have the arrays that it lists",
            )
            return head["document"], {row[0]: _read_array(archive, *row) for row in rows}


# The zip.


def write_zip(file: BinaryIO, members: Mapping[str, bytes | memoryview]) -> None:
    """Write members, in their order, to an empty file."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=False) as archive:
        for name, data in members.items():
            # Fixed, so that the same members give the same file.
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = 3, 0o644 << 16
            archive.writestr(info, data)


@contextmanager
def open_zip(file: BufferedReader, size: int) -> Iterator[zipfile.ZipFile]:
    """Open a zip of `size` bytes whose members are stored as they are, once each, without gaps.

    So all members together are smaller than the file, whatever it claims.
    """
    file.seek(-min(size, _END.size + _ZIP64_SIZE), os.SEEK_END)
    tail = file.read()
    require(len(tail) > _END.size, "it is cut short")
    mark, *_, count, length, _, comment = _END.unpack(tail[-_END.size :])
    require(mark == _END_MARK and not comment, "its end is missing")
    # Before `zipfile` makes an object of each entry. Its 64-bit extension may claim any number.
    require(
        count <= MOST_MEMBERS
        and length <= count * (_ENTRY + _LONGEST_NAME)
        and not tail.startswith(_ZIP64_MARK),
        "its directory is too large",
    )
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            require(
                all(
                    info.flag_bits == 0
                    and info.compress_type == zipfile.ZIP_STORED
                    and info.compress_size == info.file_size
                    for info in members
                ),
                "a member is compressed or encrypted",
            )
            sizes = {info.orig_filename: info.file_size for info in members}
            require(
                len(sizes) == len(members) and _size_of_zip(sizes) == size,
                "its directory does not match its content",
            )
            yield archive
    except (*_ZIP_ERRORS, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise  # the disk cannot be read; EINVAL is an offset before the start of the file
        raise DamagedFile(f"its members cannot be read ({reprlib.repr(str(error))})") from None


def _size_of_zip(sizes: Mapping[str, int]) -> int:
    """Return how many bytes a zip of members of these sizes has, if it has nothing else."""
    headers = sum(_LOCAL + _ENTRY + 2 * len(name) for name in sizes)
    return headers + sum(sizes.values()) + _END.size


# Its first member.


def _to_json(content: dict[str, Any]) -> bytes:
    """Return what `_from_json` turns into the same content again, or raise a ValueError."""
    try:
        text = json.dumps(content, allow_nan=False).encode("ascii")
        same = _from_json(text) == content
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the document cannot be saved as JSON ({error})") from None
    if not same:
        raise ValueError(
            "the document has what JSON lacks: a tuple, a key that is no str, or a name that is no "
            "valid text"
        )
    return text


def _from_json(text: bytes) -> Any:
    """Return the content, or raise a ValueError that says what is wrong."""
    if len(text) > MOST_JSON_BYTES:
        raise ValueError(f"it has {len(text)} bytes, more than {MOST_JSON_BYTES}")
    # The parser calls itself, and a user may have raised the limit of that beyond the stack.
    # Backslashes occur in strings only; without escapes, each quote opens or closes a string.
    codes = np.frombuffer(text.replace(rb"\\", b"").replace(rb"\"", b""), np.uint8)
    outside = np.cumsum(codes == ord('"'), dtype=np.int32) % 2 == 0
    steps = np.isin(codes, list(b"[{")).astype(np.int8) - np.isin(codes, list(b"]}"))
    if np.cumsum(steps * outside, dtype=np.int32).max(initial=0) > _DEEPEST:
        raise ValueError(f"it is nested more than {_DEEPEST} deep")
    return json.loads(text.decode("ascii"))


def _read_head(archive: zipfile.ZipFile, kind: str, newest_version: int) -> dict[str, Any]:
    require({_HEAD, _HEAD_SHA256} <= set(archive.namelist()), f"{_HEAD} or its checksum is missing")
    size = archive.getinfo(_HEAD).file_size
    require(size <= MOST_JSON_BYTES, f"{_HEAD} has {size} bytes, more than {MOST_JSON_BYTES}")
    text = archive.read(_HEAD)
    with archive.open(_HEAD_SHA256) as checksum:
        require(checksum.read(65) == _sha256(text).encode(), f"{_HEAD} has changed")
    try:
        head = _from_json(text)
    except ValueError as error:
        raise DamagedFile(f"{_HEAD} cannot be read ({error})") from None
    if not isinstance(head, dict) or head.get("format") != _FORMAT:
        raise RefusedFile("is not a symbayes file; choose one that symbayes saved")
    if head.get("kind") != kind:
        found = reprlib.repr(head.get("kind"))
        raise RefusedFile(f"holds {found}, not {kind!r}; choose another file")
    # Before anything that a later version may do in another way.
    version: Any = head.get("version")
    require(type(version) is int and version >= 1, "its version is not a number from 1 up")
    if version > newest_version:
        raise RefusedFile(
            "was saved by a newer version of symbayes "
            f"({reprlib.repr(head.get('symbayes_version'))}, file format {version}; this one reads "
            f"up to {newest_version}); upgrade symbayes"
        )
    require(
        head.keys() == _HEAD_KEYS
        and isinstance(head["document"], dict)
        and isinstance(head["arrays"], list),
        f"{_HEAD} does not have the expected entries",
    )
    return head


# Arrays.


def _member_name(name: str) -> str:
    return f"arrays/{name}.bin"


def _bytes_of(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _sha256(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


def _described(row: Any) -> tuple[str, np.dtype, tuple[int, ...], Any]:
    """Return name, type, shape and checksum of an array as the head lists them."""
    known: dict[str, Any] = row if isinstance(row, dict) and row.keys() == set(_ARRAY_KEYS) else {}
    name, dtype, shape, sha256 = (known.get(key, 0) for key in _ARRAY_KEYS)
    require(
        isinstance(name, str)
        and _NAME.fullmatch(name) is not None
        and isinstance(dtype, str)
        and dtype in DTYPES
        and isinstance(shape, list)
        and all(type(n) is int and n >= 0 for n in shape),
        f"the list of its arrays has the entry {reprlib.repr(row)}",
    )
    return name, DTYPES[dtype], tuple(shape), sha256


def _read_array(
    archive: zipfile.ZipFile, name: str, dtype: np.dtype, shape: tuple[int, ...], sha256: Any
) -> np.ndarray:
    member = archive.getinfo(_member_name(name))
    # Before it is allocated: a member is no larger than the file.
    size = math.prod(shape) * dtype.itemsize
    require(
        member.file_size == size,
        f"array {name!r} has {member.file_size} bytes, not the {size} of its shape",
    )
    array = np.empty(shape, dtype)  # a ValueError if huge sizes stand beside one of 0
    with archive.open(member) as file:
        cast(BufferedReader, file).readinto(_bytes_of(array))
    require(_sha256(_bytes_of(array)) == sha256, f"array {name!r} has changed")
    # Other bytes are neither true nor false: NumPy and compiled code may differ on them.
    require(
        dtype.kind != "b" or bool((array.view(np.uint8) <= 1).all()),
        f"array {name!r} is not of true and false",
    )
    native = np.dtype(dtype.name)
    # A view, for a type that names its byte order prints and pickles as another one.
    return array.view(native) if dtype.isnative else array.astype(native)
