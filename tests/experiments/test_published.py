"""The published figures were typed correctly: compared with the paper's source."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from symbayes import Formula
from symbayes.datasets import PAPER_FORMULAS, paper_task
from symbayes.experiments import published
from symbayes.experiments.signals import PRICES

PAPER = Path(__file__).parents[3] / "shared" / "paper"
TASKS = ("f1", "f2", "f3", "f4", "f5", "f6")
NUMBER = r"([\d.]+)"
PAIR = rf"{NUMBER}\s*\\pm\s*{NUMBER}"


@pytest.fixture(scope="module")
def source():
    files = sorted(PAPER.glob("*")) if PAPER.is_dir() else []
    if not files:
        pytest.skip("the source of the paper is not there")
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files)


def table(source, caption):
    """The first table with this caption."""
    start = source.index(rf"\caption{{{caption}}}")
    return source[start : source.index(r"\end{table}", start)]


def numbers(text):
    """All decimal numbers, in their order."""
    return [float(value) for value in re.findall(r"\d+\.\d+(?:e-?\d+)?", text)]


def pairs(text):
    return [(float(mean), float(std)) for mean, std in re.findall(PAIR, text)]


def test_errors(source):
    found = pairs(table(source, "RMSEs of Both Methods"))
    expected = [
        published.RMSE[method][task][i]
        for task in TASKS
        for i in range(4)
        for method in (published.BSR, published.GP)
    ]
    assert found == expected


def test_nodes(source):
    found = pairs(table(source, "Complexity of Expressions"))
    assert found == [
        published.NODES[method][task] for task in TASKS for method in (published.BSR, published.GP)
    ]


def test_terms(source):
    found = pairs(table(source, "RMSEs for different K"))
    assert found == [published.TERMS[k][task] for task in TASKS for k in (2, 4, 8)]


def test_signals(source):
    text = table(source, "Accuracy and Expressions in Real Data Analysis")
    shares = [float(share) for share in re.findall(r"\{\*\}\{(0\.\d+)\}", text)]
    assert shares == [share for train, test, _ in published.SIGNALS for share in (train, test)]
    blocks = re.split(r"\\multirow\{2\}\{\*\}\{\d\}", text)[1:]
    for block, (_, _, expression) in zip(blocks, published.SIGNALS, strict=True):
        printed = block[block.index("$") :]
        assert numbers(expression) == numbers(re.sub(r"\*?10\^\{(-?\d+)\}", r"e\1", printed))


def test_counts_of_signals(source):
    assert re.search(rf"run the task for {published.SIGNALS_TRIED} times independently", source)
    assert re.search(rf"Finally, {published.SIGNALS_FOUND} expressions", source)


@pytest.mark.parametrize("method", [published.BSR, published.GP])
@pytest.mark.parametrize("task", TASKS)
def test_numbers_of_expressions(source, method, task):
    """Every constant of a typical expression is there, in the order it is printed."""
    # The second table of that name, in the appendix, has all six tasks.
    text = source[source.rindex(r"\caption{Typical Expressions}") :]
    start = text.index(rf"$f_{task[1]}$}} & Truth")
    block = text[start : text.index(r"\\\hline", text.index("{BSR}", start))]
    _, gp, bsr = re.split(r"\{GP\}|\{BSR\}", block)
    printed = gp if method == published.GP else bsr
    printed = re.sub(r"\*?10\^\{(-?\d+)\}", r"e\1", printed)
    assert numbers(published.EXPRESSIONS[method][task]) == numbers(printed)


@pytest.mark.parametrize("task", TASKS)
def test_expressions_can_be_read(task):
    X, y = paper_task(task, random_state=0)
    for method in (published.BSR, published.GP):
        values = Formula(published.EXPRESSIONS[method][task], ["x0", "x1"]).predict(X)
        assert np.isfinite(values).any()
    truth = Formula(PAPER_FORMULAS[task], ["x0", "x1"]).predict(X)
    np.testing.assert_allclose(truth, y)


@pytest.mark.parametrize("task", ["f1", "f2", "f4", "f5"])
def test_expressions_of_bsr_are_as_close_as_the_paper_says(task):
    X, y = paper_task(task, random_state=0)
    found = Formula(published.EXPRESSIONS[published.BSR][task], ["x0", "x1"]).predict(X)
    assert np.sqrt(np.mean((found - y) ** 2)) < 0.1 * y.std()


def test_signals_can_be_read():
    X = np.random.default_rng(0).uniform(0.5, 1.5, (10, 4))
    for _, _, expression in published.SIGNALS:
        assert np.isfinite(Formula(expression, PRICES).predict(X)).all()
