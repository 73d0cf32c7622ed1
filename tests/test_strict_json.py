"""JSON comes back as it went in; what is large, deep or ambiguous is refused."""

import sys

import numpy as np
import pytest

from symbayes.storage.strict_json import MOST_BYTES, from_json, to_json

NAMES = ["", "a b", "<script>", "x^2", "λ", "$x_1$", "\0", "\ud800", '"[\\', "\\", '\\"', "[" * 99]


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"names": NAMES},
        dict.fromkeys(NAMES, 0),
        {"x": [None, True, False, 0, -1, 2**128, [], {}]},
        {"x": [0.1, -0.0, 5e-324, 1.7976931348623157e308, 2 / 3]},
    ],
    ids=["empty", "names", "keys", "kinds", "floats"],
)
def test_content_comes_back(content):
    again = from_json(to_json(content))
    assert again == content
    assert repr(again) == repr(content)


def test_numbers_of_numpy_that_are_floats_may_be_saved():
    assert from_json(to_json({"x": np.float64(0.1)})) == {"x": 0.1}


BAD_CONTENT = {
    "nan": ({"x": float("nan")}, "Out of range"),
    "inf": ({"x": [float("inf")]}, "Out of range"),
    "tuple": ({"x": (1, 2)}, "no tuples"),
    "key": ({1: 2}, "keys are str"),
    "set": ({"x": {1}}, "type set is not"),
    "bytes": ({"x": b"1"}, "type bytes is not"),
    "integer of NumPy": ({"x": np.int64(1)}, "type int64 is not"),
    "array": ({"x": np.ones(2)}, "type ndarray is not"),
    "digits": ({"x": 10**40}, "more than 40 digits"),
    "long": ({"x": "a" * MOST_BYTES}, "more than the 4000000"),
    "many": ({"x": [[]] * 100_000}, "more than 100000 lists"),
}


@pytest.mark.parametrize("case", BAD_CONTENT)
def test_what_would_not_come_back_is_not_saved(case):
    content, says = BAD_CONTENT[case]
    with pytest.raises(ValueError, match=says):
        to_json(content)


def nested(depth):
    content = []
    for _ in range(depth - 1):
        content = [content]
    return {"x": content}


def test_depth():
    assert from_json(to_json(nested(49))) == nested(49)
    with pytest.raises(ValueError, match="nested more than 50 deep"):
        to_json(nested(50))
    with pytest.raises(ValueError, match=r"cannot be written as JSON .*recursion"):
        to_json(nested(20_000))


BAD_TEXT = {
    "deep": (b"[" * 100_000, "nested more than 50"),
    "deep behind a string": (b'["\\\\", "\\"", ' + b"[" * 50, "nested more than 50"),
    "nan": (b'{"x": NaN}', "not finite"),
    "infinity": (b'{"x": -Infinity}', "not finite"),
    "too large": (b'{"x": 1e999}', "not finite"),
    "key twice": (b'{"x": 1, "y": {"a": 1, "a": 1}}', "a key occurs twice"),
    "digits": (b"9" * 41, "more than 40 digits"),
    "many": (b"[" + b"{}," * 100_000 + b"0]", "more than 100000 lists"),
    "long": (b" " * MOST_BYTES + b"0", "more than the 4000000"),
    "not ASCII": ("{'λ'}".encode(), "ascii"),
    "utf-16": ("{}".encode("utf-16"), "ascii"),
    "torn": (b'{"x": "', "Unterminated"),
    "more": (b"{} {}", "Extra data"),
    "nothing": (b"", "Expecting value"),
}


@pytest.mark.parametrize("case", BAD_TEXT)
def test_bad_text(case):
    text, says = BAD_TEXT[case]
    with pytest.raises(ValueError, match=says):
        from_json(text)


def test_depth_does_not_rest_on_the_limit_of_recursion():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10**8)
    try:
        with pytest.raises(ValueError, match="nested more than 50"):
            from_json(b"[" * 100_000)
    finally:
        sys.setrecursionlimit(limit)
