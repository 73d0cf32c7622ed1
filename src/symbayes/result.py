"""What a fit has made and what it answers: files, reports, plots and predictions take this."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from .cautions import Remedy, SamplingWarning
from .deadline import Deadline
from .fitting.rounding import TrainingRows
from .formula import expression as ex
from .formula.formula import Formula
from .inputs.parameters import LITTLE, LITTLE_OF_REST, STANDS_OUT, most_lost, rule_text
from .inputs.validation import Table
from .posterior import verdict
from .posterior.diagnostics import Diagnostics
from .posterior.posterior import Posterior
from .posterior.prediction import FAR, AcceptedModels
from .posterior.stacking import reweighted, stack
from .posterior.table import with_shares
from .samplers.sampling import Earlier

#: Training rows that are kept for plots, reports and ArviZ, at most.
MOST_ROWS_KEPT = 10_000
# Rows may lie outside the training range by this part of it before a warning: the ends of a sample
# are not the ends of what it was drawn from, and in cross-validation some rows always lie outside.
_BEYOND = 0.1
# A share of draws below this is a rounding error.
_NONE = 1.0e-9
# Formulas disagree wildly at a row where more than this part of the posterior is far off.
_WILD = 0.01
_COLUMNS_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Result:
    """What a fit has made. Rows for its methods are validated, with all columns of the user."""

    posterior: Posterior
    """The draws, the models that predictions are made of, and the formulas as fitted models."""
    rows: Table
    """Training rows with all columns of the user's table; of more than 10,000 a sample."""
    ranges: tuple[np.ndarray, np.ndarray]
    """Smallest and largest value of each column in use (`rows.used`), over all training rows."""
    column_names: list[str] | None
    """Names of all columns of the user's table; None where it had none."""
    target: str
    """Name of y; "y" where it had none."""
    formulas: pd.DataFrame
    """The table of formulas, most probable first: the estimator's `formulas_`."""
    formula_objects: list[Formula]
    """The same formulas as objects, in the order of the table."""
    best: int
    """Place of the best formula in that table; where the rule of the fit chooses from the front,
    of the most probable one."""
    front: pd.DataFrame
    """The table of the front, the shortest formula first: the estimator's `pareto_`."""
    front_objects: list[Formula]
    """The formulas of the front as objects, in the order of that table."""
    one_standard_error_rmse: float
    """The RMSE whose square is one standard error above the smallest, for `select`."""
    diagnostics: Diagnostics
    """How the run went: the estimator's `diagnostics_`."""
    history: pd.DataFrame | None = None
    """With the paper's sampler, RMSE and number of nodes at every acceptance; else None."""
    accepted: AcceptedModels | None = None
    """With the paper's sampler, the accepted models; files do not keep them."""
    best_of_front: int | None = None
    """Place of the best formula in the front, where the rule of the fit chooses from there."""
    trust: float = 1.0
    """What a row counts, as a part of the user's weight: less than 1 with a `tolerance`. Weights of
    the rows are those that they count with."""
    run: Earlier | None = None
    """The run itself, where a later fit may continue it (`warm_start`); files do not keep it."""
    warned: set[str] = field(default_factory=set, init=False, repr=False)
    """What predictions have warned of already. A copy made by `replace` starts empty."""

    @property
    def used(self) -> np.ndarray:
        """Positions, in the user's table, of the columns that formulas may use."""
        return self.rows.used

    @property
    def n_columns(self) -> int:
        """Number of columns of the user's table."""
        return self.rows.X.shape[1]

    @property
    def names(self) -> list[str]:
        """Names of all columns as formulas use them: x0, x1, ... where the table had none."""
        return self.column_names or [f"x{i}" for i in range(self.n_columns)]

    @property
    def n_rows(self) -> int | None:
        """Number of training rows; None where only some were kept and weights hide the number."""
        weights = self.rows.weights
        if len(weights) < MOST_ROWS_KEPT:
            return len(weights)
        return None if self.is_weighted else round(self.total_weight)

    @property
    def total_weight(self) -> float:
        """Sum of the user's weights of all training rows."""
        return self.posterior.mixture.n / self.trust

    @property
    def is_weighted(self) -> bool:
        """Whether the user gave rows weights other than 1."""
        return bool((self.rows.weights != self.trust).any())

    @property
    def best_formula(self) -> Formula:
        """The best formula by the rule of the fit."""
        if self.best_of_front is not None:
            return self.front_objects[self.best_of_front]
        return self.formula_objects[self.best]

    @property
    def best_row(self) -> pd.Series:
        """The row of the best formula in its table."""
        if self.best_of_front is not None:
            return self.front.iloc[self.best_of_front]
        return self.formulas.iloc[self.best]

    @property
    def inclusion(self) -> pd.Series:
        """For each column of the user's table the probability that the formula uses it."""
        names = self.names
        probability = np.zeros(len(names))
        probability[self.used] = self.posterior.inclusion
        index = pd.Index(names, dtype=object)
        return pd.Series(probability, index=index, name="inclusion probability")

    def chosen_by(self, rule: str) -> str:
        """Return what a rule chooses here, for readers."""
        if rule == "auto" and not self.stands_out:
            return "none stands out: the shortest that is nearly as close as the most probable"
        return rule_text("probability" if rule == "auto" else rule)

    def selected(self, rule: str) -> Formula:
        """Return the best formula by a rule."""
        place, of_front = self.select(rule)
        return self.formula_objects[place] if of_front is None else self.front_objects[of_front]

    def select(self, rule: str) -> tuple[int, int | None]:
        """Return where the best formula by a rule is: its places in formulas and in the front.

        The second one is None where the rule chooses among formulas that were drawn.
        """
        r2, lost = self.formulas["r2"], most_lost(rule)
        if rule == "auto" and not self.stands_out:
            leading = float(r2.iloc[0])
            least = leading - min(LITTLE, LITTLE_OF_REST * (1.0 - leading))
        elif lost is None:
            return self._select_drawn(rule), None
        else:
            # Compared with the best that was drawn: what is closer may have been fitted to noise.
            least = float(r2.max()) - lost
        return 0, int(np.flatnonzero(self.front["r2"].to_numpy() >= least)[0])

    @property
    def stands_out(self) -> bool:
        """Whether the most probable formula is more than one among many."""
        return bool(self.formulas["probability"].iloc[0] >= STANDS_OUT)

    def _select_drawn(self, rule: str) -> int:
        if rule in ("auto", "probability"):
            return 0
        rmse = self.formulas["rmse"].to_numpy()
        if rule == "accuracy":
            return int(np.argmin(rmse))
        close = np.flatnonzero(rmse <= max(self.one_standard_error_rmse, rmse.min()))
        # Among the simplest of them the most probable, which comes first.
        return int(close[np.argmin(self.formulas["n_nodes"].to_numpy()[close])])

    def predict(self, X: np.ndarray, return_std: bool = False) -> Any:
        """Return what the posterior predicts, and its spread; warn of rows that need care."""
        X, mixture = self._in_use(X), self.posterior.mixture
        mean, far, left_out = mixture.predict(X)
        self._warn_of_left_out(left_out)
        if (far > _WILD).any():
            self._warn_once(
                "wild",
                f"formulas disagree wildly on {int((far > _WILD).sum())} of {len(far)} rows: there "
                f"up to {far.max():.0%} of the posterior is more than {FAR:g} standard deviations "
                "of y away from the prediction. ",
                Remedy.SEE_FORMULAS,
                " before you use these rows; more training rows near them, a longer run, or "
                "operators without exp, / and high powers may help.",
            )
        return (mean, mixture.deviations(X)) if return_std else mean

    def interval(
        self, X: np.ndarray, level: float, noise: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the central interval of observations, or of means without noise."""
        tail = 0.5 * (1.0 - level)
        levels = tail, 1.0 - tail
        (lower, upper), left_out = self.posterior.mixture.quantiles(self._in_use(X), levels, noise)
        self._warn_of_left_out(left_out)
        return lower, upper

    def sample(self, X: np.ndarray, n: int, noise: bool, rng: np.random.Generator) -> np.ndarray:
        """Return draws from the predictive distribution of observations or means, one per row."""
        draws, deviation = self.posterior.mixture.sample(self._in_use(X), n, rng)
        draws = rng.permutation(np.column_stack([draws, deviation]), axis=0)
        draws, deviation = draws[:, :-1], draws[:, -1:]
        finite = np.isfinite(draws)
        for row in np.flatnonzero(~finite.all(axis=0) & finite.any(axis=0)):
            good = finite[:, row]
            draws[~good, row] = rng.choice(draws[good, row], int((~good).sum()))
        draws[:, ~finite.any(axis=0)] = np.nan
        self._warn_of_left_out(1.0 - finite.mean(axis=0))
        return draws + deviation * rng.normal(size=draws.shape) if noise else draws

    def constants(self, formula: Formula, level: float) -> pd.DataFrame:
        """Return the constants of one of the formulas, with intervals."""
        rows, mixture = self.rows, self.posterior.mixture
        training = TrainingRows(
            rows.X.T, rows.y, rows.weights, mixture.noise_prior, mixture.y_scale, n=mixture.n
        )
        expression = formula._expression
        value = np.array(list(ex.constants(expression))) * list(ex.signs(expression))
        std, df = training.deviations(expression)
        reach = std * stats.t.ppf(0.5 + 0.5 * level, df)
        ends = {"lower": value - reach, "upper": value + reach}
        return pd.DataFrame({"value": value, "std": std, **ends})

    def _in_use(self, X: np.ndarray) -> np.ndarray:
        """Return the columns in use; warn once of rows well outside the training range."""
        if len(self.used) < X.shape[1]:
            X = X[:, self.used]
        low, high = self.ranges
        beyond = _BEYOND * (high - low)
        outside, names = np.zeros(len(X), bool), []
        for i in np.flatnonzero(self.posterior.inclusion):
            rows = (X[:, i] < low[i] - beyond[i]) | (X[:, i] > high[i] + beyond[i])
            if rows.any():
                outside |= rows
                names.append(self.names[self.used[i]])
        if names:
            more = ", ..." if len(names) > _COLUMNS_SHOWN else ""
            shown = ", ".join(map(repr, names[:_COLUMNS_SHOWN])) + more
            self._warn_once(
                "range",
                f"{int(outside.sum())} of {len(outside)} rows lie well outside the range of the "
                f"training rows (columns {shown}); predictions there are as good as the formulas "
                "are, and intervals may be too narrow; training rows there would tell.",
                level=5,
            )
        return X

    def _warn_of_left_out(self, left_out: np.ndarray) -> None:
        """Warn once of rows where a share of the draws, or all, have no finite value."""
        rows, nowhere = int((left_out > _NONE).sum()), int((left_out > 1 - _NONE).sum())
        if rows:
            all_of_them = f"; none has one on {nowhere} of them, where predictions are nan"
            self._warn_once(
                "no value by all formulas" if nowhere else "no value by some formulas",
                f"some formulas have no finite value on {rows} of {len(left_out)} rows and were "
                f"left out there (up to {max(left_out.max(), 0.01):.0%} of the posterior)"
                f"{all_of_them if nowhere else ''}"
                ". Training rows like these, or operators that have a value everywhere (log, "
                "sqrt and / have not), would help.",
                level=5,
            )

    def _warn_once(self, what: str, *parts: str | Remedy, level: int = 4) -> None:
        """Warn, at the caller of the estimator's method, unless that was done before."""
        if what not in self.warned:
            self.warned.add(what)
            warnings.warn(SamplingWarning(*parts, once=True), stacklevel=level)


def with_diagnostics(result: Result, **changed: Any) -> Result:
    """Return a result with some diagnostics changed or added."""
    return replace(result, diagnostics=Diagnostics({**result.diagnostics, **changed}))


def with_stacking(result: Result, deadline: Deadline | None = None) -> Result:
    """Return a result whose diagnostics have the stacking weights, or raise OutOfTime."""
    if result.diagnostics["stacking_weights"] is not None:
        return result
    found = stack(result.posterior, result.rows, (deadline or Deadline()).over)
    weights = found.weights.tolist()
    return with_diagnostics(result, stacking_weights=weights, stacking_gain=found.gain)


def combined(result: Result, how: str, rule: str) -> Result:
    """Return a result in which chains are combined as `how` says, the best formula by a rule."""
    posterior = result.posterior
    n_chains, is_stacked = len(posterior.draws), how == "stack"
    weights = np.full(n_chains, 1.0 / n_chains)
    if is_stacked and n_chains > 1:
        result = with_stacking(result)
        weights = np.array(result.diagnostics["stacking_weights"])
    result = with_diagnostics(result, **verdict.combined(result.diagnostics, is_stacked))
    if not np.array_equal(weights, posterior.chain_weights):
        posterior, order = reweighted(posterior, weights)
        formulas = result.formulas.iloc[order].reset_index(drop=True)
        formulas["probability"] = [min(1.0, one.weight) for one in posterior.groups]
        objects = [result.formula_objects[i] for i in order]
        front = result.front.copy()
        front["probability"] = [
            0.0 if one.group < 0 else min(1.0, posterior.groups[one.group].weight)
            for one in posterior.front
        ]
        formulas, front = with_shares(posterior, formulas, front)
        result = replace(
            result, posterior=posterior, formulas=formulas, formula_objects=objects, front=front
        )
        result = with_diagnostics(result, leading_by_chain=posterior.leading_by_chain)
    best, of_front = result.select(rule)
    return replace(result, best=best, best_of_front=of_front)
