"""Attacks tried, and their successes.

    python benchmarks/hostile.py

Hostile texts are compacted and recalled, each at one of the places where a text can stand in turn
(the tests put some of them at every place). Crafted names try to reach each other's messages;
crafted queries try to break recall or to get more than their tokens. It exits with 1 if anything
got through.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from command_line import Options, ended
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from conspectus import Compactor, ConspectusError, is_summary_message

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from hostile_names import QUERIES, look_alike_pairs  # noqa: E402
from hostile_texts import CLASSES, SECRET, marks  # noqa: E402

PLACES = ("user", "tool", "assistant", "arguments", "names")
TOKENS = 200


def history(hostile: str, place: str) -> list[BaseMessage]:
    """Make a short history with a hostile text at one place."""
    said = {"user": "Fix it.", "tool": "42 lines", "assistant": "I look.", "arguments": "a.py"}
    said |= {"names": "look", place: hostile}
    call = {"name": said["names"], "id": "c1", "args": {"path": said["arguments"]}}
    return [
        HumanMessage(said["user"], id="u1"),
        AIMessage(said["assistant"], tool_calls=[call], id="a1"),
        ToolMessage(said["tool"], tool_call_id="c1", name=said["names"], id="t1"),
        *[AIMessage(f"File {n} is fine.", id=f"b{n}") for n in range(6)],
        HumanMessage("Go on.", id="last"),
    ]


def through(hostile: str, place: str) -> bool:
    """Say whether a mark gets into a summary or recall, or the text passes for the user's."""
    compactor = Compactor(archive="memory:", keep=("messages", 2))
    result = compactor.compact(history(hostile, place), thread_id="t", force=True)
    if result.outcome != "compacted" or result.record is None:
        return True
    [summary] = [message for message in result.messages if is_summary_message(message)]
    body = str(summary.content).partition("\n\n")[2].partition("\n")[2]
    recalled = compactor.recall(id="a1", thread_id="t").text
    recalled += "\n" + compactor.recall(f"{SECRET} look", thread_id="t").text
    said = [
        line
        for line in result.record.segment["lines"]
        if line["kind"] == "said" and SECRET in line["text"] and place != "user"
    ]
    wrong = type(summary) is not HumanMessage
    return bool(marks(body) or marks(recalled) or said or wrong)


def reached(one: str, other: str, part: str) -> bool:
    """Say whether one name reaches the messages of another."""
    compactor = Compactor(archive="memory:", keep=("messages", 1))
    places: list[dict[str, Any]] = []
    for label, word in ((one, "zebra1"), (other, "zebra2")):
        where: dict[str, Any] = {"tenant": "t", "thread_id": "x", "session": "s", part: label}
        places.append(where)
        said = [{"role": "user", "content": f"the {word} is here", "id": word}]
        said += [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "go on"}]
        compactor.compact(said, force=True, **where)
    own = compactor.recall("zebra1 here", **places[0]).text
    theirs = compactor.recall("zebra1 here", **places[1]).text
    return "zebra1" not in own or "zebra1" in theirs


def queried() -> Counter[str]:
    """Count queries that break, reach others' messages, or get too many tokens."""
    compactor = Compactor(archive="memory:", keep=("messages", 1))
    for tenant, word in (("mine", "zebra"), ("other", "okapi")):
        said = [{"role": "user", "content": f"{word} {n} " * 300} for n in range(20)]
        said.append({"role": "user", "content": "go on"})
        compactor.compact(said, force=True, thread_id="t", tenant=tenant)
    found = Counter[str]()
    for query in [*QUERIES, *(f"{query} okapi" for query in QUERIES)]:
        for what in ({"query": query}, {"id": query}, {"range": (query, query)}):
            found["tried"] += 1
            asked: dict[str, Any] = what
            try:
                result = compactor.recall(**asked, thread_id="t", tenant="mine", tokens=TOKENS)
                found["through"] += result.tokens > TOKENS or "okapi" in result.text
            except ConspectusError:
                pass  # a clear answer: there is no such id, or no word to look for
            except Exception:
                found["through"] += 1
    return found


def main(step: int = 1) -> int:
    """Print the table of every `step`-th example; 1 if anything got through."""
    print(f"{'attack':46} {'examples':>9} {'got through':>12}")
    total = 0

    def row(name: str, tried: int, got: int) -> None:
        nonlocal total
        total += got
        print(f"{name:46} {tried:9,} {got:12,}")

    for name, texts in CLASSES.items():
        cases = [(text, PLACES[n % len(PLACES)]) for n, text in enumerate(texts[::step])]
        row(f"texts: {name}", len(cases), sum(through(*case) for case in cases))
    pairs = look_alike_pairs()[::step]
    for part in ("tenant", "thread_id", "session"):
        got = sum(reached(*pair, part) + reached(*reversed(pair), part) for pair in pairs)
        row(f"names that look alike: {part}", 2 * len(pairs), got)
    found = queried()
    row("queries, ids and ranges of SQL and FTS syntax", found["tried"], found["through"])
    return int(total > 0)


if __name__ == "__main__":
    Options(description="Attacks tried, and what got through. There are no options.").parse_args()
    ended(main)
