"""Files whose checksums fit and whose content does not: a clear error, and no crash further on."""

import numpy as np
import pytest

import symbayes
from symbayes import ModelFileError
from symbayes.kernels import opcodes

from ..fits import NOISY, X, small
from .saving import answers, write_edited

TABLE = np.vstack([X[:4], [[5.0, -9.0]]])


def fit():
    return small(draws=30, known_terms=["x0*x1"], operators="all", n_terms=2).fit(X, NOISY)


def fit_of_the_paper():
    return small(sampler="paper", n_terms=2).fit(X, NOISY)


def fit_stacked():
    return small(draws=20, tune=0, chains=3, combine="stack").fit(X, NOISY)


@pytest.fixture(scope="module")
def model():
    return fit()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "forged.symbayes"


def entry(name, value, *keys):
    """An edit that sets something in the document; `keys` lead to it."""

    def edit(document, arrays):
        place, last = document, name
        for key in keys:
            place, last = place[last], key
        place[last] = value

    return edit


def element(name, value, at=0):
    """An edit that sets one element of an array, counted through all dimensions."""

    def edit(document, arrays):
        arrays[name].reshape(-1)[at] = value

    return edit


def array(name, change):
    """An edit that replaces an array."""

    def edit(document, arrays):
        arrays[name] = change(arrays[name])

    return edit


def both(*edits):
    def edit(document, arrays):
        for one in edits:
            one(document, arrays)

    return edit


def record(name, value):
    """An edit that sets an entry of the diagnostics."""

    def edit(document, arrays):
        pairs = document["diagnostics"]["dict"]
        next(pair for pair in pairs if pair[0] == name)[1] = value

    return edit


def an_operand_too_many(document, arrays):
    length = arrays["trees/length"]
    root = (np.cumsum(length) - length)[np.argmax(length > 1)]
    arrays["trees/op"][root] = 0


def one_term_moved(document, arrays):
    """From the first state, which no model is made of, to the last."""
    arrays["states/length"][0] -= 1
    arrays["states/length"][-1] += 1


def a_deep_tree(document, arrays):
    """All of one long chain of operators, which evaluation can do and printing cannot."""
    n = 9_999
    arrays["trees/length"] = np.append(arrays["trees/length"], np.int32(n + 1))
    chain = np.append(np.full(n, opcodes.ARCTAN, np.uint8), np.uint8(0))
    arrays["trees/op"] = np.append(arrays["trees/op"], chain)
    for name in ("feature", "a", "b"):
        old = arrays[f"trees/{name}"]
        arrays[f"trees/{name}"] = np.append(old, np.zeros(n + 1, old.dtype))
    arrays["states/tree"][:] = len(arrays["trees/length"]) - 1


def many_formulas(document, arrays):
    """One wide tree in all formulas: as long to write as it is short to store."""
    n = 4_999
    arrays["trees/length"] = np.append(arrays["trees/length"], np.int32(2 * n + 1))
    wide = np.append(np.tile(np.array([opcodes.ADD, 0], np.uint8), n), np.uint8(0))
    arrays["trees/op"] = np.append(arrays["trees/op"], wide)
    for name in ("feature", "a", "b"):
        old = arrays[f"trees/{name}"]
        arrays[f"trees/{name}"] = np.append(old, np.zeros(2 * n + 1, old.dtype))
    arrays["states/tree"][:] = len(arrays["trees/length"]) - 1
    groups, visited = 100, int(arrays["states/visited"])
    arrays["groups/model"] = np.zeros(groups, np.int32)
    arrays["groups/weight"] = np.full(groups, 1 / groups)
    arrays["groups/length"] = np.ones(groups, np.int32)
    arrays["groups/member"] = np.arange(groups, dtype=np.int32)
    # As many states as there are formulas.
    more = max(0, groups - visited)
    arrays["states/visited"] = np.array(visited + more, np.int32)
    arrays["states/length"] = np.append(np.zeros(more, np.int32), arrays["states/length"])
    zeros = np.zeros((3, more))
    arrays["states/numbers"] = np.concatenate([zeros, arrays["states/numbers"]], axis=1)
    arrays["models/state"] += np.int32(more)
    document["rounded"] = document["digits"] = [None] * groups
    arrays["r2"] = arrays["log_evidence"] = np.zeros(groups)
    arrays["front/group"][:] = -1


