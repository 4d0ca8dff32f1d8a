"""Every call of a recorded session, carried out again with the real tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from recorded.booking import TravelDesk
from recorded.research import ReadingRoom
from recorded.tools import Toolbox

FOLDER = Path(__file__).parent


class Place(Protocol):
    """Where a session takes place."""

    def tools(self) -> Toolbox: ...


SESSIONS: dict[str, Callable[[], Place]] = {
    "booking-transcript.json": TravelDesk,
    "research-transcript.json": ReadingRoom,
}
"""Where each session takes place, by the name of its file."""


def problems(name: str, messages: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What a recorded session claims and its tools do not answer; nothing for a true one.

    Args:
        name: the file, which says where the session takes place.
        messages: its messages; the calls are carried out in their order.
    """
    place = SESSIONS[name]()
    tools = place.tools()
    open_calls: dict[str, tuple[str, str]] = {}
    for at, message in enumerate(messages, 1):
        if message["id"] != f"m{at}":
            yield f"message {at} has the id {message['id']}"
        if message["role"] != "tool":
            yield from (f"{code} was never answered" for code in open_calls)
            open_calls = {}
        for call in message.get("tool_calls", ()):
            wanted, arguments = call["function"]["name"], call["function"]["arguments"]
            open_calls[call["id"]] = (wanted, tools.call(wanted, json.loads(arguments)))
        if message["role"] == "tool":
            answered = (message["name"], message["content"])
            found = open_calls.pop(message["tool_call_id"], None)
            if found != answered:
                yield f"{message['id']} says {answered}, the tool says {found}"
    yield from (f"{code} was never answered" for code in open_calls)


def read(name: str) -> list[dict[str, Any]]:
    """The messages of a session that ships."""
    messages: list[dict[str, Any]] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return messages
