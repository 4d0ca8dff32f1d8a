"""Hold the parameters, and make one call: divide the history, summarise what is due."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5
from weakref import ref

from langchain_core.messages import BaseMessage

from conspectus._langchain import hide_from_streams
from conspectus._newest import Newest
from conspectus.archive import Archive, Scope
from conspectus.bridge import StepTimeout, io
from conspectus.core.items import Compact, Keep, Plan, Size, Stuck, Window
from conspectus.core.oldest_first import Limits, oldest_first, too_large
from conspectus.core.policy import Policy, TriggerClause, grown, whole
from conspectus.core.records import Record
from conspectus.engine.background import Preparations
from conspectus.engine.compaction import carry_out
from conspectus.engine.memory import Memory
from conspectus.engine.settings import SLACK, Engine, check_settings, open_archive
from conspectus.engine.thread import SUMMARY_FLOOR, Chain, Thread
from conspectus.engine.view import SMALL, History, look, with_floors
from conspectus.errors import (
    ArchiveError,
    ConspectusError,
    InputError,
    PolicyError,
    StuckError,
    SummaryError,
)
from conspectus.messages import is_summary_message, read_messages, summary_message, summary_text
from conspectus.observe import log
from conspectus.short_term.prompts import (
    TIMEOUT,
    PromptedSummarizer,
    shown,
)
from conspectus.short_term.running_summary import (
    RunningSummary,
    SummarizationResult,
    divide,
    name_of,
    read_running,
    refuse_equal_ids,
)
from conspectus.tokens import TokenMeter
from conspectus.tokens.counters import MessageCounter

TokenCounter = Callable[[Iterable[Any]], int]
"""LangMem's name. Fractions are rounded up."""

PARAMETERS = (
    *("model", "max_tokens", "max_tokens_before_summary", "max_summary_tokens", "token_counter"),
    *("initial_summary_prompt", "existing_summary_prompt", "final_prompt"),
    *("archive", "on_failure", "redact", "notes", "background"),
)

SLACK_SHARE = 8
"""The slack of a summary is at most one part in this many of it, as its limit may be tiny."""

COUNTERS, SIZES, CHAINS = 8, 65_536, 256
"""Counters, sizes of messages by each, and running summaries whose notes are in memory."""


class Counts:
    """A caller's counter, which is asked once for each message object."""

    def __init__(self, counter: TokenCounter) -> None:
        estimate = TokenMeter()
        self._count = MessageCounter(counter, estimate.message)
        self._sizes: Newest[int, tuple[ref[BaseMessage], int]] = Newest(SIZES)

    @classmethod
    def of(cls, counter: TokenCounter) -> Counts:
        try:
            return _counts.get_or_make(counter, lambda: cls(counter))
        except TypeError:  # a counter without a hash
            return cls(counter)

    def __call__(self, message: BaseMessage) -> int:
        known = self._sizes.get(id(message))
        if known is None or known[0]() is not message:
            known = (ref(message), self._count(message))
            self._sizes.put(id(message), known)
        return known[1]

    def all(self, messages: Iterable[BaseMessage]) -> int:
        return sum(map(self, messages))


_counts: Newest[Any, Counts] = Newest(COUNTERS)
_chains: Newest[tuple[object, str], Chain] = Newest(CHAINS)


