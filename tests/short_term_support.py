"""What the tests of the short-term memory share: histories, a plain model, what must hold."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.utils import count_tokens_approximately as count

from graph_support import pairing_faults

LABELS = re.compile(r"\A(?:\[result of a tool\]\n)?(?:\[part [^\]]*\]\n)?")
LIMITS: dict[str, Any] = {"max_tokens": 200, "max_summary_tokens": 60}
SUMMARY_TEXT = "The work so far was looked at and put in order."


@dataclass
class PlainModel:
    """No LangChain model: an object with `invoke`, which takes a list of messages, no more."""

    answer: Callable[[list[Any]], Any] | str = SUMMARY_TEXT
    calls: list[list[Any]] = field(default_factory=list)

    def invoke(self, messages: list[Any]) -> Any:
        assert type(messages) is list
        self.calls.append(messages)
        answer = self.answer if isinstance(self.answer, str) else self.answer(messages)
        if isinstance(answer, Exception):
            raise answer
        return AIMessage(answer) if isinstance(answer, str) else answer

    @property
    def read(self) -> dict[str, str]:
        """What it was given of each message, by id, its parts put together again."""
        texts_by_id: dict[str, str] = {}
        retry_mark = "An earlier answer to this request was not used"
        first_requests = [call for call in self.calls if retry_mark not in str(call[-1].content)]
        for message in (m for call in first_requests for m in call if m.id is not None):
            text = LABELS.sub("", str(message.content)).partition("\n[call of ")[0]
            text = text.partition("\nlook ")[0]  # the calls of a message that was divided
            texts_by_id[message.id] = texts_by_id.get(message.id, "") + text
        return texts_by_id


def human(name: str, words: int = 10, text: str = "") -> HumanMessage:
    return HumanMessage(text or f"question {name} " + "why " * words, id=name)


def ai(name: str, words: int = 10, *calls: str) -> AIMessage:
    tool_calls = [{"name": "look", "args": {"at": call}, "id": call} for call in calls]
    return AIMessage(f"answer {name} " + "so " * words, id=name, tool_calls=tool_calls)


def tool_result(name: str, call: str, words: int = 10) -> ToolMessage:
    return ToolMessage(f"found {name} " + "line " * words, id=name, tool_call_id=call)


def talk(turns: int, words: int = 20) -> list[AnyMessage]:
    """Questions and answers, the last one a question."""
    messages: list[AnyMessage] = []
    for n in range(turns):
        messages += [human(f"h{n}", words), ai(f"a{n}", words)]
    return [*messages, human(f"h{turns}", words)]


def summarise(
    library: Any, messages: Sequence[BaseMessage], running: Any = None, **settings: Any
) -> Any:
    """With a plain model and small limits, where a test says nothing else."""
    settings = {"model": PlainModel(), **LIMITS, **settings}
    return library.summarize_messages(messages, running_summary=running, **settings)


def words_of(messages: Sequence[BaseMessage]) -> list[tuple[str, str | None, str]]:
    """Messages as they are compared: role, id and text."""
    return [(m.type, m.id, str(m.content)) for m in messages]


@st.composite
def histories(draw: st.DrawFn) -> list[AnyMessage]:
    """Valid histories with ids: a system message or none, turns with tools, results in any order,
    and at the end a question, an answer or results."""
    messages: list[AnyMessage] = []
    if draw(st.booleans()):
        messages.append(SystemMessage("Be brief. " * draw(st.integers(1, 12)), id="system"))
    number = 0

    def words() -> int:
        return draw(st.sampled_from([0, 3, 10, 30, 60]))

    for turn in range(draw(st.integers(1, 8))):
        messages.append(human(f"h{turn}", words()))
        for _ in range(draw(st.integers(0, 2))):
            number += 1
            names = [f"c{number}-{k}" for k in range(draw(st.integers(1, 3)))]
            messages.append(ai(f"a{number}", words(), *names))
            order = draw(st.permutations(names))
            messages += [tool_result(f"t-{name}", name, words()) for name in order]
        if draw(st.integers(0, 3)):
            number += 1
            messages.append(ai(f"a{number}", words()))
    if draw(st.integers(0, 3)):
        messages.append(human("last", words()))
    return messages


def summarised(running: Any) -> set[str]:
    """Ids of what a running summary stands for."""
    return set() if running is None else set(running.summarized_message_ids)


def valid_answer(
    messages: Sequence[Any],
    answer: Any,
    limits: dict[str, int],
    model: PlainModel,
    summarised_before: set[str],
) -> bool:
    """Whether what LangMem gave back breaks none of the rules that both are to keep.

    `summarised_before` names what had been summarised before this call.
    """
    shown = [m for m in answer.messages if m.id is not None]
    newest_user_id = next((m.id for m in reversed(messages) if isinstance(m, HumanMessage)), None)
    kept_ids = {m.id for m in shown}
    tokens_without_system = count([m for m in shown if m.id != "system"])
    reach = limits["max_tokens_before_summary"] or limits["max_tokens"]
    waits = not model.calls and tokens_without_system < reach
    fits = waits or count(answer.messages) <= limits["max_tokens"]
    covered = summarised(answer.running_summary)
    last_covered = next((m.id for m in reversed(messages) if m.id in covered), None)
    last_named = (
        answer.running_summary.last_summarized_message_id if answer.running_summary else None
    )
    newly_covered = [m for m in messages if m.id in covered - summarised_before]
    unread = [m.id for m in newly_covered if model.read.get(m.id) != m.content]
    return (
        fits
        and not pairing_faults(shown)
        and not unread
        and last_named == last_covered
        and (newest_user_id is None or newest_user_id in kept_ids)
        and messages[-1].id in kept_ids
    )
