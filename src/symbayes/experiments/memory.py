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

from .effort import Effort
from .experiment import Experiment, Section, Setting
from .genetic import regressor as gplearn
from .jobs import Job, Work
from .methods import METHODS, POPULATIONS, fitted, regressor
from .records import Record
from .simulation import integer_seed, simulate
from .tables import mean_and_spread, over, wide


class NoMeasure(RuntimeError):
    """The system does not tell how much memory a process took."""


def _work(job: Job, setting: Setting) -> Record:
    """Fit a task in a fresh process; keep its peak memory and what it had before the fit."""
    request = json.dumps(
        {
            "method": job.method,
            "task": job.task,
            "replication": job.replication,
            "seed": job.seed,
            "effort": asdict(setting.effort),
        }
    )
    answer = subprocess.run(
        [sys.executable, "-m", "symbayes.experiments.memory", request],
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
        fit = gplearn(POPULATIONS[method], effort.generations, fit_seed, low_memory=False).fit
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
        raise NoMeasure(
            "peak memory can only be measured on Linux and macOS; leave out the experiment memory"
        ) from None
    unit = 1e6 if sys.platform == "darwin" else 1e3  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


class Memory(Experiment):
    """Peak memory."""

    name = "memory"
    title = "Peak memory"

    def jobs(self, setting: Setting) -> list[tuple[Job, Work]]:
        work = partial(_work, setting=setting)
        return [
            (setting.job("memory", method, task, replication), work)
            for replication in range(setting.effort.memory_replications)
            for task in setting.tasks
            for method in setting.methods
        ]

    def summarise(self, records: list[Record], setting: Setting) -> Section:
        rows = []
        for task in setting.tasks:
            for method in METHODS:
                group = [r for r in records if r["task"] == task and r["method"] == method]
                if not group:
                    continue
                rows += [
                    {
                        "task": task,
                        "measure": measure,
                        "method": method,
                        **mean_and_spread(record[measure] for record in group),
                    }
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


def main(request: str) -> None:
    """Answer a request of `_work`."""
    job = json.loads(request)
    job["effort"] = Effort(**job["effort"])
    print(json.dumps(measure(**job)))


if __name__ == "__main__":
    main(sys.argv[1])
