"""Answer a request with a history: read, fit, send, pass the answer on, and learn from it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from conspectus_serve.answers import read_answer
from conspectus_serve.entrance import Refusal, Tenants
from conspectus_serve.fitting import Exchange
from conspectus_serve.held import Passing
from conspectus_serve.models import window_in
from conspectus_serve.preparing import Preparer
from conspectus_serve.protocols import Protocol, Route, cleaned, error_body, error_event
from conspectus_serve.recall import NAME, ROUNDS, without_tool
from conspectus_serve.upstream import (
    Raw,
    Upstream,
    UpstreamAnswer,
    UpstreamFailed,
    own_headers,
    to_client,
    to_upstream,
)

logger = logging.getLogger("conspectus.serve")

T = TypeVar("T")
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

RETRIES = 6  # maximum further requests for one that the upstream refuses
DRAINED = 0.2  # seconds to end an answer after its last event, for the connection to be used again
QUICK, SLOW = 8, 128  # threads for steps of milliseconds, and for those that may wait for a model
NEEDED = 2_000  # tokens of a history from which an upstream is asked for the window of its model
PATIENCE = 3.0  # seconds that it has for that

EVENTS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]


class Reply:
    """What the client has been sent so far."""

    def __init__(self, send: Send, keep_alive: float) -> None:
        self._send, self._keep_alive = send, keep_alive
        self.alive, self.begun, self.status = False, False, 0

    async def start(self, status: int, headers: Raw) -> None:
        """Send status and headers, unless a sign of life was sent before."""
        if not self.begun:
            self.begun, self.status = True, status
            start = {"type": "http.response.start", "status": status, "headers": headers}
            await self._send(start)

    async def body(self, piece: bytes, *, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": piece, "more_body": more})

    async def until(self, work: asyncio.Future[T], protocol: Protocol, streamed: bool) -> T:
        """Wait for work; a stream's client gets signs of life meanwhile."""
        while streamed and not work.done():
            await asyncio.wait((work,), timeout=self._keep_alive)
            if not work.done():
                await self.start(200, EVENTS)
                self.alive = True
                await self.body(protocol.alive)
        return await work

    async def refuse(self, path: str, route: Route | None, error: Refusal) -> None:
        """Send an error in the protocol's form, unless an answer has begun."""
        body, self.status = error_body(path, error.status, str(error), error.code), error.status
        if self.alive and route is not None:
            await self.body(error_event(route.protocol, body), more=False)
        elif not self.begun:
            headers = [(b"content-type", b"application/json"), *own_headers(error=1)]
            headers += [(b"connection", b"close")] if error.status == 413 else []
            headers += [(b"upgrade", b"HTTP/1.1")] if error.status == 426 else []
            headers.append((b"content-length", str(len(body)).encode()))
            await self.start(error.status, headers)
            await self.body(body, more=False)


