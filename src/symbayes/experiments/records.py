"""Finished runs, one line of JSON each, appended and never rewritten.

A killed run loses at most the line it was writing: a line that is no JSON is passed over, and the
next record starts on a line of its own.
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Record = dict[str, Any]


class Records:
    """Records with a key each; where a key occurs twice, its last line counts.

    Parameters
    ----------
    path : Path
        The file; it and its folder are made when the first record is added.
    key : tuple of str
        The fields that tell a run from all others.
    """

    def __init__(self, path: Path, key: tuple[str, ...]):
        self._path = path
        self._key = key
        self._lock = threading.Lock()
        self._records = {self.key_of(record): record for record in _read(path, key)}

    def key_of(self, record: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return what tells a run from all others."""
        return tuple(record[name] for name in self._key)

    def __contains__(self, key: tuple[Any, ...]) -> bool:
        return key in self._records

    def __getitem__(self, key: tuple[Any, ...]) -> Record:
        return self._records[key]

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records.values())

    def __len__(self) -> int:
        return len(self._records)

    def append(self, record: Record) -> None:
        """Add a finished run, on disk before this returns."""
        record = _without_nan(record)
        line = json.dumps(record, allow_nan=False) + "\n"
        with self._lock:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                if file.tell() and not _ends_line(self._path):
                    line = "\n" + line
                # One write, so that two programs may share a file.
                file.write(line.encode())
                file.flush()
                os.fsync(file.fileno())
            self._records[self.key_of(record)] = record


def _without_nan(value: Any) -> Any:
    """Return a value that JSON can hold: numbers that are none become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _without_nan(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(inner) for inner in value]
    return value


def _read(path: Path, key: tuple[str, ...]) -> Iterator[Record]:
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record = json.loads(line)
            complete = all(name in record for name in key)
        except (json.JSONDecodeError, TypeError):
            continue  # torn
        if complete:
            yield record


def _ends_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
