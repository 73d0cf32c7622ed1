"""The examples of README and guide run and find what they say."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

README = Path(__file__).parents[1] / "README.md"


def test_example_of_the_readme(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    names: dict = {}
    exec(compile(code, "README.md", "exec"), names)
    model, X = names["model"], names["X"]
    truth = 6 * np.sin(X[:, 0]) * np.cos(X[:, 1])
    assert np.abs(model.best_formula_.predict(X) - truth).max() < 0.2
    assert "probability" in capsys.readouterr().out
    assert names["mean"].shape == names["std"].shape == (5,)


def test_example_of_the_guide(capsys):
    guide = (README.parent / "docs" / "guide.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", guide, flags=re.DOTALL)
    names: dict = {}
    exec(compile(code, "guide.md", "exec"), names)
    assert names["model"].best_formula_.features == ["force", "area"]
    assert "force/area" in capsys.readouterr().out
    assert names["scores"].min() > 0.9


def test_links_of_the_readme_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text())
    local = [link for link in links if not link.startswith("http")]
    assert local
    for link in local:
        assert (README.parent / link).exists(), link
