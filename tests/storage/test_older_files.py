"""Files that an earlier version has written: models load and say the same, checkpoints resume.

`files/VERSION` has what that version wrote, and in `expected.json` what its models said. A change
of the layout of files adds a folder and removes none.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from symbayes import BayesianSymbolicRegressor, load

FOLDER = Path(__file__).parent / "files" / "version-0.1.0"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
X, Y = np.array(EXPECTED["X"]), np.array(EXPECTED["y"])
CHECKPOINTS = sorted(path.stem for path in FOLDER.glob("*.checkpoint"))


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.model")))
def test_a_model_says_what_it_said(name):
    model, expected = load(FOLDER / f"{name}.model"), EXPECTED[name]
    rows = pd.DataFrame(X, columns=EXPECTED["names"]) if name == "names-weights" else X
    assert model.formulas_["formula"].tolist()[:20] == expected["formulas"]
    assert model.formulas_["probability"].tolist()[:20] == expected["probabilities"]
    assert model.formulas_["rounded"].tolist()[:5] == expected["rounded"]
    assert str(model.best_formula_) == expected["best"]
    assert model.diagnostics_["converged"] == expected["converged"]
    mean, deviation = model.predict(rows, return_std=True)
    np.testing.assert_allclose(mean, expected["mean"], rtol=1e-9)
    np.testing.assert_allclose(deviation, expected["std"], rtol=1e-6)


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_checkpoint_resumes(name, tmp_path):
    path = tmp_path / "run"
    shutil.copy(FOLDER / f"{name}.checkpoint", path)
    model = BayesianSymbolicRegressor.resume(path, X, Y)
    expected = EXPECTED[f"{name.partition('-')[0]} run"]
    if name.endswith("end"):
        assert [len(chain) for chain in model.diagnostics_["log_likelihood"]] == expected["draws"]
        assert model.formulas_["formula"].tolist()[:20] == expected["formulas"]
    else:  # Another processor may round differently, and then other draws follow.
        assert model.score(X, Y) > 0.97


def test_all_phases_of_a_run_are_here():
    assert len(CHECKPOINTS) == 9
