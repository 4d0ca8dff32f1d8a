"""Promise 9 as a property: one script of what happens, without and with an event loop, gives equal
views, results, records and events, step by step."""

from stateful.agent_twins import TwinAgents
from stateful.budgets import budgeted
from stateful.looks import Look
from stateful.twins import TwinWorld


class BothDriversCompactor(TwinWorld):
    def second_on_a_loop(self, on_a_loop: bool) -> bool:
        return not on_a_loop

    def judge(self, look: Look) -> None:
        """The twins have compared all there is."""


TestBothDriversAreTheSameThroughCompactor = budgeted(BothDriversCompactor, short=6, long=400)


class BothDriversAgent(TwinAgents):
    def second_on_a_loop(self, on_a_loop: bool) -> bool:
        return not on_a_loop

    def judge(self, look: Look) -> None:
        """The twins have compared all there is."""


TestBothDriversAreTheSameThroughAgents = budgeted(BothDriversAgent, short=2, long=70)
