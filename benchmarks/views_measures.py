"""What of a session is left in a view: answers that stand there, names that are used again."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import convert_to_messages
from langchain_core.messages.utils import count_tokens_approximately

Message = Mapping[str, Any]

_NAMES = re.compile(
    r"(?:[\w@+-]*/)+[\w@+.-]*\w"  # paths
    r"|[A-Za-z]\w*(?:[_.]\w+)+|\w+\(\)"  # names with a point or an underscore, calls
    r"|\b(?=\w*\d)(?=\w*[A-Za-z])\w{4,}\b"  # ids
)


def text_of(message: Message) -> str:
    """Return all that a message says, arguments of its calls included."""
    calls = [call["function"]["arguments"] for call in message.get("tool_calls") or ()]
    return "\n".join([str(message.get("content") or ""), *calls])


def steps(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Yield each message with the results that belong to it."""
    step: list[Message] = []
    for message in messages:
        if step and message["role"] != "tool":
            yield step
            step = []
        step.append(message)
    yield step


def size(messages: Sequence[Message]) -> int:
    """Count the tokens of messages, about."""
    return count_tokens_approximately(convert_to_messages([dict(m) for m in messages]))


def tail(messages: Sequence[Message], tokens: int) -> list[Message]:
    """Return the system prompt and the newest whole steps that fit in so many tokens."""
    kept: list[Message] = []
    system = [m for m in messages[:1] if m["role"] == "system"]
    for step in reversed(list(steps(messages[len(system) :]))):
        if kept and size([*system, *step, *kept]) > tokens:
            break
        kept = step + kept
    return system + kept


def plain(text: str) -> str:
    """Return a text in lower case, with one space between words and no marks of its form."""
    text = unicodedata.normalize("NFKC", text)
    return " ".join(re.sub(r"\\[nt]|[\\\"'`*]+|(?<=\w)[=:]\s*(?=\S)", " ", text).lower().split())


def answered(exam: Path, views: Sequence[Callable[[str], str]]) -> list[float]:
    """Return for each view the share of the questions of which all evidence stands in it.

    Args:
        exam: file with questions and their evidence, groups of alternatives.
        views: each returns the text of a view, for a question.
    """
    questions = json.loads(exam.read_text(encoding="utf-8"))

    def holds(text: str, groups: Sequence[Sequence[str]]) -> bool:
        said = plain(text)
        return all(any(plain(one) in said for one in group) for group in groups)

    return [
        sum(holds(view(q["question"]), q["evidence"]) for q in questions) / len(questions)
        for view in views
    ]


def needed(messages: Sequence[Message], cut: int, kept: Sequence[Message]) -> set[str]:
    """Return names from before a cut that the agent writes after it, before it is shown them again.

    Names that the first message or what is kept holds are left out.
    """
    before = {name for m in messages[:cut] for name in _NAMES.findall(text_of(m))}
    near = {name for m in [*messages[:2], *kept] for name in _NAMES.findall(text_of(m))}
    shown = set[str]()
    used = set[str]()
    for message in messages[cut:]:
        names = set(_NAMES.findall(text_of(message)))
        if message["role"] == "assistant":
            used |= names - shown
        shown |= names
    return (used & before) - near
