"""Whatever a path leads to, a command ends with one line: a table or a model, or why not."""

from __future__ import annotations

import gzip
import io
import os
import random
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import pandas as pd
import pytest

from symbayes import ModelFileError, load
from symbayes.cli import main, tables
from symbayes.cli.tables import BadTable, read_table
from symbayes.storage.checkpoint import NoCheckpoint

from ..storage.mutations import raw
from .calling import QUICK, complaint, plain_table


@contextmanager
def not_waiting():
    """Fail where something waits for what will never come."""

    def give_up(*_):
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def pipe(path):
    os.mkfifo(path)


def folder_there(path):
    path.mkdir()


def unix_socket(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def endless(path):
    path.symlink_to("/dev/zero")


def nothing(path):
    path.symlink_to(os.devnull)


def empty(path):
    path.touch()


def missing(path):
    pass


def forbidden(path):
    path.write_text("a,y\n1,2\n")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")


def dangling(path):
    path.symlink_to("gone")


NO_PLACE = [pipe, folder_there, unix_socket, endless, nothing]
NO_CONTENT = [*NO_PLACE, empty, missing, forbidden, dangling]
FIT = ["fit", "data.csv", "--target", "y", *QUICK]


def words_for(words, path, model_file):
    return [{"PATH": path, "MODEL": model_file}.get(word, word) for word in words]


# One way of reading each kind of file, for which every kind of path is tried; all others meet two.
READERS = [
    ("t.csv", ["fit", "PATH", "--target", "y"]),
    ("t.parquet", ["fit", "PATH", "--target", "y"]),
    ("m.symbayes", ["show", "PATH"]),
    ("c.checkpoint", ["resume", "PATH"]),
]
OTHER_READERS = [
    ("t.tsv", ["fit", "PATH", "--target", "y"]),
    ("t.csv.gz", ["fit", "PATH", "--target", "y"]),
    ("t.xlsx", ["fit", "PATH", "--target", "y"]),
    ("t.csv", ["predict", "MODEL", "PATH"]),
    ("m.symbayes", ["predict", "PATH", "data.csv"]),
    ("m.symbayes", ["info", "PATH"]),
    ("m.symbayes", ["report", "PATH", "--out", "page.html"]),
    ("p.csv", ["reproduce", "signals", "--quick", "--prices", "PATH"]),
]


@pytest.mark.parametrize(
    ("name", "words", "kind"),
    [
        pytest.param(*reader, kind, id=f"{reader[0]}-{reader[1][0]}-{kind.__name__}")
        for readers, kinds in ((READERS, NO_CONTENT), (OTHER_READERS, [pipe, dangling]))
        for reader in readers
        for kind in kinds
    ],
)
def test_what_cannot_be_read(folder, capsys, model_file, name, words, kind):
    pytest.importorskip("pyarrow")
    kind(folder / name)
    with not_waiting():
        line = complaint(capsys, words_for(words, name, model_file))
    assert name in line
    assert "unexpected" not in line


WRITERS = [
    [*FIT, "--report", "PATH"],
    [*FIT, "--checkpoint", "PATH"],
    ["predict", "MODEL", "data.csv", "--out", "PATH"],
    ["report", "MODEL", "--out", "PATH"],
]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        *(([*FIT, "--out", "PATH"], kind) for kind in NO_PLACE),
        *((words, kind) for words in WRITERS for kind in (pipe, folder_there)),
    ],
    ids=lambda value: value.__name__ if callable(value) else f"{value[0]}{value[-2]}",
)
def test_what_cannot_be_written(folder, capsys, model_file, words, kind):
    kind(folder / "there")
    is_mistake = words[-2] == "--checkpoint" and kind is not folder_there
    with not_waiting():
        line = complaint(capsys, words_for(words, "there", model_file), 2 if is_mistake else 1)
    assert "there" in line
    assert "unexpected" not in line


@pytest.mark.parametrize("kind", [pipe, empty])
@pytest.mark.parametrize("words", [["demo"], ["reproduce", "accuracy"]], ids=lambda words: words[0])
def test_what_is_no_folder(folder, capsys, words, kind):
    kind(folder / "there")
    with not_waiting():
        assert "there" in complaint(capsys, [*words, "--out", "there"])


@pytest.mark.parametrize("kind", [pipe, endless])
def test_the_table_of_a_run_that_goes_on(folder, capsys, kind):
    assert main([*FIT, "--quiet", "--checkpoint", "run"]) == 0
    capsys.readouterr()
    kind(folder / "t.csv")
    with not_waiting():
        assert "t.csv is a device or a pipe" in complaint(capsys, ["resume", "run", "t.csv"])


