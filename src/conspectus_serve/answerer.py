"""Answer requests that have a history: read, fit and send them, and pass the answer back."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Coroutine
from typing import Any, NamedTuple
from urllib.parse import quote

from starlette.requests import Request

from conspectus_serve.awaiting import OneComputation, UnfinishedWork
from conspectus_serve.handling import FittedRequest, Handling, ReadRequest
from conspectus_serve.headers import RawHeaders, to_client, to_upstream
from conspectus_serve.held import OUR_MARK
from conspectus_serve.models import window_in
from conspectus_serve.protocols import TOO_LONG, HttpError, error_event, without_extra_slashes
from conspectus_serve.reply import EVENT_HEADERS, Reply
from conspectus_serve.request_fitter import RequestFitter
from conspectus_serve.request_keeper import RequestKeeper
from conspectus_serve.request_reader import LARGE_BODY, RequestReader
from conspectus_serve.resources import Resources
from conspectus_serve.upstream import Upstream
from conspectus_serve.upstream_answer import ENDED_STATUSES, UpstreamAnswer

MOST_RETRIES = 6
"""The most further requests for one that the upstream refuses."""

LEAST_TOKENS_TO_ASK = 2_000
"""A history of this size makes the endpoint ask for the window."""

WRITING_SECONDS = 0.05
"""Between writes of the threads' progress."""

LIST_SECONDS = 3.0
"""An upstream has this time to list its models."""

GONE_STATUSES = (404, 410)
"""An upstream has deleted the response."""


class _Opened(NamedTuple):
    """A request that was fitted, with the upstream's answer; None if the answer is our own."""

    fitted: FittedRequest
    answer: UpstreamAnswer | None


