"""What all plots share: Axes to draw on, colours, and text that stays text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ...result import Result

#: Of Okabe and Ito's colours, those with a contrast above 3 on white and on near black.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#808080"


def result_of(model: Any) -> Result:
    """Return what a plot shows: the result of a fitted estimator, or a result itself."""
    if isinstance(model, Result):
        return model
    check_is_fitted(model)
    return model.result_


def axes_for(ax: Any, width: float = 5.5, height: float = 4.0) -> Any:
    """Return the Axes to draw on: the user's, or those of a new figure of this size in inches."""
    if ax is None:
        import matplotlib.pyplot as plt

        return plt.subplots(figsize=(width, height), layout="constrained")[1]
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(
            f"ax must be a matplotlib Axes or None, not {type(ax).__name__}; "
            "matplotlib.pyplot.subplots() makes one"
        )
    return ax


def visible(text: str) -> str:
    r"""Return the text on one line, with a sign in place of what cannot be seen or drawn.

    Examples
    --------
    >>> from symbayes.show.plots.canvas import visible
    >>> visible("a\nb")
    'a b'
    """
    return "".join(
        c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def cropped(text: str, most: int) -> str:
    """Return at most `most` characters of the text, on one line.

    Examples
    --------
    >>> from symbayes.show.plots.canvas import cropped
    >>> cropped("2*sin(x0) + x1", 8)
    '2*sin(x…'
    """
    text = visible(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def distinguishable(texts: Sequence[str], most: int) -> list[str]:
    """Return at most `most` characters of each text, with those in which it differs from others.

    Other digits are no difference that a reader sees.

    Examples
    --------
    >>> from symbayes.show.plots.canvas import distinguishable
    >>> distinguishable(["3*sin(x0) + y", "2*x0 + 1", "4*sin(x0) + z"], 9)
    ['3*sin…+ y', '2*x0 + 1', '4*sin…+ z']
    """
    shown = [visible(text) for text in texts]
    masked = [re.sub(r"\d", "0", text) for text in shown]
    result = []
    for text, mask in zip(shown, masked, strict=True):
        alike = [
            _common_start(mask, other)
            for other in masked
            if other != mask and cropped(other, most) == cropped(mask, most)
        ]
        if alike:
            # A little of what is the same shows where the difference is.
            rest = text[max(alike) - most // 4 :]
            text = text[: max(most // 4, most - 1 - len(rest))] + "…" + rest
        result.append(cropped(text, most))
    return result


def _common_start(first: str, second: str) -> int:
    """Return how many characters two texts begin with alike."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))
