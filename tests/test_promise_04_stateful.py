"""Promise 4 as a property: every view fits its budget or is stuck with the numbers, and nothing is
compacted again without progress."""

from typing import Any, ClassVar

from conspectus import StuckError
from stateful.agent_world import AgentWorld
from stateful.budgets import budgeted
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look
from stateful.oracle import calls_of, plain, text_of


def naive_count(messages: Any) -> int:
    """Tokens as a child would count them: by characters."""
    return sum(4 + (len(text_of(m)) + 20 * len(calls_of(m))) // 3 for m in messages)


class BudgetHolds:
    def judge(self, look: Look) -> None:
        if look.error is None and look.budget is not None:
            size = naive_count(look.shown)
            if look.outcome == "stuck":
                after, needed = look.numbers
                assert size > look.budget
                assert after == size
                assert needed is None or needed > look.budget or look.failed
            else:
                assert size <= look.budget
        if look.asked_again and not look.forced and look.error is None:
            assert look.calls == 0, "summarised again although nothing was said"
            assert not look.committed
            assert [plain(message) for message in look.shown] == look.came


class BudgetHoldsCompactor(BudgetHolds, CompactorWorld):
    settings_of: ClassVar = {"token_counter": naive_count}
    forms = ("langchain",)


TestBudgetHoldsThroughCompactor = budgeted(BudgetHoldsCompactor, short=7, long=600)


class BudgetHoldsAgent(AgentWorld):
    settings_of: ClassVar = {"token_counter": naive_count}

    def judge(self, look: Look) -> None:
        if look.budget is not None:
            assert naive_count(look.shown) <= look.budget
        before, after = look.records
        assert len(after) - len(before) <= 2 * len(self.asked), "compacted over and over"

    def ends(
        self, channel: list[Any], reach: list[Any], error: BaseException | None, trouble: bool
    ) -> None:
        if isinstance(error, StuckError):
            assert error.needed > error.budget - 100 > 0
            assert naive_count(self.at.whole) > 0


TestBudgetHoldsThroughAgents = budgeted(BudgetHoldsAgent, short=2, long=100)
