"""The ASGI application: its own pages, requests with a history, and requests that only pass."""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from conspectus.archive import Archive
from conspectus.config import SummarizationConfig
from conspectus_serve.answerer import GONE_STATUSES, HistoryAnswerer, target_in
from conspectus_serve.awaiting import UnfinishedWork, while_client_is_there
from conspectus_serve.entrance import Entrance, TenantSecret, secret_beside
from conspectus_serve.handling import ClientRequest, Handling
from conspectus_serve.headers import own_headers, to_upstream
from conspectus_serve.operation import CLIENT_LEFT, Ended, Operation
from conspectus_serve.protocols import (
    COMPACT,
    HISTORY_FIELDS,
    PATH_WITHOUT_HISTORY,
    HttpError,
    Route,
    error_body,
    error_event,
    response_at,
    route_of,
)
from conspectus_serve.reply import Reply
from conspectus_serve.request_keeper import RequestKeeper
from conspectus_serve.resources import Resources
from conspectus_serve.settings import ServeSettings
from conspectus_serve.upstream import Upstream
from conspectus_serve.work import WORKER_THREADS, WorkerProcess

logger = logging.getLogger("conspectus.serve")

NOT_READ = "histories at this path are not read; the request went on as it came"
SWITCHED_OFF = "nothing is compacted, as summarization.enabled is false"


