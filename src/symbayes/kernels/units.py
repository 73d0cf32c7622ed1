"""The compiled units: how they are typed, compiled once, and called by address.

What the loops call (`_UNITS`) is handed to them as function pointers. So each unit is compiled on
its own, and all samplers share them.
"""

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numba import boolean, config, float64, int64, typeof, types, void

from .all_rows import fit_all, fit_nothing
from .chain import AllRowsScratch, Chain, Data, FewRows, Mode, OptimiseScratch, Scratch, Tables
from .evaluate import evaluate
from .front import new_front
from .ladder import Ladder, make_columns, run_tempered
from .likelihood import fit
from .moves.choice import N_MOVES
from .moves.newton import newton
from .moves.propose import propose
from .optimise import optimise
from .paper import run_paper
from .teleport import Catalogue, Odds, TeleportScratch, describe
from .tree import NODE, MoveScratch, Trees
from .tree_prior import Prior

_LOOPS = {"tempered": run_tempered, "paper": run_paper}
#: What the loops call by address.
_UNITS = {
    "evaluate": evaluate,
    "fit": fit,
    "propose": propose,
    "optimise": optimise,
    "newton": newton,
    "fit_all": fit_all,
}
_UNITS_FOR_ONE_STAGE = {name: unit for name, unit in _UNITS.items() if name != "fit_all"} | {
    "fit_nothing": fit_nothing
}
# What other processes compile, by the number of cores; the first of them compiles the loop as well.
# Chosen so that all take about as long.
_FOR_HELPERS: dict[int, list[tuple[str, ...]]] = {
    1: [],
    2: [("newton",)],
    3: [(), ("newton", "optimise")],
}
_lock = threading.RLock()
_ready: set[str] = set()
# A process that takes longer to compile its part has gone wrong.
_MOST_SECONDS = 120


def signatures() -> dict[str, Any]:
    """Return the one signature that each unit is compiled for."""

    def array(kind: Any, n_axes: int = 1) -> np.ndarray:
        return np.empty((0,) * n_axes, kind)

    def all_real(fields: Any) -> Any:
        return fields(*[array(float)] * len(fields._fields))

    def chain_of(n: int) -> types.Type:
        """Return the type of one chain (n = 1), or of several in one set of arrays (n = 2)."""
        bits, nodes, ints, reals = (array(kind, n) for kind in (np.uint64, NODE, np.int64, float))
        counts = np.empty((0,) * n + (N_MOVES,), np.int64)
        return typeof(Chain(bits, nodes, reals, reals, reals, ints, ints, ints, reals, counts))

    some_reals, some_ints = array(float), array(np.int64)
    data_example = Data(
        *[some_reals] * 3,
        0.0,
        some_reals,
        0.0,
        some_ints,
        some_reals,
        some_reals,
        0.0,
        is_part=False,
    )
    few_example = all_real(FewRows)._replace(rows=some_ints)
    moves_example = MoveScratch(some_ints, some_ints)
    scratch = typeof(
        Scratch(
            moves_example, some_ints, *[some_reals] * 9, all_real(OptimiseScratch),
            all_real(AllRowsScratch)._replace(order=some_ints),
        )
    )  # fmt: skip
    chain, chains = chain_of(1), chain_of(2)
    prior = typeof(all_real(Prior))
    priors = typeof(Prior(*[array(float, 2)] * len(Prior._fields)))
    tables = typeof(Tables(data_example, few_example, data_example))
    data, few, moves = typeof(data_example), typeof(few_example), typeof(moves_example)
    nodes, bits = typeof(array(NODE)), typeof(array(np.uint64))
    reals, ints, flags = typeof(some_reals), typeof(some_ints), typeof(array(np.bool_))
    trees = typeof(Trees(array(NODE), some_ints, 0))
    mode = typeof(Mode(1.0, 0.0, 0.0))
    ladder = typeof(
        Ladder(
            array(np.uint64), some_reals, some_ints, some_reals, *[some_ints] * 3,
            array(np.int64, 2),
        )
    )  # fmt: skip
    output = typeof(array(NODE, 2)), ints, typeof(array(float, 2))
    catalogue = typeof(
        Catalogue(
            array(np.uint64), array(NODE), some_ints, some_ints, some_reals, *[some_ints] * 3,
            *[some_reals] * 5,
        )
    )  # fmt: skip
    odds = typeof(Odds(array(float, 2), array(float, 2)))
    room = typeof(
        TeleportScratch(*[some_ints] * 3, array(np.uint64), array(np.uint64), *[some_reals] * 5)
    )

    pointer = types.FunctionType
    by_name = {}
    by_name["evaluate"] = void(nodes, int64, reals, int64, int64, int64, reals, int64, reals, ints)
    evaluating = pointer(by_name["evaluate"])
    by_name["fit"] = float64(evaluating, chain, int64, int64, data, scratch, boolean)
    fitting = pointer(by_name["fit"])
    by_name["propose"] = float64(int64, bits, trees, int64, prior, moves)
    by_name["optimise"] = void(evaluating, chain, int64, int64, few, scratch)
    by_name["newton"] = types.UniTuple(float64, 2)(
        evaluating, fitting, chain, int64, prior, data, mode, scratch
    )
    by_name["fit_all"] = float64(evaluating, chain, int64, data, scratch)
    by_name["fit_nothing"] = by_name["fit_all"]
    by_name["describe"] = void(
        typeof(array(NODE, 2)), ints, typeof(array(np.int64, 2)), bits, reals, ints,
        typeof(array(float, 2)), room,
    )  # fmt: skip
    by_name["columns"] = void(evaluating, fitting, chains, data, scratch, flags)
    common = [pointer(by_name[name]) for name in _UNITS]
    by_name["tempered"] = int64(
        *common, chains, priors, tables, float64, scratch, ladder, typeof(new_front()),
        catalogue, odds, chain, room, int64, int64, int64, int64, float64, boolean, *output,
    )  # fmt: skip
    by_name["paper"] = int64(
        *common, chain, prior, data, scratch, int64, int64, ints, *output, ints
    )
    return by_name


