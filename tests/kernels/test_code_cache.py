"""Compiled code on disk: whatever happened to it there, a call gives its value."""

import importlib.util
import random
import resource
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from numba import config, float64

from symbayes.kernels import code_cache
from symbayes.kernels.compiling import entry_point

from ..storage.mutations import raw

SOURCE = """
def double(x):
    return 2.0 * x

def treble(x):
    return 3.0 * x
"""
SIGNATURE = float64(float64)
compiled = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="compiled code is what is tested")


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(code_cache, "_said", set())


@pytest.fixture
def functions(tmp_path, monkeypatch):
    """Return a module of two functions whose compiled code is kept in a folder of this test."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "kept"))
    path = tmp_path / "functions.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("functions", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "functions", module)  # where Numba looks for what it loads
    spec.loader.exec_module(module)
    return module


def call(function, value=21.0):
    """Compile or load as a new process would; return the value and whether it was loaded."""
    unit = entry_point(function)
    unit.compile(SIGNATURE)
    return unit(value), bool(sum(unit.stats.cache_hits.values()))


def kept(function):
    """Return the one file in which the code of a function is kept."""
    (path,) = Path(config.CACHE_DIR).rglob(f"*.{function.__name__}-*.nbc")
    return path


@compiled
def test_code_is_loaded_by_the_next_process(functions):
    assert call(functions.double) == (42.0, False)
    assert call(functions.double) == (42.0, True)
    assert [path.suffix for path in kept(functions.double).parent.iterdir()] == [".nbc"]


def flipped(data):
    """Return data with one bit of the machine code changed."""
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


DAMAGE = {
    "cut off": lambda data: data[:-100],
    "cut off in the head": lambda data: data[:20],
    "empty": lambda data: b"",
    "garbage": lambda data: random.Random(0).randbytes(5000),
    "text": lambda data: b"not compiled code\n",
    "one bit": flipped,
    "more": lambda data: data + b"\0",
}


@compiled
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_code_is_compiled_again(functions, damage):
    call(functions.double)
    path = kept(functions.double)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    with pytest.warns(RuntimeWarning, match=r"kept in .* of no use .* compiled again") as said:
        assert call(functions.double) == (42.0, False)
    assert len(said) == 1
    assert "\n" not in str(said[0].message)
    assert call(functions.double) == (42.0, True)


@compiled
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_code_that_another_process_compiles_again_is_said_here(functions, damage):
    call(functions.double)
    cache = entry_point(functions.double)._cache
    assert cache.has(SIGNATURE)
    path = kept(functions.double)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    with pytest.warns(RuntimeWarning, match=r"kept in .* of no use"):
        assert not cache.has(SIGNATURE)


@compiled
def test_many_damaged_files_are_said_once(functions):
    for function in (functions.double, functions.treble):
        call(function)
        kept(function).write_bytes(b"")
    with pytest.warns(RuntimeWarning) as said:
        assert [call(functions.double)[0], call(functions.treble)[0]] == [42.0, 63.0]
    assert len(said) == 1


@compiled
@pytest.mark.parametrize("other", ["code of another function", "code of other sources"])
def test_code_of_something_else_is_not_taken_for_it(functions, other, monkeypatch):
    call(functions.double)
    call(functions.treble)
    if other == "code of another function":
        kept(functions.double).write_bytes(kept(functions.treble).read_bytes())
    else:
        monkeypatch.setattr("symbayes.kernels.compiling.source_hash", lambda file: "changed")
    assert call(functions.double) == (42.0, False)
    assert call(functions.double) == (42.0, True)


@compiled
def test_a_folder_in_place_of_the_file(functions):
    call(functions.double)
    path = kept(functions.double)
    path.unlink()
    path.mkdir()
    with pytest.warns(RuntimeWarning) as said:
        assert call(functions.double) == (42.0, False)
    assert [str(one.message).split(" (")[0].split(" in ")[0] for one in said] == [
        "compiled code that was kept",
        "compiled code cannot be kept",
    ]
    assert list(path.parent.iterdir()) == [path]


@compiled
@pytest.mark.parametrize("where", ["anywhere", "in the folder of Numba"])
def test_no_folder_can_be_written_to(functions, where, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    blocked = tmp_path / "file" / "folder"
    if where == "anywhere":
        monkeypatch.setattr(config, "CACHE_DIR", str(blocked))
        (tmp_path / "__pycache__").touch()
        for name in ("HOME", "XDG_CACHE_HOME"):
            monkeypatch.setenv(name, str(blocked))
    unit = entry_point(functions.double)
    if where != "anywhere":  # it was there when the module was imported
        folder = Path(unit.stats.cache_path)
        folder.rmdir()
        folder.touch()
    with pytest.warns(RuntimeWarning, match=r"cannot be kept.*; let NUMBA_CACHE_DIR name") as said:
        unit.compile(SIGNATURE)
    assert len(said) == 1
    assert unit(21.0) == 42.0
    assert (unit.stats.cache_path is None) == (where == "anywhere")


@contextmanager
def largest_file(n_bytes):
    """Let every write beyond this many bytes fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@compiled