class Endpoint:
    """The endpoint as an ASGI application; see `make_app` for its arguments."""

    def __init__(
        self,
        settings: ServeSettings,
        config: SummarizationConfig,
        *,
        archive: Archive | None = None,
        secret: TenantSecret | None = None,
        worker_process: bool = False,
    ) -> None:
        address = settings.archive_address
        self._settings = settings
        self._is_enabled = config.enabled
        self._archive = archive or Archive.open(address)
        self._closes_archive = archive is None
        self._secret = secret or secret_beside(address, settings.secret_file)
        self._entrance = Entrance(settings)
        self._upstream = Upstream(settings)
        self._worker: WorkerProcess | None = None
        can_share_archive = archive is None and address not in ("memory:", ":memory:")
        if worker_process and can_share_archive:
            self._worker = WorkerProcess(settings, config)
        self._resources = Resources.of(self._archive, settings, config, self._worker)
        self._keeper = RequestKeeper(self._resources)
        self._unfinished = UnfinishedWork()
        self._answerer = HistoryAnswerer(
            self._resources, self._keeper, self._upstream, self._unfinished
        )
        self._operation = Operation(self._archive, self._entrance, self._resources.health)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        request = Request(scope, receive)
        if self._operation.is_own_page(request):
            page = await asyncio.to_thread(self._operation.page, request)
            await page(scope, receive, send)
            return
        self._operation.in_flight.inc()
        try:
            await self._handle(request, receive, Reply(send))
        finally:
            self._operation.in_flight.dec()

    async def _live(self, receive: Receive, send: Send) -> None:
        """Run until the server ends; then close connections, and let archiving finish."""
        await receive()
        executor = ThreadPoolExecutor(WORKER_THREADS, "conspectus-archive")
        asyncio.get_running_loop().set_default_executor(executor)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._upstream.close()
        await self._unfinished.wait()
        await asyncio.to_thread(self._resources.threads.write)
        if self._worker is not None:
            self._worker.close()
        if self._closes_archive:
            self._archive.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _handle(self, request: Request, receive: Receive, reply: Reply) -> None:
        """Check a request, answer it, and log how it ended."""
        began = time.monotonic()
        route = self._route(request)
        handling: Handling | None = None
        note = ""
        try:
            self._entrance.check(request)
            raw = await self._entrance.body(request, is_decoded=route is not None)
            if route is None:
                note = self._note_of_unread(request, raw)
                work = self._pass_on(request, raw, note, reply)
            else:
                tenant = self._tenant(request)
                handling = Handling(ClientRequest(tenant, route, raw, request.headers))
                work = self._answerer.answer(request, handling, reply)
            await while_client_is_there(work, receive)
        except ClientDisconnect:
            reply.failure = CLIENT_LEFT
        except HttpError as error:
            await self._send_error(request, reply, route, error)
        except Exception as error:
            # Its text may have a user's words.
            logger.error("an error inside: %s", type(error).__name__)
            logger.debug("where", exc_info=error)
            text = f"an error inside the endpoint ({type(error).__name__})"
            await self._send_error(request, reply, route, HttpError(500, text))
        finally:
            note = handling.note if handling is not None else note
            seconds = time.monotonic() - began
            ended = Ended(request, handling, reply.status, reply.failure, note, seconds)
            self._operation.note_end(ended)

    def _tenant(self, request: Request) -> str:
        return self._secret.tenant_of(request, self._settings.tenant_source)

    def _route(self, request: Request) -> Route | None:
        """Return the route of a request whose history is read; None for other requests."""
        if request.method != "POST" or not self._is_enabled:
            return None
        route = route_of(request.scope["path"])
        if route is None or (route.name == COMPACT and not self._resources.compacts_on_request):
            return None
        return route

    async def _send_error(
        self, request: Request, reply: Reply, route: Route | None, error: HttpError
    ) -> None:
        """Send an error in the protocol's form; break off an answer that has begun."""
        reply.status = error.status
        reply.failure = error.reason
        body = error_body(request.scope["path"], error.status, str(error), error.code)
        headers = [
            (b"content-type", b"application/json"),
            *own_headers(error=True),
            (b"content-length", str(len(body)).encode()),
        ]
        if reply.is_kept_alive and route is not None:
            body = error_event(route.protocol, body)
        if reply.is_kept_alive or not reply.has_begun:
            await reply.send(error.status, headers, body, is_last=True)

    def _note_of_unread(self, request: Request, raw: bytes) -> str:
        """Return a note for a request with a history that is not read."""
        headers = request.headers
        is_posted_json = request.method == "POST" and "json" in headers.get("content-type", "")
        if not is_posted_json or PATH_WITHOUT_HISTORY.search(request.url.path):
            return ""
        is_coded = "content-encoding" in headers
        if is_coded or any(field in raw for field in HISTORY_FIELDS):
            return NOT_READ if self._is_enabled else SWITCHED_OFF
        return ""

    async def _pass_on(self, request: Request, raw: bytes, note: str, reply: Reply) -> None:
        """Pass a request on unchanged."""
        path, query = target_in(request)
        headers = to_upstream(request.headers.raw)
        answer = await self._upstream.send(request.method, path, query, headers, raw)
        is_gone = 200 <= answer.status < 300 or answer.status in GONE_STATUSES
        if request.method == "DELETE" and is_gone:
            response = response_at(request.scope["path"])
            if response:
                delete = self._keeper.delete_response
                tenant = self._tenant(request)
                await self._unfinished.begin(asyncio.to_thread(delete, tenant, response))
        await reply.relay(answer, own_headers(note=note))


def make_app(
    settings: ServeSettings,
    config: SummarizationConfig,
    *,
    archive: Archive | None = None,
    secret: TenantSecret | None = None,
    worker_process: bool = False,
) -> Endpoint:
    """Make the endpoint, which is an ASGI application.

    Args:
        settings: the settings of the endpoint, as `load_settings` returns them.
        config: the settings of summarization, as `load_settings` returns them.
        archive: the archive of the originals. Default: the archive in the settings, which the
            application closes at its end.
        secret: the secret that names tenants. Default: the secret in the file of the settings.
        worker_process: whether a second process summarises, so that small requests wait less. This
            process also opens the archive of the settings.

    Raises:
        ConfigError: the secret or a name in the configuration cannot be used.
        ArchiveError: the archive cannot be opened.
    """
    return Endpoint(settings, config, archive=archive, secret=secret, worker_process=worker_process)
