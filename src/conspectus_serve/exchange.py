"""A request with a history while it is answered, and what its client has been sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect

from conspectus.archive import Scope
from conspectus.core.items import Window
from conspectus.engine.result import CompactionResult
from conspectus.engine.settings import Engine
from conspectus.langchain.overflow import Refused
from conspectus_serve.compaction import Asked
from conspectus_serve.models import Learned
from conspectus_serve.protocols import Protocol, Refusal, Route, error_body, error_event
from conspectus_serve.threads import Match
from conspectus_serve.trails import Mark, Trail
from conspectus_serve.upstream import Raw, own_headers

T = TypeVar("T")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

EVENTS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]


@dataclass(slots=True)
class Exchange:
    """A request with a history, and what is sent in its place."""

    tenant: str
    route: Route
    raw: bytes
    headers: Headers
    asked: Asked = field(default_factory=lambda: Asked({}))  # with the body for the upstream
    model: str = ""  # its name, at most so much of it as is kept and logged
    streamed: bool = False
    note: str = ""  # for the client
    # the history
    history: Sequence[Any] = ()  # whole
    before: Sequence[Any] = ()  # the part of it up to the response that the client names
    new: Sequence[Any] = ()  # the part that the client has sent
    parent: str = ""  # id of that response
    state: str = ""  # which server holds the history, if the client leaves it to one
    named: str = ""  # the thread that the client, an item or a response names
    hint: str = ""  # the client's name of its session
    trail: Trail | None = None  # None for a history that is not read
    match: Match = field(default_factory=lambda: Match(""))
    left: tuple[Scope, str] | None = None  # the thread that it leaves, with the record to copy
    # the history as it is archived, whole where the client has cleared
    plain: list[Any] = field(default_factory=list)
    short: Sequence[Any] = ()  # the same, whole only where the record in force needs it
    marks: list[Mark] = field(default_factory=list)  # of the messages of `plain`
    # its size
    engine: Engine | None = None
    learned: Learned = field(default_factory=Learned)  # of its model
    window: int | None = None
    room: Window | None = None  # what instructions and tools leave of the window
    fixed: int = 0  # tokens of these
    tokens: int = 0  # of the history as it came
    due: bool = False  # it does not fit, or a compaction is in force
    refused: Refused = field(default_factory=Refused)
    # what is sent
    result: CompactionResult | None = None  # of the engine
    view: list[Any] | None = None  # the messages sent in its place; None if it is sent as it came
    sent: int = 0  # tokens of what is sent, beside the recalled ones
    recalled: int = 0
    spare: int | None = None  # free tokens of the window
    head: str = ""  # id of the record in force
    fresh: bool = False  # a compaction was made for this request
    compactions: int = 0
    retries: int = 0  # further requests to the upstream
    content: bytes = b""
    answer: bytes | None = None  # the endpoint's own
    filled: bool = False  # the body for the upstream is not the client's own in any case
    betas: Sequence[bytes] = ()  # more of Anthropic's beta headers

    @property
    def scope(self) -> Scope:
        return Scope(self.tenant, self.match.thread)

    @property
    def beside(self) -> int:
        """Tokens of the window that the history cannot have."""
        return self.fixed if self.room is None else (self.window or 0) - self.room.budget


def headers_of(x: Exchange) -> Raw:
    """Write the endpoint's own headers."""
    if x.trail is None:
        return own_headers(state=x.state, note=x.note)
    return own_headers(
        thread=x.match.thread,
        compacted=x.view is not None,
        messages_archived=x.result.dropped + x.result.evicted if x.result is not None else 0,
        tokens_before=x.tokens,
        tokens_after=x.sent + x.recalled,
        record=x.head,
        recalled_tokens=x.recalled or None,
        state=x.state,
        note=x.note,
    )


class Reply:
    """What the client has been sent so far."""

    def __init__(self, send: Send, keep_alive: float) -> None:
        self._send, self._keep_alive = send, keep_alive
        self.alive, self.begun, self.status = False, False, 0

    async def start(self, status: int, headers: Raw) -> None:
        """Send status and headers, unless a sign of life was sent before."""
        if not self.begun:
            if not 200 <= status < 600:  # which no server can send
                raise Refusal(502, f"the upstream has answered with status {status}; try again")
            self.begun, self.status = True, status
            start = {"type": "http.response.start", "status": status, "headers": headers}
            await self._send(start)

    async def body(self, piece: bytes, *, more: bool = True) -> None:
        """Send a piece of the body."""
        await self._send({"type": "http.response.body", "body": piece, "more_body": more})

    async def until(self, work: Awaitable[T], protocol: Protocol, streamed: bool) -> T:
        """Wait for work, which ends with this; a stream's client gets signs of life meanwhile."""
        if not streamed:
            return await work
        task = asyncio.ensure_future(work)
        try:
            while not (await asyncio.wait((task,), timeout=self._keep_alive))[0]:
                await self.start(200, EVENTS)
                self.alive = True
                await self.body(protocol.alive)
            return task.result()
        finally:
            task.cancel()

    async def refuse(self, path: str, route: Route | None, error: Refusal) -> None:
        """Send an error in the protocol's form, unless an answer has begun."""
        body, self.status = error_body(path, error.status, str(error), error.code), error.status
        if self.alive and route is not None:
            await self.body(error_event(route.protocol, body), more=False)
        elif not self.begun:
            headers = [(b"content-type", b"application/json"), *own_headers(error=True)]
            headers.append((b"content-length", str(len(body)).encode()))
            await self.start(error.status, headers)
            await self.body(body, more=False)


async def while_there(work: Awaitable[None], receive: Receive, read: asyncio.Event) -> None:
    """Await work, and cancel it if its client disconnects once its body is `read`.

    Raises ClientDisconnect then.
    """
    task, left = asyncio.current_task(), False
    assert task is not None

    async def watch() -> None:
        nonlocal left
        await read.wait()
        while (await receive())["type"] != "http.disconnect":
            pass
        left = True
        task.cancel()

    watching = asyncio.create_task(watch())
    try:
        await work
    except asyncio.CancelledError:
        if not left:
            raise
        task.uncancel()
        raise ClientDisconnect from None
    finally:
        watching.cancel()
