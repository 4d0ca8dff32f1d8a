"""One look at what a model is shown, as both worlds hand it to the promises."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stateful.oracle import gone, plain, split
from stateful.summarizers import Reading


@dataclass
class Look:
    """What was shown once, and everything that an observer knows of it.

    Attributes:
        whole: what was ever said on this branch, in order.
        shown: what the model sees.
        reach: originals that the record in force answers for; None without an archive.
        covered: those of them that have left the view for good.
        kept: every original that the archive holds of this conversation.
        known: whether `reach` is that of this very moment.
        readings: what summarisers were given to read for what is in force or kept as a draft,
            since the conversation began.
        fresh: what they were given to read since the last look, whatever came of it.
        prompts: what chat models among them were sent since the last look.
        unchanged: what would be shown if nothing were done; None where that is not known.
        committed: whether a record was put in force.
        failed: something failed or was cancelled.
        trouble: the archive did.
        error: what was raised.
        records: records before and after, by place.
        heads: what is in force before and after.
        same: nothing was edited, and nobody went back, since the last look.
        budget: tokens that there are; None for no limit.
        outcome: `kept`, `compacted` or `stuck`, where it is told.
        numbers: tokens after, and needed ones.
        lines: those of the records in force, as text.
        summary: the summary in force.
        back: the reach and the view of the moment to which somebody went back.
        asked_again: nothing was said since the last look, and nothing else happened.
        calls: calls of summarisers in this look.
        forced: a compaction was asked for.
        came: what was sent, as it was before.
        archived: what the result says of it.
    """

    whole: list[Any]
    shown: list[Any]
    reach: list[Any] | None = None
    covered: int = 0
    kept: list[Any] | None = None
    known: bool = True
    readings: list[Reading] = field(default_factory=list)
    fresh: list[Reading] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    unchanged: list[str] | None = None
    committed: bool = False
    failed: bool = False
    trouble: bool = False
    error: BaseException | None = None
    records: tuple[Mapping[Any, str], Mapping[Any, str]] = ({}, {})
    heads: tuple[Any, Any] = (None, None)
    same: bool = True
    budget: int | None = None
    outcome: str = ""
    numbers: tuple[int, int | None] = (0, None)
    lines: str = ""
    summary: str = ""
    back: tuple[Counter[str], list[str]] | None = None
    asked_again: bool = False
    calls: int = 0
    forced: bool = False
    came: list[str] = field(default_factory=list)
    archived: bool | None = None
    broken: bool = False

    @property
    def parts(self) -> tuple[list[Any], list[Any], list[Any]]:
        """Summaries, messages as they were said, and others, of what is shown."""
        return split(self.shown, self.whole)

    @property
    def gone(self) -> list[Any]:
        """What was said and is not shown as it was."""
        return gone(self.parts[1], self.whole)


def counted(messages: list[Any]) -> Counter[str]:
    """Messages by all that they are."""
    return Counter(plain(message) for message in messages)


def lines_of(chain: Sequence[Any]) -> str:
    """The lines of records, as text."""
    return "\n".join(str(line) for one in chain for line in one.segment.get("lines", ()))
