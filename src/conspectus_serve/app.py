"""The ASGI application: own pages, and each request's way to the upstream and back."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from conspectus.archive import Archive
from conspectus.config import SummarizationConfig
from conspectus_serve.answers import Passing
from conspectus_serve.compaction import Items
from conspectus_serve.entrance import Entrance
from conspectus_serve.exchange import Exchange, Receive, Reply, Send, headers_of, while_there
from conspectus_serve.fitting import Fitter
from conspectus_serve.models import window_in
from conspectus_serve.operation import Operation
from conspectus_serve.protocols import (
    COMPACT,
    WITHOUT_HISTORY,
    Refusal,
    cleaned,
    error_event,
    printable,
    route_of,
)
from conspectus_serve.settings import ServeSettings
from conspectus_serve.tenants import Secret, Tenants, secret_beside
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

RETRIES = 6  # maximum further requests for one that the upstream refuses
DRAINED = 0.2  # seconds to end an answer after its last event, for the connection to be used again
QUICK, SLOW = 8, 128  # threads for steps of milliseconds, and for calls of archives that may hang
LARGE = 50_000  # bytes of a request that takes longer to read than others shall wait
NEEDED = 2_000  # tokens of a history from which an upstream is asked for the window of its model
PATIENCE = 3.0  # seconds that it has for that

NOT_READ = "histories at this path are not read; the request went on as it came"


class Endpoint:
    """An ASGI application; with `closes` it closes the archive at its end."""

    def __init__(
        self,
        settings: ServeSettings,
        config: SummarizationConfig,
        archive: Archive,
        secret: Secret,
        closes: bool,
    ) -> None:
        self._archive, self._closes = archive, closes
        self._settings, self._secret, self._enabled = settings, secret, config.enabled
        self._entrance, self._upstream = Entrance(settings), Upstream(settings)
        items = Items(settings.signing_keys or [secret.signing_key()])
        tenants = Tenants(archive)
        self._fitter = Fitter(archive, settings, config, items, tenants)
        self._operation = Operation(archive, self._entrance, tenants)
        self._quick = ThreadPoolExecutor(QUICK, "conspectus-serve")
        self._turn = asyncio.Semaphore(1)
        self._under_way = set[asyncio.Task[Any]]()
        self._warned: set[str] = set()

    async def _live(self, receive: Receive, send: Send) -> None:
        """Live until the server ends; then close connections, and let archiving finish."""
        await receive()
        slow = ThreadPoolExecutor(SLOW, "conspectus-archive")
        asyncio.get_running_loop().set_default_executor(slow)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._upstream.close()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await asyncio.to_thread(self._quick.shutdown)
        if self._closes:
            self._archive.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
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
        reply = Reply(send, self._settings.keep_alive)
        route = route_of(scope["path"]) if request.method == "POST" else None
        x, begun, read = None, time.monotonic(), asyncio.Event()
        self._operation.in_flight += 1
        try:
            self._entrance.check(request)
            theirs = self._settings.compaction == "upstream" and route and route.name == COMPACT
            if route is None or theirs or not self._enabled:
                work = self._through(request, read, reply)
            else:
                tenant = self._secret.tenant_of(request, self._settings.by)
                x = Exchange(tenant, route, await self._entrance.body(request), request.headers)
                read.set()
                work = self._answer(request, x, reply)
            await while_there(work, request.receive, read)
        except ClientDisconnect:
            return
        except Refusal as error:
            await reply.refuse(scope["path"], route, error)
        except Exception as error:
            # Its text may hold a user's words.
            logger.error("an error inside: %s", type(error).__name__)
            logger.debug("where", exc_info=error)
            text = f"an error inside the endpoint ({type(error).__name__})"
            await reply.refuse(scope["path"], route, Refusal(500, text))
        finally:
            self._operation.in_flight -= 1
            self._operation.done(request, x, reply.status, time.monotonic() - begun)

    async def _through(self, request: Request, read: asyncio.Event, reply: Reply) -> None:
        """Send a request on as it comes, and its answer; `read` once its body has come."""

        async def body() -> AsyncIterator[bytes]:
            async for piece in request.stream():
                yield piece
            read.set()

        content: bytes | AsyncIterator[bytes] = body()
        headers = to_upstream(request.headers.raw)
        # A length beside a transfer coding means nothing (RFC 9112, 6.3).
        if "transfer-encoding" not in request.headers:
            length = request.headers.get("content-length", "0")
            if length == "0":
                content = b""
                read.set()
            else:
                headers.append((b"content-length", length.encode()))
        where = _where(request)
        answer = await self._upstream.send(request.method, *where, headers, content, plain=False)
        try:
            await reply.start(answer.status, to_client(answer.headers) + self._noted(request))
            async for piece in answer.pieces():
                await reply.body(piece)
            await reply.body(b"", more=False)
        finally:
            answer.close()

    def _noted(self, request: Request) -> Raw:
        """Say that a request may hold a history that is not read, and log it once for a path."""
        path, kind = request.scope["path"], request.headers.get("content-type", "")
        posted = request.method == "POST" and "json" in kind and self._enabled
        if not posted or WITHOUT_HISTORY.search(path) or route_of(path) is not None:
            return []
        if path not in self._warned and len(self._warned) < 100:
            self._warned.add(path)
            logger.warning("%s: %s", printable(path), NOT_READ)
        return own_headers(note=NOT_READ)

    def _do(self, step: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Take a step of milliseconds in a thread."""
        return asyncio.get_running_loop().run_in_executor(self._quick, step, *args)

    def _to_its_end(self, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Begin what ends even if the client has gone."""
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return asyncio.shield(task)

    async def _answer(self, request: Request, x: Exchange, reply: Reply) -> None:
        """Answer a request with a history."""
        protocol, fitter, settling = x.route.protocol, self._fitter, None
        await self._read(x)
        unknown = x.trail is not None and x.room is None and x.tokens >= NEEDED
        if unknown and await self._learned_window(request, x):
            await self._read(x)
        if x.due or x.filled:
            await reply.until(self._to_its_end(fitter.fit(x)), protocol, x.streamed)
        if not x.fresh and not x.route.counts and fitter.has_moved(x):
            settling = self._do(fitter.settle, x)  # while the upstream works
        if x.answer is not None:
            kind = b"text/event-stream" if x.streamed else b"application/json"
            await reply.start(200, [(b"content-type", kind), *headers_of(x)])
            await reply.body(x.answer, more=False)
            return
        answer = await self._sent(request, x, reply)
        try:
            for _ in range(RETRIES):
                refusal = await answer.refusal(protocol, x.streamed)
                if refusal is None or not await self._to_its_end(fitter.again(x, refusal)):
                    break
                answer.close()
                x.retries += 1
                answer = await self._sent(request, x, reply)
            if settling is not None:
                await settling
            await self._relay(answer, reply, x)
        finally:
            answer.close()

    async def _read(self, x: Exchange) -> None:
        """Read a request: a small one here, as a file answers sooner than another thread begins.

        Large ones are read in threads, one at a time, so that small ones need not wait.
        """
        held = b'"previous_response_id"' in x.raw  # its history may be large all the same
        if held or len(x.raw) >= LARGE:
            async with self._turn:
                await asyncio.to_thread(self._fitter.read, x)
        elif self._archive.backend.daemon:  # a server, which may hang
            await self._do(self._fitter.read, x)
        else:
            self._fitter.read(x)

    async def _learned_window(self, request: Request, x: Exchange) -> bool:
        """Ask the upstream for its models with the client's own key; False without the window."""
        if not x.model or not x.learned.shall_ask():
            return False
        gone = (b"content-type", b"accept-encoding", b"idempotency-key")
        headers = [one for one in to_upstream(request.headers.raw) if one[0] not in gone]
        headers.append((b"accept-encoding", b"identity"))
        try:
            answer = await self._upstream.send("GET", "/v1/models", "", headers, timeout=PATIENCE)
            try:
                listed = json.loads(await answer.whole()) if answer.status == 200 else None
            finally:
                answer.close()
        except (UpstreamFailed, ValueError, RecursionError):
            return False
        x.learned.listed = window_in(listed, x.model) or x.learned.listed
        return x.learned.listed is not None

    async def _sent(self, request: Request, x: Exchange, reply: Reply) -> UpstreamAnswer:
        """Send what a request has become; the answer is read on the way, so it is plain."""
        path, query = _where(request)
        gone = (b"content-encoding", b"accept-encoding", b"anthropic-beta")
        raw = to_upstream(request.headers.raw)
        headers = [one for one in raw if one[0] not in gone]
        headers.append((b"accept-encoding", b"identity"))
        betas = [value for name, value in raw if name == b"anthropic-beta"] + [*x.betas]
        headers += [(b"anthropic-beta", b",".join(betas))] if betas else []
        if x.content != x.raw:
            # Another request than the client's, whose answer is another one's.
            mark = b"-" + hashlib.sha256(x.content).hexdigest()[:12].encode()
            headers = [(k, v + mark if k == b"idempotency-key" else v) for k, v in headers]
        sending = self._upstream.send(request.method, cleaned(path), query, headers, x.content)
        return await reply.until(sending, x.route.protocol, reply.alive)

    async def _relay(self, answer: UpstreamAnswer, reply: Reply, x: Exchange) -> None:
        """Pass an answer on as it comes, and learn from it."""
        good, head = answer.status == 200, to_client(answer.headers) + headers_of(x)
        if reply.alive and not good:
            reply.status = answer.status
            body = error_event(x.route.protocol, await answer.whole())
            await reply.body(body, more=False)
            return
        passing, held = Passing(x.route.protocol, good and x.streamed), list[bytes]()
        keeps = good and self._fitter.keeps(x)
        try:
            async for piece in answer.pieces():
                await reply.start(answer.status, head)
                passing.see(piece)
                # The end is held back until the response is kept: a client that has it may
                # continue at once.
                if keeps and passing.complete:
                    held.append(piece)
                else:
                    await reply.body(piece)
                if passing.ended:  # some upstreams leave their stream open
                    with suppress(TimeoutError, UpstreamFailed):
                        await asyncio.wait_for(answer.whole(), DRAINED)
                    break
        except UpstreamFailed:
            # The client must see that the body is not whole: it gets the rest, and no end.
            if held:
                await reply.body(b"".join(held))
            raise
        # With the end of the answer its client may go, and what is under way then is cancelled.
        answer.close()
        await reply.start(answer.status, head)
        if keeps and (ended := passing.response()) is not None:
            await asyncio.shield(self._do(self._fitter.keep_response, x, *ended))
        reported = passing.reported() if good and x.trail else None
        if reported is not None:
            x.learned.see_usage(x.sent + x.recalled + x.fixed, reported)
        await reply.body(b"".join(held), more=False)


def _where(request: Request) -> tuple[str, str]:
    """Return the path and the query of a request, as they came."""
    return request.scope["raw_path"].decode("latin-1"), request.scope["query_string"].decode()


def make_app(
    settings: ServeSettings,
    config: SummarizationConfig,
    *,
    archive: Archive | None = None,
    secret: Secret | None = None,
) -> Endpoint:
    """Return the endpoint as an ASGI application.

    Args:
        settings: of the endpoint, as `load_settings` gives them.
        config: of summarization, likewise.
        archive: where originals go. Default: the one that the settings name, closed at the end.
        secret: names tenants. Default: the one in the settings' file.

    Raises:
        ConfigError: the secret or a name in the configuration cannot be used.
        ArchiveError: the archive cannot be opened.
    """
    opened = archive or Archive.open(settings.where)
    known = secret or secret_beside(settings.where, settings.secret_file)
    return Endpoint(settings, config, opened, known, closes=archive is None)
