"""Assemble the ASGI application."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, MutableMapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Mount

from conspectus.archive import Archive
from conspectus.config import SummarizationConfig
from conspectus_serve.entrance import Entrance
from conspectus_serve.exchange import Exchanges, Reply
from conspectus_serve.fitting import RequestFitter
from conspectus_serve.headers import said, to_client, to_upstream
from conspectus_serve.items import Items
from conspectus_serve.models import Models
from conspectus_serve.operation import Handled, Operation, shown
from conspectus_serve.pages import Pages
from conspectus_serve.preparing import RequestPreparer
from conspectus_serve.protocols import WITHOUT_HISTORY, Route, error_body, route_of
from conspectus_serve.recalling import RequestRecall
from conspectus_serve.relay import Upstream, UpstreamFailed
from conspectus_serve.requests import IncomingRequest, Refusal
from conspectus_serve.secret import Secret, secret_beside
from conspectus_serve.settings import ServeSettings
from conspectus_serve.tenants import Tenants
from conspectus_serve.turns import Turns
from conspectus_serve.usage import Reports
from conspectus_serve.windows import Windows
from conspectus_serve.workers import Workers

logger = logging.getLogger("conspectus.serve")

Scope_ = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

NOT_READ = "histories at this path are not read; the request went on as it came"
"""The note on an answer whose request may have held a history."""


class Endpoint:
    """Answer requests."""

    def __init__(
        self, settings: ServeSettings, config: SummarizationConfig, archive: Archive, secret: Secret
    ) -> None:
        self._settings, self._entrance = settings, Entrance(settings, secret)
        self._enabled = config.enabled
        models = Models(settings, config, archive)
        recalled = settings.recall_tokens if settings.recall != "off" else 0
        preparing = RequestPreparer(
            RequestFitter(archive, models, send_stuck=settings.on_stuck == "send"),
            Turns(archive),
            Items(settings.signing_keys or [secret.signing_key()]),
            RequestRecall(
                archive, recalled, 2 * settings.recall_tokens if settings.recall_tool else 0
            ),
            models,
            serves=settings.compaction == "here",
            holds=not config.redact,
            alternate=settings.alternate_roles,
        )
        self._upstream = Upstream(
            settings.upstream, settings.timeout, settings.proxy, settings.ca_file
        )
        self._workers, self._operation = Workers(), Operation()
        windows, tenants = Windows(self._upstream, models), Tenants(archive)
        self._exchanges = Exchanges(
            preparing, self._upstream, self._workers, windows, Reports(models), tenants
        )
        self._pages = Pages(archive, self._operation, self._entrance, tenants)
        self._warned: set[str] = set()

    async def close(self) -> None:
        """Close connections, and let archiving finish."""
        await self._upstream.close()
        await self._workers.close()

    async def __call__(self, scope: Scope_, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        request = Request(scope, receive)
        if (page := self._pages.at(request)) is not None:
            await (await page)(scope, receive, send)
            return
        reply = Reply(send, self._settings.keep_alive)
        route = route_of(request.scope["path"]) if request.method == "POST" else None
        handled = Handled(client=request.headers.get("user-agent", "").partition(" ")[0])
        self._operation.in_flight += 1
        try:
            await self._handled(request, route, reply, handled)
        except ClientDisconnect:
            return
        except Refusal as error:
            await self._refused(request, route, reply, error)
        except UpstreamFailed as failed:
            await self._refused(request, route, reply, Refusal(failed.status, str(failed)))
        except Exception as error:
            # Its text may hold a user's words.
            logger.error("an error inside: %s", type(error).__name__)
            logger.debug("where", exc_info=error)
            text = f"an error inside the endpoint ({type(error).__name__})"
            await self._refused(request, route, reply, Refusal(500, text))
        finally:
            self._operation.in_flight -= 1
            handled.status = reply.status
            self._operation.done(handled)

    async def _refused(
        self, request: Request, route: Route | None, reply: Reply, wrong: Refusal
    ) -> None:
        body = error_body(request.scope["path"], wrong.status, str(wrong), wrong.code)
        if reply.alive and route is not None:
            await reply.failed(route.protocol, body, wrong.status)
        elif not reply.begun:
            headers = [(b"content-type", b"application/json"), *said(error=1)]
            headers += [(b"connection", b"close")] if wrong.status == 413 else []
            headers += [(b"upgrade", b"HTTP/1.1")] if wrong.status == 426 else []
            headers.append((b"content-length", str(len(body)).encode()))
            await reply.start(wrong.status, headers)
            await reply.body(body, more=False)

    async def _handled(
        self, request: Request, route: Route | None, reply: Reply, handled: Handled
    ) -> None:
        if request.headers.get("upgrade", "").lower() == "websocket":
            raise Refusal(426, "WebSockets are not served here; use HTTP")
        self._entrance.check(request)
        receive = request.receive
        asks_upstream = (
            route is not None
            and route.name == "responses/compact"
            and self._settings.compaction == "upstream"
        )
        if route is None or asks_upstream or not self._enabled:
            read = asyncio.Event()
            await _while_there(self._through(request, read, reply), _gone(receive, read))
            return
        handled.kind, handled.tenant = route.name, self._entrance.tenant(request)
        thread = request.headers.get("x-conspectus-thread")
        raw = await self._entrance.body(request)
        arrived = IncomingRequest(handled.tenant, route, raw, thread, request.headers)
        await _while_there(self._exchanges.answer(request, arrived, reply, handled), _gone(receive))

    async def _through(self, request: Request, read: asyncio.Event, reply: Reply) -> None:
        """Send a request on as it comes, and its answer."""

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
        target = request.scope["raw_path"].decode("latin-1")
        if query := request.scope["query_string"]:
            target += "?" + query.decode("latin-1")
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

    def _noted(self, request: Request) -> list[tuple[bytes, bytes]]:
        """Say that a request may hold a history that is not read, and log it once for a path."""
        path = request.scope["path"]
        json = "json" in request.headers.get("content-type", "")
        if (
            request.method != "POST"
            or not json
            or not self._enabled
            or WITHOUT_HISTORY.search(path)
        ):
            return []
        if route_of(path) is not None:
            return []
        if path not in self._warned and len(self._warned) < 100:
            self._warned.add(path)
            logger.warning("%s: %s", shown(path), NOT_READ)
        return said(note=NOT_READ)


async def _while_there(work: Coroutine[Any, Any, None], gone: Coroutine[Any, Any, None]) -> None:
    """Await work until it ends or its client disconnects."""
    working, leaving = asyncio.create_task(work), asyncio.create_task(gone)
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


async def _gone(receive: Receive, read: asyncio.Event | None = None) -> None:
    """Wait until the client disconnects, once its body is read."""
    if read is not None:
        await read.wait()
    while (await receive())["type"] != "http.disconnect":
        pass


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
