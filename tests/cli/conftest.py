"""What tests of the commands need: a folder to work in, and a model in a file."""

from __future__ import annotations

import pytest

from symbayes.cli import main

from .calling import QUICK, odd_table, plain_table


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The working folder, with `data.csv` in it."""
    monkeypatch.chdir(tmp_path)
    # As wide as a terminal of old.
    monkeypatch.setenv("COLUMNS", "80")
    plain_table().to_csv("data.csv", index=False)
    return tmp_path


def saved(place, table):
    table.to_csv(place / "data.csv", index=False)
    words = ["fit", place / "data.csv", "--target", "y", *QUICK, "--quiet"]
    assert main([str(word) for word in [*words, "--out", place / "model.symbayes"]]) == 0
    return place / "model.symbayes"


@pytest.fixture(scope="session")
def model_file(tmp_path_factory):
    """A model of columns with odd names, with a single formula."""
    return saved(tmp_path_factory.mktemp("odd"), odd_table())


@pytest.fixture(scope="session")
def noisy_file(tmp_path_factory):
    """A model with several formulas."""
    return saved(tmp_path_factory.mktemp("noisy"), plain_table())
