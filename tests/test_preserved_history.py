"""`history="preserve"` in whatever way a thread is gone through, without ids, and in processes."""

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deepagents.backends import FilesystemBackend
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from conspectus import ContextGuard, SummarizationMiddleware
from conspectus.deep_agents import create_deep_agent, summarization_middleware
from conspectus.langchain import PreservedState
from conspectus.langchain.channel import laid_over
from conspectus.langchain.state import added
from scripted_models import ScriptedChatModel
from scripts import ran

THREAD: Any = {"configurable": {"thread_id": "t"}}
SCHEMAS = [None, PreservedState]


class Talk:
    """An agent with a preserved history; its summaries are counted, its model may be down."""

    def __init__(self, store: Any = None, schema: Any = None, **more: Any) -> None:
        self.read: list[list[str]] = []
        self.down = False
        self.model = ScriptedChatModel(answers=self._answer)
        settings = {"trigger": ("messages", 10), "keep": ("messages", 4), **more}
        self.middleware = SummarizationMiddleware(
            None, summarizer=self._summary, history="preserve", **settings
        )
        self.store, self.saver, self.schema = store, InMemorySaver(), schema
        self.graph = self.compiled()

    def compiled(self) -> Any:
        return create_agent(
            self.model,
            [],
            middleware=[self.middleware],
            checkpointer=self.saver,
            store=self.store,
            state_schema=self.schema,
        )

    def _summary(self, messages: list[BaseMessage]) -> str:
        self.read.append([str(message.text) for message in messages])
        return f"The user has asked {len(self.read)} rounds of questions. " * 6

    def _answer(self, messages: list[BaseMessage]) -> Any:
        return ConnectionError("down") if self.down else f"Answer to: {messages[-1].text}"

    def ask(self, *turns: Any, config: Any = THREAD) -> None:
        for turn in turns:
            self.graph.invoke({"messages": [HumanMessage(f"Question {turn}")]}, config)

    @property
    def seen(self) -> list[str]:
        return [str(message.text) for message in self.model.calls[-1].messages]

    def channel(self, config: Any = THREAD) -> list[str]:
        return [str(m.text) for m in self.graph.get_state(config).values["messages"]]


def where(number: int) -> Any:
    return InMemoryStore() if number else None


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("store", [0, 1])
def test_a_compaction_is_checkpointed_before_the_model_is_called(store, schema):
    talk = Talk(where(store), schema)
    talk.ask(*range(4))
    talk.down = True
    with pytest.raises(ConnectionError):
        talk.ask(4, 5)
    for _ in range(3):
        with pytest.raises(ConnectionError):
            talk.graph.invoke(None, THREAD)
    talk.down = False
    talk.graph.invoke(None, THREAD)
    talk.ask(5, 6)
    assert len(talk.read) == 1
    assert len(talk.channel()) == 14


@pytest.mark.sampled(2)
@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("store", [0, 1])
def test_a_rewind_brings_back_the_record_that_belongs_to_it(store, schema):
    talk = Talk(where(store), schema)
    views: dict[int, tuple[Any, list[str]]] = {}
    for turn in range(14):
        talk.ask(turn)
        views[turn] = (talk.graph.get_state(THREAD).config, talk.seen)
    paid = len(talk.read)
    assert paid >= 3
    for turn in (12, 5, 8, 2):
        config, seen = views[turn]
        again = talk.graph.invoke(
            {"messages": [HumanMessage("And once more")]}, {**config, "callbacks": None}
        )
        if len(talk.read) == paid:
            assert talk.seen[: len(seen)] == seen
        paid = len(talk.read)
        assert [str(m.text) for m in again["messages"]][-2] == "And once more"
        assert len(talk.seen) <= 12


@pytest.mark.parametrize("store", [0, 1])
def test_an_edit_of_a_summarised_message_drops_the_summary_of_it(store):
    talk = Talk(where(store))
    talk.ask(*range(6))
    assert len(talk.read) == 1
    first = talk.graph.get_state(THREAD).values["messages"][0]
    talk.graph.update_state(THREAD, {"messages": [HumanMessage("Question zero", id=first.id)]})
    talk.ask(6)
    assert "Question zero" in talk.read[-1]
    assert not any(text == "Question 0" for read in talk.read[1:] for text in read)
    assert talk.channel()[0] == "Question zero"


# Views


def channel(count: int) -> list[BaseMessage]:
    return [HumanMessage(f"m{n}", id=f"m{n}") for n in range(count)]


def test_what_other_middleware_made_of_messages_is_kept_in_the_view():
    own = channel(6)
    summary = HumanMessage("summary", id="s")
    clip = HumanMessage("clip", id="m4")
    view = [own[0], summary, clip, own[5]]
    assert laid_over(view, own, own) == view
    changed = HumanMessage("shorter", id="m5")
    extra = SystemMessage("note", id="x")
    sent = [*own[:5], extra, changed]
    assert laid_over(view, own, sent) == [own[0], summary, clip, extra, changed]
    theirs = HumanMessage("edited", id="m4")  # also one that the view shows short
    assert laid_over(view, own, [*own[:4], theirs, own[5]]) == [own[0], summary, theirs, own[5]]
    assert laid_over(view, own, view) == view
    assert laid_over(view, own, own[1:4]) == [summary]


