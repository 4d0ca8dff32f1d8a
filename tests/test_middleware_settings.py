"""Settings of the middleware: read at each step, fixed ones, warnings, copies, pickles."""

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents.middleware import SummarizationMiddleware as LangChains
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.runtime import Runtime

from conspectus import Compactor, ContextGuard
from conspectus.errors import PolicyError
from conspectus.langchain import SummarizationMiddleware
from conspectus.messages import is_summary_message
from scripted_models import ScriptedChatModel

SUMMARY = "- the parts were looked at"


def summarise(messages: Any) -> str:
    """Stay a module's function, so that it can be pickled."""
    return f"- {len(messages)} parts were looked at"


def writer(text: str = SUMMARY, **more: Any) -> ScriptedChatModel:
    return ScriptedChatModel(answers=lambda _: text, **more)


def talk(count: int = 8, who: str = "m") -> list[AnyMessage]:
    kinds = (AIMessage, HumanMessage)
    return [kinds[n % 2](f"What does part {n} do?", id=f"{who}{n}") for n in range(count)]


def made(model: Any = None, **settings: Any) -> SummarizationMiddleware:
    settings = {"trigger": ("messages", 6), "keep": ("messages", 3), **settings}
    return SummarizationMiddleware(model or writer(), **settings)


def step(own: SummarizationMiddleware, count: int = 8, who: str = "m") -> Any:
    return own.before_model({"messages": talk(count, who)}, Runtime())


def kept(update: Any) -> int | None:
    return update and sum(not is_summary_message(one) for one in update["messages"][1:])


def text(update: Any) -> str:
    return str(update["messages"][1].content)


# Set later


def test_keep_and_trigger():
    own = made()
    assert kept(step(own)) == 3
    own.keep = ("messages", 5)
    assert (own.keep, kept(step(own))) == (("messages", 5), 5)
    own.trigger = [("messages", 9)]
    assert step(own) is None
    own.trigger.append({"messages": 8})  # in place
    assert kept(step(own)) == 5
    own.trigger = None
    assert step(own, 40) is None


def test_the_counter_the_model_and_who_summarises():
    own, other = made(trigger=("tokens", 700)), writer("- by the other one")
    other.profile = {"max_input_tokens": 4_000}
    assert step(own) is None
    own.token_counter = lambda messages: 100 * len(list(messages))
    assert kept(step(own)) == 3
    own.keep = ("tokens", 400)
    assert kept(step(own)) == 4
    own.model = other
    assert "by the other one" in text(step(own))
    own.summary_prompt = "As a haiku, of: {messages}"
    step(own)
    assert "As a haiku, of: " in other.calls[-1].text
    own.trigger, own.window = ("fraction", 0.01), 400_000
    assert step(own) is None
    own.window = None
    own.summarizer = lambda messages: f"- {len(messages)} messages"
    assert "- 4 messages" in text(step(own))
    own.summarizer = None
    assert "by the other one" in text(step(own))


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("keep", ("messages", 0), "keep thresholds must be greater than 0"),
        ("keep", ("fraction", 0.5), "Model profile information"),
        ("trigger", {"words": 3}, "Unsupported trigger metric"),
        ("summary_prompt", "no slot", "messages"),
        ("on_failure", "cry", "on_failure"),
    ],
)
def test_what_cannot_be_set_is_said_at_the_next_step(name, value, says):
    own = made()
    before = getattr(own, name)
    setattr(own, name, value)
    with pytest.raises(PolicyError, match=says):
        step(own)
    setattr(own, name, before)
    assert kept(step(own)) == 3


@pytest.mark.parametrize(
    ("name", "value", "error", "says"),
    [
        ("history", "preserve", PolicyError, "history cannot change"),
        ("recall", "tool", PolicyError, "recall cannot change"),
        ("recall_tokens", 900, PolicyError, "recall_tokens cannot change"),
        ("compact_tool", True, PolicyError, "compact_tool cannot change"),
        ("archive", "memory:", PolicyError, "archive cannot change"),
        ("keeep", ("messages", 5), AttributeError, "no setting 'keeep'; did you mean 'keep'"),
    ],
)
def test_what_agents_depend_on_and_what_is_misspelt_is_refused_at_once(name, value, error, says):
    own = made()
    with pytest.raises(error, match=says):
        setattr(own, name, value)
    assert kept(step(own)) == 3
    with pytest.raises(AttributeError, match="did you mean 'window'"):
        ContextGuard(own).windw = 9_000  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="did you mean 'trigger'"):
        SummarizationMiddleware(None, triger=("messages", 3))


# Warnings


class Notes(SummarizationMiddleware):
    def __init__(self, **settings: Any) -> None:
        super().__init__(None, **settings)


WARNS: list[Callable[[], Any]] = [
    lambda: SummarizationMiddleware(None, max_tokens_before_summary=70),
    lambda: SummarizationMiddleware(None, trigger=("messages", 3), keep=("messages", 9)),
    lambda: Compactor(trigger=("messages", 3), keep=("messages", 9)),
]


@pytest.mark.parametrize("warn", WARNS)
def test_a_warning_points_at_the_line_of_the_caller(warn):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn()
    code: Any = warn.__code__  # type: ignore[attr-defined]
    assert [(one.filename, one.lineno) for one in caught] == [(__file__, code.co_firstlineno)]


# Copies


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_a_copy_has_settings_of_its_own(copied, history, tmp_path):
    settings: Any = {"history": history, "recall": "tool", "name": "Mine", "summarizer": summarise}
    own = SummarizationMiddleware(
        None, trigger=("messages", 6), archive=tmp_path / "a.db", **settings
    )
    own.keep = ("messages", 4)
    other = copied(own)
    assert type(other) is SummarizationMiddleware
    assert (other.name, other.keep, other.history) == ("Mine", ("messages", 4), history)
    assert [tool.name for tool in other.tools] == ["recall"]
    other.keep = ("messages", 2)
    assert own.keep == ("messages", 4)
    for one, count in ((own, 4), (other, 2)):
        update = step(one, who=f"by {count} ")
        assert history == "preserve" or kept(update) == count
    other.close()
    own.close()


def test_a_subclass_a_subscript_and_traces_as_langchains():
    from deepagents.middleware.summarization import SummarizationMiddleware as DeepAgents

    own = Notes(trigger=("messages", 6), keep=("messages", 2))
    own.label = ["a"]
    other = copy.deepcopy(own)
    assert other.label == ["a"]
    assert other.label is not own.label
    assert kept(step(other)) == 2
    assert len(LangChains.__parameters__) == len(SummarizationMiddleware.__parameters__)
    assert SummarizationMiddleware[Any, dict](None)  # type: ignore[type-arg]
    assert ContextGuard[Any, Any]()
    for one in (SummarizationMiddleware, ContextGuard):
        assert one.trace_policy == DeepAgents.trace_policy
    with pytest.raises(AttributeError, match="no attribute 'kep'"):
        _ = own.kep
