"""What stands on the screen: a panel, a notebook's output, or lines."""

import contextlib
import io
import re
import sys
from types import ModuleType, SimpleNamespace

import pytest
from rich.console import Console

from symbayes import Progress
from symbayes.kernels import units
from symbayes.show import display
from symbayes.show.display import Display

from ..fits import NOISY, X, small

TOKENS = re.compile(r"\x1b\[(\d*)[0-9;?]*([A-Za-z])|(\n)|(\r)|([^\x1b\r\n]+)")


def lines_on(screen):
    """The lines that stand on a terminal after all it was sent, but for empty ones."""
    lines, row, column = [""], 0, 0
    for number, command, newline, start, text in TOKENS.findall(screen.getvalue()):
        if command == "A":
            row -= int(number or 1)
        elif command == "K":
            lines[row] = ""
        elif newline:
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif start:
            column = 0
        elif text:
            lines[row] = lines[row][:column].ljust(column) + text + lines[row][column + len(text) :]
            column += len(text)
    return [line for line in lines if line.strip()]


def a_glance(**fields):
    usual = {
        "phase": "search", "done": 320, "total": 15_000, "seconds": 2.0, "seconds_left": 75.2,
        "proposals": 2_200_000, "formula": "6.00093*sin(x0)*cos(x1) - 0.0141", "rmse": 0.1134,
        "n_nodes": 9, "swap_rate": None,
    }  # fmt: skip
    return Progress(**(usual | fields))


def terminal(width=80):
    return Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)


def panel(glance, width=80):
    """The lines of a panel."""
    console = terminal(width)
    with Display(True, console) as shown:
        shown(glance)
        return lines_on(console.file)


# A terminal.


def test_the_panel_says_all():
    text = "".join(panel(a_glance(phase="drawing", swap_rate=0.314)))
    for part in (
        "drawing", "320/15000", "01:15 left", "1.1M proposals/s", "rmse 0.113", "9 nodes",
        "swaps 31%", "6.00093*sin(x0)*cos(x1) - 0.0141",
    ):  # fmt: skip
        assert part in text


def test_what_is_not_known_is_not_shown():
    text = "".join(panel(a_glance(formula="", n_nodes=0, rmse=float("nan"), seconds_left=None)))
    assert "320/15000" in text
    for part in ("rmse", "nodes", "swaps", "left", "nan", "None"):
        assert part not in text


@pytest.mark.parametrize("width", [25, 40, 80])
def test_no_line_is_wider_than_the_terminal(width):
    long = a_glance(formula=" + ".join(f"sin(x{i})" for i in range(300)), swap_rate=0.5)
    lines = panel(long, width)
    assert {len(line) for line in lines} == {width}
    text = "".join(lines)
    assert text.count("sin(x") < 15
    assert "…" in text
    assert "swaps 50%" in text


def test_one_panel_is_drawn_over_the_other():
    console = terminal()
    with Display(True, console) as shown:
        shown.say("compiling")
        shown(a_glance(done=1))
        shown(a_glance(done=2, formula="x7"))
        text = "\n".join(lines_on(console.file))
    assert text.count("symbayes") == 1
    assert "2/15000" in text
    assert "x7" in text
    assert "compiling" not in text


def test_nothing_stays_but_the_conclusion():
    console = terminal()
    with Display(True, console) as shown:
        shown.say("compiling")
        shown(a_glance())
        shown(a_glance(formula=""))
        shown.conclude("Converged: [red]yes[/red].")
    assert lines_on(console.file) == ["symbayes: Converged: [red]yes[/red]."]


def test_an_error_leaves_no_panel():
    console = terminal()
    with contextlib.suppress(ZeroDivisionError), Display(True, console) as shown:
        shown(a_glance())
        raise ZeroDivisionError
    assert lines_on(console.file) == []
    assert "\x1b[?25h" in console.file.getvalue()  # the cursor is back


@pytest.mark.parametrize("name", ["[red]", "[/]", "[link=x]", ":smile:"])
def test_names_are_not_read_as_markup(name):
    assert f"2*`{name}` + 1" in "".join(panel(a_glance(formula=f"2*`{name}` + 1")))


@pytest.mark.parametrize("name", ["a\nb", "\x1b[2J", "\r"])
def test_control_characters_in_names_do_nothing(name, capsys):
    glance = a_glance(formula=f"2*`{name}`")
    assert f"2*`{repr(name)[1:-1]}`" in "".join(panel(glance))
    with Display(True) as shown:
        shown(glance)
    assert capsys.readouterr().err.count("\n") == 1


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_standard_error_is_the_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    model = small(progress=True).fit(X, NOISY)
    assert "drawing" in screen.getvalue()
    assert lines_on(screen) == [f"symbayes: {model.diagnostics_['verdict']}"]
    assert sys.stderr is screen


def test_a_dumb_terminal_gets_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    with Display(True) as shown:
        shown(a_glance())
    assert screen.getvalue().startswith("symbayes: search 320/15000")


# A notebook.


