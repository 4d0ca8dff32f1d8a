"""Read a transcript so that a graph can run it again."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.utils import message_chunk_to_message
from pydantic import ValidationError

from conspectus.errors import InputError
from conspectus.messages import Message, Source, read_messages
from conspectus.messages.blocks import OPAQUE, kind_of, unwrap_block

Turn = tuple[BaseMessage, ...]


@dataclass(frozen=True, slots=True)
class Recording:
    """One transcript, ready to be run again.

    A turn is the input of one `invoke` of the graph. It is empty if the agent spoke first, or twice
    in a row. Results that the graph's tools cannot give are part of a turn: a result without its
    call, one of several if others are missing, one that came after a user's message.

    Attributes:
        results: recorded results by the ids of their message and call.
    """

    system: SystemMessage | None  # the system messages at the start as one
    messages: tuple[BaseMessage, ...]  # all other messages, each with its own id
    index_of: Mapping[str, int] = field(repr=False)  # the index of each id in `messages`
    turns: tuple[Turn, ...] = field(repr=False)  # the input, turn by turn
    results: Mapping[tuple[str, str], ToolMessage] = field(repr=False)

    @classmethod
    def of(cls, messages: Sequence[Source], name: str = "transcript") -> Recording:
        """Read a transcript; `name` is its name in errors.

        Ids stay. A message without an id gets one from its place: `m0`, `m1` and so on.

        Raises:
            MessageError: a message cannot be understood.
            InputError: no assistant speaks in it, so there is nothing to run again.

        Example:
            >>> said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}]
            >>> [[message.id for message in turn] for turn in Recording.of(said).turns]
            [['m0']]
        """
        system: list[SystemMessage] = []
        recorded: list[BaseMessage] = []
        index_of: dict[str, int] = {}
        for number, entry in enumerate(read_messages(messages)):
            for part in _parts(entry):
                if isinstance(part, SystemMessage) and not recorded:
                    system.append(part)
                    continue
                part.id = _unused(part.id or f"m{number}", index_of)
                index_of[part.id] = len(recorded)
                recorded.append(part)
        if not any(isinstance(message, AIMessage) for message in recorded):
            raise InputError(
                f"{name}: no assistant speaks in it, so there is nothing to replay; give a "
                "transcript with the agent's answers"
            )
        turns, results = _turns(recorded)
        return cls(_joined(system), tuple(recorded), index_of, turns, results)

    @property
    def prompt(self) -> list[BaseMessage]:
        """Return the system message in a list, or an empty list."""
        return [self.system] if self.system else []

    @property
    def requests(self) -> int:
        """Count the model's answers."""
        return sum(isinstance(message, AIMessage) for message in self.messages)

    def position(self, messages: Iterable[BaseMessage]) -> int:
        """Find the latest recorded message in a list; -1 if there is none."""
        positions = (self.index_of.get(message.id or "", -1) for message in messages)
        return max(positions, default=-1)

    def answer(self, position: int) -> AIMessage | None:
        """Return the assistant's next words after the message at a place."""
        later = self.messages[position + 1 :]
        return next((message for message in later if isinstance(message, AIMessage)), None)

    def answers_at(self, position: int) -> bool:
        """Tell whether the assistant speaks next after the message at a place."""
        return any(isinstance(m, AIMessage) for m in self.messages[position + 1 : position + 2])

    def runs_tools(self, message: AIMessage) -> bool:
        """Tell whether the graph's own tools give the results of a message's calls."""
        calls = message.tool_calls
        return bool(calls) and all((message.id, call["id"]) in self.results for call in calls)


def broken_pairs(messages: Iterable[BaseMessage]) -> list[tuple[str, str]]:
    """List tool calls and results without their partner: ids of the message and of the call.

    The results of a message's calls must follow it directly. A provider refuses a history with
    another message between them, or with a result without a call.
    """
    broken: list[tuple[str, str]] = []
    caller = ""
    open_calls: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in open_calls:
                broken.append((str(message.id), message.tool_call_id))
            open_calls.discard(message.tool_call_id)
            continue
        broken += [(caller, call_id) for call_id in sorted(open_calls)]
        caller = str(message.id)
        calls = message.tool_calls if isinstance(message, AIMessage) else ()
        open_calls = {str(call["id"]) for call in calls}
    return broken + [(caller, call_id) for call_id in sorted(open_calls)]


def _unused(name: str, taken: Container[str]) -> str:
    numbered = (f"{name}~{number}" for number in count(2))
    return name if name not in taken else next(n for n in numbered if n not in taken)


