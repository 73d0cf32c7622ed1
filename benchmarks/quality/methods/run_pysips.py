"""pysips: sequential Monte Carlo, repeated until time is up; the mode of the best fit."""

import contextlib
import warnings
from collections import Counter

import numpy as np
from bingo_text import operators, text
from contract import read_job, write_result
from progress import PERFECT, Progress
from pysips import PysipsRegressor
from pysips.laplace_nmll import LaplaceNmll

# The last step of a fit may take longer than the others, so it is asked to end early; a fit that
# would have less than this share of the time is not begun.
SHARE, LEAST = 0.85, 0.05
DRAWS = 20  # of the noise, for each expression


class TimeUp(BaseException):
    """The fit is over. Not an Exception: no handler may swallow it."""


class Search:
    """Follows every expression that is evaluated, and keeps the best fit that ended."""

    def __init__(self, X, y, progress):
        self.fit = None
        self.best, self.perfect = None, False
        self._likelihood, self._worst = -np.inf, 0.0
        self._X, self._y, self._progress = X, y, progress

    @property
    def answer(self):
        """The mode of the best fit; before one ended, or if it is perfect, the best expression."""
        return self.best if self.perfect or self.fit is None else self.fit.best_model_

    def watch(self):
        """Look at the expressions that the likelihood is asked for, and end when time is up."""
        original = LaplaceNmll.__call__

        def watched(likelihood, model):
            if self._progress.left <= 0:
                raise TimeUp
            return self._evaluated(model, original(likelihood, model))

        LaplaceNmll.__call__ = watched

    def _evaluated(self, model, likelihood):
        if not np.isfinite(likelihood):
            # It would be taken for the best, and break the tempering.
            return self._worst
        self._worst = min(self._worst, likelihood)
        if likelihood > self._likelihood:
            self.best, self._likelihood = model.copy(), likelihood
            self.perfect = _error(model, self._X, self._y) < PERFECT * np.std(self._y)
            self._progress.leads(text(self.answer, self._X))
            if self.perfect:
                raise TimeUp
        return likelihood

    def ended(self, fit):
        """Keep a fit if its answer is better than that of the one before."""
        if self.fit is None or fit.best_likelihood_ > self.fit.best_likelihood_:
            self.fit = fit
            self._progress.leads(text(self.answer, self._X))


def _error(model, X, y):
    return float(np.sqrt(np.mean((model.evaluate_equation_at(X).ravel() - y) ** 2)))


def intervals(models, X, y, X_test, seed):
    """Return 90 % predictive intervals: the particles, each with its noise."""
    random = np.random.default_rng(seed)
    draws = []
    for model in models:
        mean = model.evaluate_equation_at(X_test).ravel()
        error = _error(model, X, y)
        if np.isfinite(error) and np.all(np.isfinite(mean)):
            draws.append(mean + error * random.standard_normal((DRAWS, len(X_test))))
    if not draws:
        return None, None
    return np.nanquantile(np.concatenate(draws), [0.05, 0.95], axis=0)


def main():
    """Fit repeatedly; report the particles of the best fit."""
    job = read_job()
    X, y = job["X"], job["y"]
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    # The generator that bingo draws from.
    np.random.seed(job["seed"])  # noqa: NPY002
    progress = Progress(job["seconds"])
    search = Search(X, y, progress)
    search.watch()
    fits = 0
    with contextlib.suppress(TimeUp):
        while progress.left > LEAST * progress.limit:
            model = PysipsRegressor(
                operators=operators(job["operators"]),
                max_time=SHARE * progress.left,
                random_state=job["seed"] + 1000 * fits,
            )
            search.ended(model.fit(X, y))
            fits += 1
    seconds = progress.seconds
    answer = search.answer
    particles = [] if search.fit is None else search.fit.models_
    visits = Counter(particles)
    # None where it was found by a fit that did not end.
    probability = visits[answer] / len(particles) if visits[answer] else None
    others = [
        (text(other, X), count / len(particles))
        for other, count in visits.most_common(10)
        if other != answer
    ]
    lower = upper = None
    if particles:
        lower, upper = intervals(particles, X, y, job["X_test"], job["seed"])
    write_result(
        [(text(answer, X), probability), *others],
        answer.evaluate_equation_at(job["X_test"]).ravel(),
        seconds,
        progress.history,
        lower,
        upper,
        extra={"fits": fits, "perfect": bool(search.perfect)},
    )


if __name__ == "__main__":
    main()
