"""Undo: what was taken back is, byte for byte, as it was; and redo is the same call."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from compactor_support import SCOPE, Scripted, compacted, new_compactor, short_summary
from conspectus import Compactor, SummarizationMiddleware, UndoResult
from conspectus.archive import Archive
from conspectus.core.records import without_undone
from conspectus.errors import ArchiveOvertaken, InputError, NotFoundError
from conspectus.messages import SUMMARY_LINE
from graph_support import Bench, new_middleware, thread_config
from histories import assistant, talk, tool_result, user
from postgres_support import postgres_schema

# Histories in four forms


def openai_turn(number: int, size: int) -> list[Any]:
    return [
        user(f"Look at part {number}. " * size),
        assistant("", (f"c{number}", f"cat part_{number}.py")),
        tool_result(f"c{number}", f"line of part {number}\n" * 8 * size),
        assistant(f"Part {number} is sound. " * size),
    ]


def anthropic_turn(number: int, size: int) -> list[Any]:
    call = {"type": "tool_use", "id": f"c{number}", "name": "cat", "input": {"path": f"{number}"}}
    text = f"line of part {number}\n" * 8 * size
    result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": text}
    answer = {"type": "text", "text": f"Part {number} is sound. " * size}
    return [
        {"role": "user", "content": f"Look at part {number}. " * size},
        {"role": "assistant", "content": [{"type": "text", "text": "Looking."}, call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [answer]},
    ]


def responses_turn(number: int, size: int) -> list[Any]:
    text = {"type": "output_text", "text": f"Part {number} is sound. " * size, "annotations": []}
    asked = {"type": "input_text", "text": f"Look at part {number}. " * size}
    call = {"type": "function_call", "call_id": f"c{number}", "name": "cat", "arguments": "{}"}
    output = f"line of part {number}\n" * 8 * size
    return [
        {"type": "message", "role": "user", "content": [asked]},
        {"id": f"fc{number}", **call},
        {"type": "function_call_output", "call_id": f"c{number}", "output": output},
        {"type": "message", "id": f"m{number}", "role": "assistant", "content": [text]},
    ]


def langchain_turn(number: int, size: int) -> list[Any]:
    call = {"name": "cat", "args": {"path": f"{number}"}, "id": f"c{number}"}
    return [
        HumanMessage(f"Look at part {number}. " * size, id=f"h{number}"),
        AIMessage("", tool_calls=[call], id=f"k{number}"),
        ToolMessage(f"line of part {number}\n" * 8 * size, tool_call_id=f"c{number}"),
        AIMessage(f"Part {number} is sound. " * size, id=f"a{number}"),
    ]


TURNS: dict[str, Callable[[int, int], list[Any]]] = {
    "openai": openai_turn,
    "anthropic": anthropic_turn,
    "responses": responses_turn,
    "langchain": langchain_turn,
}
INSTRUCTIONS: dict[str, list[Any]] = {
    "openai": [{"role": "system", "content": "You are a careful reader."}],
    "anthropic": [],
    "responses": [{"type": "message", "role": "developer", "content": "You read carefully."}],
    "langchain": [SystemMessage("You are a careful reader.", id="s")],
}


def as_bytes(messages: Sequence[Any]) -> list[str]:
    """Each message as text; keys are sorted, as their order says nothing."""

    def as_text(message: Any) -> str:
        if isinstance(message, BaseMessage):
            return message.model_dump_json()
        return json.dumps(message, sort_keys=True)

    return [*map(as_text, messages)]


NEVER_DUE: dict[str, Any] = {"trigger": ("messages", 10_000)}
"""Settings by which nothing is compacted unless it is forced."""

EAGER: dict[str, Any] = {"trigger": ("messages", 2), "window": 4_000}
"""Settings by which a compaction is always due; stale results are clipped first."""


# A caller, who compacts, goes back to an earlier moment, and restarts


@dataclass(frozen=True)
class DoneCompaction:
    """A compaction, and what the model saw around it, each with all that was said since."""

    record_id: str
    before: list[Any]
    after: list[Any]

    def with_later(self, messages: Sequence[Any]) -> "DoneCompaction":
        return DoneCompaction(self.record_id, [*self.before, *messages], [*self.after, *messages])


@dataclass(frozen=True)
class Moment:
    """What a caller has at some time, and the compactions that led there."""

    sent: list[Any]  # the list that the caller passes
    shown: list[Any]  # what the model sees of it
    compactions: tuple[DoneCompaction, ...] = ()

    def with_later(self, messages: Sequence[Any]) -> "Moment":
        return Moment(
            [*self.sent, *messages],
            [*self.shown, *messages],
            tuple(compaction.with_later(messages) for compaction in self.compactions),
        )


SIZES = (1, 2, 5, 40)
"""How often the turns, one after another, repeat their text.

