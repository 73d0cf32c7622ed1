"""The paper's experiments. Here are only their names, for the help text of `symbayes reproduce`;
nothing else is imported unless that command is run.
"""

from __future__ import annotations

#: What can be reproduced, by name.
EXPERIMENTS = {
    "accuracy": "Errors on training and test rows",
    "complexity": "Size of the formulas",
    "expressions": "Typical formulas",
    "terms": "Sensitivity to the number of terms K",
    "training": "Errors and sizes during training",
    "memory": "Peak memory",
    "robustness": "Errors with noise",
    "length": "The paper's sampler by length of its chain",
    "signals": "Signals in an index",
}
ALL = "all"
PAPER, DEFAULT = "symbayes paper", "symbayes default"
#: Genetic programming, by the size of its population.
POPULATIONS = {"gplearn 100": 100, "gplearn 1000": 1000}
METHODS = (PAPER, DEFAULT, *POPULATIONS)
TASKS = ("f1", "f2", "f3", "f4", "f5", "f6")
