"""Make one call: divide the history by the running summary, and let the engine do what is due."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from langchain_core.messages import BaseMessage, SystemMessage

from conspectus._langchain import hide_from_streams
from conspectus._newest import Newest
from conspectus.archive import Archive, Scope
from conspectus.bridge import StepTimeout
from conspectus.core.items import Compact, Keep, Plan, Size, Stuck, Window
from conspectus.core.plan import Limits, oldest_first, too_large
from conspectus.core.policy import Policy, TriggerClause, grown
from conspectus.core.records import Record
from conspectus.engine.background import Preparations
from conspectus.engine.compaction import carry_out
from conspectus.engine.memory import Memory
from conspectus.engine.settings import SLACK, Engine
from conspectus.engine.thread import SUMMARY_FLOOR, Chain, Thread
from conspectus.engine.view import History, look
from conspectus.errors import ConspectusError, InputError, MessageError, StuckError, SummaryError
from conspectus.messages import is_summary_message, read_messages, summary_message, summary_text
from conspectus.messages.recalled import is_users
from conspectus.observe import log
from conspectus.short_term.prompts import TIMEOUT, PromptedSummarizer, filled
from conspectus.tokens import TokenMeter

AROUND = 400
"""Characters of a template around a summary that is known by its text."""

SLACK_SHARE = 8
"""The slack of a summary is at most one part in this many of it, as its limit may be tiny."""

NAMES = ("summary", "summarized_message_ids", "last_summarized_message_id")

_meters: Newest[Any, TokenMeter] = Newest(8)  # they count a message once
_chains: Newest[tuple[object, str], Chain] = Newest(256)  # notes behind running summaries


@dataclass
class RunningSummary:
    """The summary so far, and the messages that it stands for.

    LangGraph's serializers bring it back; a strict one brings a dict with the same names, which is
    accepted everywhere.

    Attributes:
        summary: its text.
        summarized_message_ids: ids of the messages that it stands for.
        last_summarized_message_id: the id of the last of them in the history.

    Example:
        >>> RunningSummary("They said hello.", {"m1", "m2"}, "m2").last_summarized_message_id
        'm2'
    """

    summary: str
    summarized_message_ids: set[str]
    last_summarized_message_id: str | None


@dataclass
class SummarizationResult:
    """The result of one call.

    Attributes:
        messages: the messages to send to the model.
        running_summary: the value to pass the next time; None while nothing was summarised.
    """

    messages: list[Any]
    running_summary: RunningSummary | None = None


@dataclass(kw_only=True)
class Parameters:
    """The parameters of `summarize_messages`, and what lasts from call to call."""

    given: Mapping[str, Any]
    memory: Memory
    background: Preparations | None
    archive: Archive | None

    def __post_init__(self) -> None:
        counter = self.given["token_counter"]
        try:
            self.meter = _meters.get_or_make(counter, lambda: TokenMeter(counter))
        except TypeError:  # a counter without a hash
            self.meter = TokenMeter(counter)
        self.most: int = self.given["max_tokens"]
        before: int | None = self.given["max_tokens_before_summary"]
        self.reach = self.most if before is None else before  # tokens that must have gathered
        self.share: int = self.given["max_summary_tokens"]
        self.notes: bool = self.given["notes"]
        self.strict = self.given["on_failure"] == "raise"

    def shown(
        self,
        summary: str,
        system: Sequence[BaseMessage] = (),
        messages: Sequence[BaseMessage] = (),
    ) -> list[BaseMessage]:
        """Put system message, summary and messages together, as `final_prompt` does."""
        slots = {"system_message": list(system), "summary": summary, "messages": list(messages)}
        return filled(self.given["final_prompt"], slots)

    def size_of(self, summary: str) -> int:
        """Return the tokens of the messages that show a summary."""
        return self.meter.messages(self.shown(summary))

    def engine(self) -> Engine:
        given, meter = self.given, self.meter
        templates = given["initial_summary_prompt"], given["existing_summary_prompt"]
        most = max(self.most, self.reach)
        asked = PromptedSummarizer(given["model"], templates, most, meter.message)
        # With a prepared summary, less has gathered.
        enough = max(1, min(self.reach + self.share, self.most))
        own = {"summarizer": asked, "archive": self.archive, "summarizer_timeout": TIMEOUT}
        policy = Policy(trigger=(TriggerClause(tokens=enough),))
        engine = Engine.build({**given, **own, "background": None}, policy, meter)
        lasting: Any = {"memory": self.memory, "background": self.background}
        return replace(engine, **lasting, frame=self.size_of(""), size=self.size_of)


class Call:
    """One call; a caller's state holds only the running summary, whose name finds its records."""

    def __init__(
        self, own: Parameters, messages: Sequence[Any], running: object, thread: object
    ) -> None:
        self.own, self.given, self.thread = own, messages, thread
        self.running = read_running(running)
        self.standing = own.shown(self.running.summary) if self.running else []
        self.system, self.rest = divide(messages, self.running, self.standing)
        # Ids such as "1" are in all conversations.
        first = f"{self.rest[0].id}\0{self.rest[0].content}" if self.rest else ""
        self.scope = Scope("local", _digest(first)[:16] if thread in (None, "") else str(thread))

    async def made(self) -> tuple[RunningSummary | None, Sequence[BaseMessage]]:
        """Return the running summary now, and the messages that it does not stand for."""
        own, running, count = self.own, self.running, self.own.meter.messages
        total, chain = count(self.rest), await self._chain()
        near = own.reach * (own.background.prepare if own.background is not None else 1)
        if total < near and total + count([*self.system, *self.standing]) <= own.most:
            return running, self.rest
        thread = Turn(own.engine(), self.scope, Window(own.most), chain, own=own)
        history = await self._history(thread.engine, chain)
        plan = thread.planned(history, own.reach)
        size, memory = history.size, own.memory.of(self.scope)
        failed = memory.failure(history.head_id, size.messages, size.tokens > own.most)
        if failed is not None and not grown(size.tokens, failed.size.tokens):
            if isinstance(plan, Compact) and plan.evicted:
                plan = Keep("its latest summary failed", size.tokens)
            thread = replace(thread, engine=replace(thread.engine, background=None))
        needed = plan.needed if isinstance(plan, Stuck) else getattr(plan, "at_most", 0)
        if needed > own.most:
            reason = too_large(needed, own.most)
            if own.strict:
                raise StuckError(reason, needed=needed, budget=own.most)
            log("history_does_not_fit", "%s", reason)
        if isinstance(plan, Compact):
            refuse_equal_ids(m.id for m in self.rest)
        ids = {p.key: p.entry.id for p in history.items if p.entry and not p.summary}

        def after(record: Record) -> RunningSummary | None:
            left = {ids[key] for key in record.covers if key in ids}
            if not record.covers:
                return running
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
        rest = [m for m in result.messages if not is_summary_message(m)][len(self.system) :]
        if result.record is None:
            return running, rest
        running = after(result.record)
        if own.archive is None and own.notes:
            _chains.put((self.thread, name_of(running)), (*history.chain, result.record))
        return running, rest

    async def _chain(self) -> Chain:
        """Return the records behind the running summary; the archive's pointer goes to them."""
        archive, name = self.own.archive, name_of(self.running)
        if archive is None:
            return (_chains.get((self.thread, name)) if self.own.notes else None) or ()
        chain: Chain = await archive.flow(archive.chain_of, self.scope, name)
        head = chain[-1].id if chain else None
        if (await archive.flow(archive.pointer, self.scope)) not in (None, head):
            await archive.flow(archive.set_head, self.scope, head)  # for recall without a state
        summary = self.running.summary if self.running is not None else ""
        return chain if chain and chain[-1].summary in (summary, "") else ()

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
        size = engine.meter.messages(self.standing)
        items = (replace(p, tokens=size) if p.summary else p for p in history.items)
        return replace(history, items=tuple(items))

    def result(
        self, running: RunningSummary | None, rest: Sequence[BaseMessage], *, named: bool
    ) -> SummarizationResult:
        """Put the result together; `named` gives ids to the messages that show the summary."""
        if running is None:
            return SummarizationResult([*self.system, *rest])
        messages = self.own.shown(running.summary, self.system, rest)
        sent = {id(message) for message in (*self.system, *rest)}
        renamed = {
            id(one): one.model_copy(update={"id": str(uuid5(NAMESPACE_URL, str(one.content)))})
            for one in messages
            if id(one) not in sent
        }
        # A state gives ids to messages; of the function's caller only a stream is seen.
        if hide_from_streams(renamed.values()) or named:
            messages = [renamed.get(id(one), one) for one in messages]
        return SummarizationResult(messages, running)


