"""Files in order whose JSON or arrays are not, some with checksums that fit."""

from __future__ import annotations

import copy
import functools
import hashlib
import io
import json
import math
import random
import zipfile
from collections.abc import Callable
from typing import Any

from symbayes.storage.archive import write_zip

from . import raw

HEAD, HEAD_SHA256 = "symbayes.json", "symbayes.json.sha256"

VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 2, 7, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**30,
    0.5, -0.0, 1e308, 5e-324, "", "0", "x", "nan", "-Infinity", "\0", "\ud800", "\u202e",
    "<script>", "a b", "sin", "{0}", "%s", "../../etc/passwd", "object", "|O8", "<U10",
    "complex128", "float16", ">f8", "int64", "x" * 10_000, [], [0], [-1], [1.0], [2**40, 2**40],
    [0, 2**62], [1] * 40, ["x"] * 1000, {}, {"": 0}, {"__class__": "x"}, [[[[[[]]]]]], "symbayes",
]  # fmt: skip

SAME_SIZE = [
    ["bool", "int8", "uint8"],
    ["int16", "uint16"],
    ["int32", "uint32", "float32"],
    ["int64", "uint64", "float64"],
]
# As bytes: inf, nan and integers that are no index, no opcode, no count.
EXTREMES = [
    bytes.fromhex("000000000000f07f"),
    bytes.fromhex("000000000000f87f"),
    *(n.to_bytes(8, "little", signed=True) for n in (-1, 0, 2, 200, 2**31 - 1, 2**62, -(2**63))),
    *(n.to_bytes(4, "little", signed=True) * 2 for n in (1, 200, 2**31 - 1, -(2**31))),
    b"\x01" * 8,
]


def unpacked(original: bytes) -> dict[str, bytes]:
    """Return the members of a file."""
    return dict(_unpacked(original))


