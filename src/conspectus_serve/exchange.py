"""Answer one request with a history: prepare it, send it, and pass the answer on."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from functools import partial
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from conspectus.model.provider_errors import is_overflow
from conspectus_serve.clearing import with_edits
from conspectus_serve.fitting import Turn
from conspectus_serve.headers import Raw, to_client, to_upstream
from conspectus_serve.operation import Handled
from conspectus_serve.preparing import RequestPreparer
from conspectus_serve.protocols import Protocol, cleaned, error_event, sign_of_life
from conspectus_serve.relay import RefusedByUpstream, Upstream, UpstreamAnswer, UpstreamFailed
from conspectus_serve.requests import IncomingRequest, PreparedRequest
from conspectus_serve.rewriting import rewritten
from conspectus_serve.tenants import Tenants
from conspectus_serve.turns import Watch
from conspectus_serve.usage import Passing, Reports
from conspectus_serve.windows import NEEDED, Windows
from conspectus_serve.workers import Workers

logger = logging.getLogger("conspectus.serve")

T = TypeVar("T")
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

RETRIES = 6
"""Maximum further requests for one that the upstream refuses."""

DRAINED = 1.0
"""Seconds in which an upstream may end its answer after the last event, so that its connection can
be used again."""

EVENTS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]


class Reply:
    """What the client has been sent so far.

    Args:
        send: of ASGI.
        seconds: after which a client that waits for a stream gets a sign of life.
    """

    def __init__(self, send: Send, seconds: float) -> None:
        self._send, self._seconds = send, seconds
        self.begun = self.alive = False
        self.status = 0

    async def start(self, status: int, headers: Raw) -> None:
        """Send status and headers, unless a sign of life was sent before."""
        if not self.begun:
            self.begun, self.status = True, status
            await self._send({
                "type": "http.response.start", "status": status, "headers": headers
            })  # fmt: skip

    async def body(self, piece: bytes, *, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": piece, "more_body": more})

    async def until(self, work: asyncio.Future[T], protocol: Protocol, streamed: bool) -> T:
        """Wait for work; a stream's client gets signs of life meanwhile."""
        while streamed and not work.done():
            await asyncio.wait((work,), timeout=self._seconds)
            if not work.done():
                await self.start(200, EVENTS)
                self.alive = True
                await self.body(sign_of_life(protocol))
        return await work

    async def failed(self, protocol: Protocol, body: bytes, status: int) -> None:
        """End a stream that has begun with an error."""
        self.status = status
        await self.body(error_event(protocol, body), more=False)


class Job:
    """One request that is being prepared; `streamed` is known once it is read."""

    def __init__(self) -> None:
        self.streamed, self.read = False, asyncio.Event()
        self.work: asyncio.Future[PreparedRequest] = asyncio.get_running_loop().create_future()


