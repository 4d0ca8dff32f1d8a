"""Answer requests that have a history: read, fit and send them, and pass the answer back."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Coroutine
from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from conspectus_serve.awaiting import OneComputation, UnfinishedWork
from conspectus_serve.exchange import Exchange, ReadRequest
from conspectus_serve.exchange_keeper import ExchangeKeeper
from conspectus_serve.headers import RawHeaders, to_client, to_upstream
from conspectus_serve.held import OUR_MARK
from conspectus_serve.models import window_in
from conspectus_serve.protocols import TOO_LONG, HttpError, error_event, without_extra_slashes
from conspectus_serve.reply import EVENT_HEADERS, Reply
from conspectus_serve.request_fitter import RequestFitter
from conspectus_serve.request_reader import LARGE_BODY, RequestReader
from conspectus_serve.resources import Resources
from conspectus_serve.upstream import Upstream
from conspectus_serve.upstream_answer import ENDED_STATUSES, UpstreamAnswer

MOST_RETRIES = 6  # most further requests for one that the upstream refuses
LEAST_TOKENS_TO_ASK = 2_000  # a history of this size makes the endpoint ask for the window
WRITING_DELAY = 0.05  # seconds between writes of the threads' progress
LIST_SECONDS = 3.0  # an upstream has this time to list its models

GONE_STATUSES = (404, 410)  # an upstream has deleted the response


class HistoryAnswerer:
    """Answers requests that have a history."""

    def __init__(
        self,
        resources: Resources,
        keeper: ExchangeKeeper,
        upstream: Upstream,
        unfinished: UnfinishedWork,
    ) -> None:
        self._resources = resources
        self._settings = resources.settings
        self._keeper = keeper
        self._upstream = upstream
        self._unfinished = unfinished
        self._one_computation = OneComputation()
        self._reader = RequestReader(resources)
        self._fitter = RequestFitter(resources, keeper, self._one_computation)
        self._will_write_progress = False

    async def answer(self, request: Request, exchange: Exchange, reply: Reply) -> None:
        """Answer a request with a history."""
        read = await self._read(exchange)
        if read.pending_response and await self._ask_for_response(request, exchange, read):
            read = await self._read(exchange)
        if _should_ask_for_window(read) and await self._ask_for_window(request, read):
            read = await self._read(exchange)
        opening = self._open(request, exchange, read)
        if read.is_streamed and read.needs_fitting:
            opening = self._await_with_keep_alives(opening, exchange, reply)
        answer = await opening
        if answer is None:
            await self._send_own_answer(exchange, read, reply)
        elif reply.is_kept_alive and answer.status != 200:
            reply.status = answer.status
            event = error_event(exchange.request.route.protocol, await answer.whole())
            await reply.send(200, EVENT_HEADERS, event, is_last=True)
        else:
            await self._relay(answer, reply, exchange)

    async def _send_own_answer(self, exchange: Exchange, read: ReadRequest, reply: Reply) -> None:
        assert exchange.fitted is not None
        content_type = b"text/event-stream" if read.is_streamed else b"application/json"
        headers = [(b"content-type", content_type), *exchange.own_headers()]
        await reply.send(200, headers, exchange.fitted.own_answer, is_last=True)

    async def _read(self, exchange: Exchange) -> ReadRequest:
        """Read a request: a small one here, because a file is faster than starting a thread.

        Large requests are read in threads, one at a time, so that small ones need not wait.
        """
        client_request = exchange.request
        raw = client_request.raw
        # The server may hold a large history for a small request.
        is_left_to_server = b'"previous_response_id"' in raw or OUR_MARK.encode() in raw
        is_long = len(raw) >= LARGE_BODY and not self._reader.is_soon_read(client_request)
        if is_long or is_left_to_server:
            read = await self._one_computation.run(self._reader.read_large, client_request)
        elif self._resources.archive.may_hang:  # the archive is on a server, which may hang
            read = await asyncio.to_thread(self._reader.read, client_request)
        else:
            read = self._reader.read(client_request)
        exchange.read = read
        return read

    async def _await_with_keep_alives(
        self,
        opening: Coroutine[Any, Any, UpstreamAnswer | None],
        exchange: Exchange,
        reply: Reply,
    ) -> UpstreamAnswer | None:
        """Await the opening of a stream; send keep-alives to the client during a compaction."""
        task = asyncio.ensure_future(opening)
        keep_alive = exchange.request.route.protocol.keep_alive
        try:
            while True:
                done, _ = await asyncio.wait((task,), timeout=self._settings.keep_alive)
                if done:
                    return task.result()
                # After the request is sent, the upstream may still answer with its own status.
                if exchange.is_fitting or reply.is_kept_alive:
                    reply.is_kept_alive = True
                    await reply.send(200, EVENT_HEADERS, keep_alive)
        finally:
            task.cancel()

    async def _open(
        self, request: Request, exchange: Exchange, read: ReadRequest
    ) -> UpstreamAnswer | None:
        """Fit a request and send it, smaller if it is refused; None if the answer is our own."""
        client_request = exchange.request
        conversation = read.conversation
        if conversation is not None and conversation.withdrawal is not None:
            await self._unfinished.begin(
                asyncio.to_thread(self._keeper.keep_withdrawn, conversation)
            )
        if read.needs_fitting:
            exchange.is_fitting = True
            exchange.fitted = await self._unfinished.begin(self._fitter.fit(client_request, read))
            exchange.is_fitting = False
        else:
            exchange.fitted = self._fitter.unchanged(client_request, read)
        fitted = exchange.fitted
        if fitted.stuck_reason:
            raise HttpError(400, fitted.stuck_reason, TOO_LONG)
        if fitted.own_answer:
            return None
        answer = await self._send_and_note_progress(request, exchange)
        try:
            for _ in range(MOST_RETRIES):
                refusal = await answer.refusal()
                if refusal is None:
                    break
                retry = self._fitter.after_refusal(client_request, read, exchange.fitted, refusal)
                retried = await self._unfinished.begin(retry)
                if retried is None:
                    break
                answer.close()
                exchange.fitted = retried
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
        if conversation is not None and exchange.fitted is not None:
            was_noted = exchange.compactions > 0 or exchange.request.route.counts
            head_id = exchange.fitted.head_id
            has_progress = not was_noted and self._keeper.note_progress(
                exchange.request, conversation, head_id
            )
        if has_progress and self._resources.archive.may_hang:  # other processes may read it at once
            write = asyncio.to_thread(self._resources.threads.write)
            answer, _ = await asyncio.gather(self._send(request, exchange), write)
            return answer
        if has_progress and not self._will_write_progress:
            self._will_write_progress = True
            loop = asyncio.get_running_loop()
            loop.call_later(WRITING_DELAY, self._write_progress)
        return await self._send(request, exchange)

    def _write_progress(self) -> None:
        """Write the progress of the threads of all recent requests."""
        self._will_write_progress = False
        self._unfinished.begin(asyncio.to_thread(self._resources.threads.write))

    async def _send(self, request: Request, exchange: Exchange) -> UpstreamAnswer:
        """Send the request as it was fitted."""
        assert exchange.read is not None
        assert exchange.fitted is not None
        content = exchange.fitted.content
        headers = to_upstream(request.headers.raw, (b"content-encoding", b"anthropic-beta"))
        betas = [*request.headers.getlist("anthropic-beta"), *exchange.fitted.betas]
        if betas:
            headers.append((b"anthropic-beta", ",".join(betas).encode("latin-1")))
        if content != exchange.request.raw:
            headers = _with_another_idempotency_key(headers, content)
        path, query = target_in(request)
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

    async def _ask_for_window(self, request: Request, read: ReadRequest) -> bool:
        """Ask the upstream for its models with the client's own key; False without the window."""
        assert read.conversation is not None
        learned = read.conversation.measured.learned
        if not read.model or learned.has_asked_for_list:
            return False
        learned.has_asked_for_list = True
        try:
            async with asyncio.timeout(LIST_SECONDS):
                _, listed = await self._get(request, "/v1/models", "")
        except (HttpError, TimeoutError, ValueError, RecursionError):
            return False
        learned.listed = window_in(listed, read.model) or learned.listed
        return learned.listed is not None

    async def _ask_for_response(
        self, request: Request, exchange: Exchange, read: ReadRequest
    ) -> bool:
        """Ask the upstream for a response made in the background; False if it has none."""
        tenant = exchange.request.tenant
        response = read.pending_response
        path, query = target_in(request)
        path = f"{without_extra_slashes(path)}/{quote(response, safe='')}"
        try:
            async with asyncio.timeout(self._settings.timeout):
                status, body = await self._get(request, path, query)
        except (HttpError, TimeoutError, ValueError, RecursionError):
            return False
        if status in GONE_STATUSES:
            delete = self._keeper.delete_response
            await self._unfinished.begin(asyncio.to_thread(delete, tenant, response))
        if not isinstance(body, dict) or body.get("status") not in ENDED_STATUSES:
            return False
        output = body.get("output")
        if not isinstance(output, list):
            return False
        complete = self._keeper.complete_response
        await self._unfinished.begin(asyncio.to_thread(complete, tenant, response, output))
        return True

    async def _get(self, request: Request, path: str, query: str) -> tuple[int, Any]:
        """Ask the upstream with a client's key; return the status, and JSON if that is 200.

        Raises:
            HttpError, ValueError, RecursionError: the upstream does not answer with JSON.
        """
        headers = to_upstream(request.headers.raw, (b"content-type", b"idempotency-key"))
        answer = await self._upstream.send("GET", path, query, headers)
        try:
            body = json.loads(await answer.whole()) if answer.status == 200 else None
        finally:
            answer.close()
        return answer.status, body

    # Answers

    async def _relay(self, answer: UpstreamAnswer, reply: Reply, exchange: Exchange) -> None:
        """Pass an answer on while it arrives, and learn from it."""
        if exchange.conversation is None or answer.status != 200:
            await reply.relay(answer, exchange.own_headers())
            return
        headers = to_client(answer.headers) + exchange.own_headers()
        may_be_pending = _is_in_background(exchange)
        # The end is sent after the response is stored: a client that has the end may continue at
        # once, or disconnect, which cancels all unfinished work.
        end: list[bytes] = []
        try:
            async for piece in answer.pieces():
                if answer.is_closing:
                    end.append(piece)
                    continue
                if may_be_pending:
                    # A client that has the id may disconnect, and get the rest later.
                    may_be_pending = not await self._keep_if_pending(exchange, answer)
                await reply.send(answer.status, headers, piece)
        finally:
            answer.close()
        await self._learn(exchange, answer, may_be_pending=may_be_pending)
        await reply.send(answer.status, headers, b"".join(end), is_last=True)

    async def _learn(
        self, exchange: Exchange, answer: UpstreamAnswer, *, may_be_pending: bool
    ) -> None:
        """Learn from a whole answer, and store it if a later request may name it."""
        conversation = exchange.conversation
        assert conversation is not None
        assert exchange.read is not None
        assert exchange.fitted is not None
        reported = answer.reported_tokens()
        if reported is not None:
            fitted = exchange.fitted
            self._keeper.learn_from_usage(conversation, fitted, exchange.model, reported)
        response = None
        if self._keeper.may_be_continued(exchange.request, exchange.read):
            response = answer.response()
        if response is not None:
            keep = self._keeper.keep_response
            args = (exchange.request, exchange.read, *response)
            await self._unfinished.begin(asyncio.to_thread(keep, *args))
        elif may_be_pending:
            await self._keep_if_pending(exchange, answer)

    async def _keep_if_pending(self, exchange: Exchange, answer: UpstreamAnswer) -> bool:
        """Store a response made in the background; False if the answer does not name it yet."""
        assert exchange.read is not None
        response = answer.pending_response()
        if response and self._keeper.may_be_continued(exchange.request, exchange.read):
            keep = self._keeper.keep_pending
            await self._unfinished.begin(
                asyncio.to_thread(keep, exchange.request, exchange.read, response)
            )
        return bool(response)


def target_in(request: Request) -> tuple[str, str]:
    """Return the path and the query of a request, unchanged."""
    return request.scope["raw_path"].decode("latin-1"), request.scope["query_string"].decode()


def _should_ask_for_window(read: ReadRequest) -> bool:
    """Return whether a history is so long that the endpoint should ask for the window."""
    conversation = read.conversation
    if conversation is None or conversation.measured.room is not None:
        return False
    return conversation.measured.tokens >= LEAST_TOKENS_TO_ASK


def _is_in_background(exchange: Exchange) -> bool:
    return exchange.read is not None and exchange.read.fields.get("background") is True


def _with_another_idempotency_key(headers: RawHeaders, content: bytes) -> RawHeaders:
    """Return headers for a request of our own; its answer must not be taken for the client's."""
    suffix = b"-" + hashlib.sha256(content).hexdigest()[:12].encode()
    return [
        (name, value + suffix if name == b"idempotency-key" else value) for name, value in headers
    ]
