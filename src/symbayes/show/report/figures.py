"""Plots as SVG inside a page: no file of its own, colours of the page's text, names of its own."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

from .markup import Markup, element, scrolling

# Drawn in this colour is what takes on that of the text around it.
_INK = "#010203"
_INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
_STYLE = {
    **dict.fromkeys(_INKED, _INK),
    "font.size": 10,
    "svg.fonttype": "none",
    "svg.hashsalt": "symbayes",
    "savefig.transparent": True,
}
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_REFERENCE = re.compile(r"(?<=#)\w+")
# The font is the page's.
_FONT = re.compile(r"font-family: [^;]*; ")
# Inches that a phone shows without shrinking them much.
_WIDTH, _HEIGHT = 4.0, 3.2


def figure(
    name: str, label: str, caption: str, draw: Callable[[Any], Any], height: float = _HEIGHT
) -> Markup:
    """Return a plot with its caption.

    Parameters
    ----------
    name : str
        What sets the names inside this plot apart from those of other plots on the page.
    label : str
        What it shows, for those who cannot see it.
    caption : str
        How to read it.
    draw : callable
        Called with matplotlib Axes.
    height : float
        Inches.
    """
    from matplotlib.figure import Figure

    def drawn() -> Any:
        plot = Figure(figsize=(_WIDTH, height), layout="constrained")
        draw(plot.subplots())
        return plot

    return element("figure", _svg(drawn, name, label), element("figcaption", caption))


def wide_figure(
    name: str, label: str, caption: str, draw: Callable[[Any], Any], size: tuple[float, float]
) -> Markup:
    """Return a drawing without axes, of any size, which scrolls in its own box."""
    from matplotlib.figure import Figure

    def drawn() -> Any:
        plot = Figure(figsize=size)
        draw(plot.add_axes((0, 0, 1, 1)))
        return plot

    box = scrolling(label, _svg(drawn, name, label))
    return element("figure", box, element("figcaption", caption), class_="wide")


def _svg(drawn: Callable[[], Any], name: str, label: str) -> Markup:
    import matplotlib.style

    file = BytesIO()
    # The same page whatever the user's settings are.
    with matplotlib.style.context(["default", _STYLE]), warnings.catch_warnings():
        # A browser has letters that matplotlib's font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        drawn().savefig(file, format="svg", metadata=_NO_METADATA)
    return _inlined(ElementTree.fromstring(file.getvalue()), name, label)


def _inlined(root: ElementTree.Element, name: str, label: str) -> Markup:
    """Return an SVG document as an element of a page."""
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag.endswith(("}metadata", "}style"))]:
            parent.remove(child)
    used = {found for node in root.iter() for found in _references(node)}
    for node in root.iter():
        node.tag = node.tag.rpartition("}")[2]  # pages have no namespaces
        if node.get("id") not in used:
            node.attrib.pop("id", None)
        node.attrib = {
            key.rpartition("}")[2]: _FONT.sub("", value).replace(_INK, "currentColor")
            for key, value in node.attrib.items()
        }
        if "id" in node.attrib:
            node.set("id", f"{name}-{node.get('id')}")
        for key in ("href", "clip-path"):
            if key in node.attrib:
                node.set(key, node.attrib[key].replace("#", f"#{name}-"))
    for key in ("width", "height"):
        # A page counts in pixels, of which 96 are 72 points.
        points = float(root.attrib[key].removesuffix("pt"))
        root.set(key, f"{points * 96 / 72:.0f}")
    root.attrib |= {"role": "img", "aria-label": label}
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _references(node: ElementTree.Element) -> list[str]:
    """Return the names of other elements that an element refers to."""
    return [
        found
        for key, value in node.attrib.items()
        if key.endswith(("href", "clip-path"))
        for found in _REFERENCE.findall(value)
    ]
