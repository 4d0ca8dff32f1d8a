"""What the tests of notes prepared beside the agent share: a summariser that can be stopped."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from conspectus import Compactor, Summary, SummaryError, SummaryRequest
from conspectus.observe import Event

LIMIT = 60.0
"""Seconds after which what should have happened has not."""


@dataclass
class Gate:
    """A call that has begun sets `was_asked`, and answers or fails once `may_go_on` is set."""

    fails: bool = False
    may_go_on: threading.Event = field(default_factory=threading.Event)
    was_asked: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def at_once(cls, **fields: Any) -> Self:
        """Make one that holds no call up."""
        gate = cls(**fields)
        gate.may_go_on.set()
        return gate

    async def begun(self) -> None:
        """Wait on an event loop until it is asked."""
        while not self.was_asked.is_set():
            await asyncio.sleep(0.005)

    def finish(self, heard: "HeardEvents") -> None:
        """Let it go on, and wait for the end of what is prepared."""
        self.may_go_on.set()
        heard.until("finished")


@dataclass
class Stopped(Gate):
    """A summariser that answers once it is let go on; `keys` is what each call was to read."""

    name: str = "stopped"
    identity: str = "stopped"
    form: str = "findings"
    keys: list[tuple[str, ...]] = field(default_factory=list)

    def summarize(self, request: SummaryRequest) -> Summary:
        self._begin(request)
        self.may_go_on.wait(LIMIT)
        return self._end(request)

    async def asummarize(self, request: SummaryRequest) -> Summary:
        self._begin(request)
        deadline = time.monotonic() + LIMIT
        while not self.may_go_on.is_set() and time.monotonic() < deadline:
            await asyncio.sleep(0.005)
        return self._end(request)

    def _begin(self, request: SummaryRequest) -> None:
        self.keys.append(tuple(entry.key for entry in request.entries))
        self.was_asked.set()

    def _end(self, request: SummaryRequest) -> Summary:
        if self.fails:
            raise SummaryError("the model is out of order")
        keys = tuple(entry.key for entry in request.entries)
        cite = request.entries[0].cite
        return Summary(f"- {len(keys)} messages were looked at [{cite}]", keys)


def talk_of(count: int, first: int = 0) -> list[dict[str, Any]]:
    """Turns of some 80 tokens each, each with an identifier of its own."""
    messages: list[dict[str, Any]] = []
    for n in range(first, first + count):
        messages.append({"role": "user", "content": f"Look at part_{n}.py. " + "Think. " * 9})
        messages.append({"role": "assistant", "content": f"part_{n}.py has id x{n:04}y. " * 2})
    return messages


def new_compactor(summarizer: Any, **changes: Any) -> Compactor:
    """Its trigger is 3,000 tokens: some 40 of these turns; preparing begins at some 28."""
    settings: dict[str, Any] = {"window": 4_000, "trigger": ("tokens", 3_000)}
    settings |= {"keep": ("messages", 6), "archive": "memory:", "background": True}
    settings["alternate_roles"] = "off"
    return Compactor(summarizer, **{**settings, **changes})


def while_preparing(messages: list[Any], **changes: Any) -> tuple[Stopped, Compactor]:
    """A compactor whose model is asked for notes on these messages just now."""
    model = Stopped()
    compactor = new_compactor(model, **changes)
    assert compactor.compact(messages, thread_id="t").outcome == "kept"
    assert model.was_asked.wait(LIMIT), "preparing has begun by itself"
    return model, compactor


@dataclass
class HeardEvents:
    """What was told of preparing."""

    all: list[Event]

    def steps(self, *names: str) -> list[Event]:
        return [event for event in self.all if event.name in names]

    def until(self, step: str) -> None:
        """Wait for a step."""
        wait_until(lambda: bool(self.steps(step)))


def wait_until(true: Callable[[], bool], seconds: float = LIMIT) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it has not happened"
        time.sleep(0.005)


def joined_texts(messages: Sequence[Any]) -> str:
    return "\n".join(str(message["content"]) for message in messages)


def nobody_works() -> bool:
    """Whether no notes are being prepared."""
    return all(thread.name != "conspectus-background" for thread in threading.enumerate())
