"""A formula drawn as a tree, laid out after Reingold and Tilford (1981)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...formula.expression import CONSTANT, FEATURE, Expression
from ...formula.formula import Formula
from ...formula.printing import number
from .canvas import BLUE, GREY, axes_for, cropped, result_of

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
class Node:
    """A box of the drawing."""

    label: str
    kind: str
    """Which of the styles it has."""
    children: tuple[Node, ...] = ()

    def __iter__(self) -> Iterator[tuple[Node, int]]:
        """Yield all nodes in preorder, with the number of levels below this one."""
        yield self, 0
        for child in self.children:
            for node, depth in child:
                yield node, depth + 1


@dataclass(frozen=True)
class Layout:
    """Where the nodes of a tree are, its root at 0; in characters."""

    x: list[float]
    """Centres of the nodes, in preorder."""
    left: list[float]
    """Left edge of the leftmost box on each level."""
    right: list[float]


def lay_out(node: Node) -> Layout:
    """Place each tree as close to its left neighbour as boxes allow, and parents in the middle.

    Examples
    --------
    >>> from symbayes.show.plots.tree import Node, lay_out
    >>> lay_out(Node("+", "operator", (Node("x", "column"), Node("y", "column")))).x
    [0.0, -2.0, 2.0]
    """
    x: list[float] = []
    left: list[float] = []
    right: list[float] = []
    roots: list[float] = []
    for child in node.children:
        part = lay_out(child)
        overlap = [edge - other for edge, other in zip(right, part.left, strict=False)]
        shift = max(overlap) + _GAP if roots else 0.0
        roots.append(shift)
        x += [centre + shift for centre in part.x]
        left += [edge + shift for edge in part.left[len(left) :]]
        right = [edge + shift for edge in part.right] + right[len(part.right) :]
    middle = (roots[0] + roots[-1]) / 2 if roots else 0.0
    half = (len(node.label) + _PADDING) / 2
    return Layout(
        [0.0, *(centre - middle for centre in x)],
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
    if ax is None:
        ax = axes_for(None, *natural_size(formula))
        ax.set_position((0, 0, 1, 1))  # there is nothing around it
    ax = axes_for(ax)
    root = _root(formula)
    layout = lay_out(root)
    ax.set_axis_off()
    ax.set(
        xlim=(min(layout.left) - _GAP, max(layout.right) + _GAP),
        ylim=(0.5 - len(layout.left), 0.5),
    )
    _draw(ax, root, layout.x, _letters(ax, layout))
    return ax


def natural_size(formula: Formula) -> tuple[float, float]:
    """Return width and height, in inches, of Axes in which a tree has letters of full size."""
    layout = lay_out(_root(formula))
    width, height = _extent(layout)
    return max(2.0, width * _LARGEST / 72), height * _LARGEST / 72


def _extent(layout: Layout) -> tuple[float, float]:
    """Return width and height of a drawing, in points for each point of its letters."""
    width = max(layout.right) - min(layout.left) + 2 * _GAP
    return width * _WIDTH, len(layout.left) * _HEIGHT


def _letters(ax: Any, layout: Layout) -> float:
    """Return the size of letters with which the tree fits into the Axes."""
    width, height = ax.get_window_extent().size * 72 / ax.figure.dpi
    needed = _extent(layout)
    return max(_SMALLEST, min(_LARGEST, width / needed[0], height / needed[1]))


def _root(formula: Formula) -> Node:
    """Return the tree of a formula, constants with the digits that its text has."""
    expression, digits = formula._shown(None)
    return _node(expression, formula.feature_names, digits)


def _node(expression: Expression, names: Sequence[str], digits: int) -> Node:
    kind = expression[0]
    if kind == FEATURE:
        return Node(cropped(names[expression[1]], _LONGEST_NAME) or "(no name)", "column")
    if kind == CONSTANT:
        return Node(number(expression[1], digits).replace("-", _MINUS), "constant")
    children = tuple(_node(operand, names, digits) for operand in expression[1:])
    return Node(_SIGNS.get(kind, kind), "operator", children)


def _draw(ax: Any, root: Node, x: Sequence[float], size: float) -> None:
    above: list[float] = []
    for (node, depth), centre in zip(root, x, strict=True):
        del above[depth:]
        if above:
            ax.plot([above[-1], centre], [1 - depth, -depth], color=GREY, lw=0.12 * size, zorder=1)
        above.append(centre)
        ax.text(
            centre, -depth, node.label, ha="center", va="center", size=size, color="white",
            parse_math=False, bbox={"edgecolor": "none", **_STYLES[node.kind]}, zorder=2,
        )  # fmt: skip
