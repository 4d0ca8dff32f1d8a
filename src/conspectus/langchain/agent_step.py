"""The messages of one agent's state at one step, and the record in force.

The state names the record in force, so that each checkpoint keeps its own. Readers without a
state, such as `Compactor.recall`, use the head in the archive. So there are four cases:

- The state names a record, and the archive another one, as the thread has gone back or over to
  another branch: `bring_archive_along` moves the head in the archive.
- The state was copied from another thread: `bring_archive_along` copies the originals, too.
- The state names no record, and the archive may have some of its messages (`may_be_known`), as of a
  fork or of a client that sends a history again: `inherit` puts these in force.
- The state names records that an edit has made unfit: `view` puts an earlier one in force.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from operator import is_
from typing import Any, NamedTuple, cast

from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage

from conspectus._langchain import innermost
from conspectus.archive import Archive, Scope
from conspectus.archive.values import manifest
from conspectus.core.items import Size, Window
from conspectus.core.policy import EMBEDDED
from conspectus.core.records import Chain, Record
from conspectus.engine.branches import load_view
from conspectus.engine.cached_request import sending
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
from conspectus.langchain.foreign_changes import apply_changes
from conspectus.langchain.history_sizes import HistorySizes, MessageCount
from conspectus.langchain.refused_features import SENT_AGAIN, without_feature
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
    without_response_id,
)
from conspectus.messages import Message, is_summary_message, read_messages
from conspectus.messages.framing import without_summary_name
from conspectus.messages.refusals import RefusedFeature
from conspectus.messages.shortening import ARCHIVED
from conspectus.messages.thoughts import without_stale_thoughts
from conspectus.messages.users import newest_user_message
from conspectus.model.base import EmbeddedSummarizer, LastRequest
from conspectus.model.calls import profile_window
from conspectus.observe import log

Handler = Callable[[ModelRequest[Any]], Awaitable[Any]]

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

    messages: list[BaseMessage]
    chain: Chain = ()
    keys: frozenset[str] = frozenset()  # of the messages that the records cover


class AgentStep:
    """The messages of one agent's state at one step, and the record in force."""

    def __init__(self, setup: Setup, state: Mapping[str, Any], runtime: object) -> None:
        self.setup = setup
        self.state = state
        self.runtime = runtime
        self.messages = cast("list[BaseMessage]", state["messages"])
        self.run = Run.of(runtime)
        # A summary that replaces messages in the state of another graph's agent would come to that
        # graph as one message more, beside all that it replaces.
        self.preserve = setup.preserve or bool(self.run.caller)
        self.held = name_and_read_head(state, self.run, self.messages)
        self.resent = False  # messages that had left before are still in the state

    @cached_property
    def archive(self) -> Archive | None:
        return self.setup.archive(self.runtime)

    @cached_property
    def _tenant(self) -> str:
        """The tenant: as configured, else the authenticated user, else the local one."""
        tenant = self.setup.settings.tenant
        if tenant is None:
            user = getattr(getattr(self.runtime, "server_info", None), "user", None)
            tenant = getattr(user, "identity", None) or None
        named = tenant(self.runtime) if callable(tenant) else tenant
        return LOCAL if named is None else scope_of(named, MAIN, MAIN).tenant

    @property
    def newest_user_message(self) -> Message | None:
        """The user's newest message as it is now, whose key names the turn under way."""
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

    def sizes(
        self, measured: Measured, messages: Sequence[BaseMessage], *counts: MessageCount
    ) -> HistorySizes:
        """Return the sizes of the view, or of a request."""
        cache = self.cache
        sizes = cache.sizes(measured, messages, *counts)
        self.setup.sessions.put(self._session, cache)  # it is measured again, as it has grown
        return sizes

    # Compacting

    def history(self, window: Window | None, ratio: float | None = None) -> HistoryContext:
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
            surface=replace(
                setup.engine.surface, agent_name=agent_name_of(self.runtime), runtime=self.runtime
            ),
        )
        held = self.held
        head_source: HeadSource = StateHoldsRecords(held.records)
        if isinstance(held.head, str):
            head_source = StateNamesHead(held.head)
        if archive is None:
            self._remember_failure()
        return HistoryContext(
            engine,
            scope,
            window,
            head_source=head_source,
            checkpointed=self.run.saved,
            reached=held.size_after,
            correction=ratio,
        )

    def _remember_failure(self) -> None:
        """Take the latest failure from the state, for a process that does not know of one."""
        memory = self.setup.engine.memories.of(self.scope)
        if memory.latest_failure is None:
            memory.latest_failure = FailedSummary.from_json(self.held.failed)

    def history_for_one_request(self, window: Window, ratio: float) -> HistoryContext | None:
        """Return the history of one request, which commits nothing and asks nobody.

        None if failures are not to be bridged, or if a person approves each summary.
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
            surface=replace(engine.surface, for_one_request=True),
            clip_pointer=KEPT,
            summarizers={EMBEDDED: EmbeddedSummarizer()},
            hooks=(),
        )
        return HistoryContext(engine, self.scope, window, correction=ratio)

    def size_of(self, view: Sequence[BaseMessage]) -> Size:
        """Return the size of a view as the trigger counts."""
        counting = self.setup.counting
        if counting.by_list and counting.meter is not None:
            return Size(counting.meter.whole(view), len(view))
        count = self.cache.counted(counting.message)
        return Size(sum(map(count, view)), len(view))

    def put_in_force(
        self,
        record: Record,
        view: list[BaseMessage],
        *,
        pending: bool = False,
        whole: bool = True,
    ) -> HeadState:
        """Put one more record in force, with its view; see `HeadState.with_chain`."""
        chain = (*self.held.records, record)
        size = self.size_of(view)
        self.held = self.held.with_chain(chain, size, pending=pending, whole=whole)
        return self.held

    def with_failure(self) -> HeadState:
        """Return the state with the latest failure, for a thread without an archive to note it."""
        if self.archive is not None or not self.run.saved:
            return self.held
        failed = self.setup.engine.memories.of(self.scope).latest_failure
        noted = None if failed is None else failed.to_json()
        return self.held if noted == self.held.failed else replace(self.held, failed=noted)

    def _tell(self, event: str, data: Mapping[str, Any]) -> None:
        """Call the user's own listener, and write to the graph's stream."""
        write = getattr(self.runtime, "stream_writer", None)
        if write is not None:
            write({"type": EVENT, "event": event, **data})
        on_event = self.setup.engine.on_event
        if on_event is not None:
            on_event(event, data)

    async def redacted(self, error: Exception) -> str:
        """Redact an error for the log: providers quote requests in theirs."""
        return (await self.setup.engine.redacted([str(error)]))[0]

    # What the model sees

    async def view(self) -> StepView:
        """Fold the records in force over the messages; those that an edit has made unfit go.

        The view is kept while the messages only become more.
        """
        head = self.held.head_id
        messages = self.messages
        if not head:
            return StepView(messages)
        count, cached = self.cache.view(head, messages)
        if cached is not None:
            shown = [messages[part] if isinstance(part, int) else part for part in cached.parts]
            return StepView([*shown, *messages[count:]], cached.chain, cached.keys)
        history = self.history(None)
        view = await load_view(history, read_messages(messages))
        shown = [source for source in view.sources if isinstance(source, BaseMessage)]
        if (view.head_id or "") != head:
            chain = (await history.in_force()).chain
            self._go_back(view.chain, view.head_id, chain, shown)
        places = {id(message): index for index, message in enumerate(messages)}
        parts = [places.get(id(message), message) for message in shown]
        keys = frozenset(manifest(view.chain))
        self.cache.keep_view(self.held.head_id, messages, CachedView(parts, view.chain, keys))
        return StepView(shown, view.chain, keys)

    def _go_back(
        self, fitting: Chain, head_id: str | None, chain: Chain, shown: list[BaseMessage]
    ) -> None:
        """Put an earlier record in force: an edit has made the later ones of a chain unfit.

        Records are known by their ids: of a chain only the newest is sure to be whole.
        """
        count = len(fitting)
        if count < len(chain) and (count == 0 or chain[count - 1].id == head_id):
            size = self.size_of(shown) if count else None
            self.held = self.held.with_chain(fitting, size, pending=self.held.pending)

    async def view_with_changes(self, sent: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
        """Return the view with other middleware's changes; `sent` if it cannot be read."""
        try:
            return apply_changes((await self.view()).messages, self.messages, sent)
        except ArchiveError as error:
            # What does not fit now is the guard's to bridge.
            if self.setup.engine.settings.on_failure == "raise":
                raise
            text = "the records of this history cannot be read now: %s"
            log("records_unreadable", text, await self.redacted(error))
            return sent

    # Calling the model

    def shows_all(self) -> bool:
        """Return whether no record is to be shown or extended."""
        recalls = self.setup.recall_tokens and (self.run.saved or self.held.head is not None)
        if recalls or self.archive_may_lag(turn=False):
            return False
        return self.held.head is None or not self.preserve

    async def send(
        self, request: ModelRequest[Any], messages: Sequence[BaseMessage], handler: Handler
    ) -> Any:
        """Send messages without stale thoughts, and without what the model is known to refuse.

        What is refused for such a feature is sent again without it, and the model is remembered to
        refuse it.
        """
        messages = await self._without_stale_parts(messages, request.model)
        if self.held.head is not None:
            messages = without_summary_name(messages)
        if messages is not request.messages:
            request = request.override(messages=cast("list[AnyMessage]", [*messages]))
        request = self.setup.refused.left_out(request, compacted=self.held)
        if self.setup.engine.cached:
            handler = self._remembering(handler)
        refused: set[RefusedFeature] = set()
        while True:
            try:
                response = await handler(request)
                break
            except Exception as error:
                feature = self.setup.refused.refused_in(request, error)
                if feature is None or feature in refused:
                    raise
                log(f"{feature}_refused", SENT_AGAIN[feature])
            request = without_feature(request, feature)
            refused.add(feature)
        self.setup.refused.remember(request.model, refused)
        return response

    async def _without_stale_parts(self, messages: Sequence[BaseMessage], model: object) -> Any:
        """Leave out what no longer fits messages that the latest compaction kept.

        These are thoughts, and the ids of responses.
        """
        held = self.held
        if held.head is None:
            return messages
        linked = getattr(innermost(model), "__dict__", {}).get("use_previous_response_id")
        if not (linked or self.cache.has_blocks(messages)):
            return messages
        view: Sequence[BaseMessage] = self.messages
        name_messages(view)  # a run may begin here, in another process
        if self.preserve or held.pending:
            view = await self.view_with_changes(view)
        kept_ids = {message.id for message in view[: held.messages_after]}
        kept_places = (n for n, message in enumerate(messages) if message.id in kept_ids)
        end = max(kept_places, default=-1) + 1  # of those that the compaction has kept
        # Most models ask for the newest thoughts beside their calls, until there are newer ones.
        has_newer = end < len(messages)
        kept = without_stale_thoughts(messages[:end], end, all_of_them=has_newer)
        if linked:
            kept = [without_response_id(message) for message in kept]
        sent = [*kept, *messages[end:]]
        return messages if all(map(is_, sent, messages)) else sent

    def _remembering(self, handler: Handler) -> Handler:
        """Remember the request that is sent, for a summary that uses its cache."""

        async def remembered(request: ModelRequest[Any]) -> Any:
            last_request: LastRequest | None = None
            # A model that must answer in a form, or must call a tool, would do so again, and
            # without that the provider's cache does not know the request.
            settings = request.model_settings
            is_forced = request.tool_choice not in (None, "auto") or "tool_choice" in settings
            if request.response_format is None and not is_forced:
                system = [] if request.system_message is None else [request.system_message]
                last_request = LastRequest(
                    model=request.model,
                    messages=(*system, *request.messages),
                    tools=tuple(request.tools),
                    tool_choice=request.tool_choice,
                    settings=dict(settings),
                    window=self.setup.window or profile_window(request.model),
                )
            with sending(self.setup.engine.memories.of(self.scope), last_request):
                return await handler(request)

        return remembered

    # Records that the state does not name

    def may_be_known(self) -> bool:
        """Return whether there may be records of a history that came without any.

        Such are a fork's, one that a client sends again, and a nested agent's at the begin of a
        run.
        """
        if self.held.head is not None or len(self.messages) < 2:
            return False
        return self.setup.preserve if self.state.get(FORKED) else not self.run.saved

    @property
    def brings_summary(self) -> bool:
        """Whether a history begins with a summary that came without its record."""
        messages = (message for message in self.messages if message.type != "system")
        first = next(messages, None)
        return self.may_be_known() and first is not None and is_summary_message(first)

    async def inherit(self) -> None:
        """Put the record of an earlier run in force, as far as it fits messages that came alone."""
        archive = self.archive
        messages = self.messages
        if archive is None:
            memory = self.setup.engine.memories.of(self.scope)
            chain = memory.chain if ":" in self.run.caller else ()
        else:
            chain = await archive.call_either_way(archive.chain, self.scope)
        if not chain:
            return
        name_messages(messages)
        history = replace(self.history(None), head_source=StateHoldsRecords(chain))
        view = await load_view(history, read_messages(messages))
        if view.head is not None:
            same_length = len(view.sources) == len(messages)
            is_whole = same_length and all(map(is_, view.sources, messages))
            pending = not self.preserve and not is_whole
            size = view.head.size_after
            self.held = self.held.with_chain(view.chain, size, pending=pending)

    # The head in the archive

    @property
    def _is_copied(self) -> bool:
        """Whether the state was copied from another thread, with the record in force there."""
        return self.held.head is not None and self.run.thread != self.held.thread

    def archive_may_lag(self, *, turn: bool) -> bool:
        """Return whether the archive may have to follow, also as a `turn` of the user begins."""
        if not self.run.thread or not self.run.saved:  # nothing is kept between runs, or goes back
            return False
        if self._is_copied:
            return True
        if self.archive is None or isinstance(self.held.head, list):
            return False
        begins = turn and (not self.messages or isinstance(self.messages[-1], HumanMessage))
        return begins or self.cache.stored_head != self.held.head_id

    async def bring_archive_along(self, *, turn: bool) -> None:
        """Move the head in the archive with the state, and originals with a copied thread."""
        if not self.archive_may_lag(turn=turn):
            return
        held = self.held
        archive = self.archive
        source = self.scope
        try:
            if self._is_copied:
                self.held = replace(held, thread=self.run.thread)
                if archive is not None and isinstance(held.head, str):
                    await archive.call_either_way(archive.copy, source, self.scope, held.head)
            elif archive is not None:
                await self._move_stored_head(archive)
                self.cache.stored_head = held.head_id
        except ArchiveError as error:
            self.held = held
            text = "the archive could not be brought to this state; the next step tries again: %s"
            log("head_unknown", text, await self.redacted(error))

    async def _move_stored_head(self, archive: Archive) -> None:
        head = self.held.head_id
        scope = self.scope
        pointed = await archive.call_either_way(archive.head, scope)
        if pointed is None or pointed == head:
            return  # nothing was archived here, or it was forgotten
        if not head and any(map(is_summary_message, self.messages)):
            return  # the state is new and the history is not: its summary names the record
        if head and not (await archive.call_either_way(archive.chain_at, scope, head)):
            return  # it is in another archive
        await archive.call_either_way(archive.set_head, scope, head or None)