class ShortTerm:
    """The parameters, as attributes that are read at each call; `summarize_messages` has them."""

    if TYPE_CHECKING:  # the parameters

        def __getattr__(self, name: str) -> Any: ...

    def _begin(self, given: Mapping[str, Any]) -> None:
        vars(self).update({name: given[name] for name in PARAMETERS if name in given})
        self.check()
        self.memory, self._background = Memory(), Preparations.of(given.get("background"))

    def check(self) -> None:
        """Raise `PolicyError` for an invalid parameter."""
        whole(self.max_tokens, "max_tokens")
        whole(self.reach, "max_tokens_before_summary", 0)
        whole(self.max_summary_tokens, "max_summary_tokens", 0)
        if self.max_summary_tokens >= self.max_tokens:
            # The first sentence is the one that users of LangMem look for.
            raise PolicyError(
                "`max_summary_tokens` must be less than `max_tokens`. They are "
                f"{self.max_summary_tokens:,} and {self.max_tokens:,}, which leaves no room for "
                "any message."
            )
        if not callable(getattr(self.model, "invoke", None)):
            raise PolicyError(
                "model must have a method invoke that takes a list of messages, and "
                f"{self.model!r:.200} has none; give a LangChain chat model"
            )
        if not callable(self.token_counter):
            raise PolicyError(
                "token_counter must be a callable that takes a list of messages and returns their "
                f"tokens, not {self.token_counter!r:.200}"
            )
        check_settings(vars(self))

    @property
    def reach(self) -> int:
        """Tokens that gather before anything is summarised."""
        before: int | None = self.max_tokens_before_summary
        most: int = self.max_tokens
        return most if before is None else before

    def summary_size(self, summary: str) -> int:
        """Count the tokens of the messages that show a summary."""
        return Counts.of(self.token_counter).all(shown(self.final_prompt, summary))

    def engine(self, archive: Archive | None) -> Engine:
        """Return the engine of a call."""
        count = Counts.of(self.token_counter)
        templates = self.initial_summary_prompt, self.existing_summary_prompt
        asked = PromptedSummarizer(self.model, templates, max(self.max_tokens, self.reach), count)
        # With a prepared summary, less has gathered.
        enough = max(1, min(self.reach + self.max_summary_tokens, self.max_tokens))
        own = {"summarizer": asked, "archive": archive, "summarizer_timeout": TIMEOUT}
        policy = Policy(trigger=(TriggerClause(tokens=enough),))
        engine = Engine.build({**vars(self), **own}, policy, TokenMeter(count.all))
        return replace(
            engine,
            memory=self.memory,
            background=self._background,
            frame=self.summary_size(""),
            size=self.summary_size,
        )

    async def call(
        self, messages: Sequence[Any], given: object, thread: object, *, named: bool = False
    ) -> SummarizationResult:
        """Make one call; `named` gives ids to the messages that show the summary."""
        self.check()
        step = Step(self, messages, read_running(given), thread, named)
        if self.archive is None:
            return await step.run(None)
        if thread in (None, ""):
            raise InputError(
                "archive= needs to know the conversation: pass thread_id=, or call it in a graph "
                'whose config has {"configurable": {"thread_id": ...}}'
            )
        try:
            archive = await io(lambda: open_archive(self.archive))
            try:
                return await step.run(archive)
            finally:
                if archive is not None and archive is not self.archive:
                    archive.close()
        except ArchiveError as error:
            if self.on_failure == "raise":
                raise
            said = "the archive cannot be read for now, nothing is summarised: %s"
            log("history_kept", said, error)
            return step.result(step.running, step.rest)


