"""Promise 1 as a property: whatever happens, what has left the view was read whole before."""

from stateful.agent_world import AgentWorld
from stateful.budgets import budgeted
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look
from stateful.messages import words_in
from stateful.oracle import plain, text_of


class NothingUnreadLeaves:
    """Every evicted message stands in what some summariser was given, to the last word."""

    def judge(self, look: Look) -> None:
        evicted = look.gone if look.reach is None else look.reach[: look.covered]
        whole = {text for reading in look.readings for text in reading.originals}
        texts = "\n".join(reading.text for reading in look.readings)
        words = words_in(texts)
        for message in evicted:
            by_word = words_in(text_of(message))
            read = plain(message) in whole or (by_word <= words if by_word else bool(texts))
            assert read, f"nobody read {message!r:.300}"


class NothingUnreadLeavesCompactor(NothingUnreadLeaves, CompactorWorld):
    summarizer_kinds = ("protocol", "model", "side by side", "embedded")


TestNothingUnreadLeavesThroughCompactor = budgeted(NothingUnreadLeavesCompactor, short=7, long=600)


TestNothingUnreadLeavesThroughAgents = budgeted(NothingUnreadLeaves, AgentWorld, short=2, long=100)