class Exchanges:
    """Answer requests with a history."""

    def __init__(
        self,
        preparing: RequestPreparer,
        upstream: Upstream,
        workers: Workers,
        windows: Windows,
        reports: Reports,
        tenants: Tenants,
    ) -> None:
        self._preparing, self._upstream, self._workers = preparing, upstream, workers
        self._windows, self._reports, self._tenants = windows, reports, tenants
        self._under_way: dict[tuple[str, str | None, bytes], Job] = {}

    async def answer(
        self, request: Request, arrived: IncomingRequest, reply: Reply, handled: Handled
    ) -> None:
        """Answer one request.

        Raises:
            Refusal, UpstreamFailed: it cannot be answered.
            ClientDisconnect: the upstream has broken off in the middle.
        """
        protocol = arrived.route.protocol
        made = await self._prepared(request, arrived, reply)
        _note(handled, made)
        if handled.compacted or handled.fresh:
            await self._tenants.add_aside(arrived.tenant)
        settled = self._settled(made.turn)
        if made.answer is not None:
            await settled
            kind = "text/event-stream" if made.answer.startswith(b"event:") else "application/json"
            await reply.start(200, [(b"content-type", kind.encode()), *made.headers])
            await reply.body(made.answer, more=False)
            return
        answer = await self._sent(request, made, reply)
        try:
            for _ in range(RETRIES):
                if made.turn is None:
                    break
                refusal = await answer.refusal(protocol, made.streamed and not made.rewritten)
                again = await self._again(made, refusal) if refusal is not None else None
                if again is None:
                    break
                await answer.close()
                await settled
                made, handled.retries = again, handled.retries + 1
                _note(handled, made)
                settled = self._settled(made.turn)
                answer = await self._sent(request, made, reply)
            await settled
            await self._relay(request, answer, reply, made)
        finally:
            await answer.close()

    async def _prepared(
        self, request: Request, arrived: IncomingRequest, reply: Reply
    ) -> PreparedRequest:
        """Prepare a request, once at a time.

        A client that gives up while its history is summarised sends the same request again. It must
        find the summary under way, and not pay for another.
        """
        key = (arrived.tenant, arrived.thread, arrived.raw)
        protocol = arrived.route.protocol
        while (first := self._under_way.get(key)) is not None:
            with contextlib.suppress(Exception):
                await reply.until(asyncio.shield(first.work), protocol, first.streamed)
        self._under_way[key] = job = Job()
        job.work = asyncio.ensure_future(self._preparation(request, arrived, job))

        def ended(done: asyncio.Future[PreparedRequest]) -> None:
            job.read.set()
            del self._under_way[key]
            done.cancelled() or done.exception()  # retrieved, for perhaps no caller is left

        job.work.add_done_callback(ended)
        await job.read.wait()
        return await reply.until(asyncio.shield(job.work), protocol, job.streamed)

    async def _preparation(
        self, request: Request, arrived: IncomingRequest, job: Job
    ) -> PreparedRequest:
        preparing, quick = self._preparing, self._workers.quick
        made = await quick(preparing.begun_flow(arrived))
        turn = made.turn
        if turn is not None and turn.room is None and turn.tokens >= NEEDED:
            headers = to_upstream(request.headers.raw)
            if await self._windows.ask(turn.tenant, turn.model, headers):
                made = await quick(preparing.begun_flow(arrived))
        job.streamed = made.streamed
        job.read.set()
        if made.turn is not None and made.turn.due:
            made = await self._workers.slow(preparing.compacted_flow(made))
        return await quick(preparing.finished_flow(made))

    async def _again(
        self, made: PreparedRequest, refusal: RefusedByUpstream
    ) -> PreparedRequest | None:
        """Return a refused request in a form that the upstream may take; None for none."""
        preparing = self._preparing
        if is_overflow(refusal):
            return await self._workers.slow(preparing.again_flow(made, refusal))
        if form := preparing.form_of(made, str(refusal)):
            return await self._workers.quick(preparing.formed_flow(made, form))
        return None

    def _settled(self, turn: Turn | None) -> Awaitable[None]:
        """Keep the thread's progress while the upstream works.

        A compaction is settled at once, when it is made.
        """
        if turn is None or turn.fresh:
            done = asyncio.get_running_loop().create_future()
            done.set_result(None)
            return done
        task = asyncio.create_task(self._workers.quick(self._preparing.settled_flow(turn)))
        return asyncio.shield(task)

    # The way out

    async def _sent(self, request: Request, made: PreparedRequest, reply: Reply) -> UpstreamAnswer:
        sending = asyncio.ensure_future(self._send(request, made, made.content))
        try:
            return await reply.until(sending, made.arrived.route.protocol, reply.alive)
        finally:
            sending.cancel()

    async def _send(
        self, request: Request, made: PreparedRequest, content: bytes, *, again: bool = False
    ) -> UpstreamAnswer:
        path = request.scope["raw_path"].decode("latin-1")
        query = request.scope["query_string"].decode("latin-1")
        target = cleaned(path) + (f"?{query}" if query else "")
        headers = [one for one in to_upstream(request.headers.raw) if one[0] != b"content-encoding"]
        if made.read_on_the_way or made.streamed:  # it is read on the way
            headers = [one for one in headers if one[0] != b"accept-encoding"]
            headers.append((b"accept-encoding", b"identity"))
        if again or content != made.arrived.raw:
            # Another request than the client's, whose answer is another one's.
            mark = b"-" + hashlib.sha256(content).hexdigest()[:12].encode()
            headers = [(k, v + mark if k == b"idempotency-key" else v) for k, v in headers]
        if made.betas:
            known = [v for k, v in headers if k == b"anthropic-beta"]
            headers = [one for one in headers if one[0] != b"anthropic-beta"]
            headers.append((b"anthropic-beta", b",".join([*known, *made.betas])))
        return await self._upstream.send(request.method, target, headers, content)

    async def _relay(
        self, request: Request, answer: UpstreamAnswer, reply: Reply, made: PreparedRequest
    ) -> None:
        protocol, good = made.arrived.route.protocol, answer.status == 200
        if good and made.rewritten:
            send = partial(self._send, request, made, again=True)
            work = asyncio.ensure_future(rewritten(made, answer, self._workers.quick, send))
            try:
                answer = await reply.until(work, protocol, made.streamed)
            finally:
                work.cancel()
        try:
            await self._passed_on(answer, reply, made)
        finally:
            await answer.close()

    async def _passed_on(self, answer: UpstreamAnswer, reply: Reply, made: PreparedRequest) -> None:
        good = answer.status == 200
        if reply.alive and not good:
            body = b"".join([piece async for piece in answer.pieces()])
            await reply.failed(made.arrived.route.protocol, body, answer.status)
            return
        head, pieces = to_client(answer.headers), answer.pieces()
        if good and made.edits:
            pieces = with_edits(pieces, made.edits, made.streamed)
            head = [one for one in head if one[0] != b"content-length"]
        watch = Watch(made.streamed) if good and made.kept else None
        passing = Passing(made.arrived.route.protocol, good and made.streamed)
        held: list[bytes] = []
        try:
            async for piece in pieces:
                await reply.start(answer.status, head + made.headers)
                passing.see(piece)
                if watch is not None:
                    watch.see(piece)
                if watch is not None and watch.near:
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
        await reply.start(answer.status, head + made.headers)
        if watch is not None and (ended := watch.response()) is not None:
            keeping = self._preparing.answered_flow(made, *ended)
            await asyncio.shield(asyncio.ensure_future(self._workers.quick(keeping)))
        await reply.body(b"".join(held), more=False)
        turn = made.turn
        if good and turn is not None and (reported := passing.reported()) is not None:
            beside = 0 if turn.room is None else turn.room.reserved
            self._reports.add(turn.tenant, turn.model, turn.sent + beside, reported)
        if passing.ended:
            await _drained(pieces)


async def _drained(pieces: AsyncIterator[bytes]) -> None:
    """Read what is left of an answer, for a short time."""

    async def rest() -> None:
        async for _ in pieces:
            pass

    with contextlib.suppress(TimeoutError, UpstreamFailed):
        await asyncio.wait_for(rest(), DRAINED)


def _note(handled: Handled, made: PreparedRequest) -> None:
    turn = made.turn
    if turn is not None:
        handled.model, handled.thread = turn.model, turn.found.thread
        handled.tokens, handled.sent = turn.tokens, turn.sent
        handled.compacted, handled.fresh = turn.view is not None, turn.fresh
