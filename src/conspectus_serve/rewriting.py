"""Make one answer for the client out of several, or put a block before it.

The bytes of an answer that needs neither never come here.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from conspectus._drive import Flow
from conspectus_serve.answers.chat import ChatAnswer
from conspectus_serve.answers.events import events_of
from conspectus_serve.answers.messages import MessagesAnswer
from conspectus_serve.answers.reading import AnswerReader, Lookup, LookupResult
from conspectus_serve.answers.responses import ResponsesAnswer
from conspectus_serve.headers import Raw
from conspectus_serve.preparing import PreparedRequest
from conspectus_serve.recall_tool import NAME, ROUNDS
from conspectus_serve.relay import UpstreamAnswer

logger = logging.getLogger("conspectus")

T = TypeVar("T")


class Work(Protocol):
    """Drive a flow in a thread."""

    def __call__(self, flow: Flow[T], /) -> Awaitable[T]:
        """Return the flow's result."""


Send = Callable[[bytes], Awaitable[UpstreamAnswer]]
Look = Callable[[Sequence[Lookup]], Awaitable[Sequence[LookupResult]]]
GoOn = Callable[[list[dict[str, Any]]], Awaitable[UpstreamAnswer]]


class Ready:
    """An answer that is already complete."""

    def __init__(self, status: int, headers: Raw, content: bytes) -> None:
        self.status, self.headers, self._content = status, headers, content

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body."""
        yield self._content

    async def close(self) -> None:
        """Do nothing: nothing is open."""


@dataclass(slots=True)
class Rewriting:
    """Make one answer of the upstream's answers.

    Attributes:
        reading: of its protocol.
        rounds: maximum requests.
        look: carries out calls.
        go_on: asks the upstream again, with more messages.
        answer: that is being read.
    """

    reading: AnswerReader
    rounds: int
    look: Look
    go_on: GoOn
    answer: UpstreamAnswer | None = None

    async def close(self) -> None:
        """Close the answer that is being read."""
        if self.answer is not None:
            await self.answer.close()

    async def streamed(self, first: UpstreamAnswer) -> AsyncIterator[bytes]:
        """Yield the client's events of an answer that comes as events.

        Raises:
            UpstreamFailed: the upstream has broken off.
        """
        self.answer, reading = first, self.reading
        for left in reversed(range(self.rounds)):
            async for event in events_of(self.answer.pieces()):
                for made in self._seen(event):
                    yield made
            calls = reading.asks if left else ()
            if not calls:
                break
            found = await self.look(calls)
            await self.answer.close()
            self.answer = await self.go_on(reading.exchange(found))
            if self.answer.status != 200:
                yield reading.failed(_json(await _read(self.answer)))
                return
        for made in reading.end():
            yield made

    def _seen(self, event: bytes) -> list[bytes]:
        try:
            return self.reading.event(event)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            # The client decides how an answer must look.
            logger.info("an event was not understood: %s", type(error).__name__)
            return [event]

    async def whole(self, first: UpstreamAnswer) -> UpstreamAnswer | Ready:
        """Return the client's answer of one that comes whole, or a refusal on the way as it came.

        Raises:
            UpstreamFailed: the upstream has broken off.
        """
        self.answer, reading = first, self.reading
        for left in reversed(range(self.rounds)):
            answer = self.answer
            content = await _read(answer)
            headers: Raw = [one for one in answer.headers if one[0].lower() != b"content-length"]
            await answer.close()
            if answer.status != 200:
                return Ready(answer.status, headers, content)
            try:
                reading.whole(_json(content))
                calls = reading.asks if left else ()
                if not calls:
                    return Ready(200, headers, json.dumps(reading.body()).encode())
            except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
                logger.info("an answer was not understood: %s", type(error).__name__)
                return Ready(200, headers, content)
            self.answer = await self.go_on(reading.exchange(await self.look(calls)))
        raise AssertionError("the last request is answered")


def rewriting_of(made: PreparedRequest, work: Work, send: Send) -> Rewriting | None:
    """Return the rewriting of a request's answer; None if it goes on as it comes."""
    lookups, body = made.lookups, dict(made.sent)
    if lookups is None and made.lead is None:
        return None

    async def look(calls: Sequence[Lookup]) -> Sequence[LookupResult]:
        assert lookups is not None
        return [await work(lookups.found_flow(call)) for call in calls]

    async def go_on(exchange: list[dict[str, Any]]) -> UpstreamAnswer:
        assert lookups is not None
        lookups.going_on(exchange)
        field = lookups.turn.protocol.field
        body[field] = [*body[field], *exchange]
        return await send(json.dumps(body, separators=(",", ":")).encode())

    assert made.turn is not None
    name = made.turn.protocol.name
    tool = NAME if lookups is not None else ""
    reading: AnswerReader
    if name == "chat":
        reading = ChatAnswer(tool)
    elif name == "messages":
        reading = MessagesAnswer(tool, made.lead, made.iterations)
    else:
        reading = ResponsesAnswer(tool, stored=body.get("store") is not False)
    return Rewriting(reading, ROUNDS, look, go_on)


async def _read(answer: UpstreamAnswer) -> bytes:
    return b"".join([piece async for piece in answer.pieces()])


def _json(content: bytes) -> Any:
    with suppress(ValueError, RecursionError):
        return json.loads(content)
    return None
