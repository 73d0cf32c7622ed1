"""HTML by construction: whatever is not markup already gets escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from ...formula.formula import Formula

# A browser does not break the lines of a formula; longer ones are shown as text, which it breaks.
WIDEST_FORMULA = 90
# Control characters but tab and line feed, and those that turn the direction of text.
_HIDDEN = (
    *range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A),
)  # fmt: skip
_SHOWN = dict.fromkeys(_HIDDEN, "\N{REPLACEMENT CHARACTER}")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(tag: str, *children: object, **attributes: object) -> Markup:
    """Return an element; children and values of attributes that are not markup are escaped.

    Examples
    --------
    >>> from symbayes.show.report.markup import element
    >>> element("p", "a < b ", element("b", "c"), class_="x")
    '<p class="x">a &lt; b <b>c</b></p>'
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_escaped(value)}"'
        for name, value in attributes.items()
    )
    return Markup(f"<{tag}{written}>{joined(*children)}</{tag}>")


def joined(*parts: object) -> Markup:
    """Return the parts one after the other, escaped unless markup."""
    return Markup("".join(part if isinstance(part, Markup) else _escaped(part) for part in parts))


def _escaped(value: object) -> str:
    return escape(str(value).translate(_SHOWN))


def section(name: str, heading: str, *children: object) -> Markup:
    """Return a section to which the page's first lines link."""
    return element("section", element("h2", heading), *children, id=name)


def scrolling(label: str, *children: object, class_: str = "scroll") -> Markup:
    """Return a box that scrolls by itself where the page is narrow, also by keyboard."""
    return element("div", *children, class_=class_, role="region", aria_label=label, tabindex=0)


def table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]], note: str | None = None
) -> Markup:
    """Return a table, and a note below it.

    Numbers are to be formatted already; a column of them has a name that ends in a blank.
    """
    classes = [{"class_": "number"} if name.endswith(" ") else {} for name in columns]
    head = [
        element("th", name.strip(), scope="col", **c)
        for name, c in zip(columns, classes, strict=True)
    ]
    body = [
        element("tr", *(element("td", cell, **c) for cell, c in zip(row, classes, strict=True)))
        for row in rows
    ]
    parts = (
        element("caption", caption),
        element("thead", element("tr", *head)),
        element("tbody", *body),
    )
    below = "" if note is None else element("p", note, class_="note")
    return joined(scrolling(caption, element("table", *parts)), below)


def facts(pairs: Iterable[tuple[str, object]]) -> Markup:
    """Return names with what they stand for."""
    return element(
        "dl",
        *(element("div", element("dt", name), element("dd", value)) for name, value in pairs),
    )


def code(text: str) -> Markup:
    """Return text that one click selects."""
    return element("pre", element("code", text))


def mathml(formula: Formula) -> Markup:
    """Return a formula as a reader of mathematics expects it."""
    return Markup(formula.mathml())


def in_a_table(formulas: Iterable[Formula]) -> list[Markup]:
    """Return the formulas of a table, all of them as text where one is long."""
    formulas = list(formulas)
    texts = [formula.text() for formula in formulas]
    if max(map(len, texts), default=0) > WIDEST_FORMULA:
        return [element("code", text) for text in texts]
    return [mathml(formula) for formula in formulas]


def verdict(diagnostics: dict[str, Any]) -> Markup:
    """Return whether a run has converged, and why."""
    quality = "good" if diagnostics["converged"] else "doubtful"
    return element("p", diagnostics["verdict"], class_=f"verdict {quality}")


def probability(value: float) -> str:
    """Return a probability in three digits after the point."""
    return f"{value:.3f}" if value >= 0.0005 or value == 0 else "below 0.001"


def number(value: Any) -> str:
    """Return a number in four digits.

    Examples
    --------
    >>> from symbayes.show.report.markup import number
    >>> number(0.047), number(12345)
    ('0.04700', '1.234e+04')
    """
    return f"{float(value):#.4g}".rstrip(".")
