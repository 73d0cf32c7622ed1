"""Verdicts and warnings in the words of the command line: options instead of parameters."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..cautions import Caution, DataWarning, Remedy, SamplingWarning
from ..posterior.verdict import verdict_of
from .messages import say

# What a shell can do; a remedy that is not here is said as in Python.
_OPTIONS = {
    Remedy.RAISE_TIMEOUT: "raise --time",
    Remedy.LOWER_TUNE: "lower --tune",
    Remedy.RAISE_TUNE: "raise --tune",
    Remedy.RAISE_DRAWS: "raise --draws",
    Remedy.RAISE_DRAWS_AND_TUNE: "raise --draws and --tune",
    Remedy.RAISE_DRAWS_AND_TREES: "raise draws and the max_trees of PaperSampler in Python",
    Remedy.USE_TEMPERED: "use symbayes fit, which has a better sampler",
    Remedy.USE_MORE_CHAINS: "use more --chains",
    Remedy.USE_SEVERAL_CHAINS: "use more (--chains 4)",
    Remedy.ADD_TEMPERATURES: "use more of them (in Python: "
    "sampler=TemperedSampler(temperatures={temperatures}))",
    Remedy.TOLERATE: "overlook small differences in error (--tolerance 0.005)",
    Remedy.OTHER_SEED: "compare another --seed",
    Remedy.SEE_CHAINS: "symbayes show lists what each chain found",
    Remedy.STACK: "--combine stack",
    Remedy.SEE_FORMULAS: "Look at their intervals and symbayes show",
    Remedy.TELL_NOISE: "say how noisy it is (--noise)",
    Remedy.RESUME: "symbayes resume {path!r} continues from its checkpoint",
}


def verdict_text(diagnostics: Mapping[str, Any]) -> str:
    """Return the verdict of a model; that of an older file has the words of Python."""
    verdict = verdict_of(diagnostics)
    return diagnostics["verdict"] if verdict is None else verdict.text(_OPTIONS)


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Let warnings be lines like all others, without the line of source they come from."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if isinstance(message, SamplingWarning) and message.is_verdict:
            return  # the answer ends with it
        text = message.in_words(_OPTIONS) if isinstance(message, Caution) else str(message)
        say(f"warning: {text}")

    with warnings.catch_warnings():
        for category in (DataWarning, SamplingWarning):
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield
