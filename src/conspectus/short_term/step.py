"""Make one call: divide the history by the running summary, and let the engine do what is due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from langchain_core.messages import BaseMessage, SystemMessage

from conspectus._langchain import hide_from_streams
from conspectus._langchain import named as model_name_of
from conspectus.archive import Archive, Scope
from conspectus.core.items import Compact, Plan, Stuck, Window
from conspectus.core.plan import TOO_LARGE, oldest_first
from conspectus.core.policy import SLACK, Policy, TriggerClause
from conspectus.core.records import Chain, Record
from conspectus.engine.entry import carry_out_decision
from conspectus.engine.history import HistoryContext
from conspectus.engine.measuring import shared_out
from conspectus.engine.planning import SUMMARY_FLOOR, Decision, measured_plan
from conspectus.engine.settings import Engine, Settings
from conspectus.engine.view import View, view_of
from conspectus.errors import InputError, MessageError, StuckError
from conspectus.messages import is_summary_message, read_messages, summary_message, summary_text
from conspectus.messages.alternation import (
    alternates,
    alternating,
    as_users,
    bears_joined_mark,
    took_two_in_a_row,
    without_text,
)
from conspectus.messages.framing import summary_body
from conspectus.messages.requests import newest_user
from conspectus.observe import log
from conspectus.short_term.prompts import PromptedSummarizer, filled
from conspectus.short_term.running import (
    RunningSummary,
    SummarizationResult,
    name_of,
    read_running,
)
from conspectus.short_term.settings import SummarizationCall
from conspectus.tokens import TokenMeter

AROUND = 400  # characters of a template around a summary that is known by its text
SLACK_SHARE = 8  # the slack of a summary is at most one part in this many of its limit

Messages = Sequence[BaseMessage]


class Invocation:
    """One call; a caller's state holds only the running summary, whose name finds its records."""

    def __init__(self, call: SummarizationCall, thread: object) -> None:
        self.call = call
        self.running = read_running(call.running_summary)
        self.meter = TokenMeter(call.token_counter)
        self.limit = call.max_tokens
        before = call.max_tokens_before_summary
        # tokens that must have gathered
        self.reach: int = self.limit if before is None else before
        self.standing = self._shown(self.running.summary) if self.running else []
        self.messages = taken_apart(call.messages, self.standing)
        self.system, self.rest = divide(self.messages, self.running, self.standing)
        name = "-" if thread is None else str(thread) or "-"
        self.scope = Scope("local", name)  # which an archive alone makes use of

    def _shown(self, summary: str, system: Messages = (), rest: Messages = ()) -> list[BaseMessage]:
        """Put system message, summary and the rest together, as `final_prompt` does."""
        slots = {"system_message": list(system), "summary": summary, "messages": list(rest)}
        return filled(self.call.final_prompt, slots)

    def _size_of(self, summary: str) -> int:
        return self.meter.messages(self._shown(summary))

    def _sent(self, view: Sequence[Any]) -> list[BaseMessage]:
        """Put the messages of a view into the caller's template, as `result` does."""
        shown = [message for message in view if is_summary_message(message)]
        rest = [message for message in view if not is_summary_message(message)]
        leading = len(self.system)
        if not shown:
            return rest
        body = summary_body(str(shown[-1].content))
        return self._shown(body, rest[:leading], rest[leading:])

    def _engine(self, archive: Archive | None) -> Engine:
        call = self.call
        templates = (call.initial_summary_prompt, call.existing_summary_prompt)
        most = max(self.limit, self.reach)
        summarizer = PromptedSummarizer(call.model, templates, most, self.meter.message)
        policy = Policy(trigger=(TriggerClause(tokens=max(1, self.reach)),))
        settings = Settings(
            summarizer=summarizer,
            archive=archive,
            notes=False,
            on_failure=call.on_failure,
            redact=call.redact,
            alternate_roles=call.alternate_roles,
        )
        engine = Engine.build(settings, policy, self.meter)
        # The messages of the result are joined where it is put together.
        own_message: Any = {"summary_size": self._size_of, "sent": self._sent}
        return replace(engine, alternate=False, frame=self._size_of(""), **own_message)

    async def summarised(self, archive: Archive | None) -> tuple[RunningSummary | None, Messages]:
        """Return the running summary now, and the messages that it does not stand for."""
        running = self.running
        chain = await self._chain(archive)
        gathered, sent = self.meter.whole(self.rest), [*self.system, *self.standing, *self.rest]
        if gathered < self.reach and self.meter.whole(sent) <= self.limit:
            return running, self.rest
        history = HistoryContext(
            self._engine(archive),
            self.scope,
            Window(self.limit),
            head=chain,
            record_name=lambda record: name_of(after(record)),
        )
        view = shared_out(self._view(history, chain))
        frame = view.history.engine.frame
        share = self.call.max_summary_tokens
        base = self.meter.base
        room: Any = {"floor": frame + SUMMARY_FLOOR, "slack": min(SLACK, share // SLACK_SHARE)}
        room |= {"frame": frame, "clip": archive is not None}

        def planned(tighter: int) -> Plan:
            most = self.limit - base - tighter
            plan = oldest_first(view.items, most, self.reach - base, share, **room)
            if isinstance(plan, Stuck):
                needed = plan.needed + base
                reason = TOO_LARGE.format(needed=needed, budget=self.limit)
                return replace(plan, reason=reason, needed=needed, budget=self.limit)
            if not isinstance(plan, Compact):
                return plan
            return replace(plan, at_most=plan.at_most + base, budget=self.limit)

        plan = measured_plan(view, planned)
        needed = plan.needed if isinstance(plan, Stuck) else getattr(plan, "at_most", 0)
        if needed > self.limit:
            numbers = {"needed": needed, "budget": self.limit}
            if self.call.on_failure == "raise":
                raise StuckError(TOO_LARGE.format(**numbers), **numbers)
            log("history_does_not_fit", "%s", TOO_LARGE.format(**numbers))
        ids = {p.key: p.entry.id for p in view.items if p.entry and not p.summary}

        def after(record: Record) -> RunningSummary | None:
            left = {ids[key] for key in record.covers if key in ids}
            if not record.covers:
                return running
            left |= running.summarized_message_ids if running else set()
            last = next((m.id for m in reversed(self.messages) if m.id in left), None)
            return RunningSummary(record.summary, left, last)

        result = await carry_out_decision(Decision(view, plan))
        rest = [m for m in result.messages if not is_summary_message(m)][len(self.system) :]
        return running if result.record is None else after(result.record), rest

    async def _chain(self, archive: Archive | None) -> Chain:
        """Return the records behind the running summary; the archive's pointer goes to them."""
        if archive is None:
            return ()
        chain: Chain = await archive.flow(archive.chain_of, self.scope, name_of(self.running))
        head = chain[-1].id if chain else None
        if (await archive.flow(archive.pointer, self.scope)) not in (None, head):
            await archive.flow(archive.set_head, self.scope, head)  # for recall without a state
        summary = self.running.summary if self.running is not None else ""
        return chain if chain and chain[-1].summary in (summary, "") else ()

    def _view(self, history: HistoryContext, chain: Chain) -> View:
        """Read the history with the summary in the form in which the engine knows it."""
        between = list[Any]()
        if self.running is not None:
            head = chain[-1] if chain else None
            known: Any = {"archived": head.archived, "mark": head.mark} if head else {}
            text = summary_text(self.running.summary, **{"archived": False, **known})
            between = [summary_message(text, head.id if head else "before")]
        view = view_of(history, read_messages([*self.system, *between, *self.rest]), chain)
        size = history.engine.meter.messages(self.standing)
        items = (replace(p, tokens=size) if p.summary else p for p in view.items)
        return replace(view, items=tuple(items))

    def result(
        self, running: RunningSummary | None, rest: Messages, *, in_state: bool
    ) -> SummarizationResult:
        """Put the result together; `in_state` gives ids to messages that show the summary."""
        sent = [*self.system, *rest]
        if running is None:
            return SummarizationResult(sent)
        messages, old = self._shown(running.summary, self.system, rest), set(map(id, sent))
        new = {
            id(one): one.model_copy(update={"id": str(uuid5(NAMESPACE_URL, str(one.content)))})
            for one in messages
            if id(one) not in old
        }
        # A state gives ids to messages; of the function's caller only a stream is seen.
        if hide_from_streams(new.values()) or in_state:
            messages = [new.get(id(one), one) for one in messages]
        return SummarizationResult(self._in_turns(messages, old), running)

    def _in_turns(self, messages: list[BaseMessage], own: set[int]) -> list[BaseMessage]:
        """Join messages of the user in a row for a model that takes none.

        The summary, which is none of the caller's `own`, is then the user's, too: a second system
        message is refused like a first answer. Only the history tells of an unknown model, for
        which nothing else than the summary is joined.
        """
        joins = alternates(self.call.alternate_roles, model_name_of(self.call.model))
        if joins is None:
            shown = (one.type for one in messages if id(one) not in own)
            joins = "human" in shown and not took_two_in_a_row(read_messages(self.messages))
        elif joins:
            messages = [one if id(one) in own else as_users(one) for one in messages]
        return alternating(messages) if joins else messages


# The running summary, and the history divided by it


def taken_apart(messages: Any, standing: Messages) -> Any:
    """Return messages without the summary that a result has joined to some of them."""
    if not isinstance(messages, list) or not any(map(bears_joined_mark, messages)):
        return messages
    made: list[Any] = []
    for message in messages:
        tries = (without_text(message, str(shown.content)) for shown in standing)
        rest = next(filter(None, tries), None) if bears_joined_mark(message) else None
        made.append(message if rest is None else rest)
    return made


def divide(
    messages: Sequence[Any], running: RunningSummary | None, standing: Messages
) -> tuple[list[BaseMessage], list[BaseMessage]]:
    """Return the leading system message, and what no summary covers, with the newest question."""
    listed = isinstance(messages, Sequence) and not isinstance(messages, (str, bytes))
    for other in messages if listed else [messages]:
        if not isinstance(other, BaseMessage):
            raise MessageError(
                f"messages must be a list of LangChain messages, not of {type(other).__name__}; "
                "langchain_core.messages.convert_to_messages makes them"
            )
    # A summary is known by the ids of the messages that it stands for.
    for name, count in Counter(one.id for one in messages if one.id is not None).most_common(1):
        if count > 1:
            raise InputError(f"{count} messages have the ID {name}; give each its own")
    known = {_words(form) for one in standing for form in (one, as_users(one))}
    system: list[BaseMessage] = []
    covered = running.summarized_message_ids if running else set[str]()
    rest = [m for m in messages if _words(m) not in known]
    # Another template may have shown the summary.
    whole = len(rest) < len(messages) or any(m.id in covered for m in rest)
    text = running.summary.strip() if running and not whole else ""
    while rest and isinstance(rest[0], SystemMessage):
        said = str(rest[0].text)
        if not (text and text in said and len(said) <= len(text) + AROUND):
            if system:
                break
            system = [rest[0]]
        del rest[0]
    # A client has gone back to the newest, or another library's summary has it.
    asked = newest_user(rest)
    newest = None if asked is None else rest[asked]
    # Behind the last that was summarised, and behind a new one, only a new one may have such an id.
    ids, end = [m.id for m in rest], running.last_summarized_message_id if running else None
    new = next((at for at, name in enumerate(ids) if name not in covered), len(ids))
    for m in rest[max(new, ids.index(end) if end in ids else 0) + 1 :]:
        if m.id in covered and m is not newest:
            raise InputError(
                f"Message with ID {m.id} has already been summarized; give a new one its own id"
            )
    rest = [m for m in rest if m is newest or m.id not in covered]
    if any(m.id is None for m in rest):
        raise InputError(
            "Messages are required to have ID field. LangGraph's add_messages gives them ids; "
            "elsewhere set message.id, and let it stay the same from call to call."
        )
    return system, rest


def _words(message: BaseMessage) -> tuple[type, str]:
    return type(message), str(message.content)
