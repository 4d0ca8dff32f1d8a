"""Promise 2 as a property: a failure leaves history, head and store as they were, and what a record
covers is in the archive, equal to what was said."""

from typing import Any

from stateful.agent_world import AgentWorld
from stateful.budgets import budgeted
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look, counted
from stateful.oracle import POINTER, plain, text_of


class CommitRule:
    def judge(self, look: Look) -> None:
        shown = [plain(message) for message in look.shown]
        if look.error is not None or (look.failed and not look.committed):
            before, after = look.records
            assert before.items() <= after.items(), "a record was changed although it failed"
            new = [str(place[-1]) for place in after.keys() - before.keys()]
            # A store that fails right after the head was written is told of as having failed; the
            # record is in force then, with all that it covers, and nothing has left the view.
            in_force = any(name in str(look.heads[1]) for name in new)
            assert look.trouble or not in_force, "in force although it failed"
            if look.same and not in_force:
                assert look.heads[0] == look.heads[1], "the head moved although it failed"
        if look.error is None and not look.committed and look.unchanged is not None:
            assert shown == look.unchanged
        if look.reach is None:
            assert not look.archived
            assert not any(POINTER.search(text_of(one)) for one in look.parts[2])
            return
        missing, reach = counted(look.gone), counted(look.reach)
        if look.error is None:
            assert not missing - reach, "not shown, and not in the archive"
        if look.error is None or not look.trouble:  # else the head could not follow an edit yet
            assert not reach - counted(look.whole), "the archive holds what was never said here"


TestFailuresChangeNothingThroughCompactor = budgeted(CommitRule, CompactorWorld, short=7, long=600)


class CommitRuleAgent(AgentWorld):
    def judge(self, look: Look) -> None:
        missing, kept = counted(look.gone), counted(look.kept or [])
        state = self.graph.get_state(self.config).values.get("messages", [])
        assert not missing - kept - counted(state), "sent without it, and it is not in the archive"

    def ends(
        self, channel: list[Any], reach: list[Any], error: BaseException | None, trouble: bool
    ) -> None:
        said, here = counted(self.at.whole), counted(channel)
        assert not said - here - counted(reach), "not in the state, and not behind its record"
        assert not counted(reach) - said, "the record answers for what was never said here"
        if self.settings["history"] == "preserve":
            assert here == said


TestFailuresChangeNothingThroughAgents = budgeted(CommitRuleAgent, short=2, long=100)
