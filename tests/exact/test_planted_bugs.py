"""A test that cannot fail proves nothing: every term of every ratio is dropped in turn.

Each time the package is copied, one term is taken out, and the test of that move alone is run on
the copy in a process of its own. It has to fail, at the same level at which it passes otherwise.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import symbayes

from .cases import FALSE_ALARM

PACKAGE = Path(symbayes.__file__).parent
ROOT = Path(__file__).parents[2]

# File, what stands there, what is planted, and the case and move that have to notice.
BUGS = {
    "grow: splitting odds": (
        "moves/grow.py", "math.log(split) - math.log1p(-split) + ", "", "plain", "grow-prune"),
    "grow: number of terminals": (
        "moves/grow.py", " + math.log(n_terminals)", "", "plain", "grow-prune"),
    "grow: number of operators": (
        "moves/grow.py", " - math.log(new_operators)", "", "plain", "grow-prune"),
    "prune: splitting odds": (
        "moves/prune.py", "math.log1p(-split)\n        - math.log(split)\n        + ", "",
        "plain", "grow-prune"),
    "prune: number of operators": (
        "moves/prune.py", "+ math.log(n_operators)\n", "\n", "plain", "grow-prune"),
    "prune: number of terminals": (
        "moves/prune.py", "- math.log(size - new_operators)\n", "\n", "plain", "grow-prune"),
    "insert: new prior": (
        "moves/insert.py", "log_prior(nodes, new, ROOT_DEPTH, prior, pending)\n", "0.0\n",
        "plain", "insert-delete"),
    "insert: old prior": (
        "moves/insert.py", "- log_prior(nodes, old, ROOT_DEPTH, prior, pending)\n", "\n",
        "plain", "insert-delete"),
    "insert: operator weight": (
        "moves/insert.py", "prior.operator_log_weight[nodes[top][\"op\"]] - ", "-",
        "plain", "insert-delete"),
    "insert: number of nodes": (
        "moves/insert.py", " - math.log(size)\n", "\n", "plain", "insert-delete"),
    "insert: side": (
        "moves/insert.py", "math.log(0.5) + log_prior(", "log_prior(", "plain", "insert-delete"),
    "insert: other child": (
        "moves/insert.py", " + log_prior(nodes, child, depth + 1, prior, pending)", "",
        "plain", "insert-delete"),
    "insert: candidates": (
        "moves/insert.py", "-math.log(count_candidates(nodes, new)) - ", "-",
        "plain", "insert-delete"),
    "insert: heirs": (
        "moves/insert.py", " - math.log(count_heirs(nodes, new, top))", "",
        "plain", "insert-delete"),
    "delete: new prior": (
        "moves/delete.py", "log_prior(nodes, new, ROOT_DEPTH, prior, pending)\n", "0.0\n",
        "plain", "insert-delete"),
    "delete: old prior": (
        "moves/delete.py", "- log_prior(nodes, old, ROOT_DEPTH, prior, pending)\n", "\n",
        "plain", "insert-delete"),
    "delete: operator weight": (
        "moves/delete.py", "prior.operator_log_weight[nodes[place][\"op\"]] - ", "-",
        "plain", "insert-delete"),
    "delete: number of nodes": (
        "moves/delete.py", " - math.log(size)\n", "\n", "plain", "insert-delete"),
    "delete: side": (
        "moves/delete.py", "math.log(0.5) + log_prior(", "log_prior(", "plain", "insert-delete"),
    "delete: dropped child": (
        "moves/delete.py", " + log_prior(nodes, dropped, depth + 1, prior, pending)", "",
        "plain", "insert-delete"),
    "delete: candidates": (
        "moves/delete.py", "-math.log(candidates) - ", "-", "plain", "insert-delete"),
    "delete: heirs": (
        "moves/delete.py", " - math.log(heirs)\n", "\n", "plain", "insert-delete"),
    "reassign operator: number before": (
        "moves/reassign_operator.py", "math.log(n_operators) - ", "-",
        "plain", "reassign-operator"),
    "reassign operator: number after": (
        "moves/reassign_operator.py", " - math.log(new_operators)\n", "\n",
        "plain", "reassign-operator"),
    "stay: new constants": (
        "moves/stay.py",
        'log_prior_transform(nodes[at]["a"], nodes[at]["b"], prior) - ', "-", "lt", "stay"),
    "stay: old constants": (
        "moves/stay.py",
        ' - log_prior_transform(\n        nodes[place]["a"], nodes[place]["b"], prior\n    )', "",
        "lt", "stay"),
    "choice of the reverse": (
        "choose.py", "math.log(probability_at(reverse_of(move), nodes, new, prior)) - ", "-",
        "plain", "insert-delete"),
    "choice of the move": (
        "choose.py", " - math.log(\n        probability_at(move, nodes, old, prior)\n    )", "",
        "plain", "insert-delete"),
    "birth: more terms": (
        "moves/terms.py", "prior.log_terms[n_terms + 1]\n        - prior.log_terms[n_terms]\n",
        "0.0\n", "free", "birth-death"),
    "birth: choice of death": (
        "moves/terms.py",
        "+ math.log(death_probability(n_terms + 1, prior.log_terms))\n", "\n",
        "free", "birth-death"),
    "birth: choice of birth": (
        "moves/terms.py", "- math.log(birth_probability(n_terms, prior.log_terms))\n", "\n",
        "free", "birth-death"),
    "death: fewer terms": (
        "moves/terms.py", "prior.log_terms[n_terms - 1]\n        - prior.log_terms[n_terms]\n",
        "0.0\n", "free", "birth-death"),
    "death: choice of birth": (
        "moves/terms.py",
        "+ math.log(birth_probability(n_terms - 1, prior.log_terms))\n", "\n",
        "free", "birth-death"),
    "death: choice of death": (
        "moves/terms.py", "- math.log(death_probability(n_terms, prior.log_terms))\n", "\n",
        "free", "birth-death"),
    "temperature": (
        "step.py", "gain = temperature * (", "gain = (", "tempered", "grow-prune"),
    "likelihood: price of a term": (
        "likelihood.py", "-0.5 * n_terms * math.log1p(data.n) - ", "-", "free", "birth-death"),
    "scales: number of constants": (
        "scales.py", "0.5 * (nu_a + n), ", "0.5 * nu_a, ", "lt", "scales"),
    "expansion: new prior": (
        "paper_constants.py", "_log_normal(mixed, mean, new_variance)\n", "0.0\n",
        "paper-lt", "grow-prune"),
    "expansion: old prior": (
        "paper_constants.py",
        "- _log_normal(value, mean, old_variance)\n        + _log_normal(back, 0.0,",
        "+ _log_normal(back, 0.0,", "paper-lt", "insert-delete"),
    "expansion: way back": (
        "paper_constants.py", "+ _log_normal(back, 0.0, old_variance)\n", "\n",
        "paper-lt", "insert-delete"),
    "expansion: way there": (
        "paper_constants.py", "- _log_normal(u, mean, new_variance)\n", "\n",
        "paper-lt", "insert-delete"),
    "expansion: Jacobian": (
        "paper_constants.py", "+ math.log(_HALF)", "+ 0.0", "paper-lt", "insert-delete"),
    "shrinkage: new prior": (
        "paper_constants.py", "_log_normal(shifted, mean, new_variance)\n", "0.0\n",
        "paper-lt", "insert-delete"),
    "shrinkage: old prior": (
        "paper_constants.py",
        "- _log_normal(value, mean, old_variance)\n        + _log_normal(back, mean,",
        "+ _log_normal(back, mean,", "paper-lt", "insert-delete"),
    "shrinkage: way back": (
        "paper_constants.py", "+ _log_normal(back, mean, old_variance)\n", "\n",
        "paper-lt", "insert-delete"),
    "shrinkage: way there": (
        "paper_constants.py", "- _log_normal(u, 0.0, new_variance)\n", "\n",
        "paper-lt", "insert-delete"),
    "shrinkage: Jacobian": (
        "paper_constants.py", "+ math.log(_TWO)", "+ 0.0", "paper-lt", "insert-delete"),
    "constants of the other trees": (
        "paper_constants.py", "log_ratio += _log_prior_of_others(chain, k, prior)\n",
        "log_ratio = 0.0\n", "paper-lt", "grow-prune"),
    "paper: choice of moves": (
        "paper_step.py", "log_ratio += log_choice_ratio(move, chain.nodes, old, new, prior)\n",
        "log_ratio += 0.0\n", "paper", "insert-delete"),
    "paper: scales after a rejection": (
        "paper_step.py", "prior.scales[0], prior.scales[1] = scale_a, scale_b\n", "pass\n",
        "paper-lt", "grow-prune"),
}  # fmt: skip


def smallest_p_value(package: Path, case: str, move: str, cache: Path) -> float:
    paths = os.pathsep.join([str(package.parent), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(cache)}
    result = subprocess.run(
        [sys.executable, "-m", "tests.exact.check", case, move],
        capture_output=True, text=True, env=environment, cwd=package.parent, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return float(result.stdout.split()[-1])


def plant(folder: Path, file: str, old: str, new: str) -> Path:
    package = folder / "symbayes"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    target = package / "kernels" / file
    source = target.read_text()
    assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times in {file}"
    target.write_text(source.replace(old, new))
    return package


@pytest.mark.parametrize("bug", BUGS)
def test_bugs_can_be_planted(bug, tmp_path):
    """The list above keeps up with the sources; cheap, so that it is always checked."""
    package = plant(tmp_path, *BUGS[bug][:3])
    compile((package / "kernels" / BUGS[bug][0]).read_text(), BUGS[bug][0], "exec")


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_planted_bug_is_caught(bug, tmp_path):
    file, old, new, case, move = BUGS[bug]
    package = plant(tmp_path, file, old, new)
    assert smallest_p_value(package, case, move, tmp_path / "cache") < FALSE_ALARM / 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "move"), sorted({(case, move) for *_, case, move in BUGS.values()})
)
def test_nothing_is_caught_without_a_bug(case, move, tmp_path):
    package = tmp_path / "symbayes"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    assert smallest_p_value(package, case, move, tmp_path / "cache") > FALSE_ALARM
