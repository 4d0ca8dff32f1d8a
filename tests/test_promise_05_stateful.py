"""Promise 5 as a property: what is kept is the caller's own object in the old order, and each clip
says where its original is, which is there, equal to what was said."""

from stateful.agent_world import AgentWorld
from stateful.budgets import budgeted
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look, counted
from stateful.oracle import POINTER, is_summary, plain, role_of


class KeptIsUntouched:
    def judge(self, look: Look) -> None:
        if look.error is not None:
            return
        _, own, clips = look.parts
        places: dict[str, list[int]] = {}
        for n, message in enumerate(look.whole):
            places.setdefault(plain(message), []).append(n)
        at = -1
        for message in own:
            later = [n for n in places[plain(message)] if n > at]
            assert later, "the order has changed"
            at = later[0]
        if look.reach is None:
            assert not clips
            return
        covered = counted(look.reach[: look.covered])
        short = counted(look.gone) - covered
        assert len(clips) == short.total(), "something is shown that nobody said"
        self.clips_lead_back(look, clips)

    def clips_lead_back(self, look: Look, clips: list[object]) -> None:
        left = counted(look.reach or [])
        originals = [m for m in look.gone if left[plain(m)]]
        for clip in clips:
            cites = POINTER.findall(plain(clip))
            assert cites, "truncated without saying so"
            same = [m for m in originals if role_of(m) == role_of(clip)]
            assert same, "a clip of nothing that was said"


class KeptIsUntouchedCompactor(KeptIsUntouched, CompactorWorld):
    def judge(self, look: Look) -> None:
        super().judge(look)
        assert [plain(message) for message in self.sent] == look.came, "a message was changed"
        if look.error is None:
            given = {id(message) for message in [*self.sent, *self.at.whole]}
            changed = [m for m in look.shown if id(m) not in given and not is_summary(m)]
            assert not [m for m in changed if not POINTER.search(plain(m))]
            for clip in changed:
                cite = POINTER.findall(plain(clip))[0].rstrip("\\\"'")
                assert self.compactor.recall(id=cite, **self.at.where).hits


TestKeptIsUntouchedThroughCompactor = budgeted(KeptIsUntouchedCompactor, short=7, long=600)


class KeptIsUntouchedAgent(KeptIsUntouched, AgentWorld):
    def clips_lead_back(self, look: Look, clips: list[object]) -> None:
        kept = {m.id: m for m in look.kept or []}
        for clip in clips:
            assert POINTER.findall(plain(clip)), "truncated without saying so"
            original = kept[clip.id]  # type: ignore[attr-defined]
            assert plain(original) in {plain(m) for m in look.whole}

    def judge(self, look: Look) -> None:
        look.reach = look.gone  # what is in force at this very request is not known
        look.covered = len(look.gone) - len(look.parts[2])
        super().judge(look)


TestKeptIsUntouchedThroughAgents = budgeted(KeptIsUntouchedAgent, short=2, long=100)
