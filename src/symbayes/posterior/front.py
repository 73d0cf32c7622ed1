"""The front: the best formula of every size, from one column up to the largest that was drawn.

Draws are of the posterior, which on a table with many rows has no short formulas. But a run meets
them all the time: in its search, at high temperatures, and as parts of long ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from ..deadline import Deadline
from ..fitting.evidence import log_evidence_of_writings, most_log_evidence
from ..fitting.model import Fitter, Model, expression_of
from ..formula import expression as ex
from ..formula.trees import concatenated, structure
from ..samplers.front import merged
from ..samplers.trace import Trace
from .pool import Candidate, Pool, same_structure
from .posterior import Budget, Group, Member, front, to_polish

# Work on the constants of short formulas, as `Budget` counts it: less than a second.
_MOST_WORK = 2_000_000
# Of the time of a fit with a limit the front gets at most this part, and these seconds.
_MOST_OF_THE_TIME, _MOST_SECONDS = 0.1, 2.0
# Rows times formulas that are fitted on all rows, and the fewest and most formulas.
_MOST_ROWS, _FEWEST_FITS, _MOST_FITS = 5_000_000, 15, 200
# Rows up to which a fit is a matter of a millisecond.
_FEW_ROWS = 5000
# Formulas of one size that are tried, and how much worse than a shorter one, in the residual sum of
# squares, they may be before their constants are polished.
_PER_SIZE, _WORTH_TRYING = 3, 1.3
# A mean square of scaled residuals that is a rounding error.
_EXACT = 1.0e-24
# A longer formula that was not drawn is shown if it has at most this part of the mean square.
_WORTH_SHOWING = 0.995
# With this much less evidence than the formulas drawn, one that was not drawn has not been missed.
_BEHIND = 5.0
# Errors that differ by a smaller part are the same; so are fitted values, in spreads of y.
_SAME, _SAME_FIT = 1.0e-6, 1.0e-7


def make_front(
    fitter: Fitter, trace: Trace, groups: Sequence[Group], sizes: Sequence[int], deadline: Deadline
) -> tuple[list[Member], list[Member]]:
    """Return the formulas to which no other is both shorter and closer, the shortest first.

    Also those that were met and never drawn, and may have as much evidence as those that were.

    `groups` are the formulas that were drawn, `sizes` their numbers of nodes. Others come from what
    the run has met, as far as there is time; none with the paper's sampler, which keeps no record.
    After a Ctrl-C that is done only on few rows, where it takes a fraction of a second, and no
    constants are polished.
    """
    members = [(one.model, i) for i, one in enumerate(groups)]
    writings = [[one.model.state] for one in groups]
    sizes = list(sizes)
    is_over = deadline.over() or (deadline.cut_short() and not _is_quick(fitter))
    if not fitter.plug_in and not is_over:
        with np.errstate(all="ignore"):
            for model in _short_models(fitter, trace, groups, sizes, deadline):
                size = n_nodes(model)
                i = _group_of(model, groups)
                if i >= 0:
                    writings[i].append(model.state)
                    if size >= sizes[i] and model.mse >= (1.0 - _SAME) * groups[i].model.mse:
                        continue  # it is there already
                members.append((model, i))
                sizes.append(size)
    chosen: list[Member] = []
    least = np.inf
    for place in np.lexsort(([model.mse for model, _ in members], sizes)):
        model, i = members[place]
        # What was not drawn has to be worth its length.
        if model.mse < least * (1.0 if i >= 0 else _WORTH_SHOWING):
            evidence = np.nan if i < 0 else groups[i].log_evidence
            if np.isnan(evidence) and not deadline.over():
                evidence = log_evidence_of_writings(fitter, model, writings[i] if i >= 0 else ())
            chosen.append(Member(model, i, evidence))
            least = model.mse
    return chosen, _rivals(fitter, groups, [model for model, i in members if i < 0], deadline)


def _rivals(
    fitter: Fitter, groups: Sequence[Group], models: Sequence[Model], deadline: Deadline
) -> list[Member]:
    """Return the models that were not drawn and have about as much evidence as what was."""
    enough = max((one.log_evidence for one in groups), default=np.nan) - _BEHIND
    n_known = len(fitter.problem.known)
    found = []
    for model in models:
        trees = model.state.trees[n_known:]
        if fitter.problem.may_be_drawn(trees) and most_log_evidence(fitter, model) > enough:
            if deadline.over():
                break
            found.append(Member(model, -1, log_evidence_of_writings(fitter, model)))
    return found


def seconds_of_front(timeout: float | None) -> float:
    """Return how many seconds of a fit with a time limit are kept for the front."""
    return 0.0 if timeout is None else min(_MOST_SECONDS, _MOST_OF_THE_TIME * timeout)


def drawn_front(groups: Sequence[Group], sizes: Sequence[int]) -> list[Member]:
    """Return the front of the formulas that were drawn, as for a file that has none."""
    places = front(sizes, [one.model.mse for one in groups]).tolist()
    return [Member(groups[i].model, i, np.nan) for i in places]


def n_nodes(model: Model) -> int:
    """Return how many nodes a model has as a formula."""
    return ex.n_nodes(expression_of(model, np.arange(_n_columns(model))))


def _is_quick(fitter: Fitter) -> bool:
    """Return whether fits take so little time that they are made after a Ctrl-C as well."""
    return len(fitter.weights) <= _FEW_ROWS


def _n_columns(model: Model) -> int:
    return 1 + max((int(tree["feature"].max()) for tree in model.state.trees), default=0)


def _short_models(
    fitter: Fitter, trace: Trace, groups: Sequence[Group], sizes: Sequence[int], deadline: Deadline
) -> Iterator[Model]:
    """Yield fits of what may be the best formula of its size; the most promising of each first.

    Their constants are polished as long as the budget for that lasts. After a Ctrl-C only those are
    still fitted that are the best as they are.
    """
    budget = Budget(fitter, deadline.cut_short, _MOST_WORK)
    most = min(_MOST_FITS, max(_FEWEST_FITS, _MOST_ROWS // len(fitter.weights)))
    candidates = _candidates(fitter, trace, groups, sizes, deadline)
    # An exact formula is the end of the front. Larger ones than were drawn only fit the noise.
    exact = [size for one, size in zip(groups, sizes, strict=True) if one.model.mse < _EXACT]
    end = min([*exact, max(sizes)])
    candidates = [one for one in candidates if one.size < end]
    first = front([one.size for one in candidates], [one.rss for one in candidates]).tolist()
    others = [i for i in range(len(candidates)) if i not in set(first)]
    for place, i in enumerate([*first, *others][:most]):
        is_wanted = not deadline.cut_short() or (_is_quick(fitter) and place < len(first))
        if deadline.over() or not is_wanted:
            return
        model = fitter.fit_tidied(candidates[i].trees)
        if model is None:
            continue
        if budget.allows(model):
            model = fitter.polished(model, deadline.over)
        yield model


def _candidates(
    fitter: Fitter, trace: Trace, groups: Sequence[Group], sizes: Sequence[int], deadline: Deadline
) -> list[Candidate]:
    """Return what the run has met, and sums of its terms: a few of each size, shortest first."""
    problem, n_known = fitter.problem, len(fitter.problem.known)
    met = merged(ladder.met for ladder in trace.state.ladders).states()
    met += trace.search_met.states()
    drawn = [
        list(groups[i].model.state.trees[n_known:])
        for i in to_polish(sizes, [one.model.mse for one in groups])
    ]
    pool = Pool(fitter, [*met, *drawn])
    found = [one for one in map(pool.candidate, met) if one is not None]
    if not isinstance(problem.terms, int):
        found += pool.best_sums(problem.most_terms, deadline)
    by_size: dict[int, list[Candidate]] = defaultdict(list)
    for one in sorted(found, key=lambda one: (one.size, one.rss)):
        by_size[one.size].append(one)
    best, kept = np.inf, []
    for some in by_size.values():
        kinds: set[tuple[str, ...]] = set()
        for one in some:
            kind = same_structure(one.trees)
            if len(kinds) < _PER_SIZE and kind not in kinds and one.rss < _WORTH_TRYING * best:
                kinds.add(kind)
                kept.append(one)
        best = min(best, some[0].rss)
    return kept


def _group_of(model: Model, groups: Sequence[Group]) -> int:
    """Return which of the formulas that were drawn a model is, -1 if none."""
    own = structure(concatenated(model.state.trees), len(model.state.trees))
    for i, one in enumerate(groups):
        trees = one.model.state.trees
        if structure(concatenated(trees), len(trees)) == own:
            return i
    for i, one in enumerate(groups):
        if np.max(np.abs(model.probe - one.model.probe)) <= _SAME_FIT:
            return i
    return -1
