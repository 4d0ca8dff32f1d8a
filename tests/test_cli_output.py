"""Tables of the command line: folded on a terminal, whole and with tabs elsewhere."""

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import pytest

from conspectus.cli import output

ROWS: list[dict[str, Any]] = [
    {"thread": "trip to Reykjavik and back in three days", "tokens": 1200, "first": None},
    {"thread": "\x1b[31mred\tpaint\nand blue", "tokens": 7, "first": "2026-11-28"},
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def on_terminal(monkeypatch):
    """A function that returns what a call prints on a terminal of 40 columns."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def shown(call: Callable[[], None]) -> str:
        with redirect_stdout(Terminal()) as terminal:
            call()
        return terminal.getvalue()

    return shown


def test_a_wide_table_is_folded_to_the_terminal(on_terminal):
    text = on_terminal(lambda: output.print_rows(ROWS))
    assert max(map(len, text.splitlines())) <= 40
    assert {"Reykjavik", "1200", "2026-11-28", "7"} <= {*text.split()}


def test_elsewhere_values_have_tabs_between_them(capsys):
    output.print_rows(ROWS)
    heading, first, second = capsys.readouterr().out.splitlines()
    assert heading.split("\t") == ["thread", "tokens", "first"]
    assert first == "trip to Reykjavik and back in three days\t1200\t"
    assert second == "\ufffd[31mred paint and blue\t7\t2026-11-28"


def test_a_table_in_a_pipe_has_no_folds_or_colours(capsys):
    long = "word " * 60
    output.print_table([["name", "size"], [long, "12"], ["b", "3"]], bad={(0, 1)})
    heading, first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(long.rstrip())
    assert len(heading) == len(first) == len(second)  # numbers stand flush right
    assert "\x1b" not in first


def test_a_bad_cell_is_red_on_a_terminal_and_no_other(on_terminal):
    lines = [["policy", "found"], ["ours", "9"], ["theirs", "3"]]
    text = on_terminal(lambda: output.print_table(lines, bad={(1, 1)}))
    _, first, second = text.splitlines()
    assert "\x1b[" not in first
    assert "\x1b[1;31m" in second