Results of the first two turns have less than the 201 tokens over which a stale result is clipped;
that of the last takes half of the window of `EAGER`.
"""


@dataclass
class Caller:
    path: Path
    form: str
    sends_view: bool
    settings: dict[str, Any]
    turns: int = 0
    moments: list[Moment] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.restart()
        instructions = list(INSTRUCTIONS[self.form])
        self.moment = Moment(instructions, instructions)
        self.talk(2)

    def restart(self) -> None:
        """Continue as another process would: with the archive alone."""
        self.compactor = Compactor(archive=self.path, **NEVER_DUE, **self.settings)
        self.eager = Compactor(archive=self.compactor.archive, **EAGER, **self.settings)

    def talk(self, count: int) -> None:
        for _ in range(count):
            size = SIZES[self.turns % len(SIZES)]
            self.moment = self.moment.with_later(TURNS[self.form](self.turns, size))
            self.turns += 1

    def compact(self, *, force: bool = True) -> None:
        """Compact: what `keep` says stays, or stale results are clipped first."""
        moment = self.moment
        before = self.compactor.compact(moment.sent, thread_id="t").messages
        assert as_bytes(before) == as_bytes(moment.shown)
        if force:
            result = self.compactor.compact(moment.sent, thread_id="t", force=True)
        else:
            result = self.eager.compact(moment.sent, thread_id="t")
        if result.record is None:
            return
        view = list(result.messages)
        compaction = DoneCompaction(str(result.record_id), before, view)
        self.moment = Moment(
            view if self.sends_view else moment.sent, view, (*moment.compactions, compaction)
        )
        self.moments.append(self.moment)

    def go_back(self, index: int) -> None:
        """Continue from right after a compaction; the index begins again after the last one."""
        if not self.moments:
            return
        self.moment = self.moments[index % len(self.moments)]
        self.talk(1)
        sent = self.moment.sent
        shown = self.compactor.compact(sent, thread_id="t").messages
        if as_bytes(shown) != as_bytes(self.moment.shown):  # a later record fits here, too
            self.moment = Moment(shown if self.sends_view else sent, shown)

    def undo(self, messages: list[Any]) -> tuple[UndoResult, list[Any]]:
        """Take back the last compaction of these messages; return also what is shown then."""
        undone = self.compactor.undo("t", messages=messages)
        return undone, undone.messages or []

    def undo_head(self, messages: list[Any]) -> tuple[UndoResult, list[Any]]:
        """The same by the head in the archive alone; the messages come with the next call."""
        self.compactor.compact(messages, thread_id="t")  # sets the head to that of this branch
        undone = self.compactor.undo("t")
        return undone, self.compactor.compact(messages, thread_id="t").messages


# Steps of a caller


@dataclass(frozen=True)
class Talk:
    turns: int

    def do(self, caller: Caller) -> None:
        caller.talk(self.turns)


@dataclass(frozen=True)
class Compact:
    force: bool

    def do(self, caller: Caller) -> None:
        caller.compact(force=self.force)


@dataclass(frozen=True)
class GoBack:
    index: int

    def do(self, caller: Caller) -> None:
        caller.go_back(self.index)


@dataclass(frozen=True)
class Restart:
    def do(self, caller: Caller) -> None:
        caller.restart()


TALKS = st.builds(Talk, turns=st.integers(1, 3))
COMPACTS = st.builds(Compact, force=st.booleans())
GOES_BACK = st.builds(GoBack, index=st.integers(0, 20))
STEPS = st.lists(
    # Talk and compactions come twice as often as the others.
    TALKS | TALKS | COMPACTS | COMPACTS | GOES_BACK | st.just(Restart()),
    min_size=3,
    max_size=9,
)
SETTINGS = st.fixed_dictionaries(
    {
        "keep": st.integers(1, 9).map(lambda count: ("messages", count)),
        "alternate_roles": st.sampled_from(["off", "auto", "on"]),
        "stale_results": st.sampled_from([None, {"over": 201, "newest": 1, "least": 1}]),
    }
)


@pytest.mark.slow
@pytest.mark.parametrize("sends_view", [True, False], ids=["view", "whole"])
@pytest.mark.parametrize("form", TURNS)
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS, options=SETTINGS, undo=st.sampled_from([Caller.undo, Caller.undo_head]))
def test_undo_is_the_identity(tmp_path_factory, form, sends_view, steps, options, undo):
    path = tmp_path_factory.mktemp("undo") / "archive.db"
    caller = Caller(path, form, sends_view, options)
    for step in steps:
        step.do(caller)
    caller.compact()
    compactions = caller.moment.compactions
    assume(compactions)
    sent = caller.moment.sent
    for compaction in reversed(compactions):
        undone, shown = undo(caller, sent)
        assert undone.taken_back == (compaction.record_id,)
        assert as_bytes(shown) == as_bytes(compaction.before)
        another = Compactor(archive=path, **NEVER_DUE, **options)
        assert as_bytes(another.compact(sent, thread_id="t").messages) == as_bytes(shown)
        sent = shown if sends_view else sent
    for compaction in compactions:
        redone = caller.compactor.undo("t", messages=sent, to=compaction.record_id)
        assert redone.put_in_force == (compaction.record_id,)
        assert as_bytes(redone.messages or []) == as_bytes(compaction.after)
        sent = redone.messages if sends_view else sent


# Agents of LangGraph


class UndoneAgent:
    """An agent on one checkpointer and one store, which may restart in another process."""

    def __init__(self, history: str) -> None:
        self.history = history
        self.checkpointer = InMemorySaver()
        self.store = InMemoryStore()
        self.asked = 0
        self.shown: list[BaseMessage] = []  # what the model was sent last, and its answer
        self.restart()

    def restart(self) -> None:
        middleware = new_middleware(history=self.history, trigger=("messages", 1_000))
        self.bench = Bench(
            lambda _: f"All is well with part {self.asked}.",
            middleware,
            checkpointer=self.checkpointer,
            store=self.store,
        )

    def say(self) -> None:
        self.asked += 1
        [*_, answer] = self.bench.say(f"Is part {self.asked} sound? " * 5)
        self.shown = [*self.bench.requests[-1], answer]

    def ask_for(self, update: dict[str, Any]) -> None:
        self.bench.graph.update_state(thread_config(), update)

    def compact(self) -> None:
        self.ask_for(SummarizationMiddleware.request_compaction())
        self.say()

    def request_undo(self) -> None:
        self.ask_for(SummarizationMiddleware.request_undo())

    def undo_elsewhere(self) -> None:
        """Undo as a compactor on the same store does, without the agent."""
        Compactor(archive=self.store).undo("t")

    @property
    def head(self) -> str:
        return str((self.bench.values.get("_conspectus") or {}).get("head_id", ""))


@dataclass
class Remembered:
    """An agent before a compaction: its head, and what is shown if the compaction is undone."""

    head: str
    shown: list[BaseMessage]


@pytest.mark.slow
@pytest.mark.parametrize("history", ["replace", "preserve"])
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(
    steps=st.lists(st.sampled_from(["say", "say", "compact", "restart"]), min_size=2, max_size=7),
    undo=st.sampled_from([UndoneAgent.request_undo, UndoneAgent.undo_elsewhere]),
)
def test_an_agent_gets_back_what_it_had(history, steps, undo):
    agent = UndoneAgent(history)
    for _ in range(4):
        agent.say()
    compacted_from: list[Remembered] = []
    for step in [*steps, "compact"]:
        if step == "restart":
            agent.restart()
            continue
        before = Remembered(agent.head, agent.shown)
        agent.compact() if step == "compact" else agent.say()
        if agent.head != before.head:
            compacted_from.append(before)
        for earlier in compacted_from:
            question_and_answer = agent.shown[-2:]
            earlier.shown = [*earlier.shown, *question_and_answer]
    for undone_count, earlier in enumerate(reversed(compacted_from), start=1):
        undo(agent)
        taken_back = agent.head
        agent.say()
        assert agent.head == earlier.head
        assert agent.shown[: len(earlier.shown)] == earlier.shown
        said_since = agent.shown[len(earlier.shown) :]
        assert len(said_since) == 2 * undone_count
    agent.ask_for(SummarizationMiddleware.request_undo(to=taken_back))
    agent.say()
    assert agent.head == taken_back


@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_a_failed_undo_leaves_an_agent_as_it_is(history, caplog):
    agent = UndoneAgent(history)
    for _ in range(4):
        agent.say()
    shown = agent.shown
    agent.ask_for(SummarizationMiddleware.request_undo())
    agent.say()
    assert agent.shown[: len(shown)] == shown
    assert "the compaction was not taken back" in caplog.text
    assert not agent.bench.values["_conspectus_requested_undo"]


def test_an_agent_undoes_and_compacts_in_one_step():
    agent = UndoneAgent("replace")
    for _ in range(5):
        agent.say()
    agent.compact()
    first = agent.head
    redo = SummarizationMiddleware.request_compaction("the schema")
    agent.ask_for(SummarizationMiddleware.request_undo() | redo)
    agent.say()
    archive = Archive(agent.store)
    assert agent.head not in ("", first)
    assert archive.undone(SCOPE) == (first,)
    assert [record.id for record in archive.chain(SCOPE)] == [agent.head]


class StoreThatMayBeAway(InMemoryStore):
    is_away = False

    def batch(self, ops: Any) -> Any:
        if self.is_away:
            raise OSError("no route to host")
        return super().batch(ops)


def test_no_step_with_nothing_due_fails_because_the_archive_is_away(caplog):
    """Whether a compaction was undone elsewhere is asked at each turn, and may stay unknown."""
    store = StoreThatMayBeAway()
    middleware = new_middleware(
        trigger=("messages", 1_000), on_failure="raise", recall="off", archive=Archive(store)
    )
    bench = Bench(lambda _: "Fine.", middleware, checkpointer=InMemorySaver())
    for number in range(6):
        bench.say(f"Is part {number} sound? " * 5)
    bench.graph.update_state(thread_config(), SummarizationMiddleware.request_compaction())
    bench.say("Go on.")
    store.is_away = True
    [*_, answer] = bench.say("And part 7?")
    assert answer.text == "Fine."
    assert "head_unknown" in {record.conspectus["event"] for record in caplog.records}


def test_without_an_archive_a_preserved_state_is_undone():
    bench = Bench(
        lambda _: "All is well.",
        new_middleware(history="preserve", trigger=("messages", 8)),
        store=None,
    )
    for number in range(6):
        bench.say(f"Is part {number} sound? " * 5)
    assert bench.values["_conspectus"]["head_id"]
    request = SummarizationMiddleware.request_undo("start")
    bench.graph.update_state(thread_config(), request)
    bench.say("And now?")
    assert bench.requests[-1] == bench.values["messages"][:-1]
    assert not bench.values["_conspectus"]["head_id"]


# Archives


@pytest.fixture(params=["memory", "file", "store", "postgres"])
def archive(request, tmp_path):
    if request.param == "postgres":
        with postgres_schema() as address, Archive.open(address) as opened:
            yield opened
        return
    if request.param == "store":
        yield Archive(InMemoryStore())
        return
    with Archive.open("memory:" if request.param == "memory" else tmp_path / "a.db") as opened:
        yield opened


def test_every_archive_takes_back_and_puts_in_force(archive):
    compactor = new_compactor(keep=("messages", 4), archive=archive)
    first = compacted(talk(12), compactor, force=True).messages
    before = [*first, *talk(6, 5)]
    result = compacted(before, compactor, force=True)
    undone = compactor.undo("t", messages=result.messages)
    assert undone.messages == before
    assert archive.chain(SCOPE)[-1].id == undone.head_id
    redone = compactor.undo("t", messages=before, to=result.record_id)
    assert redone.messages == result.messages
    assert archive.undone(SCOPE) == ()


# What an undo says


def test_a_result_says_what_was_taken_back():
    compactor = new_compactor(keep=("messages", 4))
    first = compacted(talk(12), compactor, force=True)
    second = compacted([*first.messages, *talk(6, 5)], compactor, force=True)
    undone = compactor.undo("t", messages=second.messages, to="start")
    assert undone.taken_back == (second.record_id, first.record_id)
    assert undone.came_back == first.evicted + second.evicted
    assert undone.head_id == ""
    assert undone.tokens_before == second.tokens_after
    again = compactor.compact(undone.messages, thread_id="t")
    assert undone.tokens_after == again.tokens_after


def test_without_messages_the_records_say_the_sizes():
    compactor = new_compactor(keep=("messages", 4))
    first = compacted(talk(12), compactor, force=True)
    undone = compactor.undo("t")
    assert undone.messages is None
    assert (undone.tokens_before, undone.tokens_after) == (first.tokens_after, first.tokens_before)
    redone = compactor.undo("t", to=first.record_id)
    assert (redone.tokens_before, redone.tokens_after) == (first.tokens_before, first.tokens_after)


def test_an_undo_without_a_compaction_is_an_error():
    with pytest.raises(NotFoundError, match="no compaction is in force"):
        new_compactor().undo("t")


def test_an_undo_without_an_archive_is_an_error():
    with pytest.raises(InputError, match="archive="):
        new_compactor(archive=None).undo("t")


def test_an_unknown_record_names_those_that_there_are():
    compactor = new_compactor(keep=("messages", 4))
    record = compacted(talk(12), compactor, force=True).record_id
    with pytest.raises(NotFoundError, match=str(record)):
        compactor.undo("t", to="none of ours")


def test_a_record_of_another_history_is_not_put_in_force():
    compactor = new_compactor(keep=("messages", 4))
    result = compacted(talk(12), compactor, force=True)
    compactor.undo("t")
    with pytest.raises(InputError, match="does not belong"):
        compactor.undo("t", messages=talk(4, 9), to=result.record_id)
    assert not compactor.archive.head_id(SCOPE)


def delete_original(store: InMemoryStore, key: str) -> None:
    for item in store.search((), limit=1_000):
        if item.key == key:
            store.delete(item.namespace, item.key)


@pytest.mark.parametrize("with_messages", [True, False])
def test_missing_originals_change_nothing(with_messages):
    store = InMemoryStore()
    compactor = new_compactor(keep=("messages", 4), archive=Archive(store))
    result = compacted(talk(12), compactor, force=True)
    key = result.record.covers[3]
    delete_original(store, key)
    with pytest.raises(NotFoundError, match=key[:8]):
        compactor.undo("t", messages=result.messages if with_messages else None)
    assert compactor.archive.head_id(SCOPE) == result.record_id
    assert compacted(result.messages, compactor).messages == result.messages


def test_originals_that_expire_later_leave_their_summary_in_view(caplog):
    store = InMemoryStore()
    compactor = new_compactor(keep=("messages", 4), archive=Archive(store))
    result = compacted(talk(12), compactor, force=True)
    compactor.undo("t")
    delete_original(store, result.record.covers[3])
    assert compacted(result.messages, compactor).messages == result.messages
    assert "stays in view" in caplog.text


def test_redacted_originals_are_named():
    secret = "AKIA" + "Q7ZT3MNB5XWLKJH2"
    compactor = new_compactor(keep=("messages", 4), redact=lambda text: text.replace(secret, "***"))
    result = compacted([user(f"The key is {secret}."), *talk(12)], compactor, force=True)
    undone = compactor.undo("t", messages=result.messages)
    assert len(undone.changed) == 1
    assert "***" in undone.messages[0]["content"]


# What comes after an undo


def test_a_model_is_asked_anew():
    summarizer = Scripted(short_summary)
    compactor = new_compactor(summarizer, keep=("messages", 4))
    first = compacted(talk(12), compactor, force=True)
    compactor.undo("t")
    second = compacted(first.messages, compactor, force=True)
    assert len(summarizer.requests) == 2
    assert second.record_id == first.record_id, "the same compaction, made again, is in force"
    assert compactor.archive.undone(SCOPE) == ()


def test_a_record_of_another_branch_does_not_take_its_place():
    compactor = new_compactor(keep=("messages", 1))
    asked = talk(6)[:-1]  # the user's question is the newest message
    wider = compacted([*asked, assistant("yes"), user("more")], compactor, force=True)
    narrower = compacted(asked[:8], compactor, force=True)
    assert narrower.record.parent is None
    assert wider.record_id != narrower.record_id
    whole = [*asked[:8], *talk(2, 5)]
    undone = compactor.undo("t", messages=whole)
    assert undone.messages == whole
    assert compacted(whole, compactor).messages == whole


def test_a_redo_keeps_the_records_between():
    compactor = new_compactor(keep=("messages", 4))
    view = list[Any]()
    results = []
    for number in range(3):
        results.append(compacted([*view, *talk(8, 5 + number)], compactor, force=True))
        view = results[-1].messages
    undone = compactor.undo("t", messages=view, to=results[0].record_id)
    assert undone.taken_back == (results[2].record_id, results[1].record_id)
    redone = compactor.undo("t", messages=undone.messages, to=results[2].record_id)
    assert redone.messages == view
    recalled = compactor.recall("question 3", thread_id="t", tokens=400)
    assert recalled.hits


# Other workers


def test_an_undo_does_not_overwrite_another_workers_compaction(monkeypatch):
    compactor = new_compactor(keep=("messages", 4))
    first = compacted(talk(12), compactor, force=True)
    other = new_compactor(keep=("messages", 4), archive=compactor.archive)
    set_undone = Archive.set_undone
    made = []

    def later(*arguments: Any, **options: Any) -> None:
        if not made:
            made.append(compacted([*first.messages, *talk(8, 5)], other, force=True).record_id)
        set_undone(*arguments, **options)

    monkeypatch.setattr(Archive, "set_undone", later)
    with pytest.raises(ArchiveOvertaken):
        compactor.undo("t")
    assert compactor.archive.head_id(SCOPE) == made[0]
    assert compactor.archive.undone(SCOPE) == ()


@pytest.mark.parametrize("to", [None, "start"])
def test_a_compaction_does_not_build_on_what_was_taken_back(to):
    archive = Archive(InMemoryStore())
    other = new_compactor(keep=("messages", 4), archive=archive)
    undone = []

    def undo_meanwhile(event: Any) -> None:
        if len(archive.chain(SCOPE)) == 2 and not undone:
            undone.append(other.undo("t", to=to))

    compactor = new_compactor(
        keep=("messages", 4), archive=archive, before_summarization=[undo_meanwhile]
    )
    view = list[Any]()
    for number in range(3):
        view = compacted([*view, *talk(8, 5 + number)], compactor, force=True).messages
    assert undone
    chain = archive.chain(SCOPE)
    assert without_undone(chain, archive.undone(SCOPE)) == chain
    assert sum(message["content"].startswith(SUMMARY_LINE) for message in view) == bool(chain)
