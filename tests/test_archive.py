"""Saved content comes back bit for bit; any other file gives a clear error, and only that."""

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from contextlib import suppress

import numpy as np
import pytest

from symbayes.storage import archive
from symbayes.storage.archive import ModelFileError, damaged, read_archive, write_archive

from .mutations import mutations
from .mutations.content import HEAD, HEAD_SHA256, saved, signed, unpacked

NUMBERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
RNG = np.random.default_rng(7)
DOCUMENT = {
    "names": ["", "a b", "<script>", "λ", "../../x", "\ud800"],
    "numbers": [1, -2, 2**64, 0.1, 5e-324, -0.0],
    "more": {"none": None, "true": True, "list": [[], {}]},
}
ARRAYS = {
    "x": RNG.normal(size=(20, 3)),
    "chains/0/op": np.arange(7, dtype=np.int32),
    "chains/1/op": np.arange(5, dtype=np.int32),
    "flags": np.array([True, False, True]),
    "nothing": np.empty((0, 3), np.float32),
    "one-number": np.array(np.inf),
}


def save(path, document=DOCUMENT, arrays=ARRAYS, kind="model", version=1):
    write_archive(path, kind, version, document, arrays)
    return path


def load(path):
    return read_archive(path, "model", 1)


def identical(a, b):
    """Bit for bit, so that nan is nan and 0.0 is not -0.0."""
    return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def same(loaded):
    document, arrays = loaded
    return (
        repr(document) == repr(DOCUMENT)
        and list(arrays) == list(ARRAYS)
        and all(identical(array, ARRAYS[name]) for name, array in arrays.items())
    )


@pytest.fixture
def path(tmp_path):
    return save(tmp_path / "a.symbayes")


@pytest.fixture
def original(path):
    return path.read_bytes()


def refused(path, says):
    with pytest.raises(ModelFileError, match=says) as info:
        load(path)
    assert str(info.value).startswith(repr(str(path)))


# Saving and loading.


def test_content_comes_back(path):
    assert same(load(path))
    assert same(load(str(path)))


