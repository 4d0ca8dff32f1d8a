"""What is set on the middleware after it was built counts from the next step on, or raises."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime

from conspectus import Compactor, ContextGuard
from conspectus.errors import PolicyError
from conspectus.langchain import SummarizationMiddleware
from conspectus.messages import is_summary_message
from scripted_models import ScriptedChatModel

SUMMARY = "- the parts were looked at"


def writer(text: str = SUMMARY, **more: Any) -> ScriptedChatModel:
    return ScriptedChatModel(answers=lambda _: text, **more)


def talk(count: int) -> list[AnyMessage]:
    return [
        HumanMessage(f"What does part {n} do?", id=f"m{n}")
        if n % 2
        else AIMessage(f"Part {n} reads.", id=f"m{n}")
        for n in range(count)
    ]


def made(**settings: Any) -> SummarizationMiddleware:
    model = settings.pop("model", None) or writer()
    given = {"trigger": ("messages", 6), "keep": ("messages", 3), **settings}
    return SummarizationMiddleware(model, **given)


def step(own: SummarizationMiddleware, count: int = 8) -> Any:
    return own.before_model({"messages": talk(count)}, Runtime())


def kept(update: Any) -> int | None:
    if update is None:
        return None
    return sum(not is_summary_message(one) for one in update["messages"][1:])


def text(update: Any) -> str:
    return str(update["messages"][1].content)


def hundreds(messages: Any) -> int:
    return 100 * len(list(messages))


def test_keep_and_trigger():
    own = made()
    assert kept(step(own)) == 3
    own.keep = ("messages", 5)
    assert (own.keep, kept(step(own))) == (("messages", 5), 5)
    own.trigger = ("messages", 9)
    assert step(own) is None
    own.trigger = None
    assert step(own, 40) is None
    own.trigger = [("tokens", 10_000), {"messages": 8}]
    assert kept(step(own)) == 5


def test_a_trigger_that_is_changed_in_place():
    own = made(trigger=[("messages", 30)])
    assert step(own) is None
    own.trigger.append(("messages", 8))
    assert kept(step(own)) == 3
    own.trigger.clear()
    assert step(own) is None


def test_the_counter():
    own = made(trigger=("tokens", 700))
    assert step(own) is None
    own.token_counter = hundreds
    assert own.token_counter is hundreds
    assert kept(step(own)) == 3
    own.keep = ("tokens", 400)
    assert kept(step(own)) == 4


def test_the_model_and_what_it_is_asked():
    own, other = made(), writer("- by the other one", profile={"max_input_tokens": 4_000})
    with pytest.raises(PolicyError, match="Model profile information"):
        own.keep = ("fraction", 0.5)
    own.model = other
    assert own.model is other
    assert "by the other one" in text(step(own))
    own.summary_prompt = "As a haiku, of: {messages}"
    step(own)
    assert "As a haiku, of: " in other.calls[-1].text
    own.trigger = ("fraction", 0.01)
    assert step(own) is not None
    own.window = 40_000
    assert step(own) is None


def test_who_summarises_and_how_much():
    own = made()
    own.summarizer = lambda messages: f"- {len(messages)} messages"
    assert "- 5 messages" in text(step(own))
    own.summarizer = None
    assert SUMMARY in text(step(own))
    own.model = writer("\n".join(f"- part {n} was looked at and works" for n in range(40)))
    own.max_summary_tokens = 64
    assert "part 39" not in text(step(own))


def test_what_follows_a_failure():
    own = made(model=ScriptedChatModel(answers=lambda _: ValueError("invalid api key")))
    assert step(own) is None
    own.on_failure = "raise"
    with pytest.raises(ValueError, match="invalid api key"):
        step(own)
    own.model = writer()
    assert kept(step(own)) == 3, "another model is asked at once"


def test_who_stays_who_is_told_and_who_reads_it_first():
    own, heard = made(), list[str]()
    own.pin = lambda message: message.id == "m0"
    own.on_event = lambda event, data: heard.append(event)
    own.preview = lambda request: "- as a person has written it"
    update = step(own)
    assert kept(update) == 4
    assert heard == ["start", "end"]
    assert "as a person has written it" in "".join(str(m.content) for m in update["messages"])


SETTINGS: dict[str, Any] = {
    "tenant": "ada",
    "fallbacks": [writer()],
    "notes": False,
    "trim_tokens_to_summarize": 900,
    "telemetry": (),
    "before_summarization": None,
    "skills": None,
    "redact": True,
    "reserved_tokens": 100,
    "summarizer_timeout": 3.0,
    "truncate_args_settings": {"max_length": 900},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_every_other_setting_is_what_the_next_step_works_with(name):
    own, value = made(window=50_000), SETTINGS[name]
    before = own.graph_engine
    setattr(own, name, value)
    assert getattr(own, name) is value
    assert own.graph_engine is not before
    assert kept(step(own)) == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("history", "preserve"),
        ("recall", "tool"),
        ("recall_tokens", 900),
        ("compact_tool", True),
        ("archive", "memory:"),
        ("name", "Other"),
        ("graph_engine", None),
    ],
)
def test_what_agents_and_states_go_by_cannot_be_set(name, value):
    own = made()
    before = getattr(own, name)
    with pytest.raises((PolicyError, AttributeError)):
        setattr(own, name, value)
    assert getattr(own, name) is before


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("keep", ("messages", 0), "keep thresholds must be greater than 0"),
        ("trigger", {"words": 3}, "Unsupported trigger metric"),
        ("summary_prompt", "no slot", "messages"),
        ("model", 7, "model must be"),
        ("on_failure", "cry", "on_failure"),
    ],
)
def test_what_cannot_mean_anything_raises_and_changes_nothing(name, value, says):
    own = made()
    before = getattr(own, name)
    with pytest.raises(ValueError, match=says):
        setattr(own, name, value)
    assert getattr(own, name) is before
    assert kept(step(own)) == 3


def test_an_agent_that_runs_goes_on_with_it_and_so_does_its_guard():
    own = made(keep=("messages", 2), archive="memory:")
    answers = ScriptedChatModel(answers=lambda _: "It reads.")
    agent = create_agent(
        answers, middleware=[own, ContextGuard(own, window=9_000)], checkpointer=InMemorySaver()
    )
    config: Any = {"configurable": {"thread_id": "t"}}

    def turns(count: int) -> int:
        for n in range(count):
            state = agent.invoke({"messages": [HumanMessage(f"What does part {n} do?")]}, config)
        return len(state["messages"])

    assert turns(6) < 8
    own.trigger = ("messages", 30)
    assert turns(6) > 14
    own.trigger, own.keep = ("messages", 6), ("messages", 1)
    assert turns(1) == 3
    history = list(agent.get_state(config).values["messages"])
    assert sum(is_summary_message(one) for one in history) == 1


# Warnings


class Notes(SummarizationMiddleware):
    def __init__(self, **settings: Any) -> None:
        super().__init__(None, **settings)


WARNS: list[Callable[[], Any]] = [
    lambda: SummarizationMiddleware(None, max_tokens_before_summary=70),
    lambda: Notes(messages_to_keep=3),
    lambda: Notes(trigger=("messages", 3), keep=("messages", 9)),
    lambda: setattr(made(), "keep", ("messages", 9)),
    lambda: Compactor(trigger=("messages", 3), keep=("messages", 9)),
]


@pytest.mark.parametrize("warn", WARNS)
def test_a_warning_points_at_the_line_of_the_caller(warn):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warn()
    code: Any = warn.__code__  # type: ignore[attr-defined]
    assert [(one.filename, one.lineno) for one in found] == [(__file__, code.co_firstlineno)]
