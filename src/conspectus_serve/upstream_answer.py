"""Read the answers of the upstream while they arrive."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import aiohttp

from conspectus_serve.codings import CODINGS, CodingError, Decoder, GrowthError, codings_in
from conspectus_serve.headers import RawHeaders
from conspectus_serve.protocols import CHAT, MESSAGES, HttpError, Protocol
from conspectus_serve.upstream_failures import http_error_for

REFUSING_STATUSES = frozenset((400, 413, 422, 429, *range(500, 600)))
"""Statuses with which upstreams refuse a request that is too long."""

LARGEST_ERROR = 1_000_000
"""Bytes of a refusal; a larger body is no provider's error."""

LARGEST_OPENING = 64_000
"""First bytes of an answer of 200 in which an error is looked for."""

OPENING_SECONDS = 2.0
"""These bytes are held back for this time."""

DRAINING_SECONDS = 0.2
"""Time for an answer to end after its last event, so that the connection is kept."""

ENDED_STATUSES = (
    "completed",
    "incomplete",
    None,
)  # of a response; in the background, others
UNDER_WAY_STATUSES = ("queued", "in_progress")
ITEM_DONE = b'"response.output_item.done"'

USAGE_HEAD = 8_192
"""Bytes at the beginning of an answer in which usage is looked for."""

USAGE_TAIL = 16_384
"""Bytes at its end in which it is looked for."""

LONGEST_CLOSING_EVENT = 64
"""The most bytes that `Protocol.closing_events` matches."""

_LINE_END = re.compile(rb"[\r\n]")
_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_ERROR_EVENT = re.compile(rb"(?m)^(?:event: ?)?error(?::|$|\r)")
_HAS_CONTENT = re.compile(rb'"content": ?"[^"]')  # OpenRouter's errors have an empty delta
_INPUT_TOKENS = re.compile(
    rb'"(prompt_tokens|input_tokens|cache_read_input_tokens|cache_creation_input_tokens)": ?(\d+)'
)


class RefusedByUpstream(Exception):
    """A refusal by the upstream, in the form that the engine reads."""

    def __init__(self, text: str, status: int | None) -> None:
        super().__init__(text)
        self.status_code = status


def error_in(text: bytes) -> RefusedByUpstream | None:
    """Return the error in an event or in a body, if it has one and nothing else."""
    if b"error" not in text and b"response.failed" not in text:
        return None
    try:
        body = json.loads(b"\n".join(_data_of(text)) or text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict) or (body.get("choices") and _HAS_CONTENT.search(text)):
        return None
    response = body.get("response")
    error = body.get("error")
    if not error and isinstance(response, dict):
        error = response.get("error")
    types = {str(body.get("type")), str(body.get("object"))}
    is_error = not types.isdisjoint(("error", "response.failed"))
    if not (error or is_error or _ERROR_EVENT.search(text)):
        return None
    return RefusedByUpstream(json.dumps(error or body), None)


def _data_of(events: bytes) -> list[bytes]:
    """Return the data of server-sent events, line by line."""
    return [
        line.partition(b":")[2]
        for line in events.splitlines()
        if line.startswith((b"data:", b"error:"))  # `error:` in older servers of llama.cpp
    ]


