"""`make bench`: measure, print, and store in `benchmarks/results/measured.json`.

python -m benchmarks.run                      everything, about half an hour
python -m benchmarks.run --only kernels       one measure; results of the others are kept
python -m benchmarks.run --quick              a rough look, printed only
python -m benchmarks.run --only scaling --take FILE    from measured.json of a larger machine
python -m benchmarks.run --pages              write the pages from what is stored

The pages are `docs/performance.md` and `docs/development/performance-details.md`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

from . import environment, overview, report

#: One module of `benchmarks.measures` each, with a function `measure(quick) -> Section`.
MEASURES = (
    "throughput",
    "operon",
    "kernels",
    "cold_start",
    "memory",
    "growth",
    "large",
    "cores",
    "scaling",
    "places",
    "driver",
    "default_call",
    "recovery",
    "calibration",
)

_CORES = {"scaling": 16}

RESULTS = environment.ROOT / "benchmarks" / "results"
PAGE = environment.ROOT / "docs" / "performance.md"
DETAILS = environment.ROOT / "docs" / "development" / "performance-details.md"


def main() -> int:
    """Run the measures that were asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=MEASURES, metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="shorter runs, results not written")
    parser.add_argument(
        "--take", type=Path, metavar="FILE", help="add results measured on another machine"
    )
    parser.add_argument("--pages", action="store_true", help="only write the pages anew")
    options = parser.parse_args()
    if options.pages:
        write_pages(json.loads((RESULTS / "measured.json").read_text()))
        return 0

    environment.prepare()
    machine = environment.describe()
    print(", ".join(f"{key} {value}" for key, value in machine.items()), "\n", flush=True)
    if options.take:
        taken = report.taken(options.take, options.only)
        write_pages(report.keep(RESULTS, machine, taken, MEASURES))
        return 0
    # What takes more cores than there are is measured only where it is asked for.
    only = options.only or [name for name in MEASURES if _CORES.get(name, 1) <= machine["cores"]]
    sections = []
    for name in MEASURES:
        if name not in only:
            continue
        # Imported here: NumPy reads its thread limits when it is first imported.
        measure = importlib.import_module(f"benchmarks.measures.{name}").measure
        date, load = environment.now(), environment.load()
        section = report.to_dict(measure(options.quick), date, load)
        print(report.text(section), flush=True)
        sections.append(section)
        if not options.quick:
            # After every measure: a run that is stopped keeps what it has.
            write_pages(report.keep(RESULTS, machine, sections, MEASURES))
    return 0


def write_pages(document: dict[str, Any]) -> None:
    """Write both pages of the documentation from stored results."""
    PAGE.write_text(overview.overview(document))
    DETAILS.write_text(report.markdown(document))


if __name__ == "__main__":
    sys.exit(main())