class HistoryAnswerer:
    """Answers requests that have a history."""

    def __init__(
        self,
        resources: Resources,
        keeper: RequestKeeper,
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

    async def answer(self, request: Request, handling: Handling, reply: Reply) -> None:
        """Answer a request with a history."""
        read = await self._read(handling)
        if read.pending_response and await self._ask_for_response(request, handling, read):
            read = await self._read(handling)
        if _should_ask_for_window(read) and await self._ask_for_window(request, read):
            read = await self._read(handling)
        opening = self._open(request, handling, read)
        if read.is_streamed and read.needs_fitting:
            opening = self._await_with_keep_alives(opening, handling, reply)
        fitted, answer = await opening
        if answer is None:
            content_type = b"text/event-stream" if read.is_streamed else b"application/json"
            headers = [(b"content-type", content_type), *handling.own_headers()]
            await reply.send(200, headers, fitted.own_answer, is_last=True)
        elif reply.is_kept_alive and answer.status != 200:
            reply.status = answer.status
            event = error_event(handling.request.route.protocol, await answer.whole())
            await reply.send(200, EVENT_HEADERS, event, is_last=True)
        else:
            await self._relay(answer, reply, handling, read, fitted)

    async def _read(self, handling: Handling) -> ReadRequest:
        """Read a request: a small one here, because a file is faster than starting a thread.

        Large requests are read in threads, one at a time, so that small ones need not wait.
        """
        client_request = handling.request
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
        handling.read = read
        return read

    async def _await_with_keep_alives(
        self,
        opening: Coroutine[Any, Any, _Opened],
        handling: Handling,
        reply: Reply,
    ) -> _Opened:
        """Await the opening of a stream; send keep-alives to the client during a compaction."""
        task = asyncio.ensure_future(opening)
        keep_alive = handling.request.route.protocol.keep_alive
        try:
            while True:
                done, _ = await asyncio.wait((task,), timeout=self._settings.keep_alive)
                if done:
                    return task.result()
                # After the request is sent, the upstream may still answer with its own status.
                if handling.is_fitting or reply.is_kept_alive:
                    reply.is_kept_alive = True
                    await reply.send(200, EVENT_HEADERS, keep_alive)
        finally:
            task.cancel()

    async def _open(self, request: Request, handling: Handling, read: ReadRequest) -> _Opened:
        """Fit a request and send it, smaller if it is refused."""
        client_request = handling.request
        conversation = read.conversation
        if conversation is not None and conversation.withdrawal is not None:
            await self._unfinished.begin(
                asyncio.to_thread(self._keeper.keep_withdrawn, conversation)
            )
        if read.needs_fitting:
            handling.is_fitting = True
            fitted = await self._unfinished.begin(self._fitter.fit(client_request, read))
            handling.is_fitting = False
        else:
            fitted = self._fitter.unchanged(client_request, read)
        handling.fitted = fitted
        if fitted.stuck_reason:
            raise HttpError(400, fitted.stuck_reason, TOO_LONG)
        if fitted.own_answer:
            return _Opened(fitted, None)
        answer = await self._send_and_note_progress(request, handling, read, fitted)
        try:
            for _ in range(MOST_RETRIES):
                refusal = await answer.refusal()
                if refusal is None:
                    break
                retry = self._fitter.after_refusal(client_request, read, fitted, refusal)
                retried = await self._unfinished.begin(retry)
                if retried is None:
                    break
                answer.close()
                fitted = retried
                handling.fitted = fitted
                handling.retries += 1
                answer = await self._send(request, handling, read, fitted)
        except BaseException:
            answer.close()
            raise
        return _Opened(fitted, answer)

    async def _send_and_note_progress(
        self, request: Request, handling: Handling, read: ReadRequest, fitted: FittedRequest
    ) -> UpstreamAnswer:
        """Send a request, and note how far its thread has come."""
        conversation = handling.conversation
        has_progress = False
        if conversation is not None:
            was_noted = fitted.compactions > 0 or handling.request.route.counts
            head_id = fitted.head_id
            has_progress = not was_noted and self._keeper.note_progress(
                handling.request, conversation, head_id
            )
        if has_progress and self._resources.archive.may_hang:
            # The archive is on a server, from which other processes may read it at once.
            write = asyncio.to_thread(self._resources.threads.write)
            answer, _ = await asyncio.gather(self._send(request, handling, read, fitted), write)
            return answer
        if has_progress and not self._will_write_progress:
            self._will_write_progress = True
            loop = asyncio.get_running_loop()
            loop.call_later(WRITING_SECONDS, self._write_progress)
        return await self._send(request, handling, read, fitted)

    def _write_progress(self) -> None:
        """Write the progress of the threads of all recent requests."""
        self._will_write_progress = False
        self._unfinished.begin(asyncio.to_thread(self._resources.threads.write))

    async def _send(
        self, request: Request, handling: Handling, read: ReadRequest, fitted: FittedRequest
    ) -> UpstreamAnswer:
        """Send the request as it was fitted."""
        content = fitted.content
        headers = to_upstream(request.headers.raw, (b"content-encoding", b"anthropic-beta"))
        betas = [*request.headers.getlist("anthropic-beta"), *fitted.betas]
        if betas:
            headers.append((b"anthropic-beta", ",".join(betas).encode("latin-1")))
        if content != handling.request.raw:
            headers = _with_another_idempotency_key(headers, content)
        path, query = target_in(request)
        answer = await self._upstream.send(
            "POST",
            without_extra_slashes(path),
            query,
            headers,
            content,
            handling.request.route.protocol,
            read.is_streamed,
        )
        handling.was_answered = True
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
        self, request: Request, handling: Handling, read: ReadRequest
    ) -> bool:
        """Ask the upstream for a response made in the background; False if it has none."""
        tenant = handling.request.tenant
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

    async def _relay(
        self,
        answer: UpstreamAnswer,
        reply: Reply,
        handling: Handling,
        read: ReadRequest,
        fitted: FittedRequest,
    ) -> None:
        """Pass an answer on while it arrives, and learn from it."""
        conversation = handling.conversation
        if conversation is None or answer.status != 200:
            await reply.relay(answer, handling.own_headers())
            return
        headers = to_client(answer.headers) + handling.own_headers()
        may_be_pending = read.fields.get("background") is True
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
                    may_be_pending = not await self._keep_if_pending(handling, read, answer)
                await reply.send(answer.status, headers, piece)
        finally:
            answer.close()
        reported = answer.reported_tokens()
        if reported is not None:
            self._keeper.learn_from_usage(conversation, fitted, read.model, reported)
        await self._keep_response(handling, read, answer, may_be_pending=may_be_pending)
        await reply.send(answer.status, headers, b"".join(end), is_last=True)

    async def _keep_response(
        self, handling: Handling, read: ReadRequest, answer: UpstreamAnswer, *, may_be_pending: bool
    ) -> None:
        """Store a whole answer if a later request may name it."""
        response = None
        if self._keeper.may_be_continued(handling.request, read):
            response = answer.response()
        if response is not None:
            keep = self._keeper.keep_response
            args = (handling.request, read, *response)
            await self._unfinished.begin(asyncio.to_thread(keep, *args))
        elif may_be_pending:
            await self._keep_if_pending(handling, read, answer)

    async def _keep_if_pending(
        self, handling: Handling, read: ReadRequest, answer: UpstreamAnswer
    ) -> bool:
        """Store a response made in the background; False if the answer does not name it yet."""
        response = answer.pending_response()
        if response and self._keeper.may_be_continued(handling.request, read):
            keep = self._keeper.keep_pending
            await self._unfinished.begin(asyncio.to_thread(keep, handling.request, read, response))
        return bool(response)


def target_in(request: Request) -> tuple[str, str]:
    """Return the path and the query of a request, unchanged."""
    return request.scope["raw_path"].decode("latin-1"), request.scope["query_string"].decode()


def _should_ask_for_window(read: ReadRequest) -> bool:
    """Tell whether a history is so long that the endpoint should ask for the window."""
    conversation = read.conversation
    if conversation is None or conversation.measured.room is not None:
        return False
    return conversation.measured.tokens >= LEAST_TOKENS_TO_ASK


def _with_another_idempotency_key(headers: RawHeaders, content: bytes) -> RawHeaders:
    """Return headers for a request of our own; its answer must not be taken for the client's."""
    suffix = b"-" + hashlib.sha256(content).hexdigest()[:12].encode()
    return [
        (name, value + suffix if name == b"idempotency-key" else value) for name, value in headers
    ]
