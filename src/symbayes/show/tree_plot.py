"""A formula drawn as a tree, laid out after Reingold and Tilford (1981)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..formula.expression import CONSTANT, FEATURE, Expression
from ..formula.formula import Formula
from ..formula.printing import number
from .plots import BLUE, GREY, axes_for, cropped, points, result_of

_MINUS, _TIMES = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}"
_SIGNS = {"-": _MINUS, "neg": _MINUS, "*": _TIMES, "/": "÷", "inv": "1 ÷"}
_LONGEST_NAME = 16
# Empty space between neighbours and within a box, in characters.
_GAP, _PADDING = 1.0, 2.0
# Points: largest and smallest letters, width of one and height of a level, per point of size.
_LARGEST, _SMALLEST = 10.0, 2.0
_WIDTH, _HEIGHT = 0.65, 3.8
# White letters are to be read on these, and the boxes to be seen on white and on black; shapes
# differ too, for those who cannot tell the colours.
_STYLES = {
    "operator": {"facecolor": BLUE, "boxstyle": "round,pad=0.4,rounding_size=0.8"},
    "column": {"facecolor": "#B34D00", "boxstyle": "round,pad=0.4,rounding_size=0.2"},
    "constant": {"facecolor": "#6E6E6E", "boxstyle": "square,pad=0.4"},
}


@dataclass(frozen=True)
class Drawing:
    """A box with the drawings of its operands below it; in characters, the box at 0."""

    label: str
    kind: str
    """Which of the styles the box has."""
    below: list[tuple[float, Drawing]]
    """The operands, and where their boxes are."""
    left: list[float]
    """Left edge of the leftmost box on each level."""
    right: list[float]

    @property
    def extent(self) -> tuple[float, float]:
        """Width and height in points for each point of the letters' size."""
        width = max(self.right) - min(self.left) + 2 * _GAP
        return width * _WIDTH, len(self.left) * _HEIGHT


def lay_out(label: str, kind: str, operands: Sequence[Drawing] = ()) -> Drawing:
    """Place each operand as close to its left neighbour as boxes allow, the box in the middle.

    Examples
    --------
    >>> from symbayes.show.tree_plot import lay_out
    >>> drawing = lay_out("+", "operator", [lay_out("x", "column"), lay_out("y", "column")])
    >>> [x for x, operand in drawing.below]
    [-2.0, 2.0]
    """
    places: list[float] = []
    left: list[float] = []
    right: list[float] = []
    for operand in operands:
        overlap = [edge - other for edge, other in zip(right, operand.left, strict=False)]
        shift = max(overlap) + _GAP if places else 0.0
        places.append(shift)
        left += [edge + shift for edge in operand.left[len(left) :]]
        right = [edge + shift for edge in operand.right] + right[len(operand.right) :]
    middle = (places[0] + places[-1]) / 2 if places else 0.0
    half = (len(label) + _PADDING) / 2
    return Drawing(
        label,
        kind,
        [(place - middle, operand) for place, operand in zip(places, operands, strict=True)],
        [-half, *(edge - middle for edge in left)],
        [half, *(edge - middle for edge in right)],
    )


def plot_tree(formula_or_model: Any, ax: Any = None) -> Any:
    """Draw a formula as a tree: operators over what they are applied to.

    Parameters
    ----------
    formula_or_model : Formula or BayesianSymbolicRegressor
        Of a fitted model, the best formula is drawn.
    ax : matplotlib Axes, optional
        Where to draw; a new figure, as large as the tree, if not given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from symbayes import Formula
    >>> from symbayes.plots import plot_tree
    >>> ax = plot_tree(Formula("sin(x0) + 2", ["x0"]), ax=Figure().subplots())
    >>> [text.get_text() for text in ax.texts]
    ['+', 'sin', 'x0', '2']
    """
    formula = formula_or_model
    if not isinstance(formula, Formula):
        formula = result_of(formula).best_formula
    own, ax = ax is None, axes_for(ax, *natural_size(formula))
    if own:
        ax.set_position((0, 0, 1, 1))  # there is nothing around it
    drawing = _drawing_of(formula)
    ax.set_axis_off()
    ax.set(
        xlim=(min(drawing.left) - _GAP, max(drawing.right) + _GAP),
        ylim=(0.5 - len(drawing.left), 0.5),
    )
    room = min(points(ax) / drawing.extent)
    _draw(ax, drawing, 0.0, 0, max(_SMALLEST, min(_LARGEST, room)))
    return ax


def natural_size(formula: Formula) -> tuple[float, float]:
    """Return width and height, in inches, of Axes in which a tree has letters of full size."""
    width, height = _drawing_of(formula).extent
    return max(2.0, width * _LARGEST / 72), height * _LARGEST / 72


def _drawing_of(formula: Formula) -> Drawing:
    """Lay a formula out, its constants with the digits that its text has."""
    expression, digits = formula._shown(None)

    def drawing(part: Expression) -> Drawing:
        kind = part[0]
        if kind == FEATURE:
            name = cropped(formula.feature_names[part[1]], _LONGEST_NAME)
            return lay_out(name or "(no name)", "column")
        if kind == CONSTANT:
            return lay_out(number(part[1], digits).replace("-", _MINUS), "constant")
        return lay_out(_SIGNS.get(kind, kind), "operator", [drawing(one) for one in part[1:]])

    return drawing(expression)


def _draw(ax: Any, drawing: Drawing, x: float, depth: int, size: float) -> None:
    ax.text(
        x, -depth, drawing.label, ha="center", va="center", size=size, color="white",
        parse_math=False, bbox={"edgecolor": "none", **_STYLES[drawing.kind]}, zorder=2,
    )  # fmt: skip
    for shift, operand in drawing.below:
        ends = [x, x + shift], [-depth, -depth - 1]
        ax.plot(*ends, color=GREY, lw=0.12 * size, zorder=1)
        _draw(ax, operand, x + shift, depth + 1, size)
