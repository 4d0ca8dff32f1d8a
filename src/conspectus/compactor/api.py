"""`Compactor`: the whole engine behind one call, for any list of messages."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

from conspectus._core.choices import OnFailure
from conspectus._core.plan import budget_of
from conspectus._core.policy import LEAST_GAIN, Policy
from conspectus._core.stale import AnyStale
from conspectus._drive import Flow, arun, run
from conspectus._langchain import is_runnable
from conspectus.archive import Scope
from conspectus.compactor.anchors import Anchor
from conspectus.compactor.background import AnyBackground, Closing
from conspectus.compactor.calls import compact_flow
from conspectus.compactor.engine import OnEvent
from conspectus.compactor.preparation import Preparation
from conspectus.compactor.preparing import begin_flow
from conspectus.compactor.result import CompactionResult
from conspectus.compactor.riding import last_request_of
from conspectus.compactor.session import Session
from conspectus.compactor.settings import (
    LOCAL,
    AnyArchive,
    AnyListeners,
    AnySummarizer,
    EngineSettings,
    Pin,
    warn_caller,
    window_of,
)
from conspectus.errors import InputError, PolicyError
from conspectus.events import heard_by
from conspectus.events.notes import log
from conspectus.messages import Source, read_messages
from conspectus.recall import RecallResult, recall_flow
from conspectus.recall.flow import unknown_thread
from conspectus.redaction import Redact
from conspectus.summarize import NotesSetting
from conspectus.tokens import TokenCounter, TokenMeter

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable


class Compactor(Closing):
    """Keep histories inside a window, and every original within reach.

    Args:
        summarizer: a `Summarizer`, a LangChain chat model, a `provider:model` string, a callable
            or Runnable that takes messages and returns text, or `"embedded"`. Default:
            `"embedded"`, the `EmbeddedSummarizer`, which needs no model and no network, and
            extracts by rules; a model is recommended.
        trigger: when to compact: `("tokens", N)`, `("messages", N)`, `("fraction", F)` of the
            window; a dict for conditions that must all hold; a list for alternatives. Default:
            `("fraction", 0.85)` where `window` is given, else `("tokens", 170_000)`.
        keep: how much of the newest history stays in view, as one such tuple. Default: 20 messages.
        window: input limit of the model that will answer, in tokens. The result always fits it.
            Default: unknown; then the result must fit in the smallest `tokens` trigger.
        reserved_tokens: tokens of the window for output, system prompt and tools that are not in
            the messages. Default: 0.
        archive: where originals go: an `Archive`, a LangGraph `BaseStore`, a path or a URL
            (`sqlite:///...`, `postgresql://...`, `memory:`). Without one, results say
            `archived=False`, nothing is clipped, and nothing can be recalled.
        token_counter: a LangChain `token_counter`, or a vocabulary such as
            `"tiktoken:o200k_base"` or `"tokenizers:path/to/tokenizer.json"` (extra `tokens`).
            Default: an estimate, corrected by the usage that models reported in the history.
        model: the model that will answer, as a name or a LangChain model, so that its tokenizer is
            the one that is estimated. Default, and with a name that tells none (one line in the log
            says so): each piece of a text costs what the family that takes most of it would take.
        max_summary_tokens: the most that the text of a summary takes; the first line and the note
            of its message, some 35 tokens, are not counted. A longer one is asked for once more,
            shorter, then cut at the end of a line, and `Record.cut` says so. Default: a third of
            the budget is asked for, and a longer one is used that fits and is smaller than what it
            replaces.
        notes: the parts of the notes that are written: `"said"`, `"done"`, `"found"`, `"open"`,
            `"index"`; or a mapping of parts to their share of the room. An empty list leaves the
            summariser's text alone. Default: all five.
        max_summarizer_tokens: the most that one compaction may spend on a model, in tokens; the
            embedded summariser reads what that cannot pay for. Default: no cap.
        trim_tokens_to_summarize: the size of one reading, in tokens. Default: what the
            summariser's window takes. Whatever the size, everything is read.
        fallbacks: summarisers to try in turn when the first one fails.
        on_failure: when none succeeds: `"degrade"` keeps the history while there is room and uses
            the embedded summariser when there is none; `"keep"` keeps it; `"raise"` raises.
        pin: says of a message whether it must stay in view; or the name of a marker: what has it
            in its `additional_kwargs` (a dict: among its keys) stays.
        clip_over: tool results and arguments older than what `keep` asks for and larger than this
            many tokens are clipped first, to 200; at least 201. None switches that off. Default:
            1,000.
        stale_results: shows stale results of tools short, with a pointer to the original, before
            anything is summarised: True, or a dict with some of `over` (tokens above which a result
            is large, default 1,000), `newest` (how many stay whole, default 3), `least` (tokens
            that must be freed, or nothing is shortened; default: enough to reach half of the
            trigger), `tools` (the only ones, or a dict with `over` and `newest` for each, `"*"` for
            the others) and `exclude`. It needs an archive. Default: None, for `clip_over`, which
            else is for arguments alone.
            See `docs/stale_results.md`.
        summarizer_timeout: seconds that one call of a model, or one try of a summariser of your
            own, may take; None for no limit. Default: 120.
        least_gain: share of a history that a compaction must free, its summary taken at its
            largest: one that would free less, below the window and not forced, is not made. 0 for
            any; tiny histories are compacted as asked. Default: 0.1.
        file_tokens: tokens of a document or a recording of which a message holds no more than an id
            or an address. Default: ten full pages of a PDF, 30,000 tokens with most models; see
            `TokenMeter`.
        on_event: called with a name (`start`, `attempt_failed`, `end`, `failed`) and its data.
        redact: takes secrets out of all that is archived, indexed, summarised, carried as a fact or
            passed to hooks and listeners; messages in view stay as they are. True or `"secrets"`
            for the default redactor, a function from text to text, or a `Redactor`. What cannot be
            redacted is not archived, and the history stays as it is. Default: None, for off.
        telemetry: a listener, or several, that hear of this compactor only, such as
            `conspectus.telemetry.UsageTally()`. Default: those of the process alone, if any.
        background: True prepares the next notes beside the caller, from seven tenths of the
            trigger on, in a thread or as a task of the event loop; `{"prepare": 0.5}` from another
            share of it on. At the trigger they are swapped in. Until they are finished the history
            is kept as it is while it fits the window. Default: False. See `docs/background.md`.
        summary_request: `"cached"` asks for a summary with the messages that the last call gave
            back and one instruction after them, where all that leaves stands there, so that the
            provider reads them from its cache: for loops in which the summariser answers, too. A
            Runnable says how the loop calls it, such as `model.bind_tools(tools)`. Elsewhere, and
            with `"smallest"`, a request is sent with no more than what leaves. See `docs/bill.md`.
            Default: `"smallest"`.

    It is a context manager: at the end of the block nothing is prepared any more, and an archive
    that it has opened is closed; see `close`.

    Raises:
        PolicyError: a setting that cannot mean anything.
        ArchiveError: the archive cannot be opened.

    Example:
        >>> compactor = Compactor(trigger=("messages", 50), keep=("messages", 10))
        >>> compactor.compact([{"role": "user", "content": "hi"}], thread_id="t").outcome
        'kept'
    """

    def __init__(
        self,
        summarizer: AnySummarizer | None = None,
        *,
        trigger: object = None,
        keep: object = ("messages", 20),
        window: int | None = None,
        reserved_tokens: int = 0,
        archive: AnyArchive | None = None,
        token_counter: TokenCounter | str | None = None,
        model: str | BaseChatModel | None = None,
        max_summary_tokens: int | None = None,
        notes: NotesSetting = None,
        max_summarizer_tokens: int | None = None,
        trim_tokens_to_summarize: int | None = None,
        fallbacks: Sequence[AnySummarizer] = (),
        on_failure: OnFailure = "degrade",
        pin: Pin | None = None,
        clip_over: int | None = 1000,
        stale_results: AnyStale = None,
        summarizer_timeout: float | None = 120.0,
        file_tokens: int | None = None,
        least_gain: float = LEAST_GAIN,
        on_event: OnEvent | None = None,
        redact: Redact = None,
        telemetry: AnyListeners = None,
        background: AnyBackground = False,
        summary_request: Literal["smallest", "cached"] | Runnable[Any, Any] = "smallest",
    ) -> None:
        given = dict(locals())
        room = window_of(window, reserved_tokens)
        if trigger is None:
            trigger = ("fraction", 0.85) if room else ("tokens", 170_000)  # as in Deep Agents
        policy = Policy.build(
            trigger=trigger,
            keep=keep,
            max_summary_tokens=max_summary_tokens,
            clip_over=clip_over,
            stale_results=stale_results,
            least_gain=least_gain,
        )
        if policy.needs_window and room is None:
            raise PolicyError(
                "a fraction needs to know the window of the model that answers: pass "
                "window=<its input limit in tokens>, or use tokens or messages instead"
            )
        for caveat in policy.caveats:
            warn_caller(caveat, UserWarning, self)
        if is_runnable(summary_request):
            given["summary_request"] = "cached"
        meter = TokenMeter(token_counter, model=model, file_tokens=file_tokens)
        self._engine = EngineSettings.of(given).engine(policy, meter)
        self._last_request = last_request_of(self._engine, summary_request, window)
        self.policy, self.archive = self._engine.policy, self._engine.archive
        self._background = self._engine.background
        self._opened = self.archive if isinstance(archive, (str, Path)) else None
        # With no window of its own, a history must fit the trigger that it is to stay below.
        self._room = budget_of(self.policy, room)
        if self.archive is None:
            said = "no archive was given: originals cannot be recalled after a compaction"
            log("no_archive", said, level=logging.INFO)

    # Compacting

    def compact(
        self,
        messages: Sequence[Source],
        *,
        thread_id: str,
        tenant: str | None = None,
        session: str = "main",
        force: bool = False,
        focus: str | None = None,
    ) -> CompactionResult:
        """Bring a history inside its window, if anything asks for it.

        Send either the whole history each time, as clients of a chat API do, or what the last
        call gave back with new messages after it.

        Args:
            messages: LangChain messages, dicts in OpenAI's or Anthropic's form, or items of
                OpenAI's Responses. Never changed.
            thread_id: names the conversation.
            tenant: whose it is. Default: `"local"`.
            session: which agent's own history it is, where several share a thread.
            force: compact although nothing asks for it.
            focus: what to keep above all, in plain words.

        Returns:
            What happened; `messages` is what to send to the model.

        Raises:
            MessageError: a message cannot be understood.
            InputError: `thread_id` or `tenant` is no text.
            ArchiveError: the archive cannot be read. One that cannot be written is in the result,
                unless `on_failure` is `"raise"`.
            SummaryError: no summariser succeeded, and `on_failure` is `"raise"`.
            RedactionError: the redactor failed, and `on_failure` is `"raise"`.
        """
        scope = scope_of(tenant, thread_id, session)
        return self._sent(scope, run(self._compact(scope, messages, force, focus)))

    async def acompact(
        self,
        messages: Sequence[Source],
        *,
        thread_id: str,
        tenant: str | None = None,
        session: str = "main",
        force: bool = False,
        focus: str | None = None,
    ) -> CompactionResult:
        """`compact` on an event loop."""
        scope = scope_of(tenant, thread_id, session)
        return self._sent(scope, await arun(self._compact(scope, messages, force, focus)))

    def _compact(
        self, scope: Scope, messages: Sequence[Source], force: bool, focus: str | None
    ) -> Flow[CompactionResult]:
        flow = compact_flow(self._session(scope), messages, force, focus or "")
        return heard_by(self._engine.listeners, flow)

    def _sent(self, scope: Scope, result: CompactionResult) -> CompactionResult:
        """Remember a result as the request that the caller sends now."""
        if self._last_request is not None:
            last = replace(self._last_request, messages=tuple(result.messages), at=monotonic())
            self._engine.memory.of(scope).last_request = last
        return result

    def prepare(
        self,
        messages: Sequence[Source],
        *,
        thread_id: str,
        tenant: str | None = None,
        session: str = "main",
    ) -> Preparation:
        """Prepare the next notes beside the caller if the trigger is near.

        `compact` begins by itself once a history nears its trigger; this is for moments that a
        caller knows better, as while a user reads. The next `compact` whose trigger has come swaps
        the notes in, if `messages` are still the beginning of its history.

        Args:
            messages, thread_id, tenant, session: as for `compact`.

        Returns:
            The preparation, under way in a daemon thread; the one that is under way already, where
            there is one.

        Raises:
            PolicyError: `background` is off.
            MessageError: a message cannot be understood.
            InputError: `thread_id` or `tenant` is no text.

        Example:
            >>> compactor = Compactor(window=8_000, background=True)
            >>> ahead = compactor.prepare([{"role": "user", "content": "hi"}], thread_id="t")
            >>> ahead.wait(10), ahead.outcome
            (True, 'nothing')
        """
        return run(self._prepare(scope_of(tenant, thread_id, session), messages))

    async def aprepare(
        self,
        messages: Sequence[Source],
        *,
        thread_id: str,
        tenant: str | None = None,
        session: str = "main",
    ) -> Preparation:
        """`prepare` as a task of the running event loop, with which it ends."""
        return await arun(self._prepare(scope_of(tenant, thread_id, session), messages))

    def _prepare(self, scope: Scope, messages: Sequence[Source]) -> Flow[Preparation]:
        if self._background is None:
            raise PolicyError(
                "notes are prepared where background=True, so that compact() swaps them in"
            )
        entries = read_messages(list(messages))
        return (yield from begin_flow(self._session(scope), lambda own: own.folded(entries)))

    def _session(self, scope: Scope) -> Session:
        return Session(self._engine, scope, self._room, Anchor.of(self._engine, scope))

    # Recall

    def recall(
        self,
        query: str | None = None,
        *,
        thread_id: str,
        tenant: str | None = None,
        session: str = "main",
        id: str | None = None,
        range: tuple[str, str] | None = None,
        tokens: int = 1024,
    ) -> RecallResult:
        """Find archived originals again, among those that the record in force can reach.

        Args:
            query: words to look for; or
            id: a message id, or one cited in a summary; or
            range: two of them, for all that stands between, both included.
            thread_id, tenant, session: as for `compact`.
            tokens: the most that the text of the result may take.

        Raises:
            InputError: not exactly one of query, id and range; or there is no archive.
            NotFoundError: nothing is archived of that thread, or nothing of that name is in reach.
            ArchiveError: the archive cannot be read.
        """
        scope = scope_of(tenant, thread_id, session)
        return run(self._recall(scope, query=query, id=id, range=range, tokens=tokens))

    async def arecall(
        self,
        query: str | None = None,
        *,
        thread_id: str,
        tenant: str | None = None,
        session: str = "main",
        id: str | None = None,
        range: tuple[str, str] | None = None,
        tokens: int = 1024,
    ) -> RecallResult:
        """`recall` on an event loop."""
        scope = scope_of(tenant, thread_id, session)
        return await arun(self._recall(scope, query=query, id=id, range=range, tokens=tokens))

    def _recall(self, scope: Scope, **asked: Any) -> Flow[RecallResult]:
        return heard_by(self._engine.listeners, self._recalled(scope, **asked))

    def _recalled(self, scope: Scope, **asked: Any) -> Flow[RecallResult]:
        archive, count = self.archive, self._engine.meter.text
        if archive is None:
            raise InputError("without an archive nothing can be recalled; pass archive=")
        chain = yield from archive.chain_flow(scope)
        if not chain and scope.thread not in (yield from archive.threads_flow(scope.tenant)):
            raise unknown_thread(scope.tenant, scope.thread)
        return (yield from recall_flow(archive, scope, chain, count=count, **asked))


def scope_of(tenant: str | None, thread_id: str, session: str) -> Scope:
    """Name a history; one without a name would be shared by all."""
    named: Mapping[str, object] = {"thread_id": thread_id, "tenant": tenant, "session": session}
    for name, value in named.items():
        if value is None and name == "tenant":
            continue
        if not isinstance(value, str) or not value:
            raise InputError(f"{name} must be a text that names it, not {value!r}")
    return Scope(LOCAL if tenant is None else tenant, thread_id, session)
