"""What the made histories of all providers share: chance, texts, and where requests are made."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models._utils import _update_message_content_to_blocks
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJg"
    "gg=="
)


@dataclass
class Maker:
    """One history on its way: its messages, and the places where a request follows."""

    chance: random.Random  # all that is random in it
    unique_ids: bool = True  # whether each id is used once; else some come again turn after turn
    messages: list[Any] = field(default_factory=list)
    request_places: list[int] = field(default_factory=list)
    count: int = 0

    def say(self, *messages: Any) -> None:
        self.messages += messages

    def ask(self) -> None:
        """A request is made here."""
        self.request_places.append(len(self.messages))

    def begin(self, image: dict[str, Any]) -> None:
        """A user asks with words, or with an image too; sometimes there is a prompt before it."""
        if not self.messages and self.happens(0.5):
            self.say(SystemMessage(self.text(40)))
        parts = [{"type": "text", "text": self.text()}, image]
        self.say(HumanMessage(self.choose(self.text(), self.text(), parts)))
        self.ask()

    def id(self, start: str = "call_", digits: int = 9) -> str:
        self.count += 1
        number = self.count if self.unique_ids else self.count % 4
        return f"{start}{number:0{max(1, digits - len(start))}d}"

    def choose(self, *options: Any) -> Any:
        return self.chance.choice(options)

    def happens(self, share: float) -> bool:
        return self.chance.random() < share

    def text(self, longest: int = 260) -> str:
        """A text, mostly short, sometimes long enough to be truncated."""
        size = self.chance.randint(1, longest if self.happens(0.3) else 25)
        return f"Part {self.chance.randint(1, 999)} of src/app_{size}.py: " + "word " * size

    def args(self) -> dict[str, Any]:
        return {"path": f"src/{self.chance.randint(1, 99)}.py", "text": self.text()}

    def some_of(self, at_most: int = 3) -> range:
        return range(self.chance.randint(1, at_most))

    def shuffled(self, parts: Sequence[Any]) -> list[Any]:
        return self.chance.sample(list(parts), len(parts))


@dataclass(frozen=True)
class Provider:
    """A provider: histories as it would have made them, and what it refuses."""

    name: str  # whose, and in which form
    # adds one turn to a history: what a user says and all that follows
    make: Callable[[Maker], None]
    # what is sent for messages, as the provider's own package writes it
    request: Callable[[Sequence[Any]], Any]
    # why it would refuse a request; told the one for the whole history
    refuses: Callable[[Any, Any], list[str]]
    unique_ids: bool = True  # see `Maker`


Make = Callable[[Maker], None]


def remade(make: Make, change: Callable[[list[Any]], list[Any]]) -> Make:
    """The same turns with their messages in another form."""

    def make_remade(maker: Maker) -> None:
        start = len(maker.messages)
        make(maker)
        maker.messages[start:] = change(maker.messages[start:])

    return make_remade


def answers_remade(make: Make, change: Callable[[AIMessage], Any]) -> Make:
    """The same turns with answers in another form."""
    return remade(
        make, lambda messages: [change(m) if isinstance(m, AIMessage) else m for m in messages]
    )


def standard(make: Make) -> Make:
    """The same turns with answers as `output_version="v1"` gives them."""
    return answers_remade(make, lambda m: _update_message_content_to_blocks(m, "v1"))


def using(blocks: list[Any], meta: dict[str, Any]) -> AIMessage:
    """An answer of blocks, with the calls that stand in them."""
    calls = [
        {"id": b["id"], "name": b["name"], "args": b["input"], "type": "tool_call"}
        for b in blocks
        if b["type"] == "tool_use"
    ]
    return AIMessage(blocks, tool_calls=calls, response_metadata=meta)


def dumped(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)
