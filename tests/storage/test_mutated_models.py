"""Hundreds of files of models altered at random: refused, or of use as if nothing had happened."""

import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import symbayes

from .fuzzing import MOST_MEGABYTES, fuzz, most_megabytes, within_limits
from .mutations import FORGED, PLAIN
from .saving import answers
from .test_forged_files import TABLE, fit, fit_of_the_paper, fit_stacked


def load_and_use(path):
    loaded = symbayes.load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers(loaded.combined("stack"), TABLE)
        loaded.formulas_by_chain()
        return answers(loaded, TABLE)


def check_ends(ends):
    assert all(ends[name, "refused"] for name in PLAIN | FORGED)
    assert any(ends[name, "loaded"] for name in FORGED)


@pytest.mark.parametrize("make", [fit, fit_of_the_paper, fit_stacked])
def test_mutations(make, tmp_path):
    model = make()
    model.save(tmp_path / "original")
    expected = answers(model, TABLE)
    original = (tmp_path / "original").read_bytes()
    check_ends(fuzz(load_and_use, expected.__eq__, original, 162, seed=0, folder=tmp_path))


MAKERS = {"default": (fit, 1), "paper": (fit_of_the_paper, 2)}


def make_originals(folder):
    """Fit in a process of its own: compiling takes more memory than loading may."""
    for name, (make, _) in MAKERS.items():
        model = make()
        model.save(folder / name)
        (folder / f"{name}.answers").write_bytes(pickle.dumps(load_and_use(folder / name)))


def fuzz_alone(folder, n):
    for name, (_, seed) in MAKERS.items():
        expected = pickle.loads((folder / f"{name}.answers").read_bytes())
        original = (folder / name).read_bytes()
        load = within_limits(load_and_use)
        check_ends(fuzz(load, expected.__eq__, original, n // 2, seed=seed, folder=folder))
    print(most_megabytes())


@pytest.mark.slow
def test_a_thousand_mutations(tmp_path):
    for call in ("make_originals(folder)", "fuzz_alone(folder, 1_000)"):
        command = f"""
from pathlib import Path
from tests.storage.test_mutated_models import fuzz_alone, make_originals
folder = Path({str(tmp_path)!r})
{call}
"""
        result = subprocess.run(
            [sys.executable, "-c", command],
            capture_output=True,
            text=True,
            cwd=Path(__file__).parents[2],
            timeout=3600,
        )
        assert result.returncode == 0, result.stderr
    assert float(result.stdout) < MOST_MEGABYTES
