"""A test that cannot fail proves nothing: every term of every ratio is dropped in turn.

The package is copied, the term is taken out, and the test of that move alone is run on the copy in
a process of its own. It has to fail, at the same level at which it passes otherwise. Compiled code
that does not depend on the changed file goes along; if too much of it did, the bug would not be
there, and not be caught.

Compiling takes most of the time, so one copy has several bugs, of which no test reaches more than
its own: the test of a move alone does not run the code of another move. A test makes sure of that.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import symbayes
from symbayes.kernels import units

from .cases import FALSE_ALARM

PACKAGE = Path(symbayes.__file__).parent
ROOT = Path(__file__).parents[2]


def _bugs(
    label: str, file: str, case: str, move: str, terms: dict[str, tuple[str, str]], steps: int = 60
) -> dict:
    """Bugs of one file: for each term what stands there and what is planted instead.

    The given case and move have to notice, within this number of steps.
    """
    return {f"{label}: {term}": (file, *edit, case, move, steps) for term, edit in terms.items()}


def _insert_delete(label: str, result: str, shift: str) -> dict:
    start = f"{result} = prior.split[depth]"
    whole = f"{start} * size * sides /"
    terms = {
        "splitting": (f"{start} * size", f"{result} = size"),
        "number of nodes": (f"{start} * size *", f"{start} *"),
        "sides": (f"{start} * size * sides /", f"{start} * size /"),
        "candidates": (f"{whole} (candidates * heirs)", f"{whole} heirs"),
        "heirs": (f"{whole} (candidates * heirs)", f"{whole} candidates"),
    }
    depth = {"depth of the kept subtree": (shift, "")}
    return {
        **_bugs(label, "moves/insert_delete.py", "plain", "insert-delete", terms),
        **_bugs(label, "moves/insert_delete.py", "steep", "insert-delete", depth),
    }


def _jump(label: str, result: str, mean_there: str, mean_back: str, jacobian: str) -> dict:
    old_prior = "- _log_normal(value, mean, old_variance)\n        "
    back = f"+ _log_normal(back, {mean_back}, old_variance)\n"
    terms = {
        "new prior": (f"_log_normal({result}, mean, new_variance)\n", "0.0\n"),
        "old prior": (old_prior + back, back),
        "way back": (back, "\n"),
        "way there": (f"- _log_normal(u, {mean_there}, new_variance)\n", "\n"),
        "Jacobian": (f"+ math.log({jacobian})", "+ 0.0"),
    }
    return _bugs(label, "paper.py", "paper-lt", "insert-delete", terms)


def _terms(label: str, other: str, log_other: str) -> dict:
    more = "+ 1" if label == "birth" else "- 1"
    terms = {
        "number of terms": (
            f"prior.log_terms[n_terms {more}]\n        - prior.log_terms[n_terms]\n", "0.0\n"),
        "choice of the reverse": (f"+ math.log({other}_probability({log_other}))\n", "\n"),
        "choice of the move": (
            f"- math.log({label}_probability(n_terms, prior.log_terms))\n", "\n"),
    }  # fmt: skip
    return _bugs(label, "moves/birth_death.py", "free", "birth-death", terms)


def _sums(label: str, case: str, more: str, sign: str, terms: dict) -> dict:
    """Split and merge have the same factors, below the line and above it.

    A factor is noticed only where it decides: splits where most are rejected, merges likewise.
    """
    terms |= {
        "number of terms": (
            f"prior.log_terms[n_terms {more}] - prior.log_terms[n_terms]\n", "0.0\n"),
        "depth of the first operand": (
            f"log_ratio {sign}= log_shift(nodes, first, ROOT_DEPTH, prior, scratch.pending)\n",
            "pass\n"),
        "depth of the second operand": (
            f"log_ratio {sign}= log_shift(nodes, second, ROOT_DEPTH, prior, scratch.pending)\n",
            "pass\n"),
    }  # fmt: skip
    return _bugs(label, "moves/split_merge.py", case, "split-merge", terms, steps=800)


BUGS = {
    **_bugs("grow", "moves/grow_prune.py", "plain", "grow-prune", {
        "splitting odds": ("odds * n_terminals", "n_terminals"),
        "number of terminals": ("odds * n_terminals /", "odds /"),
        "number of operators": (" / new_operators)", ")"),
    }),
    **_bugs("prune", "moves/grow_prune.py", "plain", "grow-prune", {
        "splitting odds": ("inverse_odds * n_operators", "n_operators"),
        "number of operators": ("inverse_odds * n_operators /", "inverse_odds /"),
        "number of terminals": (" / (size - new_operators))", ")"),
    }),
    **_insert_delete("insert", "gain", " + log_shift(nodes, place, depth, prior, pending)"),
    **_insert_delete("delete", "loss", " - log_shift(nodes, top, depth, prior, scratch.pending)"),
    **_bugs("reassign operator", "moves/reassign.py", "plain", "reassign-operator", {
        "number before": ("math.log(n_operators / new", "math.log(1.0 / new"),
        "number after": ("math.log(n_operators / new_operators)", "math.log(n_operators)"),
    }),
    **_bugs("stay", "moves/stay.py", "waves", "stay", {
        "prior ratio": (
            "    return log_prior_transform(", "    return 0.0\n    return log_prior_transform("),
        "new constants": ('log_prior_transform(nodes[at]["a"], nodes[at]["b"], prior) - ', "-"),
    }, steps=400),
    **_bugs("newton", "moves/newton.py", "waves", "newton", {
        "new prior": (
            "log_ratio = log_prior_transform(new_a, new_b, prior) - ", "log_ratio = -"),
        "old prior": (" - log_prior_transform(a, b, prior)\n", "\n"),
        "way back": ("    log_ratio += _log_density(back, a, b)\n", ""),
        "way there": ("    log_ratio -= _log_density(there, new_a, new_b)\n", ""),
        "law of the way back": ("_log_density(back, a, b)", "_log_density(there, a, b)"),
        "determinant": ("math.log(l_aa) + math.log(l_bb) - 0.5", "-0.5"),
    }, steps=600),
    **_bugs("choice", "moves/choice.py", "plain", "insert-delete", {
        "of the reverse": ("math.log(back / there)", "math.log(1.0 / there)"),
        "of the move": ("math.log(back / there)", "math.log(back)"),
    }),
    **_terms("birth", "death", "n_terms + 1, prior.log_terms"),
    **_terms("death", "birth", "n_terms - 1, prior.log_terms"),
    **_sums("split", "three", "+ 1", "-", {
        "choice of the reverse": ("        merge_probability(n_terms + 1, prior)\n", "1.0\n"),
        "choice of the move": ("(split_probability(n_terms, prior) * prior", "(prior"),
        "splitting": (" * prior.split[0] * sum_weight(prior))", " * sum_weight(prior))"),
        "weight of sums": (" * prior.split[0] * sum_weight(prior))", " * prior.split[0])"),
    }),
    **_sums("merge", "sums", "- 1", "+", {
        "choice of the reverse": ("split_probability(n_terms - 1, prior)\n        * ", ""),
        "choice of the move": ("        / merge_probability(n_terms, prior)\n", ""),
        "splitting": ("        * prior.split[0]\n", ""),
        "weight of sums": ("        * sum_weight(prior)\n", ""),
    }),
    **_bugs("exchange", "moves/exchange.py", "two", "exchange", {
        "sizes": (
            "math.log((p_end - p) * (q_end - q) / (p_size * q_size))", "0.0"),
        "sizes before": ("math.log((p_end - p) * (q_end - q) / ", "math.log(1.0 / "),
        "sizes after": (" / (p_size * q_size))", ")"),
        "shape": ("    if i_depth != j_depth:\n", "    if False:\n"),
        "shape of the first subtree there": (
            "log_ratio += log_shape(nodes, i, j_depth, prior, pending)\n", "pass\n"),
        "shape of the second subtree here": (
            "log_ratio -= log_shape(nodes, j, j_depth, prior, pending)\n", "pass\n"),
    }, steps=1_000),
    **_bugs("weights", "gibbs.py", "learned", "weights", {
        "counts": ("concentration[i] + counts[offset + i]", "concentration[i]"),
        "concentration": (
            "concentration[i] + counts[offset + i]",
            "(1.0 if concentration[i] > 0.0 else 0.0) + counts[offset + i]"),
        "operators": ("counts[op] += 1.0", "counts[op] += 0.0"),
    }),
    **_bugs("swap", "ladder.py", "free", "swap", {
        "sign": ("if accepted(ladder.rng, log_ratio):", "if accepted(ladder.rng, -log_ratio):"),
        "powers": (
            "return first_power(power, ratio) * numbers[LOG_LIKELIHOOD]",
            "return first_power(power, ratio) ** 2 * numbers[LOG_LIKELIHOOD]"),
        "colder temperature": ("log_ratio = there + back", "log_ratio = back"),
        "hotter temperature": ("log_ratio = there + back", "log_ratio = there"),
    }),
    **_bugs("teleport", "teleport.py", "free", "teleport", {
        "weight here": ("back = odds.log_weight[t, here] - log_forms", "back = -log_forms"),
        "weight there": ("ahead = odds.log_weight[t, there] - ", "ahead = -"),
        "writings here": ("odds.log_weight[t, here] - log_forms", "odds.log_weight[t, here]"),
        "writings there": (" - catalogue.log_forms[there]\n", "\n"),
        "prior here": ("    gain -= log_prior_of_state(chain, prior, room)\n", ""),
        "prior there": ("    gain += log_prior_of_state(other, prior, room)\n", ""),
        "number of terms": ("total = prior.log_terms[chain.n_terms[0]] -", "total = 0.0 -"),
        "shape": ("total += log_shape(", "total += 0.0 * log_shape("),
        "order of terms": ("at = integer(rng, k + 1)", "at = k"),
        "order of operands": ("if _commutes(op) and uniform(rng) < 0.5:", "if False:"),
    }, steps=6),
    **_bugs("teleport", "teleport.py", "lt", "teleport", {
        "law here": (
            "    back += _log_law(n, _make_law(catalogue, here, power, room), "
            "room.constants, room)\n", ""),
        "law there": ("    ahead += _log_law(n, half_log, room.drawn, room)\n", ""),
        "determinant": (" + half_log\n", "\n"),
        "prior of constants": (
            "- 0.5 * (nu + n) * math.log1p(squares / (nu * lam))", "- 0.0"),
    }, steps=20),
    **_bugs("teleport", "teleport.py", "price", "teleport", {
        "price": (" - prior.nesting[0] * chain.nested[0]\n", "\n"),
    }, steps=6),
    **_bugs("teleport", "teleport.py", "waves", "teleport", {
        "tails": ("drawn[i] = stretch * normal(rng)", "drawn[i] = normal(rng)"),
        "variances afterwards": ("        update_scales(chain, prior)\n", "        pass\n"),
    }, steps=60),
    **_bugs("teleport", "teleport.py", "learned", "teleport", {
        "urn of operators": ("total += _log_urn(prior.operator_concentration, counts, 0)", "pass"),
        "urn of columns": (
            "total += _log_urn(prior.feature_concentration, counts, n_operators)", "pass"),
        "weights afterwards": (
            "        update_weights(chain, prior, scratch.counts)\n", "        pass\n"),
        "temperature": ("gain *= min(1.0, power)", "gain *= 1.0"),
    }, steps=6),
    **_bugs("second stage", "step.py", "part", "grow-prune", {
        "gain of the first": (
            "- chain.numbers[ALL_LOG_LIKELIHOOD]) - gain\n",
            "- chain.numbers[ALL_LOG_LIKELIHOOD])\n"),
        "all rows": (
            "log_ratio = mode.power * (log_likelihood - chain.numbers[ALL_LOG_LIKELIHOOD]) - gain",
            "log_ratio = -gain"),
        "itself": ("if sees_all(power, ratio) and not", "if False and not"),
    }),
    **_bugs("second stage", "all_rows.py", "part", "grow-prune", {
        "centring": (" - rows.totals[k] * rows.totals[k] / n_rows\n", "\n"),
    }),
    **_bugs("second stage", "all_rows.py", "known-part", "grow-prune", {
        "known terms": ("outside -= rows.beside[j * n_slots + k] ** 2", "outside -= 0.0"),
    }),
    **_bugs("second stage", "all_rows.py", "limited-part", "birth-death", {
        "limit on constants": (
            "if count_constants(chain, n_terms) > whole.most_constants:", "if False:"),
    }),
    **_bugs("walk", "moves/newton.py", "waves-part", "newton", {
        "way back": ("    log_ratio += _log_density(back, a, b)\n", ""),
        "curvature there": ("_log_density(back, a, b)", "_log_density(there, a, b)"),
    }, steps=600),
    **_bugs("swap across", "ladder.py", "tempered-part", "ladder", {
        "all rows": (
            "            fit_on_all_rows(code, chain, whole, scratch)\n",
            "            chain.numbers[ALL_LOG_LIKELIHOOD] = chain.numbers[LOG_LIKELIHOOD]\n"),
        "part": (
            "return first_power(power, ratio) * numbers[LOG_LIKELIHOOD]",
            "return power * numbers[LOG_LIKELIHOOD]"),
    }, steps=200),
    **_bugs("temperature", "step.py", "hot", "grow-prune", {
        "of the gain": ("gain = first_power(power, ratio) * (", "gain = ("),
    }),
    **_bugs("likelihood", "likelihood.py", "free", "birth-death", {
        "price of a term": ("-0.5 * n_terms * math.log1p(data.n) - ", "-"),
    }),
    **_bugs("scales", "gibbs.py", "lt", "scales", {
        "number of constants": ("0.5 * (nu_a + n), ", "0.5 * nu_a, "),
        "squares of offsets": ("nu_b * lam_b + squares_b", "nu_b * lam_b"),
    }),
    **_jump("expansion", "mixed", "mean", "0.0", "_HALF"),
    **_jump("shrinkage", "shifted", "0.0", "mean", "_TWO"),
    # They matter only where both trees have constants, so this takes longer to show.
    **_bugs("jump", "paper.py", "paper-lt", "insert-delete", {
        "constants of the other trees": (
            "log_ratio += _log_prior_of_others(chain, k, prior)\n", "log_ratio = 0.0\n"),
    }, steps=1_000),
    **_bugs("paper's choice", "moves/propose.py", "paper", "insert-delete", {
        "of moves": (" + log_choice_ratio(move, trees.nodes, old, new, prior)\n", "\n"),
    }),
    **_bugs("paper's scales", "paper.py", "paper-lt", "grow-prune", {
        "after a rejection": (
            "prior.scales[0], prior.scales[1] = scale_a, scale_b\n", "pass\n"),
    }),
    **_bugs("limit", "likelihood.py", "limited", "birth-death", {
        "constants of trees": ("constants += 2 * transforms", "constants += 0 * transforms"),
        "coefficients": ("constants = 1 + n_terms", "constants = 1"),
    }),
    **_bugs("allowed trees", "tree.py", "shallow", "insert-delete", {
        "levels": ("        if levels > limits[0]:\n            return False\n", ""),
        "operators inside": ("inside > limits[", "inside > 1 + limits["),
    }),
    **_bugs("sensible terms", "step.py", "sensible", "grow-prune", {
        "new": ("for i in range(n_new):", "for i in range(0):"),
    }),
    **_bugs("sensible terms", "step.py", "sensible-two", "exchange", {
        "second": ("for i in range(n_new):", "for i in range(min(1, n_new)):"),
    }, steps=1_000),
    **_bugs("sensible terms", "step.py", "sensible-hot", "insert-delete", {
        "at every temperature": (
            "if not _new_terms_are_sensible(",
            "if mode.power == 1.0 and not _new_terms_are_sensible("),
    }),
    **_bugs("sensible terms", "step.py", "sensible-part", "grow-prune", {
        "before all rows": (
            "if not _new_terms_are_sensible(",
            "if not sees_all(power, ratio) and not _new_terms_are_sensible("),
    }),
    **_bugs("sensible terms", "sensible.py", "sensible-sums", "birth-death", {
        "far": ("if far > _MOST_FAR:", "if False:"),
    }),
    **_bugs("sensible terms", "sensible.py", "sensible", "grow-prune", {
        "changed": ("return changed <= _MOST_CHANGED", "return True"),
    }),
    **_bugs("sensible terms", "likelihood.py", "sensible", "birth-death", {
        "that cancel": ("if not (allow or size <= data.most_size):", "if False:"),
    }),
    **_bugs("sensible terms", "all_rows.py", "sensible-part", "birth-death", {
        "that cancel": ("if not (size <= whole.most_size):", "if False:"),
    }),
    **_bugs("price", "step.py", "price", "reassign-operator", {
        "of the proposal": ("before - price * nested, nested", "before, nested"),
        "of the state": ("before = price * chain.nested[0]", "before = 0.0"),
        "noted": ("    chain.nested[0] = nested\n", ""),
    }),
    **_bugs("price", "step.py", "price-hot", "reassign-operator", {
        "at every temperature": ("prior.nesting[0], chain", "power * prior.nesting[0], chain"),
    }),
    **_bugs("known terms", "likelihood.py", "known", "grow-prune", {
        "projection": (
            "outside = _project_out(values, offset, data.known, n)", "outside = centred"),
        "nothing new": ("if not (outside > REDUNDANT * centred):", "if not (outside >= 0.0):"),
    }),
}  # fmt: skip


# Bugs of these are reached only by tests of the same move, or of cases that have what they concern.
# All others are reached by every test, and have a copy to themselves.
ONLY_IN = {
    "grow": "grow-prune", "prune": "grow-prune",
    "insert": "insert-delete", "delete": "insert-delete",
    "reassign operator": "reassign-operator",
    "stay": "stay", "newton": "newton", "walk": "newton",
    "birth": "birth-death", "death": "birth-death",
    "split": "split-merge", "merge": "split-merge",
    "exchange": "exchange",
    "weights": "weights", "scales": "scales", "swap": "swap",
    "expansion": "paper", "shrinkage": "paper", "jump": "paper", "paper's scales": "paper",
    "second stage": "part", "limit": "limited", "allowed trees": "shallow",
    "known terms": "known", "teleport": "teleport", "sensible terms": "sensible", "price": "price",
}  # fmt: skip


def concerns(bug: str) -> str | None:
    """Return the move or the kind of case that a bug is in; None if it may show anywhere."""
    return ONLY_IN.get(bug.partition(":")[0])


def reaches(bug: str) -> set[str | None]:
    """Return the moves and kinds of cases that the test of a bug runs the code of."""
    _, _, _, case, move, _ = BUGS[bug]
    if move == "teleport":  # which draws them again
        return {None, move, "weights", "scales", *case.split("-")}
    return {None, move, *case.split("-")} if move != "ladder" else {None, *ONLY_IN.values()}


def copies() -> list[list[str]]:
    """Return the bugs of each copy: no test of one reaches another of the same copy."""
    result: list[list[str]] = []
    for bug in BUGS:
        for others in result:
            if not any(
                concerns(bug) in reaches(other) or concerns(other) in reaches(bug)
                for other in others
            ):
                others.append(bug)
                break
        else:
            result.append([bug])
    return result


def smallest_p_values(package: Path, checks: list[tuple]) -> list[float]:
    paths = os.pathsep.join([str(package.parent), str(ROOT)])
    # Little optimisation, since what is compiled here runs for a few seconds only.
    environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_OPT": "1"}
    if package != PACKAGE:
        environment.pop("NUMBA_CACHE_DIR", None)  # beside the sources
    words = [":".join(map(str, check)) for check in checks]
    result = subprocess.run(
        [sys.executable, "-m", "tests.exact.check", *words],
        capture_output=True, text=True, env=environment, cwd=package.parent, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return [float(line) for line in result.stdout.splitlines()]


def plant(folder: Path, bugs: list[str]) -> Path:
    package = folder / "symbayes"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for bug in bugs:
        file, old, new, *_ = BUGS[bug]
        target = package / "kernels" / file
        source = target.read_text()
        assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times in {file}"
        target.write_text(source.replace(old, new))
    return package


def copy_compiled(package: Path) -> None:
    """Give a copy of the package the compiled code of this one; what does not fit is not used."""
    for loop in ("tempered", "paper"):
        units.load(loop)
    for unit in units.entry_points():
        source = Path(unit.py_func.__code__.co_filename)
        target = package / source.relative_to(PACKAGE).parent / "__pycache__"
        target.mkdir(exist_ok=True)
        for path in Path(unit.stats.cache_path).glob(f"{source.stem}.*.nb?"):
            shutil.copy(path, target)


@pytest.mark.parametrize("bug", BUGS)
def test_bugs_can_be_planted(bug, tmp_path):
    """The list above keeps up with the sources; cheap, so that it is always checked."""
    package = plant(tmp_path, [bug])
    compile((package / "kernels" / BUGS[bug][0]).read_text(), BUGS[bug][0], "exec")


@pytest.mark.slow
@pytest.mark.parametrize("bugs", copies(), ids=lambda bugs: f"{bugs[0]} and {len(bugs) - 1} more")
def test_planted_bugs_are_caught(bugs, tmp_path):
    package = plant(tmp_path, bugs)
    copy_compiled(package)
    found = dict(
        zip(bugs, smallest_p_values(package, [BUGS[bug][3:] for bug in bugs]), strict=True)
    )
    assert not {bug: p for bug, p in found.items() if p >= FALSE_ALARM / 10}


@pytest.mark.slow
@pytest.mark.parametrize("half", [0, 1])
def test_a_bug_is_caught_by_its_own_test_only(half, tmp_path):
    """Bugs of half of the moves and kinds of cases leave the tests of the others as they were."""
    one_of_each = {concerns(bug): bug for bug in BUGS if concerns(bug)}
    planted = [bug for i, bug in enumerate(one_of_each.values()) if i % 2 == half]
    others = [
        bug for bug in one_of_each.values()
        if not any(concerns(other) in reaches(bug) for other in planted)
    ]  # fmt: skip
    assert len(others) >= 5
    package = plant(tmp_path, planted)
    copy_compiled(package)
    assert min(smallest_p_values(package, [BUGS[bug][3:] for bug in others])) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("move", sorted({bug[4] for bug in BUGS.values()}))
def test_nothing_is_caught_without_a_bug(move):
    """No copy is needed here, and so nothing has to be compiled again."""
    checks = sorted({bug[3:] for bug in BUGS.values() if bug[4] == move})
    assert min(smallest_p_values(PACKAGE, checks)) > FALSE_ALARM