@pytest.mark.parametrize("kind", NO_PLACE)
def test_in_python(tmp_path, kind):
    from symbayes import BayesianSymbolicRegressor

    path = tmp_path / "there"
    kind(path)
    table = plain_table()
    model = BayesianSymbolicRegressor(["+"], draws=5, tune=5, chains=1, random_state=0)
    with not_waiting():
        with pytest.raises((ModelFileError, OSError), match=r"folder|device or a pipe"):
            load(path)
        with pytest.raises((ModelFileError, OSError), match=r"folder|device or a pipe"):
            BayesianSymbolicRegressor.resume(path, table[["a"]], table["y"])
        with pytest.raises((NoCheckpoint, OSError), match=r"folder|is no checkpoint"):
            model.fit(table[["a"]], table["y"], checkpoint=path)


@pytest.mark.parametrize("kind", ["zeros", "nothing"])
def test_standard_input_without_an_end_or_a_beginning(capsys, monkeypatch, kind):
    class Zeros(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, buffer):
            buffer[:] = bytes(len(buffer))
            return len(buffer)

    monkeypatch.setattr(tables, "_LONGEST_LINE", 2**16)
    source = io.BufferedReader(Zeros()) if kind == "zeros" else io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(source))
    with not_waiting():
        line = complaint(capsys, ["fit", "-", "--target", "y"])
    assert "standard input has no " in line


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="there are no descriptors to name")
def test_a_pipe_that_a_shell_has_opened_is_read(folder):
    program = (
        "import sys; from symbayes.cli.tables import read_table as read; "
        "print(read(sys.argv[1]).shape)"
    )
    done = subprocess.run(
        ["bash", "-c", '"$0" -c "$1" <(cat data.csv)', sys.executable, program],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.strip() == "(30, 3)", done.stderr


@pytest.mark.parametrize("name", ["T.CSV.GZ", "t.tsv.gz", "t.gz"])
def test_packed_text_is_a_table(folder, name):
    text = plain_table().to_csv(index=False, sep="\t" if ".tsv" in name else ",")
    (folder / name).write_bytes(gzip.compress(text.encode()))
    pd.testing.assert_frame_equal(read_table(name), plain_table())


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("t.xlsx", "t.xlsx is a spreadsheet; save its sheet as CSV"),
        ("t.json", "t.json is JSON; turn it into CSV, for example with pandas"),
        ("t.json.gz", "t.json.gz is JSON; turn it into CSV"),
        ("t.zip", r"t.zip is packed; unpack it first, or pack it as \.csv\.gz"),
        ("t.csv.xz", "t.csv.xz is packed; unpack it first"),
        ("t.parquet.gz", r"t.parquet.gz: Parquet is packed already; unpack it from \.gz first"),
        ("t.csv.gz", "t.csv.gz cannot be unpacked: Not a gzipped file"),
    ],
)
def test_other_kinds_get_advice(folder, name, advice):
    (folder / name).write_text("a,y\n1,2\n")
    with pytest.raises(BadTable, match=advice):
        read_table(name)


def test_a_packed_file_that_was_cut_off(folder):
    text = plain_table(3000).to_csv(index=False).encode()
    (folder / "t.csv.gz").write_bytes(gzip.compress(text)[:-5000])
    with pytest.raises(BadTable, match=r"t.csv.gz cannot be unpacked: .*; create it again"):
        read_table("t.csv.gz")


DAMAGE = [
    raw.flip_bits, raw.overwrite, raw.truncate, raw.insert, raw.delete, raw.swap, raw.repeat,
]  # fmt: skip


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.csv.gz"])
def test_every_mutation_of_a_table_is_a_table_or_a_sentence(folder, name):
    table = plain_table(40).assign(
        whole=range(40), city=["Rome", "Oslo"] * 20, day=pd.Timestamp("2020-01-01")
    )
    if name == "t.parquet":
        pytest.importorskip("pyarrow")
        table.to_parquet(name)
    else:
        table.to_csv(name, index=False)
    original = (folder / name).read_bytes()
    n_tables = 0
    for i in range(150):
        damage = DAMAGE[i % len(DAMAGE)]
        # A stream of its own, so that one that failed can be made again alone.
        (folder / name).write_bytes(damage(random.Random(f"{name} {i}"), original))
        try:
            n_tables += isinstance(read_table(name), pd.DataFrame)
        except BadTable as error:
            message = str(error)
            assert name in message
            assert len(message.splitlines()) == 1, message
            assert len(message) < 400
        except BaseException as error:
            error.add_note(f"mutation {i}: {damage.__name__}")
            raise
    assert 0 < n_tables < 150
