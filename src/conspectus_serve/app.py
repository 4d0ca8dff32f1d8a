"""Assemble the ASGI application: own pages, requests with a history, and all others."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, MutableMapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Mount

from conspectus.archive import Archive
from conspectus.config import SummarizationConfig
from conspectus_serve.compaction import Items
from conspectus_serve.entrance import Entrance, Refusal, Secret, Tenants, secret_beside
from conspectus_serve.exchange import Exchanges, Reply, Send, with_query
from conspectus_serve.fitting import Exchange
from conspectus_serve.operation import Operation, printable
from conspectus_serve.preparing import Preparer
from conspectus_serve.protocols import COMPACT, WITHOUT_HISTORY, route_of
from conspectus_serve.settings import ServeSettings
from conspectus_serve.upstream import (
    Raw,
    Upstream,
    UpstreamFailed,
    own_headers,
    to_client,
    to_upstream,
)

logger = logging.getLogger("conspectus.serve")

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

NOT_READ = "histories at this path are not read; the request went on as it came"


class Endpoint:
    """An ASGI application without a lifespan."""

    def __init__(
        self, settings: ServeSettings, config: SummarizationConfig, archive: Archive, secret: Secret
    ) -> None:
        self._settings, self._secret = settings, secret
        self._enabled, self._entrance = config.enabled, Entrance(settings)
        items = Items(settings.signing_keys or [secret.signing_key()])
        preparer = Preparer(archive, settings, config, items)
        self._upstream, tenants = Upstream(settings), Tenants(archive)
        self._exchanges = Exchanges(preparer, self._upstream, tenants)
        self._operation = Operation(archive, self._entrance, tenants)
        self._warned: set[str] = set()

    async def close(self) -> None:
        """Close connections, and let archiving finish."""
        await self._upstream.close()
        await self._exchanges.close()

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
        x, begun = None, time.monotonic()
        self._operation.in_flight += 1
        try:
            self._entrance.check(request)
            theirs = self._settings.compaction == "upstream" and route and route.name == COMPACT
            if route is None or theirs or not self._enabled:
                read = asyncio.Event()
                await _while_there(self._through(request, read, reply), request.receive, read)
            else:
                tenant = self._secret.tenant_of(request, self._settings.by)
                x = Exchange(tenant, route, await self._entrance.body(request), request.headers)
                await _while_there(self._exchanges.answer(request, x, reply), request.receive)
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
        given, headers = request.headers, to_upstream(request.headers.raw)
        if "transfer-encoding" not in given and given.get("content-length", "0") == "0":
            content = b""
            read.set()
        elif "transfer-encoding" not in given:
            # A length beside a transfer coding means nothing (RFC 9112, 6.3).
            headers.append((b"content-length", given["content-length"].encode()))
        target = with_query(request, request.scope["raw_path"].decode("latin-1"))
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
        settings: of the endpoint, as `load_settings` gives them.
        config: of summarization, likewise.
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
