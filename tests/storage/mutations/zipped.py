"""Zip files that lie, hide, repeat or explode."""

from __future__ import annotations

import functools
import io
import json
import random
import struct
import warnings
import zipfile
import zlib
from itertools import pairwise

from .content import HEAD, HEAD_SHA256, signed, unpacked

# Start and width of the fields of the records before a member, in the directory and behind it.
LOCAL = [(4, 2), (6, 2), (8, 2), (10, 2), (12, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2)]
ENTRY = [(4, 2), *((start + 2, width) for start, width in LOCAL)]
ENTRY += [(32, 2), (34, 2), (36, 2), (38, 4), (42, 4)]
END = [(4, 2), (6, 2), (8, 2), (10, 2), (12, 4), (16, 4), (20, 2)]
NUMBERS = [0, 1, 2, 8, 9, 99, 0x0800, 0x7FFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]

PATHS = [
    "../../etc/passwd", "/etc/passwd", "C:\\x", "..\\x", "arrays/../x.bin", "arrays//x.bin", "./x",
    "", "arrays/", "x\0.bin", "ARRAYS/X.BIN", "arrays/\u03bb.bin", "x" * 5000, "symbayes.json/",
    "\u202egnp.bin", "arrays/x.bin\n",
]  # fmt: skip

MEGABYTE, BOMB_MEGABYTES = 2**20, 600
BOMB_BYTES = BOMB_MEGABYTES * MEGABYTE


def field(rng: random.Random, original: bytes) -> bytes:
    """Set one number of a record, or of a member in both places that say it."""
    headers, entries, end = _records(original)
    i, number_of_field = rng.randrange(len(headers)), rng.randrange(len(LOCAL))
    places = {
        "member": [(headers[i], LOCAL[number_of_field])],
        "directory": [(entries[i], rng.choice(ENTRY))],
        "both": [(headers[i], LOCAL[number_of_field]), (entries[i], ENTRY[number_of_field + 1])],
        "end": [(end, rng.choice(END))],
    }[rng.choice(["member", "directory", "both", "end"])]
    data = bytearray(original)
    change = rng.choice([-1, 1, None])
    number = rng.choice([*NUMBERS, rng.randrange(2**32)])
    for record, (offset, width) in places:
        start = record + offset
        if change is not None:
            number = int.from_bytes(data[start : start + width], "little") + change
        data[start : start + width] = (number % 256**width).to_bytes(width, "little")
    return bytes(data)


def directory(rng: random.Random, original: bytes) -> bytes:
    """Drop, repeat, reorder or redirect entries of the directory, whose end fits that."""
    headers, starts, end = _records(original)
    offset = starts[0]
    entries = [original[a:b] for a, b in pairwise([*starts, end])]
    count = len(entries)
    i, j = rng.randrange(count), rng.randrange(count)
    edit = rng.choice(["count", "start", "drop", "repeat", "order", "redirect", "gap"])
    if edit == "count":
        count = rng.choice([0, count - 1, count + 1, 0xFFFF])
    elif edit == "start":
        offset += rng.choice([-46, -1, 1, 46])
    elif edit == "drop":
        del entries[i]
        count -= 1
    elif edit == "repeat":
        entries.insert(j, entries[i])
        count += 1
    elif edit == "order":
        rng.shuffle(entries)
    elif edit == "redirect":
        entries[i] = entries[i][:42] + headers[j].to_bytes(4, "little") + entries[i][46:]
    content = original[: starts[0]] + b"".join(entries)
    if edit == "gap":
        content, offset = content[:offset] + b"\0" * 30 + content[offset:], offset + 30
    return content + end_of_directory(count, len(content) - offset, offset)


def end_of_directory(count: int, length: int, offset: int) -> bytes:
    """Return the last record of a zip file."""
    return struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, length, offset, 0)


