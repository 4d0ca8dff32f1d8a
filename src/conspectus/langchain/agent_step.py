"""The messages of one agent's state at one step, and the record in force.

The state names the record in force, so that each checkpoint keeps its own. Readers without a
state, such as `Compactor.recall`, use the head in the archive. So there are four cases:

- The state names a record, and the archive names another one, because the thread has gone back or
  is on another branch: `bring_archive_along` moves the head in the archive.
- The state was copied from another thread: `bring_archive_along` also copies the originals.
- The state names no record, but there may be a record for its messages (`may_be_known`), for
  example in a fork, or if a client sends a history again: `inherit` puts that record in force.
- The state names a record that an edit of the messages has made unfit: `view` puts an earlier
  record in force.

A step is a value. A method that puts another record in force returns another step; the caller goes
on with that one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import is_
from typing import Any, NamedTuple, Self, cast

from langchain_core.messages import BaseMessage, HumanMessage

from conspectus.archive import Archive, Scope
from conspectus.archive.values import manifest
from conspectus.core.items import Size, Window
from conspectus.core.policy import EMBEDDED
from conspectus.core.records import Chain, Record
from conspectus.engine.branches import load_view
from conspectus.engine.history import (
    LOCAL,
    HeadSource,
    HistoryContext,
    StateHoldsRecords,
    StateNamesHead,
    scope_of,
)
from conspectus.engine.memory import FailedSummary, Memories
from conspectus.errors import ArchiveError
from conspectus.langchain.cache import CachedView, Measured, SessionCache
from conspectus.langchain.history_sizes import HistorySizes, MessageCount
from conspectus.langchain.middleware_changes import apply_changes
from conspectus.langchain.settings import KEPT, Setup
from conspectus.langchain.state import (
    DERIVED,
    FORKED,
    MAIN,
    HeadState,
    Run,
    agent_name_of,
    name_and_read_head,
    name_messages,
)
from conspectus.messages import Message, is_summary_message, read_messages
from conspectus.messages.shortening import ARCHIVED
from conspectus.messages.users import newest_user_message
from conspectus.model.base import EmbeddedSummarizer
from conspectus.observe import log

EVENT = "conspectus.compaction"
"""The `type` of our custom stream events."""

NO_ARCHIVE = (
    "no archive was given and the graph has no store: originals cannot be recalled after a "
    "compaction; give archive= a path, or the agent a store="
)

UNNAMED = (
    "no thread_id was given, so each compaction archives to another thread, unnamed-...: name "
    'the conversation with config={"configurable": {"thread_id": ...}}'
)


class StepView(NamedTuple):
    """What the model sees: what the records in force make of the messages in the state."""

    step: AgentStep  # with the record in force that fits its messages
    messages: list[BaseMessage]
    chain: Chain = ()
    keys: frozenset[str] = frozenset()  # of the messages that the records cover


@dataclass(frozen=True, kw_only=True, eq=False)
class AgentStep:
    """The messages of one agent's state at one step, and the record in force."""

    setup: Setup
    state: Mapping[str, Any]
    runtime: object
    run: Run
    messages: list[BaseMessage]
    held: HeadState
    has_resent_messages: bool = False
    """Whether a client has sent evicted messages again. `messages` is without them; the state still
    has them."""

    @classmethod
    def of(cls, setup: Setup, state: Mapping[str, Any], runtime: object) -> Self:
        """Read the step from a state; its first message gets an id if it has none."""
        messages = cast("list[BaseMessage]", state["messages"])
        run = Run.of(runtime)
        held = name_and_read_head(state, run, messages)
        return cls(setup=setup, state=state, runtime=runtime, run=run, messages=messages, held=held)

    @property
    def preserve(self) -> bool:
        """Whether the state keeps messages that a summary replaces in the view.

        The state of an agent that another graph has called always does: the calling graph gets the
        messages of that state, and would add the summary to those that it replaces.
        """
        return self.setup.preserve or bool(self.run.parent_graph)

    @cached_property
    def archive(self) -> Archive | None:
        return self.setup.archive(self.runtime)

    @cached_property
    def _tenant(self) -> str:
        """The tenant: the one in the settings, else the authenticated user, else the local one."""
        tenant = self.setup.settings.tenant
        if tenant is None:
            user = getattr(getattr(self.runtime, "server_info", None), "user", None)
            tenant = getattr(user, "identity", None) or None
        named = tenant(self.runtime) if callable(tenant) else tenant
        return LOCAL if named is None else scope_of(named, MAIN, MAIN).tenant

    @property
    def newest_user_message(self) -> Message | None:
        """The user's newest message. Its key is the name of the current turn."""
        index = newest_user_message(self.messages)
        return None if index is None else read_messages([self.messages[index]])[0]

    @property
    def turn(self) -> str:
        return self.newest_user_message.key if self.newest_user_message else ""

    @property
    def scope(self) -> Scope:
        return Scope(self._tenant, self.held.thread, self.held.session)

    @property
    def _session(self) -> tuple[str, str, str]:
        return self._tenant, self.held.thread, self.held.session

    @property
    def cache(self) -> SessionCache:
        cache = self.setup.sessions.get(self._session)
        return cache or self.setup.sessions.get_or_make(self._session, SessionCache)

    def with_head(self, held: HeadState) -> AgentStep:
        """Return the step with another record in force."""
        return replace(self, held=held)

    def sizes(
        self, measured: Measured, messages: Sequence[BaseMessage], *counts: MessageCount
    ) -> HistorySizes:
        """Return the sizes of the view, or of a request."""
        cache = self.cache
        sizes = cache.sizes(measured, messages, *counts)
        self.setup.sessions.put(self._session, cache)  # puts it again, because its size has changed
        return sizes

    # Compacting

    def prepare_history(self, window: Window | None, ratio: float | None = None) -> HistoryContext:
        """Return the history as the engine takes it; `ratio` corrects the estimate."""
        setup = self.setup
        scope = self.scope
        archive = self.archive
        location: str | None = ARCHIVED  # of the originals, for clips
        if archive is None:
            setup.say_once(NO_ARCHIVE)
            location = setup.location(scope) if setup.preserve else None
        elif scope.thread.startswith(DERIVED):
            setup.say_once(UNNAMED)
        engine = replace(
            setup.engine,
            archive=archive,
            on_event=self._tell,
            clip_pointer=location,
            caller_format=replace(
                setup.engine.caller_format,
                agent_name=agent_name_of(self.runtime),
                runtime=self.runtime,
            ),
        )
        held = self.held
        head_source: HeadSource = StateHoldsRecords(held.chain)
        if held.head_id and not held.records:
            head_source = StateNamesHead(held.head_id)
        if archive is None:
            self._remember_failure()
        return HistoryContext(
            engine,
            scope,
            window,
            head_source=head_source,
            checkpointed=self.run.checkpointed,
            ratio=ratio,
        )

    def _remember_failure(self) -> None:
        """Take the latest failure from the state, if this process knows of none."""
        memory = self.setup.engine.memories.of(self.scope)
        if memory.latest_failure is None:
            memory.latest_failure = FailedSummary.from_json(self.held.failed)

    def history_for_one_request(self, window: Window, ratio: float) -> HistoryContext | None:
        """Return a history for one request alone. It commits nothing and asks nobody.

        None if `on_failure` is not `"degrade"`, or if a person approves each summary.
        """
        engine = self.setup.engine
        if engine.settings.on_failure != "degrade" or engine.preview is not None:
            return None
        engine = replace(
            engine,
            archive=None,
            on_event=None,
            preparations=None,
            memories=Memories(),
            caller_format=replace(engine.caller_format, for_one_request=True),
            clip_pointer=KEPT,
            summarizers={EMBEDDED: EmbeddedSummarizer()},
            hooks=(),
        )
        return HistoryContext(engine, self.scope, window, ratio=ratio)

    def size_of(self, view: Sequence[Any]) -> Size:
        """Return the size of a view as the trigger counts."""
        counting = self.setup.counting
        if counting.by_list and counting.meter is not None:
            return Size(counting.meter.count_list(view), len(view))
        count = self.cache.reusing_counts(counting.message)
        return Size(sum(map(count, view)), len(view))

    def put_in_force(
        self,
        record: Record,
        view: list[BaseMessage],
        *,
        pending: bool = False,
        whole: bool = True,
    ) -> AgentStep:
        """Return the step with one more record in force; see `HeadState.with_chain`.

        `view` is what the model sees under that record.
        """
        chain = (*self.held.chain, record)
        size = self.size_of(view)
        return self.with_head(self.held.with_chain(chain, size, pending=pending, whole=whole))

    def with_latest_failure(self) -> AgentStep:
        """Return the step with the latest failed summary, for a state that has to remember it.

        If there is an archive, the failure is there.
        """
        if self.archive is not None or not self.run.checkpointed:
            return self
        latest = self.setup.engine.memories.of(self.scope).latest_failure
        failed = None if latest is None else latest.to_json()
        if failed == self.held.failed:
            return self
        return self.with_head(replace(self.held, failed=failed))

    def _tell(self, event: str, data: Mapping[str, Any]) -> None:
        """Call the user's own listener, and write to the graph's stream."""
        write = getattr(self.runtime, "stream_writer", None)
        if write is not None:
            write({"type": EVENT, "event": event, **data})
        on_event = self.setup.engine.on_event
        if on_event is not None:
            on_event(event, data)

    async def redact_error(self, error: Exception) -> str:
        """Redact an error for the log: providers quote requests in theirs."""
        return (await self.setup.engine.redacted([str(error)]))[0]

    # What the model sees

    async def fold_view(self) -> StepView:
        """Fold the records in force over the messages; an earlier record if an edit made one unfit.

        The view is cached as long as messages are only added.
        """
        head_id = self.held.head_id
        messages = self.messages
        if not head_id:
            return StepView(self, messages)
        count, cached = self.cache.view(head_id, messages)
        if cached is not None:
            shown = [messages[part] if isinstance(part, int) else part for part in cached.parts]
            return StepView(self, [*shown, *messages[count:]], cached.chain, cached.keys)
        history = self.prepare_history(None)
        view = await load_view(history, read_messages(messages))
        shown = [source for source in view.sources if isinstance(source, BaseMessage)]
        step: AgentStep = self
        if view.head_id != head_id:
            chain = (await history.read_in_force()).chain
            step = self._with_earlier_record(view.chain, view.head_id, chain, shown)
        places = {id(message): index for index, message in enumerate(messages)}
        parts = [places.get(id(message), message) for message in shown]
        keys = frozenset(manifest(view.chain))
        self.cache.keep_view(step.held.head_id, messages, CachedView(parts, view.chain, keys))
        return StepView(step, shown, view.chain, keys)

    def _with_earlier_record(
        self, fitting: Chain, head_id: str, chain: Chain, shown: list[BaseMessage]
    ) -> AgentStep:
        """Return the step with an earlier record in force, if the later ones are only unfit.

        Records are compared by their ids (see `Chain`).

        Args:
            fitting: the records that fit the messages.
            head_id: the id of the newest of them.
            chain: the records that were in force.
            shown: the view that the fitting records make.
        """
        count = len(fitting)
        if count >= len(chain):
            return self
        if count and chain[count - 1].id != head_id:
            return self
        size = self.size_of(shown) if count else None
        return self.with_head(self.held.with_chain(fitting, size, pending=self.held.pending))

    async def view_with_changes(
        self, sent: Sequence[BaseMessage]
    ) -> tuple[AgentStep, Sequence[BaseMessage]]:
        """Return the view with other middleware's changes, and the step with its record.

        If the records cannot be read, return `sent` as it is. `ContextGuard` then makes it fit.

        Raises:
            ArchiveError: the records cannot be read, and `on_failure` is `"raise"`.
        """
        try:
            view = await self.fold_view()
        except ArchiveError as error:
            if self.setup.engine.settings.on_failure == "raise":
                raise
            text = "the records of this history cannot be read now: %s"
            log("records_unreadable", text, await self.redact_error(error))
            return self, sent
        return view.step, apply_changes(view.messages, self.messages, sent)

    def shows_all(self) -> bool:
        """Tell whether the messages are sent as they are: no record changes the view."""
        has_record = bool(self.held.head_id)
        recalls = self.setup.recall_tokens and (self.run.checkpointed or has_record)
        if recalls or self.archive_may_lag(turn=False):
            return False
        return not has_record or not self.preserve

    # Records that the state does not name

    def may_be_known(self) -> bool:
        """Tell whether there may be a record for these messages, although the state names none.

        This may be so for a fork, for a history that a client sends again, and for a nested agent
        at the start of a run.
        """
        if self.held.head_id or len(self.messages) < 2:
            return False
        return self.setup.preserve if self.state.get(FORKED) else not self.run.checkpointed

    @property
    def brings_summary(self) -> bool:
        """Whether the messages begin with a summary, and the state does not name its record."""
        messages = (message for message in self.messages if message.type != "system")
        first = next(messages, None)
        return self.may_be_known() and first is not None and is_summary_message(first)

    async def inherit(self) -> AgentStep:
        """Return the step with the newest record of an earlier run in force that fits its messages.

        The messages get ids. If no record fits, the step stays as it is.
        """
        archive = self.archive
        messages = self.messages
        if archive is None:
            memory = self.setup.engine.memories.of(self.scope)
            chain = memory.chain if ":" in self.run.parent_graph else ()
        else:
            chain = await archive.call_either_way(archive.chain, self.scope)
        if not chain:
            return self
        name_messages(messages)
        history = replace(self.prepare_history(None), head_source=StateHoldsRecords(chain))
        view = await load_view(history, read_messages(messages))
        if view.head is None:
            return self
        same_length = len(view.sources) == len(messages)
        is_whole = same_length and all(map(is_, view.sources, messages))
        pending = not self.preserve and not is_whole
        size = view.head.size_after
        return self.with_head(self.held.with_chain(view.chain, size, pending=pending))

    # The head in the archive

    @property
    def _is_copied(self) -> bool:
        """Whether the state was copied from another thread, with the record in force there."""
        return bool(self.held.head_id) and self.run.thread != self.held.thread

    def archive_may_lag(self, *, turn: bool) -> bool:
        """Tell whether the archive may not have what the state names.

        With `turn`, also if a turn of the user begins: the archive may have changed since then.
        """
        if not self.run.thread or not self.run.checkpointed:  # no state is kept between runs
            return False
        if self._is_copied:
            return True
        if self.archive is None or self.held.records:
            return False
        begins = turn and (not self.messages or isinstance(self.messages[-1], HumanMessage))
        return begins or self.cache.stored_head_id != self.held.head_id

    async def bring_archive_along(self, *, turn: bool) -> AgentStep:
        """Move the head in the archive to the record of the state, or copy a copied thread.

        If the archive fails, the log says so, and the next step tries again. `turn` as for
        `archive_may_lag`.

        Returns:
            The step under the name of its own thread, to which the originals were copied.
        """
        if not self.archive_may_lag(turn=turn):
            return self
        archive = self.archive
        try:
            if self._is_copied:
                return await self._copy_to_own_thread(archive)
            if archive is not None:
                await self._move_stored_head(archive)
                self.cache.stored_head_id = self.held.head_id
        except ArchiveError as error:
            text = "the archive could not be brought to this state; the next step tries again: %s"
            log("head_unknown", text, await self.redact_error(error))
        return self

    async def _copy_to_own_thread(self, archive: Archive | None) -> AgentStep:
        """Return the step under its own thread, after its originals were copied to that thread."""
        held = self.held
        step = self.with_head(replace(held, thread=self.run.thread))
        if archive is not None and not held.records:
            await archive.call_either_way(archive.copy, self.scope, step.scope, held.head_id)
        return step

    async def _move_stored_head(self, archive: Archive) -> None:
        head_id = self.held.head_id
        scope = self.scope
        stored_head_id = await archive.call_either_way(archive.head_id, scope)
        if stored_head_id is None or stored_head_id == head_id:
            return  # nothing was archived here, or it was forgotten
        if not head_id and any(map(is_summary_message, self.messages)):
            return  # the state is new and the history is not: its summary names the record
        if head_id and not (await archive.call_either_way(archive.chain_at, scope, head_id)):
            return  # it is in another archive
        await archive.call_either_way(archive.set_head, scope, head_id)
