"""Rules that the code keeps to: which room imports from which, docstrings, examples that run."""

import ast
import doctest
import graphlib
import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import symbayes

ROOT = Path(symbayes.__file__).parent

# The way of the data. A room (or a file beside the rooms) imports from itself and from those above
# it; a new file in a room needs no change here.
LAYERS = [
    {"kernels"},
    {"version", "cautions", "datasets", "deadline"},
    {"formula"},
    {"inputs"},
    {"fitting"},
    {"samplers"},
    {"posterior"},
    {"result"},
    {"storage"},
    {"show"},
    {"plots", "run", "regressor"},
    {""},  # the public names
    {"experiments"},
    {"cli"},
    {"__main__"},
]
LAYER = {room: i for i, rooms in enumerate(LAYERS) for room in rooms}
KERNELS_MAY_IMPORT = {"numpy", "numba", *sys.stdlib_module_names}


def module_name(path):
    """The dotted name inside the package; '' is the package itself."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


FILES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def imports(name):
    """All modules that a module imports: those of the package by dotted name after a dot."""
    path = FILES[name]
    package = path.relative_to(ROOT).parent.parts
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module)
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1], *(node.module or "").split(".")]
            base = ".".join(part for part in base if part)
            for alias in node.names:
                inner = f"{base}.{alias.name}".lstrip(".")
                found.add("." + (inner if inner in FILES else base))
    return found


def room(module):
    return module.partition(".")[0]


def test_the_walk_sees_imports():
    assert ".kernels.opcodes" in imports("formula.operators")
    assert ".inputs.problem" in imports("samplers.paper")
    assert "sympy" in imports("formula.expression")
    assert ".formula.expression" in imports("formula.formula")
    assert len(FILES) > 50


def test_a_room_imports_only_from_rooms_above_it():
    wrong = [
        f"{name} imports {module}"
        for name in FILES
        for module in imports(name)
        if module.startswith("symbayes")
        or (module.startswith(".") and LAYER[room(module[1:])] > LAYER[room(name)])
    ]
    assert not wrong


def test_no_module_imports_itself_on_a_detour():
    graph = {
        name: {module[1:] for module in imports(name) if module.startswith(".")} - {name}
        for name in FILES
        if name != ""  # its names are looked up when they are first used
    }
    graphlib.TopologicalSorter(graph).prepare()  # raises a CycleError that names the modules


def test_kernels_know_nothing_above():
    for name in FILES:
        if room(name) == "kernels":
            for module in imports(name) - {"."}:
                if module.startswith("."):
                    assert room(module[1:]) == "kernels", name
                else:
                    assert room(module) in KERNELS_MAY_IMPORT, name


def test_the_command_line_uses_no_private_attributes():
    wrong = [
        f"{name}: {ast.unparse(node)}"
        for name, path in FILES.items()
        if room(name) == "cli"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and re.match("_[a-z]", node.attr)
        and ast.unparse(node.value) not in ("self", "argparse")
    ]
    assert not wrong


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


# Examples that need more than the library itself, by module.
NEEDED = {"symbayes.show.arviz_io": "arviz", "symbayes.samplers.run.dask_executor": "distributed"}


def _examples():
    """Yield every docstring of the package that has examples."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for module in pkgutil.walk_packages(symbayes.__path__, "symbayes."):
        if not module.name.endswith("__main__"):
            for test in finder.find(importlib.import_module(module.name)):
                if test.examples:
                    yield module.name, test


@pytest.mark.parametrize(
    ("module", "example"), [pytest.param(*e, id=e[1].name) for e in _examples()]
)
def test_an_example_runs(module, example):
    if module in NEEDED and importlib.util.find_spec(NEEDED[module]) is None:
        pytest.skip(f"needs {NEEDED[module]}")
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(example).failed == 0


def test_there_are_examples():
    rooms = {name.split(".")[1] for name, _ in _examples()}
    assert {"formula", "inputs", "regressor", "datasets"} <= rooms