def _turns(
    messages: Sequence[BaseMessage],
) -> tuple[tuple[Turn, ...], dict[tuple[str, str], ToolMessage]]:
    """Divide messages into turns, and results of the graph's tools."""
    answers = [i for i, message in enumerate(messages) if isinstance(message, AIMessage)]
    turns = [tuple(messages[: answers[0]])]
    results: dict[tuple[str, str], ToolMessage] = {}
    for position, next_answer in zip(answers, [*answers[1:], len(messages)], strict=True):
        answer = messages[position]
        between = messages[position + 1 : next_answer]
        tool_results = _results(answer, between)
        for result in tool_results:
            results[str(answer.id), result.tool_call_id] = result
        from_outside = tuple(between[len(tool_results) :])
        if from_outside or (not tool_results and next_answer < len(messages)):
            turns.append(from_outside)
    return tuple(turns), results


def _results(answer: BaseMessage, block: Sequence[BaseMessage]) -> list[ToolMessage]:
    """Return the results directly after a message, if they answer each call once."""
    calls = [call["id"] for call in answer.tool_calls] if isinstance(answer, AIMessage) else []
    results = [m for m in block[: len(calls)] if isinstance(m, ToolMessage)]
    answered_calls = [result.tool_call_id for result in results]
    has_distinct_ids = len(set(calls)) == len(calls)
    answers_each = len(answered_calls) == len(calls) and set(answered_calls) == set(calls)
    return results if has_distinct_ids and answers_each else []


def _joined(system: Sequence[SystemMessage]) -> SystemMessage | None:
    """Join the system messages: a graph has one prompt."""
    if len(system) < 2:
        return system[0] if system else None
    return SystemMessage("\n\n".join(message.text for message in system))


def _parts(entry: Message) -> list[BaseMessage]:
    """Convert a message. If it has results of tools as blocks, it becomes several messages."""
    source = entry.source
    divided = bool(entry.results) and entry.role in ("user", "tool")
    divided = divided and not isinstance(source, ToolMessage)
    if isinstance(source, HumanMessage | AIMessage | SystemMessage | ToolMessage) and not divided:
        plain = message_chunk_to_message(source)  # type: ignore[arg-type,unused-ignore]
        own_kwargs = {"additional_kwargs": dict(plain.additional_kwargs)}
        return [plain.model_copy(update=own_kwargs)]
    common_fields: dict[str, Any] = {"id": entry.given_id, "name": entry.name}
    if entry.date:
        common_fields["additional_kwargs"] = {"timestamp": entry.date}
    if entry.role == "tool" and not divided:
        return [ToolMessage(entry.text, tool_call_id=entry.answers[0], **common_fields)]
    results: list[BaseMessage] = []
    if divided:
        for result in entry.results:
            status: Any = "error" if result.failed else "success"
            results.append(
                ToolMessage(result.text, tool_call_id=result.call, status=status, **common_fields)
            )
    try:
        words: Any = _words(source)
        if results and not words:
            return results
        return [*results, _spoken(entry, words, common_fields)]
    except ValidationError:  # blocks that LangChain's messages do not accept
        return [*results, _spoken(entry, entry.own, common_fields)]


def _words(source: Source) -> str | list[Any]:
    """Return a message's content without calls, and results for the agent."""
    content = source.content if isinstance(source, BaseMessage) else source.get("content") or ""
    if not isinstance(content, list):
        return str(content)
    return [block for block in content if not _is_call_or_result(block)]


def _is_call_or_result(block: Any) -> bool:
    block_kind = kind_of(unwrap_block(block)) if isinstance(block, Mapping) else OPAQUE
    return bool(
        block_kind.shortenable and (block_kind.call_id_paths or block_kind.answered_id_paths)
    )


def _spoken(entry: Message, content: Any, common_fields: dict[str, Any]) -> BaseMessage:
    if entry.role == "other":
        return ChatMessage(content=content, role="other", **common_fields)
    if entry.role == "system":
        return SystemMessage(content, **common_fields)
    if entry.role != "assistant":
        return HumanMessage(content, **common_fields)
    calls = [
        {"id": call.id, "name": call.name, "args": _arguments(call.args), "type": "tool_call"}
        for call in entry.calls
    ]
    message = AIMessage(content, tool_calls=calls, **common_fields)
    if read_messages([message])[0].text != entry.text:  # for example, a call without an id is text
        common_fields.pop("additional_kwargs", None)
        message = AIMessage(entry.text, tool_calls=calls, **common_fields)
    return message


def _arguments(text: str) -> dict[str, Any]:
    """Read arguments for tools; other text than a JSON object goes under `raw`."""
    try:
        values = json.loads(text or "{}")
    except ValueError:
        values = text
    return values if isinstance(values, dict) else {"raw": values}
