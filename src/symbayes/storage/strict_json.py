"""JSON that comes back exactly as it went in, and that costs little to refuse."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

MOST_BYTES = 4_000_000
# Of lists and dicts, which in memory are far larger than their two brackets.
_MOST_CONTAINERS, _DEEPEST = 100_000, 50
_MOST_DIGITS = 40


def to_json(content: dict[str, Any]) -> bytes:
    """Return what `from_json` turns into the same content again, or raise a ValueError."""
    try:
        text = json.dumps(content, allow_nan=False).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"it cannot be written as JSON ({error})") from None
    if from_json(text) != content:
        raise ValueError("JSON has only lists, no tuples, and only dicts whose keys are str")
    return text


def from_json(text: bytes) -> Any:
    """Return the content, or raise a ValueError that says what is wrong."""
    if len(text) > MOST_BYTES:
        raise ValueError(f"it has {len(text)} bytes, more than the {MOST_BYTES} it may have")
    _check_brackets(text)
    return json.loads(
        text.decode("ascii"),
        object_pairs_hook=_without_repeats,
        parse_int=_integer,
        parse_float=_finite,
        parse_constant=_finite,
    )


def _check_brackets(text: bytes) -> None:
    """Bound what parsing takes, before it: it calls itself, which may end in a crash."""
    # Backslashes occur in strings only; without escapes, each quote opens or closes a string.
    codes = np.frombuffer(text.replace(rb"\\", b"").replace(rb"\"", b""), np.uint8)
    outside = np.cumsum(codes == ord('"'), dtype=np.int32) % 2 == 0
    opening = np.isin(codes, list(b"[{")) & outside
    closing = np.isin(codes, list(b"]}")) & outside
    if np.count_nonzero(opening) > _MOST_CONTAINERS:
        raise ValueError(f"it has more than {_MOST_CONTAINERS} lists and dicts")
    depth = np.cumsum(opening, dtype=np.int32) - np.cumsum(closing, dtype=np.int32)
    if depth.max(initial=0) > _DEEPEST:
        raise ValueError(f"it is nested more than {_DEEPEST} deep")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a key occurs twice")
    return content


def _integer(digits: str) -> int:
    # The time to convert them grows with the square of their number.
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number has more than {_MOST_DIGITS} digits")
    return int(digits)


def _finite(digits: str) -> float:
    """Refuse NaN and Infinity, which JSON does not have, and what is too large for a float."""
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number is not finite")
    return number
