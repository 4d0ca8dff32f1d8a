"""Make one answer for the client out of several, or put a block before it.

The bytes of an answer that needs neither never come here.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from conspectus_serve.answers.chat import ChatAnswer
from conspectus_serve.answers.events import events_of
from conspectus_serve.answers.messages import MessagesAnswer
from conspectus_serve.answers.reading import AnswerReader, Lookup, LookupResult
from conspectus_serve.answers.responses import ResponsesAnswer
from conspectus_serve.preparing import PreparedRequest
from conspectus_serve.recall_tool import NAME, ROUNDS
from conspectus_serve.relay import UpstreamAnswer

logger = logging.getLogger("conspectus")

Work = Callable[[Awaitable[LookupResult]], Awaitable[LookupResult]]
Send = Callable[[bytes], Awaitable[UpstreamAnswer]]


class Rewriting:
    """Make one answer of the upstream's answers.

    Args:
        made: the request, with lookups or a block before the answer.
        work: drives a flow in a thread.
        send: asks the upstream again, with another body.
    """

    def __init__(self, made: PreparedRequest, work: Work, send: Send) -> None:
        self._lookups, self._body = made.lookups, dict(made.sent)
        self._work, self._send = work, send
        self._reading = _reader_of(made)
        self._answer: UpstreamAnswer | None = None  # that is being read

    async def close(self) -> None:
        """Close the answer that is being read."""
        if self._answer is not None:
            await self._answer.close()

    async def streamed(self, first: UpstreamAnswer) -> AsyncIterator[bytes]:
        """Yield the client's events of an answer that comes as events.

        Raises:
            UpstreamFailed: the upstream has broken off.
        """
        self._answer, reading = first, self._reading
        for left in reversed(range(ROUNDS)):
            async for event in events_of(self._answer.pieces()):
                for made in self._seen(event):
                    yield made
            calls = reading.asks if left else ()
            if not calls:
                break
            self._answer = await self._again(self._answer, calls)
            if self._answer.status != 200:
                yield reading.failed(_json(await _read(self._answer)))
                return
        for made in reading.end():
            yield made

    def _seen(self, event: bytes) -> list[bytes]:
        try:
            return self._reading.event(event)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            # The client decides how an answer must look.
            logger.info("an event was not understood: %s", type(error).__name__)
            return [event]

    async def whole(self, answer: UpstreamAnswer) -> UpstreamAnswer:
        """Return the client's answer of one that comes whole, or a refusal on the way as it came.

        Raises:
            UpstreamFailed: the upstream has broken off.
        """
        reading = self._reading
        for left in reversed(range(ROUNDS)):
            content = await _read(answer)
            await answer.close()
            if answer.status != 200:
                return answer.with_body(content)
            try:
                reading.whole(_json(content))
                calls = reading.asks if left else ()
                if not calls:
                    return answer.with_body(json.dumps(reading.body()).encode())
            except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
                logger.info("an answer was not understood: %s", type(error).__name__)
                return answer.with_body(content)
            answer = await self._again(answer, calls)
        raise AssertionError("the last request is answered")

    async def _again(self, answer: UpstreamAnswer, calls: Sequence[Lookup]) -> UpstreamAnswer:
        """Carry out calls, and ask the upstream again with their results."""
        lookups = self._lookups
        assert lookups is not None
        found = [await self._work(lookups.found_flow(call)) for call in calls]
        await answer.close()
        exchange = self._reading.exchange(found)
        lookups.going_on(exchange)
        field = lookups.turn.protocol.field
        self._body[field] = [*self._body[field], *exchange]
        return await self._send(json.dumps(self._body, separators=(",", ":")).encode())


def _reader_of(made: PreparedRequest) -> AnswerReader:
    assert made.turn is not None
    name = made.turn.protocol.name
    tool = NAME if made.lookups is not None else ""
    if name == "chat":
        return ChatAnswer(tool)
    if name == "messages":
        return MessagesAnswer(tool, made.lead, made.iterations)
    return ResponsesAnswer(tool, stored=made.sent.get("store") is not False)


async def _read(answer: UpstreamAnswer) -> bytes:
    return b"".join([piece async for piece in answer.pieces()])


def _json(content: bytes) -> Any:
    with suppress(ValueError, RecursionError):
        return json.loads(content)
    return None
