"""Send requests to the upstream, and read its answers as they come."""

from __future__ import annotations

import asyncio
import json
import os
import re
import ssl
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import certifi
from multidict import CIMultiDict
from yarl import URL

from conspectus.errors import ConfigError
from conspectus_serve.codings import CodingError, decode_with, decoders_of
from conspectus_serve.protocols import CHAT, MESSAGES, PATHS, Protocol, Refusal, target_of
from conspectus_serve.settings import ServeSettings

Raw = list[tuple[bytes, bytes]]

OURS = b"x-conspectus-"  # before own headers: none goes to the upstream or comes from it
IDLE = 4.0  # seconds that an unused connection is kept: less than by servers, which close it
LONGEST_LINE = 65_536  # bytes of a header of an answer
OWN_HEADERS = ("accept", "accept-encoding", "content-type", "user-agent")  # not the client's: none

HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer"
    b" transfer-encoding upgrade".split()
)
"""Headers of one connection alone (RFC 9110, 7.6.1), and the old `proxy-connection`."""

REPLACED = frozenset((b"host", b"content-length", b"expect", b"accept-encoding"))
"""Headers of a client that are written anew; answers are read on the way, so they come plain."""

REFUSALS = frozenset((400, 413, 422, 429, *range(500, 600)))
"""Statuses with which upstreams refuse a request that is too long."""

LARGEST_ERROR = 1_000_000  # bytes of a refusal; a larger one is not a provider's error
LARGEST_HELD, LONGEST_HELD = 64_000, 2.0  # of an answer of 200 in which an error is looked for
DRAINED = 0.2  # seconds to end an answer after its last event, for the connection to be used again
ENDED = ("completed", "incomplete", None)  # statuses of a response; in the background it has others
UNDER_WAY = ("queued", "in_progress")
ITEM_DONE = b'"response.output_item.done"'
HEAD, TAIL = 8_192, 16_384  # bytes at both ends of an answer in which usage is looked for

_NO_HEADER = re.compile(r"[^ -~]")  # letters that may stand in no header
_LINE_END = re.compile(rb"[\r\n]")
_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_ERROR_EVENT = re.compile(rb"(?m)^(?:event: ?)?error(?::|$|\r)")
_SAYS = re.compile(rb'"content": ?"[^"]')  # OpenRouter's errors come beside an empty delta
_COUNTS = re.compile(
    rb'"(prompt_tokens|input_tokens|cache_read_input_tokens|cache_creation_input_tokens)": ?(\d+)'
)


def to_upstream(headers: Iterable[tuple[bytes, bytes]], without: Iterable[bytes] = ()) -> Raw:
    """Return the headers of a request that go on to the upstream, `without` some of them."""
    kept = _without(list(headers), HOP_BY_HOP | REPLACED | set(without))
    return [*kept, (b"accept-encoding", b"identity")]


def to_client(headers: Iterable[tuple[bytes, bytes]]) -> Raw:
    """Return the headers of an answer that go on to the client."""
    return _without([(name.lower(), value) for name, value in headers], HOP_BY_HOP)


def _without(headers: Raw, names: frozenset[bytes]) -> Raw:
    listed = b",".join(value for name, value in headers if name.lower() == b"connection")
    gone = names | {one.strip().lower() for one in listed.split(b",")}
    return [
        (name, value)
        for name, value in headers
        if name.lower() not in gone and not name.lower().startswith(OURS)
    ]


def own_headers(**values: object) -> Raw:
    """Write the endpoint's own headers, without those that have no value."""
    made = []
    for name, value in values.items():
        if value not in ("", None):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            line = _NO_HEADER.sub("?", text[:500]).encode()
            made.append((OURS + name.replace("_", "-").encode(), line))
    return made


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
        body = json.loads(b"\n".join(_data(text)) or text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict) or (body.get("choices") and _SAYS.search(text)):
        return None
    response = body.get("response")
    error = body.get("error") or (response.get("error") if isinstance(response, dict) else None)
    named = {"error", "response.failed"} & {str(body.get("type")), str(body.get("object"))}
    if not (error or named or _ERROR_EVENT.search(text)):
        return None
    return RefusedByUpstream(json.dumps(error or body), None)


