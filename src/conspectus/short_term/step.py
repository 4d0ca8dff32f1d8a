"""Make one call: divide the history by the running summary, and let the engine do what is due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from langchain_core.messages import BaseMessage, SystemMessage

from conspectus._langchain import hide_from_streams
from conspectus._langchain import named as model_name_of
from conspectus.archive import Archive, Scope
from conspectus.core.items import Window
from conspectus.core.plan_types import Compact, Plan, Stuck
from conspectus.core.planner import TOO_LARGE, oldest_first
from conspectus.core.policy import SLACK, Clause, Policy
from conspectus.core.records import Chain, Record
from conspectus.engine.decision import SUMMARY_FLOOR, decision_of, measured_plan
from conspectus.engine.engine import CallerFormat, Engine
from conspectus.engine.entry import carry_out_decision
from conspectus.engine.history import HistoryContext, StateHoldsRecords
from conspectus.engine.measuring import share_out_count
from conspectus.engine.settings import Settings
from conspectus.engine.view import View
from conspectus.engine.viewing import view_of
from conspectus.errors import InputError, MessageError, StuckError
from conspectus.messages import is_summary_message, read_messages, summary_message, summary_text
from conspectus.messages.alternation import (
    alternating,
    as_users,
    is_marked_joined,
    joins_by_setting,
    message_after,
    took_two_in_a_row,
)
from conspectus.messages.framing import summary_body
from conspectus.messages.users import newest_user_message
from conspectus.observe import log
from conspectus.short_term.prompts import PromptedSummarizer, fill_template
from conspectus.short_term.running_summary import (
    RunningSummary,
    SummarizationResult,
    name_of,
    read_running,
)
from conspectus.short_term.settings import SummarizationCall
from conspectus.tokens import TokenMeter

MOST_CHARACTERS_AROUND = 400
"""The most characters around a summary in a template, if it is recognised by its text."""

SLACK_SHARE = 1 / 8
"""The most slack of a summary, as a share of its limit."""

Messages = Sequence[BaseMessage]


class Invocation:
    """One call. The caller's state has only the running summary; its name leads to the records."""

    def __init__(self, call: SummarizationCall, thread: object) -> None:
        self.call = call
        self.running = read_running(call.running_summary)
        self.meter = TokenMeter(call.token_counter)
        self.limit = call.max_tokens
        # Nothing is summarised below this number of tokens.
        self.threshold = self.limit
        if call.max_tokens_before_summary is not None:
            self.threshold = call.max_tokens_before_summary
        # The messages that show the running summary.
        self.summary_messages = self._in_template(self.running.summary) if self.running else []
        self.messages = without_joined_summary(call.messages, self.summary_messages)
        self.system, self.remaining = split_history(
            self.messages, self.running, self.summary_messages
        )
        name = "-" if thread is None else str(thread) or "-"
        self.scope = Scope("local", name)  # used only with an archive

    def _in_template(
        self, summary: str, system: Messages = (), remaining: Messages = ()
    ) -> list[BaseMessage]:
        """Put system message, summary and remaining messages together, as `final_prompt` does."""
        slots = {"system_message": list(system), "summary": summary, "messages": list(remaining)}
        return fill_template(self.call.final_prompt, slots)

    def _size_of(self, summary: str) -> int:
        return self.meter.count_messages(self._in_template(summary))

    def _view_in_template(self, view: Sequence[Any]) -> list[BaseMessage]:
        """Put the messages of a view into the caller's template, as `build_result` does."""
        summaries = [message for message in view if is_summary_message(message)]
        messages = [message for message in view if not is_summary_message(message)]
        if not summaries:
            return messages
        body = summary_body(str(summaries[-1].content))
        leading = len(self.system)
        return self._in_template(body, messages[:leading], messages[leading:])

    def _engine(self, archive: Archive | None) -> Engine:
        call = self.call
        templates = (call.initial_summary_prompt, call.existing_summary_prompt)
        longest = max(self.limit, self.threshold)
        summarizer = PromptedSummarizer(call.model, templates, longest, self.meter.count_message)
        policy = Policy(trigger=(Clause(tokens=max(1, self.threshold)),))
        settings = Settings(
            summarizer=summarizer,
            archive=archive,
            notes=False,
            on_failure=call.on_failure,
            check_summaries=call.check_summaries,
            redact=call.redact,
            alternate_roles=call.alternate_roles,
        )
        engine = Engine.build(settings, policy, self.meter)
        return replace(
            engine,
            joining="never",  # `build_result` joins messages
            empty_summary_tokens=self._size_of(""),
            caller_format=CallerFormat(
                summary_size=self._size_of, as_request=self._view_in_template
            ),
        )

    async def summarise(self, archive: Archive | None) -> tuple[RunningSummary | None, Messages]:
        """Summarise if due; return the running summary, and the messages it does not replace."""
        chain = await self._find_chain(archive)
        sent = [*self.system, *self.summary_messages, *self.remaining]
        has_gathered = self.meter.count_list(self.remaining) >= self.threshold
        if not has_gathered and self.meter.count_list(sent) <= self.limit:
            return self.running, self.remaining
        history = HistoryContext(
            self._engine(archive),
            self.scope,
            Window(self.limit),
            head_source=StateHoldsRecords(chain),
        )
        view = share_out_count(self._read_view(history, chain))
        ids = {item.key: item.entry.id for item in view.items if item.entry and not item.is_summary}

        def after(record: Record) -> RunningSummary | None:
            return self._running_after(record, ids)

        history = replace(view.history, label_of_record=lambda record: name_of(after(record)))
        view = replace(view, history=history)
        plan = self._plan(view, clips=archive is not None)
        result = await carry_out_decision(decision_of(view, plan))
        shown = [message for message in result.messages if not is_summary_message(message)]
        remaining = shown[len(self.system) :]
        if result.record is None:
            return self.running, remaining
        return after(result.record), remaining

    def _plan(self, view: View, *, clips: bool) -> Plan:
        """Plan as LangMem does, from the oldest message on; with `clips`, messages may be clipped.

        Raises:
            StuckError: nothing makes the history fit, and `on_failure` is `"raise"`.
        """
        frame = view.history.engine.empty_summary_tokens
        summary_tokens = self.call.max_summary_tokens
        base = self.meter.base  # tokens of a list without messages

        def planned(tighter: int) -> Plan:
            plan = oldest_first(
                view.items,
                self.limit - base - tighter,
                self.threshold - base,
                summary_tokens,
                floor=frame + SUMMARY_FLOOR,
                slack=min(SLACK, int(summary_tokens * SLACK_SHARE)),
                frame=frame,
                clip=clips,
            )
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
            reason = TOO_LARGE.format(needed=needed, budget=self.limit)
            if self.call.on_failure == "raise":
                raise StuckError(reason, needed=needed, budget=self.limit)
            log("history_does_not_fit", "%s", reason)
        return plan

    def _running_after(self, record: Record, ids: Mapping[str, str]) -> RunningSummary | None:
        """Return the running summary that a record makes; `ids` are those of messages, by key."""
        if not record.covers:
            return self.running
        covered = {ids[key] for key in record.covers if key in ids}
        if self.running is not None:
            covered |= self.running.summarized_message_ids
        last = next((m.id for m in reversed(self.messages) if m.id in covered), None)
        return RunningSummary(record.summary, covered, last)

    async def _find_chain(self, archive: Archive | None) -> Chain:
        """Return the records of the running summary; the archive's head moves to the last one."""
        if archive is None:
            return ()
        chain: Chain = await archive.call_either_way(
            archive.chain_by_signature, self.scope, name_of(self.running)
        )
        head_id = chain[-1].id if chain else ""
        if (await archive.call_either_way(archive.head_id, self.scope)) not in (None, head_id):
            # For recall without a state.
            await archive.call_either_way(archive.set_head, self.scope, head_id)
        summary = self.running.summary if self.running is not None else ""
        return chain if chain and chain[-1].summary in (summary, "") else ()

    def _read_view(self, history: HistoryContext, chain: Chain) -> View:
        """Read the history, with the summary in the form that the engine recognises."""
        summaries: list[Any] = []
        if self.running is not None:
            summaries = [_summary_message(self.running.summary, chain[-1] if chain else None)]
        entries = read_messages([*self.system, *summaries, *self.remaining])
        view = view_of(history, entries, chain)
        size = history.engine.meter.count_messages(self.summary_messages)
        items = (replace(item, tokens=size) if item.is_summary else item for item in view.items)
        return replace(view, items=tuple(items))

    def build_result(
        self, running: RunningSummary | None, remaining: Messages, *, in_state: bool
    ) -> SummarizationResult:
        """Form the result; with `in_state`, messages that show the summary get ids."""
        callers_own = [*self.system, *remaining]
        if running is None:
            return SummarizationResult(callers_own)
        messages = self._in_template(running.summary, self.system, remaining)
        own_ids = {id(message) for message in callers_own}
        with_ids = {
            id(message): _with_id(message) for message in messages if id(message) not in own_ids
        }
        # A state gives ids to all messages. For a caller of the function, only a stream needs them.
        if hide_from_streams(with_ids.values()) or in_state:
            messages = [with_ids.get(id(message), message) for message in messages]
        return SummarizationResult(self._without_user_runs(messages, own_ids), running)

    def _without_user_runs(
        self, messages: list[BaseMessage], own_ids: set[int]
    ) -> list[BaseMessage]:
        """Join user messages in a row, for a model that refuses them.

        If the model is known to refuse them, the messages of the template (all that are not in
        `own_ids`) also get the user's role, because the model would refuse a second system message,
        too. For an unknown model, the history decides, and only if the template shows the summary
        as the user's.
        """
        joins = joins_by_setting(self.call.alternate_roles, model_name_of(self.call.model))
        if joins is None:
            summary_types = (message.type for message in messages if id(message) not in own_ids)
            is_users = "human" in summary_types
            joins = is_users and not took_two_in_a_row(read_messages(self.messages))
        elif joins:
            messages = [m if id(m) in own_ids else as_users(m) for m in messages]
        return alternating(messages) if joins else messages


