"""How kernels are compiled: one place for the flags, one for the cache.

What a cold start costs was measured, and it shaped the code:

* Numba optimises a function together with everything it calls, and then again with every caller.
  So the call tree is cut into a few entry points that call each other by address (`units.py`),
  and long functions with one caller are merged into it before compilation (`merged`). That also
  saves the hundred and more registers and stack slots that a call with several named tuples fills.
* Only entry points are cached; their file holds all the machine code they need (`code_cache.py`).
  Numba's own stamp of a cache file does not notice a change in a callee's file, so there is
  another: a hash over the sources of an entry point and of all that it imports.
* Kernels allocate nothing, so Numba's reference counting is off (`_nrt`). That alone made a step
  1.7 times faster.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

from numba import config, njit
from numba.core.registry import cpu_target

from .code_cache import CodeCache

# Numba imports some sixty modules of its own when the first function is compiled or loaded. Done
# here, they are part of the import, and a first fit is not charged with them.
if not config.DISABLE_JIT:
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()

# Division by zero gives inf or nan as in NumPy, instead of an exception path in every function.
_COMMON = {"error_model": "numpy", "nogil": True, "_nrt": False, "fastmath": {"contract"}}
# Functions that Python never calls need neither of the two wrappers Numba makes by default.
_INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def kernel(function):
    """Compile a function that only other kernels call."""
    return njit(**_COMMON, **_INNER)(function)


def merged(function):
    """Compile a function as part of its caller; for long ones with a single caller."""
    return njit(**_COMMON, **_INNER, inline="always")(function)


def inlined(function):
    """Compile an element-wise formula that has to melt into the loop around it."""
    return njit(**_COMMON, **_INNER, forceinline=True)(function)


def reduction(function):
    """Compile a sum over rows: terms may be reordered, nan and inf still count."""
    flags = {**_COMMON, "fastmath": {"contract", "reassoc"}}
    return njit(**flags, **_INNER)(function)


def entry_point(function):
    """Compile a function that is called from Python or by address, and cache its machine code."""
    dispatcher = njit(**_COMMON)(function)
    if not config.DISABLE_JIT:
        # Private to Numba: a version that does not know it would compile in every process.
        dispatcher._cache = CodeCache(function, source_hash(Path(function.__code__.co_filename)))
    return dispatcher


@cache
def source_hash(file: Path | None = None) -> str:
    """Return a hash over the sources of a file and of those it imports, or else of all kernels."""
    folder = Path(__file__).parent
    files = folder.rglob("*.py") if file is None else _with_imports(file, folder)
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return digest.hexdigest()


def _with_imports(file: Path, folder: Path) -> set[Path]:
    """Return a file of the folder and all that it imports from there, also through others."""
    found, todo = {file}, [file]
    while todo:
        new = _imported(todo.pop()) - found
        todo += new
        found |= new
    return {path for path in found if path.is_relative_to(folder)}


@cache
def _imported(file: Path) -> frozenset[Path]:
    """Return the files that a file names in relative imports."""
    found = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.level:
            start = file.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            found.add(start.with_suffix(".py"))
            found |= {start / f"{alias.name}.py" for alias in node.names}
    return frozenset(path for path in found if path.is_file())
