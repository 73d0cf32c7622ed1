"""The pages of the documentation: their code blocks, and what those print when they run."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: README and everything under docs, by name.
PAGES = {
    str(path.relative_to(ROOT)): path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if "_build" not in path.parts
}

_FENCE = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int
    """Where it begins."""
    expected: str | None
    """What it should print, where an output follows at once."""
    is_output: bool
    """Whether it is the output of the block before it."""


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page, given its text.

    A block `text` right after one that runs, with nothing but blank lines between, is its output.
    """
    found = list(_FENCE.finditer(page))
    result: list[Block] = []
    for i, match in enumerate(found):
        runs = match[1] in ("python", "console")
        after = found[i + 1] if i + 1 < len(found) else None
        adjoins = (
            after is not None
            and after[1] == "text"
            and not page[match.end() : after.start()].strip()
        )
        expected = after[2] if runs and adjoins and after is not None else None
        is_output = bool(result) and result[-1].expected is not None
        line = page.count("\n", 0, match.start()) + 2
        result.append(Block(match[1], match[2], line, expected, is_output))
    return result


def without_fences(page: str) -> str:
    """Return the text of a page between its fenced blocks."""
    return _FENCE.sub("", page)


def run_python(block: Block, name: str, names: dict) -> str:
    """Run a block of Python in the namespace of its page; return what it prints."""
    printed = io.StringIO()
    # Empty lines in front, so that a traceback shows the line of the page.
    code = compile("\n" * (block.line - 1) + block.text, name, "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    return printed.getvalue()


def commands(block: Block) -> Iterator[tuple[list[str], str]]:
    """Yield the commands of a console block as words, and what they should print."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, output = re.sub(r"\\\n", "", part).partition("\n")
        yield shlex.split(command), output


def agrees(expected: str, printed: str) -> bool:
    """Return whether an output is as the page says; `...` stands for anything."""
    return doctest.OutputChecker().check_output(expected, printed, _FLAGS)


def difference(block: Block, expected: str, printed: str) -> str:
    """Return an explanation of how an output differs from the page."""
    return f"line {block.line} of the page\n--- the page says\n{expected}--- it prints\n{printed}"
