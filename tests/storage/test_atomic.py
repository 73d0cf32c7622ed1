"""A file is replaced by a complete one, or stays as it was."""

import os
import stat
from pathlib import Path

import pytest

from symbayes.storage import atomic
from symbayes.storage.atomic import previous_of, remove_unfinished, replacing

needs_user = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="permissions do not bind root"
)


def write(path, data=b"new"):
    with replacing(str(path)) as file:
        file.write(data)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_written(tmp_path):
    write(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"new"
    write(tmp_path / "a", b"newer")
    assert (tmp_path / "a").read_bytes() == b"newer"
    assert names(tmp_path) == ["a"]


def test_in_the_current_folder_and_with_a_long_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("x" * 255)
    assert names(tmp_path) == ["x" * 255]


def test_until_it_is_complete_the_old_file_is_there(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with replacing(str(path)) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt])
def test_an_error_leaves_no_trace(tmp_path, error):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def fail():
        with replacing(str(path)) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_disk_that_fails(tmp_path, monkeypatch, step):
    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path / "a")
    assert names(tmp_path) == []


def test_it_is_on_disk_before_it_takes_the_name(tmp_path, monkeypatch):
    steps = []
    for step in ("fsync", "replace"):
        real = getattr(os, step)

        def record(*arguments, step=step, real=real):
            steps.append(step)
            return real(*arguments)

        monkeypatch.setattr(os, step, record)
    write(tmp_path / "a")
    assert steps == ["fsync", "replace"]


@pytest.mark.parametrize(("mask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_permissions_of_a_new_file_are_the_usual_ones(tmp_path, mask, expected):
    before = os.umask(mask)
    try:
        write(tmp_path / "a")
    finally:
        os.umask(before)
    assert mode(tmp_path / "a") == expected


def test_permissions_of_an_old_file_stay(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write(path)
    assert mode(path) == 0o640


def test_a_link_stays(tmp_path):
    (tmp_path / "data").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "data" / "a")
    for data in (b"new", b"newer"):
        write(link, data)
        assert link.is_symlink()
        assert (tmp_path / "data" / "a").read_bytes() == data
    assert names(tmp_path / "data") == ["a"]


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*; create it first: .*missing'"):
        write(tmp_path / "missing" / "a")


def test_a_folder_that_is_a_file(tmp_path):
    write(tmp_path / "a")
    with pytest.raises(NotADirectoryError, match="no file can be made in this folder"):
        write(tmp_path / "a" / "b")


def test_a_name_that_is_empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="the name of the file is empty"):
        write("")
    assert names(tmp_path) == []


@pytest.mark.parametrize("path", [".", "sub", "sub/", "new/"])
def test_a_folder_in_place_of_a_file(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    with pytest.raises(IsADirectoryError, match="this is a folder; add the name of a file"):
        write(path)
    assert names(tmp_path) == ["sub"]


def test_a_pipe_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileExistsError, match="device or a pipe"):
        write(tmp_path / "pipe")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_folder_that_may_not_be_written_to(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise PermissionError(13, "Permission denied", arguments[0])

    monkeypatch.setattr(atomic, "open", refuse, raising=False)
    with pytest.raises(PermissionError, match=r"folder \(Permission denied\); choose") as info:
        write(tmp_path / "a")
    assert info.value.filename == str(tmp_path)


@needs_user
def test_a_read_only_folder(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match="no file can be made in this folder"):
            write(tmp_path / "a")
    finally:
        tmp_path.chmod(0o700)


@needs_user
def test_a_write_protected_file_stays(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o400)
    with pytest.raises(PermissionError, match="this file is write-protected"):
        write(path)
    assert path.read_bytes() == b"old"


# Files of which the one before is kept.


def succeed(path, content):
    with replacing(str(path), keep=True) as file:
        file.write(content)


def test_the_one_before_stays(tmp_path):
    path = tmp_path / "file"
    for content in (b"first", b"second", b"third"):
        succeed(path, content)
    assert path.read_bytes() == b"third"
    assert Path(previous_of(str(path))).read_bytes() == b"second"
    assert names(tmp_path) == ["file", "file.previous"]


def test_a_write_that_fails_leaves_both(tmp_path):
    path = tmp_path / "file"
    succeed(path, b"first")
    succeed(path, b"second")
    with pytest.raises(TypeError, match="bytes-like"):
        succeed(path, "third")
    assert path.read_bytes() == b"second"
    assert Path(previous_of(str(path))).read_bytes() == b"first"
    assert names(tmp_path) == ["file", "file.previous"]


def test_it_is_beside_what_a_link_leads_to(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere" / "file")
    succeed(link, b"first")
    succeed(link, b"second")
    assert link.is_symlink()
    assert names(tmp_path / "elsewhere") == ["file", "file.previous"]
    assert Path(previous_of(str(link))).read_bytes() == b"first"


def test_what_was_left_unfinished_is_removed(tmp_path):
    path = tmp_path / "file [1]*"
    others = ["file", "file.previous", f"{path.name}.new", f"{path.name}.previous"]
    for name in (*others, f"{path.name}.{'0' * 16}.new", f"{path.name}.{'ab' * 8}.new"):
        (tmp_path / name).touch()
    remove_unfinished(str(path))
    assert names(tmp_path) == sorted(others)