@pytest.mark.parametrize("dtype", ["bool", *NUMBERS, "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (5,), (2, 0, 3), (2, 3, 4), (1,) * 32])
def test_types_and_shapes(tmp_path, dtype, shape):
    rng = np.random.default_rng(3)
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    data = (rng.integers(0, 2, size) if dtype == "bool" else rng.integers(0, 256, size)).tolist()
    array = np.frombuffer(bytes(data), dtype).reshape(shape)
    _, arrays = load(save(tmp_path / "a", {}, {"x": array}))
    assert identical(arrays["x"], array)
    assert arrays["x"].flags.writeable
    assert arrays["x"].flags.c_contiguous
    assert arrays["x"].flags.aligned


def test_order_and_byte_order_do_not_matter(tmp_path):
    array = np.arange(12.0).reshape(3, 4)
    for other in (
        np.asfortranarray(array),
        array.astype(">f8"),
        np.arange(24.0)[::2].reshape(3, 4),
    ):
        before = other.copy()
        _, arrays = load(save(tmp_path / "a", {}, {"x": other}))
        np.testing.assert_array_equal(arrays["x"], before)
        assert arrays["x"].dtype.byteorder == "="
        np.testing.assert_array_equal(other, before)


def test_any_zip_tool_opens_it(path):
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        assert file.namelist() == [HEAD, HEAD_SHA256, *(f"arrays/{name}.bin" for name in ARRAYS)]
        assert json.loads(file.read(HEAD))["document"] == DOCUMENT
        np.testing.assert_array_equal(
            np.frombuffer(file.read("arrays/x.bin"), "<f8"), ARRAYS["x"].ravel()
        )


def test_the_same_content_gives_the_same_file_everywhere(tmp_path, monkeypatch):
    """Whatever the platform, the Python and the NumPy: so what one saves, another loads."""
    monkeypatch.setattr(archive, "__version__", "0")
    arrays = {"x": np.arange(3.0), "b": np.array([True])}
    data = save(tmp_path / "a", {"a": [1, 0.1, "λ"]}, arrays).read_bytes()
    assert hashlib.sha256(data).hexdigest() == GOLDEN
    assert save(tmp_path / "b", {"a": [1, 0.1, "λ"]}, arrays).read_bytes() == data


GOLDEN = "cea6ae40e6fe6dde22ee4cd3be171017cfe30945ea725994cd727e0d5b34863b"


@pytest.mark.slow
def test_another_process_reads_it(path):
    command = f"""
from symbayes.archive import read_archive
document, arrays = read_archive({str(path)!r}, "model", 1)
print(document == {DOCUMENT!r}, arrays["x"].tobytes().hex())
"""
    result = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["True", ARRAYS["x"].tobytes().hex()]


def test_an_older_version_is_read(tmp_path):
    save(tmp_path / "a", version=2)
    assert same(read_archive(tmp_path / "a", "model", 3))


# What cannot be saved.

NODE = np.dtype([("op", np.int32), ("a", np.float64)], align=True)
BAD_ARRAYS = {
    "object": ({"x": np.array([None])}, TypeError, "x is of object"),
    "structured": ({"x": np.zeros(2, NODE)}, TypeError, "x is of .*op"),
    "complex": ({"x": np.array([1j])}, TypeError, "x is of complex128"),
    "text": ({"x": np.array(["a"])}, TypeError, "x is of <U1"),
    "dates": ({"x": np.array(["2020"], "M8[D]")}, TypeError, "x is of datetime64"),
    "half": ({"x": np.ones(2, np.float16)}, TypeError, "x is of float16"),
    "list": ({"x": [1.0]}, TypeError, "x must be a NumPy array, not list"),
    "masked": ({"x": np.ma.ones(2)}, TypeError, "x must be a NumPy array, not MaskedArray"),
    "no name": ({"": np.ones(2)}, ValueError, "'' cannot be the name"),
    "capital": ({"X": np.ones(2)}, ValueError, "'X' cannot be the name"),
    "up": ({"../x": np.ones(2)}, ValueError, "'../x' cannot be the name"),
    "root": ({"/x": np.ones(2)}, ValueError, "'/x' cannot be the name"),
    "line": ({"x\n": np.ones(2)}, ValueError, "cannot be the name"),
    "long": ({"x" * 110: np.ones(2)}, ValueError, "cannot be the name"),
    "number": ({3: np.ones(2)}, ValueError, "3 cannot be the name"),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_arrays_that_cannot_be_saved(path, original, case):
    arrays, error, says = BAD_ARRAYS[case]
    with pytest.raises(error, match=says):
        save(path, {}, arrays)
    assert path.read_bytes() == original


@pytest.mark.parametrize(
    ("changed", "error", "says"),
    [
        ({"document": {"x": float("nan")}}, ValueError, "document cannot be saved: .*Out of range"),
        ({"document": {"x": (1,)}}, ValueError, "document cannot be saved: .*no tuples"),
        ({"document": [1]}, TypeError, "document a dict"),
        ({"kind": 3}, TypeError, "kind must be a str"),
        ({"version": 0}, ValueError, "version must be an integer from 1 up, not 0"),
        ({"version": True}, ValueError, "version must be an integer from 1 up, not True"),
    ],
)
def test_documents_that_cannot_be_saved(path, original, changed, error, says):
    with pytest.raises(error, match=says):
        save(path, **changed)
    assert path.read_bytes() == original


@pytest.mark.parametrize(("limit", "value"), [("MOST_BYTES", 3000), ("MOST_MEMBERS", 7)])
def test_too_much_to_save(path, original, monkeypatch, limit, value):
    monkeypatch.setattr(archive, limit, value)
    with pytest.raises(ValueError, match=r"would have .* bytes in 8 members, .*; save less"):
        save(path)
    assert path.read_bytes() == original


@pytest.mark.parametrize("bad", [3, None, b"a", ["a"]])
def test_paths_that_are_none(bad):
    for function in (load, save):
        with pytest.raises(TypeError, match=r"path must be a str or a pathlib.Path, not "):
            function(bad)


# Files that cannot be opened.


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No such file.*missing'"):
        load(tmp_path / "missing")
    (tmp_path / "link").symlink_to(tmp_path / "missing")
    with pytest.raises(FileNotFoundError, match=r"No such file.*link'"):
        load(tmp_path / "link")


def test_a_folder(tmp_path):
    with pytest.raises(IsADirectoryError, match="this is a folder, not a file"):
        load(tmp_path)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "is a device or a pipe")
    refused("/dev/zero", "is a device or a pipe")


def test_a_link_is_followed(tmp_path, path):
    (tmp_path / "link").symlink_to(path)
    assert same(load(tmp_path / "link"))


# Files that are something else.


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty; use a backup or make it anew"),
        (b"P", "is not a symbayes file; choose one that symbayes saved"),
        (b"\x80\x04\x95 a pickle", "is not a symbayes file"),
        (b"x" * 5000, "is not a symbayes file"),
    ],
)
def test_files_of_another_kind(path, data, says):
    path.write_bytes(data)
    refused(path, says)


