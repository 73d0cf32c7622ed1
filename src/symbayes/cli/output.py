"""What a command leaves behind: a model as text or JSON, and files that are checked beforehand."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .. import __version__
from ..show.display import printable
from ..storage.atomic import replacing
from .messages import INTERRUPTED, UsageError, say
from .wording import verdict_text

#: Formulas in a table, if nothing else is said.
MOST_FORMULAS = 10
# Narrower than this, nothing is readable; wider lines are hard to follow.
_NARROWEST, _WIDEST = 60, 160
# A part of the variation that may be a rounding error.
_ROUNDING_ERROR = 1.0e-12
# A name in backticks, in which a backslash takes the next character as it is; and what stands for
# a blank in it while lines are broken: printable text has none.
_QUOTED, _NO_BREAK = re.compile(r"`(?:[^`\\]|\\.)*`"), "\0"
_RULES = {
    "probability": "the most probable",
    "one_standard_error": "the simplest within one standard error",
    "accuracy": "the smallest error",
}
# What JSON tells of the diagnostics.
_DIAGNOSTICS = (
    "verdict", "converged", "r_hat", "effective_draws", "leading_by_chain", "search_agreed",
    "search_cut", "chains_disagree", "stacking_weights", "stacking_gain", "interrupted",
    "timed_out", "settled", "restarts", "proposals", "evaluations", "acceptance",
)  # fmt: skip
_RESCUED = "symbayes-interrupted"


# A model as text.


def formulas_text(formulas: pd.DataFrame, n: int) -> str:
    """Return the first formulas as a table, as wide as the terminal or 80 characters."""
    shown = formulas.head(n)
    explained = [r2_text(r2) for r2 in shown["r2"]]
    width = max(6, *map(len, explained))
    lines = [f"probability  nodes  {'R2':>{width}}  formula"]
    for row, r2 in zip(shown.itertuples(), explained, strict=True):
        start = f"{_probability(row.probability):>11}  {row.n_nodes:5d}  {r2:<{width}}  "
        lines.append(wrapped(row.formula, start))
    if len(formulas) > n:
        lines.append(f"... and {len(formulas) - n} more")
    return "\n".join(lines)


def r2_text(r2: float) -> str:
    """Return a share of variation with four decimals, or as many as tell it from all of it.

    Examples
    --------
    >>> from symbayes.cli.output import r2_text
    >>> r2_text(0.99712), r2_text(0.999983), r2_text(1 - 1e-15)
    ('0.9971', '0.99998', '1.0000')
    """
    rest = 1.0 - r2
    if rest < _ROUNDING_ERROR:
        return "1.0000"
    return f"{r2:.{max(4, math.ceil(-math.log10(rest)))}f}"


def answer_text(model: Any, n: int = MOST_FORMULAS) -> str:
    """Return what a fit has found: formulas, the best one, its error, and the verdict."""
    best = _best_row(model)
    parts = [
        formulas_text(model.formulas_, n),
        "",
        f"best formula ({_RULES[model.model_selection]}):",
        wrapped(best["formula"], "  "),
    ]
    if best["rounded"] != best["formula"]:
        parts += ["with simple constants:", wrapped(best["rounded"], "  ")]
    parts += [
        f"error: {best['rmse']:.3g} (root mean square on the training rows), "
        f"R2 {r2_text(best['r2'])}",
        wrapped(verdict_text(model.diagnostics_), "verdict: "),
    ]
    if model.diagnostics_["chains_disagree"]:
        parts += ["", _chains_text(model)]
    return "\n".join(parts)


def _chains_text(model: Any) -> str:
    """Return the leading formulas of each chain, and how much it counts."""
    weights = model.chain_weights_
    lines = ["chain  weight  probability  formula"]
    for row in model.formulas_by_chain().itertuples():
        share = _probability(row.probability)
        start = f"{row.chain:5d}  {weights[row.chain]:6.3f}  {share:>11}  "
        lines.append(wrapped(row.formula, start))
    return "\n".join(lines)


def _probability(share: float) -> str:
    return "<0.001" if share < 0.0005 else f"{share:.3f}"


def _best_row(model: Any) -> dict[str, Any]:
    place = model.formula_objects_.index(model.best_formula_)
    return model.formulas_.iloc[place].to_dict()


def wrapped(text: str, start: str) -> str:
    """Return text after its label, with further lines below its beginning.

    A name in backticks stays on one line, so that it can be copied.
    """
    columns = shutil.get_terminal_size().columns
    kept = _QUOTED.sub(lambda name: name[0].replace(" ", _NO_BREAK), printable(text))
    filled = textwrap.fill(
        kept,
        width=min(max(columns, _NARROWEST), _WIDEST),
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled.replace(_NO_BREAK, " ")


# A model as JSON: strict, without NaN, in characters that every encoding has.


def facts(model: Any, n: int | None = None, pareto: bool = False) -> dict[str, Any]:
    """Return what there is to tell about a fitted model.

    At most `n` formulas, where None stands for all; with `pareto` only those to which no other is
    both shorter and closer.
    """
    diagnostics = model.diagnostics_
    formulas = model.pareto_ if pareto else model.formulas_
    seed = model.random_state
    return {
        "version": __version__,
        "target": model.result_.target,
        "columns": model.result_.names,
        "rows": model.result_.n_rows,
        "seed": int(seed) if isinstance(seed, Integral) else None,
        "formulas": formulas.head(len(formulas) if n is None else n).to_dict("records"),
        "best": _best_row(model) | {"rule": model.model_selection},
        "chains": {
            "combined": model.combine,
            "weights": model.chain_weights_,
            "formulas": model.formulas_by_chain().to_dict("records"),
        },
        "inclusion_probability": model.inclusion_probability().to_dict(),
        "diagnostics": {name: diagnostics[name] for name in _DIAGNOSTICS if name in diagnostics}
        | {"verdict": verdict_text(diagnostics)},
        "seconds": diagnostics["seconds"],
    }


def to_json(content: dict[str, Any]) -> str:
    r"""Return an object as JSON; numbers that are not finite become null.

    Examples
    --------
    >>> from symbayes.cli.output import to_json
    >>> print(to_json({"r_hat": float("nan"), "name": "λ"}))
    {
      "r_hat": null,
      "name": "\u03bb"
    }
    """
    return json.dumps(_plain(content), allow_nan=False, indent=2)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


# Files.


class _Enough(Exception):
    """Nothing is to be written yet."""


def check_destination(option: str, path: str, others: Sequence[str]) -> None:
    """Complain now about a file that could not be written later.

    `option` names it on the command line; `others` are files of the same call, which it must not
    replace.
    """
    if path == "-":
        raise UsageError(f"{option} needs the name of a file, not '-'")
    for other in others:
        if os.path.realpath(path) == os.path.realpath(other):
            raise UsageError(f"{option} {path} would replace another file of this call")
    with suppress(_Enough), replacing(path):
        raise _Enough


def rescue_path() -> str:
    """Return where to save what nobody named a file for: a new one in the working folder.

    If nothing can be written there, it is in the folder for temporary files.
    """
    problems: list[OSError] = []
    for folder in (Path(), Path(tempfile.gettempdir())):
        names = (f"{_RESCUED}{'' if i == 1 else f'-{i}'}.symbayes" for i in count(1))
        path = next(os.fspath(folder / name) for name in names if not (folder / name).exists())
        try:
            check_destination("", path, [])
        except OSError as error:
            problems.append(error)
        else:
            return path
    raise problems[0]


def deliver(
    model: Any,
    out: str | None,
    report: str | None,
    show: Callable[[dict[str, str | None]], None],
) -> int:
    """Write a fitted model and its report, show the answer, and return the exit status.

    A run that was interrupted is saved in any case. Files come before what is shown: Ctrl-C may
    have ended who reads it. What is shown, by `show` with the files written, does not depend on
    whether files could be written.
    """
    interrupted = model.diagnostics_["interrupted"]
    written: dict[str, str | None] = {"model": None, "report": None}
    try:
        if interrupted and out is None:
            out = rescue_path()
        if out is not None:
            with _ctrl_c_waits(f"stopped; the model was saved to {out}"):
                model.save(out)
            written["model"] = out
            if interrupted:
                say(f"interrupted; the result so far was saved to {out}")
        if report is not None:
            model.report(report)
            written["report"] = report
    finally:
        show(written)
    return INTERRUPTED if interrupted else 0


@contextmanager
def _ctrl_c_waits(message: str) -> Iterator[None]:
    """Let Ctrl-C, which comes too late to end the fit, not cost its result; a second one may."""
    if threading.current_thread() is not threading.main_thread():
        yield  # where there are no signals
        return
    pressed: list[bool] = []

    def on_interrupt(*_: Any) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(True)

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
    if pressed:
        raise KeyboardInterrupt(message)


def print_files(written: dict[str, str | None]) -> None:
    """Print where files are."""
    for what, path in written.items():
        if path is not None:
            print(f"{what}: {path}")
