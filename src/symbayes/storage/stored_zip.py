"""Zip files without compression: any tool opens them, and reading one believes nothing it claims.

Members are stored as they are. So no file unpacks to more than its own size, and the same members
give the same bytes whatever the platform, the Python and its zlib.

Files are written with `zipfile` but not read with it. It takes much that is never written here
(bytes in front, comments, encryption, members that overlap, directories of any length), and answers
damage with many kinds of exceptions, from `struct.error` to `NotImplementedError`, which are not
the same in every Python. What is written here is so narrow that its layout is checked byte by byte
in fewer lines: members back to back, then the directory, then its end, and nothing else.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedReader
from typing import BinaryIO

# Below 2**31, so that no Python writes the extension for large files.
MOST_BYTES = 2_000_000_000
MOST_MEMBERS = 10_000
LONGEST_NAME = 120

# Fixed, so that the same members give the same file.
_TIME, _UNIX, _MODE = (1980, 1, 1, 0, 0, 0), 3, 0o644 << 16
# The records of a zip file: before each member, for each in the directory, and behind that.
_LOCAL = struct.Struct("<4s5H3I2H")
_ENTRY = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_LOCAL_MARK, _ENTRY_MARK, _END_MARK = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"


class Damage(Exception):
    """What is wrong with a file, to be put into a sentence that names the file."""


@dataclass(frozen=True)
class Member:
    """Where the bytes of a member are. They are not checked: CRC-32 is for the user's zip tool."""

    name: str
    file: BufferedReader
    start: int
    size: int
    plain: bool
    """Whether they are neither compressed nor encrypted."""

    def read(self, most: int) -> bytes:
        """Return the bytes, unless they are more than `most`."""
        if self.size > most:
            raise Damage(f"{self.name} has {self.size} bytes, more than the {most} it may have")
        data = bytearray(self.size)
        self.read_into(memoryview(data))
        return bytes(data)

    def read_into(self, target: memoryview) -> None:
        """Fill a buffer of the right size with the bytes."""
        if not self.plain:
            raise Damage(f"{self.name} is compressed or encrypted, and a saved file is neither")
        self.file.seek(self.start)
        if self.file.readinto(target) != self.size:
            raise Damage(f"{self.name} is cut short")


def write_zip(file: BinaryIO, members: Mapping[str, bytes | memoryview]) -> None:
    """Write members, in their order, to an empty file."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=False) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, _TIME)
            info.create_system, info.external_attr = _UNIX, _MODE
            archive.writestr(info, data)


def starts_with(file: BufferedReader, name: str) -> bool:
    """Tell whether a file begins as a zip whose first member has this name."""
    file.seek(0)
    head = file.read(_LOCAL.size + len(name))
    return head[:4] == _LOCAL_MARK and head[_LOCAL.size :] == name.encode("ascii")


def read_directory(file: BufferedReader, size: int) -> dict[str, Member]:
    """Return the members of a file of `size` bytes, by name.

    Members and directory fill the file without gap or overlap, so that all members together are
    smaller than the file.
    """
    end = size - _END.size
    if end < 0:
        raise Damage("it is cut short")
    record = _take(file, end, _END.size)
    _, _, _, _, count, length, offset, _ = _END.unpack(record)
    if record != _END.pack(_END_MARK, 0, 0, count, count, length, offset, 0):
        raise Damage("its end is missing")
    if offset + length != end:
        raise Damage("bytes are missing or were added")
    if count > MOST_MEMBERS or length > count * (_ENTRY.size + LONGEST_NAME):
        raise Damage("its directory is too large")
    directory = _take(file, offset, length)
    members: dict[str, Member] = {}
    here = start = 0  # in the directory, and in the file
    for _ in range(count):
        if length - here < _ENTRY.size:
            raise Damage("its directory is cut short")
        (
            mark, _, needed, flags, method, time, day, crc, packed, unpacked, name_size,
            extra, comment, _, _, _, header_at,
        ) = _ENTRY.unpack_from(directory, here)  # fmt: skip
        here += _ENTRY.size
        name = directory[here : here + name_size]
        here += name_size
        # The member has to repeat what the directory says about it.
        header = _LOCAL.pack(
            _LOCAL_MARK, needed, flags, method, time, day, crc, packed, unpacked, name_size, 0
        )
        if (mark, extra, comment, header_at) != (_ENTRY_MARK, 0, 0, start) or (
            _take(file, start, _LOCAL.size + len(name)) != header + name
        ):
            raise Damage("its directory does not match its content")
        start += _LOCAL.size + len(name)
        # Any bytes are a name in Latin-1; those that nobody asks for are noticed later.
        text = name.decode("latin-1")
        plain = flags == method == 0 and packed == unpacked
        members[text] = Member(text, file, start, unpacked, plain)
        start += packed
    if (here, start, len(members)) != (length, offset, count):
        raise Damage("its directory does not match its content")
    return members


def _take(file: BufferedReader, start: int, size: int) -> bytes:
    file.seek(start)
    data = file.read(size)
    if len(data) != size:
        raise Damage("it is cut short")
    return data