def _compile(units: dict[str, Any]) -> None:
    types_of = signatures()
    collecting = gc.isenabled()
    gc.disable()  # compiling makes many long-lived objects; collecting in between only costs
    try:
        for name, unit in units.items():
            if name not in _ready:
                unit.compile(types_of[name])
                unit.disable_compile()
                _remember_address(unit)
                _ready.add(name)
    finally:
        if collecting:
            gc.enable()


class _Compiled:
    """What Numba asks of a unit that it hands on as a pointer: two addresses."""

    def __init__(self, result: Any):
        self.fndesc, self.library = result.fndesc, self
        self._address = {
            name: result.library.get_pointer_to_function(name)
            for name in (self.fndesc.llvm_func_name, self.fndesc.llvm_cfunc_wrapper_name)
        }

    def get_pointer_to_function(self, name: str) -> int:
        return self._address[name]


def _remember_address(unit: Any) -> None:
    """Spare Numba from looking up the addresses of a unit at every call of a loop.

    That takes longer than a millisecond for all of them, and blocks all other threads.
    """
    (result,) = unit.overloads.values()
    known = _Compiled(result)
    unit.get_compile_result = lambda signature: known


class Loop:
    """The loop of a sampler, as one chain or ladder calls it: again and again with the same arrays.

    Numba looks at the types of all arguments at every call, which takes longer than the rest of the
    call and blocks all other threads. Here that is done once for the same arrays.
    """

    def __init__(self, loop: Any, units: dict[str, Any]):
        self._loop, self._units = loop, tuple(units.values())
        self._known: tuple = ()
        self._compiled = loop

    def __call__(self, *arguments: Any) -> int:
        """Return what the loop returns for these arguments, which follow its units."""
        if self._is_known(arguments):
            return int(self._compiled(*self._units, *arguments))
        done = self._loop(*self._units, *arguments)
        if not config.DISABLE_JIT:
            (compiled,) = self._loop.overloads.values()
            self._compiled = compiled.entry_point
        self._known = arguments
        return int(done)

    def _is_known(self, arguments: tuple) -> bool:
        """Return whether these arguments have the types of those before: the same, or numbers."""
        return len(arguments) == len(self._known) and all(
            new is old or type(new) is type(old) in (int, float, bool)
            for new, old in zip(arguments, self._known, strict=True)
        )


