"""Results of the benchmark, one file per suite; see `symbayes.experiments.records`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.environment import ROOT
from symbayes.experiments.records import Record, Records

RESULTS = ROOT / "benchmarks" / "results" / "quality"

#: What two records of the same run have in common.
KEY = ("suite", "problem", "noise", "seed", "method", "version", "seconds", "cores")

__all__ = ["KEY", "RESULTS", "Record", "Store", "key_of"]


def key_of(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what distinguishes a run from all others."""
    return tuple(record[name] for name in KEY)


class Store(Records):
    """The results of one suite.

    Parameters
    ----------
    suite : str
    folder : Path
    """

    def __init__(self, suite: str, folder: Path = RESULTS):
        super().__init__(folder / f"{suite}.jsonl", KEY)
