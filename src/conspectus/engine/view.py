"""The view of one history: what the model sees, message by message, with sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise

from conspectus._langchain import is_ai_message
from conspectus.core.items import Item, Size
from conspectus.core.records import Chain, Record, RecordedClip
from conspectus.engine.engine import Engine
from conspectus.engine.history import HistoryContext
from conspectus.messages import (
    Message,
    Source,
)
from conspectus.messages.alternation import (
    JoinedMessage,
    alternating,
    rejoined,
)
from conspectus.messages.message import has_thoughts
from conspectus.messages.shortening import smallest_clip
from conspectus.tokens import UsageReport

NEVER_CLIPPED = 80
"""Messages of up to so many tokens are never clipped: the pointer takes as many."""


@dataclass(kw_only=True)
class ViewItem(Item):
    """One message of the view: the item of a plan, with the message itself."""

    source: Source
    engine: Engine | None = None  # measures its least size when a plan asks for it
    entry: Message | None = None  # the message as it was sent; None for the summary in force
    came_clipped: bool = False  # the entry is a clip that came back, not the original
    recorded_clip: RecordedClip | None = None  # what its record says of it, if it is a clip
    media_stay: bool = False  # it is the user's newest message, whose images and files stay

    @property
    def is_summary_in_force(self) -> bool:
        """Whether it is the summary in force: of all items only this one has no entry."""
        return self.entry is None

    @property
    def is_foreign_summary(self) -> bool:
        """Whether it is a summary without a record: another library's, or one that was pasted."""
        return self.is_summary and not self.is_summary_in_force

    @cached_property
    def least(self) -> int:
        engine = self.engine
        if engine is None or engine.clip_pointer is None or self.entry is None:
            return self.tokens
        if self.tokens <= NEVER_CLIPPED:
            return self.tokens
        count = engine.meter.count_message
        smallest = smallest_clip(self.entry, count, engine.clip_pointer, media_stay=self.media_stay)
        return min(self.tokens, smallest)


@dataclass(frozen=True, eq=False)
class View:
    """A history, with its records folded over it: what the model sees.

    `history.engine` has the meter by which the items were measured.
    """

    history: HistoryContext
    items: tuple[ViewItem, ...]
    chain: Chain  # the records that belong to the history
    entries: Sequence[Message]  # the caller's messages, as read
    as_dicts: bool  # the caller sends dicts, so the summary message is one
    dropped: int = 0  # messages that were left out because the records cover them
    stored_head_id: str = ""  # id of the record that the store names as in force; empty if none
    # of the messages that later records cover, which do not fit this history yet
    stems_of_later: frozenset[str] = frozenset()
    is_other_branch: bool = False  # the store names other records than those of this history
    received_joined: tuple[JoinedMessage, ...] = ()
    # no model has answered two messages of the user in a row in this history, so it may refuse them
    may_need_joining: bool = False
    joins_user_messages: bool = False  # messages of the user in a row are sent as one
    clients_own: frozenset[str] = frozenset()  # as in `Folded`
    uncorrected: View | None = None  # this view before its sizes were corrected; None if never
    counted_size: Size | None = None  # of the whole list by a caller's counter, shared by `items`

    @cached_property
    def head(self) -> Record | None:
        """The record in force."""
        return self.chain[-1] if self.chain else None

    @cached_property
    def head_id(self) -> str:
        """The id of the record in force; empty if there is none."""
        return self.head.id if self.head else ""

    @cached_property
    def sources(self) -> list[Source]:
        """The messages of the view, each by itself."""
        return [item.source for item in self.items]

    @cached_property
    def has_foreign_summary(self) -> bool:
        """Whether a summary of another library is in view."""
        return any(item.is_foreign_summary for item in self.items)

    @cached_property
    def sent(self) -> list[Source]:
        """The messages of the view as they are sent: those of the user in a row may be joined."""
        if self.joins_user_messages:
            return alternating(self.sources, self.received_joined)
        return (
            rejoined(self.sources, self.received_joined) if self.received_joined else self.sources
        )

    @cached_property
    def size(self) -> Size:
        """The size of the view as it is sent, by a caller's counter or by the meter."""
        if self.counted_size is not None:
            return self.counted_size
        counted = self.history.engine.count_as_sent(self.sent)
        if counted is None:
            counted = sum(item.tokens for item in self.items)
        return Size(counted, len(self.items))

    @cached_property
    def reports(self) -> list[UsageReport]:
        """The models' reports of usage since the last compaction.

        Earlier reports counted messages that have left. After another library's summary no report
        can be used.
        """
        if self.has_foreign_summary:
            return []
        since = self.head.messages_after if self.head else 0
        return reports_of(self.sources, [item.tokens for item in self.items], since)

    def with_meter_of(self, history: HistoryContext) -> View:
        """Return it with the tokens of each message as a corrected meter counts them."""
        engine = history.engine
        ratio = engine.meter.ratio
        items = tuple(
            replace(item, tokens=math.ceil(item.tokens * ratio), engine=engine)
            for item in self.items
        )
        return replace(self, history=history, items=items, uncorrected=self)

    def with_sizes(self, history: HistoryContext, sizes: Sequence[int], tokens: int) -> View:
        """Return it with `tokens` divided among its messages, each in proportion to its size.

        The meter of `history` measures new messages, such as a summary, in the same tokens.
        """
        ratio = tokens / sum(sizes)
        bounds = [0, *(round(total * ratio) for total in accumulate(sizes))]
        items = tuple(
            replace(item, tokens=end - begin, engine=history.engine)
            for item, (begin, end) in zip(self.items, pairwise(bounds), strict=True)
        )
        uncorrected = self.uncorrected or self
        return replace(
            self, history=history, items=items, uncorrected=uncorrected, counted_size=self.size
        )


def reports_of(
    messages: Sequence[Source], sizes: Sequence[int], since: int, *, thinks: bool = False
) -> list[UsageReport]:
    """Return the models' reports of usage from the place `since` on.

    `thinks` says that an answer before that place had thoughts.
    """
    before = [0, *accumulate(sizes)]
    reports: list[UsageReport] = []
    for place in range(since, len(messages)):
        message = messages[place]
        # Other messages have no usage, and pydantic is slow to say so.
        usage = message.usage_metadata if is_ai_message(message) else None
        tokens = usage.get("input_tokens") if isinstance(usage, Mapping) else None
        if isinstance(tokens, int) and tokens > 0:  # a provider may report anything
            thinks = thinks or has_thoughts(message)
            reports.append(UsageReport(before[place], tokens, thinks))
    return reports
