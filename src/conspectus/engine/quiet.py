"""The short path for a history with nothing due.

A loop sends its history again and again, a little longer each time. If nothing is due, the result
is the one of the call before, with the messages that have been added since. Copies of the messages'
content show whether the beginning is unchanged, so that a change in place is noticed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from operator import is_
from typing import Any

from conspectus.core.items import Size
from conspectus.core.plan_types import Keep, Plan
from conspectus.core.planner import BELOW
from conspectus.engine.history import HistoryContext
from conspectus.engine.measuring import correct_meter
from conspectus.engine.memory import QuietHistory
from conspectus.engine.result import CompactionResult
from conspectus.engine.truncated import RecentStems
from conspectus.engine.view import View, reports_of
from conspectus.errors import MessageError
from conspectus.messages import SUMMARY_LINE, Message, Source, is_summary_message, read_messages
from conspectus.messages.message import without_objects
from conspectus.messages.reading import is_unchanged
from conspectus.messages.shortening import POINTER
from conspectus.tokens import UsageReport


def _may_reuse_results(history: HistoryContext) -> bool:
    """Tell whether a result may be reused for this caller.

    A caller with a state or a count of its own may need another result for the same messages.
    """
    return not history.head_source.in_state and history.counts is None and history.ratio is None


def remember_if_quiet(view: View, plan: Plan, result: CompactionResult) -> None:
    """Remember a history with nothing due, if the next step may continue it."""
    history = view.history
    is_quiet = isinstance(plan, Keep) and not plan.preparing
    if view.is_other_branch:  # the store could not note the branch, so the next call tries again
        return
    if not is_quiet or not _may_reuse_results(history):
        return
    # If the user's newest message is a summary, it counts as one only when another message follows.
    users = [item for item in view.items if item.entry is not None and item.role == "user"]
    copies = [entry.remembered.copy for entry in view.entries]
    if None in copies or (users and is_summary_message(users[-1].source)):
        return
    estimated = view.uncorrected or view
    quiet = QuietHistory(
        received=[entry.source for entry in view.entries],
        copies=copies,
        stored_head_id=view.stored_head_id,
        head=view.head,
        # A caller may continue to use its own list.
        result=replace(result, messages=list(result.messages)),
        sizes=[item.tokens for item in estimated.items],
        reports=None if view.has_foreign_summary else estimated.reports,
        characters=sum(entry.cache_weight for entry in view.entries),
        joins=view.joins_user_messages,
        last_role=view.entries[-1].role if view.entries else None,
        recent=RecentStems().with_later(view.entries),
        stems_of_later=view.stems_of_later,
        tokens_by_caller=view.size.tokens if history.engine.meter.counts_lists else None,
    )
    history.engine.memories.quiet_histories.put(history.scope, quiet)


async def reuse_result(
    history: HistoryContext, messages: Sequence[Source]
) -> CompactionResult | None:
    """Return the result if nothing is due and the history begins with what was read before.

    None if something may be due, or if this is another history. A longer history is remembered even
    if something is due, so that later steps are as short.
    """
    memory = history.engine.memories
    before = memory.quiet_histories.get(history.scope)
    if (
        before is None
        or history.memory.latest_failure is not None
        or not _may_reuse_results(history)
    ):
        return None
    if await history.store.head_id() != before.stored_head_id:
        return None
    try:
        quiet = _extend(before, messages, history)
    except MessageError:
        return None  # reading all messages raises it again, with its place
    if quiet is None:
        return None
    if quiet.tokens_by_caller is None and history.engine.meter.counts_lists:
        quiet = replace(quiet, tokens_by_caller=history.engine.count_as_sent(quiet.result.messages))
    memory.quiet_histories.put(history.scope, quiet)
    history.memory.remember_read(quiet.recent, quiet.head.id if quiet.head else "")
    corrected = correct_meter(history, quiet.reports or (), quiet.head)
    tokens = _tokens_of(quiet, corrected)
    if not corrected.is_quiet(Size(tokens, len(quiet.sizes)), quiet.head):
        return None
    return replace(
        quiet.result,
        reason=BELOW,
        messages=list(quiet.result.messages),
        preparing=False,
        tokens_before=tokens,
        tokens_after=tokens,
        budget=history.budget,
    )


def _tokens_of(quiet: QuietHistory, corrected: HistoryContext) -> int:
    """Return the tokens of what is sent."""
    if quiet.tokens_by_caller is not None:
        return quiet.tokens_by_caller
    ratio = corrected.engine.meter.ratio
    if ratio == 1.0:
        return sum(quiet.sizes)
    # Each size is corrected by itself, as in a plan.
    return sum(math.ceil(size * ratio) for size in quiet.sizes)


def _extend(
    before: QuietHistory, messages: Sequence[Source], history: HistoryContext
) -> QuietHistory | None:
    """Return the remembered history with the messages that were added to it.

    None if the messages do not begin with the remembered ones, or if an added one may change how
    earlier ones are seen: then all must be read. Equal messages may be other objects, as in a
    request that was parsed again; then the view has the new objects.

    Raises:
        MessageError: an added message cannot be understood.
    """
    count = len(before.received)
    if not isinstance(messages, (list, tuple)) or len(messages) < count:
        return None
    beginning = _same_beginning(before, messages[:count])
    if beginning is None:
        return None
    later = read_messages(messages[count:])
    if not _may_follow(before, beginning, later):
        return None
    view = before.result.messages
    same_objects = all(map(is_, beginning, before.received))
    if not same_objects:
        replaced = {id(old): new for new, old in zip(beginning, before.received, strict=True)}
        view = [replaced.get(id(message), message) for message in view]
    sources = [entry.source for entry in later]
    view = [*view, *sources]
    sizes = [*before.sizes, *map(history.engine.meter.count_entry, later)]
    nothing_new = same_objects and not later
    return replace(
        before,
        received=[*beginning, *sources],
        copies=[*before.copies, *(entry.remembered.copy for entry in later)],
        result=replace(before.result, messages=view, kept=before.result.kept + len(later)),
        sizes=sizes,
        reports=_extended_reports(before, sources, sizes),
        characters=before.characters + sum(entry.cache_weight for entry in later),
        last_role=later[-1].role if later else before.last_role,
        recent=before.recent.with_later(later),
        tokens_by_caller=before.tokens_by_caller if nothing_new else None,
    )


def _same_beginning(before: QuietHistory, messages: Sequence[Any]) -> Sequence[Any] | None:
    """Return messages if they are those that were sent before; None if they are others.

    Objects of a provider's SDK are returned as the dicts that are sent.
    """
    if _holds_the_same(messages, before):
        return messages
    plain = without_objects(messages)
    return plain if _holds_the_same(plain, before) else None


def _holds_the_same(messages: Sequence[Any], before: QuietHistory) -> bool:
    """Tell whether messages are those that were sent, with the same content."""
    # Dicts are compared fastest.
    copies = [getattr(message, "__dict__", message) for message in messages]
    same_types = [*map(type, messages)] == [*map(type, before.received)]
    return same_types and is_unchanged(copies, before.copies)


def _may_follow(before: QuietHistory, beginning: Sequence[Any], later: Sequence[Message]) -> bool:
    """Tell whether added messages do not change how earlier ones are seen."""
    sources = [*beginning[:1], *(entry.source for entry in later)]
    if len({type(message) is dict for message in sources}) > 1:
        return False  # dicts are mixed with LangChain's messages
    for entry in later:
        if entry.remembered.copy is None:
            return False  # it must be read again each time
        if entry.stem in before.stems_of_later:
            return False  # a history that had gone back comes to where its later records may fit
        may_be_ours = entry.text.startswith(SUMMARY_LINE) or POINTER in entry.reading
        if may_be_ours or is_summary_message(entry.source):
            return False
    if not (before.joins or before.result.may_need_joining):
        return True
    roles = [before.last_role, *(entry.role for entry in later)]
    return ("user", "user") not in pairwise(roles)


def _extended_reports(
    before: QuietHistory, later: Sequence[Source], sizes: Sequence[int]
) -> list[UsageReport] | None:
    """Return the reports of usage, with those of the added messages."""
    if not later or before.reports is None:
        return before.reports
    known = len(before.sizes)
    since = before.head.messages_after if before.head else 0
    thinks = bool(before.reports) and before.reports[-1].thinks
    # `reports_of` reads the messages from a place on; it needs the sizes of those before, not them.
    not_read: list[Source] = [{}] * known
    new = reports_of([*not_read, *later], sizes, max(since, known), thinks=thinks)
    return [*before.reports, *new]