def _data(events: bytes) -> list[bytes]:
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
        closing: its end has begun: the last event of a stream, or any piece of another answer in a
            protocol.
    """

    def __init__(
        self, response: aiohttp.ClientResponse, protocol: Protocol | None, streamed: bool
    ) -> None:
        self._response, self._protocol, self._raw = response, protocol, bytearray()
        self.status, self._streamed = response.status, streamed and response.status == 200
        self.closing, self._ending = protocol is not None and not self._streamed, -1
        coding = ",".join(response.headers.getall("content-encoding", ()))
        decoders = decoders_of(coding)
        # What is in an unknown coding goes on as it came.
        self._decoders = decoders or []
        gone = (b"content-encoding", b"content-length") if coding and decoders is not None else ()
        self.headers = [one for one in response.raw_headers if one[0].lower() not in gone]

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the bytes of the body as they come.

        They end with the last event of a stream: some upstreams leave it open.
        """
        if self._raw:
            yield bytes(self._raw)
        while not self._has_ended():
            if not (piece := await self._read()):
                return
            yield piece
        with suppress(TimeoutError, aiohttp.ClientError):
            async with asyncio.timeout(DRAINED):
                await self._response.read()

    def _has_ended(self) -> bool:
        end = _LINE_END if self._protocol is CHAT else _EVENT_END
        return self._ending >= 0 and end.search(self._raw, self._ending) is not None

    async def _read(self) -> bytes:
        """Read a piece; none at the end."""
        piece = b""
        while not piece:
            came = await self._received()
            try:
                piece = decode_with(self._decoders, came)
                if not came:
                    for decoder in self._decoders:
                        decoder.end()
                    break
            except CodingError as error:
                said = f"the upstream's answer is not in {error}, as its header says"
                raise Refusal(502, f"{said}; check serve.upstream") from None
        if self._protocol is not None:
            start = max(0, len(self._raw) - 64)
            self._raw += piece
            if not self.closing and (end := self._protocol.ends.search(self._raw, start)):
                self.closing, self._ending = True, end.end()
        return piece

    async def _received(self) -> bytes:
        """Receive a piece as the upstream sends it; none at the end."""
        content = self._response.content
        try:
            return await content.readany()
        except (aiohttp.ClientError, TimeoutError) as error:
            content.set_exception(None)  # type: ignore[arg-type]
            piece = content.read_nowait()  # it raises before it gives what has come
            content.set_exception(error)
            if not piece:
                raise _failed(error) from None
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
        refused = self.status in REFUSALS
        if not refused and self.status != 200:
            return None
        most, begins = LARGEST_ERROR if refused else LARGEST_HELD, self._protocol.begins
        at, until = 0, time.monotonic() + LONGEST_HELD
        while len(self._raw) < most:
            try:
                if self._streamed:
                    async with asyncio.timeout(until - time.monotonic()):
                        piece = await self._read()
                else:
                    piece = await self._read()
            except TimeoutError:
                break
            while self._streamed and (end := _EVENT_END.search(self._raw, at)) is not None:
                event, at = bytes(self._raw[at : end.end()]), end.end()
                if _data(event) and begins.search(event) is None:
                    return error_in(event)
            if not piece:
                text = self._raw.decode("utf-8", "replace")
                said = RefusedByUpstream(text, self.status)
                return said if refused else error_in(bytes(self._raw[at:]))
        return None

    def reported(self) -> int | None:
        """Return the input tokens that the upstream reports; None if it reports none."""
        text = self._raw[:HEAD] + b" " + self._raw[-TAIL:]
        counts = {match[1]: int(match[2]) for match in _COUNTS.finditer(text)}
        if self._protocol is not MESSAGES:
            return counts.get(b"prompt_tokens") or counts.get(b"input_tokens")
        return sum(n for name, n in counts.items() if name != b"prompt_tokens") or None

    def response(self) -> tuple[str, list[Any]] | None:
        """Return the id and output of a response of Responses; None if it is not complete."""
        try:
            raw, items = bytes(self._raw), list[Any]()
            if self._streamed:
                events = [one for one in _data(raw) if one.strip() != b"[DONE]"]
                items = [json.loads(one)["item"] for one in events if ITEM_DONE in one]
                raw = events[-1]
            body = json.loads(raw)["response"] if self._streamed else json.loads(raw)
            # Some upstreams leave the output out of the last event.
            name, output, status = body["id"], body.get("output") or items, body.get("status")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        named = status in ENDED and isinstance(name, str) and isinstance(output, list)
        return (name, output) if named else None

    def pending(self) -> str:
        """Return the id of a response that is made in the background; empty for another one.

        A stream names it in its first event.
        """
        try:
            raw = bytes(self._raw)
            if self._streamed:
                events = (json.loads(one) for one in _data(raw[: raw.rindex(b"\n") + 1]))
                body = next(one["response"] for one in events if "response" in one)
            else:
                body = json.loads(raw)
            name, status = body["id"], body["status"]
        except (ValueError, KeyError, TypeError, StopIteration, RecursionError):
            return ""
        return name if status in UNDER_WAY and isinstance(name, str) else ""

    def close(self) -> None:
        """Close the connection."""
        self._response.close()