INT_MAX = 2**31 - 1
MIXTURE = ("model", "weight")
FORGERIES = {
    # Trees, on which compiled code would run.
    "an unknown operator": (
        element("trees/op", opcodes.N_OPCODES), "trees/op has impossible values"
    ),
    "a missing operand": (element("trees/op", opcodes.ADD, -1), "tree of trees is not complete"),
    "an operand too many": (an_operand_too_many, "tree of trees is not complete"),
    "a column that is not there": (element("trees/feature", 2), "trees/feature has impossible"),
    "a column before the first": (element("trees/feature", -1), "trees/feature has impossible"),
    "a constant that is nan": (element("trees/b", np.nan), "trees/b has impossible values"),
    "an empty tree": (element("trees/length", 0), "trees/length has impossible values"),
    "a tree too long": (element("trees/length", 4), "trees/op does not have the length that its"),
    "a huge tree": (element("trees/length", INT_MAX), "trees/length has impossible values"),
    "no nodes": (array("trees/op", lambda a: a[:0]), "trees/feature is of int32 with the shape"),
    "a deep tree": (a_deep_tree, "a formula is nested too deeply"),
    "many long formulas": (many_formulas, "its formulas have more than 500000 nodes together"),
    # States and models.
    "a tree that is not there": (element("states/tree", 10**6), "states/tree has impossible"),
    "trees left over": (element("states/length", 0), "states/tree does not have the length"),
    "more visited": (element("states/visited", 10**6), "of a state that was not visited"),
    "no states": (array("states/length", lambda a: a[:0]), "states/numbers is of float64 with"),
    "a probability above 1": (element("states/numbers", 1.5), "probabilities of the states are"),
    "noise below 0": (element("states/numbers", -1.0, -1), "states/numbers has impossible"),
    "a state that is not there": (element("models/state", -1), "models/state has impossible"),
    "a state of more terms": (one_term_moved, "models/.* does not have the length"),
    "an infinite intercept": (element("models/numbers", np.inf), "models/numbers has impossible"),
    "a negative error": (
        array("models/numbers", lambda a: a * np.array([[1], [-1], [1], [1]])), "has impossible"
    ),
    "a length of 0": (array("models/vectors", lambda a: 0 * a), "models/vectors has impossible"),
    "a root too short": (array("models/inverse_root", lambda a: a[1:]), "inverse_root does not"),
    # Predictions.
    "no model to predict": (
        both(array("mixture/model", lambda a: a[:0]), array("mixture/weight", lambda a: a[:0])),
        "has 0 models to predict with",
    ),
    "too many to predict": (
        both(*(array(f"mixture/{n}", lambda a: np.zeros(99999, a.dtype)) for n in MIXTURE)),
        "has 99999 models to predict with",
    ),
    "weights of 2 together": (array("mixture/weight", lambda a: 2 * a), "probabilities of the mod"),
    "a scale of 0": (element("mixture/numbers", 0.0, 1), "mixture/numbers has impossible"),
    "a number as truth": (
        array("mixture/plug_in", lambda a: np.array(1.0)), "plug_in is of float64 with the shape"
    ),
    # Draws and formulas.
    "a draw of no state": (element("draws/state", 10**6), "draws/state has impossible values"),
    "a draw of no weight": (element("draws/weight", 0.0), "draws/weight has impossible values"),
    "a chain too long": (element("draws/length", 10**9), "draws/state does not have the length"),
    "no formulas": (
        both(*(array(f"groups/{n}", lambda a: a[:0]) for n in ("model", "weight", "length")),
             *(array(n, lambda a: a[:0]) for n in ("r2", "log_evidence")),
             array("front/group", lambda a: 0 * a - 1)),
        "groups/member does not have the length",
    ),
    "a member of two": (
        array("groups/member", lambda a: 0 * a), "a state is of more than one formula"
    ),
    "a formula more probable than 1": (
        array("groups/weight", lambda a: 3 * a), "probabilities of the formulas are impossible"
    ),
    "an r2 above 1": (element("r2", 1.5), "r2 has impossible values"),
    "an r2 of the front above 1": (element("front/r2", 1.5), "front/r2 has impossible values"),
    "no model on the front": (element("front/model", 10**6), "front/model has impossible values"),
    "a formula of no place": (element("front/group", -2), "front/group has impossible values"),
    "a formula after the last": (element("front/group", 300), "front/group has impossible values"),
    "half a front": (
        lambda document, arrays: document.pop("front"), "a part of its front is missing"
    ),
    "no front": (
        lambda document, arrays: document.update(front=None), "a part of its front is missing"
    ),
    "a best that is not on the front": (
        lambda document, arrays: document["front"].update(best=300),
        "the best of its front is not there",
    ),
    "a front without digits": (
        lambda document, arrays: document["front"].pop("digits"),
        "its front does not have the expected entries",
    ),
    "a front with too few texts": (
        lambda document, arrays: document["front"].update(rounded=[None]),
        "its rounded formulas are not one per formula",
    ),
    "a best formula that is not there": (entry("best", 10**6), "best formula is none of its"),
    "a true best formula": (entry("best", True), "'best' of its document is impossible"),
    "a number as text": (entry("rounded", 3, 0), "'rounded' of its document is impossible"),
    "an error that is nan": (entry("near", {"float": "nan"}), "one of its errors is no number"),
    # Columns and rows.
    "columns": (entry("n_columns", 3), "used|rows/x is of float64 with the shape"),
    "very many columns": (entry("n_columns", 10**9), "its number of columns is impossible"),
    "a true number": (entry("n_columns", True), "'n_columns' of its document is"),
    "no text": (entry("names", ["a", 1]), "'names' of its document is impossible"),
    "a name twice": (entry("names", ["a", "a"]), "names of columns are not one per column"),
    "a column in use twice": (element("used", 0, 1), "its columns or their ranges are impossible"),
    "two rows": (
        both(*(array(f"rows/{n}", lambda a: a[:2]) for n in ("x", "y", "weights", "position"))),
        "it has 2 rows",
    ),
    "nan in a row": (element("rows/x", np.nan), "rows/x has impossible values"),
    "a weight below 0": (element("rows/weights", -1.0), "rows/weights has impossible values"),
    "a row less": (array("rows/y", lambda a: a[1:]), "rows/y is of float64 with the shape"),
    "small numbers": (array("rows/x", lambda a: a.astype(np.float32)), "rows/x is of float32"),
    # Parameters.
    "a parameter less": (lambda d, a: d["parameters"].pop("draws"), "not have the parameters of"),
    "a parameter more": (entry("parameters", 1, "x"), "it does not have the parameters of a model"),
    "draws": (entry("parameters", "x", "draws"), "impossible: draws must be an integer, not str"),
    "a class of Python": (
        entry("parameters", {"Popen": [["args", "ls"]]}, "tree_prior"), "KeyError: 'Popen'"
    ),
    "settings": (
        entry("parameters", {"TreePrior": [["alpha", 7]]}, "tree_prior"),
        "cannot be .ValueError: tree_prior: alpha is 7",
    ),
    "settings of no field": (
        entry("parameters", {"TreePrior": [["__class__", 7]]}, "tree_prior"), "value that cannot be"
    ),
    "settings by number": (
        entry("parameters", {"TreePrior": [[1, 7]]}, "tree_prior"), "value that cannot be"
    ),
    "other settings": (
        entry("parameters", {"NoisePrior": []}, "tree_prior"), "tree_prior must be a TreePrior"
    ),
    "two kinds": (
        entry("parameters", {"tuple": [], "dict": []}, "operators"), "value that cannot be"
    ),
    "a tuple of nothing": (entry("parameters", {"tuple": 1}, "operators"), "value that cannot be"),
    "a dict of threes": (
        entry("parameters", {"dict": [[1, 2, 3]]}, "operators"), "value that cannot be"
    ),
    "an array of no size": (
        entry("parameters", {"array": ["float64", [-2]]}, "feature_weights"), "a size below 0"
    ),
    "an array that is too large": (
        entry("parameters", {"array": ["float64", [2**62]]}, "feature_weights"), "that cannot be"
    ),
    "an array that is empty and too large": (
        entry("parameters", {"array": ["float64", [0, 2**62, 2**62]]}, "feature_weights"),
        "value that cannot be",
    ),
    "an array of a type that is not there": (
        entry("parameters", {"array": ["int8", [2]]}, "feature_weights"), "KeyError: 'int8'"
    ),
    # Diagnostics.
    "no diagnostics": (entry("diagnostics", None), "its diagnostics are no dict|is too long"),
    "a verdict": (record("verdict", 1), "'verdict' of its diagnostics is impossible"),
    "rates": (record("acceptance", {"dict": [["a", "b"]]}), "'acceptance' of its diagnostics"),
    "chains": (record("leading_by_chain", []), "'leading_by_chain' of its diagnostics is"),
    "finds": (record("found", [[0.1, "x"]]), "'found' of its diagnostics is impossible"),
    "values left over": (array("values/float64", lambda a: np.append(a, 1.0)), "is too long"),
    "values missing": (array("values/float64", lambda a: a[:-1]), "value that cannot be"),
    "values of another type": (
        array("values/float64", lambda a: a.astype(np.float32)), "of another type or shape"
    ),
    "a history": (entry("history", {"dict": [["chain", 1]]}), "its history is impossible"),
    # The whole.
    "an array less": (lambda d, a: a.pop("inclusion"), "the array inclusion is missing"),
    "an array more": (
        lambda d, a: a.update(extra=np.zeros(2)), "arrays that belong to nothing, such as extra"
    ),
    "an entry less": (lambda d, a: d.pop("near"), "document does not have the expected entries"),
    "an entry more": (entry("code", "x"), "its document does not have the expected entries"),
}  # fmt: skip


