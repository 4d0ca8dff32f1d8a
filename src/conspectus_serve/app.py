"""Assemble the ASGI application."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount

from conspectus.archive import Archive
from conspectus.bridge import run
from conspectus.config import SummarizationConfig
from conspectus.model.provider_errors import is_overflow
from conspectus_serve.asked import COMPACT_PATH
from conspectus_serve.clearing import with_edits
from conspectus_serve.entrance import Entrance
from conspectus_serve.fitting import RequestFitter, Turn
from conspectus_serve.headers import to_client, to_upstream
from conspectus_serve.items import Items
from conspectus_serve.models import Models
from conspectus_serve.preparing import (
    IncomingRequest,
    PreparedRequest,
    Refusal,
    RequestPreparer,
)
from conspectus_serve.protocols import PATHS, error_body
from conspectus_serve.recalling import RequestRecall
from conspectus_serve.relay import Upstream, UpstreamAnswer, UpstreamFailed
from conspectus_serve.rewriting import Rewriting
from conspectus_serve.secret import Secret, secret_beside
from conspectus_serve.settings import ServeSettings
from conspectus_serve.turns import Turns, Watch

logger = logging.getLogger("conspectus")

T = TypeVar("T")
Scope_ = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

WORKERS = 8
"""Requests prepared at once, each in a thread, so that no stream waits for another."""


UNPREPARED = PreparedRequest({}, b"")


class Endpoint:
    """Answer requests."""

    def __init__(
        self, settings: ServeSettings, config: SummarizationConfig, archive: Archive, secret: Secret
    ) -> None:
        self._settings, self._entrance = settings, Entrance(settings, secret)
        self._enabled = config.enabled
        models = Models(settings, config, archive)
        recalled = settings.recall_tokens if settings.recall == "auto" else 0
        self._preparing = RequestPreparer(
            RequestFitter(archive, models, send_stuck=settings.on_stuck == "send"),
            Turns(archive),
            Items(settings.signing_keys or [secret.signing_key()]),
            RequestRecall(
                archive, recalled, 2 * settings.recall_tokens if settings.recall_tool else 0
            ),
            serves=settings.compaction == "here",
            holds=not config.redact,
        )
        self._upstream = Upstream(settings.upstream, settings.timeout, settings.proxy)
        self._workers = ThreadPoolExecutor(WORKERS, "conspectus-serve")
        self._under_way: dict[tuple[str, str | None, bytes], asyncio.Future[PreparedRequest]] = {}

    async def close(self) -> None:
        """Close connections, and let archiving finish."""
        await self._upstream.close()
        await asyncio.to_thread(self._workers.shutdown)

    async def __call__(self, scope: Scope_, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        begun = False

        async def counted(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._answered(scope, receive, counted)
            return
        except ClientDisconnect:
            return
        except Refusal as error:
            wrong = error
        except UpstreamFailed as failed:
            wrong = Refusal(failed.status, str(failed))
        except Exception as error:
            # Its text may hold a user's words.
            logger.error("an error inside: %s", type(error).__name__)
            logger.debug("where", exc_info=error)
            wrong = Refusal(500, f"an error inside the endpoint ({type(error).__name__})")
        if begun:
            return
        headers = {"x-conspectus-error": "1"} | (
            {"connection": "close"} if wrong.status == 413 else {}
        )
        body = error_body(scope["path"], wrong.status, str(wrong), wrong.code)
        await Response(body, wrong.status, headers, "application/json")(scope, receive, send)

    async def _answered(self, scope: Scope_, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        self._entrance.check(request)
        path = request.scope["path"]
        protocol = PATHS.get(path) if request.method == "POST" and self._enabled else None
        asks_upstream = path == COMPACT_PATH and self._settings.compaction == "upstream"
        if protocol is None or asks_upstream:
            read = asyncio.Event()
            await _while_there(self._through(request, read, send), _gone(receive, read))
            return
        thread = request.headers.get("x-conspectus-thread")
        raw = await self._entrance.body(request)
        arrived = IncomingRequest(self._entrance.tenant(request), path, protocol, raw, thread)
        await _while_there(self._turn(request, arrived, send), _gone(receive))

    # Requests that go through as they come

    async def _through(self, request: Request, read: asyncio.Event, send: Send) -> None:
        async def body() -> AsyncIterator[bytes]:
            async for piece in request.stream():
                yield piece
            read.set()

        content: bytes | AsyncIterator[bytes] = body()
        names = request.headers
        if "transfer-encoding" not in names and names.get("content-length", "0") == "0":
            content = b""
            read.set()
        await self._relay(await self._sent(request, content), send)

    # Requests with a history

    async def _turn(self, request: Request, arrived: IncomingRequest, send: Send) -> None:
        preparing = self._preparing
        made = await self._prepared(arrived)
        settled = self._settled(made.turn)
        if made.answer is not None:
            await settled
            kind = "text/event-stream" if made.answer.startswith(b"event:") else "application/json"
            response = Response(made.answer, headers={"content-type": kind})
            response.raw_headers += made.headers
            await response(request.scope, request.receive, send)
            return
        answer = await self._sent(request, made.content, whole=made.read_on_the_way)
        try:
            refusal = None if made.turn is None else await answer.refusal()
            if refusal is not None and is_overflow(refusal):
                smaller = await self._work(preparing.again_flow(made, refusal))
                if smaller is not None:
                    await answer.close()
                    made = smaller
                    answer = await self._sent(request, made.content, whole=made.read_on_the_way)
                    await settled
                    settled = self._settled(made.turn)
            await settled
            again = partial(self._sent, request, whole=True, again=True)
            rewriting = Rewriting(made, self._work, again) if made.rewritten else None
            await self._relay(answer, send, made, rewriting)
        finally:
            await answer.close()

    async def _prepared(self, arrived: IncomingRequest) -> PreparedRequest:
        """Prepare a request, once at a time.

        A client that gives up while its history is summarised sends the same request again. It must
        find the summary under way, and not pay for another.
        """
        key = (arrived.tenant, arrived.thread, arrived.raw)
        while (first := self._under_way.get(key)) is not None:
            await asyncio.wait((first,))
        work = asyncio.ensure_future(self._work(self._preparing.prepared_flow(arrived)))
        self._under_way[key] = work

        def ended(done: asyncio.Future[PreparedRequest]) -> None:
            del self._under_way[key]
            done.cancelled() or done.exception()  # retrieved, for perhaps no caller is left

        work.add_done_callback(ended)
        return await asyncio.shield(work)

    def _settled(self, turn: Turn | None) -> Awaitable[None]:
        """Keep the thread's progress while the upstream works.

        A compaction is settled at once, when it is made.
        """
        if turn is None or turn.fresh:
            done = asyncio.get_running_loop().create_future()
            done.set_result(None)
            return done
        task = asyncio.create_task(self._work(self._preparing.settled_flow(turn)))
        return asyncio.shield(task)

    async def _work(self, flow: Awaitable[T]) -> T:
        """Drive a flow in a thread, to its end even if the caller has gone."""
        return await asyncio.get_running_loop().run_in_executor(self._workers, run, flow)

    # The way out

    async def _sent(
        self,
        request: Request,
        content: bytes | AsyncIterator[bytes],
        *,
        whole: bool = False,
        again: bool = False,
    ) -> UpstreamAnswer:
        target = request.scope["raw_path"].decode("latin-1")
        if query := request.scope["query_string"]:
            target += "?" + query.decode("latin-1")
        headers = to_upstream(request.headers.raw)
        if whole:  # it is read on the way
            headers = [one for one in headers if one[0].lower() != b"accept-encoding"]
            headers.append((b"accept-encoding", b"identity"))
        if again:  # this is another request, whose answer differs from the first one's
            headers = [one for one in headers if one[0].lower() != b"idempotency-key"]
        # A length beside a transfer coding means nothing (RFC 9112, 6.3).
        if not isinstance(content, bytes) and "transfer-encoding" not in request.headers:
            headers.append((b"content-length", request.headers["content-length"].encode()))
        return await self._upstream.send(request.method, target, headers, content)

    async def _relay(
        self,
        answer: UpstreamAnswer,
        send: Send,
        made: PreparedRequest = UNPREPARED,
        rewriting: Rewriting | None = None,
    ) -> None:
        if rewriting is not None and answer.status == 200 and not made.streamed:
            answer, rewriting = await rewriting.whole(answer), None
        good = answer.status == 200
        head, pieces = to_client(answer.headers), answer.pieces()
        if good and rewriting is not None:
            pieces = rewriting.streamed(answer)
        if good and made.edits:
            pieces = with_edits(pieces, made.edits, made.streamed)
        if good and (rewriting is not None or made.edits):
            head = [one for one in head if one[0] != b"content-length"]
        watch = Watch(made.streamed) if good and made.kept else None
        start: MutableMapping[str, Any] | None = {
            "type": "http.response.start", "status": answer.status, "headers": head + made.headers
        }  # fmt: skip
        held: list[bytes] = []
        try:
            async for piece in pieces:
                if start is not None:
                    await send(start)
                    start = None
                if watch is not None:
                    watch.see(piece)
                    if watch.near:
                        held.append(piece)
                        continue
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        except UpstreamFailed:
            if start is not None:
                raise
            # The client must see that the body is not whole: its connection ends without the rest.
            logger.warning("the upstream has broken off in the middle of an answer")
            if held:
                rest = b"".join(held)
                await send({"type": "http.response.body", "body": rest, "more_body": True})
            raise ClientDisconnect from None
        finally:
            if rewriting is not None:
                await rewriting.close()
            await answer.close()
        if start is not None:
            await send(start)
        if watch is not None and (ended := watch.response()) is not None:
            await asyncio.shield(self._work(self._preparing.answered_flow(made, *ended)))
        await send({"type": "http.response.body", "body": b"".join(held), "more_body": False})


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