class Upstream:
    """Send requests on to the upstream that the settings name.

    Raises:
        ConfigError: the certificates cannot be read.
    """

    def __init__(self, settings: ServeSettings) -> None:
        self._address, self._proxy = settings.upstream, settings.proxy
        parts = urlsplit(settings.upstream)
        self._host = f"{parts.scheme}://{parts.netloc}"
        self._url = lru_cache(PATHS)(self._url_of)
        self._silence, self._certificates = settings.timeout, _certificates(settings.ca_file)

    @cached_property
    def _session(self) -> aiohttp.ClientSession:  # it belongs to the running loop
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE, ssl=self._certificates),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=15.0, sock_read=self._silence),
            skip_auto_headers=OWN_HEADERS,
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_LINE,
        )

    async def send(
        self,
        method: str,
        path: str,
        query: str,
        headers: Raw,
        content: bytes = b"",
        protocol: Protocol | None = None,
        streamed: bool = False,
    ) -> UpstreamAnswer:
        """Send a request to the upstream's place of a client's path. Raises Refusal."""
        try:
            response = await self._session.request(
                method,
                self._url(path, query),
                headers=CIMultiDict((k.decode(), v.decode("utf-8", "replace")) for k, v in headers),
                data=content or None,
                allow_redirects=False,
                proxy=self._proxy,
            )
            return UpstreamAnswer(response, protocol, streamed)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise _failed(error) from None

    def _url_of(self, path: str, query: str) -> URL:
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
        name = "serve.ca_file" if file is not None else "SSL_CERT_FILE"
        why = error.strerror or "it holds no certificates"
        raise ConfigError((f"{name}: {path} cannot be used ({why}); name a PEM file",)) from None


FAULTS: Sequence[tuple[type[Exception], tuple[int, str, str]]] = (
    (TimeoutError, (504, "the upstream did not answer in time", "try again")),
    (aiohttp.ClientHttpProxyError, (502, "the proxy to the upstream refuses", "check serve.proxy")),
    (aiohttp.ClientProxyConnectionError, (502, "the proxy cannot be reached", "check serve.proxy")),
    (aiohttp.ClientConnectorError, (502, "the upstream cannot be reached", "check serve.upstream")),
    (
        aiohttp.ClientResponseError,
        (502, "the upstream's answer is no HTTP", "check serve.upstream"),
    ),
    (aiohttp.ClientError, (502, "the upstream has broken off", "try again")),
    (Exception, (400, "this path cannot be sent on", "check it")),
)
"""Statuses and words for errors, and what to do about them; the first one counts."""


def _failed(error: Exception) -> Refusal:
    why = type(error.__cause__ or error).__name__
    status, what, cure = next(row for kind, row in FAULTS if isinstance(error, kind))
    if isinstance(error, aiohttp.ClientConnectorError):
        inner = error.os_error  # the words of the system, which name no key
        number = inner.errno if isinstance(inner, ConnectionError) else None
        said = os.strerror(number) if number else str(inner) or type(inner).__name__
        why = f"{why}: {said}"[:300]
    if "CERTIFICATE_VERIFY" in why:
        cure = "name the certificates of your network with serve.ca_file or SSL_CERT_FILE"
    return Refusal(status, f"{what} ({why}); {cure}")