def is_compiled(sampler: str) -> bool:
    """Return whether the loop of a sampler is ready in this process."""
    return bool(config.DISABLE_JIT) or sampler in _ready


def is_cached(sampler: str) -> bool:
    """Return whether the loop of a sampler was compiled before, by this or another process."""
    return is_compiled(sampler) or _LOOPS[sampler]._cache.has(signatures()[sampler])


def entry_points() -> list[Any]:
    """Return all that is compiled on its own."""
    return [*_UNITS.values(), fit_nothing, describe, *_LOOPS.values()]


def cache_folder() -> str | None:
    """Return where compiled code is kept for the next process, None if it is not."""
    stats = getattr(_LOOPS["tempered"], "stats", None)
    return None if stats is None else stats.cache_path


def load(sampler: str, in_stages: bool = False) -> Loop:
    """Return the loop of a sampler, `loop(chain, prior, ...)`, compiled if it has to be.

    With `in_stages` it can judge on all rows what has passed on a part of them.
    """
    loop = _LOOPS[sampler]
    units = _UNITS if in_stages else _UNITS_FOR_ONE_STAGE
    if not config.DISABLE_JIT and not _ready.issuperset([*units, sampler]):
        with _lock:
            helpers = {} if is_cached(sampler) else _start_helpers(sampler)
            theirs = {name for names in helpers.values() for name in names}
            if helpers:
                _compile({name: units[name] for name in units if name not in theirs})
            for helper in helpers:
                _wait_for(helper)
            _compile({**units, sampler: loop})
    return Loop(loop, units)


def compile_here(*names: str) -> None:
    """Compile some of the units and loops, into the cache on disk."""
    _compile({name: (_UNITS | _LOOPS)[name] for name in names})


def _start_helpers(sampler: str) -> "dict[subprocess.Popen[bytes], tuple[str, ...]]":
    """Let other processes compile parts while this one compiles the rest; return which.

    Numba holds a lock, so that threads cannot do this. What the other processes compile is found in
    the cache afterwards; whatever goes wrong there, this process compiles itself.
    """
    parts = _FOR_HELPERS[min(_cores(), max(_FOR_HELPERS))]
    if not parts or not sys.executable or cache_folder() is None:
        return {}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    helpers = {}
    for names in [(sampler, *parts[0]), *parts[1:]]:
        program = f"from symbayes.kernels.units import compile_here as go; go(*{names!r})"
        try:
            helper = subprocess.Popen(
                [sys.executable, "-c", program],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            break
        helpers[helper] = names
    return helpers


def _wait_for(helper: "subprocess.Popen[bytes]") -> None:
    try:
        helper.wait(_MOST_SECONDS)
    except subprocess.TimeoutExpired:
        helper.kill()
        helper.wait()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load_evaluate() -> Callable[..., None]:
    """Return the compiled evaluation of a tree."""
    if not config.DISABLE_JIT and "evaluate" not in _ready:
        with _lock:
            _compile({"evaluate": evaluate})
    return evaluate


def load_make_columns() -> Callable[..., None]:
    """Return what makes the columns of chains, `make_columns(chains, ...)`, compiled."""
    if not config.DISABLE_JIT and "columns" not in _ready:
        with _lock:
            _compile({"evaluate": evaluate, "fit": fit, "columns": make_columns})
    return partial(make_columns, evaluate, fit)


def load_describe() -> Callable[..., None]:
    """Return what identifies structures, compiled."""
    if not config.DISABLE_JIT and "describe" not in _ready:
        with _lock:
            _compile({"describe": describe})
    return describe
