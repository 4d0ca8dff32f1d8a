"""Milliseconds of one recall as the thread grows.

    make bench-recall      or: python benchmarks/recall_speed.py --json

Threads of 1,000 to 50,000 made-up messages are archived in a SQLite file and then asked the same
questions: a rare identifier, common words, a long question of several sentences, and Chinese. The
first recall of an archive that is opened anew takes up its index, and is shown apart; so is a
recall by id of one message of 25 MB. Of several runs the fastest counts, in processor
time, so that other work on the machine does not count. The exit code is 1 if a question, or the
first recall of an archive opened anew, takes a second or more in the longest thread, or if a text
is larger than its limit.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import printed
from made_thread import made_thread
from rich.console import Console

from conspectus import Compactor
from conspectus.archive import Archive

SIZES = (1_000, 10_000, 50_000)
TOKENS = 1_024
ALLOWED = 1_000.0
"""Milliseconds of processor time that a recall may take."""

QUESTIONS = {
    "identifier": "What happened to {rare}?",
    "common words": "Which worker took long for the job that failed again?",
    "long": (
        "I look at a wrong total again. Which file rounds before it adds? Was the payment service "
        "restarted? Who decided to cache the lookup, and what did {rare} have to do with it?"
    ),
    "Chinese": "订单的金额为什么不对？",
}


def measure_one(count: int, runs: int = 3) -> dict[str, Any]:
    """Time each question in a thread of this number of messages."""
    with tempfile.TemporaryDirectory() as folder:
        thread = made_thread(count)
        with Archive.open(Path(folder) / "archive.db") as archive:
            compactor = Compactor(window=8_000, archive=archive)
            compactor.compact(thread, thread_id="bench")
            rare = _rare(thread)
            row: dict[str, Any] = {"messages": count, "over": 0}
            started = time.process_time()
            compactor.recall("cache", thread_id="bench", tokens=TOKENS)
            row["index"] = round(1000 * (time.process_time() - started), 1)
            for name, question in QUESTIONS.items():
                times = []
                for _ in range(runs):
                    started = time.process_time()
                    found = compactor.recall(
                        question.format(rare=rare), thread_id="bench", tokens=TOKENS
                    )
                    times.append(1000 * (time.process_time() - started))
                    row["over"] += found.tokens > TOKENS or not found.hits
                row[name] = round(min(times), 1)
        row["taken up"] = round(min(_taken_up(Path(folder) / "archive.db") for _ in range(runs)), 1)
    return row


def _taken_up(path: Path) -> float:
    """Time the first recall of an archive that is opened anew, its index on disk."""
    with Archive.open(path) as archive:
        compactor = Compactor(window=8_000, archive=archive)
        started = time.process_time()
        compactor.recall("cache", thread_id="bench", tokens=TOKENS)
        return 1000 * (time.process_time() - started)


def _giant(size: int = 25_000_000) -> float:
    """Time a recall by id of a message of this number of bytes."""
    text = "".join(f"line {n}: all is well\n" for n in range(size // 24))
    messages = [
        {"role": "user", "content": "Read the log.", "id": "asked"},
        {"role": "assistant", "content": text, "id": "giant"},
        {"role": "user", "content": "Go on.", "id": "next"},
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "archive.db"
        with Archive.open(path) as archive:
            Compactor(window=8_000, archive=archive).compact(
                messages, thread_id="bench", force=True
            )
        return _by_id(path)


def _by_id(path: Path) -> float:
    with Archive.open(path) as archive:
        compactor = Compactor(window=8_000, archive=archive)
        started = time.process_time()
        found = compactor.recall(id="giant", thread_id="bench", tokens=300)
        assert found.hits
        assert found.tokens <= 300
        return 1000 * (time.process_time() - started)


def _rare(thread: Sequence[dict[str, Any]]) -> str:
    """Find the order or run that the first message of the user names."""
    asked: str = next(one["content"] for one in thread[1:] if one["role"] == "user")
    return max(asked.replace(",", " ").replace(".", " ").split(), key=len)


def measure(sizes: Sequence[int] = SIZES) -> dict[str, Any]:
    """Measure all sizes, and say whether the claim holds."""
    rows = [measure_one(size) for size in sizes]
    slowest = max(rows[-1][name] for name in (*QUESTIONS, "taken up"))
    holds = slowest < ALLOWED and not any(row["over"] for row in rows)
    giant = round(_giant(), 1)
    return {
        "rows": rows, "slowest": slowest, "giant": giant, "allowed": ALLOWED, "holds": holds
    }  # fmt: skip


def show(found: dict[str, Any], screen: Console) -> None:
    """Print the table and the claim."""
    names = ("messages", *QUESTIONS, "index", "taken up")
    headings = {"index": "first", "taken up": "first, opened anew"}
    table = printed.table(
        f"One recall of {TOKENS:,} tokens, milliseconds", [headings.get(n, n) for n in names], 0
    )
    for row in found["rows"]:
        table.add_row(*(f"{row[name]:,}" for name in names))
    screen.print(table)
    screen.print(f"A message of 25 MB by its id, opened anew: {found['giant']:,} ms")
    screen.print(
        f"The slowest of them takes {found['slowest']:,} ms in the longest thread; "
        f"{found['allowed']:,.0f} are allowed: {'holds' if found['holds'] else 'BROKEN'}",
        soft_wrap=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give the exit code."""
    given, found = printed.options(__doc__).parse_args(arguments), measure()
    screen = printed.screen(100)
    return printed.end(given.json, lambda: found, lambda: show(found, screen), found["holds"])


if __name__ == "__main__":
    sys.exit(main())
