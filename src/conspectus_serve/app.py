"""Answer requests: read, find the thread, fit, send, pass the answer on, learn from it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Mount

from conspectus.archive import Archive
from conspectus.config import SummarizationConfig
from conspectus_serve.answers import answers_of
from conspectus_serve.compaction import Items
from conspectus_serve.entrance import Entrance, Refusal
from conspectus_serve.fitting import Exchange
from conspectus_serve.held import Passing
from conspectus_serve.models import Models
from conspectus_serve.operation import Handled, Operation, printable
from conspectus_serve.preparing import Preparer
from conspectus_serve.protocols import (
    COMPACT,
    WITHOUT_HISTORY,
    Protocol,
    Route,
    cleaned,
    error_body,
    error_event,
    route_of,
)
from conspectus_serve.recall import NAME, ROUNDS
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
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

RETRIES = 6
"""Maximum further requests for one that the upstream refuses."""

DRAINED = 1.0
"""Seconds in which an upstream may end its answer after the last event, so that its connection can
be used again."""

QUICK, SLOW = 8, 128
"""Threads for steps that take milliseconds, and for compactions, which may wait for a model."""

NEEDED = 2_000
"""Tokens of a history from which an upstream is asked for the window of its model."""

PATIENCE, LARGEST_LIST = 3.0, 4_000_000
"""Seconds that an upstream has for its list of models, and maximum bytes of that."""

EVENTS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]

NOT_READ = "histories at this path are not read; the request went on as it came"
"""The note on an answer whose request may have held a history."""


class Reply:
    """What the client has been sent so far."""

    def __init__(self, send: Send, keep_alive: float) -> None:
        self._send, self._keep_alive = send, keep_alive
        self.alive, self.status = False, 0

    async def start(self, status: int, headers: Raw) -> None:
        """Send status and headers, unless a sign of life was sent before."""
        if not self.status:
            self.status = status
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
        body, began = error_body(path, error.status, str(error), error.code), self.status
        self.status = error.status
        if self.alive and route is not None:
            await self.body(error_event(route.protocol, body), more=False)
        elif not began:
            headers = [(b"content-type", b"application/json"), *own_headers(error=1)]
            headers += [(b"connection", b"close")] if error.status == 413 else []
            headers += [(b"upgrade", b"HTTP/1.1")] if error.status == 426 else []
            headers.append((b"content-length", str(len(body)).encode()))
            self.status = 0
            await self.start(error.status, headers)
            await self.body(body, more=False)


class Endpoint:
    """An ASGI application without a lifespan."""

    def __init__(
        self, settings: ServeSettings, config: SummarizationConfig, archive: Archive, secret: Secret
    ) -> None:
        self._settings, self._secret = settings, secret
        self._enabled, self._entrance = config.enabled, Entrance(settings)
        self._models = Models(settings, config, archive)
        items = Items(settings.signing_keys or [secret.signing_key()])
        self._preparer = Preparer(archive, settings, config, self._models, items)
        self._upstream, self._tenants = Upstream(settings), Tenants(archive)
        self._operation = Operation(archive, self._entrance, self._tenants)
        self._quick = ThreadPoolExecutor(QUICK, "conspectus-serve")
        self._slow = ThreadPoolExecutor(SLOW, "conspectus-compacting")
        self._warned: set[str] = set()

    async def close(self) -> None:
        """Close connections, and let archiving finish."""
        await self._upstream.close()
        for pool in (self._quick, self._slow):
            await asyncio.to_thread(pool.shutdown)

    def _do(self, step: Callable[..., T], *args: Any, slow: bool = False) -> asyncio.Future[T]:
        """Take a step in a thread, to its end even if the client has gone."""
        pool = self._slow if slow else self._quick
        return asyncio.get_running_loop().run_in_executor(pool, step, *args)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
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
        handled = Handled(client=request.headers.get("user-agent", "").partition(" ")[0])
        self._operation.in_flight += 1
        try:
            self._entrance.check(request)
            theirs = self._settings.compaction == "upstream" and route and route.name == COMPACT
            if route is None or theirs or not self._enabled:
                read = asyncio.Event()
                await _while_there(self._through(request, read, reply), request.receive, read)
            else:
                handled.kind, handled.tenant = route.name, self._tenant(request)
                raw = await self._entrance.body(request)
                x = Exchange(handled.tenant, route, raw, request.headers)
                await _while_there(self._answer(request, x, reply, handled), request.receive)
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
            handled.status = reply.status
            self._operation.done(handled)

    def _tenant(self, request: Request) -> str:
        return self._secret.tenant_of(request, self._settings.by)

    # A request without a history

    async def _through(self, request: Request, read: asyncio.Event, reply: Reply) -> None:
        """Send a request on as it comes, and its answer; `read` once its body has come."""

        async def body() -> AsyncIterator[bytes]:
            async for piece in request.stream():
                yield piece
            read.set()

        content: bytes | AsyncIterator[bytes] = body()
        given, headers = request.headers, to_upstream(request.headers.raw)
        if "transfer-encoding" not in given and given.get("content-length", "0") == "0":
            content = b""
            read.set()
        elif "transfer-encoding" not in given:
            # A length beside a transfer coding means nothing (RFC 9112, 6.3).
            headers.append((b"content-length", given["content-length"].encode()))
        target = _target(request, request.scope["raw_path"].decode("latin-1"))
        answer = await self._upstream.send(request.method, target, headers, content)
        try:
            await reply.start(answer.status, to_client(answer.headers) + self._noted(request))
            async for piece in answer.pieces():
                await reply.body(piece)
        except UpstreamFailed:
            logger.warning("the upstream has broken off in the middle of an answer")
            raise ClientDisconnect from None
        finally:
            await answer.close()
        await reply.body(b"", more=False)

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

    # A request with a history

    async def _answer(self, request: Request, x: Exchange, reply: Reply, handled: Handled) -> None:
        protocol, preparer = x.route.protocol, self._preparer
        await self._do(preparer.read, x)
        unknown = x.trail is not None and x.room is None and x.tokens >= NEEDED
        if unknown and await self._asked_for_window(request, x):
            await self._do(preparer.read, x)
        if x.due:
            compacting = self._do(preparer.compact, x, slow=True)
            await reply.until(compacting, protocol, x.streamed)
        await self._do(preparer.write, x)
        if x.view is not None or x.fresh:
            await asyncio.to_thread(self._tenants.add, x.tenant)
        settled = self._settled(x)
        _note(handled, x)
        if x.answer is not None:
            await settled
            kind = b"text/event-stream" if x.streamed else b"application/json"
            await reply.start(200, [(b"content-type", kind), *preparer.headers(x)])
            await reply.body(x.answer, more=False)
            return
        answer = await self._sent(request, x, x.content, reply)
        try:
            for _ in range(RETRIES):
                refusal = await answer.refusal(protocol, x.streamed and not x.with_tool)
                if refusal is None or not await self._do(preparer.again, x, refusal, slow=True):
                    break
                await answer.close()
                handled.retries += 1
                _note(handled, x)
                answer = await self._sent(request, x, x.content, reply)
            await settled
            if x.with_tool and answer.status == 200:
                work = asyncio.ensure_future(self._looked_up(request, x, answer))
                try:
                    status, headers, body = await reply.until(work, protocol, x.streamed)
                finally:
                    work.cancel()
                await self._finish(x, reply, status, headers, body)
            else:
                await self._relay(answer, reply, x)
        finally:
            await answer.close()

    async def _asked_for_window(self, request: Request, x: Exchange) -> bool:
        """Ask the upstream for its models with the client's own key; False without the window."""
        if not self._models.shall_ask(x.tenant, x.model):
            return False
        gone = (b"content-type", b"accept-encoding")
        headers = [one for one in to_upstream(request.headers.raw) if one[0] not in gone]
        headers.append((b"accept-encoding", b"identity"))
        listed = b""
        try:
            answer = await self._upstream.send("GET", "/v1/models", headers, timeout=PATIENCE)
            async with contextlib.aclosing(answer.pieces()) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    listed += piece
                    if len(listed) > LARGEST_LIST:
                        break
            await answer.close()
            known = json.loads(listed) if answer.status == 200 else None
        except (UpstreamFailed, ValueError, RecursionError):
            return False
        return self._models.learn_listed(x.tenant, x.model, known)

    def _settled(self, x: Exchange) -> Awaitable[None]:
        """Keep the thread's progress while the upstream works; a compaction's is kept already."""
        if x.trail is None or x.fresh:
            done = asyncio.get_running_loop().create_future()
            done.set_result(None)
            return done
        return asyncio.shield(self._do(self._preparer.settle, x))

    async def _sent(
        self, request: Request, x: Exchange, content: bytes, reply: Reply
    ) -> UpstreamAnswer:
        sending = asyncio.ensure_future(self._send(request, x, content))
        try:
            return await reply.until(sending, x.route.protocol, reply.alive)
        finally:
            sending.cancel()

    async def _send(
        self, request: Request, x: Exchange, content: bytes, *, mark: bool = False
    ) -> UpstreamAnswer:
        target = _target(request, cleaned(request.scope["raw_path"].decode("latin-1")))
        gone = (b"content-encoding", b"accept-encoding", b"anthropic-beta")
        raw = to_upstream(request.headers.raw)
        headers = [one for one in raw if one[0] not in gone]
        headers.append((b"accept-encoding", b"identity"))  # it is read on the way
        betas = [value for name, value in raw if name == b"anthropic-beta"] + [*x.betas]
        headers += [(b"anthropic-beta", b",".join(betas))] if betas else []
        if mark or content != x.raw:
            # Another request than the client's, whose answer is another one's.
            mine = b"-" + hashlib.sha256(content).hexdigest()[:12].encode()
            headers = [(k, v + mine if k == b"idempotency-key" else v) for k, v in headers]
        return await self._upstream.send(request.method, target, headers, content)

    async def _looked_up(
        self, request: Request, x: Exchange, answer: UpstreamAnswer
    ) -> tuple[int, Raw, bytes]:
        """Carry out calls of the endpoint's own tool, and ask again, until an answer has none.

        Returns:
            Status, headers and body for the client; a refusal on the way is the upstream's.
        """
        stored = x.body.get("store") is not False
        answers, body, bodies = answers_of(x.route.protocol.name, stored=stored), dict(x.body), []
        lookups, history = self._preparer.lookups(x), x.route.protocol.field
        for left in reversed(range(ROUNDS)):
            content, headers = await answer.whole(), to_client(answer.headers)
            if answer.status != 200:
                return answer.status, headers, content
            headers = [one for one in headers if one[0] != b"content-length"]
            try:
                bodies.append(json.loads(content))
                calls = answers.lookups(bodies[-1], NAME) if left else []
                if not calls:
                    whole = answers.joined(bodies, NAME)
                    if not x.streamed:
                        return 200, headers, json.dumps(whole).encode()
                    return 200, [*EVENTS, *_without_type(headers)], answers.events(whole)
            except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
                # The client decides how an answer must look.
                logger.info("an answer was not understood: %s", type(error).__name__)
                return 200, headers, content
            last = bodies[-1]
            messages = await self._do(
                lookups.all, calls, lambda results, last=last: answers.exchange(last, results)
            )
            body[history] = [*body[history], *messages]
            content = json.dumps(body, separators=(",", ":")).encode()
            answer = await self._send(request, x, content, mark=True)
        raise AssertionError("the last request is answered")

    # The answer

    async def _finish(
        self, x: Exchange, reply: Reply, status: int, headers: Raw, body: bytes
    ) -> None:
        """Send an answer that was read whole."""
        if reply.alive and status != 200:
            reply.status = status
            await reply.body(error_event(x.route.protocol, body), more=False)
            return
        passing = Passing(x.route.protocol, x.streamed)
        passing.see(body)
        await reply.start(status, headers + self._preparer.headers(x))
        if status == 200:
            await self._learned(x, passing)
        await reply.body(body, more=False)

    async def _relay(self, answer: UpstreamAnswer, reply: Reply, x: Exchange) -> None:
        """Pass an answer on as it comes, and learn from it."""
        good, head = answer.status == 200, to_client(answer.headers) + self._preparer.headers(x)
        if reply.alive and not good:
            await self._finish(x, reply, answer.status, head, await answer.whole())
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
            if not reply.status or reply.alive:
                raise
            # The client must see that the body is not whole: its connection ends without the rest.
            logger.warning("the upstream has broken off in the middle of an answer")
            if held:
                await reply.body(b"".join(held))
            raise ClientDisconnect from None
        await reply.start(answer.status, head)
        if good:
            await self._learned(x, passing)
        await reply.body(b"".join(held), more=False)
        if passing.ended:
            with suppress(TimeoutError, UpstreamFailed):
                await asyncio.wait_for(_drained(pieces), DRAINED)

    async def _learned(self, x: Exchange, passing: Passing) -> None:
        """Keep a response that may be named, and the tokens that the upstream reports."""
        if self._preparer.keeps(x) and (ended := passing.response()) is not None:
            await asyncio.shield(self._do(self._preparer.keep_response, x, *ended))
        if x.trail is not None and not x.with_tool and (reported := passing.reported()):
            sent = x.sent + x.recalled + x.beside
            self._models.learn_usage(x.tenant, x.model, sent, reported)


