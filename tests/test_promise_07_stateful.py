"""Promise 7 as a property: a word said in one conversation, or on one branch, is in no other."""

from typing import Any, ClassVar

from conspectus import Compactor, NotFoundError
from stateful.agent_talk import THREADS
from stateful.agent_world import AgentWorld
from stateful.budgets import budgeted
from stateful.compactor_world import CompactorWorld
from stateful.conversations import NAMES
from stateful.looks import Look
from stateful.messages import words_in
from stateful.oracle import plain


def recalled(compactor: Compactor, query: str, **where: Any) -> str:
    """What is recalled; nothing in a thread of which nothing is archived yet."""
    try:
        return compactor.recall(query, **where).text
    except NotFoundError as error:
        if "keeps no thread" not in str(error):
            raise
        return ""


class Walls:
    def judge(self, look: Look) -> None:
        own = words_in("\n".join(map(plain, look.whole)))
        shown = words_in("\n".join(map(plain, look.shown)))
        assert shown <= own, f"from elsewhere: {shown - own}"
        if look.error is not None or look.trouble:
            return  # the head could not follow the history; it does at the next look
        reach = words_in("\n".join(map(plain, look.reach or [])))
        assert reach <= own, f"reached from elsewhere: {reach - own}"
        self.nothing_foreign_is_recalled(look, own)

    def nothing_foreign_is_recalled(self, look: Look, own: set[str]) -> None:
        raise NotImplementedError


class WallsCompactor(Walls, CompactorWorld):
    archives = False

    def nothing_foreign_is_recalled(self, look: Look, own: set[str]) -> None:
        fresh = words_in("\n".join(reading.text for reading in look.fresh))
        assert fresh <= own, "a summariser read what was said elsewhere"
        if look.error is not None or not (look.committed or look.back):
            return
        self.others_do_not_find_it(sorted(own)[-3:])
        foreign = [w for n in range(self.planted) if (w := f"zq{n}0z") not in own][-3:]
        query = " ".join([*foreign, *sorted(own)[:2], "module done because"])
        found = words_in(recalled(self.compactor, query, tokens=4_000, **self.at.where))
        assert found <= own | set(foreign)
        assert not found & set(foreign)
        if self.named and foreign:
            name = f"m{foreign[-1][2:-2]}"
            try:
                answer = self.compactor.recall(id=name, tokens=4_000, **self.at.where)
            except NotFoundError:
                return
            assert words_in(answer.text) <= own

    def others_do_not_find_it(self, words: list[str]) -> None:
        """What was said here is not found in another conversation, whether it began or not."""
        if not words:
            return
        name = next(name for name in NAMES if name != self.at.name)
        other = self.conversation(name)
        said = [other.whole, *(moment.whole for moment in other.moments)]
        known = words_in("\n".join(plain(message) for whole in said for message in whole))
        found = recalled(self.compactor, " ".join(words), tokens=1_000, **other.where)
        assert words_in(found) <= known, "found in another conversation"


TestWallsThroughCompactor = budgeted(WallsCompactor, short=7, long=600)


class WallsAgent(Walls, AgentWorld):
    settings_of: ClassVar = {"recall": "auto"}

    def judge(self, look: Look) -> None:
        if not look.known:
            look.reach = []
        super().judge(look)

    def nothing_foreign_is_recalled(self, look: Look, own: set[str]) -> None:
        sent = words_in("\n".join(look.came))
        assert sent <= own, f"sent from elsewhere: {sent - own}"
        fresh = words_in("\n".join(look.prompts))
        assert fresh <= words_in("\n".join(map(plain, self.at.whole)))

    def ends(
        self, channel: list[Any], reach: list[Any], error: BaseException | None, trouble: bool
    ) -> None:
        """What was said here is not found in another thread, whether it began or not."""
        own = sorted(words_in("\n".join(map(plain, self.at.whole))))[:3]
        tenant, thread = next(name for name in THREADS if name != self.at.name)
        other = self.talk((tenant, thread))
        said = [other.whole, *(tip.whole for tip in other.tips)]
        known = words_in("\n".join(plain(message) for whole in said for message in whole))
        compactor = Compactor(archive=self.store)
        where = {"tenant": tenant, "thread_id": f"{tenant}/{thread}"}
        found = recalled(compactor, " ".join([*own, "module"]), tokens=1_000, **where)
        assert words_in(found) <= known, "found in another thread"


TestWallsThroughAgents = budgeted(WallsAgent, short=2, long=100)
