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
from conspectus_serve.entrance import Entrance, TenantSecret, secret_beside
from conspectus_serve.exchange import ClientRequest, Exchange, ReadRequest
from conspectus_serve.fitting import RequestFitter
from conspectus_serve.headers import RawHeaders, own_headers, to_client, to_upstream
from conspectus_serve.held import OUR_MARK
from conspectus_serve.keeping import ExchangeKeeper
from conspectus_serve.models import window_in
from conspectus_serve.operation import CLIENT_LEFT, Ended, Operation
from conspectus_serve.protocols import (
    COMPACT,
    HISTORY_FIELDS,
    PATH_WITHOUT_HISTORY,
    TOO_LONG,
    Refusal,
    Route,
    error_body,
    error_event,
    response_at,
    route_of,
    without_extra_slashes,
)
from conspectus_serve.reading import LARGE_BODY, RequestReader
from conspectus_serve.resources import Resources
from conspectus_serve.settings import ServeSettings
from conspectus_serve.upstream import Upstream
from conspectus_serve.upstream_answer import ENDED_STATUSES, UpstreamAnswer
from conspectus_serve.work import WORKER_THREADS, OneComputation, WorkerProcess

logger = logging.getLogger("conspectus.serve")

T = TypeVar("T")

MOST_RETRIES = 6  # further requests for one that the upstream refuses
LEAST_TOKENS_TO_ASK = 2_000  # of a history from which an upstream is asked for its model's window
WRITING_DELAY = 0.05  # seconds for which it may wait to be written how far threads have come
LIST_SECONDS = 3.0  # that an upstream has to list its models

GONE_STATUSES = (404, 410)  # of what an upstream holds no more

EVENT_HEADERS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
NOT_READ = "histories at this path are not read; the request went on as it came"
SWITCHED_OFF = "nothing is compacted, as summarization.enabled is false"


