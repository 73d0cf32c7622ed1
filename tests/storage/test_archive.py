"""Saved content comes back bit for bit; any other file gives a clear error, and only that."""

import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from contextlib import suppress

import numpy as np
import pytest

from symbayes.storage import archive
from symbayes.storage.archive import MOST_JSON_BYTES, ModelFileError, read_archive, write_archive

from .mutations import mutations
from .mutations.content import HEAD, HEAD_SHA256, saved, signed, unpacked
from .mutations.zipped import end_of_directory

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


@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 0, 3), (2, 3, 4), (1,) * 32])
def test_types_and_shapes(tmp_path, shape):
    for dtype in ("bool", *NUMBERS, "float32", "float64"):
        check_type_and_shape(tmp_path, dtype, shape)


def check_type_and_shape(tmp_path, dtype, shape):
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
from symbayes.storage.archive import read_archive
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

DEEP = json.loads("[" * 60 + "]" * 60)
BAD_DOCUMENTS = {
    "nan": ({"x": float("nan")}, "Out of range"),
    "tuple": ({"x": (1,)}, "a tuple, a key that is no str"),
    "key": ({"x": {1: 2}}, "a tuple, a key that is no str"),
    "integer of NumPy": ({"x": np.int64(1)}, "type int64 is not JSON"),
    "deep": ({"x": DEEP}, "nested more than 50 deep"),
    "long": ({"x": "a" * MOST_JSON_BYTES}, "more than 4000000"),
}


@pytest.mark.parametrize("case", BAD_DOCUMENTS)
def test_documents_that_would_not_come_back_are_not_saved(path, original, case):
    document, says = BAD_DOCUMENTS[case]
    with pytest.raises(ValueError, match=f"the document .*{says}"):
        save(path, document)
    assert path.read_bytes() == original


@pytest.mark.parametrize(("limit", "value"), [("MOST_BYTES", 2000), ("MOST_MEMBERS", 7)])
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
        (b"", "is empty; restore a backup or fit again"),
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


# Files that are damaged or altered.

every_byte = pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.slow)])


@every_byte
def test_every_truncation_is_noticed(path, original, step):
    for n in range(1, len(original), step):
        path.write_bytes(original[:n])
        refused(path, "is damaged: its end is missing|is not a symbayes file|is damaged: it is cut")


@every_byte
def test_every_changed_byte_is_noticed_or_does_not_matter(path, original, step):
    harmless = 0
    for i in range(0, len(original), step):
        path.write_bytes(original[:i] + bytes([original[i] ^ (1 << i % 8)]) + original[i + 1 :])
        with suppress(ModelFileError):
            assert same(load(path))
            harmless += 1
    # Nothing depends on dates, rights and versions, nor on sizes and CRC before a member, since the
    # directory has them too; nor on numbers of disks at the end.
    assert harmless <= 40 * (len(ARRAYS) + 2) + 8


def with_head(content, **changed):
    return content | signed({**json.loads(content[HEAD]), **changed})


def with_row(content, **changed):
    rows = json.loads(content[HEAD])["arrays"]
    rows[0] |= changed
    return with_head(content, arrays=rows)


def without(content, name):
    return {key: data for key, data in content.items() if key != name}


ENTRY = r"the list of its arrays has the entry"
ALTERED = {
    "head": (lambda c: c | {HEAD: c[HEAD] + b" "}, "symbayes.json has changed"),
    "long checksum": (lambda c: c | {HEAD_SHA256: b"0" * 65}, "symbayes.json has changed"),
    "no checksum": (lambda c: without(c, HEAD_SHA256), "or its checksum is missing"),
    "array": (lambda c: c | {"arrays/x.bin": bytes(480)}, "array 'x' has changed"),
    "no array": (lambda c: without(c, "arrays/x.bin"), "not have the arrays that it lists"),
    "more": (lambda c: c | {"arrays/y.bin": b""}, "not have the arrays that it lists"),
    "path": (lambda c: c | {"../../y": b""}, "not have the arrays that it lists"),
    "no JSON": (lambda c: c | signed(b"{"), "symbayes.json cannot be read .Expecting prop"),
    "deep": (lambda c: c | signed(b"[" * 10**5), "cannot be read .it is nested more than 50"),
    "deep behind a string": (
        lambda c: c | signed(b'["\\\\", "\\"", ' + b"[" * 50), "it is nested more than 50"
    ),
    "long": (lambda c: c | signed(b" " * 4_000_001), "has 4000001 bytes, more than 4000000"),
    "not ASCII": (lambda c: c | signed("{'λ'}".encode()), "symbayes.json cannot be read .*ascii"),
    "digits": (lambda c: c | signed(b"9" * 5000), "symbayes.json cannot be read .*digits"),
    "list": (lambda c: c | signed([]), "is not a symbayes file"),
    "format": (lambda c: with_head(c, format="x"), "is not a symbayes file"),
    "kind": (lambda c: with_head(c, kind=["x"] * 10**5), "holds .'x', .*, not 'model'"),
    "version": (lambda c: with_head(c, version="1"), "its version is not a number"),
    "true": (lambda c: with_head(c, version=True), "its version is not a number"),
    "key": (lambda c: with_head(c, more=1), "does not have the expected entries"),
    "document": (lambda c: with_head(c, document=[]), "does not have the expected entries"),
    "row": (lambda c: with_head(c, arrays=[1]), ENTRY),
    "row key": (lambda c: with_row(c, more=1), ENTRY),
    "name": (lambda c: with_row(c, name="../x"), ENTRY),
    "twice": (lambda c: with_row(c, name="flags"), "not have the arrays that it lists"),
    "dtype": (lambda c: with_row(c, dtype="object"), ENTRY),
    "no dtype": (lambda c: with_row(c, dtype=["float64"]), ENTRY),
    "shape": (lambda c: with_row(c, shape=[21, 3]), "has 480 bytes, not the 504 of its shape"),
    "huge": (lambda c: with_row(c, shape=[2**40, 2**40]), "480 bytes, not the 96714065"),
    "huge and empty": (
        lambda c: with_row(c | {"arrays/x.bin": b""}, shape=[0, 2**62, 2**62]), "cannot be read"
    ),
    "below 0": (lambda c: with_row(c, shape=[-20, -3]), ENTRY),
    "fraction": (lambda c: with_row(c, shape=[20.0, 3]), ENTRY),
    "dimensions": (lambda c: with_row(c, shape=[60] + [1] * 99), "cannot be read"),
    "sha256": (lambda c: with_row(c, sha256=None), "array 'x' has changed"),
    "bool": (lambda c: with_row(c, dtype="bool", shape=[480]), "'x' is not of true and false"),
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


def test_depth_does_not_rest_on_the_limit_of_recursion(path, original):
    path.write_bytes(saved(unpacked(original) | signed(b"[" * 100_000)))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10**8)
    try:
        refused(path, "nested more than 50")
    finally:
        sys.setrecursionlimit(limit)


