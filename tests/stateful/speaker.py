"""What a promise needs of a world, of agents or of compactors, to say something in it."""

from typing import Any, Protocol


class Speaker(Protocol):
    """Adds messages to the conversation that goes on, each under a name of its own."""

    form: str
    """Of its messages: of a provider, or LangChain's."""

    planted: int
    """The number of texts that were said; it makes each one unlike all others."""

    def say(self, *messages: Any) -> None: ...

    def name(self) -> str | None: ...

    def text(self, text: str) -> str: ...
