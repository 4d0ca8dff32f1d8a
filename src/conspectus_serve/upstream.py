"""Send requests to the upstream, and read its answers as they come."""

from __future__ import annotations

import asyncio
import json
import os
import re
import ssl
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp
import certifi
from multidict import CIMultiDict
from yarl import URL

from conspectus.errors import ConfigError
from conspectus_serve.codings import CODINGS, CodingError, Decoder, GrowthError, codings_in
from conspectus_serve.protocols import (
    CHAT,
    MESSAGES,
    REMEMBERED_PATHS,
    Protocol,
    Refusal,
    target_of,
)
from conspectus_serve.settings import ServeSettings

RawHeaders = list[tuple[bytes, bytes]]

OWN_PREFIX = b"x-conspectus-"  # of own headers: none goes to the upstream or comes from it
UNUSED_SECONDS = 4.0  # that an unused connection is kept: less than by servers, which close it
CONNECTING_SECONDS = 15.0  # that the upstream has to accept a connection
LONGEST_HEADER = 65_536  # bytes of a header of an answer
LONGEST_OWN_HEADER = 500  # characters

HEADERS_OF_AIOHTTP = ("accept", "accept-encoding", "content-type", "user-agent")
"""Headers that aiohttp would add where a client sends none."""

HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer"
    b" transfer-encoding upgrade".split()
)
"""Headers of one connection alone (RFC 9110, 7.6.1), and the old `proxy-connection`."""

REPLACED = frozenset((b"host", b"content-length", b"expect", b"accept-encoding"))
"""Headers of a client that are replaced; answers are read on the way, so they come plain."""

REFUSING_STATUSES = frozenset((400, 413, 422, 429, *range(500, 600)))
"""Statuses with which upstreams refuse a request that is too long."""

LARGEST_ERROR = 1_000_000  # bytes of a refusal; a larger one is not a provider's error
LARGEST_OPENING = 64_000  # bytes of an answer of 200 in which an error is looked for
OPENING_SECONDS = 2.0  # for which these are held back
DRAINING_SECONDS = 0.2  # to end an answer after its last event, so that its connection is kept

ENDED_STATUSES = ("completed", "incomplete", None)  # of a response; in the background it has others
UNDER_WAY_STATUSES = ("queued", "in_progress")
ITEM_DONE = b'"response.output_item.done"'

USAGE_HEAD = 8_192  # bytes at the beginning of an answer in which usage is looked for
USAGE_TAIL = 16_384  # and at its end
LONGEST_CLOSING_EVENT = 64  # bytes that `Protocol.closing_events` matches, at most

_NOT_IN_HEADERS = re.compile(r"[^ -~]")
_LINE_END = re.compile(rb"[\r\n]")
_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_ERROR_EVENT = re.compile(rb"(?m)^(?:event: ?)?error(?::|$|\r)")
_HAS_CONTENT = re.compile(rb'"content": ?"[^"]')  # OpenRouter's errors come beside an empty delta
_INPUT_TOKENS = re.compile(
    rb'"(prompt_tokens|input_tokens|cache_read_input_tokens|cache_creation_input_tokens)": ?(\d+)'
)


def to_upstream(
    headers: Iterable[tuple[bytes, bytes]], without: Iterable[bytes] = ()
) -> RawHeaders:
    """Return the headers of a request that go on to the upstream, `without` some of them."""
    kept = _without(list(headers), HOP_BY_HOP | REPLACED | set(without))
    return [*kept, (b"accept-encoding", b"identity")]


def to_client(headers: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    """Return the headers of an answer that go on to the client."""
    return _without([(name.lower(), value) for name, value in headers], HOP_BY_HOP)


def _without(headers: RawHeaders, names: frozenset[bytes]) -> RawHeaders:
    """Return headers without some, without those of this connection, and without our own."""
    listed = b",".join(value for name, value in headers if name.lower() == b"connection")
    left_out = names | {name.strip().lower() for name in listed.split(b",")}
    return [
        (name, value)
        for name, value in headers
        if name.lower() not in left_out and not name.lower().startswith(OWN_PREFIX)
    ]


def own_headers(**values: object) -> RawHeaders:
    """Write the endpoint's own headers, without those that have no value."""
    headers: RawHeaders = []
    for name, value in values.items():
        if value in ("", None):
            continue
        text = str(value).lower() if isinstance(value, bool) else str(value)
        printable = _NOT_IN_HEADERS.sub("?", text[:LONGEST_OWN_HEADER])
        headers.append((OWN_PREFIX + name.replace("_", "-").encode(), printable.encode()))
    return headers


class RefusedByUpstream(Exception):
    """A refusal of the upstream, in the form that the engine reads."""

    def __init__(self, text: str, status: int | None) -> None:
        super().__init__(text)
        self.status_code = status


def error_in(text: bytes) -> RefusedByUpstream | None:
    """Return the error in an event or in a body, if it holds one and nothing else."""
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
        if line.startswith((b"data:", b"error:"))  # the latter in older servers of llama.cpp
    ]


