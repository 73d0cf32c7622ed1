"""The benchmark is part of the repository, not of the distribution."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

if not (ROOT / "benchmarks" / "quality").exists():
    collect_ignore_glob = ["test_*.py"]
