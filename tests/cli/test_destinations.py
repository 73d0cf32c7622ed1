"""Where results are written: what is said before the work starts."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from symbayes.cli.messages import UsageError
from symbayes.cli.output import check_destinations, rescue_path


def test_a_check_leaves_nothing_behind_and_changes_nothing(folder):
    Path("old.html").write_text("old")
    check_destinations(["data.csv"], out="new.symbayes", report="old.html", checkpoint=None)
    assert Path("old.html").read_text() == "old"
    assert sorted(os.listdir()) == ["data.csv", "old.html"]


@pytest.mark.parametrize(
    ("path", "kind", "message"),
    [
        ("-", UsageError, "--out needs the name of a file, not '-'"),
        ("data.csv", UsageError, "--out data.csv would replace another file of this call"),
        ("./data.csv", UsageError, "would replace another file"),
        ("link.csv", UsageError, "would replace another file"),
        ("nowhere/model", OSError, "no file can be made in this folder .* create it first"),
        (".", OSError, "this is a folder; add the name of a file"),
        ("data.csv/model", OSError, "no file can be made"),
        (os.devnull, OSError, "this is a device"),
        ("locked", OSError, "this file is write-protected"),
    ],
)
def test_complaints(folder, path, kind, message):
    os.symlink("data.csv", "link.csv")
    Path("locked").touch(mode=0o444)
    if path == "locked" and os.access(path, os.W_OK):
        pytest.skip("nothing is locked to the superuser")
    with pytest.raises(kind, match=message):
        check_destinations(["data.csv"], out=path)


def test_two_files_of_a_call_are_not_one():
    with pytest.raises(UsageError, match=r"--report ./new would replace another file of this call"):
        check_destinations([], out="new", report="./new")


def test_what_is_rescued_replaces_nothing(folder):
    for name in ("symbayes-interrupted.symbayes", "symbayes-interrupted-2.symbayes"):
        assert rescue_path() == name
        Path(name).touch()
    assert rescue_path() == "symbayes-interrupted-3.symbayes"


def test_what_cannot_be_saved_here_is_saved_elsewhere(folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert rescue_path() == str(folder / "symbayes-interrupted.symbayes")
