"""Peak memory of each method on the same task, each run in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pandas as pd

from . import POPULATIONS
from .methods import fitted, gplearn_regressor, regressor
from .records import Record
from .runs import Effort, Experiment, Job, Section, Setting, Work
from .simulated import grouped, integer_seed, mean_and_spread, over, simulate, wide


def _work(job: Job, setting: Setting) -> Record:
    """Fit a task in a fresh process; keep its peak memory and what it had before the fit."""
    request = [job.method, job.task, job.replication, job.seed, asdict(setting.effort)]
    answer = subprocess.run(
        [sys.executable, "-m", "symbayes.experiments.memory", json.dumps(request)],
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        raise RuntimeError(f"measuring the memory of {job.method} failed:\n{answer.stderr}")
    return json.loads(answer.stdout.splitlines()[-1])


def measure(method: str, task: str, replication: int, seed: int, effort: Effort) -> Record:
    """Fit here; return the peak memory of this process before and after, in megabytes."""
    data = simulate(task, replication, seed)
    fit_seed = integer_seed(seed, task, replication, method, "memory")
    if method in POPULATIONS:
        # Its defaults: without low_memory it keeps the ancestors of the last generation.
        model = gplearn_regressor(
            POPULATIONS[method], effort.generations, fit_seed, low_memory=False
        )
        fit = model.fit
    else:
        fit = partial(fitted, regressor(method, effort, fit_seed))
        # Load the compiled code first: it is there before any data.
        from ..kernels import units

        units.load("paper" if "paper" in method else "tempered")
    before = _peak()
    fit(data.X, data.y)
    peak = _peak()
    return {"before": before, "peak": peak, "fit": peak - before}


def _peak() -> float:
    """Return the most memory this process has held so far, in megabytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not getrusage, which on Linux starts with the peak of the process that started this one.
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        if found is not None:
            return int(found[1]) * 1024 / 1e6
    try:
        import resource
    except ImportError:
        raise RuntimeError(
            "peak memory can only be measured on Linux and macOS; leave out the experiment memory"
        ) from None
    unit = 1e6 if sys.platform == "darwin" else 1e3  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


class Memory(Experiment):
    """Peak memory."""

    name = "memory"

    def jobs(self, setting: Setting) -> list[tuple[Job, Work]]:
        work = partial(_work, setting=setting)
        return [
            (setting.job("memory", method, task, replication), work)
            for replication in range(setting.effort.memory_replications)
            for task in setting.tasks
            for method in setting.methods
        ]

    def summarise(self, records: list[Record], setting: Setting) -> Section:
        rows = [
            {
                "task": common["task"],
                "measure": measure,
                "method": common["method"],
                **mean_and_spread(record[measure] for record in group),
            }
            for common, group in grouped(records, "task", "method")
            for measure in ("fit", "peak")
        ]
        table = pd.DataFrame(rows)
        text = (
            f"Megabytes ({over(setting.effort.memory_replications)} of each task): by how much the "
            "peak of a fresh process grew during the fit (`fit`), and the peak itself (`peak`), "
            "which is mostly Python, NumPy and compiled code. The paper claims less memory than "
            "genetic programming without figures.\n\n" + wide(table, ["task", "measure"], "method")
        )
        return Section(text, {"memory": table})


if __name__ == "__main__":
    method, task, replication, seed, effort = json.loads(sys.argv[1])
    print(json.dumps(measure(method, task, replication, seed, Effort(**effort))))