@pytest.mark.parametrize("case", FORGERIES)
def test_forgeries_are_noticed(model, path, case):
    edit, says = FORGERIES[case]
    write_edited(model, path, edit)
    with pytest.raises(ModelFileError, match=f"is damaged: .*(?:{says})") as info:
        symbayes.load(path)
    assert str(info.value).startswith(repr(str(path)))
    assert str(info.value).endswith("; restore a backup or fit again")


@pytest.mark.parametrize("column", ["chain", "rmse"])
def test_a_forged_history(path, column):
    def edit(document, arrays):
        pairs = document["history"]["dict"]
        pair = next(pair for pair in pairs if pair[0] == column)
        pair[1]["array"][1] = [1, *pair[1]["array"][1]]

    write_edited(fit_of_the_paper(), path, edit)
    with pytest.raises(ModelFileError, match="its history is impossible"):
        symbayes.load(path)


def test_what_is_not_edited_is_loaded(model, path):
    write_edited(model, path, lambda document, arrays: None)
    assert answers(symbayes.load(path), TABLE) == answers(model, TABLE)


def test_deep_and_long_trees_that_are_not_shown_can_be_evaluated(model, path):
    """The limits keep memory and time in bounds, and no more."""

    def edit(document, arrays):
        a_deep_tree(document, arrays)
        listed = np.append(arrays["groups/model"], arrays["front/model"])
        shown = arrays["models/state"][listed]
        ends = np.cumsum(arrays["states/length"])
        for state in shown:
            end = ends[state]
            arrays["states/tree"][end - arrays["states/length"][state] : end] = 0
        for entry in (document, document["front"]):
            entry["digits"] = [None] * len(entry["digits"])

    write_edited(model, path, edit)
    assert np.isfinite(symbayes.load(path).predict(X)).all()


