"""The speed benchmark still works with the sampler, whose internals it uses."""

import importlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from benchmarks.chains import median, metered, problem_for, rates
from benchmarks.run import DETAILS, MEASURES, PAGE, RESULTS

from benchmarks import overview, report
from symbayes import BayesianSymbolicRegressor, TermsPrior
from symbayes.datasets import paper_task

X, Y = paper_task("f1", n_rows=40, random_state=0)
README = Path(report.__file__).parent / "README.md"


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_is_a_module_that_the_readme_names(name):
    assert callable(importlib.import_module(f"benchmarks.measures.{name}").measure)
    assert f"| `{name}` |" in README.read_text()


@pytest.mark.parametrize("power", [1.0, 0.0])
@pytest.mark.parametrize("terms", [TermsPrior(most=3), 2])
def test_rates(power, terms):
    found = rates(problem_for(X, Y, terms), 0, 0.02, 0.01, power)
    assert found.proposals > 1000
    # A proposal makes two trees at most, and many make none.
    assert 0 < found.trees < 2 * found.proposals
    assert found.nodes >= 1
    assert median([found, found]) == found


def test_all_proposals_of_a_fit_are_counted():
    counted = []
    noisy = Y + 0.1 * np.std(Y) * np.random.default_rng(0).normal(size=len(Y))
    for n_jobs in (1, 2):
        with metered() as meter:
            model = BayesianSymbolicRegressor(
                tune=4, draws=2, chains=2, n_jobs=n_jobs, random_state=0
            ).fit(X, noisy)
        counted.append(meter.proposals)
    assert counted[0] == counted[1] >= model.diagnostics_["proposals"] > 0


def test_targets_and_tables():
    section = report.Section(
        "cores",
        "Two cores",
        [report.Table(["what", "ratio"], [["sampling", 1.9]])],
        [report.at_least("ratio", 1.8, 1.9), report.at_most("MB", 50, None)],
    )
    document = report.to_dict(section, "today", 0.1)
    page = report.markdown({"machine": {"CPU": "any"}, "sections": [document]})
    assert "| ratio | at least 1.8 | 1.9 | yes |" in page
    assert "| MB | at most 50 | - | not measured |" in page
    assert "python -m benchmarks.run --only cores" in page


def test_pages_are_those_of_the_stored_results():
    document = json.loads((RESULTS / "measured.json").read_text())
    assert PAGE.read_text() == overview.overview(document)
    assert DETAILS.read_text() == report.markdown(document)


def test_sections_without_measurements_are_left_out():
    document = json.loads((RESULTS / "measured.json").read_text())
    some = [s for s in document["sections"] if s["name"] in ("memory", "default_call")]
    page = overview.overview(document | {"sections": some})
    assert re.findall("^## (.*)", page, re.MULTILINE) == ["How long a fit takes"]


def test_results_of_another_machine_name_it(tmp_path):
    ours = report.to_dict(report.Section("cores", "Two cores", [], []), "today", 0.1)
    theirs = report.to_dict(report.Section("scaling", "Many cores", [], []), "today", 0.1)
    large, order = tmp_path / "large", ("cores", "scaling")
    report.keep(large, {"CPU": "many"}, [theirs, ours], order)
    taken = report.taken(large / "measured.json", ["scaling"])
    report.keep(tmp_path / "own", {"CPU": "few"}, [ours], order)
    document = report.keep(tmp_path / "own", {"CPU": "few"}, taken, order)
    before, after = report.markdown(document).split("## Many cores")
    assert "On another machine: CPU many." in after
    assert "## Two cores" in before
    assert "another machine" not in before
