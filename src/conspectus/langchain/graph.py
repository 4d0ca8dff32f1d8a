"""Hold one engine for all threads of a graph: window, archives, caches and streams.

The middleware and the guard share it. Both ask for it at each step, as it is built anew when a
setting changes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any
from weakref import ref

from langchain.agents.middleware.types import ModelRequest
from langgraph.store.base import BaseStore

from conspectus._newest import Newest
from conspectus.archive import Archive, Scope
from conspectus.core.items import Window
from conspectus.core.records import Record
from conspectus.engine.engine import Engine, OnEvent
from conspectus.engine.redacting import redacted_texts_flow
from conspectus.engine.riding import sending
from conspectus.langchain.identity import Tenant
from conspectus.langchain.state import HeadState, Requested, read_head, scope_of
from conspectus.langchain.views import Grown, Views
from conspectus.messages.thoughts import refuses_thoughts, without_stale_thoughts
from conspectus.model.calls import profile_window
from conspectus.model.riding import LastRequest
from conspectus.observe import log

KEPT = "kept in the history"
"""Location of originals in a clip, where the channel keeps every message."""

Send = Callable[[ModelRequest[Any]], Awaitable[Any]]

STORES = 8
"""Stores of graphs whose archives stay open for the next step."""

HISTORIES = 1024
"""Histories whose record in force is cached, and runs that have asked for theirs; the least
recently used goes first."""

KIND = "conspectus.compaction"
"""The `type` of our custom stream events."""


@dataclass(slots=True)
class GraphEngine:
    """One engine for all threads of a graph; the middleware and the guard share it.

    Attributes:
        model: the only model that the window is for; empty for any.
        reaches: the records of channels, and the keys that they cover.
        heads: the record in force that this process has seen last, by archive and history.
        runs: runs of subgraphs that have looked for their record.
        keeps: returns the location of one agent's originals without an archive; None where the
            channel is rewritten.
        written: writes the files of a record that comes into force with a request; returns an
            update of the state.
    """

    engine: Engine
    tenant: Tenant = None
    window: Window | None = None
    model: str = ""
    views: Views = field(default_factory=Views)
    reaches: Grown[tuple[tuple[Record, ...], frozenset[str]]] = field(default_factory=Grown)
    heads: Newest[tuple[ref[Archive], Scope], str] = field(
        default_factory=lambda: Newest(HISTORIES)
    )
    runs: Newest[str, bool] = field(default_factory=lambda: Newest(HISTORIES))
    keeps: Callable[[Scope], str] | None = None
    written: Callable[[HeadState, Any, object], Awaitable[dict[str, Any] | None]] | None = None
    _archives: Newest[int, tuple[BaseStore, Archive]] = field(
        default_factory=lambda: Newest(STORES)
    )

    def sending(self, request: ModelRequest[Any]) -> AbstractContextManager[None]:
        """Wrap the call of a model: remember its request, for a later summary."""
        if not self.engine.cached:
            return nullcontext()
        runtime = request.runtime
        held = read_head(request.state, runtime, request.state["messages"])
        memory = self.engine.memory.of(scope_of(held, self.tenant, runtime))
        window = self.window.limit if self.window is not None else None
        return sending(memory, last_request(request, window))

    def clips(self, runtime: object) -> bool:
        """Return whether messages may be clipped for good."""
        return self.keeps is not None or self.open_archive(runtime) is not None

    def room(self, seen: Requested) -> Window | None:
        """Return the room for messages when the managed model answers; None if unknown."""
        own = self.window
        least = own.reserved if own is not None else 0
        if own is not None:
            same = not self.model or seen.model in ("", self.model)
            limit = min(own.limit, seen.window or own.limit) if same else own.limit
            seen = replace(seen, model=self.model or seen.model, window=limit)
        return seen.room(least)

    def archive(self, runtime: object) -> Archive | None:
        found = self.open_archive(runtime)
        if found is None:
            self.say_once(
                "no archive was given and the graph has no store: originals cannot be recalled "
                "after a compaction"
            )
        return found

    def open_archive(self, runtime: object) -> Archive | None:
        """Return the archive, without a line in the log if there is none."""
        if self.engine.archive is not None:
            return self.engine.archive
        store = getattr(runtime, "store", None)
        if not isinstance(store, BaseStore):
            return None
        return self._archives.get_or_make(id(store), lambda: (store, Archive(store)))[1]

    def listener(self, runtime: object) -> OnEvent:
        """Return a listener that calls the user's own and writes to the graph's stream."""
        write, on_event = getattr(runtime, "stream_writer", None), self.engine.on_event

        def tell(event: str, data: Mapping[str, Any]) -> None:
            if write is not None:
                write({"type": KIND, "event": event, **data})
            if on_event is not None:
                on_event(event, data)

        return tell

    async def redacted_error(self, error: Exception) -> str:
        """Redact an error for the log: providers quote requests in theirs."""
        return (await redacted_texts_flow(self.engine.redaction, [str(error)]))[0]

    def say_once(self, text: str) -> None:
        if self.engine.memory.is_news(text):
            log("setting_missing", text)


async def send_thoughtful(request: ModelRequest[Any], send: Send) -> Any:
    """Send a request; once more without thoughts if the provider refuses those."""
    try:
        return await send(request)
    except Exception as error:
        if not refuses_thoughts(error):
            raise
        fresh = without_stale_thoughts(request.messages, 0, all_of_them=True)
        if all(map(is_, fresh, request.messages)):
            raise
    log("thoughts_refused", "the provider refused thoughts of the model: sent without them")
    return await send(request.override(messages=fresh))


def last_request(request: ModelRequest[Any], window: int | None) -> LastRequest | None:
    """Return a request of an agent that a summary may follow, or None.

    A model that must answer in a form, or must call a tool, would do so again, and without that the
    provider's cache does not know the request.
    """
    forced = request.tool_choice not in (None, "auto") or "tool_choice" in request.model_settings
    if request.response_format is not None or forced:
        return None
    system = [request.system_message] if request.system_message is not None else []
    return LastRequest(
        model=request.model,
        messages=(*system, *request.messages),
        tools=tuple(request.tools),
        tool_choice=request.tool_choice,
        settings=dict(request.model_settings),
        window=window or profile_window(request.model),
    )
