"""bingo: genetic programming on acyclic graphs, with the settings of its SRBench entry."""

import os
import warnings

import numpy as np
from bingo.symbolic_regression.symbolic_regressor import SymbolicRegressor
from bingo_text import operators, text
from contract import read_job, write_result
from progress import PERFECT, Progress


class Watched(SymbolicRegressor):
    """The regressor, saying which expression leads."""

    leads = staticmethod(lambda expression: None)

    def _make_island(self, *arguments):
        island = super()._make_island(*arguments)
        evolve = island.evolve

        def watched(*args, **kwargs):
            evolve(*args, **kwargs)
            self.leads(island.get_best_individual())

        island.evolve = watched
        return island


def main():
    """Fit once: it takes a time limit."""
    job = read_job()
    X, y = job["X"], job["y"]
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    # Its number of processes; it starts them again for each generation, which is slower than none.
    os.environ["OMP_NUM_THREADS"] = "0"
    model = Watched(
        population_size=500,
        stack_size=24,
        operators=operators(job["operators"]),
        use_simplification=True,
        crossover_prob=0.3,
        mutation_prob=0.45,
        metric="mse",
        clo_alg="lm",
        clo_threshold=1e-5,
        evolutionary_algorithm="AgeFitnessEA",
        fitness_threshold=PERFECT**2 * np.var(y),
        # It then fits the constants of a hundred expressions again.
        max_time=job["seconds"] - min(1.5, 0.2 * job["seconds"]),
        random_state=job["seed"],
    )
    progress = Progress(job["seconds"])
    model.leads = lambda expression: progress.leads(text(expression, X))
    model.fit(X, y)
    seconds = progress.seconds
    best = model.get_best_individual()
    front = sorted(model.get_pareto_front(), key=lambda candidate: candidate.fitness)
    formulas = list(dict.fromkeys(text(found.equation, X) for found in (best, *front)))
    if not progress.history:  # found in the first population
        progress.leads(formulas[0])
    write_result(
        [(formula, None) for formula in formulas],
        model.predict(job["X_test"]).ravel(),
        seconds,
        progress.history,
        extra={"generations": model.archipelago.generational_age},
    )


if __name__ == "__main__":
    main()