def test_a_zip_of_numpy(path):
    with path.open("wb") as file:
        np.savez(file, x=np.ones(3))
    refused(path, "is not a symbayes file")


def test_names_with_anything_in_them(tmp_path):
    path = tmp_path / "\n\x1b[31m.symbayes"
    path.write_bytes(b"x")
    refused(path, "is not a symbayes file")


def test_a_newer_version(path):
    save(path, version=3)
    refused(
        path, r"newer version of symbayes \('.*', file format 3; this one reads up to 1\); upgrade"
    )


def test_a_newer_version_may_look_different(path, original):
    content = unpacked(original)
    head = {"format": "symbayes", "kind": "model", "version": 2, "tensors": [], "x": {}}
    path.write_bytes(saved(content | signed(head) | {"more": b""}))
    refused(path, "newer version of symbayes .None, file format 2; ")


def test_another_kind(path):
    save(path, kind="trace")
    refused(path, "holds 'trace', not 'model'; choose another file")


def test_a_large_file(path, original):
    with pytest.raises(ModelFileError, match=f"has {len(original)} bytes, more than the 1000 that"):
        read_archive(path, "model", 1, max_bytes=1000)
    assert same(read_archive(path, "model", 1, max_bytes=len(original)))


def test_errors_of_callers_have_the_same_form(path):
    assert str(damaged(path, "x is missing")) == (
        f"{str(path)!r} is damaged: x is missing; use a backup or make it anew"
    )


# Files that are damaged or altered.

every_byte = pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.slow)])


@every_byte
def test_every_truncation_is_noticed(path, original, step):
    for n in range(1, len(original), step):
        path.write_bytes(original[:n])
        refused(path, "is damaged: its end is missing|is not a symbayes file|is damaged: bytes are")


@every_byte
def test_every_changed_byte_is_noticed_or_does_not_matter(path, original, step):
    harmless = 0
    for i in range(0, len(original), step):
        path.write_bytes(original[:i] + bytes([original[i] ^ (1 << i % 8)]) + original[i + 1 :])
        with suppress(ModelFileError):
            assert same(load(path))
            harmless += 1
    # The directory has ten bytes a member that nothing depends on, such as rights.
    assert harmless <= 10 * (len(ARRAYS) + 2)


def with_head(content, **changed):
    return content | signed({**json.loads(content[HEAD]), **changed})


def with_row(content, **changed):
    rows = json.loads(content[HEAD])["arrays"]
    rows[0] |= changed
    return with_head(content, arrays=rows)


def without(content, name):
    return {key: data for key, data in content.items() if key != name}


