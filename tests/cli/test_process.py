"""The command line as a program: pipes, encodings, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import symbayes

from .calling import QUICK, odd_table

pytestmark = pytest.mark.slow
PROGRAM = [sys.executable, "-m", "symbayes"]
QUICK_FIT = [*PROGRAM, "fit", "data.csv", "--target", "y", *QUICK]


def run(words, **options):
    return subprocess.run(words, capture_output=True, timeout=300, **options)


def test_from_pipe_to_pipe(folder):
    done = run(
        [*PROGRAM, "fit", "-", "--target", "y", *QUICK, "--quiet", "--out", "m.symbayes"],
        input=Path("data.csv").read_bytes(),
    )
    assert (done.returncode, done.stderr) == (0, b"")
    done = run([*PROGRAM, "predict", "m.symbayes", "-"], input=Path("data.csv").read_bytes())
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(done.stdout.splitlines()) == 31


def test_an_encoding_without_greek_letters(folder):
    odd_table().to_csv("data.csv", index=False)
    done = run(QUICK_FIT, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert b"3*`a b`**2 + \\u03bb" in done.stdout
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["--help"], ["fit", "--help"], ["info"]])
def test_a_reader_that_leaves_early(folder, words):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*PROGRAM, *words], stdout=writing, stderr=subprocess.PIPE, timeout=300
        )
    finally:
        os.close(writing)
    # argparse takes no notice of it.
    assert done.returncode == (0 if "--help" in words else 141)
    assert done.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device")
def test_a_full_disk(folder):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*PROGRAM, "info"], stdout=full, stderr=subprocess.PIPE, timeout=300)
    assert (done.returncode, done.stderr) == (1, b"symbayes: No space left on device\n")


def test_a_mistake_is_a_line(folder):
    done = run([*PROGRAM, "fit", "nowhere.csv", "--target", "y"])
    assert done.returncode == 1
    assert done.stderr == b"symbayes: nowhere.csv: No such file or directory\n"


@pytest.fixture
def endless(folder):
    """A fit that goes on for hours, once it has said so."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.uniform(1, 2, (300, 5)), columns=list("abcde"))
    table.assign(y=rng.normal(size=300)).to_csv("data.csv", index=False)
    words = [*PROGRAM, "fit", "data.csv", "--target", "y", "--tune", "1000000000", "--seed", "0"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        for line in process.stderr:
            if line.startswith("symbayes: search"):
                break
        yield process
        process.kill()


def test_ctrl_c_saves_what_there_is(endless):
    endless.send_signal(signal.SIGINT)
    out, error = endless.communicate(timeout=300)
    assert endless.returncode == 130
    assert out.splitlines()[-1] == "model: symbayes-interrupted.symbayes"
    assert "saved to symbayes-interrupted.symbayes\n" in error
    assert all(line.startswith("symbayes: ") for line in error.splitlines())
    assert symbayes.load("symbayes-interrupted.symbayes").diagnostics_["interrupted"]


def test_ctrl_c_twice_stops_at_once(endless):
    endless.send_signal(signal.SIGINT)
    endless.send_signal(signal.SIGINT)
    _, error = endless.communicate(timeout=300)
    assert endless.returncode == 130
    assert all(line.startswith("symbayes: ") for line in error.splitlines())
