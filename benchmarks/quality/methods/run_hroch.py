"""HROCH: parallel hill climbing on linear programs, in slices until time is up."""

import re
import warnings

import numpy as np
from contract import read_job, write_result
from HROCH import SymbolicRegressor
from progress import PERFECT, Progress

# Its instructions, and how often they are tried: arithmetic ten times as often as a function, as
# in the example of its documentation.
INSTRUCTIONS = {
    "+": ("add", 10.0),
    "-": ("sub", 10.0),
    "*": ("mul", 10.0),
    "/": ("div", 10.0),
    "neg": ("inv", 1.0),
    "inv": ("minv", 1.0),
    "square": ("sq2", 1.0),
    "exp": ("exp", 1.0),
    "log": ("log", 1.0),
    "sqrt": ("sqrt", 1.0),
    "abs": ("abs", 1.0),
    "sin": ("sin", 1.0),
    "cos": ("cos", 1.0),
    "tan": ("tan", 1.0),
    "tanh": ("tanh", 1.0),
    "arcsin": ("asin", 1.0),
    "arccos": ("acos", 1.0),
    "arctan": ("atan", 1.0),
}


def text(model):
    """Return an equation as a formula with all digits."""
    return re.sub(r"\babs\(", "Abs(", model.equation)


def main():
    """Continue with the same climbers, and look at the best after each slice."""
    job = read_job()
    X, y = job["X"], job["y"]
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    chosen = [INSTRUCTIONS[name] for name in job["operators"] if name in INSTRUCTIONS]
    model = SymbolicRegressor(
        num_threads=job["cores"],
        precision="f64",
        problem={"nop": 1.0, **dict(chosen)},
        random_state=job["seed"] + 1,  # 0: not seeded
        warm_start=True,
    )
    progress = Progress(job["seconds"])
    while progress.left > 0:
        piece = min(progress.left, max(0.2, 0.05 * progress.seconds))
        model.set_params(time_limit=max(piece, 0.01)).fit(X, y)
        best = model.get_models()[0]
        progress.leads(text(best))
        if np.sqrt(np.mean((best.predict(X) - y) ** 2)) < PERFECT * np.std(y):
            break
    seconds = progress.seconds
    write_result(
        [(text(best), None)],
        model.predict(job["X_test"]),
        seconds,
        progress.history,
    )


if __name__ == "__main__":
    main()