class Reply:
    """What the client is sent.

    Attributes:
        has_begun: status and headers were sent.
        is_kept_alive: it is a stream that began with a keep-alive.
        status: that was sent; 0 before.
        failure: why the request has failed, in a word; empty if it has not.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False
        self.is_kept_alive = False
        self.status = 0
        self.failure = ""

    async def send(
        self, status: int, headers: RawHeaders, piece: bytes, *, is_last: bool = False
    ) -> None:
        """Send a piece of the body; before the first one status and headers."""
        if not self.has_begun:
            if not 200 <= status < 600:  # which no server can send
                raise Refusal(502, f"the upstream has answered with status {status}; try again")
            self.has_begun = True
            self.status = status
            start = {"type": "http.response.start", "status": status, "headers": headers}
            await self._send(start)
        body = {"type": "http.response.body", "body": piece, "more_body": not is_last}
        await self._send(body)


class Endpoint:
    """The endpoint as an ASGI application.

    Args:
        settings: of the endpoint, as `load_settings` gives them.
        config: of summarization, likewise.
        archive: where originals go. Default: the one that the settings name, closed at the end.
        secret: names tenants. Default: the one in the settings' file.
        worker_process: a process of its own summarises, so that small requests wait less. It opens
            the archive of the settings, too.

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
        self._one_computation = OneComputation()
        self._resources = Resources.of(self._archive, settings, config, self._worker)
        self._reader = RequestReader(self._resources)
        self._keeper = ExchangeKeeper(self._resources)
        self._fitter = RequestFitter(self._resources, self._keeper, self._one_computation)
        self._operation = Operation(self._archive, self._entrance, self._resources.health)
        self._will_write_progress = False
        self._unfinished: set[asyncio.Task[Any]] = set()

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
        """Live until the server ends; then close connections, and let archiving finish."""
        await receive()
        executor = ThreadPoolExecutor(WORKER_THREADS, "conspectus-archive")
        asyncio.get_running_loop().set_default_executor(executor)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._upstream.close()
        await asyncio.gather(*self._unfinished, return_exceptions=True)
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
        exchange: Exchange | None = None
        note = ""
        try:
            self._entrance.check(request)
            raw = await self._entrance.body(request, is_decoded=route is not None)
            if route is None:
                note = self._note_of_unread(request, raw)
                work = self._pass_on(request, raw, note, reply)
            else:
                tenant = self._tenant(request)
                exchange = Exchange(ClientRequest(tenant, route, raw, request.headers))
                work = self._answer(request, exchange, reply)
            await _while_client_is_there(work, receive)
        except ClientDisconnect:
            reply.failure = CLIENT_LEFT
        except Refusal as error:
            await self._refuse(request, reply, route, error)
        except Exception as error:
            # Its text may hold a user's words.
            logger.error("an error inside: %s", type(error).__name__)
            logger.debug("where", exc_info=error)
            text = f"an error inside the endpoint ({type(error).__name__})"
            await self._refuse(request, reply, route, Refusal(500, text))
        finally:
            note = exchange.note if exchange is not None else note
            seconds = time.monotonic() - began
            ended = Ended(request, exchange, reply.status, reply.failure, note, seconds)
            self._operation.note_end(ended)

    def _tenant(self, request: Request) -> str:
        return self._secret.tenant_of(request, self._settings.tenant_rule)

    def _route(self, request: Request) -> Route | None:
        """Return the route of a request whose history is read; None for another one."""
        if request.method != "POST" or not self._is_enabled:
            return None
        route = route_of(request.scope["path"])
        if route is None or (route.name == COMPACT and not self._resources.compacts_on_request):
            return None
        return route

    async def _refuse(
        self, request: Request, reply: Reply, route: Route | None, error: Refusal
    ) -> None:
        """Send an error in the protocol's form; an answer that has begun breaks off."""
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

    def _finish(self, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Begin work that ends even if the client has gone; return what awaits it."""
        task = asyncio.create_task(work)
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)
        return asyncio.shield(task)

    # Requests that are not read

    def _note_of_unread(self, request: Request, raw: bytes) -> str:
        """Return a note for a request that may hold a history, which is not read."""
        headers = request.headers
        is_posted_json = request.method == "POST" and "json" in headers.get("content-type", "")
        if not is_posted_json or PATH_WITHOUT_HISTORY.search(request.url.path):
            return ""
        is_coded = "content-encoding" in headers
        if is_coded or any(field in raw for field in HISTORY_FIELDS):
            return NOT_READ if self._is_enabled else SWITCHED_OFF
        return ""

    async def _pass_on(self, request: Request, raw: bytes, note: str, reply: Reply) -> None:
        """Send a request on as it came."""
        path, query = _target(request)
        headers = to_upstream(request.headers.raw)
        answer = await self._upstream.send(request.method, path, query, headers, raw)
        is_gone = 200 <= answer.status < 300 or answer.status in GONE_STATUSES
        if request.method == "DELETE" and is_gone:
            response = response_at(request.scope["path"])
            if response:
                await self._delete_response(self._tenant(request), response)
        await self._relay(answer, reply, own_headers(note=note))

    async def _delete_response(self, tenant: str, response: str) -> None:
        delete = self._keeper.delete_response
        await self._finish(asyncio.to_thread(delete, tenant, response))

    # Requests with a history

    async def _answer(self, request: Request, exchange: Exchange, reply: Reply) -> None:
        """Answer a request with a history."""
        read = await self._read(exchange)
        if read.pending_response and await self._completed(request, exchange, read):
            read = await self._read(exchange)
        if _should_ask_for_window(read) and await self._learned_window(request, read):
            read = await self._read(exchange)
        opening = self._open(request, exchange, read)
        if read.is_streamed and read.needs_fitting:
            opening = self._kept_alive(opening, exchange, reply)
        answer = await opening
        if answer is None:
            await self._send_own_answer(exchange, read, reply)
        elif reply.is_kept_alive and answer.status != 200:
            reply.status = answer.status
            event = error_event(exchange.request.route.protocol, await answer.whole())
            await reply.send(200, EVENT_HEADERS, event, is_last=True)
        else:
            await self._relay(answer, reply, exchange.own_headers(), exchange)

    async def _send_own_answer(self, exchange: Exchange, read: ReadRequest, reply: Reply) -> None:
        assert exchange.sending is not None
        content_type = b"text/event-stream" if read.is_streamed else b"application/json"
        headers = [(b"content-type", content_type), *exchange.own_headers()]
        await reply.send(200, headers, exchange.sending.own_answer, is_last=True)

    async def _read(self, exchange: Exchange) -> ReadRequest:
        """Read a request: a small one here, as a file answers sooner than another thread begins.

        Large ones are read in threads, one at a time, so that small ones need not wait.
        """
        client_request = exchange.request
        raw = client_request.raw
        # A history that the client leaves to the server may be large all the same.
        is_left_to_server = b'"previous_response_id"' in raw or OUR_MARK.encode() in raw
        is_long = len(raw) >= LARGE_BODY and not self._reader.is_soon_read(client_request)
        if is_long or is_left_to_server:
            read = await self._one_computation.run(self._reader.read_large, client_request)
        elif self._archive.backend.may_hang:  # the archive is a server, which may hang
            read = await asyncio.to_thread(self._reader.read, client_request)
        else:
            read = self._reader.read(client_request)
        exchange.read = read
        return read

    async def _kept_alive(
        self,
        opening: Coroutine[Any, Any, UpstreamAnswer | None],
        exchange: Exchange,
        reply: Reply,
    ) -> UpstreamAnswer | None:
        """Await what opens a stream; the client gets keep-alives during a compaction."""
        task = asyncio.ensure_future(opening)
        keep_alive = exchange.request.route.protocol.keep_alive
        try:
            while True:
                done, _ = await asyncio.wait((task,), timeout=self._settings.keep_alive)
                if done:
                    return task.result()
                # Once it is sent on, the upstream may still answer with a status of its own.
                if exchange.is_fitting or reply.is_kept_alive:
                    reply.is_kept_alive = True
                    await reply.send(200, EVENT_HEADERS, keep_alive)
        finally:
            task.cancel()

    async def _open(
        self, request: Request, exchange: Exchange, read: ReadRequest
    ) -> UpstreamAnswer | None:
        """Fit a request and send it, smaller if it is refused; None with an answer of our own."""
        client_request = exchange.request
        conversation = read.conversation
        if conversation is not None and conversation.withdrawal is not None:
            await self._finish(asyncio.to_thread(self._keeper.keep_withdrawn, conversation))
        if read.needs_fitting:
            exchange.is_fitting = True
            exchange.sending = await self._finish(self._fitter.fit(client_request, read))
            exchange.is_fitting = False
        else:
            exchange.sending = self._fitter.unchanged(client_request, read)
        sending = exchange.sending
        if sending.stuck_reason:
            raise Refusal(400, sending.stuck_reason, TOO_LONG)
        if sending.own_answer:
            return None
        answer = await self._send_and_note_progress(request, exchange)
        try:
            for _ in range(MOST_RETRIES):
                refusal = await answer.refusal()
                if refusal is None:
                    break
                retry = self._fitter.after_refusal(client_request, read, exchange.sending, refusal)
                retried = await self._finish(retry)
                if retried is None:
                    break
                answer.close()
                exchange.sending = retried
                exchange.retries += 1
                answer = await self._send(request, exchange)
        except BaseException:
            answer.close()
            raise
        return answer

    async def _send_and_note_progress(self, request: Request, exchange: Exchange) -> UpstreamAnswer:
        """Send a request, and note how far its thread has come."""
        conversation = exchange.conversation
        has_progress = False
        if conversation is not None and exchange.sending is not None:
            was_noted = exchange.compactions > 0 or exchange.request.route.counts
            head = exchange.sending.head
            has_progress = not was_noted and self._keeper.note_progress(
                exchange.request, conversation, head
            )
        if has_progress and self._archive.backend.may_hang:  # other processes may read it at once
            write = asyncio.to_thread(self._resources.threads.write)
            answer, _ = await asyncio.gather(self._send(request, exchange), write)
            return answer
        if has_progress and not self._will_write_progress:
            self._will_write_progress = True
            loop = asyncio.get_running_loop()
            loop.call_later(WRITING_DELAY, self._write_progress)
        return await self._send(request, exchange)

    def _write_progress(self) -> None:
        """Write how far threads have come, of all requests since a moment ago."""
        self._will_write_progress = False
        self._finish(asyncio.to_thread(self._resources.threads.write))

    async def _send(self, request: Request, exchange: Exchange) -> UpstreamAnswer:
        """Send what a request has become."""
        assert exchange.read is not None
        assert exchange.sending is not None
        content = exchange.sending.content
        headers = to_upstream(request.headers.raw, (b"content-encoding", b"anthropic-beta"))
        betas = [*request.headers.getlist("anthropic-beta"), *exchange.sending.betas]
        if betas:
            headers.append((b"anthropic-beta", ",".join(betas).encode("latin-1")))
        if content != exchange.request.raw:
            headers = _with_another_idempotency_key(headers, content)
        path, query = _target(request)
        answer = await self._upstream.send(
            "POST",
            without_extra_slashes(path),
            query,
            headers,
            content,
            exchange.request.route.protocol,
            exchange.read.is_streamed,
        )
        exchange.was_answered = True
        return answer

    # Questions to the upstream

    async def _learned_window(self, request: Request, read: ReadRequest) -> bool:
        """Ask the upstream for its models with the client's own key; False without the window."""
        assert read.conversation is not None
        learned = read.conversation.measured.learned
        if not read.model or learned.has_asked_for_list:
            return False
        learned.has_asked_for_list = True
        try:
            async with asyncio.timeout(LIST_SECONDS):
                _, listed = await self._get(request, "/v1/models", "")
        except (Refusal, TimeoutError, ValueError, RecursionError):
            return False
        learned.listed = window_in(listed, read.model) or learned.listed
        return learned.listed is not None

    async def _completed(self, request: Request, exchange: Exchange, read: ReadRequest) -> bool:
        """Ask the upstream for a response that it has made in the background; False without it."""
        tenant = exchange.request.tenant
        response = read.pending_response
        path, query = _target(request)
        path = f"{without_extra_slashes(path)}/{quote(response, safe='')}"
        try:
            async with asyncio.timeout(self._settings.timeout):
                status, body = await self._get(request, path, query)
        except (Refusal, TimeoutError, ValueError, RecursionError):
            return False
        if status in GONE_STATUSES:
            await self._delete_response(tenant, response)
        if not isinstance(body, dict) or body.get("status") not in ENDED_STATUSES:
            return False
        output = body.get("output")
        if not isinstance(output, list):
            return False
        complete = self._keeper.complete_response
        await self._finish(asyncio.to_thread(complete, tenant, response, output))
        return True

    async def _get(self, request: Request, path: str, query: str) -> tuple[int, Any]:
        """Ask the upstream with a client's key; return the status, and JSON if that is 200.

        Raises:
            Refusal, ValueError, RecursionError: the upstream gives no answer of JSON.
        """
        headers = to_upstream(request.headers.raw, (b"content-type", b"idempotency-key"))
        answer = await self._upstream.send("GET", path, query, headers)
        try:
            body = json.loads(await answer.whole()) if answer.status == 200 else None
        finally:
            answer.close()
        return answer.status, body

    # Answers

    async def _relay(
        self,
        answer: UpstreamAnswer,
        reply: Reply,
        extra_headers: RawHeaders,
        exchange: Exchange | None = None,
    ) -> None:
        """Pass an answer on as it comes, and learn from it if it answers an exchange."""
        headers = to_client(answer.headers) + extra_headers
        is_followed = exchange is not None and exchange.conversation is not None
        followed = exchange if is_followed and answer.status == 200 else None
        may_be_pending = followed is not None and _is_in_background(followed)
        # The end is held back until the response is kept: a client that has it may continue at
        # once, or go, and what is under way then is cancelled.
        end: list[bytes] = []
        try:
            async for piece in answer.pieces():
                if answer.is_closing:
                    end.append(piece)
                    continue
                if followed is not None and may_be_pending:
                    # A client that has its id may leave, and come back for the rest.
                    may_be_pending = not await self._keep_if_pending(followed, answer)
                await reply.send(answer.status, headers, piece)
        finally:
            answer.close()
        if followed is not None:
            await self._learn(followed, answer, may_be_pending=may_be_pending)
        await reply.send(answer.status, headers, b"".join(end), is_last=True)

    async def _learn(
        self, exchange: Exchange, answer: UpstreamAnswer, *, may_be_pending: bool
    ) -> None:
        """Learn from a whole answer, and keep it if a later request may name it."""
        conversation = exchange.conversation
        assert conversation is not None
        assert exchange.read is not None
        assert exchange.sending is not None
        reported = answer.reported_tokens()
        if reported is not None:
            sending = exchange.sending
            self._keeper.learn_from_usage(conversation, sending, exchange.model, reported)
        response = None
        if self._keeper.may_be_continued(exchange.request, exchange.read):
            response = answer.response()
        if response is not None:
            keep = self._keeper.keep_response
            args = (exchange.request, exchange.read, *response)
            await self._finish(asyncio.to_thread(keep, *args))
        elif may_be_pending:
            await self._keep_if_pending(exchange, answer)

    async def _keep_if_pending(self, exchange: Exchange, answer: UpstreamAnswer) -> bool:
        """Keep a response that is made in the background; False if the answer names none yet."""
        assert exchange.read is not None
        response = answer.pending_response()
        if response and self._keeper.may_be_continued(exchange.request, exchange.read):
            keep = self._keeper.keep_pending
            await self._finish(asyncio.to_thread(keep, exchange.request, exchange.read, response))
        return bool(response)


def _target(request: Request) -> tuple[str, str]:
    """Return the path and the query of a request, as they came."""
    return request.scope["raw_path"].decode("latin-1"), request.scope["query_string"].decode()


def _should_ask_for_window(read: ReadRequest) -> bool:
    """Return whether a history is so long that the window of its model should be asked for."""
    conversation = read.conversation
    if conversation is None or conversation.measured.room is not None:
        return False
    return conversation.measured.tokens >= LEAST_TOKENS_TO_ASK


def _is_in_background(exchange: Exchange) -> bool:
    return exchange.read is not None and exchange.read.fields.get("background") is True


def _with_another_idempotency_key(headers: RawHeaders, content: bytes) -> RawHeaders:
    """Return headers for another request than the client's, which must not get its answer."""
    suffix = b"-" + hashlib.sha256(content).hexdigest()[:12].encode()
    return [
        (name, value + suffix if name == b"idempotency-key" else value) for name, value in headers
    ]


async def _while_client_is_there(work: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Await work, and cancel it if its client disconnects. Raises ClientDisconnect then."""
    task = asyncio.current_task()

    async def cancel_at_disconnect() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        if task is not None:
            task.cancel()

    watching = asyncio.ensure_future(cancel_at_disconnect())
    try:
        await work
    except asyncio.CancelledError:
        if watching.done():
            raise ClientDisconnect from None
        raise
    finally:
        watching.cancel()


make_app = Endpoint