@pytest.fixture
def cell(monkeypatch):
    """The outputs of a cell, in the order they were put there."""
    outputs = []

    class Handle:
        def update(self, data, raw):
            assert raw
            outputs.append(data)

    def show(data, raw, display_id):
        assert raw
        assert display_id
        outputs.append(data)
        return Handle()

    ipython = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    ipython.display = ModuleType("IPython.display")
    ipython.display.display = show
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    return outputs


def test_a_notebook_has_one_output_that_changes(cell, capsys):
    with Display(True) as shown:
        shown.say("compiling")
        shown(a_glance(formula="2*`<script>`"))
        shown.conclude("Converged: <b>.")
    said, drawn, wiped, concluded = cell
    assert "compiling" in said["text/plain"]
    assert "2*`<script>`" in drawn["text/plain"]
    assert "<script>" not in drawn["text/html"]
    assert "&lt;script&gt;" in drawn["text/html"]
    assert wiped == {"text/plain": ""}
    assert concluded == {"text/plain": "symbayes: Converged: <b>."}
    assert capsys.readouterr() == ("", "")


def test_a_notebook_cell_is_wiped_after_an_error(cell):
    with contextlib.suppress(ZeroDivisionError), Display(True) as shown:
        shown(a_glance())
        raise ZeroDivisionError
    assert cell[-1] == {"text/plain": ""}


def test_ipython_in_a_terminal_is_no_notebook(cell, monkeypatch, capsys):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    with Display(True) as shown:
        shown(a_glance())
    assert cell == []
    assert capsys.readouterr().err.startswith("symbayes: search")


# Lines.


def test_a_line(capsys):
    with Display(True) as shown:
        shown(a_glance())
        shown(a_glance(phase="drawing", done=1, total=2, seconds_left=0.0, swap_rate=0.5))
    assert capsys.readouterr() == (
        "",
        "symbayes: search 320/15000, 1.1M proposals/s, rmse 0.113, 9 nodes, 01:15 left: "
        "6.00093*sin(x0)*cos(x1) - 0.0141\n"
        "symbayes: drawing 1/2, 1.1M proposals/s, rmse 0.113, 9 nodes, swaps 50%: "
        "6.00093*sin(x0)*cos(x1) - 0.0141\n",
    )


def test_a_long_formula_is_cropped_in_a_line(capsys):
    with Display(True) as shown:
        shown(a_glance(formula="x0 + " * 1_000))
    (line,) = capsys.readouterr().err.splitlines()
    assert len(line) < 300
    assert line.endswith("...")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (940.0, "940"),
        (1234.0, "1.2k"),
        (45_600, "46k"),
        (1.13e6, "1.1M"),
        (3e9, "3.0G"),
    ],
)
def test_short_numbers(number, text):
    assert display._short(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "00:00"), (75.9, "01:15"), (3_725, "1:02:05"), (36_000, "10:00:00")]
)
def test_clock(seconds, text):
    assert display._clock(seconds) == text


def test_a_count_of_jobs_has_lines_now_and_then(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    with Display(True) as shown:
        for second in range(25):
            now[0] = float(second)
            shown.update("runs", second + 1, 25)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["symbayes: runs 11/25", "symbayes: runs 21/25", "symbayes: runs 25/25"]


def test_a_count_of_jobs_in_a_terminal():
    console = terminal()
    with Display(True, console) as shown:
        shown.update("runs", 3, 25)
        text = "".join(lines_on(console.file))
    assert "runs" in text
    assert "3/25" in text


def test_nothing_is_shown_where_nothing_is_wanted(capsys):
    with Display(False) as shown:
        shown.say("compiling")
        shown(a_glance())
        shown.update("runs", 1, 1)
        shown.conclude("Converged.")
    assert capsys.readouterr() == ("", "")


# Fits.


@pytest.mark.parametrize("progress", [False, [].append])
def test_a_fit_is_silent_unless_asked(progress, capfd):
    small(progress=progress).fit(X, NOISY)
    assert capfd.readouterr() == ("", "")


def test_a_fit_has_a_line_for_the_end_of_every_phase_and_one_for_the_verdict(capfd):
    model = small(progress=True).fit(X, NOISY)
    out, err = capfd.readouterr()
    assert out == ""
    *phases, verdict = err.splitlines()
    assert [line.split()[1] for line in phases] == ["search", "settling", "drawing"]
    assert "search 100/100" in err
    assert "drawing 50/50" in err
    assert all(re.search(r"/s, rmse 0\.\d+, \d+ nodes.*: .*x0", line) for line in phases)
    assert verdict == f"symbayes: {model.diagnostics_['verdict']}"


def test_compilation_is_announced(monkeypatch, capfd):
    monkeypatch.setattr(units, "is_cached", lambda name: False)
    small(progress=True).fit(X, NOISY)
    assert capfd.readouterr().err.startswith("symbayes: compiling, once")


def test_a_function_hears_of_compilation(monkeypatch):
    monkeypatch.setattr(units, "is_cached", lambda name: False)
    phases = []
    small(progress=lambda one: phases.append(one.phase)).fit(X, NOISY)
    assert phases[0] == "compiling"
    assert "compiling" not in phases[1:]