@functools.lru_cache(2)
def _unpacked(original: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(original)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def saved(content: dict[str, bytes]) -> bytes:
    """Return the file that the library would have written."""
    file = io.BytesIO()
    write_zip(file, content)
    return file.getvalue()


def signed(head: Any) -> dict[str, bytes]:
    """Return the head of a file with the checksum that fits it."""
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return {HEAD: text, HEAD_SHA256: hashlib.sha256(text).hexdigest().encode()}


def head_values(rng: random.Random, original: bytes) -> bytes:
    """Edit the JSON; its checksum stays."""
    content = unpacked(original)
    head = json.loads(content[HEAD])
    _edit(rng, head)
    return saved({**content, HEAD: json.dumps(head).encode()})


def forged_values(rng: random.Random, original: bytes) -> bytes:
    """Edit the JSON, most often its document, and write the checksum anew."""
    content = unpacked(original)
    head = json.loads(content[HEAD])
    parts = [head["document"], head["document"], head["arrays"], head]
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        _edit(rng, rng.choice(parts))
    return saved(content | signed(head))


def _edit(rng: random.Random, node: dict | list) -> None:
    """Change one value somewhere below a node, in place."""
    while node:
        key: Any = rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
        child = node[key]
        if isinstance(child, dict | list) and child and rng.random() < 0.85:
            node = child
            continue
        how = rng.choice(["replace", "replace", "near", "delete", "add"])
        if how == "replace":
            node[key] = copy.deepcopy(rng.choice(VALUES))
        elif how == "near":
            node[key] = _near(rng, child)
        elif how == "delete":
            del node[key]
        elif isinstance(node, dict):
            node[rng.choice(["", "x", "__class__", "version"])] = rng.choice(VALUES)
        else:
            node.insert(key, copy.deepcopy(child))
        return


def _near(rng: random.Random, value: Any) -> Any:
    """Return another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, -value, 2 * value, value * 10**9])
    if isinstance(value, float):
        return rng.choice([-value, value * 1e-300, value + 1, 2 * value])
    if isinstance(value, str):
        return rng.choice([value + "x", value[:-1], value.upper(), value + "\n", value * 3])
    if isinstance(value, list):
        return value[:-1] if rng.random() < 0.5 else value * 2
    return {}


def forged_text(rng: random.Random, original: bytes) -> bytes:
    """Give the JSON a form that a parser may stumble over, and write the checksum anew."""
    content = unpacked(original)
    text = rng.choice(TEXTS)(content[HEAD])
    return saved(content | signed(text))


def _in_document(value: bytes) -> Callable[[bytes], bytes]:
    return lambda head: head.replace(b'"document": {', b'"document": {"x": ' + value + b", ", 1)


TEXTS: list[Callable[[bytes], bytes]] = [
    lambda head: b"",
    lambda head: b"null",
    lambda head: b"[" * 200_000,
    lambda head: b"[" * 200_000 + b"]" * 200_000,
    lambda head: b'{"a":' * 200_000,
    lambda head: b"\xef\xbb\xbf" + head,
    lambda head: head.decode().encode("utf-16"),
    lambda head: head + b"\0",
    lambda head: head + head,
    lambda head: head[:-1],
    lambda head: head.replace(b"{", b"[", 1),
    lambda head: head.replace(b'"', b"'"),
    lambda head: head.replace(b'"kind"', b'"kind": "x", "kind"', 1),
    lambda head: head.replace(b": ", b":\xc3\x28", 1),
    lambda head: b" " * 3_900_000 + head,
    lambda head: b" " * 4_000_001 + head,
    *map(
        _in_document,
        [
            b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"1" * 5000, b"9" * 1_000_000,
            b"0." + b"1" * 1_000_000, b"1e-99999999", b'"\\ud800"', b'"\\u0000"', b'"\n"', b'"\\x"',
            b"[" * 60 + b"]" * 60, b"[" * 45 + b"]" * 45, b'"' + b"[" * 1000 + b'"',
            b'"' + b'\\"[' * 1000 + b'"', b"tru", b"01", b"+1", b"{1: 2}", b"[1,]",
            b'{"a": 1, "a": 1}', b"[" + b"[]," * 1_200_000 + b"0]",
            b"[" + b'"",' * 1_200_000 + b"0]", b"[" + b"1.5," * 900_000 + b"0]",
            b"[" + (b"[" * 40 + b"]" * 40 + b",") * 2000 + b"0]",
            b"{" + b",".join(b'"%d":{}' % i for i in range(90_000)) + b"}",
        ],
    ),
]  # fmt: skip


def array_bytes(rng: random.Random, original: bytes) -> bytes:
    """Damage an array; its checksum stays."""
    content = unpacked(original)
    name = rng.choice([name for name, data in content.items() if name.endswith(".bin") and data])
    damage = rng.choice([raw.flip_bits, raw.overwrite, raw.truncate, raw.repeat])
    return saved({**content, name: damage(rng, content[name])})


def forged_arrays(rng: random.Random, original: bytes) -> bytes:
    """Alter arrays together with all that is said about them."""
    content = unpacked(original)
    head = json.loads(content[HEAD])
    for _ in range(rng.choice([1, 1, 3])):
        row = rng.choice(head["arrays"])
        name = f"arrays/{row['name']}.bin"
        content[name] = _altered(rng, row, content[name])
        row["sha256"] = hashlib.sha256(content[name]).hexdigest()
    return saved(content | signed(head))


def _altered(rng: random.Random, row: dict[str, Any], data: bytes) -> bytes:
    """Return other bytes for an array, and describe them in its row."""
    shape = row["shape"]
    how = rng.choice(["value", "value", "bits", "dtype", "shape", "shorter", "longer", "empty"])
    if how == "value":
        at = 8 * rng.randrange(len(data) // 8 + 1)
        return (data[:at] + rng.choice(EXTREMES) + data[at + 8 :])[: len(data)]
    if how == "bits" and data:
        return raw.flip_bits(rng, data)
    if how == "dtype":
        row["dtype"] = rng.choice(next(group for group in SAME_SIZE if row["dtype"] in group))
    if how == "shape":
        n = math.prod(shape)
        row["shape"] = rng.choice([[n], [1, n], [n, 1], shape[::-1]])
    if how == "empty" and shape:
        shape[rng.randrange(len(shape))] = 0
        return b""
    if how in ("shorter", "longer") and shape and shape[0]:
        size = len(data) // shape[0]
        shape[0] += 1 if how == "longer" else -1
        return data + data[:size] if how == "longer" else data[: len(data) - size]
    return data
