"""Where checkpoints go, and how often they are written."""

import shutil

import pytest

from symbayes.storage import checkpoint


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.checkpoint"


@pytest.fixture
def always(monkeypatch):
    """A checkpoint after every round."""
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(checkpoint, "_MOST_OF_THE_TIME", 1e9)


@pytest.fixture
def every_point(always, monkeypatch, tmp_path):
    """All checkpoints of a run, each in a file of its own, by phase."""
    kept = {}
    real = checkpoint.CheckpointWriter.write

    def write(self, point, seconds):
        real(self, point, seconds)
        if point.finished:
            phase = "end"
        elif point.search is not None:
            phase = "search on other targets" if point.search.others else "search"
        elif point.trace is None:
            phase = "start"
        else:
            phase = "drawing" if point.settling is None else "settling"
        copies = kept.setdefault(phase, [])
        copies.append(tmp_path / f"{phase} {len(copies)}")
        shutil.copy(self.path, copies[-1])

    def fit(model, *data):
        with monkeypatch.context() as patch:
            patch.setattr(checkpoint.CheckpointWriter, "write", write)
            return model.fit(*data, checkpoint=tmp_path / "run"), kept

    return fit
