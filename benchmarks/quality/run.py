"""Run methods on problems and store the results; finished runs are skipped.

python -m benchmarks.quality.run --sweep peers              all runs of one table of the report
python -m benchmarks.quality.run --suite feynman --every 3 --noise 0 0.01 --methods symbayes
python -m benchmarks.quality.run --suite classic --only Nguyen-7 R1 --again
"""

from __future__ import annotations

import argparse
import os
import queue
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks import environment

from . import jobs, suites
from .identity import Decider
from .judge import figures
from .problems import DATA, MissingData
from .registry import METHODS, Method, commit, version
from .store import RESULTS, Record, Store, key_of
from .sweeps import SWEEPS


@dataclass(frozen=True)
class Task:
    """One run that is to be made."""

    suite: str
    name: str
    place: int
    """Among the problems of its suite."""
    noise: float
    seed: int
    method: Method


@dataclass(frozen=True)
class Session:
    """What all runs of a call share."""

    seconds: float
    cores: int
    data: Path
    store: Store
    versions: dict[str, str]
    commit: str
    judging: threading.Lock = field(default_factory=threading.Lock)
    """SymPy is not thread-safe; suites that draw formulas use it as well."""

    def identity(self, task: Task) -> Record:
        """Return what identifies a run."""
        return {
            "suite": task.suite,
            "problem": task.name,
            "noise": task.noise,
            "seed": task.seed,
            "method": task.method.name,
            "version": self.versions[task.method.name],
            "seconds": self.seconds,
            "cores": self.cores,
        }

    def perform(self, task: Task, decider: Decider) -> Record:
        """Run, judge and keep; a method that fails is kept with the reason."""
        record = self.identity(task) | {
            "place": task.place,
            "commit": self.commit,
            "date": environment.now(),
            "load": environment.load(),
            "cpu": environment.cpu_name(),
            "failure": None,
        }
        with self.judging:
            problem = suites.load(task.suite, task.name, task.noise, task.seed, self.data)
        try:
            python = jobs.interpreter(task.method)
            result = jobs.run(task.method, python, problem, self.seconds, self.cores)
            with self.judging:
                record |= figures(problem, result, decider)
        except jobs.RunFailed as error:
            record["failure"] = str(error)
        except (KeyError, IndexError, TypeError, ValueError, RecursionError) as error:
            record["failure"] = f"result cannot be read: {type(error).__name__}: {error}"
        return record


def plan(options: argparse.Namespace) -> list[Task]:
    """Return all runs that were asked for, a problem's methods one after the other."""
    places = {name: i for i, name in enumerate(suites.names(options.suite, options.data))}
    names = options.only or list(places)[:: options.every]
    unknown = set(names) - set(places)
    if unknown:
        raise SystemExit(f"{options.suite} has no problem {', '.join(sorted(unknown))}")
    return [
        Task(options.suite, name, places[name], noise, seed, METHODS[method])
        for seed in range(options.first_seed, options.first_seed + options.seeds)
        for name in names
        for noise in suites.noises(options.suite, name, options.noise)
        for method in options.methods
    ]


def core_sets(n_sets: int, cores: int) -> list[set[int] | None]:
    """Return the cores of each slot, none of them in two slots; None: not bound to any."""
    if not hasattr(os, "sched_getaffinity"):
        return [None] * n_sets
    available = sorted(os.sched_getaffinity(0))
    if n_sets * cores > len(available):
        if n_sets > 1:
            raise SystemExit(f"{n_sets} jobs of {cores} cores: there are {len(available)} cores")
        print(f"{cores} cores were asked for, there are {len(available)}", file=sys.stderr)
    return [set(available[i * cores : (i + 1) * cores]) for i in range(n_sets)]


