"""Promise 3 as a property: no provider rejects what is shown, unless it would have rejected what
was said; what is pending and what was asked last stay in view."""

from collections import Counter

from stateful.agent_world import AgentWorld
from stateful.budgets import budgeted
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look, counted
from stateful.messages import words_in
from stateful.oracle import (
    anthropic_rejects,
    calls_of,
    is_summary,
    openai_rejects,
    plain,
    role_of,
    text_of,
    unanswered,
)

POINTER = "archived as "
"""Stands in each clip."""

TINY = 500
"""Tokens."""


class ValidSequences:
    def judge(self, look: Look) -> None:
        if look.error is not None:
            return
        for rejects in (openai_rejects, anthropic_rejects):
            assert not rejects(look.shown) - rejects(look.whole), "a provider would reject it"
        summaries, own, others = look.parts
        assert len(summaries) <= 1
        waiting = counted(unanswered(look.whole)) - counted(own)
        # Once the agent has spoken again, such a call may be truncated, to make room.
        spoke = [plain(m) for m in look.whole if role_of(m) == "assistant"]
        assert not spoke or not waiting[spoke[-1]], "a call that may yet be carried out is clipped"
        short = Counter(tuple(calls_of(one)) for one in others if POINTER in plain(one))
        left = [m for m in unanswered(look.whole) if waiting[plain(m)]]
        gone = Counter(tuple(calls_of(message)) for message in left) - short
        assert not gone, "a call without a result has left"
        self.newest_user_stays(look, own)
        leading = 0
        while leading < len(look.whole) and role_of(look.whole[leading]) == "system":
            leading += 1
        starts = [role_of(message) for message in look.shown[:leading]]
        assert starts == ["system"] * leading, "a leading system message has left"

    def newest_user_stays(self, look: Look, own: list[object]) -> None:
        asked = [m for m in look.whole if role_of(m) == "user"][-1:]
        for message in asked:
            words = words_in(text_of(message))
            users = [m for m in look.shown if role_of(m) == "user" and not is_summary(m)]
            # In the smallest windows nothing but the pointer to it may be left.
            tiny = look.budget is not None and look.budget <= TINY
            short = words & words_in([text_of(m) for m in users]) or (
                tiny and any(POINTER in text_of(m) for m in users)
            )
            assert short or plain(message) in {plain(m) for m in own}, "what was asked last left"


TestSequencesStayValidThroughCompactor = budgeted(ValidSequences, CompactorWorld, short=7, long=600)


TestSequencesStayValidThroughAgents = budgeted(ValidSequences, AgentWorld, short=2, long=100)