# Zip files that are not as they are written here.


def zip_of(content, method=zipfile.ZIP_STORED, comment=b"", **attributes):
    """A zip as other tools write it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as other:
        other.comment = comment
        for name, data in content.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            for attribute, value in attributes.items():
                setattr(info, attribute, value)
            other.writestr(info, data)
    return file.getvalue()


def with_directory(data, edit, count=0):
    """A zip whose directory was edited, and whose end fits that."""
    start = zipfile.ZipFile(io.BytesIO(data)).start_dir
    entries = edit(data[start:-22])
    return data[:start] + entries + end_of_directory(8 + count, len(entries), start)


FIRST = 46 + len(HEAD)
MISMATCH = "its directory does not match its content"
ZIPS = {
    "end": (lambda d: d[:-1], "its end is missing"),
    "tiny": (lambda d: d[:50], "its end is missing"),
    "comment of the file": (lambda d: zip_of(unpacked(d), comment=b"x"), "its end is missing"),
    "between": (lambda d: d[:500] + b"x" + d[500:], "cannot be read|does not match its content"),
    "behind": (lambda d: d + b"x", "its end is missing"),
    "large directory": (lambda d: with_directory(d, lambda e: e + bytes(5000)), "is too large"),
    "more entries": (lambda d: with_directory(d, lambda e: e, 9999), "does not match|too large"),
    "fewer entries": (lambda d: with_directory(d, lambda e: e[FIRST:], -1), MISMATCH),
    "no entries": (lambda d: with_directory(d, lambda e: b"", -8), MISMATCH),
    "overlap": (lambda d: with_directory(d, lambda e: e[:FIRST] + e, 1), MISMATCH),
    "mark": (lambda d: with_directory(d, lambda e: b"PK\7\7" + e[4:]), "cannot be read"),
    "64 bits": (
        lambda d: with_directory(d, lambda e: e[:-20] + b"PK\6\7" + e[-16:]), "is too large"
    ),
    "extra field": (lambda d: zip_of(unpacked(d), extra=b"\1\0\0\0"), MISMATCH),
    "encrypted": (lambda d: with_directory(d, lambda e: e[:8] + b"\1" + e[9:]), "or encrypted"),
    "deflated": (lambda d: zip_of(unpacked(d), zipfile.ZIP_DEFLATED), "compressed or encrypted"),
    "unknown method": (
        lambda d: with_directory(d, lambda e: e[:10] + b"\x63" + e[11:]), "compressed or encrypted"
    ),
    "larger unpacked": (
        lambda d: with_directory(d, lambda e: e[:24] + b"\xff" + e[25:]), "compressed or encrypted"
    ),
    "before the file": (lambda d: d[:-6] + b"\xff\xff\0\0" + d[-2:], "cannot be read|does not"),
    "larger": (
        lambda d: with_directory(d, lambda e: e[:20] + b"\xff\xff\xff\x7f" * 2 + e[28:]), MISMATCH
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ZIPS)
def test_other_zips(path, original, case):
    alter, says = ZIPS[case]
    path.write_bytes(alter(original))
    refused(path, f"is damaged: .*({says})")


def test_number_of_members(path, monkeypatch):
    monkeypatch.setattr(archive, "MOST_MEMBERS", 2)
    refused(path, "its directory is too large")


def test_a_file_that_shrinks_while_it_is_read(path, original, monkeypatch):
    def shrink(*arguments):
        path.write_bytes(original[:200])
        return read(*arguments)

    read = archive._read_head
    monkeypatch.setattr(archive, "_read_head", shrink)
    refused(path, "is damaged: ")
