"""The engine as graphs use it: whose history, in which archive, told to which stream.

Middleware and guard share one, so that no decision is made twice. Both ask for it at each step and
keep none, as it is built anew when a setting changes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any

from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore

from conspectus._core.choices import EMBEDDED
from conspectus._core.items import Size, Window
from conspectus._core.records import Record
from conspectus._drive import Flow
from conspectus._newest import Newest
from conspectus.agents.branches import Branches
from conspectus.agents.identity import Tenant, is_checkpointed
from conspectus.agents.state import Held, Requested, read_held, scope_of
from conspectus.agents.streams import told
from conspectus.agents.views import Grown, Views, laid_over
from conspectus.archive import Archive, Scope
from conspectus.archive.values import manifest
from conspectus.compactor.anchors import Anchor, StateAnchor
from conspectus.compactor.engine import Engine
from conspectus.compactor.memory import Failure, Memory
from conspectus.compactor.models import profile_window
from conspectus.compactor.observed import log_failures
from conspectus.compactor.preview import Preview
from conspectus.compactor.redacting import told_flow
from conspectus.compactor.result import CompactionResult
from conspectus.compactor.riding import Sending
from conspectus.compactor.session import Session
from conspectus.errors import ArchiveError
from conspectus.events.notes import noted
from conspectus.summarize.riding import LastRequest

logger = logging.getLogger("conspectus")

KEPT = "kept in the history"
"""Where the original of a clip is, as the clip says it, where the channel keeps every message."""

STORES = 8
"""Stores of graphs whose archives are kept open for the next step."""


def last_request(request: ModelRequest[Any], window: int | None) -> LastRequest | None:
    """Return a request of an agent as a summary may ride on it; None where it cannot.

    A model that must answer in a form, or must call a tool, would do so again, and a provider does
    not find a request again of which that was changed.

    Args:
        request: as it is sent.
        window: input limit of the model, in tokens; None for that of its profile.
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


