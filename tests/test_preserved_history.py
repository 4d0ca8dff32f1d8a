"""`history="preserve"`: whatever way a thread is gone through, without ids, in another process."""

from typing import Any

import pytest
from deepagents.backends import FilesystemBackend
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from conspectus import Archive, ContextGuard, SummarizationMiddleware
from conspectus.bridge import run
from conspectus.deep_agents import create_deep_agent, summarization_middleware
from conspectus.langchain import PreservedState
from conspectus.langchain.agent_step import AgentStep
from conspectus.langchain.middleware_changes import apply_changes
from conspectus.langchain.state import add_writes
from scripted_models import ScriptedChatModel

THREAD: Any = {"configurable": {"thread_id": "t"}}
SETTINGS: dict[str, Any] = {"trigger": ("messages", 10), "keep": ("messages", 4), "recall": "off"}


class PreservedTalk:
    """An agent with a preserved history; its summaries are counted, its model may be down."""

    def __init__(self, store: Any = None, schema: Any = None, deep: bool = False) -> None:
        self.readings: list[list[str]] = []
        self.model_is_down = False
        self.model = ScriptedChatModel(answers=self._answer)
        self.store = store
        self.saver = InMemorySaver()
        self.schema = schema
        self.deep = deep
        self.history: Any = "preserve"
        self.graph = self.new_graph()

    def new_graph(self) -> Any:
        """The agent, as another process builds it on the same checkpoints and store."""
        persistence: Any = {"checkpointer": self.saver, "store": self.store}
        if self.deep:
            summarization = summarization_middleware(
                self.model, window=50_000, summarizer=self._summary, **SETTINGS
            )
            return create_deep_agent(self.model, middleware=[summarization], **persistence)
        summarization = SummarizationMiddleware(
            None, summarizer=self._summary, history=self.history, **SETTINGS
        )
        stack = [summarization, ContextGuard(summarization)] if self.schema else [summarization]
        return create_agent(
            self.model, [], middleware=stack, state_schema=self.schema, **persistence
        )

    def _summary(self, messages: list[BaseMessage]) -> str:
        self.readings.append([str(message.text) for message in messages])
        return f"The user has asked {len(self.readings)} rounds of questions. " * 6

    def _answer(self, messages: list[BaseMessage]) -> Any:
        return ConnectionError("down") if self.model_is_down else f"Answer to: {messages[-1].text}"

    def ask(self, *turns: Any) -> None:
        for turn in turns:
            self.graph.invoke({"messages": [("user", f"Question {turn}")]}, THREAD)

    @property
    def sent_texts(self) -> list[str]:
        shown = [message for message in self.model.calls[-1].messages if message.type != "system"]
        return [str(message.text) for message in shown]

    def channel(self) -> list[str]:
        return [str(m.text) for m in self.graph.get_state(THREAD).values["messages"]]


def store_or_none(with_store: bool) -> Any:
    return InMemoryStore() if with_store else None


@pytest.mark.parametrize(
    ("with_store", "schema", "deep"),
    [
        (False, None, False),
        (False, PreservedState, False),
        (True, PreservedState, False),
        (True, None, True),
    ],
)
def test_another_process_goes_on_with_the_models_turn(with_store, schema, deep):
    """A compaction is checkpointed before the model is called."""
    talk = PreservedTalk(store_or_none(with_store), schema, deep)
    talk.ask(*range(5))
    assert not talk.readings
    talk.model_is_down = True
    with pytest.raises(ConnectionError):
        talk.ask(5)
    assert len(talk.readings) == 1
    for _ in range(3):
        with pytest.raises(ConnectionError):
            talk.graph.invoke(None, THREAD)
    talk.model_is_down = False
    talk.graph = talk.new_graph()
    talk.graph.invoke(None, THREAD)
    assert talk.sent_texts[0].startswith("Here is a summary")
    talk.ask(6)
    assert len(talk.readings) == 1
    assert len(talk.channel()) == 14


