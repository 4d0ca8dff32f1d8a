"""One look at what a model is shown, as both worlds hand it to the promises."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stateful.oracle import ShownParts, not_shown, plain, split
from stateful.summarizers import Reading


@dataclass
class Look:
    """What was shown once, and everything that an observer knows of it."""

    whole: list[Any]  # what was ever said on this branch, in order
    shown: list[Any]  # what the model sees
    # originals that the record in force answers for; None: no archive
    reach: list[Any] | None = None
    covered: int = 0  # those of them that have left the view for good
    # every original that the archive holds of this conversation
    archived_originals: list[Any] | None = None
    reach_is_current: bool = True  # whether `reach` is that of this very moment
    readings: list[Reading] = field(default_factory=list)  # for what is in force or kept as a draft
    fresh: list[Reading] = field(default_factory=list)  # since the last look, whatever came of it
    prompts: list[str] = field(default_factory=list)  # what chat models were sent since then
    unchanged: list[str] | None = None  # what would be shown if nothing were done, where known
    committed: bool = False  # a record was put in force
    failed: bool = False  # something failed or was cancelled
    archive_failed: bool = False  # the archive did
    error: BaseException | None = None
    records_before: Mapping[Any, str] = field(default_factory=dict)  # stored ones, by place
    records_after: Mapping[Any, str] = field(default_factory=dict)
    head_before: Any = None  # what is in force
    head_after: Any = None
    unedited: bool = True  # nothing was edited, and nobody went back, since the last look
    budget: int | None = None
    outcome: str = ""
    tokens_after: int = 0
    needed: int | None = None  # tokens, if it is stuck
    lines: str = ""  # those of the records in force
    summary: str = ""
    # reach and view of where somebody went back
    returned_to: tuple[Counter[str], list[str]] | None = None
    asked_again: bool = False  # nothing was said since the last look, and nothing else happened
    calls: int = 0  # of summarisers in this look
    forced: bool = False
    sent_texts: list[str] = field(default_factory=list)  # what was sent, as it was before
    archived: bool | None = None
    broken: bool = False

    @property
    def parts(self) -> ShownParts:
        """What is shown, by kind."""
        return split(self.shown, self.whole)

    @property
    def not_shown(self) -> list[Any]:
        """What was said and is not shown as it was."""
        return not_shown(self.parts.said, self.whole)

    @property
    def evicted(self) -> list[Any]:
        """Originals that the records in force cover; none where that is not known."""
        is_known = self.reach_is_current and self.error is None
        return (self.reach or [])[: self.covered] if is_known else []


def counted(messages: list[Any]) -> Counter[str]:
    """Messages by all that they are."""
    return Counter(plain(message) for message in messages)


def lines_of(chain: Sequence[Any]) -> str:
    """The lines of records, as text."""
    return "\n".join(str(line) for record in chain for line in record.notes.get("lines", ()))