@dataclass(slots=True)
class GraphEngine:
    """One engine for all threads of a graph; the middleware and the guard share it.

    Attributes:
        engine: what compactions work with.
        tenant: whose conversations these are.
        window: of the model that is managed, as configured or by its profile; None if unknown.
        model: the only one that the window is for; empty for any.
        sizes: tokens of a message as `keep` counts; None for the meter's.
        preview: who reads a summary before it takes effect.
        views: what the model sees of channels that keep every message.
        reaches: the records of channels, and keys of what they answer for.
        keeps: says where the originals of one agent's history stay without an archive, for a clip
            to say; None where nothing keeps them, as the channel is written anew.
        written: writes what an agent may go on to read, given what its state will hold, the state
            and the run, where a record is put in force with a request; answers with an update.
    """

    engine: Engine
    tenant: Tenant = None
    window: Window | None = None
    model: str = ""
    sizes: Callable[[Any], int] | None = None
    preview: Preview | None = None
    views: Views = field(default_factory=Views)
    reaches: Grown[tuple[tuple[Record, ...], frozenset[str]]] = field(default_factory=Grown)
    keeps: Callable[[Scope], str] | None = None
    written: Callable[[Held, Any, object], Flow[dict[str, Any] | None]] | None = None
    _archives: Newest[int, tuple[BaseStore, Archive]] = field(
        default_factory=lambda: Newest(STORES)
    )
    _said: set[str] = field(default_factory=set)
    _branches: Branches = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._branches = Branches(self.tenant)

    def follow(
        self, held: Held, channel: Sequence[BaseMessage], runtime: object, *, turn: bool
    ) -> Flow[Held]:
        """What the state holds, the archive put right where the thread went back, over to another
        branch or was copied; see `Branches.follow`."""
        archive = self._open(runtime)
        return self._branches.follow(held, channel, archive, runtime, turn=turn)

    def session(
        self,
        held: Held,
        runtime: object,
        room: Window | None,
        *,
        asked: Size | None = None,
        ratio: float | None = None,
        preview: bool = False,
    ) -> Session:
        """The history's session.

        Args:
            held: what the state holds of us.
            runtime: of the run.
            room: what the result must fit in.
            asked: the size that the trigger is compared with; None for the meter's.
            ratio: by what the estimate is corrected, where the caller knows; None to look.
            preview: whether a person reads the summary first, where one is to.
        """
        archive = self.archive(runtime)
        scope = scope_of(held, self.tenant, runtime)
        tools = self.engine.tools
        listener = told(tools.on_event, runtime)
        engine = self.engine.with_archive(archive).told(listener, self.preview if preview else None)
        if archive is None and self.keeps is not None:
            engine = replace(engine, tools=replace(engine.tools, kept_in=self.keeps(scope)))
        return engine.session(
            scope,
            room,
            StateAnchor(archive, tools.memory, scope, head=held.head, kept=is_checkpointed()),
            asked=asked,
            last=held.after,
            sizes=self.sizes,
            ratio=ratio,
        )

    def passing_session(
        self, held: Held, runtime: object, room: Window | None, ratio: float | None
    ) -> Session | None:
        """A session that commits nothing, for one request while there is no archive, or none that
        can be reached.

        The embedded summariser writes, as whatever is written is thrown away with the request; so
        are clips, whose originals stay where they are.
        None where failures are not to be bridged, or a person is to read each summary.
        """
        tools = self.engine.tools
        if tools.on_failure != "degrade" or self.preview is not None:
            return None
        scope, memory = scope_of(held, self.tenant, runtime), Memory()
        alone = replace(
            tools,
            archive=None,
            memory=memory,
            order=(EMBEDDED,),
            on_event=None,
            hooks=(),
            passing=True,
            kept_in=KEPT,
            background=None,
        )
        engine = replace(self.engine, tools=alone)
        anchor = Anchor(None, memory, scope)
        return engine.session(scope, room, anchor, sizes=self.sizes, ratio=ratio)

    def sending(self, request: ModelRequest[Any]) -> AbstractContextManager[None, None]:
        """Around the call of a model: remembers the request, where a summary may ride on it."""
        tools, runtime = self.engine.tools, request.runtime
        if not tools.cached:
            return nullcontext()
        held = read_held(request.state, runtime, request.state["messages"])
        remembered = tools.memory.of(scope_of(held, self.tenant, runtime))
        window = self.window.limit if self.window is not None else None
        return Sending(remembered, last_request(request, window))

    def clips(self, runtime: object) -> bool:
        """Whether messages may be shown short for good: something keeps their originals."""
        return self.keeps is not None or self._open(runtime) is not None

    def room(self, seen: Requested) -> Window | None:
        """What there is for messages when the managed model answers; None if nothing is known.

        Args:
            seen: what the guard has seen of the latest request, perhaps of another model.
        """
        own = self.window
        least = own.reserved if own is not None else 0
        if own is not None:
            same = not self.model or seen.model in ("", self.model)
            limit = min(own.limit, seen.window or own.limit) if same else own.limit
            seen = replace(seen, model=self.model or seen.model, window=limit)
        return seen.room(least)

    def failure(self, held: Held, messages: int, over: bool, runtime: object) -> Failure | None:
        """The latest summary of the history, if it failed; see `Remembered.failure`.

        Args:
            held: what the state holds of us.
            messages: in the history as the model sees it.
            over: it does not fit the window.
            runtime: of the run.
        """
        memory = self.engine.tools.memory
        if not memory.any_failed:
            return None
        remembered = memory.of(scope_of(held, self.tenant, runtime))
        return remembered.failure(held.head_id or None, messages, over)

    def view(
        self, held: Held, channel: Sequence[BaseMessage], runtime: object
    ) -> Flow[list[BaseMessage]]:
        """What the model sees of a channel that holds messages which a record covers."""
        return (yield from self.fitting(held, channel, runtime))[1]

    def fitting(
        self, held: Held, channel: Sequence[BaseMessage], runtime: object
    ) -> Flow[tuple[Held, list[BaseMessage]]]:
        """What the state holds, less the records that do not fit its channel any more, as somebody
        has edited what they cover; and what the model sees of the channel."""
        view = self.views.find(held, channel)
        if view is not None:
            return held, view
        session = self.session(held, runtime, None)
        folded = yield from session.fold(channel)
        view = [one for one in folded.sources if isinstance(one, BaseMessage)]
        chain = folded.chain
        if (chain[-1].id if chain else "") != held.head_id:
            known = yield from session.anchor.chain_flow()
            if len(chain) < len(known) and known[: len(chain)] == chain:
                return held.back_to(chain), view
        self.views.keep(held, channel, view)
        return held, view

    def chain(
        self, held: Held, channel: Sequence[BaseMessage], runtime: object
    ) -> Flow[tuple[Record, ...]]:
        """The records in force for a channel: those behind the head in its state that fit it.

        The archive's own pointer says nothing here: other branches of the thread move it.
        """
        return (yield from self._reached(held, channel, runtime))[0]

    def reach(
        self, held: Held, channel: Sequence[BaseMessage], runtime: object
    ) -> Flow[frozenset[str]]:
        """Keys of the originals that a channel's records answer for."""
        return (yield from self._reached(held, channel, runtime))[1]

    def _reached(
        self, held: Held, channel: Sequence[BaseMessage], runtime: object
    ) -> Flow[tuple[tuple[Record, ...], frozenset[str]]]:
        if held.data is None:
            return (), frozenset()
        known = self.reaches.find(held, channel)
        if known is not None:
            return known[0]
        chain = (yield from self.session(held, runtime, None).fold(channel)).chain
        found = chain, frozenset(manifest(chain))
        self.reaches.keep(held, channel, found)
        return found

    def pointed(self, held: Held, runtime: object) -> Flow[tuple[Record, ...]]:
        """The records that the archive's own pointer leads to; none without an archive."""
        archive = self._open(runtime)
        if archive is None:
            return ()
        return (yield from archive.chain_flow(scope_of(held, self.tenant, runtime)))

    def now(
        self, held: Held, channel: Sequence[BaseMessage], runtime: object
    ) -> Flow[Sequence[BaseMessage]]:
        """What the model would see of a channel just now: its view, where a record is in force
        that covers messages which are still there; else the channel."""
        if held.data is None:
            return channel
        return (yield from self.view(held, channel, runtime))

    def shown(
        self,
        held: Held,
        channel: Sequence[BaseMessage],
        sent: Sequence[BaseMessage],
        runtime: object,
    ) -> Flow[list[BaseMessage]]:
        """The view of a channel, with what other middleware has changed of it on the way.

        While the records cannot be read, what was sent.

        Args:
            held: what the state holds of us.
            channel: the messages in the state.
            sent: the messages of the request as they are now.
            runtime: of the run.
        """
        try:
            view = yield from self.view(held, channel, runtime)
        except ArchiveError as error:
            # Its records cannot be read for now: what does not fit is the guard's to bridge.
            if self.engine.tools.on_failure == "raise":
                raise
            logger.warning(
                "the records of this history cannot be read for now: %s",
                (yield from self.told(error)),
                extra=noted("records_unreadable"),
            )
            return list(sent)
        if len(sent) == len(channel) and all(map(is_, sent, channel)):
            return view
        return laid_over(view, channel, sent)

    def archive(self, runtime: object) -> Archive | None:
        """The archive: the one that was given, else one in the graph's own store."""
        found = self._open(runtime)
        if found is None:
            self.say_once(
                "no archive was given and the graph has no store: originals cannot be recalled "
                "after a compaction"
            )
        return found

    def _open(self, runtime: object) -> Archive | None:
        given = self.engine.tools.archive
        if given is not None:
            return given
        store = getattr(runtime, "store", None)
        if not isinstance(store, BaseStore):
            return None
        return self._archives.get_or_make(id(store), lambda: (store, Archive(store)))[1]

    def told(self, error: Exception) -> Flow[str]:
        """What an error says, as it may be logged: providers quote requests in theirs."""
        return (yield from told_flow(self.engine.tools.redaction, [str(error)]))[0]

    @staticmethod
    def tell_failures(result: CompactionResult) -> None:
        """Lines in the log for tries that failed, though a later one has written."""
        if result.record is not None:
            log_failures(result.failures, result.record.by)

    def say_once(self, text: str) -> None:
        """A line in the log, the first time."""
        with self._lock:
            if text in self._said:
                return
            self._said.add(text)
        logger.warning(text, extra=noted("setting_missing"))
