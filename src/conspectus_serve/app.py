"""The ASGI application: own pages, and each request's way to the upstream and back."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import quote

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from conspectus.archive import Archive
from conspectus.config import SummarizationConfig
from conspectus_serve import protocols
from conspectus_serve.entrance import Entrance, Secret, secret_beside
from conspectus_serve.exchange import Exchange
from conspectus_serve.fitting import LARGE, Fitter
from conspectus_serve.held import MARK
from conspectus_serve.models import window_in
from conspectus_serve.operation import LEFT, Operation
from conspectus_serve.protocols import COMPACT, HISTORIES, NO_HISTORY, Refusal, Route
from conspectus_serve.settings import ServeSettings
from conspectus_serve.upstream import (
    ENDED,
    Raw,
    Upstream,
    UpstreamAnswer,
    own_headers,
    to_client,
    to_upstream,
)
from conspectus_serve.work import THREADS, Beside

logger = logging.getLogger("conspectus.serve")

T = TypeVar("T")

RETRIES = 6  # maximum further requests for one that the upstream refuses
NEEDED = 2_000  # tokens of a history from which an upstream is asked for the window of its model
MOMENT = 0.05  # seconds for which it may wait to be written how far threads have come
PATIENCE = 3.0  # seconds that it has for that

GONE = (404, 410)  # statuses of what an upstream holds no more

EVENTS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
NOT_READ = "histories at this path are not read; the request went on as it came"
SWITCHED_OFF = "nothing is compacted, as summarization.enabled is false"


class Reply:
    """What the client has been sent so far; a stream is `alive` if it began with a keep-alive."""

    def __init__(self, send: Send) -> None:
        self._send, self.begun, self.alive = send, False, False
        self.status, self.note = 0, ""
        self.reason = ""  # why it has failed, in a word

    async def send(self, status: int, headers: Raw, piece: bytes, *, more: bool = True) -> None:
        """Send a piece of the body; before the first one status and headers."""
        if not self.begun:
            if not 200 <= status < 600:  # which no server can send
                raise Refusal(502, f"the upstream has answered with status {status}; try again")
            self.begun, self.status = True, status
            start = {"type": "http.response.start", "status": status, "headers": headers}
            await self._send(start)
        await self._send({"type": "http.response.body", "body": piece, "more_body": more})


class Endpoint:
    """The endpoint as an ASGI application.

    Args:
        settings: of the endpoint, as `load_settings` gives them.
        config: of summarization, likewise.
        archive: where originals go. Default: the one that the settings name, closed at the end.
        secret: names tenants. Default: the one in the settings' file.
        beside: a process of its own summarises, so that small requests wait less. It opens the
            archive of the settings, too.

    Raises:
        ConfigError: the secret or a name in the configuration cannot be used.
        ArchiveError: the archive cannot be opened.
    """

    def __init__(
        self,
        settings: ServeSettings,
        config: SummarizationConfig,
        *,
        archive: Archive | None = None,
        secret: Secret | None = None,
        beside: bool = False,
    ) -> None:
        where, opens = settings.place, archive is None
        self._archive, self._closes = archive or Archive.open(where), opens
        self._secret = secret or secret_beside(where, settings.secret_file)
        self._settings, self._enabled = settings, config.enabled
        self._entrance, self._upstream = Entrance(settings), Upstream(settings)
        shared = beside and opens and where not in ("memory:", ":memory:")
        self._beside = Beside(settings, config) if shared else None
        self._fitter = Fitter(self._archive, settings, config, self._beside)
        self._operation = Operation(self._archive, self._entrance, self._fitter.health)
        self._writing = False  # soon, by `_write_places`
        self._under_way = set[asyncio.Task[Any]]()

    async def _live(self, receive: Receive, send: Send) -> None:
        """Live until the server ends; then close connections, and let archiving finish."""
        await receive()
        threads = ThreadPoolExecutor(THREADS, "conspectus-archive")
        asyncio.get_running_loop().set_default_executor(threads)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._upstream.close()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await asyncio.to_thread(self._fitter.places.write)
        if self._beside is not None:
            self._beside.close()
        if self._closes:
            self._archive.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        request = Request(scope, receive)
        if self._operation.is_ours(request):
            page = await asyncio.to_thread(self._operation.page, request)
            await page(scope, receive, send)
            return
        reply, x, begun = Reply(send), None, time.monotonic()
        route = self._route(request)
        self._operation.in_flight.inc()
        try:
            self._entrance.check(request)
            raw = await self._entrance.body(request, decoded=route is not None)
            if route is None:
                work = self._pass_on(request, raw, reply)
            else:
                tenant = self._secret.tenant_of(request, self._settings.by)
                x = Exchange(tenant, route, raw, request.headers)
                work = self._answer(request, x, reply)
            await _while_there(work, receive)
        except ClientDisconnect:
            reply.reason = LEFT
        except Refusal as error:
            await self._refuse(request, reply, route, error)
        except Exception as error:
            # Its text may hold a user's words.
            logger.error("an error inside: %s", type(error).__name__)
            logger.debug("where", exc_info=error)
            text = f"an error inside the endpoint ({type(error).__name__})"
            await self._refuse(request, reply, route, Refusal(500, text))
        finally:
            self._operation.in_flight.dec()
            reply.note = x.note if x is not None else reply.note
            self._operation.done(request, x, reply, time.monotonic() - begun)

    def _route(self, request: Request) -> Route | None:
        """Return the route of a request whose history is read."""
        route = protocols.route_of(request.scope["path"]) if request.method == "POST" else None
        theirs = route is not None and route.name == COMPACT and not self._fitter.compacts
        return route if self._enabled and not theirs else None

    async def _refuse(
        self, request: Request, reply: Reply, route: Route | None, error: Refusal
    ) -> None:
        """Send an error in the protocol's form; an answer that has begun breaks off."""
        reply.status, reply.reason = error.status, error.reason
        path = request.scope["path"]
        body = protocols.error_body(path, error.status, str(error), error.code)
        headers = [(b"content-type", b"application/json"), *own_headers(error=True)]
        headers.append((b"content-length", str(len(body)).encode()))
        if reply.alive and route is not None:
            body = protocols.error_event(route.protocol, body)
        if reply.alive or not reply.begun:
            await reply.send(error.status, headers, body, more=False)

    async def _pass_on(self, request: Request, raw: bytes, reply: Reply) -> None:
        """Send a request on as it came, with a note for one that may hold a history."""
        own = Raw()
        about = request.headers
        posted = request.method == "POST" and "json" in about.get("content-type", "")
        may_hold = "content-encoding" in about or any(name in raw for name in HISTORIES)
        may_hold = may_hold and not NO_HISTORY.search(request.url.path)
        if posted and may_hold:
            reply.note = NOT_READ if self._enabled else SWITCHED_OFF
            own = own_headers(note=reply.note)
        headers = to_upstream(request.headers.raw)
        answer = await self._upstream.send(request.method, *_where(request), headers, raw)
        named = protocols.response_at(request.scope["path"]) if request.method == "DELETE" else ""
        if named and (200 <= answer.status < 300 or answer.status in GONE):
            tenant = self._secret.tenant_of(request, self._settings.by)
            drop = self._fitter.delete_response
            await self._to_its_end(asyncio.to_thread(drop, tenant, named))
        await self._relay(answer, reply, own)

    def _to_its_end(self, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Begin what ends even if the client has gone."""
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return asyncio.shield(task)

    async def _answer(self, request: Request, x: Exchange, reply: Reply) -> None:
        """Answer a request with a history."""
        await self._read(x)
        if x.pending and await self._completed(request, x):
            await self._read(x)
        unknown = x.trail is not None and x.room is None and x.tokens >= NEEDED
        if unknown and await self._learned_window(request, x):
            await self._read(x)
        opening = self._open(request, x)
        fits = x.streamed and (x.due or x.filled)
        answer = await (self._kept_alive(opening, x, reply) if fits else opening)
        if answer is None:
            kind = b"text/event-stream" if x.streamed else b"application/json"
            head = [(b"content-type", kind), *x.own_headers()]
            await reply.send(200, head, x.answer, more=False)
        elif reply.alive and answer.status != 200:
            reply.status = answer.status
            body = protocols.error_event(x.route.protocol, await answer.whole())
            await reply.send(200, EVENTS, body, more=False)
        else:
            await self._relay(answer, reply, x.own_headers(), x)

    async def _kept_alive(self, opening: Coroutine[Any, Any, T], x: Exchange, reply: Reply) -> T:
        """Await what opens a stream; the client gets keep-alives during a compaction."""
        task = asyncio.ensure_future(opening)
        try:
            while not (await asyncio.wait((task,), timeout=self._settings.keep_alive))[0]:
                # Until it is sent on; then the upstream may still answer with a status of its own.
                if x.fitting or reply.alive:
                    reply.alive = True
                    await reply.send(200, EVENTS, x.route.protocol.alive)
        finally:
            task.cancel()
        return task.result()

    async def _open(self, request: Request, x: Exchange) -> UpstreamAnswer | None:
        """Fit a request and send it, smaller if it is refused; None with an answer of our own."""
        fitter = self._fitter
        if x.due or x.filled:
            await self._to_its_end(fitter.fit(x))
        if x.answer:
            return None
        sending = self._sent(request, x)
        moved = not x.compactions and not x.route.counts and fitter.settle(x)
        if moved and self._archive.backend.may_hang:  # a server, which others may read at once
            answer, _ = await asyncio.gather(sending, asyncio.to_thread(fitter.places.write))
        else:
            if moved and not self._writing:
                self._writing = True
                asyncio.get_running_loop().call_later(MOMENT, self._write_places)
            answer = await sending
        try:
            for _ in range(RETRIES):
                refusal = await answer.refusal()
                if refusal is None or not await self._to_its_end(fitter.again(x, refusal)):
                    break
                answer.close()
                x.retries += 1
                answer = await self._sent(request, x)
        except BaseException:
            answer.close()
            raise
        return answer

    async def _read(self, x: Exchange) -> None:
        """Read a request: a small one here, as a file answers sooner than another thread begins.

        Large ones are read in threads, one at a time, so that small ones need not wait.
        """
        # A history that the client leaves to the server may be large all the same.
        large = len(x.raw) >= LARGE and not self._fitter.is_soon_read(x)
        x.large = large or b'"previous_response_id"' in x.raw or MARK.encode() in x.raw
        if not (x.large or self._archive.backend.may_hang):  # else a server, which may hang
            self._fitter.read(x)
        elif x.large:
            await self._fitter.in_turn(self._fitter.read, x)
        else:
            await asyncio.to_thread(self._fitter.read, x)

    def _write_places(self) -> None:
        """Write how far threads have come; a moment before, as other requests may come, too."""
        self._writing = False
        self._to_its_end(asyncio.to_thread(self._fitter.places.write))

    async def _learned_window(self, request: Request, x: Exchange) -> bool:
        """Ask the upstream for its models with the client's own key; False without the window."""
        if not x.model or x.learned.asked:
            return False
        x.learned.asked = True
        headers = to_upstream(request.headers.raw, (b"content-type", b"idempotency-key"))
        try:
            async with asyncio.timeout(PATIENCE):
                answer = await self._upstream.send("GET", "/v1/models", "", headers)
                try:
                    listed = json.loads(await answer.whole()) if answer.status == 200 else None
                finally:
                    answer.close()
        except (Refusal, TimeoutError, ValueError, RecursionError):
            return False
        x.learned.listed = window_in(listed, x.model) or x.learned.listed
        return x.learned.listed is not None

    async def _completed(self, request: Request, x: Exchange) -> bool:
        """Ask the upstream for a response that it has made in the background; False without it."""
        headers = to_upstream(request.headers.raw, (b"content-type", b"idempotency-key"))
        path, query = _where(request)
        path = f"{protocols.cleaned(path)}/{quote(x.pending, safe='')}"
        try:
            async with asyncio.timeout(self._settings.timeout):
                answer = await self._upstream.send("GET", path, query, headers)
                try:
                    body = json.loads(await answer.whole()) if answer.status == 200 else {}
                    ended, output = body.get("status") in ENDED, body.get("output")
                finally:
                    answer.close()
        except (Refusal, TimeoutError, ValueError, AttributeError, RecursionError):
            return False
        if answer.status in GONE:
            drop = self._fitter.delete_response
            await self._to_its_end(asyncio.to_thread(drop, x.tenant, x.pending))
        if not (ended and isinstance(output, list)):
            return False
        keep = self._fitter.complete_response
        await self._to_its_end(asyncio.to_thread(keep, x.tenant, x.pending, output))
        return True

    async def _sent(self, request: Request, x: Exchange) -> UpstreamAnswer:
        """Send what a request has become."""
        headers = to_upstream(request.headers.raw, (b"content-encoding", b"anthropic-beta"))
        if betas := [*request.headers.getlist("anthropic-beta"), *x.betas]:
            headers.append((b"anthropic-beta", ",".join(betas).encode("latin-1")))
        if x.content != x.raw:
            # Another request than the client's, whose answer is another one's.
            mark = b"-" + hashlib.sha256(x.content).hexdigest()[:12].encode()
            headers = [(k, v + mark if k == b"idempotency-key" else v) for k, v in headers]
        protocol, (path, query) = x.route.protocol, _where(request)
        answer = await self._upstream.send(
            "POST", protocols.cleaned(path), query, headers, x.content, protocol, x.streamed
        )
        x.answered = True
        return answer

    async def _relay(
        self, answer: UpstreamAnswer, reply: Reply, own: Raw, x: Exchange | None = None
    ) -> None:
        """Pass an answer on as it comes, and learn from it."""
        head, held = to_client(answer.headers) + own, list[bytes]()
        good = x is not None and x.trail is not None and answer.status == 200
        pending = x is not None and good and x.given.get("background") is True
        try:
            async for piece in answer.pieces():
                # The end is held back until the response is kept: a client that has it may
                # continue at once.
                if answer.closing:
                    held.append(piece)
                    continue
                # A client that has its id may leave, and come back for the rest.
                if pending and (named := answer.pending()):
                    pending = False
                    await self._keep_pending(x, named)
                await reply.send(answer.status, head, piece)
        finally:
            answer.close()
        # With the end of the answer its client may go, and what is under way then is cancelled.
        if good and x is not None:
            if (reported := answer.reported()) is not None:
                self._fitter.see_usage(x, reported)
            if self._fitter.keeps(x) and (ended := answer.response()) is not None:
                await self._to_its_end(asyncio.to_thread(self._fitter.keep_response, x, *ended))
            elif pending and (named := answer.pending()):
                await self._keep_pending(x, named)
        await reply.send(answer.status, head, b"".join(held), more=False)

    async def _keep_pending(self, x: Exchange | None, name: str) -> None:
        if x is not None and self._fitter.keeps(x):
            await self._to_its_end(asyncio.to_thread(self._fitter.keep_pending, x, name))


def _where(request: Request) -> tuple[str, str]:
    """Return the path and the query of a request, as they came."""
    return request.scope["raw_path"].decode("latin-1"), request.scope["query_string"].decode()


async def _while_there(work: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Await work, and cancel it if its client disconnects. Raises ClientDisconnect then."""
    task = asyncio.current_task()

    async def left() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        if task is not None:
            task.cancel()

    leaving = asyncio.ensure_future(left())
    try:
        await work
    except asyncio.CancelledError:
        if leaving.done():
            raise ClientDisconnect from None
        raise
    finally:
        leaving.cancel()


make_app = Endpoint
