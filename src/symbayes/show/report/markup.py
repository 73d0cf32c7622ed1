"""Parts of a page: text that is escaped unless it is markup already, tables, and plots as SVG."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from html import escape
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

# Control characters but tab and line feed, and those that turn the direction of text.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# Drawn in this colour is what takes on that of the text around it.
_INK = "#010203"
_INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
_STYLE = {
    **dict.fromkeys(_INKED, _INK),
    "font.size": 10,
    "svg.fonttype": "none",
    "savefig.transparent": True,
}
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
# The font is the page's.
_FONT = re.compile(r"font-family: [^;]*; ")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(value: object) -> Markup:
    """Return markup as it is, and anything else as text, with a sign for what cannot be seen."""
    if isinstance(value, Markup):
        return value
    return Markup(escape(_HIDDEN.sub("\N{REPLACEMENT CHARACTER}", str(value))))


def joined(*parts: object) -> Markup:
    """Return the parts one after the other, escaped unless markup."""
    return Markup("".join(map(escaped, parts)))


def element(tag: str, *children: object, **attributes: object) -> Markup:
    """Return an element; children and values of attributes that are not markup are escaped.

    Examples
    --------
    >>> from symbayes.show.report.markup import element
    >>> element("p", "a < b ", element("b", "c"), class_="x")
    '<p class="x">a &lt; b <b>c</b></p>'
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escaped(value)}"'
        for name, value in attributes.items()
    )
    return Markup(f"<{tag}{written}>{joined(*children)}</{tag}>")


def scrolling(label: str, *children: object, class_: str = "scroll") -> Markup:
    """Return a box that scrolls by itself where the page is narrow, also by keyboard."""
    return element("div", *children, class_=class_, role="region", aria_label=label, tabindex=0)


def table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]], note: str = ""
) -> Markup:
    """Return a table with a note below it, or nothing where there are no rows.

    Numbers are to be formatted already; a column of them has a name that ends in a blank.
    """
    classes = [{"class_": "number"} if name.endswith(" ") else {} for name in columns]

    def row(tag: str, cells: Sequence[object], **attributes: str) -> Markup:
        pairs = zip(cells, classes, strict=True)
        return element("tr", *(element(tag, cell, **attributes, **c) for cell, c in pairs))

    body = [row("td", cells) for cells in rows]
    if not body:
        return Markup()
    whole = element(
        "table",
        element("caption", caption),
        element("thead", row("th", [name.strip() for name in columns], scope="col")),
        element("tbody", *body),
    )
    return joined(scrolling(caption, whole), element("p", note, class_="note") if note else "")


def svg(name: str, draw: Callable[[Any], object], size: tuple[float, float]) -> Markup:
    """Return a plot, of a size in inches, in the colours and the font of the text around it.

    The name sets names inside the plot apart from those in other plots of the page: matplotlib
    makes them hashes, with the name as salt.
    """
    import matplotlib.style
    from matplotlib.figure import Figure

    file = BytesIO()
    # The same page whatever the user's settings are.
    style = _STYLE | {"svg.hashsalt": name}
    with matplotlib.style.context(["default", style]), warnings.catch_warnings():
        # A browser has letters that matplotlib's font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.subplots())
        figure.savefig(file, format="svg", metadata=_NO_METADATA)
    root = ElementTree.fromstring(file.getvalue())
    for parent in root.findall(".//{*}style/.."):
        parent.clear()  # a style in a plot would be one of the whole page
    for node in root.iter():
        # Pages have no namespaces; nothing refers to a group by its name.
        node.tag = node.tag.rpartition("}")[2]
        node.attrib = {
            key.rpartition("}")[2]: _FONT.sub("", value).replace(_INK, "currentColor")
            for key, value in node.items()
            if (node.tag, key) != ("g", "id")
        }
    # A page counts in pixels, of which 96 are an inch.
    width, height = (f"{96 * inches:.0f}" for inches in size)
    root.attrib |= {"width": width, "height": height}
    return Markup(ElementTree.tostring(root, encoding="unicode"))
