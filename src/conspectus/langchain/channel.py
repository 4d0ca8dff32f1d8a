"""Fold records over the messages of one agent's state at one step.

The state names the record in force, so that each checkpoint keeps its own. Readers without a
state, such as `Compactor.recall`, use the archive's pointer: `Channel.follow` moves it when a
thread goes back, over to another branch, or is copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import Any, cast
from weakref import ref

from langchain_core.messages import BaseMessage, HumanMessage

from conspectus.archive import Archive, Scope
from conspectus.archive.values import manifest
from conspectus.core.items import Size, Window
from conspectus.core.policy import EMBEDDED
from conspectus.core.records import Record
from conspectus.engine.anchors import Anchor
from conspectus.engine.memory import FailedSummary, Memory
from conspectus.engine.session import Session
from conspectus.errors import ArchiveError
from conspectus.langchain.graph import KEPT, GraphEngine
from conspectus.langchain.identity import (
    is_checkpointed,
    name_messages,
    run_of_subgraph,
    thread_of_run,
)
from conspectus.langchain.state import HeadState, as_data, read_head, scope_of
from conspectus.langchain.views import laid_over
from conspectus.messages import is_summary_message
from conspectus.messages.thoughts import without_stale_thoughts
from conspectus.observe import log


@dataclass(frozen=True, slots=True)
class Channel:
    """The messages of one agent's state at one step, and the record in force."""

    graph: GraphEngine
    state: Mapping[str, Any]
    runtime: object
    held: HeadState

    @classmethod
    def of(cls, graph: GraphEngine, state: Mapping[str, Any], runtime: object) -> Channel:
        return cls(graph, state, runtime, read_head(state, runtime, state["messages"]))

    def holding(self, held: HeadState) -> Channel:
        return replace(self, held=held)

    @property
    def messages(self) -> list[BaseMessage]:
        return cast("list[BaseMessage]", self.state["messages"])

    @property
    def scope(self) -> Scope:
        return scope_of(self.held, self.graph.tenant, self.runtime)

    # Compacting

    def session(
        self,
        room: Window | None,
        *,
        asked: Size | None = None,
        ratio: float | None = None,
    ) -> Session:
        """Make the session of the history; `asked` and `ratio` are those of `Session`."""
        graph, archive, scope = self.graph, self.graph.archive(self.runtime), self.scope
        engine = replace(graph.engine, archive=archive, on_event=graph.listener(self.runtime))
        if archive is None and graph.keeps is not None:
            engine = replace(engine, kept_in=graph.keeps(scope))
        head, checkpointed = self.held.head, is_checkpointed()
        anchor = Anchor(archive, engine.memory, scope, head, checkpointed)
        return Session(engine, scope, room, anchor, asked, self.held.after, ratio)

    def passing_session(self, room: Window | None, ratio: float | None) -> Session | None:
        """Make a session that commits nothing, for one request without an archive.

        The embedded summariser writes, as all of it is thrown away with the request. Return None if
        failures are not to be bridged, or a person reads each summary.
        """
        graph = self.graph
        if graph.engine.on_failure != "degrade" or graph.engine.preview is not None:
            return None
        engine = replace(
            graph.engine,
            archive=None,
            memory=Memory(),
            order=(EMBEDDED,),
            on_event=None,
            hooks=(),
            passing=True,
            kept_in=KEPT,
            background=None,
        )
        anchor = Anchor.of(engine, self.scope)
        return Session(engine, self.scope, room, anchor, ratio=ratio)

    def failure(self, messages: int, over: bool) -> FailedSummary | None:
        """Return the latest summary of the history, if it failed."""
        memory = self.graph.engine.memory
        if not memory.any_failed:
            return None
        return memory.of(self.scope).failure(self.held.head_id or None, messages, over)

    # What the model sees

    async def fitting(self) -> tuple[Channel, list[BaseMessage]]:
        """Drop the records that an edit has made unfit; return the channel and its view."""
        views, held = self.graph.views, self.held
        view = views.find(self.scope, held.head_id, self.messages)
        if view is not None:
            return self, view
        session = self.session(None)
        folded = await session.fold(self.messages)
        view = [one for one in folded.sources if isinstance(one, BaseMessage)]
        chain = folded.chain
        if (chain[-1].id if chain else "") != held.head_id:
            known = await session.anchor.chain_flow()
            if len(chain) < len(known) and known[: len(chain)] == chain:
                return self.holding(held.back_to(chain)), view
        views.keep(self.scope, held.head_id, self.messages, view)
        return self, view

    async def view(self) -> list[BaseMessage]:
        """Return the view: the records in force folded over the messages."""
        if self.held.data is None:
            return self.messages
        return (await self.fitting())[1]

    async def shown(self, sent: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Return the view with other middleware's changes laid over it.

        While the records cannot be read, return the messages as they were sent.
        """
        try:
            view = await self.view()
        except ArchiveError as error:
            # What does not fit now is the guard's to bridge.
            if self.graph.engine.on_failure == "raise":
                raise
            said = await self.graph.redacted_error(error)
            log("records_unreadable", "the records of this history cannot be read now: %s", said)
            return list(sent)
        if len(sent) == len(self.messages) and all(map(is_, sent, self.messages)):
            return view
        return laid_over(view, self.messages, sent)

    async def thoughtful(self, messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
        """Leave out the thoughts of messages that the latest compaction has kept."""
        if self.held.data is None or not self.held.messages_after:
            return messages
        rewritten = self.graph.keeps is None and not self.held.pending
        try:
            view = self.messages if rewritten else await self.view()
        except ArchiveError:
            return messages
        kept = {message.id for message in view[: self.held.messages_after]}
        last = max((n for n, message in enumerate(messages) if message.id in kept), default=-1)
        # Most models ask for the newest thoughts beside their calls, until there are newer ones.
        newer = last + 1 < len(messages)
        fresh = without_stale_thoughts(messages[: last + 1], last + 1, all_of_them=newer)
        fresh += messages[last + 1 :]
        return messages if all(map(is_, fresh, messages)) else fresh

    async def reached(self) -> tuple[tuple[Record, ...], frozenset[str]]:
        """Return the records in force that fit, and the keys that they cover."""
        if self.held.data is None:
            return (), frozenset()
        reaches = self.graph.reaches
        known = reaches.find(self.scope, self.held.head_id, self.messages)
        if known is not None:
            return known[0]
        chain = (await self.session(None).fold(self.messages)).chain
        found = chain, frozenset(manifest(chain))
        reaches.keep(self.scope, self.held.head_id, self.messages, found)
        return found

    # The archive's pointer

    async def inherited(self, *, replaced: bool) -> Channel:
        """Put the record of an earlier run in force, as far as it fits the messages.

        Without a checkpointer only messages come back, as they do to an agent that is a node of
        another graph, and Deep Agents gives a fork its parent's messages and no private state.
        Records of another branch do not fit and are dropped.
        """
        archive = self.graph.open_archive(self.runtime)
        if archive is None:
            memory = self.graph.engine.memory
            chain = memory.of(self.scope).chain if run_of_subgraph() else ()
        else:
            chain = await archive.flow(archive.chain, self.scope)
        if not chain:
            return self
        name_messages(self.messages)
        held = replace(self.held, data=as_data(chain))
        history = await self.holding(held).session(None).fold(self.messages)
        if history.head is None:
            return self
        whole = len(history.sources) == len(self.messages)
        whole = whole and all(map(is_, history.sources, self.messages))
        pending, after = replaced and not whole, history.head.size_after
        held = replace(held, data=as_data(history.chain), after=after, pending=pending)
        return self.holding(held)

    async def follow(self, *, turn: bool) -> Channel:
        """Move the archive's pointer with the state, and originals with a copied thread.

        The pointer is read if the state's record is not the one that this process has seen last,
        and with `turn` also in the first step of a turn.
        """
        held, archive = self.held, self.graph.open_archive(self.runtime)
        own = thread_of_run(self.runtime)
        if own is None or not is_checkpointed():  # nothing is kept between runs, nor goes back
            return self
        if held.data is not None and own != held.thread:
            return await self._copied(own, archive)
        if archive is None or isinstance(held.data, list):
            return self
        place = (ref(archive), self.scope)
        turn = turn and (not self.messages or isinstance(self.messages[-1], HumanMessage))
        if self.graph.heads.get(place) == held.head_id and not turn:
            return self
        try:
            await self._point(archive)
        except ArchiveError as error:
            log("head_unknown", "the archive could not say which record is in force: %s", error)
            return self
        self.graph.heads.put(place, held.head_id)
        return self

    async def _point(self, archive: Archive) -> None:
        head, scope = self.held.head_id, self.scope
        pointed = await archive.flow(archive.pointer, scope)
        if pointed is None or pointed == head:
            return  # nothing was archived here, or it was forgotten
        if not head and any(map(is_summary_message, self.messages)):
            return  # the state is new and the history is not: its summary names the record
        if head and not (await archive.flow(archive.chain_at, scope, head)):
            return  # it is in another archive
        await archive.flow(archive.set_head, scope, head or None)

    async def _copied(self, thread: str, archive: Archive | None) -> Channel:
        """Copy the originals to the new thread."""
        moved = self.holding(replace(self.held, thread=thread))
        if archive is not None and isinstance(self.held.data, str):
            try:
                await archive.flow(archive.copy, self.scope, moved.scope, self.held.data)
            except ArchiveError as error:
                log("copy_failed", "a copied thread could not take its originals along: %s", error)
                return self
        return moved
