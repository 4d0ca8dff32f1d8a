"""Promise 11 as a property: whoever goes to another moment finds the head that belongs to it, and
nothing of where he came from."""

from typing import Any

from conspectus import Compactor
from stateful.agent_world import AgentWorld
from stateful.budgets import budgeted
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look, counted
from stateful.messages import words_in
from stateful.oracle import plain


class RewindIsLossless:
    def judge(self, look: Look) -> None:
        if look.reach is None or look.error is not None:
            return
        reach, whole = counted(look.reach), counted(look.whole)
        assert not reach - whole, "the head answers for what was not said on this branch"
        assert not counted(look.gone) - reach, "lost on the way"
        if look.back is not None and look.unchanged is not None and not look.committed:
            then, view = look.back
            assert reach == then, "another head than that of this moment"
            assert [plain(m) for m in look.shown][: len(view)] == view


class RewindIsLosslessCompactor(RewindIsLossless, CompactorWorld):
    archives = False


TestRewindIsLosslessThroughCompactor = budgeted(RewindIsLosslessCompactor, short=7, long=600)


class RewindIsLosslessAgent(AgentWorld):
    def judge(self, look: Look) -> None:
        words = words_in("\n".join(map(plain, self.at.whole)))
        assert words_in("\n".join(look.came)) <= words, "shown from another branch"
        assert words_in("\n".join(look.prompts)) <= words, "read from another branch"

    def ends(
        self, channel: list[Any], reach: list[Any], error: BaseException | None, trouble: bool
    ) -> None:
        said, behind = counted(self.at.whole), counted(reach)
        assert not behind - said, "the head answers for what was not said on this branch"
        assert not said - counted(channel) - behind, "lost on the way"
        if error is None and not trouble and self.head(self.config):
            tenant, thread = self.at.name[0], "/".join(self.at.name)
            query = "look at the next module, please; a line of it"
            compactor = Compactor(archive=self.store)
            found = compactor.recall(query, tenant=tenant, thread_id=thread, tokens=3_000)
            words = words_in("\n".join(map(plain, self.at.whole)))
            assert words_in(found.text) <= words, "the archive still points to another branch"


TestRewindIsLosslessThroughAgents = budgeted(RewindIsLosslessAgent, short=2, long=100)
