"""How words become options: a parser whose mistakes are one line, and the kinds of values."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

from ..formula.operators import OPERATOR_SETS, OPERATORS, operator_hint, operator_weights
from ..inputs.prior import NoisePrior
from .messages import one_line
from .statuses import USAGE

_LARGEST_SEED = 2**32 - 1


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help with options on the left and what they mean beside them, not below."""

    def __init__(self, prog: str, **options: Any):
        super().__init__(prog, max_help_position=30, **options)


class Parser(argparse.ArgumentParser):
    """A parser that complains in one line and keeps the line breaks of its texts."""

    def __init__(self, **options: Any):
        super().__init__(allow_abbrev=False, formatter_class=_Help, **options)

    def error(self, message: str) -> NoReturn:
        """Complain and leave."""
        self.exit(USAGE, f"symbayes: {one_line(message)} (see {self.prog} --help)\n")


def whole(least: int, most: float = math.inf) -> Callable[[str], int]:
    """Return the kind of whole numbers in a range."""

    def kind(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if value < least:
            raise argparse.ArgumentTypeError(f"{text} is below {least}")
        if value > most:
            raise argparse.ArgumentTypeError(f"{text} is above {most}")
        return value

    return kind


natural, count, seed = whole(0), whole(1), whole(0, _LARGEST_SEED)


def jobs(text: str) -> int:
    """Return a number of cores; those below 0 count from all of them, as in joblib."""
    value = whole(-(2**31), 2**31)(text)
    if value == 0:
        raise argparse.ArgumentTypeError("use 1 for one core or -1 for all")
    return value


def positive(text: str) -> float:
    """Return a finite number above 0."""
    value = _number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a finite number above 0")
    return value


def probability(text: str) -> float:
    """Return a number strictly between 0 and 1."""
    value = _number(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} does not lie strictly between 0 and 1")
    return value


def terms(text: str) -> str | int:
    """Return a number of terms, or "auto"."""
    return text if text == "auto" else count(text)


def noise(text: str) -> str | float:
    """Return the noise as a part of the spread of the target, or "small"."""
    if text == "small":
        return text
    try:
        value = positive(text)
        NoisePrior.about(value)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(
            f"{error}; say 0.05 for about 5 % of the spread of the target, or small"
        ) from None
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("noise_prior: ")) from None
    return value


def operators(text: str) -> str | list[str] | dict[str, float]:
    """Return operators as the estimator takes them: a set, names, or weights.

    Examples
    --------
    >>> from symbayes.cli.parsing import operators
    >>> operators("arithmetic"), operators("+,*,sin"), operators("sin:2, +")
    ('arithmetic', ['+', '*', 'sin'], {'sin': 2.0, '+': 1.0})
    """
    if text in OPERATOR_SETS:
        return text
    weights: dict[str, float] = {}
    for word in filter(None, re.split(r"[,\s]+", text)):
        name, _, weight = word.partition(":")
        if name in weights:
            raise argparse.ArgumentTypeError(
                f"{name!r} occurs twice; to prefer an operator, give it a weight, such as {name}:2"
            )
        weights[name] = _number(weight) if weight else 1.0
    if not weights:
        raise argparse.ArgumentTypeError(
            f"there is none; name a set, {', '.join(OPERATOR_SETS)}, or operators, such as +,*,sin"
        )
    if len(weights) == 1 and not weights.keys() & OPERATORS.keys():
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither an operator nor a set of them{operator_hint(text)}; the sets are "
            f"{', '.join(OPERATOR_SETS)}, the operators {' '.join(OPERATORS)}"
        )
    try:
        operator_weights(weights)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("operators: ")) from None
    return weights if ":" in text else list(weights)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