SETTINGS: dict[str, Any] = {"trigger": ("messages", 10), "keep": ("messages", 4)}


class Reader:
    """A summariser that notes what it is given."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, messages: list[BaseMessage]) -> str:
        self.read += [str(message.text) for message in messages]
        return "The user has asked questions, and each of them was answered."


def agent(kind: str, reader: Reader, model: ScriptedChatModel, saver: Any, store: Any) -> Any:
    settings: dict[str, Any] = {"summarizer": reader, "recall": "off", **SETTINGS}
    if kind == "deep":
        mine = summarization_middleware(model, window=50_000, **settings)
        return create_deep_agent(model, middleware=[mine], checkpointer=saver, store=store)
    middle = SummarizationMiddleware(None, history="preserve", **settings)
    return create_agent(
        model,
        [],
        middleware=[middle, ContextGuard(middle)],
        state_schema=PreservedState,
        checkpointer=saver,
        store=store,
    )


@pytest.mark.parametrize("kind", ["deep", "preserved"])
def test_another_process_goes_on_with_the_models_turn(kind):
    reader, saver, store, down = Reader(), InMemorySaver(), InMemoryStore(), [False]

    def answer(messages: list[BaseMessage]) -> Any:
        return ConnectionError("down") if down[0] else "Fine."

    model = ScriptedChatModel(answers=answer)
    graph = agent(kind, reader, model, saver, store)
    for turn in range(5):
        graph.invoke({"messages": [("user", f"Question {turn}.")]}, THREAD)
    assert not reader.read
    down[0] = True
    with pytest.raises(ConnectionError):
        graph.invoke({"messages": [("user", "Question 5.")]}, THREAD)
    down[0], read = False, len(reader.read)
    assert read
    agent(kind, reader, model, saver, store).invoke(None, THREAD)
    assert len(reader.read) == read
    shown = [message for message in model.calls[-1].messages if message.type != "system"]
    assert str(shown[0].content).startswith("Here is a summary")
    assert len(shown) < 10


def test_the_same_words_said_again_are_another_message():
    writes: list[Any] = [[("user", "Go on.")], ("user", "Go on."), [AIMessage("Done.", id="a")]]
    ids = [message.id for message in added([], writes)]  # type: ignore[union-attr]
    assert len(set(ids)) == 3
    for cut in range(4):
        whole = added(added([], writes[:cut]), writes[cut:])
        assert [message.id for message in whole] == ids  # type: ignore[union-attr]


def test_two_conversations_without_a_thread_that_begin_alike_share_nothing(tmp_path):
    model = ScriptedChatModel(answers=lambda messages: "Fine.")
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    for secret in ("alpha", "beta"):
        mine = summarization_middleware(
            model, backend, window=50_000, summarizer="embedded", **SETTINGS
        )
        graph = create_deep_agent(model, backend=backend, middleware=[mine], store=InMemoryStore())
        said: Any = [("user", "Hi."), *(("user", f"{secret} {n}") for n in range(12))]
        graph.invoke({"messages": said})
    folders = list((tmp_path / "conversation_history").iterdir())
    assert len(folders) == 2
    for folder in folders:
        text = "".join(file.read_text() for file in folder.glob("*.md"))
        assert ("alpha" in text) != ("beta" in text)


PROCESS = Path(__file__).parent / "graph_process.py"


def process(
    folder: Path, what: str, argument: Any = None, *, loop: bool = False, **more: Any
) -> Any:
    """What one process says; None where it was killed."""
    environment = {**os.environ, "MIDDLEWARE": json.dumps(more), "LOOP": "1" if loop else ""}
    done = ran(PROCESS, str(folder), what, json.dumps(argument), timeout=120, env=environment)
    if done.returncode == -9:
        return None
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def noted(folder: Path, kind: str) -> list[str]:
    path = folder / f"{kind}.jsonl"
    return [json.loads(line) for line in path.open()] if path.exists() else []


def read(folder: Path) -> Counter[str]:
    """Modules whose results were read by summarisers, with the number of times."""
    found: Counter[str] = Counter()
    for text in noted(folder, "read"):
        found.update(re.findall(r"module (m\d+): pass", text))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("loop", [False, True])
def test_each_turn_in_a_process_of_its_own(tmp_path, loop):
    archived = [process(tmp_path, "say", f"Turn {n}", loop=loop)["archived"] for n in range(4)]
    assert archived == sorted(archived)
    assert archived[-1] > 60
    assert max(read(tmp_path).values()) == 1, "read twice"
    # Behind an arrow notes quote what a result began with.
    whole = [re.findall(r"(?<!→ )module m", text) for text in noted(tmp_path, "sent")]
    assert max(map(len, whole)) <= 5


@pytest.mark.slow
def test_killed_and_then_spoken_to_instead_of_resumed(tmp_path):
    assert process(tmp_path, "die", "Look at all.") is None
    after = process(tmp_path, "say", "Are you still there?")
    assert after["last"] == "Enough for now."
    assert after["archived"] > 0
    again = process(tmp_path, "say", "Go on.")
    assert again["archived"] > after["archived"]
    # The first plan was another one, so its summary may be made anew, once.
    assert max(read(tmp_path).values()) <= 2