def _summary_message(summary: str, head: Record | None) -> Any:
    """Return the summary message that the engine recognises, for the record in force."""
    if head is None:
        return summary_message(summary_text(summary, archived=False), "before")
    return summary_message(
        summary_text(summary, archived=head.archived, number=head.notes_number), head.id
    )


def _with_id(message: BaseMessage) -> BaseMessage:
    """Return a message with an id that is made from its content."""
    name = str(uuid5(NAMESPACE_URL, str(message.content)))
    return message.model_copy(update={"id": name})


# The history, divided by the running summary


def without_joined_summary(messages: Any, summary_messages: Messages) -> Any:
    """Return messages without the summary that an earlier result has joined to some of them.

    A value that is no list of messages is returned as it is.
    """
    if not is_listing(messages) or not any(map(is_marked_joined, messages)):
        return messages
    summaries = [str(message.content) for message in summary_messages]
    return [
        _without_summary(message, summaries) if is_marked_joined(message) else message
        for message in messages
    ]


def is_listing(value: object) -> bool:
    """Tell whether a value may be a list of messages: any sequence but a text."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _without_summary(message: Any, summaries: Sequence[str]) -> Any:
    """Return a message without the first of the summaries that it begins with."""
    for summary in summaries:
        remainder = message_after(message, summary)
        if remainder:
            return remainder
    return message


def split_history(
    messages: Sequence[Any], running: RunningSummary | None, summary_messages: Messages
) -> tuple[list[BaseMessage], list[BaseMessage]]:
    """Return the leading system message, and the messages that the running summary does not cover.

    The user's newest message is always among the latter.

    Raises:
        MessageError: something is no message.
        InputError: two messages have the same id, or one has none.
    """
    _check_messages(messages)
    covered = running.summarized_message_ids if running else set[str]()
    summaries = {
        _type_and_content(form)
        for message in summary_messages
        for form in (message, as_users(message))
    }
    remaining = [message for message in messages if _type_and_content(message) not in summaries]
    # Another template may have shown the summary in a system message.
    shows_summary = len(remaining) < len(messages)
    is_whole = shows_summary or any(message.id in covered for message in remaining)
    summary = running.summary.strip() if running and not is_whole else ""
    system, remaining = _split_system(remaining, summary)
    # The newest question may be covered, if a client has gone back to it, or by another library.
    index = newest_user_message(remaining)
    newest = None if index is None else remaining[index]
    last_id = running.last_summarized_message_id if running else None
    _check_reused_ids(remaining, covered, last_id, newest)
    remaining = [m for m in remaining if m is newest or m.id not in covered]
    if any(message.id is None for message in remaining):
        raise InputError(
            "Messages are required to have ID field. LangGraph's add_messages gives them ids; "
            "elsewhere set message.id, and let it stay the same from call to call."
        )
    return system, remaining


def _split_system(
    messages: Sequence[BaseMessage], summary: str
) -> tuple[list[BaseMessage], list[BaseMessage]]:
    """Return the first leading system message, and the messages after it.

    Leading system messages that show the summary are in neither.
    """
    system: list[BaseMessage] = []
    for place, message in enumerate(messages):
        if not isinstance(message, SystemMessage):
            return system, list(messages[place:])
        content = str(message.text)
        shows_summary = bool(summary) and summary in content
        if shows_summary and len(content) <= len(summary) + MOST_CHARACTERS_AROUND:
            continue
        if system:
            return system, list(messages[place:])
        system = [message]
    return system, []


def _check_messages(messages: Any) -> None:
    """Check that messages are a list of LangChain messages, with different ids."""
    form = "messages must be a list of LangChain messages, not"
    remedy = "langchain_core.messages.convert_to_messages makes them"
    if not is_listing(messages):
        raise MessageError(f"{form} {type(messages).__name__}; {remedy}")
    for message in messages:
        if not isinstance(message, BaseMessage):
            raise MessageError(f"{form} of {type(message).__name__}; {remedy}")
    # A summary is recognised by the ids of the messages that it replaces.
    ids = Counter(message.id for message in messages if message.id is not None)
    for name, count in ids.most_common(1):
        if count > 1:
            raise InputError(f"{count} messages have the ID {name}; give each its own")


def _check_reused_ids(
    remaining: Sequence[BaseMessage],
    covered: Container[str | None],
    last_id: str | None,
    newest: BaseMessage | None,
) -> None:
    """Check that no new message has the id of a summarised one; only the newest question may.

    New messages are those after the last summarised message, and after the first new one.
    """
    ids = [message.id for message in remaining]
    first_new = next((n for n, name in enumerate(ids) if name not in covered), len(ids))
    last_covered = ids.index(last_id) if last_id in ids else 0
    for message in remaining[max(first_new, last_covered) + 1 :]:
        if message.id in covered and message is not newest:
            raise InputError(
                f"Message with ID {message.id} has already been summarized; give a new one its "
                "own id"
            )


def _type_and_content(message: BaseMessage) -> tuple[type, str]:
    return type(message), str(message.content)
