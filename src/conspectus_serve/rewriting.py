"""Make one answer for the client out of several, or put a block before it.

Such an answer is asked for whole, and sent as a stream where the client wants one. The bytes of an
answer that needs neither never come here.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from conspectus_serve.answers.chat import ChatAnswers
from conspectus_serve.answers.joining import Answers, LookupResult
from conspectus_serve.answers.messages import MessagesAnswers
from conspectus_serve.answers.responses import ResponsesAnswers
from conspectus_serve.recall_tool import NAME, ROUNDS
from conspectus_serve.relay import UpstreamAnswer
from conspectus_serve.requests import PreparedRequest

logger = logging.getLogger("conspectus.serve")

Work = Callable[[Awaitable[LookupResult]], Awaitable[LookupResult]]
Send = Callable[[bytes], Awaitable[UpstreamAnswer]]


async def rewritten(
    made: PreparedRequest, answer: UpstreamAnswer, work: Work, send: Send
) -> UpstreamAnswer:
    """Return the client's answer, or a refusal on the way as it came.

    Args:
        made: the request, with lookups or a block before the answer.
        answer: to its first request, open.
        work: does a lookup in a thread.
        send: asks the upstream again, with another body.

    Raises:
        UpstreamFailed: the upstream has broken off.
    """
    answers, body, bodies = _answers_of(made), dict(made.sent), list[Any]()
    tool = NAME if made.lookups is not None else ""
    for left in reversed(range(ROUNDS)):
        try:
            content = b"".join([piece async for piece in answer.pieces()])
        finally:
            await answer.close()
        if answer.status != 200:
            return answer.with_body(content)
        try:
            bodies.append(json.loads(content))
            calls = answers.lookups(bodies[-1], tool) if tool and left else []
            if not calls:
                joined = answers.joined(bodies, tool)
                if not made.streamed:
                    return answer.with_body(json.dumps(joined).encode())
                return answer.with_body(b"".join(answers.events(joined)), b"text/event-stream")
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            # The client decides how an answer must look.
            logger.info("an answer was not understood: %s", type(error).__name__)
            return answer.with_body(content)
        lookups = made.lookups
        assert lookups is not None
        results = [(call, await work(lookups.found_flow(call))) for call in calls]
        exchange = answers.exchange(bodies[-1], results)
        lookups.going_on(exchange)
        field = lookups.turn.protocol.field
        body[field] = [*body[field], *exchange]
        answer = await send(json.dumps(body, separators=(",", ":")).encode())
    raise AssertionError("the last request is answered")


def _answers_of(made: PreparedRequest) -> Answers:
    name = made.arrived.route.protocol.name
    if name == "chat":
        return ChatAnswers()
    if name == "messages":
        return MessagesAnswers(made.lead, made.iterations)
    return ResponsesAnswers(made.sent.get("store") is not False)