class UpstreamAnswer:
    """An open answer of the upstream, whose body arrives in pieces.

    An answer in a `protocol` is remembered while it passes; `protocol` is None for other answers.
    Methods that read raise `HttpError` if the upstream breaks off.

    Attributes:
        status: of HTTP.
        headers: as they came, without a coding that was decompressed.
        is_closing: whether its end has begun: the last event of a stream, or any piece of another
            answer in a protocol.
    """

    def __init__(
        self, response: aiohttp.ClientResponse, protocol: Protocol | None, is_streamed: bool
    ) -> None:
        self._response = response
        self._protocol = protocol
        self._is_streamed = is_streamed and response.status == 200
        self._body = bytearray()
        self._closing_event_end = -1  # its place in the body; -1 before it
        self.status = response.status
        self.is_closing = protocol is not None and not self._is_streamed

        self.headers: RawHeaders = list(response.raw_headers)
        self._decoder: Decoder | None = None
        coding_header = ",".join(response.headers.getall("content-encoding", ()))
        codings = codings_in(coding_header)
        # A body in an unknown coding is passed on unchanged.
        if coding_header and all(coding in CODINGS for coding in codings):
            self._decoder = Decoder(codings)
            of_coding = (b"content-encoding", b"content-length")
            self.headers = [header for header in self.headers if header[0].lower() not in of_coding]

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the bytes of the body while they arrive.

        They end with the last event of a stream, because some upstreams leave the stream open.
        """
        if self._body:
            yield bytes(self._body)
        while not self._has_ended():
            piece = await self._read()
            if not piece:
                return
            yield piece
        with suppress(TimeoutError, aiohttp.ClientError):
            async with asyncio.timeout(DRAINING_SECONDS):
                await self._response.read()

    def _has_ended(self) -> bool:
        if self._closing_event_end < 0:
            return False
        end = _LINE_END if self._protocol is CHAT else _EVENT_END
        return end.search(self._body, self._closing_event_end) is not None

    async def _read(self) -> bytes:
        """Read a piece; none at the end."""
        piece = await self._read_decoded()
        if self._protocol is None:
            return piece
        start = max(0, len(self._body) - LONGEST_CLOSING_EVENT)
        self._body += piece
        if not self.is_closing:
            closing_event = self._protocol.closing_events.search(self._body, start)
            if closing_event is not None:
                self.is_closing = True
                self._closing_event_end = closing_event.end()
        return piece

    async def _read_decoded(self) -> bytes:
        """Receive a piece, and decompress it; none at the end."""
        if self._decoder is None:
            return await self._receive()
        try:
            while True:
                received = await self._receive()
                if not received:
                    self._decoder.end()
                    return b""
                piece = self._decoder.decode(received)
                if piece:
                    return piece
        except CodingError as error:
            problem = f"the upstream's answer is not in {error}, as its header says"
            raise HttpError(502, f"{problem}; check serve.upstream") from None
        except GrowthError:
            problem = "the upstream's answer is too large, once it is decompressed"
            raise HttpError(502, f"{problem}; check serve.upstream") from None

    async def _receive(self) -> bytes:
        """Receive a piece as the upstream sends it; none at the end."""
        content = self._response.content
        try:
            return await content.readany()
        except (aiohttp.ClientError, TimeoutError) as error:
            content.set_exception(None)  # type: ignore[arg-type]
            piece = content.read_nowait()  # it raises an error before it returns what has arrived
            content.set_exception(error)
            if not piece:
                raise http_error_for(error) from None
            return piece

    async def whole(self) -> bytes:
        """Return the body."""
        return b"".join([piece async for piece in self.pieces()])

    async def refusal(self) -> RefusedByUpstream | None:
        """Return the refusal, if this is one; its body can still be passed on.

        Some upstreams begin a stream, or answer with 200, before they know that they refuse. So the
        first events of a stream, which say nothing yet, are held back for a short time; then the
        upstream has accepted.
        """
        assert self._protocol is not None
        is_refusing = self.status in REFUSING_STATUSES
        if not is_refusing and self.status != 200:
            return None
        largest = LARGEST_ERROR if is_refusing else LARGEST_OPENING
        until = asyncio.get_running_loop().time() + OPENING_SECONDS
        looked_at = 0  # place in the body, after the last event that said nothing
        while len(self._body) < largest:
            try:
                async with asyncio.timeout_at(until if self._is_streamed else None):
                    piece = await self._read()
            except TimeoutError:
                return None
            while self._is_streamed:
                event_end = _EVENT_END.search(self._body, looked_at)
                if event_end is None:
                    break
                event = bytes(self._body[looked_at : event_end.end()])
                looked_at = event_end.end()
                if _data_of(event) and self._protocol.opening_events.search(event) is None:
                    return error_in(event)
            if not piece:
                if is_refusing:
                    return RefusedByUpstream(self._body.decode("utf-8", "replace"), self.status)
                return error_in(bytes(self._body[looked_at:]))
        return None

    def reported_tokens(self) -> int | None:
        """Return the input tokens that the upstream reports; None if it reports none."""
        text = self._body[:USAGE_HEAD] + b" " + self._body[-USAGE_TAIL:]
        counts = {match[1]: int(match[2]) for match in _INPUT_TOKENS.finditer(text)}
        if self._protocol is MESSAGES:  # it reports cached tokens separately
            counts.pop(b"prompt_tokens", None)
            return sum(counts.values()) or None
        return counts.get(b"prompt_tokens") or counts.get(b"input_tokens")

    def response(self) -> tuple[str, list[Any]] | None:
        """Return the id and output of a response of Responses; None if it is not complete."""
        try:
            body, items = self._last_response()
            response_id = body["id"]
            output = body.get("output") or items  # the last event may lack it
            status = body.get("status")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None
        is_complete = status in ENDED_STATUSES
        if is_complete and isinstance(response_id, str) and isinstance(output, list):
            return response_id, output
        return None

    def _last_response(self) -> tuple[Any, list[Any]]:
        """Return the response; in a stream, that of the last event, and the items before it."""
        if not self._is_streamed:
            return json.loads(bytes(self._body)), []
        events = [data for data in _data_of(bytes(self._body)) if data.strip() != b"[DONE]"]
        items = [json.loads(data)["item"] for data in events if ITEM_DONE in data]
        return json.loads(events[-1])["response"], items

    def pending_response(self) -> str:
        """Return the id of a response that is made in the background; empty for other responses.

        A stream names it in its first event.
        """
        try:
            body = self._first_response()
            response_id = body["id"]
            status = body["status"]
        except (ValueError, LookupError, TypeError, RecursionError):
            return ""
        is_under_way = status in UNDER_WAY_STATUSES
        return response_id if is_under_way and isinstance(response_id, str) else ""

    def _first_response(self) -> Any:
        """Return the response; in a stream, that of the first complete event that has one."""
        if not self._is_streamed:
            return json.loads(bytes(self._body))
        whole_lines = bytes(self._body[: self._body.rindex(b"\n") + 1])
        for data in _data_of(whole_lines):
            event = json.loads(data)
            if "response" in event:
                return event["response"]
        raise LookupError("no event has a response")

    def close(self) -> None:
        """Close the connection."""
        self._response.close()
