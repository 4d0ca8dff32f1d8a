"""What LangChain allows of its middleware: copies, pickles, subscripts, a policy of traces."""

import copy
import pickle
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware as LangChains
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.runtime import Runtime

from conspectus import ContextGuard, SummarizationMiddleware
from conspectus.errors import PolicyError
from conspectus.messages import is_summary_message


def talk(who: str = "m") -> list[AnyMessage]:
    return [HumanMessage(f"Look at module {n}.", id=f"{who}{n}") for n in range(12)]


def made(**more: Any) -> SummarizationMiddleware:
    given = {"trigger": ("messages", 6), "keep": ("messages", 3), **more}
    model = FakeListChatModel(responses=["never asked"])
    return SummarizationMiddleware(model, summarizer=summarise, **given)


def summarise(messages: list[Any]) -> str:
    return f"- {len(messages)} modules are looked at"


def kept(own: SummarizationMiddleware, who: str = "m") -> int:
    update: Any = own.before_model({"messages": talk(who)}, Runtime())
    return sum(not is_summary_message(one) for one in update["messages"][1:])


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_a_copy_has_settings_of_its_own(copied, history, tmp_path):
    own = made(archive=tmp_path / "a.db", history=history, recall="tool", name="Mine")
    own.keep = ("messages", 4)
    other = copied(own)
    assert type(other) is SummarizationMiddleware
    assert (other.name, other.keep, other.history) == ("Mine", ("messages", 4), history)
    assert [tool.name for tool in other.tools] == ["recall"]
    other.keep = ("messages", 2)
    assert own.keep == ("messages", 4)
    for one, count in ((own, 4), (other, 2)):
        if history == "replace":
            assert kept(one, f"by {count} ") == count
        else:
            assert one.before_model({"messages": talk(f"{count}")}, Runtime())
    other.close()
    own.close()


def test_a_deep_copy_shares_the_archive_and_does_not_close_it():
    own = made(archive="memory:")
    other = copy.deepcopy(own)
    assert other.archive is own.archive
    other.close()
    assert kept(own) == 3


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
def test_a_guard_goes_with_its_middleware(copied):
    own = made()
    other, guard = copied([own, ContextGuard(own, window=9_000)])
    assert guard._graph is other.graph_engine
    create_agent(FakeListChatModel(responses=["Yes."]), middleware=[other, guard])
    alone = copied(ContextGuard(window=500, on_stuck="send"))
    agent: Any = create_agent(FakeListChatModel(responses=["Yes."]), middleware=[alone])
    assert agent.invoke({"messages": [("user", "hi")]})["messages"][-1].text == "Yes."


def test_a_copy_of_a_subclass_keeps_what_the_subclass_adds():
    class Mine(SummarizationMiddleware):
        def __init__(self, **settings: Any) -> None:
            super().__init__(None, **settings)
            self.label = ["a"]

    own = Mine(trigger=("messages", 6), keep=("messages", 2))
    other = copy.deepcopy(own)
    assert other.label == ["a"]
    assert other.label is not own.label
    assert kept(other) == 2


def test_it_can_be_subscripted_as_langchains():
    assert len(LangChains.__parameters__) == len(SummarizationMiddleware.__parameters__)
    for one in (LangChains, SummarizationMiddleware):
        alias = one[Any, dict]  # type: ignore[type-arg]
        assert alias(None if one is not LangChains else FakeListChatModel(responses=[]))
    assert ContextGuard[Any, Any]()


def test_hooks_are_traced_without_the_conversation():
    from deepagents.middleware.summarization import SummarizationMiddleware as DeepAgents

    theirs = DeepAgents.trace_policy
    for one in (SummarizationMiddleware, ContextGuard):
        assert one.trace_policy == theirs
    own = made()
    own.trace_policy = None
    assert own.trace_policy is None


def test_attributes():
    own = made()
    with pytest.raises(AttributeError, match="no attribute 'kep'"):
        _ = own.kep
    with pytest.raises(PolicyError, match="cannot change"):
        own.history = "preserve"
    assert not hasattr(own, "settings")
