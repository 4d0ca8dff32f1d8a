"""A history with nothing due, as it was sent and read, and the result of the next step from it.

A loop sends its history again and again, a little longer each time. A step with nothing due gives
the result of the one before, with the messages that have come since. Copies of what the messages
held show whether the beginning is the one that was read, so that a change in place is noticed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import Any

from conspectus.core.items import Size
from conspectus.core.plan import BELOW
from conspectus.core.records import Record
from conspectus.engine.result import CompactionResult
from conspectus.engine.thread import Thread
from conspectus.engine.view import History, reports_of
from conspectus.errors import MessageError
from conspectus.messages import (
    POINTER,
    SUMMARY_LINE,
    Message,
    Source,
    is_summary_message,
    read_messages,
)
from conspectus.tokens import Report, TokenMeter


@dataclass(frozen=True, slots=True)
class Seen:
    """A history with nothing due, as it was sent and read."""

    sent: list[Source]  # the caller's messages, and copies of what they held
    held: list[Mapping[str, Any]]
    pointer: object  # what the archive, or this process's memory, said was in force
    head: Record | None
    result: CompactionResult
    sizes: list[int]  # tokens of the messages in view, without a correction
    reports: list[Report] | None  # the models' reports of usage; None after another's summary
    characters: int  # of all messages, images included

    def followed(self, messages: Sequence[Source], meter: TokenMeter) -> Seen | None:
        """Return the history with the messages after those that were sent.

        None if the messages do not begin with those, or if a new one may change how earlier ones
        are seen: then all must be read. Equal messages may be other objects, as in a request that
        was read anew; the view has those then.

        Raises:
            MessageError: a new message cannot be understood.
        """
        count = len(self.sent)
        if not isinstance(messages, (list, tuple)) or len(messages) < count:
            return None
        now, later = messages[:count], messages[count:]
        try:
            same = [*map(type, now)] == [*map(type, self.sent)]
            if not same or [*map(_held, now)] != self.held:
                return None
        except Exception:  # values that cannot be compared, such as arrays
            return None
        view = self.result.messages
        if not all(map(is_, now, self.sent)):
            again = {id(before): message for message, before in zip(now, self.sent, strict=True)}
            view = [again.get(id(message), message) for message in view]
        if len({type(message) is dict for message in (*now[:1], *later)}) > 1:
            return None  # a dict among LangChain's messages, or the other way round
        entries = read_messages(later)
        held = [entry.memo["copy"] for entry in entries]
        if None in held:
            return None
        for entry in entries:
            mark = entry.text.startswith(SUMMARY_LINE) or POINTER in entry.reading
            if mark or is_summary_message(entry.source):
                return None
        sizes, view = [*self.sizes, *map(meter.entry, entries)], [*view, *later]
        reports, since = self.reports, self.head.messages_after if self.head else 0
        if later and reports is not None:
            reports = [*reports, *reports_of(view, sizes, max(since, len(self.sizes)))]
        kept = self.result.kept + len(later)
        return replace(
            self,
            sent=[*now, *later],
            held=[*self.held, *held],
            result=replace(self.result, messages=view, kept=kept),
            sizes=sizes,
            reports=reports,
            characters=self.characters + sum(entry.memo["size"] for entry in entries),
        )


def _held(message: Source) -> Any:
    """Return what a message holds now; a dict itself, which is compared fastest."""
    return message if type(message) is dict else vars(message)


def _by_sizes(thread: Thread) -> bool:
    """Tell whether sizes alone decide steps of such a caller while nothing is due."""
    alone = thread.head is None and thread.trigger_size is None and thread.ratio is None
    return alone and thread.engine.policy.arguments is None


async def remember(
    thread: Thread, entries: Sequence[Message], history: History, result: CompactionResult
) -> None:
    """Remember a history with nothing due, if the next step may go on from it."""
    engine = thread.engine
    # The last one is no summary only as it comes last.
    users = [item for item in history.items if item.entry is not None and item.role == "user"]
    held = [entry.memo["copy"] for entry in entries]
    if not _by_sizes(thread) or (users and is_summary_message(users[-1].source)):
        return
    if None in held:  # one that is to be read anew each time
        return
    pointer = thread.pointer if engine.archive else await thread.in_force()
    seen = Seen(
        sent=[entry.source for entry in entries],
        held=held,
        pointer=pointer,
        head=history.head,
        result=replace(result, messages=list(result.messages)),  # a caller may go on with its own
        sizes=[item.tokens for item in history.items],
        reports=None if history.foreign else history.reports(),
        characters=sum(entry.memo["size"] for entry in entries),
    )
    engine.memory.histories.put(thread.scope, seen)


async def as_before(
    thread: Thread, messages: Sequence[Source], seen: Seen
) -> CompactionResult | None:
    """Return the result where nothing is due and the history begins with what was read before."""
    memory, scope = thread.engine.memory, thread.scope
    if memory.of(scope).failed is not None or not _by_sizes(thread):
        return None
    if await thread.in_force() != seen.pointer:
        return None
    try:
        now = seen.followed(messages, thread.engine.meter)
    except MessageError:
        return None  # raised again, with its place, where all are read
    if now is None:
        return None
    seen = now
    memory.histories.put(scope, seen)
    corrected = thread.corrected(seen.reports or ())
    ratio = corrected.engine.meter.ratio
    # Corrected message by message, as a plan does.
    tokens = sum(seen.sizes if ratio == 1.0 else (math.ceil(size * ratio) for size in seen.sizes))
    if not corrected.is_quiet(Size(tokens, len(seen.sizes)), seen.head):
        return None
    return replace(
        seen.result,
        reason=BELOW,
        messages=list(seen.result.messages),
        tokens_before=tokens,
        tokens_after=tokens,
        budget=thread.budget,
        preparing=False,
    )
