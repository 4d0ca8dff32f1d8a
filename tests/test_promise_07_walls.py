"""Promise 7: no recall, read or cached value crosses a tenant, a thread, a session, a branch."""

import itertools
from typing import Any, ClassVar

import pytest
from langchain_core.messages import HumanMessage

from compactor_support import Scripted, new_compactor
from conspectus import Compactor, NotFoundError
from conspectus.archive import Archive, Scope
from histories import talk, user
from recalling import RecallingAgent, recall_call
from stateful.agent_talk import THREADS
from stateful.agent_world import AgentWorld
from stateful.budgets import budgeted
from stateful.compactor_talk import NAMES
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look
from stateful.messages import words_in
from stateful.oracle import plain

LABELS = [
    "a",
    "A",
    "a.b",
    "a/b",
    "..",
    "a\x00b",
    "а",
    "a'; DROP TABLE store;--",
    "*",
    " a",
    "\ud800",
]


@pytest.mark.slow
@pytest.mark.parametrize("where_kept", ["in a store", "in a file"])
def test_nothing_crosses_tenants_threads_or_sessions_however_they_are_named(tmp_path, where_kept):
    file = Archive.open(tmp_path / "a.db") if where_kept == "in a file" else None
    compactor = new_compactor(archive=file) if file else new_compactor()
    scopes = [{"tenant": "t", "thread_id": name, "session": "s"} for name in LABELS] + [
        {"tenant": name, "thread_id": "x", "session": "s"} for name in LABELS
    ]
    scopes += [{"tenant": "t", "thread_id": "x2", "session": name} for name in LABELS]
    for n, scope in enumerate(scopes):
        messages = [user(f"the secret word is zebra{n:03}", id=f"m{n}"), *talk(30)]
        assert compactor.compact(messages, force=True, **scope).evicted
    for (n, scope), (m, other_scope) in itertools.product(enumerate(scopes), repeat=2):
        recalled_text = compactor.recall(f"zebra{m:03}", tokens=2_000, **scope).text
        assert (f"zebra{m:03}" in recalled_text) == (n == m), (scope, other_scope)
        if n != m:
            with pytest.raises(NotFoundError):
                compactor.recall(id=f"m{m}", **scope)


def test_what_an_abandoned_branch_archived_is_out_of_reach():
    compactor = new_compactor()
    common = talk(20)
    left_branch = [*common, user("the left branch found a walrus", id="left"), *talk(30)]
    right_branch = [*common, user("the right branch found a heron", id="right"), *talk(30)]
    compactor.compact(left_branch, thread_id="t", force=True)
    assert "walrus" in compactor.recall("walrus", thread_id="t").text
    compactor.compact(right_branch, thread_id="t", force=True)
    with pytest.raises(NotFoundError):  # before there is an index of this branch
        compactor.recall(id="left", thread_id="t")
    assert "heron" in compactor.recall("heron", thread_id="t").text
    assert "walrus" not in compactor.recall("walrus", thread_id="t").text
    with pytest.raises(NotFoundError):
        compactor.recall(id="left", thread_id="t")


def test_forgetting_a_thread_takes_everything_and_only_it():
    compactor = new_compactor()
    for thread in ("one", "two"):
        compactor.compact([user(f"in {thread}"), *talk(30)], thread_id=thread, force=True)
    assert compactor.archive.forget("local", "one") > 30
    with pytest.raises(NotFoundError, match="keeps no thread 'one'"):
        compactor.recall("in one", thread_id="one")
    assert "in two" in compactor.recall("in two", thread_id="two").text
    assert compactor.archive.threads("local") == ("two",)


def test_two_branches_whose_summaries_say_the_same_are_kept_apart():
    compactor = new_compactor(
        Scripted(lambda _: "- the same words [x]"), keep=("messages", 4), notes=False
    )

    def branch(fruit: str) -> list[dict[str, str]]:
        return [user("start"), user(f"a {fruit}", id=f"x-{fruit}"), *talk(10)]

    apple = compactor.compact(branch("apple"), thread_id="t", force=True)
    pear = compactor.compact(branch("pear"), thread_id="t", force=True)
    assert apple.summary == pear.summary
    compactor.compact([*apple.messages, user("go on")], thread_id="t")
    assert compactor.recall(id="x-apple", thread_id="t").hits
    with pytest.raises(NotFoundError):
        compactor.recall(id="x-pear", thread_id="t")


def test_a_record_of_one_thread_is_not_in_another():
    compactor = new_compactor(Scripted(lambda _: "- the same words [x]"), keep=("messages", 4))
    first = compactor.compact(talk(10), thread_id="one", force=True)
    compactor.compact([*first.messages, *talk(10, 5)], thread_id="one", force=True)
    archive = compactor.archive
    first_scope = Scope("local", "one")
    second_scope = Scope("local", "two")
    chain = archive.chain(first_scope)
    assert len(chain) == 2
    archive.commit(second_scope, chain[-1])  # without the record that it stands on
    assert archive.chain(second_scope) == ()


