"""Compiling: once, with the help of a second process, whatever goes wrong there."""

import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numba import config

from symbayes.kernels import compiling, units
from symbayes.samplers.ladder import Replicas

from ..samplers.test_tempered import target

# Loads a sampler with an empty cache; says how it was helped and that it works.
PROGRAM = """
import sys
from pathlib import Path
from symbayes.kernels import compiling, units
units._cores = lambda: {cores}
sys.executable = {executable!r}
helpers = []
begin = units._start_helpers
units._start_helpers = lambda name: helpers.append(begin(name)) or helpers[-1]
units.load("paper")
print(units.is_compiled("paper"), [h.returncode for h in helpers[0]])
units._ready.clear()
print(units.is_cached("paper"))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cores", "executable", "helped"),
    [
        (2, sys.executable, "[0]"),
        (8, sys.executable, "[0, 0]"),
        (8, "/bin/false", "[1, 1]"),
    ],
)
def test_other_processes_help_but_are_not_needed(tmp_path, cores, executable, helped, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(cores=cores, executable=executable)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.stdout.split("\n")[:2] == [f"True {helped}", "True"], done.stderr


@pytest.mark.parametrize(
    ("cores", "executable"), [(1, sys.executable), (2, ""), (2, "/no/such/python")]
)
def test_no_other_process_where_none_can_help(monkeypatch, cores, executable):
    monkeypatch.setattr(units, "_cores", lambda: cores)
    monkeypatch.setattr(units, "cache_folder", lambda: "somewhere")
    monkeypatch.setattr(sys, "executable", executable)
    assert units._start_helpers("paper") == {}


def test_a_second_process_that_hangs_is_ended(monkeypatch):
    monkeypatch.setattr(units, "_MOST_SECONDS", 0.05)
    helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    units._wait_for(helper)
    assert helper.returncode not in (None, 0)


def test_what_is_cached_needs_no_help(monkeypatch):
    monkeypatch.setattr(units, "_ready", set(units._ready) - {"tempered"})
    monkeypatch.setattr(units, "is_cached", lambda sampler: True)
    monkeypatch.setattr(units, "_compile", lambda named: None)
    monkeypatch.setattr(units, "_start_helpers", lambda sampler: pytest.fail("not needed"))
    units.load("tempered")


@pytest.mark.parametrize("first", [False, True])
def test_what_stages_need_is_compiled_whichever_comes_first(monkeypatch, first):
    compiled = []
    monkeypatch.setattr(units, "_ready", set())
    monkeypatch.setattr(units, "is_cached", lambda sampler: True)
    monkeypatch.setattr(units.config, "DISABLE_JIT", False)

    def compile_all(named):
        compiled.extend(named.keys() - units._ready)
        units._ready.update(named)

    monkeypatch.setattr(units, "_compile", compile_all)
    for in_stages in (first, not first, first):
        units.load("tempered", in_stages)
    assert sorted(compiled) == sorted([*units._UNITS, "fit_nothing", "tempered"])


def test_types_are_looked_at_once_for_the_same_arrays(monkeypatch):
    calls = []

    class Compiled:
        def __init__(self):
            self.overloads = {"types": SimpleNamespace(entry_point=partial(self.note, "quick"))}

        def __call__(self, *arguments):
            return self.note("checked", *arguments)

        def note(self, way, *arguments):
            calls.append((way, *arguments))
            return len(calls)

    monkeypatch.setattr(units.config, "DISABLE_JIT", 0)
    first, second = np.zeros(3), np.zeros(3)
    loop = units.Loop(Compiled(), {"fit": "unit"})
    assert [
        loop(first, 5, 2.0), loop(first, 6, 3.0), loop(first, 6, 3), loop(first, 6, 3.0),
        loop(second, 6, 3.0), loop(second, 6, 3.0), loop(second, 6), loop(second, np.int64(6)),
    ] == list(range(1, 9))  # fmt: skip
    ways = ["checked", "quick", "checked", "checked", "checked", "quick", "checked", "checked"]
    assert [call[0] for call in calls] == ways
    assert all(call[1] == "unit" for call in calls)
    assert calls[1][2] is first
    assert calls[1][3:] == (6, 3.0)


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="compiled code is what is tested")
def test_a_ladder_with_other_arrays_is_looked_at_again():
    """The quick way would read numbers of another type, or in another order, as they are not."""
    ladder = Replicas(target(), np.random.SeedSequence(0), np.array([1.0, 0.5]))
    ladder.run(5, 1, 4)
    ladder.run(5, 1, 4)
    good = ladder.output
    ladder.output = (good[0], good[1], good[2].astype(np.float32))
    with pytest.raises(TypeError):
        ladder.run(5, 1, 4)
    ladder.output = (good[0], good[1], np.asfortranarray(good[2]))
    with pytest.raises(TypeError):
        ladder.run(5, 1, 4)
    ladder.output = good
    assert ladder.run(5, 1, 4) == 4


def test_compiled_code_depends_on_what_it_imports_and_on_nothing_else():
    kernels = Path(compiling.__file__).parent

    def files(name):
        found = compiling._with_imports(kernels / name, kernels)
        return {path.relative_to(kernels).as_posix() for path in found}

    assert files("evaluate.py") >= {"evaluate.py", "vector_math.py", "opcodes.py", "compiling.py"}
    assert "likelihood.py" not in files("evaluate.py")
    proposing = files("moves/propose.py")
    assert proposing >= {"moves/insert_delete.py", "moves/choice.py", "tree_prior.py"}
    assert "moves/newton.py" not in proposing
    # Whatever Python imports for it is among them.
    for unit in units.entry_points():
        module = sys.modules[getattr(unit, "py_func", unit).__module__]
        own = {
            value.py_func.__code__.co_filename
            for value in vars(module).values()
            if hasattr(value, "py_func")
        }
        name = Path(module.__file__).relative_to(kernels).as_posix()
        assert {Path(file).relative_to(kernels).as_posix() for file in own} <= files(name)
    hashes = {compiling.source_hash(kernels / name) for name in ("evaluate.py", "moves/propose.py")}
    assert len(hashes | {compiling.source_hash()}) == 3
