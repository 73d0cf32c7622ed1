"""Every code block of README and documentation runs, and prints what the page says."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import shutil
import subprocess
import sys

import pytest

import symbayes
from symbayes import cli, plots

from .exact.test_planted_bugs import BUGS
from .pages import PAGES, ROOT, agrees, blocks, commands, difference, run_python, without_fences

#: What a fenced block may be, so that none escapes the tests.
LANGUAGES = {"python", "console", "text"}
#: What some pages have besides: for the tool that builds the site, and changes that are applied.
BESIDES = {
    "docs/index.md": {"{toctree}"},
    "docs/api.md": {"{eval-rst}"},
    "docs/extending.md": {"diff"},
}
RUNS = [
    name
    for name, path in PAGES.items()
    if any(block.language in ("python", "console") for block in blocks(path.read_text()))
    and name != "docs/extending.md"
]


# Pages whose fits take long on two cores.
LONG = {
    f"docs/{page}.md"
    for page in (
        "beliefs",
        "clusters",
        "command-line",
        "first-steps",
        "real-data",
        "long_runs",
        "posterior",
        "trust",
    )
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in RUNS]
)
def test_blocks_run_and_print_what_the_page_says(name, tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    if name == "docs/clusters.md":
        pytest.importorskip("distributed", reason="needs Dask")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    plt.switch_backend("Agg")
    names: dict = {"__name__": "__main__"}
    for block in blocks(PAGES[name].read_text()):
        if block.language == "python":
            printed = run_python(block, name, names)
            if block.expected is not None:
                assert agrees(block.expected, printed), difference(block, block.expected, printed)
        elif block.language == "console":
            _run_commands(block)
    plt.close("all")


def _run_commands(block):
    for words, output in commands(block):
        if words[0] != "symbayes":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = cli.main(words[1:])
        assert status == 0, f"line {block.line}: {words} ends with {status}"
        expected = output or block.expected or ""
        if expected:
            assert agrees(expected, printed.getvalue()), difference(
                block, expected, printed.getvalue()
            )


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git, to apply the changes")
def test_changes_to_the_package_work(tmp_path):
    """The page on extending: its changes are applied to a copy, and its blocks run there."""
    shutil.copytree(
        ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    environment = os.environ | {
        "PYTHONPATH": str(tmp_path / "src"),
        "NUMBA_CACHE_DIR": str(tmp_path / "compiled"),
    }
    for block in blocks(PAGES["docs/extending.md"].read_text()):
        if block.language == "diff":
            subprocess.run(
                ["git", "apply", "-"], input=block.text, text=True, check=True, cwd=tmp_path
            )
        elif block.language == "python":
            run = subprocess.run(
                [sys.executable, "-W", "error", "-W", "ignore:Not converged", "-c", block.text],
                capture_output=True, text=True, check=False, cwd=tmp_path, env=environment,
            )  # fmt: skip
            assert run.returncode == 0, run.stderr
            assert block.expected is not None
            assert agrees(block.expected, run.stdout), difference(block, block.expected, run.stdout)


@pytest.mark.parametrize("name", PAGES)
def test_no_block_escapes(name):
    page = PAGES[name].read_text()
    assert page.count("```") == 2 * len(blocks(page)), "a fence that is not closed, or indented"
    indented = re.findall(r"\n\n    \S.*", without_fences(page))
    assert not indented, "use a fence"
    for block in blocks(page):
        allowed = LANGUAGES | BESIDES.get(name, set())
        assert block.language in allowed, f"line {block.line}: {block.language!r}"


def test_there_are_blocks_and_outputs():
    """What the other tests go through is not empty."""
    every = [block for path in PAGES.values() for block in blocks(path.read_text())]
    assert len(RUNS) >= 7
    assert sum(block.expected is not None for block in every) >= 15


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    page, path = PAGES[name].read_text(), PAGES[name]
    for link in re.findall(r"\]\(([^)#\s]*)(?:#[^)]*)?\)", page):
        if link and not link.startswith(("http://", "https://")):
            assert (path.parent / link).exists(), link


def test_every_page_is_in_the_contents():
    index = (ROOT / "docs" / "index.md").read_text()
    (*trees,) = (block.text for block in blocks(index) if block.language == "{toctree}")
    listed = {line for tree in trees for line in tree.splitlines() if line and line[0] != ":"}
    pages = {name.removeprefix("docs/").removesuffix(".md") for name in PAGES}
    assert listed == pages - {"README", "index"}


def test_the_reference_has_every_public_name():
    reference = (ROOT / "docs" / "api.md").read_text()
    for name in symbayes.__all__:
        if name not in ("__version__", "plots"):
            assert re.search(rf"symbayes\.{name}\b", reference), name
    for name in plots.__all__:
        assert f"symbayes.plots.{name}" in reference, name


def test_the_table_of_operators_is_complete():
    page = (ROOT / "docs" / "beliefs.md").read_text()
    for name, operator in symbayes.OPERATORS.items():
        row = re.search(rf"^\| `{re.escape(name)}` \|.*\|$", page, re.MULTILINE)
        assert row, name
        if operator.domain != "all reals":
            assert operator.domain in row[0], name
    for name, members in symbayes.OPERATOR_SETS.items():
        if name != "all":
            assert f'`"{name}"` | `{" ".join(members)}`' in page, name


def test_the_number_of_planted_bugs_is_right():
    assert f"| planted bugs | {len(BUGS)} times" in PAGES["docs/testing.md"].read_text()


def test_what_others_call_otherwise_exists():
    """The table for those who come from elsewhere names parameters and attributes that exist."""
    page = PAGES["docs/coming-from.md"].read_text()
    table = page.partition("| PySR | gplearn | symbayes |\n")[2].partition("\n\n")[0]
    regressor = symbayes.BayesianSymbolicRegressor
    known = {
        *inspect.signature(regressor).parameters, *inspect.signature(regressor.fit).parameters,
        *dir(regressor), *dir(symbayes.Formula), *symbayes.__all__, *symbayes.OPERATORS,
        "symbayes", "str", "n_nodes", "rmse",
    }  # fmt: skip
    known |= set(re.findall(r"^    (\w+_) : ", regressor.__doc__, re.MULTILINE))
    rows = table.splitlines()[1:]
    assert len(rows) > 20
    for row in rows:
        for name in re.findall(r"`([a-zA-Z_]+)", row.split("|")[3]):
            assert name in known, name