def _note(handled: Handled, x: Exchange) -> None:
    handled.model, handled.tokens = x.model, x.tokens
    handled.thread, handled.sent = x.match.thread, x.sent + x.recalled
    handled.compacted, handled.fresh = x.view is not None, handled.fresh or x.fresh


def _target(request: Request, path: str) -> str:
    query = request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _without_type(headers: Raw) -> Raw:
    return [one for one in headers if one[0] not in (b"content-type", b"cache-control")]


async def _drained(pieces: AsyncIterator[bytes]) -> None:
    async for _ in pieces:
        pass


async def _while_there(
    work: Coroutine[Any, Any, None], receive: Receive, read: asyncio.Event | None = None
) -> None:
    """Await work until it ends, or its client disconnects once its body is `read`."""

    async def gone() -> None:
        if read is not None:
            await read.wait()
        while (await receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.create_task(work), asyncio.create_task(gone())
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        working.result()
    finally:
        leaving.cancel()
        working.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await working


def make_app(
    settings: ServeSettings,
    config: SummarizationConfig,
    *,
    archive: Archive | None = None,
    secret: Secret | None = None,
) -> Starlette:
    """Return the endpoint as an ASGI application.

    Args:
        settings, config: as `load_settings` gives them.
        archive: where originals go. Default: the one that the settings name, closed at the end.
        secret: names tenants. Default: the one in the settings' file.

    Raises:
        ConfigError: the secret or a name in the configuration cannot be used.
        ArchiveError: the archive cannot be opened.
    """
    known = secret or secret_beside(settings.where, settings.secret_file)
    opened = archive or Archive.open(settings.where)
    endpoint = Endpoint(settings, config, opened, known)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await endpoint.close()
            if archive is None:
                opened.close()

    return Starlette(routes=[Mount("/", endpoint)], lifespan=lifespan)
