"""`Compactor`: one call that keeps any list of messages inside a window."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any, Self

from conspectus._arguments import documented, takes
from conspectus._langchain import hide_from_streams, is_message
from conspectus.archive import Scope, without_password
from conspectus.bridge import arun, run, run_in_worker
from conspectus.core.planner import window_or_trigger
from conspectus.core.policy import check_text
from conspectus.engine.background import prepare_messages
from conspectus.engine.building import meter_of, model_of, window_of
from conspectus.engine.cached_request import request_template
from conspectus.engine.closing import Closing
from conspectus.engine.engine import CallerFormat, Engine
from conspectus.engine.entry import compact_messages
from conspectus.engine.history import HistoryContext, ThreadId, scope_of
from conspectus.engine.memory import Memories
from conspectus.engine.preparations import Preparation
from conspectus.engine.reporting import report_unreadable
from conspectus.engine.result import CompactionResult, UndoResult
from conspectus.engine.settings import CompactorSettings
from conspectus.engine.undoing import undo
from conspectus.errors import ArchiveError, Attributes, InputError, PolicyError
from conspectus.messages import Source, is_summary_message, read_messages
from conspectus.messages.reading import as_messages
from conspectus.model.calls import profile_window
from conspectus.observe import heard_by, log
from conspectus.recall import RecallResult, recall_flow
from conspectus.recall.flow import unknown_thread
from conspectus.recall.for_agents import HOW_TO_RECALL

NO_WINDOW = "the window of the model is not known: pass window=<tokens>, or a trigger"
MERGED = (
    "the history has several of our summaries: replace the old messages by those of the result; in "
    'a node of LangGraph return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), '
    "*result.messages]}"
)

STACKLEVEL = 4
"""Frames from a warning of `_build` to the line that makes the compactor. If it is copied or
unpickled, the warning names another line; it was given at the right one before."""


@documented
class Compactor(Attributes, Closing):
    """Keep conversations inside a window; every archived original can be recalled.

    Call `compact` before each request to the model.

    A compactor is a context manager. At the end of the block it stops preparing summaries, and
    closes the archive if the compactor has opened it; `close` does the same. `copy.deepcopy` makes
    a second compactor that shares the archive and the memory of the first compactor. `pickle`
    stores the settings; the archive is opened again from its path or URL.

    Raises:
        PolicyError: a setting is invalid.
        ArchiveError: the archive cannot be opened.

    Example:
        >>> compactor = Compactor(trigger=("messages", 50), keep=("messages", 10))
        >>> compactor.compact([{"role": "user", "content": "hi"}], thread_id="t").outcome
        'kept'
    """

    @takes(CompactorSettings)
    def __init__(self, settings: CompactorSettings) -> None:
        self._build(settings, Memories())

    def _build(self, settings: CompactorSettings, memories: Memories) -> None:
        self._settings = settings  # as the caller gave them: a copy reads them again
        model = model_of(settings.model, settings.summarizer)
        limit = profile_window(model) if settings.window is None else settings.window
        window = window_of(limit, settings.reserved_tokens)
        trigger = settings.trigger
        if trigger is None:
            if window is None and model is not None:
                log("no_window", NO_WINDOW, level=logging.INFO)
            # Deep Agents uses 170,000, too, if it knows no profile.
            trigger = ("tokens", 170_000) if window is None else ("fraction", 0.85)
        settings = replace(settings, model=model, trigger=trigger)
        policy = replace(settings.policy(), keep_is_set=settings.keep is not None)
        if policy.needs_window and window is None:
            raise PolicyError(
                "a fraction needs to know the window of the model that answers: pass window=<its "
                "input limit in tokens> (--window in a command), or use tokens or messages instead"
            )
        for caveat in policy.caveats(limit):
            warnings.warn(caveat, UserWarning, stacklevel=STACKLEVEL)
        meter = meter_of(settings.token_counter, settings.tokenizer, model)
        self._engine = replace(
            Engine.build(settings, policy, meter),
            memories=memories,
            caller_format=CallerFormat(how_to_recall=HOW_TO_RECALL),
        )
        self._request_template = request_template(self._engine, settings.summary_request, limit)
        self.policy = self._engine.policy
        self.archive = self._engine.archive
        self._preparations = self._engine.preparations
        self._opened = self.archive if isinstance(settings.archive, (str, Path)) else None
        # Without a window, the trigger in tokens is the budget.
        self._window = window_or_trigger(self.policy, window)
        if self.archive is None:
            why = "no archive= was given: originals cannot be recalled after a compaction"
            log("no_archive", why, level=logging.INFO)
        self._is_built = True

    def __repr__(self) -> str:
        settings = self._engine.settings
        archive = settings.archive
        is_address = archive is None or isinstance(archive, (str, Path))
        shown_archive = without_password(str(archive)) if is_address else type(archive).__name__
        limit = None if self._window is None else self._window.limit
        return (
            f"Compactor(summarizer={' or '.join(self._engine.summarizers)!r}, "
            f"trigger={settings.trigger}, keep={self.policy.keep}, window={limit}, "
            f"archive={shown_archive})"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Make another one of the same settings, which shares archive and memory.

        So the copy continues the same histories. The compactor that opened the archive closes it.
        """
        return self._of(replace(self._settings, archive=self.archive), self._engine.memories)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the settings. Unpickling opens the archive again, from its path or URL.

        Raises:
            TypeError: the archive has no path or URL, or is in the memory of this process.
        """
        archive = self._settings.archive
        if archive in (":memory:", "memory:") or not isinstance(archive, (str, Path, type(None))):
            kind = "in memory" if isinstance(archive, str) else f"a {type(archive).__name__}"
            raise TypeError(
                f"a Compactor whose archive is {kind} cannot be pickled, as no other process "
                "could open that: give archive= a path or the URL of a database"
            )
        return type(self)._of, (self._settings,)

    @classmethod
    def _of(cls, settings: CompactorSettings, memories: Memories | None = None) -> Self:
        compactor = cls.__new__(cls)
        compactor._build(settings, Memories() if memories is None else memories)
        return compactor

    def compact(
        self,
        messages: Sequence[Source],
        *,
        thread_id: ThreadId,
        tenant: str | None = None,
        session: str = "main",
        force: bool = False,
        focus: str | None = None,
    ) -> CompactionResult:
        """Compact a history if the trigger is reached or the window is full.

        Pass either the whole history each time, or the messages of the last result followed by the
        new messages.

        Args:
            messages: LangChain messages, dicts in the form of OpenAI or Anthropic, or items of
                OpenAI's Responses. They are never changed. Objects of a provider's SDK, and dicts
                that contain such objects, come back as plain dicts. A dict with a key `messages` is
                read as the list under that key.
            thread_id: the name of the conversation: a text, a whole number or a UUID.
            tenant: the name of its owner. Default: `"local"`.
            session: the name of one of several agents in the conversation.
            force: True compacts although no compaction is due. The messages of `keep` stay.
            focus: a subject, in plain words, that a model's summary must keep. The embedded
                summariser ignores it.

        Returns:
            The messages to send, and a description of what this call did.

        Raises:
            MessageError: a message has an unknown form.
            InputError: `thread_id` or `tenant` is not a valid name.
            ArchiveError: the archive failed, and `on_failure` is `"raise"`. With any other
                `on_failure` the result says so, in `failed` and `reason`.
            SummaryError: every summariser failed, and `on_failure` is `"raise"`.
            RedactionError: the redactor failed, and `on_failure` is `"raise"`.
        """
        scope = scope_of(tenant, thread_id, session)
        return run(self._compact(scope, messages, force, focus))

    async def acompact(
        self,
        messages: Sequence[Source],
        *,
        thread_id: ThreadId,
        tenant: str | None = None,
        session: str = "main",
        force: bool = False,
        focus: str | None = None,
    ) -> CompactionResult:
        """`compact` on an event loop."""
        scope = scope_of(tenant, thread_id, session)
        return await arun(self._compact(scope, messages, force, focus))

    async def _compact(
        self, scope: Scope, messages: Sequence[Source], force: bool, focus: str | None
    ) -> CompactionResult:
        engine = self._engine
        history = HistoryContext(engine, scope, self._window)
        sources = as_messages(messages)
        checked_focus = check_text(focus, "focus")
        work = compact_messages(history, sources, force=force, focus=checked_focus)
        try:
            result = await heard_by(engine.listeners, work)
        except ArchiveError as error:
            if engine.settings.on_failure == "raise":
                raise
            result = await heard_by(
                engine.listeners, run_in_worker(report_unreadable(history, sources, error))
            )
        if result.record is not None:
            _warn_of_merged_summaries(sources)
        _hide_summaries(result.messages)
        if self._request_template is not None:
            request = replace(
                self._request_template, messages=tuple(result.messages), at=monotonic()
            )
            history.memory.last_request = request
        return result

    def undo(
        self,
        thread_id: ThreadId,
        *,
        tenant: str | None = None,
        session: str = "main",
        messages: Sequence[Source] | None = None,
        to: str | None = None,
    ) -> UndoResult:
        """Take the newest compaction of a conversation back, or put one in force again.

        The records and their originals stay in the archive, so a redo is the same call, with the id
        of a record that was taken back. What comes back is the history as it was before the
        compaction, followed by the messages that came later.

        The next call of `compact` may compact again, if its trigger is reached: then a summariser
        is asked anew. To keep the history longer, use a larger `window`, `trigger` or `keep`; for
        another summary, another `model` or a `focus`.

        Args:
            thread_id, tenant, session: as for `compact`.
            messages: the caller's history as it is now, whole or as the last result followed by
                newer messages. Without it only the archive changes, and the next call of `compact`
                brings the messages back.
            to: the id of the record that is to be in force; all records after it are taken back.
                `""` or `"start"`: none is to be in force. Default: the record before the newest.

        Returns:
            What was taken back and put in force. `messages` are those to send from now on, if
            `messages` were passed.

        Raises:
            InputError: there is no archive, or `to` does not belong to `messages`.
            NotFoundError: no compaction is in force, `to` is unknown, or originals have expired or
                were forgotten. Nothing was changed.
            ArchiveOvertaken: another worker has compacted the history at the same time. Nothing was
                changed.
            ArchiveError: the archive cannot be read or written, or an original is damaged.
            MessageError: a message has an unknown form.

        Example:
            >>> history = [{"role": "user", "content": f"Look at part {n}."} for n in range(40)]
            >>> compactor = Compactor(keep=("messages", 4), archive="memory:")
            >>> view = compactor.compact(history, thread_id="t", force=True).messages
            >>> undone = compactor.undo("t", messages=view)
            >>> undone.messages == history, undone.came_back
            (True, 36)
            >>> compactor.undo("t", messages=history, to=undone.taken_back[0]).messages == view
            True
        """
        scope = scope_of(tenant, thread_id, session)
        return run(self._undo(scope, messages, to))

    async def aundo(
        self,
        thread_id: ThreadId,
        *,
        tenant: str | None = None,
        session: str = "main",
        messages: Sequence[Source] | None = None,
        to: str | None = None,
    ) -> UndoResult:
        """`undo` on an event loop."""
        scope = scope_of(tenant, thread_id, session)
        return await arun(self._undo(scope, messages, to))

    async def _undo(
        self, scope: Scope, messages: Sequence[Source] | None, to: str | None
    ) -> UndoResult:
        engine = self._engine
        history = HistoryContext(engine, scope, self._window)
        sources = None if messages is None else as_messages(messages)
        if to is not None and not isinstance(to, str):
            raise InputError(f"to must be the id of a record, not {to!r}")
        result = (await heard_by(engine.listeners, undo(history, sources, to))).result
        _hide_summaries(result.messages or ())
        return result

    def prepare(
        self,
        messages: Sequence[Source],
        *,
        thread_id: ThreadId,
        tenant: str | None = None,
        session: str = "main",
    ) -> Preparation:
        """Prepare the next summary in the background if the history is near its trigger.

        With `background=True`, `compact` does this by itself. Call this method to prepare at a
        better moment, for example while a user reads. When the trigger is reached, `compact` uses
        the prepared summary, if its history begins with `messages`. On an event loop, call this
        method with `asyncio.to_thread`, because it reads the messages before it returns.

        Args:
            messages, thread_id, tenant, session: as for `compact`.

        Returns:
            The preparation, which runs in a daemon thread. If a preparation of this history is
            already running, it is returned.

        Raises:
            PolicyError: `background` is False.
            MessageError: a message has an unknown form.
            InputError: `thread_id` or `tenant` is not a valid name.

        Example:
            >>> compactor = Compactor(window=8_000, background=True)
            >>> preparation = compactor.prepare(
            ...     [{"role": "user", "content": "hi"}], thread_id="t"
            ... )
            >>> preparation.wait(10), preparation.outcome
            (True, 'nothing')
        """
        scope = scope_of(tenant, thread_id, session)
        if self._preparations is None:
            raise PolicyError(
                "notes are prepared where background=True, so that compact() swaps them in"
            )
        entries = read_messages(list(as_messages(messages)))
        return prepare_messages(HistoryContext(self._engine, scope, self._window), entries)

    def recall(
        self,
        query: str | None = None,
        *,
        thread_id: ThreadId,
        tenant: str | None = None,
        session: str = "main",
        id: str | None = None,
        at: int | None = None,
        range: tuple[str, str] | None = None,
        tokens: int = 1024,
    ) -> RecallResult:
        """Find archived originals of the branch that was compacted last.

        Give `query`, `id` or `range`. Only `query` can be combined with one of the others.

        Args:
            query: words to search for. With `id` or `range`, only the messages that these name are
                searched.
            id: the id of one message, as the summary cites it.
            at: with `id`: the number of characters to skip at the beginning of that message.
            range: two ids: all messages from the first to the second, both included.
            thread_id, tenant, session: as for `compact`.
            tokens: the most tokens of the result's text.

        Raises:
            InputError: `query`, `id` and `range` are all missing, or `id` and `range` are both
                given; or there is no archive.
            NotFoundError: nothing of this thread is archived, or no archived message of this branch
                has that id.
            ArchiveError: the archive cannot be read, or its newest record is damaged.
        """
        scope = scope_of(tenant, thread_id, session)
        return run(self._recall(scope, query=query, id=id, at=at, range=range, tokens=tokens))

    async def arecall(
        self,
        query: str | None = None,
        *,
        thread_id: ThreadId,
        tenant: str | None = None,
        session: str = "main",
        id: str | None = None,
        at: int | None = None,
        range: tuple[str, str] | None = None,
        tokens: int = 1024,
    ) -> RecallResult:
        """`recall` on an event loop."""
        scope = scope_of(tenant, thread_id, session)
        return await arun(
            self._recall(scope, query=query, id=id, at=at, range=range, tokens=tokens)
        )

    async def _recall(self, scope: Scope, **request: Any) -> RecallResult:
        archive = self.archive
        if archive is None:
            raise InputError("without an archive nothing can be recalled; pass archive=")
        chain = await archive.call_either_way(archive.in_force, scope)
        says_what = any(request[name] is not None for name in ("query", "id", "range"))
        if says_what and not chain:
            kept = await archive.call_either_way(archive.scopes, scope.tenant)
            sessions = [other.session for other in kept if other.thread == scope.thread]
            if scope.session not in sessions:
                raise unknown_thread(scope, sessions)
        engine = self._engine
        work = recall_flow(archive, scope, chain, count=engine.meter.count_text, **request)
        return await heard_by(engine.listeners, run_in_worker(work))


def _hide_summaries(messages: Sequence[Source]) -> None:
    """Hide summaries from the streams of a graph, which would show them as a part of the chat."""
    hide_from_streams(filter(is_summary_message, filter(is_message, messages)))


def _warn_of_merged_summaries(messages: Sequence[Source]) -> None:
    """Log once, when a history has exactly two of our summaries; a later call has more."""
    ids = [str(message.id) for message in messages if is_message(message)]
    if sum(name.startswith("summary-") for name in ids) == 2:
        log("summaries_merged", MERGED)