@pytest.mark.parametrize("with_store", [False, True])
def test_an_edit_of_a_summarised_message_drops_the_summary_of_it(with_store):
    talk = PreservedTalk(store_or_none(with_store))
    talk.ask(*range(6))
    assert len(talk.readings) == 1
    first = talk.graph.get_state(THREAD).values["messages"][0]
    talk.graph.update_state(THREAD, {"messages": [HumanMessage("Question zero", id=first.id)]})
    talk.ask(6)
    assert "Question zero" in talk.readings[-1]
    assert not any(text == "Question 0" for read in talk.readings[1:] for text in read)
    assert talk.channel()[0] == "Question zero"


def test_what_other_middleware_made_of_messages_is_kept_in_the_view():
    history: list[BaseMessage] = [HumanMessage(f"m{n}", id=f"m{n}") for n in range(6)]
    history[0] = SystemMessage("m0", id="m0")
    summary = HumanMessage("summary", id="s")
    clip = HumanMessage("clip", id="m4")
    view = [history[0], summary, clip, history[5]]
    assert apply_changes(view, history, history) == view
    changed = HumanMessage("shorter", id="m5")
    extra = SystemMessage("note", id="x")
    sent = [*history[:5], extra, changed]
    assert apply_changes(view, history, sent) == [history[0], summary, clip, extra, changed]
    edited = HumanMessage("edited", id="m4")  # also one that the view shows short
    assert apply_changes(view, history, [*history[:4], edited, history[5]]) == [
        history[0],
        summary,
        edited,
        history[5],
    ]
    assert apply_changes(view, history, view) == view
    assert apply_changes(view, history, history[1:4]) == [summary]
    # As when they are rebuilt of dicts.
    bare = [message.model_copy(update={"id": None}) for message in history]
    assert apply_changes(view, history, bare) == view
    note = SystemMessage("note")  # in the place of one that has left
    assert apply_changes(view, history, [note, *bare[1:]])[0] == note


@pytest.mark.parametrize("with_store", [False, True])
def test_a_thread_may_have_begun_with_its_history_replaced(with_store):
    talk = PreservedTalk(store_or_none(with_store))
    for talk.history, turns in (("replace", range(9)), ("preserve", range(9, 40))):
        talk.graph = talk.new_graph()
        talk.ask(*turns)
    assert max(len(call.messages) for call in talk.model.calls) <= 10
    assert len(talk.readings) <= 14


def test_the_same_words_said_again_are_another_message():
    writes: list[Any] = [[("user", "Go on.")], ("user", "Go on."), [AIMessage("Done.", id="a")]]
    ids = [message.id for message in add_writes([], writes)]  # type: ignore[union-attr]
    assert len(set(ids)) == 3
    for cut in range(4):
        whole = add_writes(add_writes([], writes[:cut]), writes[cut:])
        assert [message.id for message in whole] == ids  # type: ignore[union-attr]


def test_two_conversations_without_a_thread_that_begin_alike_share_nothing(tmp_path):
    model = ScriptedChatModel(answers=lambda messages: "Fine.")
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    for secret in ("alpha", "beta"):
        middleware = summarization_middleware(
            model, backend, window=50_000, summarizer="embedded", **SETTINGS
        )
        graph = create_deep_agent(
            model, backend=backend, middleware=[middleware], store=InMemoryStore()
        )
        words = [f"{secret} {n} " + "word " * 40 for n in range(12)]
        user_messages: Any = [("user", "Hi."), *(("user", text) for text in words)]
        graph.invoke({"messages": user_messages})
    folders = list((tmp_path / "conversation_history").iterdir())
    assert len(folders) == 2
    for folder in folders:
        text = "".join(file.read_text() for file in folder.glob("*.md"))
        assert ("alpha" in text) != ("beta" in text)


def test_a_once_shorter_history_is_seen_as_in_another_process():
    settings = {**SETTINGS, "history": "preserve", "archive": Archive.open("memory:")}
    middlewares = [SummarizationMiddleware("embedded", **settings) for _ in range(2)]
    messages = [HumanMessage(f"Question {n}.", id=f"m{n}") for n in range(30)]
    state: Any = {}
    for end in (16, 30):
        state["messages"] = messages[:end]
        state |= middlewares[0].before_model(state, Runtime())
    middlewares[0].before_model({**state, "messages": messages[:18]}, Runtime())
    views = [
        run(AgentStep.of(middleware._setup, state, Runtime()).fold_view()).messages
        for middleware in middlewares
    ]
    assert views[0] == views[1]
