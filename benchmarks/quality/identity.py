"""Whether SymPy finds two expressions equal up to a constant, in a process that can be killed."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection
from typing import Any

import sympy

#: The process may be slow to start on a busy machine; that is not counted.
_START_SECONDS = 120.0


class Decider:
    """A helper process that simplifies, started when needed and killed when it takes too long."""

    def __init__(self, seconds: float = 10.0):
        self._seconds = seconds
        self._process: Any = None
        self._connection: Connection | None = None

    def is_constant(self, expression: Any) -> bool | None:
        """Return whether an expression is a constant; None if SymPy does not say in time.

        That SymPy does not find it constant proves nothing, so the answer is never False.
        """
        connection = self._start()
        connection.send(expression)
        if connection.poll(self._seconds):
            try:
                return True if connection.recv() else None
            except EOFError:  # it died, of memory or of depth
                pass
        self.stop()
        return None

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Decider:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> Connection:
        if self._connection is not None and self._process.is_alive():
            return self._connection
        self.stop()
        # Not forked: the harness has threads.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        self._process, self._connection = process, ours
        started = time.monotonic()
        if not ours.poll(_START_SECONDS):
            self.stop()
            raise RuntimeError(f"no process for SymPy after {time.monotonic() - started:.0f} s")
        ours.recv()
        return ours


def _serve(connection: Connection) -> None:
    connection.send("ready")
    while True:
        try:
            expression = connection.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            answer = _is_constant(expression)
        except Exception:  # SymPy fails in many ways; none of them is an answer
            answer = False
        connection.send(answer)


def _is_constant(expression: Any) -> bool:
    """Try what is cheap first; stop when no column is left."""
    for simpler in (
        lambda e: e,
        sympy.expand,
        lambda e: sympy.cancel(sympy.together(e)),
        lambda e: sympy.powsimp(sympy.expand_log(sympy.expand(e), force=True)),
        sympy.simplify,
        lambda e: sympy.simplify(sympy.expand(e, trig=True)),
        lambda e: sympy.simplify(e.rewrite(sympy.exp)),
    ):
        try:
            result = simpler(expression)
        except (sympy.PolynomialError, NotImplementedError, AttributeError):
            continue
        if not result.free_symbols:
            return True
    return False