@pytest.mark.parametrize("digits", [3, [], [[0]], [[6, 6, 6, 6, 6, 6, 6, 6, 6]]])
def test_digits_that_cannot_be(model, path, digits):
    def edit(document, arrays):
        n = len(document["digits"])
        if isinstance(digits, list) and digits:
            document["digits"] = digits + [None] * (n - 1)
        else:
            document["digits"] = digits

    write_edited(model, path, edit)
    with pytest.raises(ModelFileError, match="its numbers of digits are not those of its"):
        symbayes.load(path)


def test_operators_are_known_by_name(model, path):
    """In another order, as another version may have them."""

    def edit(document, arrays):
        old = document["operators"]
        document["operators"] = old[::-1]
        op = arrays["trees/op"]
        arrays["trees/op"] = np.where(op > 0, len(old) + 1 - op, 0).astype(np.uint8)

    write_edited(model, path, edit)
    again = symbayes.load(path)
    assert again.formulas_["formula"].tolist() == model.formulas_["formula"].tolist()


@pytest.mark.parametrize("names", [None, ["magic"], ["+"] * 300, []])
def test_operators_that_cannot_be(model, path, names):
    def edit(document, arrays):
        document["operators"] = names

    write_edited(model, path, edit)
    with pytest.raises(ModelFileError, match=r"operator|trees/op has impossible values"):
        symbayes.load(path)
