"""Used by the scripts: functions that have the same name in most peers, and NumPy's for SymPy's."""

from __future__ import annotations

import numpy as np

#: Our names to theirs.
FUNCTIONS = {
    **{name: name for name in ("exp", "log", "sqrt", "sin", "cos", "tan", "tanh")},
    **{"arcsin": "asin", "arccos": "acos", "arctan": "atan"},
}
#: SymPy's names to NumPy.
NUMPY = {
    **{name: getattr(np, name) for name in ("exp", "log", "sqrt", "sin", "cos", "tan", "tanh")},
    **{"Abs": np.abs, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan},
}
