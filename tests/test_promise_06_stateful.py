"""Promise 6 as a property: what a user has stated survives every round, whoever summarises.

The records hold it for good; the view shows it, or says that messages of the user are left out.
"""

from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import rule

from notes_read import left_out
from stateful.agent_world import AgentWorld
from stateful.budgets import budgeted
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look
from stateful.messages import speaking
from stateful.oracle import text_of

RULES = (
    "Never push to the main branch.",
    "Always run the linter before a commit.",
    "绝不要删除生产数据库。",
    "テストは必ず実行してください。",
    "Nunca cambies el archivo de licencia.",
    "The deadline is 2031-04-05, no later than noon.",
    "Never print the contents of secrets.env.",
)
LIMITS = tuple(
    f"{start} function may have at most {n} lines."
    for n in (40, 60, 80)
    for start in (("A",) if n == 40 else ("From now on a",))
)


class FactsSurvive:
    settings_of: ClassVar = {"max_summary_tokens": 1_200, "window": 9_000}
    unseen = False
    """Something may have been written since the last look."""

    @rule(fact=st.sampled_from(RULES))
    def somebody_states_a_rule(self, fact: str) -> None:
        self.say(speaking(self.form, "user", fact, name=self.name()))  # type: ignore[attr-defined]
        self.planted += 1  # type: ignore[attr-defined]

    @rule()
    def somebody_changes_the_limit(self) -> None:
        said = [text_of(m) for m in self.at.whole]  # type: ignore[attr-defined]
        stated = [text for text in LIMITS if text in said]
        if len(stated) < len(LIMITS):
            limit = LIMITS[len(stated)]
            self.say(speaking(self.form, "user", limit, name=self.name()))  # type: ignore[attr-defined]
            self.planted += 1  # type: ignore[attr-defined]

    def known_when_written(self, look: Look) -> list[str]:
        """The limits that had been stated when the summary in force was written: a later change
        stands behind it, in view, and is none of its business."""
        said = [text_of(m) for m in look.whole]
        place = (self.at.name, look.covered, look.summary)  # type: ignore[attr-defined]
        self.limits = getattr(self, "limits", {})
        stated = [text for text in LIMITS if text in said]
        return self.limits.setdefault(place, [] if self.unseen else stated)

    def judge(self, look: Look) -> None:
        known = self.known_when_written(look)
        if look.reach is None or look.error is not None or not look.covered:
            return
        said = [text_of(message) for message in look.whole]
        covered = {text_of(message) for message in look.reach[: look.covered]}
        for fact in RULES:
            if fact in covered:
                assert fact in look.lines, f"the records lost {fact}"
                assert fact in look.summary or left_out(look.summary), f"the view lost {fact}"
        stated = [text for text in LIMITS if text in said]
        if stated and stated[-1] in covered:
            holds = look.summary.find(stated[-1])
            assert holds >= 0 or left_out(look.summary), "the limit that holds is not stated"
            if holds < 0:
                return
            for old in known[:-1]:  # what a user said stays as it was, in the order it was said
                assert look.summary.rfind(old) < holds, "a limit that was changed stands last"


TestFactsSurviveThroughCompactor = budgeted(FactsSurvive, CompactorWorld, short=7, long=600)


class FactsSurviveAgent(FactsSurvive, AgentWorld):
    @rule(fact=st.sampled_from(RULES), on_a_loop=st.booleans())
    def a_rule_is_stated_before_much_talk(self, fact: str, on_a_loop: bool) -> None:
        self.somebody_states_a_rule(fact)
        self.the_talk_goes_on(4, on_a_loop)

    def judge(self, look: Look) -> None:
        if look.known:
            super().judge(look)
            self.unseen = False

    def ends(self, *how: Any) -> None:
        self.unseen = self.unseen or not self.asked
        super().ends(*how)


TestFactsSurviveThroughAgents = budgeted(FactsSurviveAgent, short=2, long=100)
