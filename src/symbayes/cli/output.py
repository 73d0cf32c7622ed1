"""What a command leaves behind: a model as text or JSON, and files that are checked beforehand."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import shutil
import tempfile
import textwrap
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import count
from numbers import Integral
from pathlib import Path
from typing import Any

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
# What JSON tells of the diagnostics.
_DIAGNOSTICS = (
    "verdict", "converged", "r_hat", "effective_draws", "leading_by_chain", "search_agreed",
    "search_cut", "chains_disagree", "stacking_weights", "stacking_gain", "interrupted",
    "timed_out", "settled", "restarts", "proposals", "evaluations", "acceptance",
)  # fmt: skip


# A model as text.


def formulas_text(formulas: pd.DataFrame, n: int) -> str:
    """Return the first formulas as a table, as wide as the terminal or 80 characters."""
    shown = formulas.head(n)
    explained = [r2_text(r2) for r2 in shown["r2"]]
    width = max(6, *map(len, explained))
    lines = [f"probability  nodes  {'R2':>{width}}  formula"]
    for row, r2 in zip(shown.itertuples(), explained, strict=True):
        start = f"{_probability(row.probability)}  {row.n_nodes:5d}  {r2:<{width}}  "
        lines.append(wrapped(row.formula, start))
    if len(formulas) > n:
        lines.append(f"... and {len(formulas) - n} more")
    return "\n".join(lines)


def r2_text(r2: float) -> str:
    """Return a share of variation with four decimals, or as many as tell it from all of it."""
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
        f"best formula ({model.result_.chosen_by(model.model_selection)}):",
        wrapped(best["formula"], "  "),
    ]
    if best["rounded"] != best["formula"]:
        parts += ["with simple constants:", wrapped(best["rounded"], "  ")]
    parts += [
        f"error: {best['rmse']:.3g} (root mean square on the training rows), "
        f"R2 {r2_text(best['r2'])}",
        f"nodes: {best['n_nodes']}, probability: {_probability(best['probability']).strip()}",
        wrapped(verdict_text(model.diagnostics_), "verdict: "),
    ]
    if model.diagnostics_["chains_disagree"]:
        parts += ["", "chain  weight  probability  formula"]
        for row in model.formulas_by_chain().itertuples():
            weight, probability = model.chain_weights_[row.chain], _probability(row.probability)
            parts.append(wrapped(row.formula, f"{row.chain:5d}  {weight:6.3f}  {probability}  "))
    return "\n".join(parts)


def _probability(share: float) -> str:
    return f"{'<0.001' if share < 0.0005 else f'{share:.3f}':>11}"


def _best_row(model: Any) -> dict[str, Any]:
    return dict(model.result_.best_row)


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
    """Return all facts about a fitted model, as they go into JSON.

    At most `n` formulas, where None stands for all; with `pareto` only those to which no other is
    both shorter and closer.
    """
    diagnostics, seed = model.diagnostics_, model.random_state
    formulas = model.pareto_ if pareto else model.formulas_
    return {
        "version": __version__,
        "target": model.result_.target,
        "columns": model.result_.names,
        "rows": model.result_.n_rows,
        "seed": int(seed) if isinstance(seed, Integral) else None,
        "formulas": formulas[:n].to_dict("records"),
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
    """Return an object as JSON; numbers that are not finite become null."""
    text = json.dumps(content, default=lambda array: array.tolist())
    return json.dumps(json.loads(text, parse_constant=lambda name: None), indent=2)


# Files.


class _Enough(Exception):
    """Nothing is to be written yet."""


def check_destinations(taken: Iterable[str], **destinations: str | None) -> None:
    """Complain now about files that could not be written later.

    Destinations go by their options; they must not replace each other, nor files that are `taken`
    by the same call.
    """
    files = {os.path.realpath(path) for path in taken}
    for option, path in destinations.items():
        if path is None:
            continue
        if path == "-":
            raise UsageError(f"--{option} needs the name of a file, not '-'")
        if os.path.realpath(path) in files:
            raise UsageError(f"--{option} {path} would replace another file of this call")
        files.add(os.path.realpath(path))
        with suppress(_Enough), replacing(path):
            raise _Enough


def rescue_path() -> str:
    """Return where to save what nobody named a file for: a new one in the working folder.

    If nothing can be written there, it is in the folder for temporary files.
    """
    folder = Path() if os.access(".", os.W_OK) else Path(tempfile.gettempdir())
    names = (f"symbayes-interrupted{'' if i == 1 else f'-{i}'}.symbayes" for i in count(1))
    return os.fspath(next(folder / name for name in names if not (folder / name).exists()))


def deliver(
    run: Callable[[], Any],
    show: Callable[[Any, dict[str, str | None]], None],
    out: str | None,
    report: str | None,
    checkpoint: str | None = None,
) -> int:
    """Write the model of a run and its report, show the answer, and return the exit status.

    The first Ctrl-C ends a run early, and what it has found so far is saved in any case. Files
    come before what is shown: Ctrl-C may have ended who reads it. What is shown, by `show` with the
    files written, does not depend on whether files could be written.
    """
    try:
        model = run()
    except KeyboardInterrupt:
        left = "there was nothing to save" if checkpoint is None else (
            f"symbayes resume {shlex.quote(checkpoint)} continues from its checkpoint"
        )  # fmt: skip
        raise KeyboardInterrupt(f"stopped; {left}") from None
    # What is saved is not bound to the terminal it was made in.
    model.set_params(progress=False)
    interrupted = model.diagnostics_["interrupted"]
    written: dict[str, str | None] = {"model": None, "report": None}
    try:
        if interrupted and out is None:
            out = rescue_path()
        if out is not None:
            try:
                model.save(out)
            except KeyboardInterrupt:  # too late to end the fit, and no reason to lose its result
                model.save(out)
                raise KeyboardInterrupt(f"stopped; the model was saved to {out}") from None
            written["model"] = out
            if interrupted:
                say(f"interrupted; the result so far was saved to {out}")
        if report is not None:
            model.report(report)
            written["report"] = report
    finally:
        show(model, written)
    return INTERRUPTED if interrupted else 0


def print_files(written: dict[str, str | None]) -> None:
    """Print where files are."""
    for what, path in written.items():
        if path is not None:
            print(f"{what}: {path}")
