"""Milliseconds of one recall as a thread grows, beside FTS5 alone on the same passages.

    make bench-recall   or: python benchmarks/recall_speed.py [--json] [--sizes 10000] [FOLDER ...]

Threads of messages are archived in a SQLite file and asked questions, each of a few words of one of
the messages: made-up ones, or those of transcripts (JSON lists of messages), which are said again
with other numbers until there are enough. FTS5 alone is asked for any of the same words, ranked by
its `bm25`, and reads no text. The first recall of an archive that is opened anew is shown apart,
and so is a recall by id of one message of 25 MB. Then a compaction of 4,000 messages is held
against FTS5's insertion of their passages. Times are of the processor, so that other work on the
machine does not count. The exit code is 1 if a limit is passed or a text is larger than its tokens.
"""

from __future__ import annotations

import gc
import json
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import printed
from made_thread import made_thread
from rich.console import Console
from transcripts import holds_messages

from conspectus import Compactor
from conspectus._core.records import Cost, Record
from conspectus.archive import Archive, Scope
from conspectus.archive.passages import passages
from conspectus.messages import Entry, read_messages

SIZES = (10_000, 100_000)
TOKENS = 1_024
QUESTIONS = 120
WARM = 20  # Questions before those that are counted
COMPACTED = 4_000
SCOPE = Scope("local", "bench")

TIMES, SLOWEST, FIRST, BUILDING = 4.0, 30.0, 300.0, 20.0
"""The median beside FTS5's, the 99th percentile and the first recall in milliseconds, and a
compaction beside FTS5's insertion: more than these is BROKEN."""

Message = dict[str, Any]


def thread_of(count: int, folders: Sequence[str]) -> list[Message]:
    """Make a thread of so many messages."""
    if not folders:
        return made_thread(count)
    read = [json.loads(f.read_text()) for one in folders for f in sorted(Path(one).rglob("*.json"))]
    said = [m for messages in read if holds_messages(messages) for m in messages if _text(m)]
    return [
        {
            "role": "user" if at % 2 == 0 else "assistant",
            "content": f"{_text(said[at % len(said)])} ({at // len(said)})",
            "id": f"m{at}",
        }
        for at in range(count)
    ]


def _text(message: Message) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else ""


def archived(archive: Archive, entries: Sequence[Entry]) -> None:
    """Archive messages as one compaction leaves them."""
    archive.put(SCOPE, entries)
    parts: dict[str, Any] = dict.fromkeys(("tokens_before", "tokens_after", "messages_after"), 0)
    parts |= {
        "parent": None,
        "clips": (),
        "summary": "A talk.",
        "cause": "",
        "segment": {},
        "by": "",
    }
    keys = tuple(entry.key for entry in entries)
    archive.commit(SCOPE, Record.make(covers=keys, archived=True, cost=Cost(), **parts))


def asked_of(entries: Sequence[Entry], seed: int = 5) -> list[str]:
    """Return questions: every other word of the beginnings of some messages."""
    draw, found = random.Random(seed), list[str]()
    while len(found) < QUESTIONS:
        words = draw.choice(entries).text.split()[:24]
        words = [word for word in words if any(c.isalnum() for c in word)][::2]
        if len(words) >= 3 and all(len(word) < 40 for word in words):
            found.append(" ".join(words[:10]))
    return found


