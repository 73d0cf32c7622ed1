"""A test that cannot fail proves nothing: every term of every ratio is dropped in turn.

The package is copied, the term is taken out, and the test of that move alone is run on the copy in
a process of its own. It has to fail, at the same level at which it passes without the bug.

Compiling takes most of the time, so one copy has many bugs, of which one at a time is switched on.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import symbayes

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


# What a copy of `kernels/compiling.py` gets as well: which bug is there is read from one place in
# memory, so that a process compiles all of them at once, and has one after the other.
SWITCH = """

import ctypes

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

PLANTED = ctypes.c_int64(0)


@intrinsic
def planted(typing_context):
    def load(context, builder, signature, arguments):
        number = ir.IntType(64)
        address = ir.Constant(number, ctypes.addressof(PLANTED))
        return builder.load(builder.inttoptr(address, number.as_pointer()))

    return types.int64(), load
"""


def copies() -> dict[str, list[str]]:
    """Return the bugs of each copy: those whose tests run the same loop."""
    loops = {"teleport": "teleport", "ladder": "ladders", "swap": "ladders"}
    result: dict[str, list[str]] = {}
    for bug, (_, _, _, case, move, _) in BUGS.items():
        name = "paper" if case.startswith("paper") else loops.get(move, "moves")
        result.setdefault(name, []).append(bug)
    moves = result.pop("moves")
    half = len(moves) // 2
    return result | {"moves": moves[:half], "more moves": moves[half:]}


def plant(folder: Path, bugs: list[str]) -> Path:
    """Copy the package, with bugs that are there as long as `PLANTED` is their number from 1 on."""
    package = folder / "symbayes"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    by_file: dict[str, dict[int, tuple[str, str]]] = {}
    for number, bug in enumerate(bugs, 1):
        file, old, new, *_ = BUGS[bug]
        by_file.setdefault(file, {})[number] = old, new
    for file, edits in by_file.items():
        target = package / "kernels" / file
        target.write_text(_with_switch(target.read_text(), edits, file))
    compiling = package / "kernels" / "compiling.py"
    compiling.write_text(compiling.read_text() + SWITCH)
    return package


def _with_switch(source: str, edits: dict[int, tuple[str, str]], file: str) -> str:
    """Return a source in which each edit takes place if its number is planted."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    body = ast.parse(source).body
    regions: list[tuple[int, int, list[int]]] = []
    for number, (old, _) in edits.items():
        assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times in {file}"
        begin = source.index(old)
        end = begin + len(old.rstrip())
        first, last = (sum(start <= at for start in starts) for at in (begin, end - 1))
        first, last = _statements(body, first, last, lines)
        numbers = [number]
        for one in [one for one in regions if one[0] <= last and first <= one[1]]:
            regions.remove(one)
            first, last, numbers = min(first, one[0]), max(last, one[1]), one[2] + numbers
        regions.append((first, last, numbers))
    for first, last, numbers in sorted(regions, reverse=True):
        whole = "".join(lines[first - 1 : last])
        margin = " " * (len(whole) - len(whole.lstrip()))
        text, word = "", "if"
        for number in numbers:
            variant = whole.replace(*edits[number])
            assert variant != whole
            text += f"{margin}{word} planted() == {number}:\n"
            text += textwrap.indent(variant if variant.strip() else f"{margin}pass\n", "    ")
            word = "elif"
        text += f"{margin}else:\n" + textwrap.indent(whole, "    ")
        lines[first - 1 : last] = [text]
    after = max(one.end_lineno for one in body if isinstance(one, ast.Import | ast.ImportFrom))
    dots = "." * (file.count("/") + 1)
    lines.insert(after, f"from {dots}compiling import planted\n")
    return "".join(lines)


def _statements(body: list[ast.stmt], first: int, last: int, lines: list[str]) -> tuple[int, int]:
    """Return the first and the last line of the fewest statements that have these lines."""
    around = [one for one in body if one.lineno <= last and first <= one.end_lineno]
    assert around, "a bug is in no statement"
    if len(around) == 1:
        for name in ("body", "orelse"):
            inner = getattr(around[0], name, [])
            is_elif = (
                name == "orelse" and inner and lines[inner[0].lineno - 1].lstrip()[:4] == "elif"
            )
            if inner and not is_elif and inner[0].lineno <= first and last <= inner[-1].end_lineno:
                return _statements(inner, first, last, lines)
    return around[0].lineno, around[-1].end_lineno


def smallest_p_values(package: Path, checks: list[tuple]) -> list[float]:
    """Return the smallest p-value of each check: case, move, steps and the bug that is there."""
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


@pytest.mark.parametrize("bug", BUGS)
def test_bugs_can_be_planted(bug, tmp_path):
    """The list above keeps up with the sources; cheap, so that it is always checked."""
    package = plant(tmp_path, [bug])
    compile((package / "kernels" / BUGS[bug][0]).read_text(), BUGS[bug][0], "exec")


@pytest.mark.slow
@pytest.mark.parametrize("name", copies())
def test_planted_bugs_are_caught(name, tmp_path):
    bugs = copies()[name]
    package = plant(tmp_path, bugs)
    planted = [(*BUGS[bug][3:], number) for number, bug in enumerate(bugs, 1)]
    # Without a bug, at last: the copy itself is right, and no bug has left anything behind.
    right = list({BUGS[bug][3:]: (*BUGS[bug][3:], 0) for bug in bugs}.values())
    values = smallest_p_values(package, planted + right)
    found = dict(zip(bugs, values, strict=False))
    assert not {bug: p for bug, p in found.items() if p >= FALSE_ALARM / 10}
    assert min(values[len(bugs) :]) > FALSE_ALARM
