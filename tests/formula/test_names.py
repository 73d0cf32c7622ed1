"""The public names: found when they are used, and no sooner."""

import subprocess
import sys

import pytest

import symbayes


def test_every_name_is_there():
    assert set(symbayes.__all__) <= set(dir(symbayes))
    assert all(getattr(symbayes, name) is not None for name in symbayes.__all__)


def test_what_is_not_there_is_missed_as_in_any_module():
    with pytest.raises(AttributeError, match="module 'symbayes' has no attribute 'fit'"):
        symbayes.fit  # noqa: B018


def test_modules_that_users_reach_for():
    assert symbayes.datasets.paper_task("f1", random_state=0)[0].shape == (100, 2)
    assert callable(symbayes.plots.plot_formulas)


def test_an_import_takes_no_time():
    """Numba, SymPy and scikit-learn are imported by what needs them."""
    program = "import sys, symbayes; print({'numba', 'sympy', 'sklearn'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
