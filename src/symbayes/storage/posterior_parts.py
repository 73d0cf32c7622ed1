"""A posterior as arrays, and back. Of what a file says, nothing is used before it is checked.

What is the same is stored once: trees, of which states are made, and states, of which the visited
ones come first and behind them those of models that differ from them (known terms put in front,
constants polished).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ..fitting.model import Model, State
from ..formula.operators import BY_OPCODE, OPERATORS
from ..kernels.opcodes import FEATURE, FIRST_BINARY, N_OPCODES
from ..kernels.tree import NODE
from ..posterior.grouping import Draws, Group
from ..posterior.posterior import LISTED, Posterior
from ..posterior.prediction import Mixture
from .archive import Arrays
from .parts import LARGEST, Parts, split
from .stored_zip import Damage

# In memory, a tree or a state is some ten times as large as it may be in a file.
_MOST_TREES = _MOST_STATES = 250_000
_MOST_MODELS = 10_000
# To evaluate a tree takes memory for every node.
_MOST_NODES = 10_000
# How far sums of probabilities may be from 1.
_ROUNDING = 1.0e-6

_STATE_NUMBERS = ("weight", "log_likelihood", "noise_variance")
_MODEL_NUMBERS = ("intercept", "mse", "noise_variance", "coefficient_spread")
# `probe` is of use only while formulas are told apart.
_MODEL_VECTORS = ("coefficients", "centre", "length", "beta")


class _Distinct:
    """Things in the order in which they came, and where each is."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._place: dict[Hashable, int] = {}

    def append(self, key: Hashable, item: Any) -> None:
        self._place.setdefault(key, len(self.items))
        self.items.append(item)

    def place(self, key: Hashable, item: Any) -> int:
        """Return where a thing is, which is at the end if it is new."""
        if key not in self._place:
            self.append(key, item)
        return self._place[key]


def to_arrays(posterior: Posterior) -> Arrays:
    """Return a posterior as arrays."""
    trees, states, models = _Distinct(), _Distinct(), _Distinct()

    def state_key(state: State) -> Hashable:
        places = tuple(trees.place(tree.tobytes(), tree) for tree in state.trees)
        return places, _numbers([state], _STATE_NUMBERS).tobytes()

    for state in posterior.states:
        states.append(state_key(state), state)

    def model_place(model: Model) -> int:
        place = states.place(state_key(model.state), model.state)
        numbers = _numbers([model], _MODEL_NUMBERS).tobytes()
        vectors = _vectors([model]).tobytes(), model.inverse_root.tobytes()
        return models.place((place, numbers, *vectors), (place, model))

    mixture, groups = posterior.mixture, posterior.groups
    in_mixture = [model_place(model) for _, model in mixture.models]
    in_groups = [model_place(one.model) for one in groups]
    nodes = np.concatenate([np.empty(0, NODE), *trees.items], dtype=NODE)
    of_states = [
        [trees.place(tree.tobytes(), tree) for tree in state.trees] for state in states.items
    ]
    fits = [model for _, model in models.items]
    numbers = (
        mixture.y_mean, mixture.y_scale, mixture.y_spread, mixture.n, *mixture.noise_prior,
    )  # fmt: skip
    return {
        "trees/length": _lengths(trees.items),
        "trees/op": nodes["op"].astype(np.uint8),
        "trees/feature": nodes["feature"],
        "trees/a": nodes["a"],
        "trees/b": nodes["b"],
        "states/visited": np.array(len(posterior.states), np.int32),
        "states/length": _lengths(of_states),
        "states/tree": _joined(of_states),
        "states/numbers": _numbers(states.items, _STATE_NUMBERS),
        "chains/weight": posterior.chain_weights,
        "draws/length": _lengths([draws.state for draws in posterior.draws]),
        "draws/state": np.concatenate([draws.state for draws in posterior.draws]).astype(np.int32),
        "draws/weight": np.concatenate([draws.weight for draws in posterior.draws]).astype(float),
        "models/state": _places([place for place, _ in models.items]),
        "models/numbers": _numbers(fits, _MODEL_NUMBERS),
        "models/vectors": _vectors(fits),
        "models/inverse_root": np.concatenate([fit.inverse_root.ravel() for fit in fits]),
        "mixture/model": _places(in_mixture),
        "mixture/weight": mixture.weights,
        "mixture/numbers": np.array(numbers, np.float64),
        "mixture/plug_in": np.array(mixture.plug_in, np.bool_),
        "groups/model": _places(in_groups),
        "groups/weight": np.array([one.weight for one in groups], np.float64),
        "groups/length": _lengths([one.members for one in groups]),
        "groups/member": _joined([sorted(one.members) for one in groups]),
        "inclusion": posterior.inclusion,
    }