@pytest.mark.parametrize("n_bytes", [0, 1000])
def test_a_full_disk(functions, n_bytes):
    unit = entry_point(functions.double)
    with (
        pytest.warns(RuntimeWarning, match=r"cannot be kept in .* \(File too large\)") as said,
        largest_file(n_bytes),
    ):
        unit.compile(SIGNATURE)
    assert len(said) == 1
    assert unit(21.0) == 42.0
    assert list(Path(unit.stats.cache_path).iterdir()) == []


@pytest.mark.filterwarnings("ignore:compiled code")
@pytest.mark.parametrize("seed", range(3))
def test_no_mutation_of_a_file_is_read(functions, seed):
    cache = code_cache.CodeCache(functions.double, "stamp")
    cache._write(SIGNATURE, random.Random(seed).randbytes(3000))
    original = Path(cache._path()).read_bytes()
    assert cache.has(SIGNATURE)
    rng = random.Random(seed)
    for _ in range(500):
        mutate = rng.choice([raw.flip_bits, raw.overwrite, raw.truncate, raw.insert, raw.swap])
        data = mutate(rng, original)
        Path(cache._path()).write_bytes(data)
        assert cache.has(SIGNATURE) == (data == original), mutate.__name__


FIT = """
import sys, warnings
import numpy as np
from symbayes import BayesianSymbolicRegressor
from symbayes.kernels import units
X = np.random.default_rng(0).uniform(1, 3, (30, 2))
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    model = BayesianSymbolicRegressor(
        ["+", "*"], draws=20, tune=20, chains=1, n_jobs=1, random_state=0
    ).fit(X, X[:, 0] * X[:, 1])
print(model.score(X, X[:, 0] * X[:, 1]) > 0.999, len(
    [one for one in said if "compiled code" in str(one.message)]
))
"""


@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["cut off", "full disk"])
def test_a_fit_does_without(tmp_path, trouble, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    def fit(limit=resource.RLIM_INFINITY):
        done = subprocess.run(
            [sys.executable, "-c", FIT], capture_output=True, text=True, timeout=300,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    if trouble == "cut off":
        assert fit() == ["True", "0"]
        # The one that other processes compile, and one of those that this one does: to compile all
        # of them again shows no more.
        (loop,) = tmp_path.rglob("ladder.*.nbc")
        smallest = min(tmp_path.rglob("*.nbc"), key=lambda path: path.stat().st_size)
        for path in (loop, smallest):
            path.write_bytes(path.read_bytes()[:-1000])
        assert loop != smallest
        assert fit() == ["True", "1"]
        assert fit() == ["True", "0"]
    else:
        assert fit(limit=64 * 1024) == ["True", "1"]
        assert list(tmp_path.rglob("*.tmp")) == []
