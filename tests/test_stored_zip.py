"""Zip files are read if they are as they would have been written, and in no other case."""

import io
import zipfile

import pytest

from symbayes.storage import stored_zip
from symbayes.storage.stored_zip import Damage, read_directory, starts_with, write_zip

from .mutations.zipped import end_of_directory

MEMBERS = {"a": b"first", "sub/b": b"", "c": bytes(1000)}
# Each has a header of 30 bytes and its name, and in the directory an entry of 46 and its name.
DIRECTORY_AT = 3 * 30 + len("asub/bc") + 1005
END_AT = DIRECTORY_AT + 3 * 46 + len("asub/bc")


def zipped(members=MEMBERS):
    file = io.BytesIO()
    write_zip(file, members)
    return file.getvalue()


def read(data):
    with io.BufferedReader(io.BytesIO(data)) as file:
        members = read_directory(file, len(data))
        return {name: member.read(1000) for name, member in members.items()}


def test_members_come_back():
    data = zipped()
    assert read(data) == MEMBERS
    assert data[DIRECTORY_AT:][:4] == b"PK\1\2"
    assert data[END_AT:] == end_of_directory(3, END_AT - DIRECTORY_AT, DIRECTORY_AT)
    assert read(zipped({})) == {}
    assert starts_with(io.BytesIO(data), "a")
    assert not starts_with(io.BytesIO(data), "b")
    assert not starts_with(io.BytesIO(b""), "a")


def test_views_are_written():
    assert zipped({"a": memoryview(b"first")}) == zipped({"a": b"first"})


def with_bytes(start, new):
    data = zipped()
    return data[:start] + new + data[start + len(new) :]


def in_both(local, new):
    """Change a field of the first member in its header and in the directory."""
    data = with_bytes(local, new)
    start = DIRECTORY_AT + local + 2
    return data[:start] + new + data[start + len(new) :]


def other(method=zipfile.ZIP_STORED, **attributes):
    """A zip of one member that something else wrote."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.comment = attributes.pop("archive_comment", b"")
        info = zipfile.ZipInfo("a")
        info.compress_type = method
        for attribute, value in attributes.items():
            setattr(info, attribute, value)
        archive.writestr(info, b"first")
    return file.getvalue()


def streamed():
    """A zip written to a pipe, with sizes behind the members."""

    class Pipe(io.BytesIO):
        def seekable(self):
            return False

        def seek(self, *arguments):
            raise io.UnsupportedOperation

        tell = seek

    file = Pipe()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", b"first")
    return file.getvalue()


def with_directory(count, directory):
    data = zipped()[:DIRECTORY_AT]
    return data + directory + end_of_directory(count, len(directory), DIRECTORY_AT)


ENTRIES = zipped()[DIRECTORY_AT:END_AT]
FIRST = ENTRIES[:47]
MISMATCH = "its directory does not match its content"

DAMAGED = {
    "empty": (b"", "it is cut short"),
    "tiny": (b"PK\5\6", "it is cut short"),
    "end": (zipped()[:-1], "its end is missing"),
    "disks": (with_bytes(END_AT + 4, b"\1"), "its end is missing"),
    "two counts": (with_bytes(END_AT + 8, b"\4"), "its end is missing"),
    "comment of the file": (other(archive_comment=b"x"), "its end is missing"),
    "in front": (b"x" + zipped(), "bytes are missing or were added"),
    "between": (zipped()[:50] + b"x" + zipped()[50:], "bytes are missing or were added"),
    "large directory": (with_directory(3, ENTRIES + bytes(500)), "its directory is too large"),
    "more entries": (with_directory(4, ENTRIES), "its directory is cut short"),
    "most entries": (with_directory(10_000, ENTRIES), "its directory is cut short"),
    "fewer entries": (with_directory(2, ENTRIES), MISMATCH),
    "no entries": (with_directory(0, b""), MISMATCH),
    "hidden member": (with_directory(2, ENTRIES[47:]), MISMATCH),
    "overlap": (with_directory(4, FIRST + ENTRIES), MISMATCH),
    "order": (with_directory(3, ENTRIES[47:] + FIRST), MISMATCH),
    "longer directory": (with_directory(3, ENTRIES + b"x"), MISMATCH),
    "mark": (with_bytes(DIRECTORY_AT, b"PK\7\7"), MISMATCH),
    "header": (with_bytes(0, b"PK\7\7"), MISMATCH),
    "name": (with_bytes(30, b"x"), MISMATCH),
    "long name": (with_bytes(DIRECTORY_AT + 28, b"\xff\xff"), MISMATCH),
    "one size": (with_bytes(18, b"\6"), MISMATCH),
    "both sizes": (in_both(18, b"\xff\xff\xff\xff" * 2), MISMATCH),
    "extra field": (other(extra=b"\1\0\0\0"), MISMATCH),
    "comment": (other(comment=b"x"), MISMATCH),
    "twice": (zipped({"name-1": b"", "name-2": b""}).replace(b"name-2", b"name-1"), MISMATCH),
    "sizes behind": (streamed(), MISMATCH),
    "encrypted": (in_both(6, b"\1"), "a is compressed or encrypted"),
    "deflated": (other(method=zipfile.ZIP_DEFLATED), "a is compressed or encrypted"),
    "unknown method": (in_both(8, b"\x63"), "a is compressed or encrypted"),
    "larger unpacked": (in_both(22, b"\6"), "a is compressed or encrypted"),
    "too large": (zipped({"a": bytes(1001)}), "a has 1001 bytes, more than the 1000"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damage(case):
    data, says = DAMAGED[case]
    with pytest.raises(Damage, match=says):
        read(data)


def test_number_of_members(monkeypatch):
    monkeypatch.setattr(stored_zip, "MOST_MEMBERS", 2)
    with pytest.raises(Damage, match="its directory is too large"):
        read(zipped())


def test_a_file_that_shrinks_while_it_is_read():
    file = io.BytesIO(zipped())
    with io.BufferedReader(file, buffer_size=1) as reader:
        member = read_directory(reader, len(file.getvalue()))["c"]
        file.truncate(200)
        with pytest.raises(Damage, match="c is cut short"):
            member.read(1000)
