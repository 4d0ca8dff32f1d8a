"""Views without two messages of the user in a row, as Mistral's and Gemma's templates demand."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    convert_to_messages,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from conspectus import SUMMARY_LINE, Compactor, PolicyError
from conspectus.archive import Scope
from conspectus.deep_agents import create_deep_agent, summarization_middleware
from conspectus.langchain import ContextGuard
from conspectus.messages import read_messages
from conspectus.messages.alternation import alternating, is_joined_into
from conspectus.short_term import summarize_messages
from conspectus.short_term.step import without_joined_summary
from conspectus_sdk import Fitter
from graph_support import look, new_agent, new_middleware, thread_config, tool_steps, user_input
from scripted_models import ScriptedChatModel

SCOPE = Scope("local", "t", "main")
LONG = "one two three four five six seven " * 12


def is_refused(messages: Sequence[Any]) -> bool:
    """Whether a template refuses a history: only calls and their results may stand between."""
    roles = [
        entry.role
        for entry in read_messages(list(messages))
        if entry.role == "user" or (entry.role == "assistant" and not entry.calls)
    ]
    return roles[:1] == ["assistant"] or any(
        role == next_role for role, next_role in pairwise(roles)
    )


def turn(number: int) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": f"Question {number}: {LONG}"},
        {"role": "assistant", "content": f"Answer {number}: {LONG}"},
    ]


def talk(turns: int) -> list[dict[str, Any]]:
    return [message for number in range(turns) for message in turn(number)]


def new_compactor(**changes: Any) -> Compactor:
    settings: dict[str, Any] = {"window": 3_000, "keep": ("messages", 3), "archive": "memory:"}
    return Compactor(**{**settings, **changes})


def through_json(messages: list[Any]) -> list[Any]:
    return list(json.loads(json.dumps(messages)))


def through_langchain(messages: list[Any]) -> list[Any]:
    from langchain_core.messages import messages_from_dict, messages_to_dict

    return messages_from_dict(messages_to_dict(messages))


@pytest.mark.parametrize("kept", [1, 2, 3, 5])
def test_summary_and_task_are_one_message_for_an_unknown_model(kept):
    result = new_compactor(keep=("messages", kept)).compact(
        talk(20)[:-1], thread_id="t", force=True
    )
    assert result.outcome == "compacted"
    assert not is_refused(result.messages)
    assert talk(20)[-2]["content"] in result.messages[-1]["content"]


def run_loop(compactor: Compactor, turns: int, through: Any, blocks: bool = False) -> list[Any]:
    """Send each result back with a new turn; check each view, and return the last one."""
    view: list[Any] = []
    for number in range(turns):
        question, answer = turn(number)
        if blocks:
            question = {**question, "content": [{"type": "text", "text": question["content"]}]}
        result = compactor.compact([*view, question], thread_id="t")
        assert result.outcome != "stuck"
        assert not is_refused(result.messages)
        view = [*through(result.messages), answer]
    return view


@pytest.mark.parametrize("blocks", [False, True])
def test_a_view_that_comes_back_goes_on_with_its_chain(blocks):
    compactor = new_compactor()
    view = run_loop(compactor, 60, through_json, blocks)
    chain = compactor.archive.chain(SCOPE)
    assert len(chain) > 3
    assert [record.parent for record in chain[1:]] == [record.id for record in chain[:-1]]
    covered = [key for record in chain for key in record.covers]
    originals = compactor.archive.get(SCOPE, covered)
    texts = [read_messages([original.message])[0].text for original in originals]
    shown = [entry.text for entry in read_messages(view)]
    for message in talk(60):
        matches = [text.endswith(message["content"]) for text in (*texts, *shown)]
        assert matches.count(True) == 1


def test_the_whole_history_sent_later_is_the_same_chain():
    compactor = new_compactor()
    view = run_loop(compactor, 30, through_json)
    head = compactor.archive.head_id(SCOPE)
    result = compactor.compact([*talk(30)], thread_id="t")
    assert compactor.archive.head_id(SCOPE) == head
    assert result.messages == view


def test_messages_of_langchain_come_back_as_they_were():
    compactor = new_compactor()
    view: list[BaseMessage] = []
    for number in range(40):
        question, answer = convert_to_messages(turn(number))
        question.id = f"q{number}"
        question.additional_kwargs = {"team": "billing"}
        result = compactor.compact([*view, question], thread_id="t")
        assert not is_refused(result.messages)
        view = [*through_langchain(result.messages), answer]
    chain = compactor.archive.chain(SCOPE)
    assert [record.parent for record in chain[1:]] == [record.id for record in chain[:-1]]
    evicted = [original.message for original in compactor.archive.get(SCOPE, chain[-1].covers)]
    questions = [message for message in evicted if isinstance(message, HumanMessage)]
    assert questions
    assert all(question.additional_kwargs == {"team": "billing"} for question in questions)
    assert all(str(question.id).startswith("q") for question in questions)


def test_pinned_messages_of_the_user_are_told_apart_again():
    """Else the pinned one would grow by each task that is joined to it."""
    compactor = new_compactor(pin="keep_me")
    rule = {"role": "user", "content": "Never push to main.", "keep_me": True}
    view: list[Any] = [rule, {"role": "assistant", "content": "I will not."}]
    for number in range(40):
        question, answer = turn(number)
        result = compactor.compact([*view, question], thread_id="t")
        assert result.outcome != "stuck"
        assert not is_refused(result.messages)
        assert (
            sum("Never push to main." in str(message["content"]) for message in result.messages)
            >= 1
        )
        view = [*through_json(result.messages), answer]
    assert sum(len(message["content"]) for message in view) < 12_000
    # It stands behind the notes as a message of its own, not in them as a quotation.
    assert "\n\nNever push to main.\n\n" in result.messages[0]["content"]


def test_a_model_that_took_two_in_a_row_needs_no_joining():
    history = [*talk(10), *turn(10)[:1], *talk(20)]
    result = new_compactor().compact(history[:-1], thread_id="t", force=True)
    assert result.messages[0]["content"].startswith(SUMMARY_LINE)
    kept_messages = result.messages[1:]
    assert all(
        any(kept_message is message for message in history) for kept_message in kept_messages
    )


@pytest.mark.parametrize(
    ("settings", "joined"),
    [
        ({}, True),
        ({"tokenizer": "gpt-4o"}, False),
        ({"tokenizer": "mistral-small"}, True),
        ({"tokenizer": "google/gemma-3-27b-it"}, True),
        ({"alternate_roles": "off"}, False),
        ({"alternate_roles": "on", "tokenizer": "gpt-4o"}, True),
    ],
)
def test_the_setting_and_the_name_of_the_model_decide(settings, joined):
    history = talk(20)[:-1]
    result = new_compactor(**settings, keep=("messages", 1)).compact(
        history, thread_id="t", force=True
    )
    assert is_refused(result.messages) != joined


def test_several_newest_messages_of_the_user_become_one():
    history = [*talk(20), *turn(20)[:1], *turn(21)[:1]]
    result = new_compactor().compact(history, thread_id="t", force=True)
    assert not is_refused(result.messages)
    assert "Question 20" in result.messages[-1]["content"]
    assert "Question 21" in result.messages[-1]["content"]


def test_with_on_a_kept_history_is_joined_too():
    history = [*turn(0)[:1], *turn(1)]
    compactor = new_compactor(alternate_roles="on")
    for _ in range(2):
        assert not is_refused(compactor.compact(history, thread_id="t").messages)
    longer = [*history, *turn(2)[:1], *turn(3)[:1]]
    assert not is_refused(compactor.compact(longer, thread_id="t").messages)


def test_a_joined_message_of_another_thread_is_the_users():
    question, _ = turn(9)
    joined = (
        new_compactor(keep=("messages", 1))
        .compact(talk(20)[:-1], thread_id="t", force=True)
        .messages[0]
    )
    result = new_compactor().compact([joined, turn(0)[1], question], thread_id="t")
    assert result.messages[0] is joined
    assert result.dropped == 0


def test_a_setting_that_is_none_is_refused():
    with pytest.raises(PolicyError, match="alternate_roles must be"):
        Compactor(alternate_roles="yes")  # type: ignore[arg-type]


@given(st.lists(st.sampled_from(["turn", "calls", "back", "whole"]), max_size=30), st.booleans())
def test_no_view_of_any_loop_is_refused(steps, as_langchain):
    compactor = new_compactor(window=1_500, keep=("messages", 4), trigger=("messages", 6))
    view: list[Any] = []
    whole: list[Any] = []
    for number, step in enumerate(steps):
        question, answer = turn(number)
        new: list[Any] = [question]
        if step == "calls":
            call = {"id": f"c{number}", "type": "function"}
            call["function"] = {"name": "look", "arguments": "{}"}  # type: ignore[assignment]
            new.append({"role": "assistant", "content": "", "tool_calls": [call]})
            new.append({"role": "tool", "tool_call_id": f"c{number}", "content": "Seen."})
        if as_langchain:
            new = convert_to_messages(new)
        view += new
        whole += new
        result = compactor.compact(whole if step == "whole" else view, thread_id="t")
        assert not is_refused(result.messages)
        last = AIMessage(answer["content"]) if as_langchain else answer
        view = [*result.messages, last]
        whole.append(last)


class StrictTemplate:
    """Answers like a scripted model, and refuses what a template of Mistral refuses."""

    def __init__(self, answers: Any) -> None:
        self.answers = list(answers)
        self.refusals = 0

    def __call__(self, messages: list[BaseMessage]) -> Any:
        if is_refused(messages):
            self.refusals += 1
            return ValueError(
                "Error code: 400 - Conversation roles must alternate user/assistant/user/..."
            )
        return self.answers.pop(0)


@pytest.mark.parametrize("history", ["replace", "preserve"])
@pytest.mark.parametrize("guarded", [False, True])
def test_an_agent_of_an_unknown_model_is_never_refused(history, guarded):
    model = StrictTemplate(tool_steps(30))
    summarization = new_middleware(history=history)
    guard = [ContextGuard(summarization, window=20_000)] if guarded else []
    graph, _ = new_agent(model, summarization, *guard)
    out = graph.invoke(user_input("Look at all modules."), thread_config())
    assert model.refusals == 0
    if history == "preserve":
        assert out["messages"][0].content == "Look at all modules."
    else:
        assert [message.content for message in out["messages"] if message.type == "human"][1:] == [
            "Look at all modules."
        ]


def test_what_a_provider_refuses_is_sent_again_joined_and_remembered():
    """A model of this name is known to take two messages; its gateway does not."""
    model = StrictTemplate(tool_steps(30))
    answering = ScriptedChatModel(answers=model, model_name="gpt-4o")
    summarization = new_middleware()
    graph, _ = new_agent(answering, summarization, ContextGuard(summarization, window=20_000))
    graph.invoke(user_input("Look at all modules."), thread_config())
    assert model.refusals == 1
    state = graph.get_state(thread_config()).values
    assert list(state["_conspectus_request"]["refused"].values()) == [["roles"]]


def test_with_off_a_refusal_is_the_callers():
    answering = ScriptedChatModel(answers=StrictTemplate(tool_steps(30)), model_name="gpt-4o")
    summarization = new_middleware(alternate_roles="off")
    graph, _ = new_agent(answering, summarization)
    with pytest.raises(ValueError, match="roles must alternate"):
        graph.invoke(user_input("Look at all modules."), thread_config())


class NoSystemRole(StrictTemplate):
    """Refuses each system message, as the first templates of Gemma do."""

    def __call__(self, messages: list[BaseMessage]) -> Any:
        if any(message.type == "system" for message in messages):
            self.refusals += 1
            return ValueError("jinja2.exceptions.TemplateError: System role not supported")
        return super().__call__(messages)


def test_a_refused_system_prompt_goes_into_the_first_message():
    model = NoSystemRole(tool_steps(12))
    summarization = new_middleware()
    guard = ContextGuard(summarization, window=20_000)
    graph, answering = new_agent(model, summarization, guard, system_prompt="Be brief.")
    graph.invoke(user_input("Look at all modules."), thread_config())
    assert model.refusals == 1
    assert str(answering.calls[-1].messages[0].content).startswith("Be brief.\n\n")


def test_a_summarisers_model_without_a_system_role_is_asked_without_one():
    summary: Any = "## Findings\n- the parts were looked at one by one " * 6
    model = NoSystemRole([summary] * 9)
    writer = ScriptedChatModel(answers=model)
    compactor = new_compactor(model=writer, window=3_000)
    for _ in range(2):
        result = compactor.compact(talk(20)[:-1], thread_id="t", force=True)
        assert "looked at one by one" in result.summary
    assert model.refusals == 1
    [prompt] = [call.messages for call in writer.calls][-1:]
    assert [message.type for message in prompt] == ["human"]


def messages_of(turns: int) -> list[BaseMessage]:
    messages = convert_to_messages(talk(turns)[:-1])
    for number, message in enumerate(messages):
        message.id = f"m{number}"
    return messages


@pytest.mark.parametrize(("setting", "name"), [("on", "scripted"), ("auto", "mistral-small")])
def test_langmems_result_alternates_and_may_be_the_next_history(setting, name):
    model = ScriptedChatModel(answers=["They went on."] * 40, model_name=name)
    limits: Any = {"max_tokens": 900, "max_summary_tokens": 100, "alternate_roles": setting}
    history: list[BaseMessage] = []
    running = None
    summaries = 0
    for number, message in enumerate(messages_of(20)):
        history.append(message)
        if message.type == "ai":
            continue
        result = summarize_messages(history, running_summary=running, model=model, **limits)
        assert not is_refused(result.messages)
        summaries += running != result.running_summary
        running = result.running_summary
        history = through_langchain(result.messages)
        assert history[-1].content.endswith(message.content)
        assert history[-1].id == f"m{number}"
    assert summaries > 3
    summarised = running.summarized_message_ids if running else set()
    assert len(summarised) == len(set(summarised))
    assert summarised | {str(message.id) for message in history} >= {
        f"m{number}" for number in range(39)
    }


def test_a_fitter_goes_by_the_name_of_the_model():
    with Fitter(archive="memory:", window=1_500) as fitter:
        for model, joined in (("mistral-small", True), ("gpt-4o", False), ("own", True)):
            result = fitter.fit(talk(20)[:-1], model=model, thread_id=model)
            view = result.messages
            assert result.outcome == "compacted"
            assert any(message["content"].startswith(SUMMARY_LINE) for message in view)
            assert not (joined and is_refused(view))


def test_a_guard_by_itself_and_deep_agents_take_the_setting():
    assert ContextGuard(alternate_roles="on").summarization.alternate_roles == "on"
    middleware = summarization_middleware(ScriptedChatModel(answers=[]), alternate_roles="off")
    assert middleware.alternate_roles == "off"
    assert middleware.for_model(ScriptedChatModel(answers=[])).alternate_roles == "off"


def test_results_of_tools_in_the_users_name_begin_no_joined_message():
    """Anthropic's results stand first in their message, behind their call."""
    compactor = new_compactor(keep=("messages", 4))
    view: list[Any] = []
    for number in range(30):
        use = {"type": "tool_use", "id": f"t{number}", "name": "look", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "seen " * 50}
        for new in (
            [{"role": "user", "content": f"Look at part {number}: {LONG}"}],
            [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}],
        ):
            compacted = compactor.compact([*view, *new], thread_id="t")
            roles = [message["role"] for message in compacted.messages]
            assert all(role != next_role for role, next_role in pairwise(roles))
            view = through_json(compacted.messages)
        view.append({"role": "assistant", "content": "Seen."})
    chain = compactor.archive.chain(SCOPE)
    assert len(chain) > 3
    assert [record.parent for record in chain[1:]] == [record.id for record in chain[:-1]]


