"""The thread of killed workers and failing stores: each word follows from others.

All ids and texts are known beforehand, so that what must be there at the end is told by nobody who
had to keep it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool

from conspectus import TokenMeter
from conspectus_lab.pairs import broken_pairs

TURNS = 4
WINDOW = 4_000
"""Input limit of the model, in tokens."""

TRIGGER, KEEP = ("messages", 8), ("messages", 3)
BIG_TURN = 1
"""The turn whose first tool result is larger than the window, so that it is shown short."""

METER = TokenMeter()
STATE = re.compile(r"State ([0-9a-f]{12})")
TURN = re.compile(r"Turn (\d+):")


def asked(turn: int) -> HumanMessage:
    """Make the user's message of a turn."""
    mark = hashlib.sha256(b"said %d" % turn).hexdigest()[:12]
    text = f"Turn {turn}: look at both modules of part {turn}; the mark {mark} holds. "
    return HumanMessage(text + "Please be careful. " * 4, id=f"turn-{turn}")


def calling(turn: int) -> AIMessage:
    """Make the agent's message that asks for two looks at once."""
    calls = [
        {"name": "look", "args": {"part": f"{turn}.{n}"}, "id": f"call-{turn}.{n}"} for n in (1, 2)
    ]
    return AIMessage(f"I look at part {turn}.", tool_calls=calls, id=f"calls-{turn}")


def seen(part: str) -> ToolMessage:
    """Make the result of one look."""
    mark = hashlib.sha256(part.encode()).hexdigest()[:12]
    lines = 600 if part == f"{BIG_TURN}.1" else 6
    text = f"module {part} has the mark {mark}\n" + f"a line of module {part}\n" * lines
    return ToolMessage(text, tool_call_id=f"call-{part}", id=f"result-{part}", name="look")


def done(turn: int) -> AIMessage:
    """Make the agent's last message in a turn."""
    return AIMessage(f"Turn {turn} is done.", id=f"done-{turn}")


def said_in(turn: int) -> list[BaseMessage]:
    """List all messages of one turn, in order."""
    return [asked(turn), calling(turn), seen(f"{turn}.1"), seen(f"{turn}.2"), done(turn)]


def ever_said() -> list[BaseMessage]:
    """List all messages of the thread, in order."""
    return [message for turn in range(TURNS) for message in said_in(turn)]


@tool
def look(part: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> ToolMessage:
    """Look at a module."""
    assert tool_call_id == f"call-{part}"
    return seen(part)


def answer(messages: Sequence[BaseMessage]) -> AIMessage:
    """Make the agent's next message, by its view."""
    place, turn = newest_turn(messages)
    return done(turn) if place < len(messages) - 1 else calling(turn)


def newest_turn(messages: Sequence[BaseMessage]) -> tuple[int, int]:
    """Find the newest message of the user, and its turn; -1 and -1 for none."""
    for place in range(len(messages) - 1, -1, -1):
        found = TURN.match(str(messages[place].text))
        if isinstance(messages[place], HumanMessage) and found:
            return place, int(found.group(1))
    return -1, -1


def wrong_with(messages: Sequence[BaseMessage]) -> list[str]:
    """List a strict provider's objections to a request, its size included."""
    found = [f"torn: {call} of {name}" for name, call in broken_pairs(messages)]
    size = METER.messages(messages)
    return found + ([f"over the window: {size}"] if size > WINDOW else [])


def summarise(paid: Path, passes: Callable[[], None]) -> Callable[[list[BaseMessage]], str]:
    """Make a summariser whose text follows from its input; each answer is paid for.

    Args:
        paid: file with one line for each answer, whoever gave it.
        passes: called before it is paid for, and after.
    """

    def written(messages: list[BaseMessage]) -> str:
        read = "\n".join(str(message.text) for message in messages)
        digest = hashlib.sha256(read.encode()).hexdigest()[:12]
        passes()
        with paid.open("a") as file:
            file.write(f"{digest}\n")
        passes()
        return f"The user has the agent look at modules, part by part. State {digest}."

    return written