class Exchanges:
    """Answer requests with a history."""

    def __init__(self, preparer: Preparer, upstream: Upstream, tenants: Tenants) -> None:
        self._preparer, self._upstream, self._tenants = preparer, upstream, tenants
        self._quick = ThreadPoolExecutor(QUICK, "conspectus-serve")
        self._slow = ThreadPoolExecutor(SLOW, "conspectus-compacting")

    async def close(self) -> None:
        """Let archiving finish."""
        for pool in (self._quick, self._slow):
            await asyncio.to_thread(pool.shutdown)

    def _do(self, step: Callable[..., T], *args: Any, slow: bool = False) -> asyncio.Future[T]:
        """Take a step in a thread, to its end even if the client has gone."""
        pool = self._slow if slow else self._quick
        return asyncio.get_running_loop().run_in_executor(pool, step, *args)

    async def answer(self, request: Request, x: Exchange, reply: Reply) -> None:
        """Answer one request. Raises Refusal, or ClientDisconnect if the upstream breaks off."""
        protocol, preparer = x.route.protocol, self._preparer
        await self._do(preparer.read, x)
        unknown = x.trail is not None and x.room is None and x.tokens >= NEEDED
        if unknown and await self._learned_window(request, x):
            await self._do(preparer.read, x)
        if x.due:
            compacting = self._do(preparer.compact, x, slow=True)
            await reply.until(compacting, protocol, x.streamed)
        if x.due or x.filled:
            await self._do(preparer.write, x)
        settling = None
        if x.fresh:  # it is settled
            await self._do(self._tenants.add, x.tenant)
        elif x.trail is not None:  # while the upstream works
            settling = self._do(preparer.settle, x)
        if x.answer is not None:
            kind = b"text/event-stream" if x.streamed else b"application/json"
            await reply.start(200, [(b"content-type", kind), *preparer.headers(x)])
            await reply.body(x.answer, more=False)
            return
        answer = await self._sent(request, x, reply)
        try:
            for _ in range(RETRIES):
                refusal = await answer.refusal(protocol, x.streamed)
                if refusal is None or not await self._do(preparer.again, x, refusal, slow=True):
                    break
                await answer.close()
                x.retries += 1
                answer = await self._sent(request, x, reply)
            if x.with_tool:
                work = asyncio.ensure_future(self._looked_up(request, x, answer))
                answer = await reply.until(work, protocol, x.streamed)
            if settling is not None:
                await settling
            await self._relay(answer, reply, x)
        finally:
            await answer.close()

    async def _learned_window(self, request: Request, x: Exchange) -> bool:
        """Ask the upstream for its models with the client's own key; False without the window."""
        if not x.model or not x.learned.shall_ask():
            return False
        gone = (b"content-type", b"accept-encoding", b"idempotency-key")
        headers = [one for one in to_upstream(request.headers.raw) if one[0] not in gone]
        headers.append((b"accept-encoding", b"identity"))
        try:
            answer = await self._upstream.send("GET", "/v1/models", headers, timeout=PATIENCE)
            try:
                listed = json.loads(await answer.whole()) if answer.status == 200 else None
            finally:
                await answer.close()
        except (UpstreamFailed, ValueError, RecursionError):
            return False
        x.learned.listed = window_in(listed, x.model) or x.learned.listed
        return x.learned.listed is not None

    async def _sent(self, request: Request, x: Exchange, reply: Reply) -> UpstreamAnswer:
        sending = asyncio.ensure_future(self._send(request, x, x.content))
        try:
            return await reply.until(sending, x.route.protocol, reply.alive)
        finally:
            sending.cancel()

    async def _send(self, request: Request, x: Exchange, content: bytes) -> UpstreamAnswer:
        target = with_query(request, cleaned(request.scope["raw_path"].decode("latin-1")))
        gone = (b"content-encoding", b"accept-encoding", b"anthropic-beta")
        raw = to_upstream(request.headers.raw)
        headers = [one for one in raw if one[0] not in gone]
        headers.append((b"accept-encoding", b"identity"))  # it is read on the way
        betas = [value for name, value in raw if name == b"anthropic-beta"] + [*x.betas]
        headers += [(b"anthropic-beta", b",".join(betas))] if betas else []
        if content != x.raw:
            # Another request than the client's, whose answer is another one's.
            mark = b"-" + hashlib.sha256(content).hexdigest()[:12].encode()
            headers = [(k, v + mark if k == b"idempotency-key" else v) for k, v in headers]
        return await self._upstream.send(request.method, target, headers, content)

    async def _looked_up(
        self, request: Request, x: Exchange, answer: UpstreamAnswer
    ) -> UpstreamAnswer:
        """Carry out calls of the endpoint's own tool, and ask again, until an answer has none.

        An answer that also calls tools of the client's is asked for again without our tool.
        """
        recall, body, name = self._preparer.recall(x), x.body, x.route.protocol.name
        stored, field = body.get("store") is not False, x.route.protocol.field
        for left in range(ROUNDS - 2, -2, -1):
            raw = await answer.whole()
            if answer.status != 200 or NAME.encode() not in raw or left < 0:
                break
            try:
                made = read_answer(name, raw, streamed=x.streamed, stored=stored)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                # The client decides how an answer must look.
                logger.info("an answer was not understood: %s", type(error).__name__)
                break
            names = {call.name for call in made.calls}
            if NAME not in names:
                break
            if names == {NAME}:
                messages = await self._do(recall.looked_up, name, made)
                body = {**body, field: [*body[field], *messages]}
            if names != {NAME} or left <= 0:
                body = without_tool(name, body)
            await answer.close()
            content = json.dumps(body, separators=(",", ":")).encode()
            answer = await self._send(request, x, content)
        return answer

    async def _relay(self, answer: UpstreamAnswer, reply: Reply, x: Exchange) -> None:
        """Pass an answer on as it comes, and learn from it."""
        good, head = answer.status == 200, to_client(answer.headers) + self._preparer.headers(x)
        if reply.alive and not good:
            reply.status = answer.status
            body = error_event(x.route.protocol, await answer.whole())
            await reply.body(body, more=False)
            return
        passing, held = Passing(x.route.protocol, good and x.streamed), list[bytes]()
        keeps, pieces = good and self._preparer.keeps(x), answer.pieces()
        try:
            async for piece in pieces:
                await reply.start(answer.status, head)
                passing.see(piece)
                # The end is held back until the response is kept: a client that has it may
                # continue at once.
                if keeps and passing.complete:
                    held.append(piece)
                else:
                    await reply.body(piece)
                if passing.ended:  # some upstreams leave their stream open
                    break
        except UpstreamFailed:
            if not reply.begun or reply.alive:
                raise
            # The client must see that the body is not whole: its connection ends without the rest.
            logger.warning("the upstream has broken off in the middle of an answer")
            if held:
                await reply.body(b"".join(held))
            raise ClientDisconnect from None
        if passing.ended:
            with suppress(TimeoutError, UpstreamFailed):
                await asyncio.wait_for(_drained(pieces), DRAINED)
        # With the end of the answer its client may go, and what is under way then is cancelled.
        await answer.close()
        await reply.start(answer.status, head)
        if keeps and (ended := passing.response()) is not None:
            await asyncio.shield(self._do(self._preparer.keep_response, x, *ended))
        await reply.body(b"".join(held), more=False)
        if good and x.trail and not x.with_tool and (reported := passing.reported()) is not None:
            x.learned.see_usage(x.sent + x.recalled + x.beside, reported)


async def _drained(pieces: AsyncIterator[bytes]) -> None:
    async for _ in pieces:
        pass


def with_query(request: Request, path: str) -> str:
    """Return a path with the query of a request."""
    query = request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path
