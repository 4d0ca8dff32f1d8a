"""How long a summary may be, and the checks that it must pass before it is in force."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from conspectus._core.items import Compact
from conspectus._core.policy import LARGEST_SUMMARY, REARM, SMALLEST_SUMMARY
from conspectus._core.records import Draft
from conspectus.compactor.drafts import body_of, uncited
from conspectus.compactor.tools import SLACK, Tools
from conspectus.errors import SummaryRejected
from conspectus.ledger import Ledger
from conspectus.messages import Entry
from conspectus.summarize import FLOOR, cut_short, problems


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long a summary message may be, in tokens.

    Attributes:
        asked: what the summariser is asked for at most.
        fine: up to which a longer one is used as it came: the budget leaves room to grow, and
            summaries of summaries do not outgrow their summariser. Above it a shorter one is asked
            for.
        most: what it may take at all: what it stands for, what fits, what a caller has set.
        replaced: what it stands for.
        may_be_cut: a caller has set a length, and wants that rather than no summary.
    """

    asked: int
    fine: int
    most: int
    replaced: int
    may_be_cut: bool

    @classmethod
    def of(cls, plan: Compact, replaced: int, stays: int, alone: bool = False) -> Lengths:
        """The lengths of one compaction.

        Args:
            plan: the plan.
            replaced: tokens that the summary stands for.
            stays: tokens that stay in view beside it.
            alone: in a tiny budget it is enough that the summary fits by itself, as LangMem has it.
        """
        asked = min(plan.summary_tokens, max(FLOOR, replaced))
        most = max(FLOOR, replaced)
        if plan.summary_cap is not None:
            most = min(most, plan.summary_cap)
        fine = most if plan.summary_cap is not None else min(most, LARGEST_SUMMARY)
        if plan.budget is not None:
            most = min(most, plan.budget - stays)
            fine = min(fine, int(plan.budget / REARM) - stays)
            if alone and plan.budget < SMALLEST_SUMMARY:
                most = fine = max(most, plan.budget)
        return cls(
            asked, max(asked, fine), max(asked, most), replaced, plan.summary_cap is not None
        )

    def exceeded_by(self, draft: Draft, tokens: int) -> tuple[str, ...]:
        """Say why a summariser's own text is too long, one short sentence a reason; empty if not.

        Args:
            draft: what it has written.
            tokens: size of the message that shows it.
        """
        return problems(draft, (), tokens=tokens, replaced=self.replaced, limit=self.most)


def refused(by: str, draft: Draft, wrong: tuple[str, ...]) -> SummaryRejected:
    """The error of a text that cannot be used; it tells what the text has cost.

    Args:
        by: who has written it.
        draft: the text.
        wrong: why it cannot be used, one short sentence a reason.
    """
    error = SummaryRejected(f"the summary by {by} was refused: {'; '.join(wrong)}", wrong)
    error.cost = draft.cost
    return error


def checked(
    draft: Draft,
    entries: Sequence[Entry],
    ledger: Ledger,
    lengths: Lengths,
    tools: Tools,
    size: Callable[[str], int],
) -> tuple[Draft, tuple[str, ...]]:
    """Hold a draft against the checks.

    Answers with it, measured, and why it cannot be used, one short sentence a reason.

    Args:
        draft: the summary.
        entries: the originals that it stands for.
        ledger: the facts in force with it.
        lengths: how long it may be.
        tools: what the compaction works with.
        size: tokens of the message that shows a text.
    """
    text = body_of(draft.text)
    if tools.archive is None:
        carried = {fact.source for fact in ledger.facts}
        text = uncited(text, {entry.cite for entry in entries} | carried)
    tokens = size(text)
    found = problems(draft, entries, tokens=tokens, replaced=lengths.replaced, limit=lengths.most)
    return replace(draft, text=text, tokens=tokens), found


def cut(draft: Draft, lengths: Lengths, tools: Tools, size: Callable[[str], int]) -> Draft:
    """Cut a text at the end of a line where it is longer than a caller allows.

    Args:
        draft: the text.
        lengths: how long it may be.
        tools: what the compaction works with.
        size: tokens of the message that shows a text.
    """
    room, count = lengths.most - tools.frame - SLACK, tools.meter.text
    text = draft.text
    while lengths.may_be_cut and (over := size(text) - lengths.most) > 0 and room > 0:
        text, _ = cut_short(draft.text, room, count)
        room -= over  # a message may count for more than its parts
    return replace(draft, text=text, cut=count(draft.text) - count(text))