def test_a_node_that_replaces_its_state_keeps_its_chain():
    compactor = new_compactor(keep=("messages", 1))

    def answer(state: MessagesState) -> dict[str, Any]:
        result = compactor.compact(state["messages"], thread_id="t")
        assert not is_refused(result.messages)
        reply = AIMessage(f"Answer: {LONG}")
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *result.messages, reply]}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    built = graph.compile(checkpointer=InMemorySaver())
    for number in range(30):
        out = built.invoke(user_input(f"Question {number}: {LONG}"), thread_config())
    chain = compactor.archive.chain(SCOPE)
    assert [record.parent for record in chain[1:]] == [record.id for record in chain[:-1]]
    covered = {key for record in chain for key in record.covers}
    shown = sum(message.type != "system" for message in out["messages"])
    assert len(chain) > 2
    assert len(covered) + shown == 60


def test_deep_agents_send_no_two_in_a_row():
    model = StrictTemplate(tool_steps(25))
    answering = ScriptedChatModel(answers=model, profile={"max_input_tokens": 20_000})
    settings: Any = {"trigger": ("messages", 10), "keep": ("messages", 4), "archive": "memory:"}
    summarization = summarization_middleware(answering, summarizer="embedded", **settings)
    graph = create_deep_agent(answering, tools=[look], middleware=[summarization])
    graph.invoke(user_input("Look at all modules."), thread_config())
    assert model.refusals == 0
    assert any(SUMMARY_LINE in call.text for call in answering.calls)


