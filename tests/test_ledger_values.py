"""Exact values in a line: every kind, in any script; and what only looks like one."""

from __future__ import annotations

import json

import pytest

from conspectus.ledger import facts_of
from conspectus.ledger.values import values
from conspectus.messages import read_messages

FOUND = {
    "see src/app.py, ValueError at 2024-05-01": "date 2024-05-01|path src/app.py|error ValueError",
    "Friday 13 March 2026, 17 March at 14:30": "date Friday 13 March 2026|date 17 March at 14:30",
    "on March 5th, 2026 at 5 pm": "date March 5th, 2026 at 5 pm",
    "am 3. Mai 2026 um 14 Uhr": "date 3. Mai 2026 um 14 Uhr",
    "bis 15.03.2026, 12.500 Euro": "date 15.03.2026|number 12.500 Euro",
    "le 5 juin 2026 à 14h30, 1 200 €": "date 5 juin 2026 à 14h30|number 1 200 €",
    "el 5 de junio de 2026, 3,5 %": "date 5 de junio de 2026|number 3,5 %",
    "2026年3月2日前付300元": "date 2026年3月2日|number 300元",
    "3月28日18:00，1.8GB": "date 3月28日18:00|number 1.8GB",
    "2026年6月5日（金）15時30分までに500円": "date 2026年6月5日（金）15時30分|number 500円",
    "6월 3일 오후 2시에 30분": "date 6월 3일 오후 2시|number 30분",
    "订单号：DD20260318在conf/logistics.yaml里": "path conf/logistics.yaml|id DD20260318",
    "port 8431, version 3.2.1, $5 and 45 seconds": (
        "number 8431|number 3.2.1|number $5|number 45 seconds"
    ),
    "sqlite3.OperationalError in queue.remove_expired()": (
        "error sqlite3.OperationalError|symbol queue.remove_expired"
    ),
    "a3f9c1e7 req_9f27c1d4 REL-2187 ann@example.com": (
        "id a3f9c1e7|id req_9f27c1d4|id REL-2187|id ann@example.com"
    ),
    "https://docs.example.com/retry#backoff.": "url https://docs.example.com/retry#backoff",
    "drain_pending, RelayQueue, MAX_INFLIGHT": (
        "symbol drain_pending|symbol RelayQueue|symbol MAX_INFLIGHT"
    ),
    "$ git push origin main": "command git push origin main",
    "Run `make test` first.": "command make test",
    "It is open 24/7 and/or on GitHub, he/she said e.g. JavaScript.": "",
    "24 hours a day, 24小时都有人": "",
    "self.store.take(batch)": "",
}


@pytest.mark.parametrize("line", FOUND)
def test_a_line_holds_these_values_and_no_others(line: str) -> None:
    assert [f"{kind} {value}" for kind, value, _ in values(line)] == [
        one for one in FOUND[line].split("|") if one
    ]


@pytest.mark.parametrize("line", FOUND)
def test_every_value_stands_where_it_is_said_to(line: str) -> None:
    assert all(line[at : at + len(value)] == value for _, value, at in values(line))


def test_commands_come_from_fences_and_from_shell_tools_and_not_from_code() -> None:
    talk = "Start it:\n\n```\ndocker compose up -d db\n```\n\n```python\nmake = find(x)\n```\n"
    calls = [
        {
            "id": name,
            "type": "function",
            "function": {"name": name, "arguments": json.dumps({"command": "pytest -q"})},
        }
        for name in ("bash", "describe")
    ]
    entries = read_messages(
        [
            {"role": "user", "content": talk},
            {"role": "assistant", "content": "", "tool_calls": calls},
        ]
    )
    commands = [f.value for entry in entries for f in facts_of(entry) if f.kind == "command"]
    assert commands == ["docker compose up -d db", "pytest -q"]


def test_names_of_tools_and_arguments_are_no_symbols() -> None:
    function = {"name": "read_file", "arguments": json.dumps({"file_name": "src/a.py"})}
    (entry,) = read_messages(
        [{"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": function}]}]
    )
    assert [(f.kind, f.value) for f in facts_of(entry)] == [("path", "src/a.py")]


def test_a_long_text_without_spaces_is_looked_through_once() -> None:
    """It is a hundred times as long as a slow look could bear."""
    sentence = "这一页列出了客户的发票、编号和日期，请逐项核对后再继续下一步。"
    text = sentence * 20_000
    assert list(values(text)) == []
    assert [value for _, value, _ in values(text + " 在src/模块/税.py里")] == ["src/模块/税.py"]
