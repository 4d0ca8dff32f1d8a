"""Answer a step with nothing due from what the step before it has read.

A loop sends its history again and again, a little longer each time. Whether its beginning is the
one that was read is told by the messages themselves, compared with copies of what they held, so
that a message that was changed in place is noticed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import Any

from conspectus.core.items import Size
from conspectus.core.records import Record
from conspectus.engine.view import History, like_of, reported, reports_of
from conspectus.messages import (
    POINTER,
    SUMMARY_LINE,
    Entry,
    Source,
    is_summary_message,
    read_messages,
)
from conspectus.tokens import Report, TokenMeter


@dataclass(frozen=True, slots=True)
class Seen:
    """A history as a caller sent it, and the view that was found of it.

    Attributes:
        sent: the caller's messages.
        held: copies of what they held.
        head: what the archive's pointer, or this process's memory, said was in force.
        chain: the records in force.
        sources: the messages in view.
        sizes: their tokens, uncorrected.
        reports: the models' reports of usage among them.
        kept, clipped, dropped: as for `CompactionResult`.
        foreign: whether a summary of another library is in view.
    """

    sent: list[Source]
    held: list[Any]
    head: object
    chain: tuple[Record, ...]
    sources: list[Source]
    sizes: list[int]
    reports: list[Report]
    kept: int
    clipped: int
    dropped: int
    foreign: bool

    def __len__(self) -> int:
        return len(self.sent)

    @classmethod
    def of(cls, messages: Sequence[Source], history: History, head: object) -> Seen:
        """Remember a history, measured and not corrected."""
        places = history.places
        return cls(
            sent=list(messages),
            held=[_copied(_state(one)) for one in messages],
            head=head,
            chain=history.chain,
            sources=history.sources,
            sizes=[one.item.tokens for one in places],
            reports=reports_of(history),
            kept=sum(not one.item.summary for one in places),
            clipped=sum(one.item.clipped for one in places),
            dropped=history.dropped,
            foreign=any(one.item.summary and one.entry is not None for one in places),
        )

    def beginning(self, messages: Sequence[Source]) -> Seen | None:
        """Return this history where the messages begin with it, unchanged; else None.

        Equal messages may be other objects, as in a request that was read anew: then the view has
        those, as it is of the caller's own.
        """
        if not isinstance(messages, (list, tuple)):
            return None
        now = messages[: len(self.sent)]
        if len(now) < len(self.sent):
            return None
        try:
            if not all(
                type(one) is type(before) and _state(one) == held
                for one, before, held in zip(now, self.sent, self.held, strict=True)
            ):
                return None
        except Exception:  # values that cannot be compared, such as arrays
            return None
        if all(map(is_, now, self.sent)):
            return self
        own = {id(before): one for one, before in zip(now, self.sent, strict=True)}
        if len(own) < len(self.sent):  # one object stood in two places
            return None
        return replace(
            self, sent=list(now), sources=[own.get(id(one), one) for one in self.sources]
        )

    def followed(self, messages: Sequence[Source], meter: TokenMeter) -> Seen | None:
        """Return the history with the messages after those that were sent.

        None if one of them may change how the earlier ones are seen, so that all must be read.
        """
        later = messages[len(self.sent) :]
        if not later:
            return self
        if like_of(later) is not like_of(self.sent):
            return None
        entries = read_messages(later)
        if any(map(_is_special, entries)):
            return None
        before = self.chain[-1].messages_after if self.chain else 0
        tokens, sizes, reports = sum(self.sizes), [*self.sizes], [*self.reports]
        for message, entry in zip(later, entries, strict=True):
            size = meter.entry(entry)
            told = reported(message)
            if told and not self.foreign and len(sizes) >= before:
                reports.append(Report(tokens, told))
            sizes.append(size)
            tokens += size
        return replace(
            self,
            sent=[*self.sent, *later],
            held=[*self.held, *(_copied(_state(one)) for one in later)],
            sources=[*self.sources, *later],
            sizes=sizes,
            reports=reports,
            kept=self.kept + len(later),
        )

    def size(self, ratio: float) -> Size:
        """Return the size of the view, corrected message by message as a plan does."""
        tokens = sum(self.sizes)
        if ratio != 1.0:
            tokens = sum(math.ceil(one * ratio) for one in self.sizes)
        return Size(tokens, len(self.sizes))


def _is_special(entry: Entry) -> bool:
    """Tell whether a message may change how those before it are seen."""
    if is_summary_message(entry.source):
        return True
    return entry.text.startswith(SUMMARY_LINE) or POINTER in entry.reading


def _state(message: Source) -> Any:
    """Return all that a message holds."""
    if isinstance(message, Mapping):
        return message if isinstance(message, dict) else dict(message)
    return [vars(message), getattr(message, "__pydantic_extra__", None)]


def _copied(value: Any) -> Any:
    """Copy dicts and lists; what they hold besides is compared by identity or equality."""
    if isinstance(value, Mapping):
        return {key: _copied(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_copied(one) for one in value]
    return value
