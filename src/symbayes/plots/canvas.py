"""What all plots share: Axes to draw on, colours, and text that stays text."""

from __future__ import annotations

from typing import Any

#: Of Okabe and Ito's colours, those with a contrast above 3 on white and on near black.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#808080"


def axes_for(ax: Any, width: float = 5.5, height: float = 4.0) -> Any:
    """Return the Axes to draw on: the user's, or those of a new figure of so many inches."""
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
    >>> from symbayes.plots.canvas import visible
    >>> visible("a\nb")
    'a b'
    """
    return "".join(
        c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def cropped(text: str, most: int) -> str:
    """Return at most so many characters of the text, on one line.

    Examples
    --------
    >>> from symbayes.plots.canvas import cropped
    >>> cropped("2*sin(x0) + x1", 8)
    '2*sin(x…'
    """
    text = visible(text)
    return text if len(text) <= most else text[: most - 1] + "…"
