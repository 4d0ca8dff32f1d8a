"""The ASGI application: who asks, what is sent on, and what comes back."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount

from conspectus._drive import Flow, run
from conspectus.archive import Archive
from conspectus.config import SummarizationConfig
from conspectus.errors import ArchiveError, ConspectusError
from conspectus.summarize.provider_errors import is_overflow
from conspectus_serve.fitting import Fitting, TooLarge, Turn
from conspectus_serve.headers import Raw, said, to_client, to_upstream
from conspectus_serve.models import Models
from conspectus_serve.protocols import PATHS, Protocol, error_body
from conspectus_serve.relay import Answer, Upstream, UpstreamFailed
from conspectus_serve.secret import Secret, secret_beside
from conspectus_serve.settings import ServeSettings

logger = logging.getLogger("conspectus")

T = TypeVar("T")
Scope_ = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

WORKERS = 8
"""Requests that are looked at at once; each is a thread, so that no stream waits for another."""

CREDENTIALS = ("authorization", "x-api-key", "api-key")
"""Headers with a client's key: OpenAI's, Anthropic's, Azure's."""

LONGEST_NAME = 200
"""Characters of a thread's name in a header."""

_DOTS = re.compile(r"(?:^|[/\\])(?:\.|%2e){1,2}(?:$|[/\\?#])|%2f|%5c|\\", re.IGNORECASE)
"""Steps out of a path, which the upstream would take from another place than was meant."""