class UpstreamAnswer:
    """An open answer of the upstream, whose body comes in pieces.

    An answer in a `protocol` is remembered as it goes by; None for another one. Methods that read
    raise Refusal if the upstream breaks off.

    Attributes:
        status: of HTTP.
        headers: as they came, but for a coding that is taken off.
        is_closing: its end has begun: the last event of a stream, or any piece of another answer in
            a protocol.
    """

    def __init__(
        self, response: aiohttp.ClientResponse, protocol: Protocol | None, is_streamed: bool
    ) -> None:
        self._response = response
        self._protocol = protocol
        self._is_streamed = is_streamed and response.status == 200
        self._body = bytearray()
        self._closing_event_end = -1  # place in the body; -1 before it
        self.status = response.status
        self.is_closing = protocol is not None and not self._is_streamed

        self.headers: RawHeaders = list(response.raw_headers)
        self._decoder: Decoder | None = None
        coding_header = ",".join(response.headers.getall("content-encoding", ()))
        codings = codings_in(coding_header)
        # What is in an unknown coding goes on as it came.
        if coding_header and all(coding in CODINGS for coding in codings):
            self._decoder = Decoder(codings)
            of_coding = (b"content-encoding", b"content-length")
            self.headers = [header for header in self.headers if header[0].lower() not in of_coding]

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the bytes of the body as they come.

        They end with the last event of a stream: some upstreams leave it open.
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
        """Receive a piece, and take its codings off; none at the end."""
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
            raise Refusal(502, f"{problem}; check serve.upstream") from None
        except GrowthError:
            problem = "the upstream's answer is too large, once it is decompressed"
            raise Refusal(502, f"{problem}; check serve.upstream") from None

    async def _receive(self) -> bytes:
        """Receive a piece as the upstream sends it; none at the end."""
        content = self._response.content
        try:
            return await content.readany()
        except (aiohttp.ClientError, TimeoutError) as error:
            content.set_exception(None)  # type: ignore[arg-type]
            piece = content.read_nowait()  # it raises before it gives what has come
            content.set_exception(error)
            if not piece:
                raise _failure(error) from None
            return piece

    async def whole(self) -> bytes:
        """Return the body."""
        return b"".join([piece async for piece in self.pieces()])

    async def refusal(self) -> RefusedByUpstream | None:
        """Return the refusal, if this is one; its body can still be sent on.

        Some upstreams begin a stream, or answer with 200, before they know that they refuse. The
        events at the beginning of a stream that say nothing yet are held, for a short time: an
        upstream that thinks has begun.
        """
        assert self._protocol is not None
        is_refusing = self.status in REFUSING_STATUSES
        if not is_refusing and self.status != 200:
            return None
        largest = LARGEST_ERROR if is_refusing else LARGEST_OPENING
        until = asyncio.get_running_loop().time() + OPENING_SECONDS
        looked_at = 0  # place in the body, behind the last event that said nothing
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
        if self._protocol is MESSAGES:  # it reports apart what it has in its cache
            counts.pop(b"prompt_tokens", None)
            return sum(counts.values()) or None
        return counts.get(b"prompt_tokens") or counts.get(b"input_tokens")

    def response(self) -> tuple[str, list[Any]] | None:
        """Return the id and output of a response of Responses; None if it is not complete."""
        try:
            body, items = self._last_response()
            response_id = body["id"]
            output = body.get("output") or items  # some upstreams leave it out of the last event
            status = body.get("status")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None
        is_complete = status in ENDED_STATUSES
        if is_complete and isinstance(response_id, str) and isinstance(output, list):
            return response_id, output
        return None

    def _last_response(self) -> tuple[Any, list[Any]]:
        """Return the response; in a stream that of its last event, with the items before it."""
        if not self._is_streamed:
            return json.loads(bytes(self._body)), []
        events = [data for data in _data_of(bytes(self._body)) if data.strip() != b"[DONE]"]
        items = [json.loads(data)["item"] for data in events if ITEM_DONE in data]
        return json.loads(events[-1])["response"], items

    def pending_response(self) -> str:
        """Return the id of a response that is made in the background; empty for another one.

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
        """Return the response; in a stream that of the first whole event that has one."""
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


class Upstream:
    """Send requests on to the upstream that the settings name.

    Raises:
        ConfigError: the certificates cannot be read.
    """

    def __init__(self, settings: ServeSettings) -> None:
        self._address = settings.upstream
        self._proxy = settings.proxy
        self._silent_seconds = settings.timeout
        self._certificates = _certificates(settings.ca_file)
        parts = urlsplit(settings.upstream)
        self._host = f"{parts.scheme}://{parts.netloc}"
        self._url = lru_cache(REMEMBERED_PATHS)(self._make_url)

    @cached_property
    def _session(self) -> aiohttp.ClientSession:  # it belongs to the running loop
        connector = aiohttp.TCPConnector(
            limit=0, keepalive_timeout=UNUSED_SECONDS, ssl=self._certificates
        )
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECTING_SECONDS, sock_read=self._silent_seconds
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=timeout,
            skip_auto_headers=HEADERS_OF_AIOHTTP,
            max_line_size=LONGEST_HEADER,
            max_field_size=LONGEST_HEADER,
        )

    async def send(
        self,
        method: str,
        path: str,
        query: str,
        headers: RawHeaders,
        content: bytes = b"",
        protocol: Protocol | None = None,
        is_streamed: bool = False,
    ) -> UpstreamAnswer:
        """Send a request to the upstream's place of a client's path. Raises Refusal."""
        texts = ((name.decode(), value.decode("utf-8", "replace")) for name, value in headers)
        try:
            response = await self._session.request(
                method,
                self._url(path, query),
                headers=CIMultiDict(texts),
                data=content or None,
                allow_redirects=False,
                proxy=self._proxy,
            )
            return UpstreamAnswer(response, protocol, is_streamed)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise _failure(error) from None

    def _make_url(self, path: str, query: str) -> URL:
        target = target_of(self._address, path) + (f"?{query}" if query else "")
        return URL(self._host + target, encoded=True)

    async def close(self) -> None:
        """Close all connections."""
        if "_session" in vars(self):
            await self._session.close()


def _certificates(file: Path | None) -> ssl.SSLContext:
    path = file.expanduser() if file else os.environ.get("SSL_CERT_FILE") or certifi.where()
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as error:
        setting = "serve.ca_file" if file is not None else "SSL_CERT_FILE"
        reason = error.strerror or "it holds no certificates"
        problem = f"{setting}: {path} cannot be used ({reason}); name a PEM file"
        raise ConfigError((problem,)) from None


class _FailureText(NamedTuple):
    """What the client is told of an error."""

    status: int
    problem: str
    remedy: str


_FAILURES: Sequence[tuple[type[Exception], _FailureText]] = (
    (TimeoutError, _FailureText(504, "the upstream did not answer in time", "try again")),
    (
        aiohttp.ClientHttpProxyError,
        _FailureText(502, "the proxy to the upstream refuses", "check serve.proxy"),
    ),
    (
        aiohttp.ClientProxyConnectionError,
        _FailureText(502, "the proxy cannot be reached", "check serve.proxy"),
    ),
    (
        aiohttp.ClientConnectorError,
        _FailureText(502, "the upstream cannot be reached", "check serve.upstream"),
    ),
    (
        aiohttp.ClientResponseError,
        _FailureText(502, "the upstream's answer is no HTTP", "check serve.upstream"),
    ),
    (aiohttp.ClientError, _FailureText(502, "the upstream has broken off", "try again")),
    (Exception, _FailureText(400, "this path cannot be sent on", "check it")),
)
"""What is said of errors by their types; the first that an error has counts."""


def _failure(error: Exception) -> Refusal:
    """Return what the client is told of an error."""
    text = next(text for error_type, text in _FAILURES if isinstance(error, error_type))
    reason = type(error.__cause__ or error).__name__
    if isinstance(error, aiohttp.ClientConnectorError):
        reason = f"{reason}: {_words_of_system(error.os_error)}"[:300]
    remedy = text.remedy
    if "CERTIFICATE_VERIFY" in reason:
        remedy = "name the certificates of your network with serve.ca_file or SSL_CERT_FILE"
    return Refusal(text.status, f"{text.problem} ({reason}); {remedy}")


def _words_of_system(error: OSError) -> str:
    """Return what the operating system says of an error, in words that name no key."""
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__