def fts5(texts: Sequence[str]) -> tuple[sqlite3.Connection, float]:
    """Index passages by FTS5 alone; return the time that the insertion took."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE w USING fts5(body, content='', tokenize='porter')")
    rows = [(text[begin:end],) for text in texts for begin, end in passages(text)]
    started = time.process_time()
    connection.executemany("INSERT INTO w (body) VALUES (?)", rows)
    connection.commit()
    return connection, 1000 * (time.process_time() - started)


def fts5_asked(connection: sqlite3.Connection, question: str) -> None:
    """Ask FTS5 alone for any of the words."""
    any_word = " OR ".join(f'"{word}"' for word in question.replace('"', " ").split())
    sql = "SELECT rowid FROM w WHERE w MATCH ? ORDER BY rank LIMIT 50"
    connection.execute(sql, (any_word,)).fetchall()


def measure_one(count: int, folders: Sequence[str]) -> dict[str, Any]:
    """Time each question in a thread of this number of messages."""
    with tempfile.TemporaryDirectory() as folder:
        entries = read_messages(thread_of(count, folders))
        path, questions = Path(folder) / "archive.db", asked_of(entries)
        with Archive.open(path) as archive:
            archived(archive, entries)
        plain, _ = fts5([entry.reading for entry in entries])
        ours, theirs, over = list[float](), list[float](), 0
        with Archive.open(path) as archive:
            compactor = Compactor(window=8_000, archive=archive)
            for at, question in enumerate([questions[0], *questions[:WARM], *questions]):
                if at == WARM:  # from here on the collector passes by what was there before
                    gc.collect()
                    gc.freeze()
                started = time.process_time()
                found = compactor.recall(question, thread_id="bench", tokens=TOKENS)
                ours.append(1000 * (time.process_time() - started))
                over += found.tokens > TOKENS or not found.hits
                if at > WARM:
                    started = time.process_time()
                    fts5_asked(plain, question)
                    theirs.append(1000 * (time.process_time() - started))
    gc.unfreeze()
    first, warm = ours[0], ours[1 + WARM :]
    return {
        "messages": count,
        "median": round(statistics.median(warm), 1),
        "99th": round(statistics.quantiles(warm, n=100)[98], 1),
        "FTS5": round(statistics.median(theirs), 1),
        "FTS5 99th": round(statistics.quantiles(theirs, n=100)[98], 1),
        "times": round(statistics.median(warm) / statistics.median(theirs), 1),
        "first": round(first, 1),
        "over": over,
    }


def building(folders: Sequence[str]) -> dict[str, float]:
    """Time a compaction of many messages in a file, beside FTS5's insertion."""
    thread = thread_of(COMPACTED, folders)
    texts = [entry.reading for entry in read_messages(thread)]
    with tempfile.TemporaryDirectory() as folder, Archive.open(Path(folder) / "a.db") as archive:
        compactor = Compactor(keep=("messages", 4), archive=archive)
        started = time.process_time()
        compactor.compact(thread, thread_id="bench", force=True)
        whole = 1000 * (time.process_time() - started)
        entries = read_messages(thread)
        started = time.process_time()
        archive.put(Scope("local", "alone"), entries)
        archive.missing(Scope("local", "alone"), entries)
        alone = 1000 * (time.process_time() - started)
    inserted = fts5(texts)[1]
    return {
        "compaction": round(whole, 1),
        "archive": round(alone, 1),
        "FTS5": round(inserted, 1),
        "times": round(whole / inserted, 1),
    }


def giant(size: int = 25_000_000) -> float:
    """Time a recall by id of a message of this number of bytes."""
    text = "".join(f"line {n}: all is well\n" for n in range(size // 24))
    with tempfile.TemporaryDirectory() as folder, Archive.open(Path(folder) / "a.db") as archive:
        message = {"role": "assistant", "content": text, "id": "giant"}
        archived(archive, read_messages([message]))
        started = time.process_time()
        found = Compactor(archive=archive).recall(id="giant", thread_id="bench", tokens=300)
        assert 0 < found.tokens <= 300
        return round(1000 * (time.process_time() - started), 1)


def measure(sizes: Sequence[int] = SIZES, folders: Sequence[str] = ()) -> dict[str, Any]:
    """Measure all sizes, and say whether the claims hold."""
    rows, built = [measure_one(size, folders) for size in sizes], building(folders)
    within = (
        row["times"] <= TIMES and row["99th"] <= SLOWEST and row["first"] <= FIRST
        and not row["over"] for row in rows
    )  # fmt: skip
    holds = all(within) and built["times"] <= BUILDING
    return {"rows": rows, "building": built, "giant": giant(), "holds": holds}


def show(found: dict[str, Any], screen: Console) -> None:
    """Print the table and the claims."""
    names = [name for name in found["rows"][0] if name != "over"]
    table = printed.table(f"One recall of {TOKENS:,} tokens, milliseconds", names, 0)
    for row in found["rows"]:
        table.add_row(*(f"{row[name]:,}" for name in names))
    screen.print(table)
    built = found["building"]
    screen.print(
        f"Compacting {COMPACTED:,} messages: {built['compaction']:,} ms, the archive alone "
        f"{built['archive']:,} ms; FTS5's insertion {built['FTS5']:,} ms",
        soft_wrap=True,
    )
    screen.print(f"A message of 25 MB by its id: {found['giant']:,} ms")
    screen.print(
        f"Allowed: {TIMES:g} times FTS5, {SLOWEST:g} ms at the 99th percentile, {FIRST:g} ms at "
        f"first, {BUILDING:g} times the insertion: {'holds' if found['holds'] else 'BROKEN'}",
        soft_wrap=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give the exit code."""
    parser = printed.options(__doc__)
    parser.add_argument("folders", nargs="*", help="transcripts: JSON lists of messages")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    given = parser.parse_args(arguments)
    found = measure(given.sizes, given.folders)
    screen = printed.screen(100)
    return printed.end(given.json, lambda: found, lambda: show(found, screen), found["holds"])


if __name__ == "__main__":
    sys.exit(main())
