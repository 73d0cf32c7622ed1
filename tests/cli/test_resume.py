"""`symbayes fit --checkpoint` and `symbayes resume`: what goes on, and what is refused."""

from __future__ import annotations

import io
import json
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

from symbayes import BayesianSymbolicRegressor
from symbayes.cli import main
from symbayes.samplers.run.clock import Watch
from symbayes.show.display import Display
from symbayes.storage import checkpoint

from .calling import QUICK, complaint, plain_table

FIT = ["fit", "data.csv", "--target", "y", *QUICK, "--checkpoint", "run"]


@pytest.fixture
def stopped(monkeypatch, capsys):
    """Begin a fit that an error ends before its last checkpoint; the one before is left."""

    def stop(*words, command=FIT):
        def finish(*_):
            raise ValueError("the power is out")

        with monkeypatch.context() as patch:
            patch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
            patch.setattr(checkpoint.CheckpointWriter, "finish", finish)
            assert main([*command, *words]) == 1
        capsys.readouterr()

    return stop


def answer_of(capsys, words):
    capsys.readouterr()
    assert main(words) == 0
    return json.loads(capsys.readouterr().out)


def test_it_goes_on_and_writes_what_it_was_to_write(stopped, capsys, folder, monkeypatch):
    words = ["--json", "--out", "model.symbayes", "--report", "page.html"]
    stopped(*words)
    assert sorted(path.name for path in folder.iterdir()) == ["data.csv", "run", "run.previous"]
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    resumed = answer_of(capsys, ["resume", "../run"])
    assert Path(resumed["model"]) == folder / "model.symbayes"
    assert (folder / "page.html").exists()
    monkeypatch.chdir(folder)
    expected = answer_of(capsys, ["fit", "data.csv", "--target", "y", *QUICK, "--json"])
    assert resumed["formulas"] == expected["formulas"]
    assert resumed["seed"] == expected["seed"] == 0
    assert Path(resumed["data"]) == folder / "data.csv"


def test_a_finished_one_is_shown_at_once(capsys, monkeypatch):
    assert main([*FIT, "--quiet"]) == 0
    first = capsys.readouterr().out
    assert main(["resume", "run"]) == 0
    assert capsys.readouterr() == (first, "")
    assert main(["resume", "run", "--json", "--out", "other.symbayes", "--jobs", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == "other.symbayes"


def test_the_table_was_moved(stopped, capsys):
    stopped("--features", "a", "--quiet")
    shutil.move("data.csv", "moved.csv")
    line = complaint(capsys, ["resume", "run"])
    assert line.endswith("data.csv is no longer there; say where the table is: symbayes resume "
                         "run FILE")  # fmt: skip
    assert main(["resume", "run", "moved.csv"]) == 0


def test_the_table_has_changed(stopped, capsys):
    stopped("--quiet")
    table = plain_table()
    table.loc[3, "y"] = np.nextafter(table.loc[3, "y"], 9)
    table.to_csv("data.csv", index=False)
    assert complaint(capsys, ["resume", "run"]) == (
        "the checkpoint 'run' is of a run on another table (other values of y); resume it with the "
        "table it was begun with"
    )


def test_standard_input_cannot_be_read_again(stopped, capsys, monkeypatch):
    text = io.TextIOWrapper(io.BytesIO(Path("data.csv").read_bytes()))
    monkeypatch.setattr("sys.stdin", text)
    stopped("--quiet", command=["fit", "-", "--target", "y", *QUICK, "--checkpoint", "run"])
    assert complaint(capsys, ["resume", "run"], 2) == (
        "the table came from standard input, which cannot be read again; name a file: symbayes "
        "resume run FILE"
    )
    assert main(["resume", "run", "data.csv"]) == 0


def test_a_checkpoint_from_python(capsys):
    table = plain_table()
    model = BayesianSymbolicRegressor(["+", "*"], draws=20, tune=50, chains=1, random_state=0)
    model.fit(table[["a", "b"]], table["y"], checkpoint="run")
    assert complaint(capsys, ["resume", "run"], 2) == (
        "the run of run was begun in Python; resume it there: "
        "BayesianSymbolicRegressor.resume('run', X, y)"
    )


def test_a_checkpoint_of_the_shell_goes_on_in_python(stopped):
    stopped("--quiet")
    table = plain_table()
    resumed = BayesianSymbolicRegressor.resume("run", table[["a", "b"]], table["y"])
    assert len(resumed.diagnostics_["log_likelihood"][0]) == 50


def test_another_run_is_not_lost(stopped, capsys):
    stopped("--quiet")
    content = Path("run").read_bytes()
    assert complaint(capsys, FIT, 2) == (
        "--checkpoint run would replace the checkpoint of another run; resume that one by "
        "symbayes resume run, remove it (and run.previous), or name another file"
    )
    assert Path("run").read_bytes() == content


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["resume", "nowhere"], 1, "nowhere: No such file or directory"),
        (["resume", "data.csv"], 1, "'data.csv' is not a symbayes file"),
        ([*FIT[:-1], "none/run"], 1, "none: no file can be made in this folder"),
        (
            [*FIT[:-1], "data.csv"],
            2,
            "--checkpoint data.csv would replace a file that is no checkpoint; name another one",
        ),
        ([*FIT[:-1], "."], 1, ".: this is a folder; add the name of a file"),
        ([*FIT, "--out", "run"], 2, "--out run would replace another file of this call"),
        ([*FIT, "--out", "run.previous"], 2, "--out run.previous would replace another file"),
    ],
    ids=str,
)
def test_mistakes(capsys, words, status, message):
    assert message in complaint(capsys, words, status)


def test_what_goes_on_is_not_overwritten(stopped, capsys):
    stopped("--quiet")
    for path in ("run", "run.previous", "data.csv"):
        line = complaint(capsys, ["resume", "run", "--out", path], 2)
        assert line == f"--out {path} would replace another file of this call"


def test_ctrl_c_tells_how_to_go_on(capsys, monkeypatch):
    real, pressed = Display.__call__, []

    def show(self, progress):
        real(self, progress)
        if progress.phase == "drawing" and not pressed:
            pressed.append(True)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Watch, "_last_interrupt", -np.inf)
    monkeypatch.setattr(Display, "__call__", show)
    monkeypatch.setattr(Display, "interval", 0.0)
    words = [*FIT, "--draws", "300"]
    assert main(words) == 130
    assert "symbayes resume 'run' continues from its checkpoint" in capsys.readouterr().err
    assert main(["resume", "run", "--json"]) == 0
    resumed = json.loads(capsys.readouterr().out)
    whole = answer_of(capsys, [*words[:-4], "--draws", "300", "--json"])
    assert resumed["formulas"] == whole["formulas"]


def test_a_second_ctrl_c_tells_it_too(capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(BayesianSymbolicRegressor, "fit", interrupt)
    assert main(FIT) == 130
    assert capsys.readouterr().err == (
        "symbayes: stopped; symbayes resume run continues from its checkpoint\n"
    )


def test_it_says_that_it_goes_on(stopped, capsys):
    stopped()
    assert main(["resume", "run"]) == 0
    assert "symbayes: resuming a run that has taken " in capsys.readouterr().err
    assert main(["resume", "run"]) == 0
    assert "symbayes: the run was finished after " in capsys.readouterr().err
