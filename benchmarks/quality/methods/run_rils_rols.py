"""rils-rols: iterated local search with least squares.

It cannot be stopped early, and shows its progress only in what it prints, so it runs in its own
process: the lines it prints say when the best formula changed, and a perfect fit ends it.
"""

import multiprocessing
import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from contract import read_job, write_result
from progress import PERFECT, Progress
from rils_rols.rils_rols import RILSROLSRegressor

NUMPY = {name: getattr(np, name) for name in ("sin", "cos", "exp", "sqrt")} | {"ln": np.log}
# What it prints when the best formula changed.
STATE = re.compile(r"final_RMSE=(\S+)\s.*sol=(.+)")
DECIMAL = re.compile(r"\d+\.\d+")
DONE = "Finished otimization"
PRINTED = 1e-6  # the precision to which it prints


def evaluate(formula, X):
    """Return the values of a formula as it writes them."""
    columns = {f"x{i}": column for i, column in enumerate(X.T)}
    with np.errstate(all="ignore"):
        value = eval(formula, {"__builtins__": {}, "pow": np.power}, NUMPY | columns)
    return np.broadcast_to(np.asarray(value, float), len(X))


def all_digits(formula, X, target):
    """Return the formula with its constants, six decimals as printed, fitted to what it predicts.

    Gauss-Newton steps with step halving; without an improvement the formula is returned as it was.
    """
    form = DECIMAL.sub("({})", formula)
    constants = np.array([float(c) or PRINTED for c in DECIMAL.findall(formula)])

    def residual(c):
        return evaluate(form.format(*(repr(float(v)) for v in c)), X) - target

    if not len(constants):
        return formula
    current = residual(constants)
    for _ in range(30):
        steps = 1e-7 * np.maximum(np.abs(constants), PRINTED)
        slopes = [(residual(constants + h) - current) / h.max() for h in np.diag(steps)]
        if not np.all(np.isfinite(slopes)) or not np.all(np.isfinite(current)):
            break
        change = np.linalg.lstsq(np.array(slopes).T, -current, rcond=None)[0]
        for scale in 0.5 ** np.arange(8):
            trial = constants + scale * change
            proposed = residual(trial)
            if np.sum(proposed**2) < np.sum(current**2):
                constants, current = trial, proposed
                break
        else:
            break
    return form.format(*(repr(float(c)) for c in constants))


def search(model, X, y, X_test, folder, output):
    """Fit in its own process, printing to the pipe `output`."""
    os.dup2(output, 1)
    sys.stdout.reconfigure(line_buffering=True)
    model.call_model_symplify = lambda: None  # done below
    model.fit(X, y)
    np.savez(
        folder / "found.npz", train=model.predict(X), test=model.predict(X_test), text=model.model
    )


def simplified(model, formula):
    """Return the formula as the regressor would return it."""
    model.model = formula
    try:
        model.call_model_symplify()
        return str(model.model_simp)
    except Exception:  # as it does when this takes more than two seconds
        return re.sub(r"\bln\(", "log(", formula)


def main():
    """Fit once: it takes a time limit."""
    job = read_job()
    X, y = job["X"], job["y"]
    model = RILSROLSRegressor(
        max_fit_calls=10**9,
        # It continues until the second after this one has passed.
        max_time=max(0, round(job["seconds"]) - 1),
        complexity_penalty=0.001,
        max_complexity=50,
        sample_size=1,
        random_state=job["seed"] + 1,  # 0: not seeded
        verbose=True,
    )
    with TemporaryDirectory() as name:
        folder = Path(name)
        source, sink = os.pipe()
        arguments = (model, X, y, job["X_test"], folder, sink)
        process = multiprocessing.get_context("fork").Process(target=search, args=arguments)
        progress = Progress(job["seconds"])
        process.start()
        os.close(sink)
        perfect, formula = False, "0"
        with os.fdopen(source) as lines:
            for line in lines:
                if line.startswith(DONE):
                    break
                if state := STATE.search(line):
                    formula = state[2].strip()
                    progress.leads(re.sub(r"\bln\(", "log(", formula))
                    perfect = float(state[1]) < PERFECT * np.std(y)
                    if perfect:
                        process.kill()
                        break
            seconds = progress.seconds
            process.join()
        if perfect:
            formula = all_digits(formula, X, y)
            prediction = evaluate(formula, job["X_test"])
        else:
            with np.load(folder / "found.npz") as found:
                formula = all_digits(str(found["text"]), X, found["train"])
                prediction = found["test"]
    text = simplified(model, formula)
    history = [*progress.history[:-1], *((when, text) for when, _ in progress.history[-1:])]
    extra = {"stopped_at_perfect_fit": bool(perfect)}
    write_result([(text, None)], prediction, seconds, history, extra=extra)


if __name__ == "__main__":
    main()