def test_a_step_with_nothing_due_notices_two_messages_of_the_user():
    compactor = Compactor(alternate_roles="off", archive="memory:")
    messages: list[Any] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "ho"},
    ]
    assert compactor.compact(messages, thread_id="t").may_need_joining
    messages += [{"role": "user", "content": "and"}, {"role": "user", "content": "now?"}]
    messages.append({"role": "assistant", "content": "Now."})
    assert not compactor.compact(messages, thread_id="t").may_need_joining


@pytest.mark.parametrize(
    ("content", "is_part"), [("Go", False), ("Go on.", True), ("Now go.", True), ("", False)]
)
def test_only_a_whole_message_is_a_part_of_a_joined_one(content, is_part):
    joined = {"role": "user", "content": "Notes.\n\nGo on.\n\nNow go."}
    assert is_joined_into({"role": "user", "content": content}, joined) == is_part
    blocks = {"role": "user", "content": [{"type": "text", "text": "Notes."}]}
    assert not is_joined_into({"role": "user", "content": []}, blocks)


@pytest.mark.parametrize("sequence", [list, tuple])
def test_a_joined_summary_is_recognised_in_any_sequence(sequence):
    joined = alternating([HumanMessage("Notes."), HumanMessage("Hi.")])
    remaining = without_joined_summary(sequence(joined), [HumanMessage("Notes.")])
    assert [message.content for message in remaining] == ["Hi."]