class Step:
    """One call; a caller's state holds only the running summary, whose name finds its records."""

    def __init__(
        self,
        own: ShortTerm,
        messages: Sequence[Any],
        running: RunningSummary | None,
        thread: object,
        named: bool,
    ) -> None:
        self.own, self.running, self.thread, self.named = own, running, thread, named
        self.standing = shown(own.final_prompt, running.summary) if running else []
        self.given = messages
        self.system, self.rest = divide(messages, running, self.standing)
        # Ids such as "1" are in all conversations.
        first = f"{self.rest[0].id}\0{self.rest[0].content}" if self.rest else ""
        digest = hashlib.sha256(first.encode("utf-8", "replace")).hexdigest()[:16]
        self.scope = Scope("local", digest if thread in (None, "") else str(thread))

    async def run(self, archive: Archive | None) -> SummarizationResult:
        own, running, count = self.own, self.running, Counts.of(self.own.token_counter)
        total, chain = count.all(self.rest), await self._chain(archive)
        near = own.reach * (own._background.prepare if own._background is not None else 1)
        if total < near and total + count.all([*self.system, *self.standing]) <= own.max_tokens:
            return self.result(running, self.rest)
        thread = Turn(own.engine(archive), self.scope, Window(own.max_tokens), chain, own=own)
        history, plan = thread.planned(await self._history(thread.engine, chain), own.reach)
        size = history.size
        memory = own.memory.of(self.scope)
        failed = memory.failure(history.head_id, size.messages, size.tokens > own.max_tokens)
        if failed is not None and not grown(size.tokens, failed.size.tokens):
            if isinstance(plan, Compact) and plan.evicted:
                plan = Keep("its latest summary failed", size.tokens)
            thread = replace(thread, engine=replace(thread.engine, background=None))
        self._complain_of(plan)
        if isinstance(plan, Compact):
            refuse_equal_ids(m.id for m in self.rest)
        ids = {p.key: p.entry.id for p in history.places if p.entry and not p.summary}

        def after(record: Record) -> RunningSummary | None:
            if not record.covers:
                return running
            left = {ids[key] for key in record.covers if key in ids}
            left |= running.summarized_message_ids if running else set()
            last = next((m.id for m in reversed(self.given) if m.id in left), None)
            return RunningSummary(record.summary, left, last)

        thread.names = lambda record: name_of(after(record))
        try:
            result = await carry_out(thread, history, plan)
        except SummaryError as error:
            cause = error.__cause__
            while isinstance(cause, ConspectusError):
                cause = cause.__cause__
            if isinstance(cause, Exception) and not isinstance(cause, StepTimeout):
                raise cause from None  # as LangMem does
            raise
        now = running if result.record is None else after(result.record)
        if result.record is not None and archive is None and own.notes:
            _chains.put((self.thread, name_of(now)), (*history.chain, result.record))
        rest = [m for m in result.messages if not is_summary_message(m)]
        return self.result(now, rest[len(self.system) :])

    async def _chain(self, archive: Archive | None) -> Chain:
        """Return the records behind the running summary; the archive's pointer goes to them."""
        running, name = self.running, name_of(self.running)
        if archive is None:
            return (_chains.get((self.thread, name)) if self.own.notes else None) or ()
        chain: Chain = await archive.flow(archive.chain_of, self.scope, name)
        head = chain[-1].id if chain else None
        if (await archive.flow(archive.pointer, self.scope)) not in (None, head):
            await archive.flow(archive.set_head, self.scope, head)  # for recall without a state
        said = running.summary if running is not None else ""
        return chain if chain and chain[-1].summary in (said, "") else ()

    async def _history(self, engine: Engine, chain: Chain) -> History:
        """Read the history with the summary in the form in which the engine knows it."""
        between = list[Any]()
        if self.running is not None:
            head = chain[-1] if chain else None
            mark = {"mark": head.mark} if head else {}
            archived = head is not None and head.archived
            text = summary_text(self.running.summary, archived=archived, **mark)
            between = [summary_message(text, head.id if head else "before")]
        history = await look(engine, read_messages([*self.system, *between, *self.rest]), chain)
        size = sum(map(engine.meter.message, self.standing))
        places = (
            replace(place, tokens=size) if place.summary else place for place in history.places
        )
        return replace(history, places=tuple(places))

    def _complain_of(self, plan: Plan) -> None:
        """Say, or raise, that a plan does not fit."""
        needed = plan.needed if isinstance(plan, Stuck) else getattr(plan, "at_most", 0)
        budget = self.own.max_tokens
        if needed <= budget:
            return
        reason = too_large(needed, budget)
        if self.own.on_failure == "raise":
            raise StuckError(reason, needed=needed, budget=budget)
        log("history_does_not_fit", "%s", reason)

    def result(
        self, running: RunningSummary | None, rest: Sequence[BaseMessage]
    ) -> SummarizationResult:
        if running is None:
            return SummarizationResult([*self.system, *rest])
        made = shown(self.own.final_prompt, running.summary, self.system, rest)
        sent = {id(message) for message in (*self.system, *rest)}
        named = {
            id(one): one.model_copy(update={"id": str(uuid5(NAMESPACE_URL, str(one.content)))})
            for one in made
            if id(one) not in sent
        }
        # A state gives ids to messages; of the function's caller only a stream is seen.
        if hide_from_streams(named.values()) or self.named:
            made = [named.get(id(one), one) for one in made]
        return SummarizationResult(made, running)


@dataclass(slots=True, kw_only=True)
class Turn(Thread):
    """One history, summarised in LangMem's order."""

    own: ShortTerm

    def nears(self, size: Size, prepare: float) -> bool:
        return size.tokens >= self.own.reach * prepare

    def foresees(self, history: History, share: float) -> tuple[History, Plan]:
        """Plan as if a share of the trigger had to gather."""
        return self.planned(history, math.ceil(self.own.reach * share), clip=False)

    def planned(self, history: History, reach: int, *, clip: bool = True) -> tuple[History, Plan]:
        """Plan without clips; with them, which need an archive, only if that is not enough."""
        own, frame = self.own, self.engine.frame
        share = own.max_summary_tokens
        slack = min(SLACK, share // SLACK_SHARE)
        limits = Limits(own.max_tokens, reach, share, frame, frame + SUMMARY_FLOOR, slack)
        plan = oldest_first(history.places, limits, clip=False)
        fits = isinstance(plan, Compact) and plan.at_most <= own.max_tokens
        if not clip or self.engine.archive is None or fits or history.size.tokens <= limits.most:
            return history, plan
        history = with_floors(history, self.engine, SMALL)
        return history, oldest_first(history.places, limits, clip=True)
