"""Promise 11: undo, branch and time travel bring back the head that belongs to them."""

from typing import Any, NoReturn

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from conspectus import ArchiveError, Compactor
from conspectus.archive import Archive, Scope
from engine import Scripted, compacted, engine, short
from histories import talk
from stateful.agent_world import AgentWorld
from stateful.budgets import budgeted
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look, counted
from stateful.messages import words_in
from stateful.oracle import plain

TURNS = talk(80)


def test_without_an_archive_a_branch_that_was_left_is_found_again():
    compactor = engine(archive=None, keep=("messages", 10))
    first = compacted(TURNS[:60], compactor, force=True)
    left = compacted([*first.messages, *TURNS[60:]], compactor, force=True)
    other = compacted([*first.messages, *talk(20, 5)], compactor, force=True)
    assert left.summary != other.summary
    back = compacted([*left.messages, *talk(8, 3)], compactor, force=True)
    assert back.record.parent == left.record_id


@pytest.mark.parametrize("on_failure", ["degrade", "keep", "raise"])
def test_going_back_needs_no_archive_that_can_be_written(on_failure, monkeypatch, caplog):
    compactor = engine(keep=("messages", 10), on_failure=on_failure)
    compacted(TURNS[:60], compactor, force=True)
    with monkeypatch.context() as patch:
        patch.setattr(Archive, "set_head", refusing)
        if on_failure == "raise":
            with pytest.raises(ArchiveError, match="full"):
                compacted(TURNS[:4], compactor)
            return
        back = compacted(TURNS[:4], compactor)
    assert back.outcome == "kept"
    assert back.messages == TURNS[:4]
    assert "the disk is full" in caplog.text
    compacted(TURNS[:4], compactor)  # tried again, though nothing is due
    assert not compactor.archive.pointer(Scope("local", "t"))


def refusing(*_: object) -> NoReturn:
    raise ArchiveError("the disk is full")


def turns(first: int, last: int, form: str) -> list[Any]:
    said: list[Any] = []
    for n in range(first, last):
        asked, answer = f"question {n} {'why ' * 60}", f"answer {n} {'because ' * 60}"
        if form == "dicts":
            said.append({"role": "user", "content": asked, "id": f"h{n}"})
            said.append({"role": "assistant", "content": answer, "id": f"a{n}"})
        else:
            said += [HumanMessage(asked, id=f"h{n}"), AIMessage(answer, id=f"a{n}")]
    return said


def twice(form: str) -> Any:
    if form == "dicts":
        return {"role": "user", "content": "go on", "id": "same"}
    return HumanMessage("go on", id="same")


def compactor(summarizer: Scripted, **more: Any) -> Compactor:
    return engine(summarizer, trigger=("messages", 8), keep=("messages", 2), **more)


@pytest.mark.parametrize("form", ["dicts", "langchain"])
@pytest.mark.parametrize("more", [{}, {"archive": None}], ids=["archived", "in memory"])
def test_a_whole_history_with_a_message_sent_twice_pays_for_nothing_again(form, more):
    summarizer = Scripted(short)
    one = compactor(summarizer, **more)
    first = [twice(form), *turns(0, 6, form)]
    later = [twice(form), *turns(6, 12, form)]
    view = one.compact(first, thread_id="t").messages
    result = one.compact([*view, *later], thread_id="t")
    paid = len(summarizer.requests)
    assert paid == 2
    again = one.compact([*first, *later], thread_id="t")
    assert len(summarizer.requests) == paid
    assert again.messages == result.messages


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