def _places(places: Sequence[int]) -> np.ndarray:
    return np.array(places, np.int32)


def _lengths(items: Sequence[Any]) -> np.ndarray:
    return _places([len(item) for item in items])


def _joined(items: Sequence[Sequence[int]]) -> np.ndarray:
    return _places([place for item in items for place in item])


def _numbers(items: Sequence[Any], names: Sequence[str]) -> np.ndarray:
    return np.array([[getattr(item, name) for item in items] for name in names], np.float64)


def _vectors(models: Sequence[Model]) -> np.ndarray:
    return np.array([np.concatenate([getattr(model, name) for model in models])
                     for name in _MODEL_VECTORS])  # fmt: skip


def operator_names() -> list[str]:
    """Return the operators by the numbers that trees have in a file, from 1 on."""
    return [BY_OPCODE[code].name for code in range(1, N_OPCODES)]


def from_arrays(parts: Parts, names: Any, n_columns: int) -> Posterior:
    """Return the posterior that a file holds, over so many columns, or raise a Damage.

    `names` are the operators by the numbers that the file has for them, as `operator_names` was
    when it was written.
    """
    states, visited = _states(parts, _trees(parts, _opcodes(names), n_columns))
    models = _models(parts, states)
    draws = _draws(parts, visited)
    return Posterior(
        states=states[:visited],
        draws=draws,
        chain_weights=_chain_weights(parts, len(draws)),
        mixture=_mixture(parts, models),
        groups=_groups(parts, models, visited),
        inclusion=parts.within("inclusion", np.float64, (n_columns,), 0.0, 1.0),
    )


def _opcodes(names: Any) -> np.ndarray:
    """Return our number of each operator of a file, that of a column first."""
    if not isinstance(names, list) or len(names) >= 256:
        raise Damage("its operators are no list of names")
    if not all(isinstance(name, str) and name in OPERATORS for name in names):
        raise Damage("it has an operator that this version of symbayes does not have")
    return np.array([FEATURE, *(OPERATORS[name].opcode for name in names)], np.uint8)


def _trees(parts: Parts, opcodes: np.ndarray, n_columns: int) -> list[np.ndarray]:
    length = parts.within("trees/length", np.int32, (None,), 1, _MOST_NODES)
    op = opcodes[parts.within("trees/op", np.uint8, (None,), 0, len(opcodes) - 1)]
    shape = (len(op),)
    nodes = np.zeros(shape, NODE)
    nodes["op"] = op
    nodes["feature"] = parts.indices("trees/feature", shape, n_columns)
    for name in ("a", "b"):
        nodes[name] = parts.within(f"trees/{name}", np.float64, shape)
    _check_number("trees", len(length), _MOST_TREES)
    trees = split("trees/op", nodes, length)
    # Compiled code believes the arities. Behind each node so many further subtrees are needed, less
    # one: a tree is complete where that first falls below 0, which has to be at its end.
    step = (op > 0).astype(np.int8) + (op >= FIRST_BINARY) - 1
    missing = np.cumsum(step, dtype=np.int32)
    missing += np.repeat(np.arange(len(length), dtype=np.int32), length)
    if not np.array_equal(np.flatnonzero(missing < 0), np.cumsum(length, dtype=np.int64) - 1):
        raise Damage("a tree is not complete")
    return trees


def _check_number(what: str, n: int, most: int, least: int = 0) -> None:
    if not least <= n <= most:
        raise Damage(f"it has {n} {what}, and a file can have {least} to {most}")


def _states(parts: Parts, trees: list[np.ndarray]) -> tuple[list[State], int]:
    """Return all states, and how many of them were visited."""
    length = parts.within("states/length", np.int32, (None,), 0)
    n = len(length)
    _check_number("states", n, _MOST_STATES, least=1)
    places = split("states/tree", parts.indices("states/tree", (None,), len(trees)), length)
    numbers = parts.within("states/numbers", np.float64, (len(_STATE_NUMBERS), n))
    weight, _, noise_variance = numbers
    visited = int(parts.within("states/visited", np.int32, (), 1, n))
    _check_probabilities("states", weight[:visited], complete=True)
    if not ((weight >= 0.0) & (noise_variance >= 0.0)).all():
        raise Damage("a state has a negative number where none can be")
    rows = zip(places, numbers.T.tolist(), strict=True)
    return [State(tuple(trees[i] for i in row.tolist()), *values) for row, values in rows], visited


