"""Damage that knows nothing of the format."""

from __future__ import annotations

import random


def flip_bits(rng: random.Random, original: bytes) -> bytes:
    data = bytearray(original)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def overwrite(rng: random.Random, original: bytes) -> bytes:
    start, end = _slice(rng, original)
    size = end - start
    filling = rng.choice([bytes(size), b"\xff" * size, b"9" * size, rng.randbytes(size)])
    return original[:start] + filling + original[end:]


def truncate(rng: random.Random, original: bytes) -> bytes:
    n = min(len(original) - 1, rng.choice([rng.randrange(len(original)), rng.randrange(60), 2**40]))
    return original[-n:] if n and rng.random() < 0.3 else original[:n]


def insert(rng: random.Random, original: bytes) -> bytes:
    at = rng.choice([0, len(original), rng.randrange(len(original))])
    return original[:at] + rng.randbytes(rng.choice([1, 2, 22, 1000])) + original[at:]


def delete(rng: random.Random, original: bytes) -> bytes:
    start, end = _slice(rng, original)
    return original[:start] + original[end:]


def swap(rng: random.Random, original: bytes) -> bytes:
    a, b, c = sorted(rng.choices(range(len(original) + 1), k=3))
    return original[:a] + original[b:c] + original[a:b] + original[c:]


def repeat(rng: random.Random, original: bytes) -> bytes:
    start, end = _slice(rng, original)
    return original[:end] + original[start:end] + original[end:]


def _slice(rng: random.Random, original: bytes) -> tuple[int, int]:
    start = rng.randrange(len(original))
    return start, min(len(original), start + rng.choice([1, 4, 30, 300, len(original)]))
