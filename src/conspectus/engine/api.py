"""`Compactor`: the whole engine behind one call, for any list of messages."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, Self

from conspectus._arguments import suggesting
from conspectus._langchain import hide_from_streams, is_message, is_runnable
from conspectus.archive import Scope, without_password
from conspectus.bridge import arun, aside, run
from conspectus.core.plan import budget_of
from conspectus.core.policy import AnyStale, OnFailure, plain_words
from conspectus.engine.background import Closing, Preparation, begin
from conspectus.engine.cached_request import last_request_of
from conspectus.engine.compaction import compact, unread
from conspectus.engine.result import CompactionResult
from conspectus.engine.settings import (
    AnyArchive,
    AnyListeners,
    AnySummarizer,
    Engine,
    OnEvent,
    Pin,
    Settings,
    meter_of,
    model_of,
    window_of,
)
from conspectus.engine.thread import Memory, Thread, ThreadId, scope_of
from conspectus.errors import ArchiveError, Attributes, InputError, PolicyError
from conspectus.messages import Source, is_summary_message, read_messages
from conspectus.messages.alternation import AlternateRoles
from conspectus.messages.reading import as_messages
from conspectus.model.calls import profile_window
from conspectus.notes.tools import Tool
from conspectus.observe import heard_by, log
from conspectus.recall import RecallResult, recall_flow
from conspectus.recall.flow import unknown_thread
from conspectus.redaction import Redact
from conspectus.tokens import TokenCounter

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

NO_WINDOW = "the window of the model is not known: pass window=<tokens>, or a trigger"
MERGED = (
    "the history has several of our summaries: replace the old messages by those of the result; in "
    'a node of LangGraph return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), '
    "*result.messages]}"
)


class Compactor(Attributes, Closing):
    """Keep histories inside a window, and every original within reach.

    Args:
        model: the model that answers, as a LangChain chat model or a `provider:model` string. It
            writes the summaries unless `summarizer` does, and gives the tokenizer and the window,
            if it has a profile. A summariser as for `summarizer` may stand in its place, which only
            writes. Default: none; then the embedded summariser writes.
        summarizer: who writes instead of `model`: a `Summarizer`, a chat model, a `provider:model`
            string, a callable or Runnable that takes messages and returns text, or `"embedded"`,
            the `EmbeddedSummarizer`, which extracts by rules and needs no model and no network; a
            model is recommended.
        trigger: when to compact: `("tokens", N)`, `("messages", N)`, `("fraction", F)` of the
            window; a dict for conditions that must all hold; a list for alternatives. Default:
            `("fraction", 0.85)` with a `window`, else `("tokens", 170_000)`.
        keep: how much of the newest history stays in view, as one such tuple, where that leaves
            room to grow. Default: 20 messages, and fewer as soon as they take much of the room.
        window: input limit of the model that answers, in tokens. The result always fits it.
            Default: that of the profile of `model`; if that is unknown, the result must fit in the
            smallest `tokens` trigger.
        reserved_tokens: tokens of the window for output, system prompt and tools that are not in
            the messages. Default: 0.
        archive: where originals go: an `Archive`, a LangGraph `BaseStore`, a path or a URL
            (`sqlite:///...`, `postgresql://...`, `memory:`). Without one, results say
            `archived=False`, nothing is clipped, and nothing can be recalled.
        token_counter: a LangChain `token_counter`, by whose count of the list a history fits or
            does not; or a vocabulary as for `tokenizer`. Default: an estimate, corrected by the
            usage that models reported in the history.
        tokenizer: what counts tokens, and does nothing else: the name of a model, whose tokenizer
            is estimated, or a vocabulary such as `"tiktoken:o200k_base"` or
            `"tokenizers:path/to/tokenizer.json"` (extra `tokens`). Default: that of `model`;
            without one, or for an unknown name (which is logged), for each piece of a text the
            tokens of the family that takes most.
        max_summary_tokens: most tokens of the text of a summary, without the first line and the
            note of its message, some 35 tokens. A longer one is asked for once more, shorter, then
            cut behind its last whole sentence, and `result.cut` says so. Default: a third of the
            budget is asked for, and a longer one is used if it fits and is smaller than what it
            replaces.
        notes: whether the user's words and one line a call are written beside what the summariser
            writes. False shows only the summariser's text. Default: True.
        tool_table: tools of yours, as `conspectus.notes.Tool`: which argument names the thing that
            a call is about, and whether a call changes anything. Default: a table of common ones.
        trim_tokens_to_summarize: the size of one reading, in tokens; everything is read in any
            case. Default: what the summariser's window takes.
        fallbacks: summarisers to try in turn when the first one fails.
        on_failure: when none succeeds: `"degrade"` keeps the history while there is room and else
            uses the embedded summariser; `"keep"` keeps it; `"raise"` raises.
        pin: a function that says of a message whether it must stay in view; or the name of a
            marker in `additional_kwargs` (of a dict: among its keys).
        stale_results: shows results of tools, and arguments, that are older than `keep` short, with
            a pointer to the original, where that makes a summary needless: True, False, or a dict
            with some of `over` (tokens of a large one, default 1,000), `newest` (how many results
            stay whole whatever `keep` says, default 0), `least` (tokens that must be freed,
            default: enough to reach half of the trigger), `tools` (the only ones), `exclude` and
            `arguments` (False leaves the agent's own messages whole). It needs an archive. See
            `docs/concepts.md`.
        summarizer_timeout: seconds that one call of a model, or one try of your own summariser,
            may take, at most 3,600; None for no limit. Default: 120.
        on_event: called with a name (`start`, `attempt_failed`, `end`, `failed`) and its data; as
            `pin` in the thread that called, or below an async call in one beside the event loop.
        redact: takes secrets out of all that is archived, indexed, summarised, noted or passed to
            hooks and listeners; messages in view stay as they are. True or `"secrets"`
            for the default redactor, a function from text to text, or a `Redactor`. If it fails,
            nothing is archived, and the history stays. Default: None, for off.
        telemetry: one or several listeners for this compactor only, such as
            `conspectus.observe.OpenTelemetry()`. Default: only those of the process.
        background: True prepares the next notes in the background, in a thread, from seven tenths
            of the trigger on. At the trigger they are swapped in. Until they are finished the
            history is kept as it is while it fits the window. Default: False. See
            `docs/operations.md`.
        summary_request: `"cached"` asks for a summary with the messages of the last result and one
            instruction after them, if they hold all that is evicted: the provider then reads them
            from its cache. For loops whose model also summarises; a Runnable says how the loop
            calls it, such as `model.bind_tools(tools)`. `"smallest"` sends only what leaves. See
            `docs/cost.md`. Default: `"smallest"`.
        alternate_roles: whether messages of the user that stand in a row become one in views, as
            the chat templates of Mistral, Gemma and others demand: `"on"`, `"off"`, or `"auto"`:
            by the name of the model, and for an unknown one if no model has answered two in a row
            in the history. The summary and the task behind it then are one message, which is taken
            apart when it comes back. Default: `"auto"`. See `docs/loops.md`.

    It is a context manager: after the block nothing is prepared any more, and an archive that it
    has opened is closed; see `close`. `copy.deepcopy` shares its archive, and without one what this
    process remembers; `pickle` takes the settings, and opens the archive again by its address.

    Raises:
        PolicyError: a setting is invalid.
        ArchiveError: the archive cannot be opened.

    Example:
        >>> compactor = Compactor(trigger=("messages", 50), keep=("messages", 10))
        >>> compactor.compact([{"role": "user", "content": "hi"}], thread_id="t").outcome
        'kept'
    """

    @suggesting("Compactor")
    def __init__(
        self,
        model: AnySummarizer | None = None,
        *,
        summarizer: AnySummarizer | None = None,
        trigger: object = None,
        keep: object = None,
        window: int | None = None,
        reserved_tokens: int = 0,
        archive: AnyArchive | None = None,
        token_counter: TokenCounter | str | None = None,
        tokenizer: str | None = None,
        max_summary_tokens: int | None = None,
        notes: bool = True,
        tool_table: Sequence[Tool] = (),
        trim_tokens_to_summarize: int | None = None,
        fallbacks: Sequence[AnySummarizer] = (),
        on_failure: OnFailure = Settings.on_failure,
        pin: Pin | None = None,
        stale_results: AnyStale = True,
        summarizer_timeout: float | None = Settings.summarizer_timeout,
        on_event: OnEvent | None = None,
        redact: Redact = None,
        telemetry: AnyListeners = None,
        background: bool = False,
        summary_request: Literal["smallest", "cached"] | Runnable[Any, Any] = "smallest",
        alternate_roles: AlternateRoles = "auto",
    ) -> None:
        self._given = {key: value for key, value in locals().items() if key != "self"}
        model = model_of(model, summarizer)
        request = "cached" if is_runnable(summary_request) else summary_request
        window = profile_window(model) if window is None else window
        room = window_of(window, reserved_tokens)
        if trigger is None:
            if room is None and model is not None:
                log("no_window", NO_WINDOW, level=logging.INFO)
            trigger = ("fraction", 0.85) if room else ("tokens", 170_000)  # as in Deep Agents
        settings = Settings.of(locals(), summary_request=request)
        policy = replace(settings.policy(), keep_is_set=keep is not None)
        if policy.needs_window and room is None:
            raise PolicyError(
                "a fraction needs to know the window of the model that answers: pass window=<its "
                "input limit in tokens> (--window in a command), or use tokens or messages instead"
            )
        for caveat in policy.caveats(window):
            warnings.warn(caveat, UserWarning, stacklevel=3)
        meter = meter_of(token_counter, tokenizer, model)
        self._engine = Engine.build(settings, policy, meter)
        self._last_request = last_request_of(self._engine, summary_request, window)
        self.policy, self.archive = self._engine.policy, self._engine.archive
        self._background = self._engine.background
        self._opened = self.archive if isinstance(archive, (str, Path)) else None
        # With no window of its own, a history must fit the trigger that it is to stay below.
        self._room = budget_of(self.policy, room)
        if self.archive is None:
            why = "no archive= was given: originals cannot be recalled after a compaction"
            log("no_archive", why, level=logging.INFO)
        self._is_built = True

    def __repr__(self) -> str:
        own, room, archive = self._engine.settings, self._room, self._engine.settings.archive
        plain = archive is None or isinstance(archive, (str, Path))
        where = without_password(str(archive)) if plain else type(archive).__name__
        return (
            f"Compactor(summarizer={' or '.join(self._engine.writers)!r}, trigger={own.trigger}, "
            f"keep={self.policy.keep}, window={room and room.limit}, archive={where})"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Make another one of the same settings, which shares archive and memory.

        So it goes on with the same histories; the one that opened the archive closes it.
        """
        return self._of({**self._given, "archive": self.archive}, memory=self._engine.memory)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the settings: who reads them opens the archive again, by its address.

        Raises:
            TypeError: the archive has no address, or ends with this process.
        """
        archive = self._given["archive"]
        if archive in (":memory:", "memory:") or not isinstance(archive, (str, Path, type(None))):
            where = "in memory" if isinstance(archive, str) else f"a {type(archive).__name__}"
            raise TypeError(
                f"a Compactor whose archive is {where} cannot be pickled, as no other process "
                "could open that: give archive= a path or the URL of a database"
            )
        return type(self)._of, (self._given,)

    @classmethod
    def _of(cls, given: dict[str, Any], memory: Memory | None = None) -> Self:
        made = cls.__new__(cls)
        Compactor.__init__(made, **given)
        if memory is not None:
            made._engine = replace(made._engine, memory=memory)
        return made

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
        """Bring a history inside its window, if the trigger or the window asks for it.

        Send either the whole history each time, as clients of a chat API do, or the last result
        with new messages after it.

        Args:
            messages: LangChain messages, dicts in OpenAI's or Anthropic's form, or items of
                OpenAI's Responses. Never changed. Objects of a provider's SDK, and dicts that hold
                some, come back as plain dicts. A dict with `messages` is taken for these.
            thread_id: names the conversation: a text, a whole number or a UUID.
            tenant: its owner. Default: `"local"`.
            session: names one agent's own history, if several share a thread.
            force: compact although nothing asks for it; what `keep` asks for stays.
            focus: the subject to keep above all, in plain words.

        Raises:
            MessageError: a message cannot be understood.
            InputError: `thread_id` or `tenant` is no name.
            ArchiveError: the archive failed, and `on_failure` is `"raise"`; else the result says
                so, in `failed` and `reason`.
            SummaryError: no summariser succeeded, and `on_failure` is `"raise"`.
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
        engine, thread = self._engine, Thread(self._engine, scope, self._room)
        given = as_messages(messages)
        work = compact(thread, given, force, plain_words(focus, "focus"))
        try:
            result = await heard_by(engine.listeners, work)
        except ArchiveError as error:
            if engine.settings.on_failure == "raise":
                raise
            result = await heard_by(engine.listeners, aside(unread(thread, given, error)))
        ours = (str(m.id).startswith("summary-") for m in given if is_message(m))
        if result.record is not None and sum(ours) == 2:  # said once, as there are more next time
            log("summaries_merged", MERGED)
        hide_from_streams(m for m in result.messages if is_message(m) and is_summary_message(m))
        if self._last_request is not None:
            last = replace(self._last_request, messages=tuple(result.messages), at=monotonic())
            engine.memory.of(scope).last_request = last
        return result

    def prepare(
        self,
        messages: Sequence[Source],
        *,
        thread_id: ThreadId,
        tenant: str | None = None,
        session: str = "main",
    ) -> Preparation:
        """Prepare the next notes in the background if the trigger is near.

        `compact` does so by itself; this is for better moments, as while a user reads. The next
        `compact` whose trigger has come swaps the notes in, if `messages` still begin its history.
        On an event loop, call it by `asyncio.to_thread`: it reads the messages before it returns.

        Args:
            messages, thread_id, tenant, session: as for `compact`.

        Returns:
            The preparation in a daemon thread: a new one, or the one that is under way.

        Raises:
            PolicyError: `background` is off.
            MessageError: a message cannot be understood.
            InputError: `thread_id` or `tenant` is no name.

        Example:
            >>> compactor = Compactor(window=8_000, background=True)
            >>> ahead = compactor.prepare([{"role": "user", "content": "hi"}], thread_id="t")
            >>> ahead.wait(10), ahead.outcome
            (True, 'nothing')
        """
        scope = scope_of(tenant, thread_id, session)
        if self._background is None:
            raise PolicyError(
                "notes are prepared where background=True, so that compact() swaps them in"
            )
        entries = read_messages(list(as_messages(messages)))
        return begin(Thread(self._engine, scope, self._room), entries)

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
        """Find archived originals again, among those in reach of the record in force.

        Args:
            query: words to look for; with `id` or `range`, there alone; or
            id: a message id, or one cited in a summary; or
            at: characters of that message to skip.
            range: two of them, for all messages between, both included.
            thread_id, tenant, session: as for `compact`.
            tokens: most tokens of the result's text.

        Raises:
            InputError: none or several of query, id and range, but for a query with one of the
                others; or there is no archive.
            NotFoundError: nothing is archived of that thread, or nothing of that name is in reach.
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
        archive, engine = self.archive, self._engine
        if archive is None:
            raise InputError("without an archive nothing can be recalled; pass archive=")
        chain = await archive.flow(archive.in_force, scope)
        asked = any(request[way] is not None for way in ("query", "id", "range"))
        if asked and not chain:
            known = await archive.flow(archive.scopes, scope.tenant)
            sessions = [one.session for one in known if one.thread == scope.thread]
            if scope.session not in sessions:
                raise unknown_thread(scope, sessions)
        work = recall_flow(archive, scope, chain, count=engine.meter.text, **request)
        return await heard_by(engine.listeners, aside(work))
