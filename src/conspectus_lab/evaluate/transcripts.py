"""Hold one conversation to measure, with or without questions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from conspectus.errors import InputError
from conspectus.messages import Entry, Source, read_messages
from conspectus_lab.pairs import RESULT_BLOCKS, unused

DATE_QUESTION = 2
UNANSWERABLE = 5
"""LoCoMo's categories of questions answered by a date or by nothing; others mean words."""

WORDS = 4


@dataclass(frozen=True, slots=True)
class Question:
    """One question about a conversation.

    Attributes:
        answer: the right answer; several things are joined with commas or `and`.
        evidence: ids of the messages that hold it.
        category: `DATE_QUESTION` for an answer that is a date, `UNANSWERABLE` for a question that
            the conversation does not answer, any other number for words.
    """

    question: str
    answer: str
    evidence: tuple[str, ...]
    category: int = WORDS


@dataclass(frozen=True, slots=True)
class Transcript:
    """One conversation.

    Attributes:
        name: its name in results; names should differ.
        messages: human, AI and tool messages, each with an id. System messages are left out: they
            are never compacted.
        words: text of each message without speaker and date, by id.
        times: when each message was written, if known, by id.
    """

    name: str
    messages: tuple[BaseMessage, ...]
    questions: tuple[Question, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    times: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, name: str, messages: Sequence[Source], questions: Iterable[Question] = ()
    ) -> Transcript:
        """Convert messages of any kind that the library reads.

        Every kind gets one form, so that the same words score the same in each. With questions, a
        message with a `session_time` (or `timestamp`) and a `name` is shown as `[time] name: text`:
        the evidence for "when" and "who" must be in the context.

        Args:
            name: its name in results.
            messages: LangChain messages, or dicts in OpenAI's or Anthropic's form. Those without
                an id are named `m0`, `m1` and so on by their place; a repeated id gets a number.
            questions: about it.

        Raises:
            MessageError: a message cannot be understood.

        Example:
            >>> Transcript.of("a", [{"role": "user", "content": "hi"}]).messages[0].id
            'm0'
        """
        asked = tuple(questions)
        made: list[BaseMessage] = []
        words: dict[str, str] = {}
        times: dict[str, str] = {}
        for place, entry in enumerate(read_messages(messages)):
            if entry.role == "system":
                continue
            for part in _parts(entry, entry.given_id or f"m{place}"):
                part.id = unused(str(part.id), words)
                words[part.id] = str(part.content)
                if entry.date:
                    times[part.id] = entry.date
                if asked:
                    part.content = _dated(entry, str(part.content))
                made.append(part)
        return cls(name, tuple(made), asked, words, times)

    @property
    def digest(self) -> str:
        """Hash the conversation and its questions."""
        rows: list[Any] = [
            [m.type, m.id, m.text, getattr(m, "tool_calls", [])] for m in self.messages
        ]
        rows += [[q.question, q.answer, q.evidence, q.category] for q in self.questions]
        text = json.dumps(rows, ensure_ascii=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def acts(self) -> bool:
        """Return whether an agent calls tools in it."""
        return any(isinstance(message, ToolMessage) for message in self.messages)


def questions_of(data: object, name: str) -> tuple[Question, ...]:
    """Read the questions of a `NAME.qa.json`.

    Args:
        data: a list of objects with `question`, `answer`, `evidence` (ids of messages) and perhaps
            `category`.
        name: the file, for errors.

    Raises:
        InputError: it has another form; says which question.

    Example:
        >>> questions_of([{"question": "Where?", "answer": "Rome", "evidence": ["m1"]}], "a")[0]
        Question(question='Where?', answer='Rome', evidence=('m1',), category=4)
    """
    form = '{"question": "...", "answer": "...", "evidence": ["id", ...], "category": 4}'
    if not isinstance(data, list):
        raise InputError(f"{name} must hold a JSON list of questions such as {form}")
    found = []
    for place, row in enumerate(data):
        evidence = row.get("evidence") if isinstance(row, Mapping) else None
        category = row.get("category", WORDS) if isinstance(row, Mapping) else None
        if (
            not isinstance(row, Mapping)
            or not isinstance(row.get("question"), str)
            or not isinstance(evidence, list)
            or not isinstance(category, int)
        ):
            raise InputError(f"{name}: question {place} is no object such as {form}")
        answer = row.get("answer")
        said = "" if answer is None else str(answer)
        found.append(Question(row["question"], said, tuple(map(str, evidence)), category))
    return tuple(found)


def _parts(entry: Entry, name: str) -> list[BaseMessage]:
    """Convert a message; one with several tool results becomes several."""
    results = _results(entry)
    if len(results) > 1 or (results and entry.own):
        made: list[BaseMessage] = [
            ToolMessage(text, tool_call_id=call, id=name if n == 0 else f"{name}.{n}")
            for n, (call, text) in enumerate(results)
        ]
        if entry.own:
            made.append(HumanMessage(entry.own, id=f"{name}.{len(results)}"))
        return made
    if entry.role == "tool":
        return [ToolMessage(entry.text, tool_call_id=(entry.answers or ("",))[0], id=name)]
    if entry.role == "assistant":
        calls = [
            {"id": call.id, "name": call.name, "args": _arguments(call.args)}
            for call in entry.calls
        ]
        return [AIMessage(entry.text, tool_calls=calls, id=name)]
    return [HumanMessage(entry.text, id=name)]


def _results(entry: Entry) -> list[tuple[str, str]]:
    """Return the tool results among the blocks of a message, with their calls' ids."""
    source = entry.source
    content = source.content if isinstance(source, BaseMessage) else source.get("content")
    found = []
    for block in content if isinstance(content, list) else ():
        if isinstance(block, Mapping) and block.get("type") in RESULT_BLOCKS:
            inner = read_messages([{"role": "user", "content": [block]}])[0]
            found.append(((inner.answers or ("",))[0], inner.text))
    return found


def _arguments(text: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except ValueError:
        return {"raw": text}
    return values if isinstance(values, dict) else {"value": values}


def _dated(entry: Entry, text: str) -> str:
    """Write `[8 May 2023] Ann: words` for `1:56 pm on 8 May, 2023`."""
    day = entry.date.rpartition(" on ")[2].replace(",", "") if entry.date else ""
    speaker = f"{entry.name}: " if entry.name and entry.role != "tool" else ""
    return f"[{day}] {speaker}{text}" if day else f"{speaker}{text}"
