"""PySR, as its documentation recommends. Not tested: it downloads Julia when first imported."""

import os
import sys
import warnings

import numpy as np
from contract import read_job, write_result
from progress import PERFECT, Progress
from spelling import FUNCTIONS

BINARY = ("+", "-", "*", "/")
UNARY = {
    **FUNCTIONS,
    "neg": "neg",
    "inv": "inv",
    "abs": "abs",
    "square": "square",
    "cube": "cube",
}
# It is to have no operator twice.
REDUNDANT = {"neg": "-", "inv": "/"}


def main():
    """Fit once: it takes a time limit. A short fit before compiles what the timed one runs."""
    job = read_job()
    X, y = job["X"], job["y"]
    warnings.simplefilter("ignore")
    os.environ["PYTHON_JULIACALL_THREADS"] = str(job["cores"])
    from pysr import PySRRegressor  # reads the number of threads

    names = job["operators"]
    unary = [UNARY[name] for name in names if name in UNARY and REDUNDANT.get(name) not in names]
    perfect = PERFECT**2 * float(np.var(y))
    settings = {
        "binary_operators": [name for name in names if name in BINARY],
        "unary_operators": unary,
        "model_selection": "best",
        "precision": 64,
        "parallelism": "serial" if job["cores"] == 1 else "multithreading",
        "deterministic": job["cores"] == 1,
        "random_state": job["seed"],
        "early_stop_condition": f"stop_if(loss, complexity) = loss < {perfect!r}",
        "temp_equation_file": True,
        "progress": False,
        "verbosity": 0,
    }
    PySRRegressor(niterations=1, **settings).fit(X[:20], y[:20])
    model = PySRRegressor(
        niterations=sys.maxsize // 2**32, timeout_in_seconds=job["seconds"], **settings
    )
    progress = Progress(job["seconds"])
    model.fit(X, y, variable_names=job["feature_names"])
    seconds = progress.seconds
    best = str(model.get_best()["sympy_format"])
    front = [str(formula) for formula in model.equations_["sympy_format"][::-1]]
    write_result(
        [(formula, None) for formula in dict.fromkeys([best, *front])],
        model.predict(job["X_test"]),
        seconds,
    )


if __name__ == "__main__":
    main()