class Wrong(Exception):
    """A request that gets an error of ours."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Endpoint:
    """Answers requests.

    Args:
        settings: of the endpoint.
        config: how it summarises.
        archive: where originals go.
        secret: by which tenants are named.
    """

    def __init__(
        self,
        settings: ServeSettings,
        config: SummarizationConfig,
        archive: Archive,
        secret: Secret,
    ) -> None:
        self._settings, self._secret = settings, secret
        self._enabled = config.enabled
        models = Models(settings, config, archive)
        self._fitting = Fitting(archive, models, send_stuck=settings.on_stuck == "send")
        self._upstream = Upstream(settings.upstream, settings.timeout, settings.proxy)
        self._workers = ThreadPoolExecutor(WORKERS, "conspectus-serve")

    async def close(self) -> None:
        """Give up connections; what is being archived comes to its end."""
        await self._upstream.close()
        await asyncio.to_thread(self._workers.shutdown)

    async def __call__(self, scope: Scope_, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        path = scope["path"]
        try:
            await self._answered(scope, receive, send)
        except Wrong as wrong:
            await _refuse(scope, receive, send, wrong)
        except UpstreamFailed as failed:
            await _refuse(scope, receive, send, Wrong(failed.status, str(failed)))
        except ClientDisconnect:
            logger.debug("a client has gone: %s", path)

    async def _answered(self, scope: Scope_, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        self._check(request)
        protocol = PATHS.get(request.url.path) if request.method == "POST" else None
        if protocol is None or not self._enabled:
            answer = await self._sent(request, request.stream())
            await self._relay(answer, [], send)
            return
        raw = await self._body(request)
        # From here on nothing more comes from the client but that it has gone.
        work = asyncio.create_task(self._turn(request, protocol, raw, send))
        gone = asyncio.create_task(_gone(receive))
        try:
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                work.cancel()
                raise ClientDisconnect
            work.result()
        finally:
            gone.cancel()
            work.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await work

    # The way in

    def _check(self, request: Request) -> None:
        token = self._settings.token
        given = request.headers.get("x-conspectus-token", "")
        if token is not None and not hmac.compare_digest(given.encode(), token.encode()):
            raise Wrong(401, "send the token of this endpoint as x-conspectus-token")
        target = request.scope.get("raw_path", b"").decode("latin-1")
        if not target.startswith("/") or target.startswith("//") or _DOTS.search(target):
            raise Wrong(400, "this path has steps that lead elsewhere; write it plainly")

    async def _body(self, request: Request) -> bytes:
        coding = request.headers.get("content-encoding", "identity").lower()
        if coding not in ("", "identity"):
            raise Wrong(415, f"a body in {coding[:20]!r} is not read here; send it as it is")
        most, pieces, size = self._settings.max_body_bytes, [], 0
        async for piece in request.stream():
            size += len(piece)
            if size > most:
                raise Wrong(413, f"the request is larger than {most:,} bytes; send less at once")
            pieces.append(piece)
        return b"".join(pieces)

    def _tenant(self, request: Request) -> str:
        found = (request.headers.get(name) for name in CREDENTIALS)
        return self._secret.tenant(next((one for one in found if one), ""))

    # One request with a history

    async def _turn(self, request: Request, protocol: Protocol, raw: bytes, send: Send) -> None:
        body = _json(raw)
        history = protocol.history(body)
        turn: Turn | None = None
        note = ""
        if history and not any(body.get(one) for one in ("previous_response_id", "conversation")):
            turn, note = await self._looked_at(request, protocol, body, history)
        elif history:
            note = "the upstream holds this history; it is sent on as it came"
        content = raw if turn is None or turn.view is None else _dumped(turn.body(body))
        kept = None if turn is None else asyncio.create_task(self._work(self._settled(turn)))
        answer = await self._sent(request, content)
        try:
            refusal = None if turn is None else await answer.refusal()
            if turn is not None and refusal is not None and is_overflow(refusal):
                smaller = await self._work(self._fitting.again_flow(turn, refusal))
                if smaller is not None:
                    await answer.close()
                    turn = smaller
                    answer = await self._sent(request, _dumped(turn.body(body)))
                    kept = asyncio.create_task(self._work(self._settled(turn)))
            if kept is not None:
                await asyncio.shield(kept)
            ours = said(note=note) if turn is None else _told(turn, note)
            await self._relay(answer, ours, send)
        finally:
            await answer.close()

    async def _looked_at(
        self, request: Request, protocol: Protocol, body: dict[str, Any], history: list[Any]
    ) -> tuple[Turn | None, str]:
        thread = request.headers.get("x-conspectus-thread")
        if thread is not None and not 0 < len(thread) <= LONGEST_NAME:
            raise Wrong(400, f"x-conspectus-thread is a name of up to {LONGEST_NAME} characters")
        flow = self._fitting.fit_flow(self._tenant(request), protocol, body, history, thread)
        try:
            return await self._work(flow), ""
        except TooLarge as error:
            raise Wrong(400, str(error), "context_length_exceeded") from None
        except ArchiveError as error:
            raise Wrong(503, f"the archive is not there just now: {error}") from None
        except RecursionError:
            raise Wrong(400, "the request is nested too deeply; send less of it") from None
        except (ConspectusError, ValueError, TypeError, KeyError, AttributeError) as error:
            # What a message should be is for the upstream to say.
            logger.info("sent on as it came: %s", type(error).__name__)
            return None, "a message was not understood; the request is sent on as it came"

    def _settled(self, turn: Turn) -> Flow[None]:
        try:
            yield from self._fitting.settle_flow(turn)
        except ArchiveError as error:
            logger.warning("where a thread stands could not be kept: %s", error)

    async def _work(self, flow: Flow[T]) -> T:
        """Drive a flow in a thread; one that has begun comes to its end, whoever waits for it."""
        return await asyncio.get_running_loop().run_in_executor(self._workers, run, flow)

    # The way out

    async def _sent(self, request: Request, content: bytes | AsyncIterator[bytes]) -> Answer:
        target = request.scope["raw_path"].decode("latin-1")
        if query := request.scope["query_string"]:
            target += "?" + query.decode("latin-1")
        headers = to_upstream(request.headers.raw)
        length = request.headers.get("content-length")
        if not isinstance(content, bytes):
            if request.method in ("GET", "HEAD") or length in (None, "0"):
                content = b""
            elif length is not None:
                headers.append((b"content-length", length.encode()))
        return await self._upstream.send(request.method, target, headers, content)

    async def _relay(self, answer: Answer, ours: Raw, send: Send) -> None:
        try:
            head = [*to_client(answer.headers), *ours]
            start = {"type": "http.response.start", "status": answer.status, "headers": head}
            begun = False
            try:
                async for piece in answer.pieces():
                    if not begun:
                        await send(start)
                        begun = True
                    more = {"type": "http.response.body", "body": piece, "more_body": True}
                    await send(more)
            except UpstreamFailed:
                if not begun:
                    raise
                # The client must see that the body is not whole: the connection ends without its
                # last piece.
                logger.warning("the upstream has broken off in the middle of an answer")
                raise ClientDisconnect from None
            if not begun:
                await send(start)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await answer.close()


def _told(turn: Turn, note: str = "") -> Raw:
    return said(
        thread=turn.found.thread,
        compacted=turn.view is not None,
        messages_archived=turn.left_out,
        tokens_before=turn.tokens,
        tokens_after=turn.sent,
        record=turn.head,
        note=note,
    )


def _json(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw.decode("utf-8"))
    except RecursionError:
        raise Wrong(400, "the body is nested too deeply; send less of it") from None
    except (ValueError, UnicodeDecodeError) as error:
        why = (
            str(error).partition(":")[0]
            if isinstance(error, json.JSONDecodeError)
            else (type(error).__name__)
        )
        raise Wrong(400, f"the body is no JSON in UTF-8 ({why}); check it") from None
    if not isinstance(body, dict):
        raise Wrong(400, "the body is no JSON object; send {...}")
    return body


def _dumped(body: dict[str, Any]) -> bytes:
    try:
        return json.dumps(body, separators=(",", ":")).encode()
    except RecursionError:
        raise Wrong(400, "the body is nested too deeply; send less of it") from None


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _refuse(scope: Scope_, receive: Receive, send: Send, wrong: Wrong) -> None:
    body = error_body(scope["path"], wrong.status, str(wrong), wrong.code)
    headers = {"x-conspectus-error": "1"}
    if wrong.status == 413:
        headers["connection"] = "close"
    response = Response(body, wrong.status, headers, "application/json")
    await response(scope, receive, send)


def make_app(
    settings: ServeSettings,
    config: SummarizationConfig,
    *,
    archive: Archive | None = None,
    secret: Secret | None = None,
) -> Starlette:
    """The endpoint as an ASGI application.

    Args:
        settings: of the endpoint.
        config: how it summarises; `load_settings` gives both.
        archive: where originals go. Default: the one that the settings name, closed at the end.
        secret: by which tenants are named. Default: the one in the settings' file.

    Raises:
        ConfigError: the secret cannot be used, or the configuration names what cannot be had.
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

    return Starlette(routes=[Mount("/", app=endpoint)], lifespan=lifespan)
