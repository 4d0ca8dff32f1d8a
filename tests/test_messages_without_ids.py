"""Messages such as `("user", "hi")`, which a delta channel keeps without an id."""

from typing import Any

import pytest
from deepagents.backends import FilesystemBackend
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from conspectus import ContextGuard, SummarizationMiddleware
from conspectus.deep_agents import create_deep_agent, summarization_middleware
from conspectus.langchain import PreservedState
from conspectus.langchain.state import added
from scripted_models import ScriptedChatModel

THREAD: Any = {"configurable": {"thread_id": "t"}}
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