@dataclass(slots=True, kw_only=True)
class Turn(Thread):
    """One history, summarised in LangMem's order."""

    own: Parameters

    def nears(self, size: Size, prepare: float) -> bool:
        return size.tokens >= self.own.reach * prepare

    def foresees(self, history: History, share: float) -> Plan:
        """Plan as if a share of the trigger had to gather."""
        return self.planned(history, math.ceil(self.own.reach * share), clip=False)

    def planned(self, history: History, reach: int, *, clip: bool = True) -> Plan:
        """Plan without clips; with them, which need an archive, only if that is not enough."""
        own, frame = self.own, self.engine.frame
        slack = min(SLACK, own.share // SLACK_SHARE)
        limits = Limits(own.most, reach, own.share, frame, frame + SUMMARY_FLOOR, slack)
        plan = oldest_first(history.items, limits, clip=False)
        fits = isinstance(plan, Compact) and plan.at_most <= own.most
        if not clip or self.engine.archive is None or fits or history.size.tokens <= limits.most:
            return plan
        return oldest_first(history.items, limits, clip=True)


# The running summary, and the history divided by it


def read_running(value: object) -> RunningSummary | None:
    """Read a running summary of a state: ours, LangMem's, or a dict."""
    if value is None:
        return None
    fields = value if isinstance(value, Mapping) else getattr(value, "__dict__", {})
    summary, ids, last = map(fields.get, NAMES)
    if not isinstance(summary, str) or not isinstance(ids, (set, frozenset, list, tuple)):
        raise InputError(
            f"running_summary must be a RunningSummary, or a dict with {', '.join(NAMES)}, not "
            f"{value!r:.200}; pass what the last call gave back, or None"
        )
    return RunningSummary(summary, set(ids), last)


def name_of(running: RunningSummary | None) -> str:
    """Name a running summary, so that the records that led to it are found."""
    if running is None:
        return "short-term\nnone"
    ids = "\0".join(sorted(map(str, running.summarized_message_ids)))
    return f"short-term\n{_digest(ids)}\n{running.summary}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def divide(
    messages: Sequence[Any], running: RunningSummary | None, standing: Sequence[BaseMessage]
) -> tuple[list[BaseMessage], list[BaseMessage]]:
    """Return the leading system message, and what no summary covers, with the newest question."""
    listed = isinstance(messages, Sequence) and not isinstance(messages, (str, bytes))
    for other in messages if listed else [messages]:
        if not isinstance(other, BaseMessage):
            raise MessageError(
                f"messages must be a list of LangChain messages, not of {type(other).__name__}; "
                "langchain_core.messages.convert_to_messages makes them"
            )
    sent, known = list(messages), set(map(_words, standing))
    covered = running.summarized_message_ids if running else set[str]()

    def shows(message: BaseMessage) -> bool:
        """Return whether a leading system message shows the summary."""
        if running is None or _words(message) in known:
            return running is not None
        whole, text = str(message.text), running.summary.strip()
        if not text or len(whole) > len(text) + AROUND or text not in whole:
            return False
        return not any(m.id in covered or _words(m) in known for m in sent)

    system: list[BaseMessage] = []
    start = 0
    while start < len(sent) and isinstance(sent[start], SystemMessage):
        if not shows(sent[start]):
            if start:
                break
            system = [sent[0]]
        start += 1
    rest = sent[start:]
    if running is not None:
        refuse_equal_ids(
            (m.id for m in rest if m.id in covered),
            "Message with ID {} has already been summarized, and another has the same ID",
        )
        newest = next((m for m in reversed(rest) if is_users(m) and _words(m) not in known), None)
        # A client has gone back to the newest, or another library's summary has it.
        rest = [m for m in rest if m is newest or m.id not in covered]
        rest = [m for m in rest if _words(m) not in known] if known else rest
    if any(m.id is None for m in rest):
        raise InputError(
            "Messages are required to have ID field. LangGraph's add_messages gives them ids; "
            "elsewhere set message.id, and let it stay the same from call to call."
        )
    return system, rest


def _words(message: BaseMessage) -> tuple[type, str]:
    return type(message), str(message.content)


def refuse_equal_ids(ids: Iterable[str | None], text: str = "{} is no ID of one message") -> None:
    """Refuse equal ids: a summary is known by the ids of the messages that it stands for."""
    for name, count in Counter(ids).most_common(1):
        if count > 1:
            raise InputError(
                f"{text.format(name)}: {count} messages have the ID {name}; give each its own"
            )
