"""Rules that the code keeps to: who imports whom, sizes, docstrings, examples that run."""

import ast
import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import sys
from pathlib import Path

import pytest

import symbayes

ROOT = Path(symbayes.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# From the left to the right; a module imports only from its left, not from its own level.
ORDER = [
    ["kernels"],
    ["cautions", "operators", "datasets", "evaluation", "fitted", "quantiles", "selection"],
    [
        "checksums",
        "column_types",
        "deadline",
        "regular_file",
        "stacking",
        "stored_zip",
        "strict_json",
        "version",
        "whole_file",
    ],
    ["archive", "known_terms", "normal_form", "prior", "refine", "refit", "simple_numbers"],
    ["column_weights", "expression", "parts", "skeleton", "validation", "polish"],
    ["constants", "equivalence", "folding", "parser", "prediction", "printing", "term_trees"],
    ["latex", "leave_one_out", "numpy_code", "powers", "rounding", "simplification"],
    ["mathml", "state_prior"],
    ["formula", "problem", "trace"],
    [
        "convergence",
        "guesses",
        "samplers.building",
        "samplers.factors",
        "samplers.ladder_state",
        "samplers.noise_floor",
    ],
    ["samplers.equal_parts", "samplers.pairs", "samplers.rational", "samplers.targets"],
    ["samplers.library", "samplers.turns"],
    ["samplers.running"],
    ["samplers.ladder", "samplers.power_law", "samplers.workbench"],
    ["samplers.elsewhere"],
    ["samplers.dask_workers", "samplers.joblib_workers"],
    ["samplers.placing"],
    [
        "samplers.exactness",
        "samplers.pause",
        "samplers.rounds",
        "samplers.seekers",
        "samplers.telling",
    ],
    ["samplers.shortest"],
    ["samplers.search"],
    ["samplers.paper", "samplers.tempered"],
    ["block_fitting", "diagnostics", "verdict"],
    ["fitting"],
    ["grouping", "parameters", "stages"],
    ["listing", "posing", "posterior", "warm_start"],
    [
        "arviz_io",
        "combining",
        "notebook",
        "plain_values",
        "plots.canvas",
        "posterior_parts",
        "progress",
        "report.markup",
        "stored_ladders",
        "stored_records",
    ],
    ["stored_parameters", "stored_runs"],
    ["plots.chains", "plots.formulas", "plots.rows", "plots.tree", "report.figures", "storage"],
    ["plots", "report.answer"],
    ["report.detail", "report.trust"],
    ["report"],
    ["answers", "display"],
    ["chain_answers", "checkpoint"],
    ["runs"],
    ["regressor"],
    ["loading"],
    [""],  # the public names
    [
        "experiments.effort",
        "experiments.published",
        "experiments.quick_gplearn",
        "experiments.records",
    ],
    ["experiments.genetic", "experiments.jobs", "experiments.prices", "experiments.simulation"],
    ["experiments.luck", "experiments.methods", "experiments.tables"],
    ["experiments.experiment"],
    [
        "experiments.accuracy",
        "experiments.length",
        "experiments.memory",
        "experiments.signals",
        "experiments.training",
    ],
    ["experiments.reproduce"],
    [
        "commands",
        "commands.statuses",
        "commands.wording",
        "commands.models",
    ],
    ["commands.answer_text", "commands.messages"],
    ["commands.destinations", "commands.facts", "commands.parsing", "commands.reading"],
    ["commands.columns", "commands.delivery"],
    ["commands.fit", "commands.predict", "commands.reproduce", "commands.show"],
    ["commands.demo", "commands.info", "commands.report", "commands.resume"],
    ["commands.arguments"],
    ["commands.running"],
    ["cli"],
    ["__main__"],
]
LEVEL = {name: i for i, names in enumerate(ORDER) for name in names}
KERNELS_MAY_IMPORT = {"numpy", "numba", *sys.stdlib_module_names}


def module_name(path):
    """The dotted name inside the package; '' is the package itself."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports(path):
    """All modules a file imports: those of the package by dotted name after a dot."""
    package = path.relative_to(ROOT).parent.parts
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module)
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1], *(node.module or "").split(".")]
            base = [part for part in base if part]
            for alias in node.names:
                inner = ROOT.joinpath(*base, alias.name)
                is_module = inner.with_suffix(".py").exists() or inner.is_dir()
                found.add("." + ".".join([*base, alias.name] if is_module else base))
    return found


def level(module):
    while module not in LEVEL and "." in module:
        module = module.rpartition(".")[0]
    return LEVEL[module]


def name_of(path):
    return str(path.relative_to(ROOT))


def test_the_walk_sees_imports():
    assert ".kernels.opcodes" in imports(ROOT / "operators.py")
    assert ".samplers.ladder" in imports(ROOT / "samplers" / "search.py")
    assert ".problem" in imports(ROOT / "samplers" / "paper.py")
    assert "sympy" in imports(ROOT / "expression.py")
    assert ".expression" in imports(ROOT / "formula.py")
    assert level("kernels.moves.grow") == 0


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_module_imports_only_from_its_left(path):
    name = module_name(path)
    if name == "experiments":
        own = level("experiments.effort")
    elif name in ("samplers", "kernels") or name.startswith("kernels."):
        own = level("kernels") if "kernels" in name else level("samplers.running")
    else:
        own = level(name)
    for module in imports(path):
        assert not module.startswith("symbayes"), f"{name}: import {module} relatively"
        if module.startswith("."):
            other = level(module[1:])
            inside_kernels = own == other == LEVEL["kernels"]
            assert other < own or inside_kernels, f"{name} imports {module}"


@pytest.mark.parametrize("path", sorted((ROOT / "kernels").rglob("*.py")), ids=name_of)
def test_kernels_know_nothing_above(path):
    for module in imports(path):
        if module.startswith("."):
            assert module.startswith(".kernels"), module
        else:
            assert module.partition(".")[0] in KERNELS_MAY_IMPORT, module


def test_public_names_are_documented():
    assert len(set(symbayes.__all__)) == len(symbayes.__all__)
    for name in symbayes.__all__:
        public = getattr(symbayes, name)
        if not inspect.isclass(public):
            continue
        assert public.__doc__, name
        assert not public.__doc__.startswith(f"{name}("), f"{name} has only a generated docstring"
        for attribute, value in vars(public).items():
            if callable(value) and not attribute.startswith("_"):
                assert value.__doc__, f"{name}.{attribute}"


def test_parameters_are_documented():
    for kind in (
        symbayes.BayesianSymbolicRegressor,
        symbayes.TreePrior,
        symbayes.NoisePrior,
        symbayes.TermsPrior,
        symbayes.TemperedSampler,
        symbayes.PaperSampler,
        symbayes.Formula,
    ):
        for parameter in inspect.signature(kind).parameters:
            assert parameter in kind.__doc__.partition("Parameters")[2], f"{kind}: {parameter}"


def test_the_two_dictionaries_are_as_they_are_described():
    assert all(name == row.name for name, row in symbayes.OPERATORS.items())
    assert set().union(*symbayes.OPERATOR_SETS.values()) <= set(symbayes.OPERATORS)


MODULES = [
    module.name
    for module in pkgutil.walk_packages(symbayes.__path__, "symbayes.")
    if not module.name.endswith("__main__")
]


# Modules whose examples need more than the library itself.
NEEDED = {"symbayes.arviz_io": "arviz", "symbayes.samplers.dask_workers": "distributed"}


@pytest.mark.parametrize("name", ["symbayes", *MODULES])
def test_examples_run(name):
    if name in NEEDED and importlib.util.find_spec(NEEDED[name]) is None:
        pytest.skip(f"needs {NEEDED[name]}")
    results = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    assert results.failed == 0


def test_there_are_examples():
    for name in (
        "operators", "parser", "printing", "latex", "mathml", "numpy_code", "equivalence",
        "formula", "prior", "skeleton", "regressor", "datasets",
    ):  # fmt: skip
        finder = doctest.DocTestFinder()
        found = finder.find(importlib.import_module(f"symbayes.{name}"))
        assert any(test.examples for test in found), name
