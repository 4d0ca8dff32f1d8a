"""`Compactor`: the whole engine behind one call, for any caller that holds a list of messages."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.store.base import BaseStore

from conspectus._core.flow import EMBEDDED, FAILURES, Failed, OnFailure
from conspectus._core.items import Compact, Keep, Plan, Window
from conspectus._core.plan import GIANT, budget_of, plan
from conspectus._core.policy import Policy
from conspectus._core.records import Cost, Record
from conspectus._drive import Flow, arun, run
from conspectus.archive import Archive, RecallResult, Scope, recall_flow
from conspectus.compactor.memory import Memory
from conspectus.compactor.result import CompactionResult, Failure, Outcome
from conspectus.compactor.view import History, look, with_floors
from conspectus.compactor.work import OnEvent, Tools, Work, shown_in
from conspectus.errors import ArchiveError, InputError, PolicyError
from conspectus.messages import Source, read_messages
from conspectus.summarize import ChatModelSummarizer, ExtractiveSummarizer, Summarizer
from conspectus.tokens import TokenCounter, TokenMeter

logger = logging.getLogger("conspectus")

LOCAL = "local"
"""The tenant where none is named."""

DEFAULT_WITH_WINDOW = ("fraction", 0.85)
DEFAULT_WITHOUT = ("tokens", 170_000)
"""Triggers where none is given: those of Deep Agents, with and without a known window."""

SUMMARY_FLOOR = 160
"""Tokens below which a summary message says little beside its frame and one rule."""

AnySummarizer = Summarizer | BaseChatModel | str


class Compactor:
    """Keeps histories inside a window, and every original within reach.

    Args:
        summarizer: a `Summarizer`, a LangChain chat model, or a `provider:model` string. Default:
            the embedded `ExtractiveSummarizer`, which needs no model and no network.
        trigger: when to compact: `("tokens", N)`, `("messages", N)`, `("fraction", F)` of the
            window; a dict for conditions that must all hold; a list for alternatives. Default:
            `("fraction", 0.85)` where `window` is given, else `("tokens", 170_000)`.
        keep: how much of the newest history stays, as one such tuple. Default: 20 messages.
        window: input limit of the model that will answer, in tokens. The result always fits it.
            Default: unknown; then the smallest `tokens` trigger is what the result must fit in.
        reserved_tokens: tokens of the window for output, system prompt and tools that are not in
            the messages. Default: 0.
        archive: where originals go: an `Archive`, a LangGraph `BaseStore`, a path or a URL
            (`sqlite:///...`, `postgresql://...`, `memory:`). Without one, results say
            `archived=False`, nothing is clipped, and nothing can be recalled.
        token_counter: a LangChain `token_counter`. Default: an estimate by script.
        max_summary_tokens: the most that the whole summary message takes. Default: an eighth of
            the budget, between 256 and 4,096 tokens.
        max_summarizer_tokens: the most that one compaction may spend on a model, in tokens; the
            embedded summariser reads what that cannot pay for. Default: no cap.
        trim_tokens_to_summarize: the size of one reading, in tokens. Default: what the
            summariser's window takes. Whatever the size, everything is read.
        fallbacks: summarisers to try in turn when the first one fails.
        on_failure: when none succeeds: `"degrade"` keeps the history while there is room and uses
            the embedded summariser when there is none; `"keep"` keeps it; `"raise"` raises.
        pin: says of a message whether it must stay in view.
        clip_over: tool results and arguments older than what `keep` asks for and larger than this
            many tokens are clipped first. None switches that off. Default: 1,000.
        summarizer_timeout: seconds that one try of a summariser may take; None for no limit.
            Default: 300.
        on_event: called with a name (`start`, `attempt_failed`, `end`, `failed`) and its data.

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
        archive: Archive | BaseStore | str | Path | None = None,
        token_counter: TokenCounter | None = None,
        max_summary_tokens: int | None = None,
        max_summarizer_tokens: int | None = None,
        trim_tokens_to_summarize: int | None = None,
        fallbacks: Sequence[AnySummarizer] = (),
        on_failure: OnFailure = "degrade",
        pin: Callable[[Any], bool] | None = None,
        clip_over: int | None = 1000,
        summarizer_timeout: float | None = 300.0,
        on_event: OnEvent | None = None,
    ) -> None:
        self._window = _window(window, reserved_tokens)
        if trigger is None:
            trigger = DEFAULT_WITH_WINDOW if self._window else DEFAULT_WITHOUT
        self.policy = Policy.build(
            trigger=trigger, keep=keep, max_summary_tokens=max_summary_tokens, clip_over=clip_over
        )
        if self.policy.needs_window and self._window is None:
            raise PolicyError(
                "a fraction needs to know the window of the model that answers: pass "
                "window=<its input limit in tokens>, or use tokens or messages instead"
            )
        for caveat in self.policy.caveats:
            warnings.warn(caveat, stacklevel=2)
        if on_failure not in FAILURES:
            raise PolicyError(f"on_failure must be one of {FAILURES}, not {on_failure!r}")
        if pin is not None and not callable(pin):
            raise PolicyError(f"pin must be a callable that takes a message, not {pin!r}")
        self._pin = pin
        # With no window of its own, a history must fit what it is asked to stay below.
        self._room = budget_of(self.policy, self._window)
        self.archive = _archive(archive)
        if self.archive is None:
            logger.info("no archive was given: originals cannot be recalled after a compaction")

        def made(given: AnySummarizer) -> Summarizer:
            if isinstance(given, (str, BaseChatModel)):
                return ChatModelSummarizer(
                    given,
                    trim_tokens_to_summarize=trim_tokens_to_summarize,
                    max_summarizer_tokens=max_summarizer_tokens,
                )
            if isinstance(given, Summarizer):
                return given
            raise PolicyError(
                f"{given!r} cannot summarise: give a chat model, a 'provider:model' string, or an "
                "object with name, identity, summarize and asummarize"
            )

        embedded = ExtractiveSummarizer()
        ladder = [embedded if summarizer is None else made(summarizer), *map(made, fallbacks)]
        named: dict[str, Summarizer] = {}
        for one in ladder:
            name = one.name
            while name in named:
                name += "'"
            named[name] = one
        self._tools = Tools(
            meter=TokenMeter(token_counter),
            archive=self.archive,
            memory=Memory(),
            order=tuple(named),
            summarizers={EMBEDDED: embedded, **named},
            on_failure=on_failure,
            timeout=summarizer_timeout,
            on_event=on_event,
        )

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
            messages: LangChain messages, or dicts in OpenAI's or Anthropic's form. Never changed.
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
            ArchiveError: the archive cannot be read; what cannot be written is in the result.
            SummaryError: no summariser succeeded, and `on_failure` is `"raise"`.
        """
        scope = _scope(tenant, thread_id, session)
        return run(self._compact(messages, scope, force, focus or ""))

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
        scope = _scope(tenant, thread_id, session)
        return await arun(self._compact(messages, scope, force, focus or ""))

    def _compact(
        self, messages: Sequence[Source], scope: Scope, force: bool, focus: str
    ) -> Flow[CompactionResult]:
        tools, remembered = self._tools, self._tools.memory.of(scope)
        entries = read_messages(messages)
        known = remembered.chain
        if self.archive is not None:
            known = yield from self.archive.chain_flow(scope)
        pins = [self._pin is not None and bool(self._pin(e.source)) for e in entries]
        history = look(entries, known, tools.meter, pins)
        if entries and history.chain != tuple(known):
            # The history is that of another branch: what it has left behind is out of reach.
            remembered.chain = history.chain
            if self.archive is not None:
                head = history.head.id if history.head else None
                yield from self.archive.set_head_flow(scope, head)
        history, decided = self._plan(history, remembered.failed, force)
        if not isinstance(decided, Compact):
            stuck = not isinstance(decided, Keep)
            return self._result("stuck" if stuck else "kept", decided.reason, history, history)
        work = Work(tools, scope, history, decided, focus)
        outcome, after = yield from work.run()
        if isinstance(outcome, Failed):
            remembered.failed = history.size
            over = decided.budget is not None and decided.tokens > decided.budget
            return self._result(
                "stuck" if over else "kept",
                outcome.reason,
                history,
                history,
                cause=decided.cause,
                cost=outcome.spent,
                failed="archive" if isinstance(outcome.error, ArchiveError) else "summary",
            )
        remembered.failed = None
        notes: tuple[str, ...] = ()
        if outcome.draft is not None and outcome.draft.embedded:
            count = len(outcome.draft.embedded)
            notes = (f"{count} messages were read by the embedded summariser to stay in the cap",)
        return self._result(
            "compacted",
            "the history is within its budget" if decided.budget else "compacted as asked",
            history,
            after,
            cause=decided.cause,
            record=outcome.record,
            cost=outcome.spent,
            evicted=len(work.leaving),
            failures=outcome.failures,
            notes=notes,
        )

    def _plan(self, history: History, failed: Any, force: bool) -> tuple[History, Plan]:
        """Plan with the floors of large messages; with those of all only if that is not enough."""
        clip = self.archive is not None
        head = history.head
        last = failed or (head.size_after if head else None)

        def decide(view: History) -> Plan:
            return plan(
                view.items,
                self.policy,
                self._room,
                last=last,
                force=force,
                clip=clip,
                floor=SUMMARY_FLOOR,
            )

        if not clip:
            return history, decide(history)
        bounds = [self.policy.clip_over] if self.policy.clip_over is not None else []
        bounds += [self._room.budget // GIANT] if self._room is not None else []
        history = with_floors(history, self._tools.meter, min(bounds, default=0))
        decided = decide(history)
        if isinstance(decided, (Keep, Compact)):
            return history, decided
        history = with_floors(history, self._tools.meter, 0)
        return history, decide(history)

    def _result(
        self,
        outcome: Outcome,
        reason: str,
        before: History,
        after: History,
        *,
        cause: str = "",
        record: Record | None = None,
        cost: Cost | None = None,
        evicted: int = 0,
        failed: Failure | None = None,
        failures: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> CompactionResult:
        summary = next((r for r in reversed(after.chain) if r.summary), None)
        return CompactionResult(
            outcome=outcome,
            reason=reason,
            cause=cause,
            messages=after.sources,
            summary=summary.summary if summary else "",
            record=record,
            archived=self.archive is not None and all(r.archived for r in after.chain),
            tokens_before=before.size.tokens,
            tokens_after=after.size.tokens,
            budget=None if self._room is None else self._room.budget,
            evicted=evicted,
            kept=sum(not place.item.summary for place in after.places),
            clipped=sum(place.item.clipped for place in after.places),
            dropped=before.dropped,
            cost=cost or Cost(),
            carried=shown_in(summary.summary, summary.ledger) if summary else (),
            failed=failed,
            failures=failures,
            notes=notes,
        )

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
            NotFoundError: nothing of that name is within reach.
            ArchiveError: the archive cannot be read.
        """
        scope = _scope(tenant, thread_id, session)
        return run(self._recall(scope, query, id, range, tokens))

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
        scope = _scope(tenant, thread_id, session)
        return await arun(self._recall(scope, query, id, range, tokens))

    def _recall(
        self,
        scope: Scope,
        query: str | None,
        id: str | None,
        range: tuple[str, str] | None,
        tokens: int,
    ) -> Flow[RecallResult]:
        if self.archive is None:
            raise InputError("without an archive nothing can be recalled; pass archive=")
        chain = yield from self.archive.chain_flow(scope)
        return (
            yield from recall_flow(
                self.archive,
                scope,
                chain,
                query=query,
                id=id,
                range=range,
                tokens=tokens,
                count=self._tools.meter.text,
            )
        )


def _window(window: int | None, reserved: int) -> Window | None:
    for name, value, least in (("window", window, 1), ("reserved_tokens", reserved, 0)):
        wrong = isinstance(value, bool) or not isinstance(value, int) or value < least
        if value is not None and wrong:
            raise PolicyError(f"{name} must be a whole number of tokens, not {value!r}")
    if window is None:
        return None
    if reserved >= window:
        raise PolicyError(
            f"reserved_tokens ({reserved:,}) leaves nothing of the window ({window:,})"
        )
    return Window(window, reserved)


def _archive(given: Archive | BaseStore | str | Path | None) -> Archive | None:
    if given is None or isinstance(given, Archive):
        return given
    return Archive(given) if isinstance(given, BaseStore) else Archive.open(given)


def _scope(tenant: str | None, thread_id: str, session: str) -> Scope:
    named: Mapping[str, object] = {"thread_id": thread_id, "tenant": tenant, "session": session}
    for name, value in named.items():
        if value is None and name == "tenant":
            continue
        if not isinstance(value, str) or not value:
            raise InputError(f"{name} must be a text that names it, not {value!r}")
    return Scope(LOCAL if tenant is None else tenant, thread_id, session)