def test_an_edited_original_is_recalled_no_more():
    secret = "The secret word of the heron branch is QUARTZ-7781."
    lookups = [recall_call(query="secret word heron"), recall_call(id="heron-1")]
    agent = RecallingAgent({"LOOK": [lookups]}, history="preserve")
    agent.graph.invoke({"messages": [HumanMessage(secret, id="heron-1")]}, agent.config)
    agent.fill()
    agent.calls = {}
    question: Any = {"messages": [HumanMessage("What is the secret word, LOOK", id="ask")]}
    for _ in agent.graph.stream(question, agent.config, interrupt_before=["model"]):
        pass
    state = agent.graph.get_state(agent.config)
    assert "QUARTZ" in state.values["_conspectus_recalled"]["text"]
    edited = HumanMessage("There is no heron branch.", id="heron-1")
    agent.graph.update_state(agent.config, {"messages": [edited]})
    start = len(agent.requests)
    agent.graph.invoke(None, agent.config)
    assert agent.requests[start:]
    assert "QUARTZ" not in str(agent.requests[start:])


def recalled_text(compactor: Compactor, query: str, **scope: Any) -> str:
    """What is recalled; nothing in a thread of which nothing is archived yet."""
    try:
        return compactor.recall(query, **scope).text
    except NotFoundError as error:
        if "the archive keeps no " not in str(error):
            raise
        return ""


class Walls:
    """Nothing that was said elsewhere is shown, reached or recalled."""

    def judge(self, look: Look) -> None:
        own_words = words_in("\n".join(map(plain, look.whole)))
        shown = words_in("\n".join(map(plain, look.shown)))
        assert shown <= own_words, f"from elsewhere: {shown - own_words}"
        if look.error is not None or look.archive_failed:
            return  # the head could not follow the history; it does at the next look
        reachable = words_in("\n".join(map(plain, look.reach or [])))
        assert reachable <= own_words, f"reached from elsewhere: {reachable - own_words}"
        self.nothing_foreign_is_recalled(look, own_words)

    def nothing_foreign_is_recalled(self, look: Look, own_words: set[str]) -> None:
        raise NotImplementedError


class WallsCompactor(Walls, CompactorWorld):
    archives = False

    def nothing_foreign_is_recalled(self, look: Look, own_words: set[str]) -> None:
        fresh = words_in("\n".join(reading.text for reading in look.fresh))
        assert fresh <= own_words, "a summariser read what was said elsewhere"
        if look.error is not None or not (look.committed or look.returned_to):
            return
        self.others_do_not_find_it(sorted(own_words)[-3:])
        foreign = [w for n in range(self.planted) if (w := f"zq{n}0z") not in own_words][-3:]
        query = " ".join([*foreign, *sorted(own_words)[:2], "module done because"])
        recalled_words = words_in(
            recalled_text(self.compactor, query, tokens=4_000, **self.current.scope_arguments)
        )
        assert recalled_words <= own_words | set(foreign)
        assert not recalled_words & set(foreign)
        if self.named and foreign:
            name = f"m{foreign[-1][2:-2]}"
            try:
                answer = self.compactor.recall(
                    id=name, tokens=4_000, **self.current.scope_arguments
                )
            except NotFoundError:
                return
            assert words_in(answer.text) <= own_words

    def others_do_not_find_it(self, words: list[str]) -> None:
        """What was said here is not found in another conversation, whether it began or not."""
        if not words:
            return
        name = next(name for name in NAMES if name != self.current.name)
        other_conversation = self.conversation(name)
        histories = [
            other_conversation.whole,
            *(moment.whole for moment in other_conversation.moments),
        ]
        words_of_other = words_in(
            "\n".join(plain(message) for whole in histories for message in whole)
        )
        recalled_words = recalled_text(
            self.compactor, " ".join(words), tokens=1_000, **other_conversation.scope_arguments
        )
        assert words_in(recalled_words) <= words_of_other, "found in another conversation"


TestWallsThroughCompactor = budgeted(WallsCompactor, short=7, long=600)


class WallsAgent(Walls, AgentWorld):
    settings_of: ClassVar = {"recall": "auto"}

    def judge(self, look: Look) -> None:
        if not look.reach_is_current:
            look.reach = []
        super().judge(look)

    def nothing_foreign_is_recalled(self, look: Look, own_words: set[str]) -> None:
        sent = words_in("\n".join(look.sent_texts))
        assert sent <= own_words, f"sent from elsewhere: {sent - own_words}"
        fresh = words_in("\n".join(look.prompts))
        assert fresh <= words_in("\n".join(map(plain, self.current.whole)))

    def judge_end(self, channel: list[Any], reach: list[Any]) -> None:
        """What was said here is not found in another thread, whether it began or not."""
        own_words = sorted(words_in("\n".join(map(plain, self.current.whole))))[:3]
        tenant, thread = next(name for name in THREADS if name != self.current.name)
        other_talk = self.talk((tenant, thread))
        histories = [other_talk.whole, *(tip.whole for tip in other_talk.tips)]
        words_of_other = words_in(
            "\n".join(plain(message) for whole in histories for message in whole)
        )
        compactor = Compactor(archive=self.store)
        scope = {"tenant": tenant, "thread_id": f"{tenant}/{thread}"}
        found_text = recalled_text(
            compactor, " ".join([*own_words, "module"]), tokens=1_000, **scope
        )
        assert words_in(found_text) <= words_of_other, "found in another thread"


TestWallsThroughAgents = budgeted(WallsAgent, short=2, long=100)
