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
TOLD = "The work so far was looked at and put in order."


@dataclass
class PlainModel:
    """No LangChain model: an object with `invoke`, which takes a list of messages, no more."""

    answer: Callable[[list[Any]], Any] | str = TOLD
    calls: list[list[Any]] = field(default_factory=list)

    def invoke(self, messages: list[Any]) -> Any:
        assert type(messages) is list
        self.calls.append(messages)
        said = self.answer if isinstance(self.answer, str) else self.answer(messages)
        if isinstance(said, Exception):
            raise said
        return AIMessage(said) if isinstance(said, str) else said

    @property
    def read(self) -> dict[str, str]:
        """What it was given of each message, by id, its parts put together again."""
        found: dict[str, str] = {}
        again = "An earlier answer to this request was not used"
        asked = [call for call in self.calls if again not in str(call[-1].content)]
        for message in (m for call in asked for m in call if m.id is not None):
            text = LABELS.sub("", str(message.content)).partition("\n[call of ")[0]
            text = text.partition("\nlook ")[0]  # the calls of a message that was divided
            found[message.id] = found.get(message.id, "") + text
        return found


def human(name: str, words: int = 10, text: str = "") -> HumanMessage:
    return HumanMessage(text or f"question {name} " + "why " * words, id=name)


def ai(name: str, words: int = 10, *calls: str) -> AIMessage:
    made = [{"name": "look", "args": {"at": call}, "id": call} for call in calls]
    return AIMessage(f"answer {name} " + "so " * words, id=name, tool_calls=made)


def result(name: str, call: str, words: int = 10) -> ToolMessage:
    return ToolMessage(f"found {name} " + "line " * words, id=name, tool_call_id=call)


def talk(turns: int, words: int = 20) -> list[AnyMessage]:
    """Questions and answers, the last one a question."""
    made: list[AnyMessage] = []
    for n in range(turns):
        made += [human(f"h{n}", words), ai(f"a{n}", words)]
    return [*made, human(f"h{turns}", words)]


def summarise(
    library: Any, messages: Sequence[BaseMessage], running: Any = None, **more: Any
) -> Any:
    """With a plain model and small limits, where a test says nothing else."""
    more = {"model": PlainModel(), **LIMITS, **more}
    return library.summarize_messages(messages, running_summary=running, **more)


def words_of(messages: Sequence[BaseMessage]) -> list[tuple[str, str | None, str]]:
    """Messages as they are compared: role, id and text."""
    return [(m.type, m.id, str(m.content)) for m in messages]


@st.composite
def histories(draw: st.DrawFn) -> list[AnyMessage]:
    """Valid histories with ids: a system message or none, turns with tools, results in any order,
    and at the end a question, an answer or results."""
    made: list[AnyMessage] = []
    if draw(st.booleans()):
        made.append(SystemMessage("Be brief. " * draw(st.integers(1, 12)), id="system"))
    number = 0

    def words() -> int:
        return draw(st.sampled_from([0, 3, 10, 30, 60]))

    for turn in range(draw(st.integers(1, 8))):
        made.append(human(f"h{turn}", words()))
        for _ in range(draw(st.integers(0, 2))):
            number += 1
            names = [f"c{number}-{k}" for k in range(draw(st.integers(1, 3)))]
            made.append(ai(f"a{number}", words(), *names))
            order = draw(st.permutations(names))
            made += [result(f"t-{name}", name, words()) for name in order]
        if draw(st.integers(0, 3)):
            number += 1
            made.append(ai(f"a{number}", words()))
    if draw(st.integers(0, 3)):
        made.append(human("last", words()))
    return made


def summarised(running: Any) -> set[str]:
    """Ids of what a running summary stands for."""
    return set() if running is None else set(running.summarized_message_ids)


def valid_answer(
    messages: Sequence[Any],
    answer: Any,
    limits: dict[str, int],
    model: PlainModel,
    before: set[str],
) -> bool:
    """Whether what LangMem gave back breaks none of the rules that both are to keep.

    `before` names what had been summarised before this call.
    """
    shown = [m for m in answer.messages if m.id is not None]
    newest = next((m.id for m in reversed(messages) if isinstance(m, HumanMessage)), None)
    kept = {m.id for m in shown}
    rest = count([m for m in shown if m.id != "system"])
    reach = limits["max_tokens_before_summary"] or limits["max_tokens"]
    waits = not model.calls and rest < reach
    fits = waits or count(answer.messages) <= limits["max_tokens"]
    covered = summarised(answer.running_summary)
    last = next((m.id for m in reversed(messages) if m.id in covered), None)
    told = answer.running_summary.last_summarized_message_id if answer.running_summary else None
    now = [m for m in messages if m.id in covered - before]
    unread = [m.id for m in now if model.read.get(m.id) != m.content]
    return (
        fits
        and not pairing_faults(shown)
        and not unread
        and told == last
        and (newest is None or newest in kept)
        and messages[-1].id in kept
    )