FLAGS_SHA256 = hashlib.sha256(b"\x01\x02\x00").hexdigest()
ALTERED = {
    "head": (lambda c: c | {HEAD: c[HEAD] + b" "}, "symbayes.json has changed"),
    "checksum": (lambda c: c | {HEAD_SHA256: b"0" * 64}, "symbayes.json has changed"),
    "short checksum": (lambda c: c | {HEAD_SHA256: b""}, "symbayes.json has changed"),
    "long checksum": (lambda c: c | {HEAD_SHA256: b"0" * 65}, "sha256 has 65 bytes, more than"),
    "no checksum": (lambda c: without(c, HEAD_SHA256), "or its checksum is missing"),
    "array": (lambda c: c | {"arrays/x.bin": bytes(480)}, "arrays/x.bin has changed"),
    "no array": (lambda c: without(c, "arrays/x.bin"), "not have the arrays that it lists"),
    "more": (lambda c: c | {"arrays/y.bin": b""}, "not have the arrays that it lists"),
    "path": (lambda c: c | {"../../y": b""}, "not have the arrays that it lists"),
    "no JSON": (lambda c: c | signed(b"{"), "symbayes.json cannot be read .Expecting prop"),
    "deep": (lambda c: c | signed(b"[" * 10**5), "cannot be read .it is nested more than 50"),
    "list": (lambda c: c | signed([]), "is not a symbayes file"),
    "format": (lambda c: with_head(c, format="x"), "is not a symbayes file"),
    "kind": (lambda c: with_head(c, kind=["x"] * 10**5), "holds .'x', .*, not 'model'"),
    "version": (lambda c: with_head(c, version="1"), "its version is not a number"),
    "true": (lambda c: with_head(c, version=True), "its version is not a number"),
    "negative": (lambda c: with_head(c, version=-1), "its version is not a number"),
    "key": (lambda c: with_head(c, more=1), "does not have the expected entries"),
    "document": (lambda c: with_head(c, document=[]), "does not have the expected entries"),
    "no list": (lambda c: with_head(c, arrays={}), "does not have the expected entries"),
    "row": (lambda c: with_head(c, arrays=[1]), "list of arrays does not have the expected"),
    "row key": (lambda c: with_row(c, more=1), "list of arrays does not have the expected"),
    "name": (lambda c: with_row(c, name="../x"), "an array has the name '../x'"),
    "no name": (lambda c: with_row(c, name=[]), r"an array has the name \[\]"),
    "twice": (lambda c: with_row(c, name="flags"), "not have the arrays that it lists"),
    "dtype": (lambda c: with_row(c, dtype="object"), "'x' has the type 'object'"),
    "byte order": (lambda c: with_row(c, dtype=">f8"), "'x' has the type '>f8'"),
    "no dtype": (lambda c: with_row(c, dtype=["float64"]), "'x' has the type"),
    "shape": (lambda c: with_row(c, shape=[21, 3]), "has 480 bytes, not the 504 of its shape"),
    "huge": (lambda c: with_row(c, shape=[2**40, 2**40]), "'x' has the shape"),
    "large": (lambda c: with_row(c, shape=[2**40]), "480 bytes, not the 8796093022208 of"),
    "huge and empty": (lambda c: with_row(c, shape=[0, 2**60]), "'x' has the shape"),
    "below 0": (lambda c: with_row(c, shape=[-20, -3]), "'x' has the shape"),
    "fraction": (lambda c: with_row(c, shape=[20.0, 3]), "'x' has the shape"),
    "true size": (lambda c: with_row(c, shape=[True, 60]), "'x' has the shape"),
    "number": (lambda c: with_row(c, shape=60), "'x' has the shape 60"),
    "dimensions": (lambda c: with_row(c, shape=[60] + [1] * 32), "'x' has the shape"),
    "sha256": (lambda c: with_row(c, sha256=None), "arrays/x.bin has changed"),
    "bool": (
        lambda c: with_row(c, dtype="bool", shape=[480]),
        "arrays/x.bin is not an array of true and false",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ALTERED)
def test_altered_files(path, original, case):
    alter, says = ALTERED[case]
    path.write_bytes(saved(alter(unpacked(original))))
    refused(path, says)


def test_nothing_is_unpacked(tmp_path, path, original):
    for data in mutations(original, 51, seed=5):
        path.write_bytes(data)
        with suppress(ModelFileError):
            load(path)
        assert list(tmp_path.iterdir()) == [path]
