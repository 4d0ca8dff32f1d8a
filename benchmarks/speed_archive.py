"""What archiving and recall cost, beside SQLite's FTS5 alone on the same texts in the same run."""

from __future__ import annotations

import gc
import json
import random
import re
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tables import HERE, ROOT, Row, child, cpu, interleaved, number
from threads import agent, chat, texts

from conspectus import Compactor

TOKENS = 1_024
WARM = 20
QUESTIONS = 200
SUMMARY = "The talk went through the sources of a project, part by part; nothing was decided. " * 4

Rows = Iterator[Row]
Message = dict[str, Any]


def passages(text: str, size: int = 480) -> list[str]:
    """Cut a text at ends of lines into passages of some 120 tokens."""
    cut = []
    begin = 0
    while len(text) - begin > size:
        end = text.rfind("\n", begin + size // 2, begin + size)
        end = end if end > 0 else begin + size
        cut.append(text[begin:end])
        begin = end
    return [*cut, text[begin:]]


def fts5(bodies: Sequence[str]) -> tuple[sqlite3.Connection, float]:
    """Index passages by FTS5 alone; return the milliseconds that the insertion took."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE w USING fts5(body, content='', tokenize='porter')")
    rows = [(passage,) for body in bodies for passage in passages(body)]

    def insert() -> None:
        connection.executemany("INSERT INTO w (body) VALUES (?)", rows)
        connection.commit()

    return connection, cpu(insert)


def ask(connection: sqlite3.Connection, question: str) -> None:
    """Ask FTS5 alone for any of the words, ranked by its `bm25`; no text is read."""
    any_word = " OR ".join(f'"{word}"' for word in question.split())
    sql = "SELECT rowid FROM w WHERE w MATCH ? ORDER BY rank LIMIT 50"
    connection.execute(sql, (any_word,)).fetchall()


def questions(bodies: Sequence[str], count: int) -> list[str]:
    """Return questions: every other word of the beginnings of some texts."""
    draw = random.Random(5)
    made = list[str]()
    while len(made) < count:
        words = re.findall(r"[A-Za-z]{3,30}", draw.choice(bodies)[:200])[::2]
        if len(words) >= 3:
            made.append(" ".join(words[:10]))
    return made


def archive_of(path: str, count: int) -> Sequence[str]:
    """Have so many messages leave the view of one thread; return their texts."""
    bodies = texts(count)
    # The notes are no part of this measure, and an own summariser is asked once.
    compactor = Compactor(
        summarizer=lambda _: SUMMARY, notes=False, keep=("messages", 2), archive=path
    )
    thread = [
        {"role": ("user", "assistant")[at % 2], "content": body, "id": f"m{at}"}
        for at, body in enumerate([*bodies, "And now?", "The end."])
    ]
    result = compactor.compact(thread, thread_id="bench", force=True)
    assert result.archived, result.reason
    compactor.close()
    return bodies


FIRST = """import json, sys, time
from conspectus import Compactor
began = time.process_time()
result = Compactor(archive=sys.argv[1]).recall(sys.argv[2], thread_id="bench", tokens=1024)
assert result.hits
print(json.dumps(time.process_time() - began))
"""


def recall(quick: bool) -> Rows:
    """Time recalls at two sizes, warm and in a new process."""
    for count in (2_000, 10_000) if quick else (10_000, 100_000):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/a.db"
            bodies = archive_of(path, count)
            plain, _ = fts5(bodies)
            asked = questions(bodies, WARM + QUESTIONS)
            first = [child(FIRST, path, question) for question in asked[:3]]
            yield from _warm(Compactor(archive=path), plain, asked, count)
            name = f"first recall of a new process at {count:,} messages"
            yield Row(name, statistics.median(first), 0.3, "s")


def _warm(compactor: Compactor, plain: sqlite3.Connection, asked: list[str], count: int) -> Rows:
    ours = list[float]()
    theirs = list[float]()
    for at, question in enumerate(asked):
        if at == WARM:
            gc.collect()
            gc.freeze()
        results: list[Any] = []

        def one(question: str = question, results: list[Any] = results) -> None:
            results.append(compactor.recall(question, thread_id="bench", tokens=TOKENS))

        spent = cpu(one)
        assert results[0].hits, question
        assert results[0].tokens <= TOKENS, question
        if at >= WARM:
            ours.append(spent)
            theirs.append(cpu(lambda: ask(plain, question)))  # noqa: B023
    gc.unfreeze()
    name = f"recall at {count:,} messages"
    mine = statistics.median(ours)
    other = statistics.median(theirs)
    detail = f"{number(mine)} ms, FTS5 {number(other)} ms"
    yield Row(f"{name}, FTS5 = 1", mine / other, 4, detail=detail)
    yield Row(f"{name}, 99th percentile", statistics.quantiles(ours, n=100)[98], 30, "ms")


def building(quick: bool) -> Rows:
    """Time a compaction of 4,000 messages, their indexing included, beside FTS5's insertion."""
    count = 1_000 if quick else 4_000
    for shape, make in (("chat", chat), ("agent", agent)):
        thread = make(count)

        def compaction(thread: Any = thread) -> float:
            with tempfile.TemporaryDirectory() as folder:
                compactor = Compactor(keep=("messages", 4), archive=f"{folder}/a.db")
                return cpu(lambda: compactor.compact(thread, thread_id="t", force=True))

        bodies = [message["content"] for message in thread]
        ours, theirs = interleaved(3, compaction, lambda: fts5(bodies)[1])  # noqa: B023
        mine = statistics.median(ours)
        other = statistics.median(theirs)
        detail = f"{number(mine)} ms, FTS5 {number(other)} ms"
        name = f"compacting and indexing {count:,} messages, {shape}, FTS5's insertion = 1"
        yield Row(name, mine / other, 20, detail=detail)


def size(quick: bool) -> Rows:
    """Hold the bytes of archives, index and journals included, against their originals."""
    paths = [ROOT / "examples" / "data" / "demo-transcript.json"]
    paths += sorted((ROOT / "examples" / "recorded").glob("*-transcript.json"))
    count = 1_000 if quick else 5_000
    kinds = {
        "transcripts of agents": ([json.loads(path.read_text("utf-8")) for path in paths], 1.5),
        "short messages": ([_short(count)], 3),
        "Chinese": ([_chinese(count // 5)], 3),
    }
    for name, (threads, asked) in kinds.items():
        stored, originals = _bytes(threads)
        detail = f"{stored:,} bytes, originals {originals:,}"
        yield Row(f"bytes of an archive, {name}, originals = 1", stored / originals, asked,
                  detail=detail)  # fmt: skip


def _bytes(threads: Sequence[Sequence[Message]], step: int = 50) -> tuple[int, int]:
    """Play sessions to one archive; return the bytes of its files and of the originals in it."""
    originals = 0
    with tempfile.TemporaryDirectory() as folder:
        compactor = Compactor(window=16_000, archive=f"{folder}/a.db")
        for name, thread in enumerate(threads):
            messages = [{**message, "id": f"m{at}"} for at, message in enumerate(thread)]
            view: list[Any] = []
            for at in range(0, len(messages), step):
                view += messages[at : at + step]
                view = list(compactor.compact(view, thread_id=f"t{name}").messages)
            view = list(compactor.compact(view, thread_id=f"t{name}", force=True).messages)
            inside = {message.get("id") for message in view}
            left = [message for message in messages if message["id"] not in inside]
            plain = (json.dumps(m, ensure_ascii=False, separators=(",", ":")) for m in left)
            originals += sum(len(text.encode()) for text in plain)
        compactor.close()
        return sum(file.stat().st_size for file in Path(folder).iterdir()), originals


def _short(count: int) -> list[Message]:
    draw = random.Random(3)
    asks = ("Is job {n} done?", "What about order {n}?", "Thanks. And {n}?", "Try {n} again.")
    says = ("Yes, {n} is done.", "Order {n} was shipped.", "Nothing new on {n} yet.", "Trying {n}.")
    return [
        {
            "role": ("user", "assistant")[at % 2],
            "content": draw.choice((asks, says)[at % 2]).format(n=draw.randrange(10**6)),
        }
        for at in range(count)
    ]


def _chinese(count: int) -> list[Message]:
    """Join clauses of a Chinese text in an order by chance."""
    written = (HERE / "token_texts" / "chinese.txt").read_text(encoding="utf-8")
    clauses = [part for part in re.split(r"[，。、；：\n%]+", written) if len(part) > 2]
    draw = random.Random(3)
    return [
        {
            "role": ("user", "assistant")[at % 2],
            "content": "，".join(draw.choices(clauses, k=draw.randint(3, 12))) + f"。{at}",
        }
        for at in range(count)
    ]


def session(quick: bool) -> Rows:
    """Compare the cost of a token in a session with that in its first quarter."""
    count = 1_001 if quick else 4_001
    forms: tuple[tuple[str, bool, float | None], ...] = (
        ("the last view and what is new sent", False, 1.1),
        ("the whole history sent", True, None),
    )
    for name, whole, asked in forms:
        rounds = [_growth(agent(count, seed), whole) for seed in range(1 if whole else 3)]
        value, total = statistics.median_low(rounds)
        detail = f"{number(total / 1000)} s for {count:,} messages"
        yield Row(f"a token in a session four times as long, {name}", value, asked, detail=detail)


def _growth(messages: Sequence[Message], whole: bool) -> tuple[float, float]:
    """Return the ratio, and the milliseconds of the session."""
    spent = 0.0
    done = 0
    quarter = (0.0, 0)
    total = sum(len(message["content"]) for message in messages)
    with tempfile.TemporaryDirectory() as folder:
        compactor = Compactor(window=16_000, archive=f"{folder}/a.db")
        view = list[Any]()
        for at in range(0, len(messages), 2):
            new = list(messages[at : at + 2])
            given = list(messages[: at + 2]) if whole else [*view, *new]
            began = time.process_time()
            result = compactor.compact(given, thread_id="t")
            spent += 1000 * (time.process_time() - began)
            view = list(result.messages)
            done += sum(len(message["content"]) for message in new)
            if not quarter[1] and done >= total / 4:
                quarter = spent, done
    return (spent / done) / (quarter[0] / quarter[1]), spent


GROUPS: dict[str, Callable[[bool], Rows]] = {
    "recall": recall,
    "building": building,
    "size": size,
    "session": session,
}
