"""What the library says, in the words of the command line."""

from __future__ import annotations

import re

# Parameters and the options that set them; what only matters in Python is left out.
_WORDS = (
    (r"\b([Rr]aise|[Ll]ower) (draws|tune)\b", r"\1 --\2"),
    (r"(--draws) and tune\b", r"\1 and --tune"),
    (r"\btimeout\b", "--time"),
    (r"\brandom_state\b", "--seed"),
    (r"\bnoise_prior\b", "--noise"),
    (r"\bchains=", "--chains "),
    (r"\((?=sampler=|TemperedSampler\))", "(in Python: "),
    (r"\bpredict_interval and formulas_", "their intervals and symbayes show"),
    (r" This is said once for each fit\.", ""),
)
_RESUME = re.compile(r"BayesianSymbolicRegressor\.resume\((.+), X, y\)")
# Names of columns stand in quotation marks, and are not ours to change.
_QUOTED = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")


def with_options(text: str) -> str:
    """Return a verdict or a warning with options where the library names its parameters.

    Examples
    --------
    >>> from symbayes.cli.wording import with_options
    >>> with_options("Raise timeout, or lower tune; column 'timeout' is left out")
    "Raise --time, or lower --tune; column 'timeout' is left out"
    """
    parts = _QUOTED.split(_RESUME.sub(r"symbayes resume \1", text))
    for i in range(0, len(parts), 2):
        for pattern, words in _WORDS:
            parts[i] = re.sub(pattern, words, parts[i])
    return "".join(parts)