def members(rng: random.Random, original: bytes) -> bytes:
    """Rename, add, drop, repeat or reorder members; their checksums stay."""
    pairs = list(unpacked(original).items())
    i = rng.randrange(len(pairs))
    edit = rng.choice(["rename", "add", "drop", "repeat", "order", "symlink", "comment"])
    if edit == "rename":
        pairs[i] = (rng.choice(PATHS), pairs[i][1])
    elif edit == "add":
        pairs.insert(i, (rng.choice(PATHS), rng.randbytes(10)))
    elif edit == "drop":
        del pairs[i]
    elif edit == "repeat":
        pairs.append((pairs[i][0], rng.choice([b"", pairs[i][1]])))
    elif edit == "order":
        rng.shuffle(pairs)
    return _packed(
        pairs,
        attributes=0o120777 << 16 if edit == "symlink" else 0,
        comment=rng.randbytes(30) if edit == "comment" else b"",
    )


def compressed(rng: random.Random, original: bytes) -> bytes:
    method = rng.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    return _packed(list(unpacked(original).items()), method)


def bomb(rng: random.Random, original: bytes) -> bytes:
    """A member that unpacks to 600 MB, under its true size or a smaller one, or in a zip in it."""
    content = unpacked(original)
    name = rng.choice([HEAD, HEAD_SHA256, *content, "bomb.zip"])
    if name == "bomb.zip":
        content[name] = _with_zeros({"inner": b""}, "inner", BOMB_BYTES)
        return _packed(list(content.items()))
    claim = rng.choice([BOMB_BYTES, BOMB_BYTES, len(content[name])])
    head = json.loads(content[HEAD])
    for row in head["arrays"]:
        if name == f"arrays/{row['name']}.bin":
            row |= {"dtype": "uint8", "shape": [BOMB_BYTES]}
    return _with_zeros(content | signed(head), name, claim)


def crowd(rng: random.Random, original: bytes) -> bytes:
    """A directory of very many members."""
    return _crowd(original, rng.choice([9_990, 20_000]))


@functools.lru_cache(2)
def _crowd(original: bytes, n: int) -> bytes:
    return _packed([*unpacked(original).items(), *((f"arrays/{i}.bin", b"") for i in range(n))])


@functools.cache
def _zeros() -> bytes:
    """Return 600 MB of zeros, deflated: one block, which stands alone, over and over."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = deflate.compress(bytes(MEGABYTE)) + deflate.flush(zlib.Z_FULL_FLUSH)
    return block * BOMB_MEGABYTES + deflate.flush()


def _with_zeros(content: dict[str, bytes], name: str, claim: int) -> bytes:
    """Pack members, one of which is replaced by zeros that are said to be `claim` bytes."""
    data = bytearray(_packed(list({**content, name: _zeros()}.items())))
    headers, entries, _ = _records(bytes(data))
    i = list(content).index(name)
    for start in (headers[i] + 8, entries[i] + 10):
        data[start : start + 2] = zipfile.ZIP_DEFLATED.to_bytes(2, "little")
    for start in (headers[i] + 22, entries[i] + 24):
        data[start : start + 4] = claim.to_bytes(4, "little")
    return bytes(data)


@functools.lru_cache(2)
def _records(original: bytes) -> tuple[list[int], list[int], int]:
    """Return where the members, their entries in the directory and its end start."""
    with zipfile.ZipFile(io.BytesIO(original)) as archive:
        infos, at = archive.infolist(), archive.start_dir
    entries = []
    for info in infos:
        entries.append(at)
        at += 46 + len(info.filename)
    return [info.header_offset for info in infos], entries, at


def _packed(
    pairs: list[tuple[str, bytes]],
    method: int = zipfile.ZIP_STORED,
    attributes: int = 0,
    comment: bytes = b"",
) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names that occur twice
        with zipfile.ZipFile(file, "w", method) as archive:
            archive.comment = comment
            for name, data in pairs:
                info = zipfile.ZipInfo(name)
                info.compress_type, info.external_attr = method, attributes
                archive.writestr(info, data)
    return file.getvalue()
