"""The engine as graphs use it: whose history, in which archive, told to which stream."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore

from conspectus._core.items import Size, Window
from conspectus._core.records import Record
from conspectus._drive import Flow
from conspectus.archive import Archive
from conspectus.archive.values import manifest
from conspectus.compactor.agent_state import Held, Tenant, scope_of
from conspectus.compactor.anchors import StateAnchor
from conspectus.compactor.engine import Engine
from conspectus.compactor.session import Session
from conspectus.compactor.stream_events import told
from conspectus.compactor.views import Grown, Views
from conspectus.compactor.work import Preview

logger = logging.getLogger("conspectus")

STORES = 8
"""Stores of graphs whose archives are kept open for the next step."""


@dataclass(slots=True)
class GraphEngine:
    """One engine for all threads of a graph; the middleware and the guard share it.

    Attributes:
        engine: what compactions work with.
        tenant: whose conversations these are.
        sizes: tokens of a message as `keep` counts; None for the meter's.
        preview: who reads a summary before it takes effect.
        views: what the model sees of channels that keep every message.
        reaches: keys of what the records of channels answer for.
    """

    engine: Engine
    tenant: Tenant = None
    sizes: Callable[[Any], int] | None = None
    preview: Preview | None = None
    views: Views = field(default_factory=Views)
    reaches: Grown[frozenset[str]] = field(default_factory=Grown)
    _archives: OrderedDict[int, tuple[BaseStore, Archive]] = field(default_factory=OrderedDict)
    _said: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

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
        return engine.session(
            scope,
            room,
            StateAnchor(archive, tools.memory, scope, held.head),
            asked=asked,
            last=held.after,
            sizes=self.sizes,
            ratio=ratio,
        )

    def failed_at(self, held: Held, runtime: object) -> Size | None:
        """The size of the history when its latest summary failed, if none succeeded since."""
        memory = self.engine.tools.memory
        if not memory.any_failed:
            return None
        failed = memory.of(scope_of(held, self.tenant, runtime)).failed
        return failed[1] if failed is not None and failed[0] == (held.head_id or None) else None

    def view(
        self, held: Held, channel: Sequence[BaseMessage], runtime: object
    ) -> Flow[list[BaseMessage]]:
        """What the model sees of a channel that holds messages which a record covers."""
        found = self.views.view(held, channel)
        if found is None:
            folded = yield from self.session(held, runtime, None).fold(channel)
            found = [one for one in folded.sources if isinstance(one, BaseMessage)]
            self.views.keep(held, channel, found)
        return found

    def chain(
        self, held: Held, channel: Sequence[BaseMessage], runtime: object
    ) -> Flow[tuple[Record, ...]]:
        """The records in force for a channel: those behind the head in its state that fit it.

        The archive's own pointer says nothing here: other branches of the thread move it.
        """
        if held.data is None:
            return ()
        return (yield from self.session(held, runtime, None).fold(channel)).chain

    def reach(
        self, held: Held, channel: Sequence[BaseMessage], runtime: object
    ) -> Flow[frozenset[str]]:
        """Keys of the originals that a channel's records answer for."""
        known = self.reaches.find(held, channel)
        if known is not None:
            return known[0]
        found = frozenset(manifest((yield from self.chain(held, channel, runtime))))
        self.reaches.keep(held, channel, found)
        return found

    def archive(self, runtime: object) -> Archive | None:
        """The archive: the one that was given, else one in the graph's own store."""
        given = self.engine.tools.archive
        if given is not None:
            return given
        store = getattr(runtime, "store", None)
        if not isinstance(store, BaseStore):
            self.say_once(
                "no archive was given and the graph has no store: originals cannot be recalled "
                "after a compaction"
            )
            return None
        with self._lock:
            found = self._archives.pop(id(store), None) or (store, Archive(store))
            self._archives[id(store)] = found
            while len(self._archives) > STORES:
                self._archives.popitem(last=False)
            return found[1]

    def say_once(self, text: str) -> None:
        """A line in the log, the first time."""
        with self._lock:
            if text in self._said:
                return
            self._said.add(text)
        logger.warning(text)