def _check_probabilities(what: str, weights: np.ndarray, complete: bool) -> None:
    """Complain about weights that are no probabilities, of everything there is or of a part."""
    total = float(weights.sum())
    least = 1.0 if complete else 0.0
    if not ((weights >= 0.0).all() and least - _ROUNDING <= total <= 1.0 + _ROUNDING):
        raise Damage(f"the probabilities of the {what} cannot be")


def _draws(parts: Parts, n_states: int) -> list[Draws]:
    length = parts.within("draws/length", np.int32, (None,), 1)
    _check_number("chains", len(length), _MOST_STATES, least=1)
    state = parts.indices("draws/state", (None,), n_states).astype(np.int64)
    weight = parts.within("draws/weight", np.float64, state.shape, np.nextafter(0.0, 1.0), LARGEST)
    pairs = zip(split("draws/state", state, length), split("draws/weight", weight, length),
                strict=True)  # fmt: skip
    return [Draws(*pair) for pair in pairs]


def _chain_weights(parts: Parts, n_chains: int) -> np.ndarray:
    weights = parts.within("chains/weight", np.float64, (n_chains,), np.nextafter(0.0, 1.0))
    _check_probabilities("chains", weights, complete=True)
    return weights


def _models(parts: Parts, states: list[State]) -> list[Model]:
    place = parts.indices("models/state", (None,), len(states)).tolist()
    _check_number("models", len(place), _MOST_MODELS, least=1)
    terms = np.array([len(states[i].trees) for i in place], np.int64)
    numbers = parts.within("models/numbers", np.float64, (len(_MODEL_NUMBERS), len(place)))
    intercept, mse, noise_variance, spread = numbers
    shape = (len(_MODEL_VECTORS), int(terms.sum()))
    vectors = parts.within("models/vectors", np.float64, shape)
    lengths = vectors[_MODEL_VECTORS.index("length")]
    if not (
        np.isfinite(intercept).all()
        and (mse >= 0.0).all()
        and (noise_variance >= 0.0).all()
        and ((spread >= 0.0) & (spread <= 1.0)).all()
        and (lengths > 0.0).all()
    ):
        raise Damage("a model has a number that cannot be")
    roots = parts.within("models/inverse_root", np.float64, (int((terms**2).sum()),))
    return [
        Model(
            state=states[i],
            inverse_root=root.reshape(k, k),
            probe=np.empty(0),
            **dict(zip(_MODEL_NUMBERS, values, strict=True)),
            **dict(zip(_MODEL_VECTORS, rows, strict=True)),
        )
        for i, k, values, rows, root in zip(
            place,
            terms.tolist(),
            numbers.T.tolist(),
            split("models/vectors", vectors, terms),
            split("models/inverse_root", roots, terms**2),
            strict=True,
        )
    ]


def _mixture(parts: Parts, models: list[Model]) -> Mixture:
    place = parts.indices("mixture/model", (None,), len(models)).tolist()
    _check_number("models to predict with", len(place), len(models), least=1)
    weight = parts.within("mixture/weight", np.float64, (len(place),))
    _check_probabilities("models", weight, complete=True)
    numbers = parts.within("mixture/numbers", np.float64, (6,))
    y_mean, y_scale, y_spread, n, nu, lam = numbers.tolist()
    if not (y_scale > 0.0 and y_spread > 0.0 and n >= 1.0 and nu > 0.0 and lam > 0.0):
        raise Damage("a number that predictions need cannot be")
    return Mixture(
        models=[(share, models[i]) for share, i in zip(weight.tolist(), place, strict=True)],
        y_mean=y_mean,
        y_scale=y_scale,
        y_spread=y_spread,
        n=n,
        noise_prior=(nu, lam),
        plug_in=bool(parts.take("mixture/plug_in", np.bool_, ())),
    )


def _groups(parts: Parts, models: list[Model], n_states: int) -> list[Group]:
    place = parts.indices("groups/model", (None,), len(models)).tolist()
    _check_number("formulas", len(place), LISTED, least=1)
    weight = parts.within("groups/weight", np.float64, (len(place),))
    _check_probabilities("formulas", weight, complete=False)
    length = parts.within("groups/length", np.int32, (len(place),), 1)
    member = parts.indices("groups/member", (None,), n_states)
    if len(np.unique(member)) != len(member):
        raise Damage("a state is of more than one formula")
    members = split("groups/member", member, length)
    return [
        Group(share, models[i], frozenset(states.tolist()))
        for share, i, states in zip(weight.tolist(), place, members, strict=True)
    ]