def work(session: Session, tasks: Sequence[Task], n_jobs: int) -> None:
    """Work through the tasks, `n_jobs` of them at a time."""
    waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    stopped, writing = threading.Event(), threading.Lock()
    errors: list[BaseException] = []
    done = 0

    def slot(cores: set[int] | None) -> None:
        nonlocal done
        if cores is not None:
            # Of this thread; processes that it starts inherit it.
            os.sched_setaffinity(0, cores)
        with Decider() as decider:
            while not stopped.is_set():
                try:
                    task = waiting.get_nowait()
                except queue.Empty:
                    return
                try:
                    record = session.perform(task, decider)
                except BaseException as error:
                    errors.append(error)
                    stopped.set()
                    return
                if stopped.is_set():
                    return  # killed by us, so it is not to blame
                with writing:
                    session.store.append(record)
                    done += 1
                    print(f"{done} of {len(tasks)}: {describe(record)}", flush=True)

    threads = [threading.Thread(target=slot, args=(c,)) for c in core_sets(n_jobs, session.cores)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)
    except KeyboardInterrupt:
        stopped.set()
        jobs.stop_all()
        for thread in threads:
            thread.join()
        print("stopped; the same command continues from here", file=sys.stderr)
        raise
    if errors:
        raise errors[0]


def describe(record: Record) -> str:
    """Return one line on a finished run."""
    head = (
        f"{record['suite']} {record['problem']} noise {record['noise']:g} seed {record['seed']} "
        f"{record['method']}: "
    )
    if record["failure"]:
        return head + record["failure"]
    parts: list[Any] = []
    if "right" in record:
        parts.append("right" if record["right"] else record["reason"])
        parts.append("SRBench yes" if record["srbench"] else "SRBench no")
        parts.append(f"{record['nodes']} of {record['truth_nodes']} nodes")
    else:
        parts.append(f"{record['nodes']} nodes")
    parts.append("R2 none" if record["r2"] is None else f"R2 {record['r2']:.4f}")
    if record["coverage"] is not None:
        parts.append(f"covered {record['coverage']:.0%}")
    parts.append(f"found at {record['found_at']:.1f} of {record['seconds_used']:.1f} s")
    return head + ", ".join(parts)


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options, filled in from the sweep where one is named."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--sweep", choices=SWEEPS, help="options of one table of the report; others override them")
    add("--suite", choices=suites.SUITES)
    add(
        "--noise",
        nargs="+",
        type=float,
        default=[0.0],
        help="noise levels, as a share of the root mean square of y",
    )
    add("--every", type=int, default=1, help="1: all problems, 3: every third problem")
    add("--only", nargs="+", metavar="NAME", help="only these problems")
    add("--methods", nargs="+", choices=METHODS, default=["symbayes"], metavar="METHOD")
    add("--seconds", type=float, default=60.0)
    add("--cores", type=int, default=2, help="for each run")
    add("--seeds", type=int, default=1, help="number of seeds")
    add("--first-seed", type=int, default=0)
    add("--jobs", type=int, default=1, help="runs at the same time, each on its own cores")
    add("--again", action="store_true", help="repeat runs that are stored already")
    add("--label", help="version of symbayes to file results under, instead of a hash of its code")
    add("--data", type=Path, default=DATA)
    add("--results", type=Path, default=RESULTS)
    options = parser.parse_args(words)
    if options.sweep:
        preset = parser.parse_args(SWEEPS[options.sweep].options)
        options = parser.parse_args(words, namespace=preset)
    if not options.suite:
        parser.error("say what to run with --suite or --sweep")
    return options


def _interrupt(*_: object) -> None:
    """Stop as Ctrl-C does; in the background a shell may have switched that signal off."""
    raise KeyboardInterrupt


def main(words: Sequence[str] | None = None) -> int:
    """Run what was asked for and has not been run."""
    options = arguments(words)
    environment.prepare()
    signal.signal(signal.SIGTERM, _interrupt)
    versions = {name: version(METHODS[name]) for name in options.methods}
    started_with = versions.get("symbayes")
    if options.label and "symbayes" in versions:
        versions["symbayes"] = options.label
    store = Store(options.suite, options.results)
    session = Session(options.seconds, options.cores, options.data, store, versions, commit())
    try:
        everything = plan(options)
    except MissingData as error:
        print(error, file=sys.stderr)
        return 1
    tasks = [
        task for task in everything if options.again or key_of(session.identity(task)) not in store
    ]
    print(f"{len(everything)} runs, {len(everything) - len(tasks)} of them done", flush=True)
    try:
        with threadpool_limits(1):  # judging must not disturb other runs
            work(session, tasks, max(1, min(options.jobs, len(tasks))))
    except KeyboardInterrupt:
        return 130
    if "symbayes" in versions and version(METHODS["symbayes"]) != started_with:
        print("the code of symbayes changed during these runs", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
