"""A message is the user's if the user wrote it: no host's reminder takes the request's place."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.runtime import Runtime

from conspectus import Compactor, HostMessages, PolicyError, SummarizationMiddleware, add_host
from conspectus.messages import hosts
from conspectus.messages.alternation import alternating
from conspectus.messages.hosts import is_host_message
from conspectus.messages.users import newest_user_message
from graph_support import (
    look_calls,
    new_agent,
    new_middleware,
    thread_config,
    tool_steps,
    user_input,
)

REQUEST = "Compare the tax rates of all modules, and change nothing."
HIDDEN = {"hide_from_ui": True}

HOSTS: dict[str, Callable[[], HumanMessage]] = {
    "DeerFlow, hidden": lambda: HumanMessage("Three todos are open.", additional_kwargs=HIDDEN),
    "DeerFlow, named": lambda: HumanMessage("Three todos are open.", name="todo_reminder"),
    "DeerFlow, its tag": lambda: HumanMessage(
        "<system_reminder>\nThree todos are open.\n</system_reminder>"
    ),
    "DeerFlow, a goal": lambda: HumanMessage("<goal_continuation>Go on.</goal_continuation>"),
    "DeerFlow, a loop": lambda: HumanMessage("You repeat yourself.", name="loop_warning"),
    "DeerFlow, its summary": lambda: HumanMessage("They compared rates.", name="summary"),
    "LangChain": lambda: HumanMessage("They talked.", additional_kwargs={"lc_source": "rubric"}),
    "Deep Agents": lambda: HumanMessage("[SYSTEM] Task interrupted by user."),
    "Claude Code": lambda: HumanMessage(
        "<system-reminder>\nThe file was changed.\n</system-reminder>\n"
        "<system-reminder>And that one.</system-reminder>"
    ),
    "Claude Code, cut off": lambda: HumanMessage("<system-reminder>\nThe file was"),
    "Claude Code, blocks": lambda: HumanMessage(
        [{"type": "text", "text": "<system-reminder>Be brief.</system-reminder>"}]
    ),
    "Cline": lambda: HumanMessage(
        "<environment_details>\n# Current Time\n12:00\n</environment_details>"
    ),
    "Codex": lambda: HumanMessage("<turn_aborted>The user interrupted it.</turn_aborted>"),
    "Codex, rules": lambda: HumanMessage("# AGENTS.md instructions for /src\n\nUse tabs."),
    "OpenHands": lambda: HumanMessage("<EXTRA_INFO>\nA skill was found.\n</EXTRA_INFO>"),
    "mini-swe-agent": lambda: HumanMessage("<returncode>0</returncode>\n<output>\nok\n</output>"),
}


class Reminding(AgentMiddleware[Any, Any, Any]):
    """A host that writes a reminder before some calls of the model, as todo lists do."""

    def __init__(self, reminder: Callable[[], HumanMessage], *at: int) -> None:
        super().__init__()
        self.reminder = reminder
        self.at = at
        self.steps = 0

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        self.steps += 1
        return {"messages": [self.reminder()]} if self.steps in self.at else None


def shows_message(call: Any, text: str) -> bool:
    """Whether a message of its own in a request begins with a text."""
    return any(str(message.text).startswith(text) for message in call.messages)


def work_with_reminder(reminder: HumanMessage, step: int = 1) -> list[BaseMessage]:
    """A request, the work on it, and a host's message early in it."""
    messages: list[BaseMessage] = [HumanMessage(REQUEST, id="request")]
    for n in range(8):
        if n == step:
            messages.append(reminder.model_copy(update={"id": "reminder"}))
        call = look_calls(f"m{n}").model_copy(update={"id": f"a{n}"})
        result = ToolMessage("a line of code " * 60, tool_call_id=f"call_m{n}", id=f"t{n}")
        messages += [call, result]
    return messages


def compacted(messages: list[Any]) -> Any:
    """What one compaction makes of a history."""
    compactor = Compactor(window=4_000, keep=("messages", 2))
    return compactor.compact(messages, thread_id="t", force=True)


@pytest.mark.parametrize("reminder", HOSTS.values(), ids=HOSTS)
def test_each_request_of_a_long_turn_shows_the_users_request(reminder):
    graph, model = new_agent(tool_steps(24), new_middleware(), Reminding(reminder, 3, 9, 15))
    graph.invoke(user_input(REQUEST), thread_config())

    assert len(model.calls) == 25
    assert all(shows_message(call, REQUEST) for call in model.calls)


@pytest.mark.parametrize("reminder", HOSTS.values(), ids=HOSTS)
def test_the_notes_do_not_quote_a_host_as_the_user(reminder):
    messages = work_with_reminder(reminder())
    result = compacted(messages)

    ids_in_view = [getattr(message, "id", None) for message in result.messages]
    assert "request" in ids_in_view
    assert "reminder" not in ids_in_view
    assert "- The user: " not in result.summary


def as_dicts(messages: list[BaseMessage]) -> list[dict[str, Any]]:
    """The history as dicts of OpenAI's form."""
    dicts: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, AIMessage):
            call = message.tool_calls[0]
            function = {"name": call["name"], "arguments": str(call["args"])}
            call_dict = {"id": call["id"], "type": "function", "function": function}
            dicts.append({"role": "assistant", "content": None, "tool_calls": [call_dict]})
        elif isinstance(message, ToolMessage):
            fields = {"tool_call_id": message.tool_call_id, "content": message.content}
            dicts.append({"role": "tool", **fields})
        else:
            name = {"name": message.name} if message.name else {}
            dicts.append({"role": "user", "content": message.content, **name})
    return dicts


def test_a_history_that_comes_whole_keeps_its_record_behind_a_reminder():
    compactor = Compactor(window=4_000, keep=("messages", 2), archive="memory:")
    messages = as_dicts(
        work_with_reminder(HumanMessage("Three todos are open.", name="todo_reminder"), 3)
    )
    result = compactor.compact(messages, thread_id="t", force=True)
    second_result = compactor.compact(messages, thread_id="t")

    assert second_result.messages == result.messages
    assert messages[0] in second_result.messages


@pytest.mark.parametrize(
    "words",
    [
        HumanMessage("And now the other half.", name="alice"),
        HumanMessage("Why do you write <system-reminder>x</system-reminder> there?"),
        HumanMessage(
            [
                {"type": "text", "text": "<system-reminder>Be brief.</system-reminder>"},
                {"type": "text", "text": "And now the other half."},
            ]
        ),
        HumanMessage("<environment_details>12:00</environment_details>\nAnd now the other half."),
        HumanMessage(
            [
                {"type": "text", "text": "<system-reminder>Be brief.</system-reminder>"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}},
            ]
        ),
        HumanMessage(
            "Yes, the second one.",
            additional_kwargs={**HIDDEN, "human_input_response": {"value": "2"}},
        ),
        HumanMessage("For example <b>this</b>.", additional_kwargs={"hide_from_ui": False}),
    ],
    ids=[
        "a name",
        "a question",
        "beside a reminder",
        "behind details",
        "a picture",
        "an answer",
        "",
    ],
)
def test_what_a_user_says_is_a_users_message(words):
    messages = work_with_reminder(words)
    result = compacted(messages)

    ids_in_view = [getattr(message, "id", None) for message in result.messages]
    assert "reminder" in ids_in_view
    assert "request" not in ids_in_view


def test_without_a_users_word_the_newest_in_the_role_stays():
    messages = work_with_reminder(HumanMessage("Go on.", name="todo_reminder"))
    messages[0] = HumanMessage("<goal_continuation>Go on.</goal_continuation>", id="request")
    result = compacted(messages)

    ids_in_view = [getattr(message, "id", None) for message in result.messages]
    assert "reminder" in ids_in_view
    assert "request" not in ids_in_view


def test_a_request_that_is_joined_with_a_reminder_is_the_users():
    reminder = HumanMessage("Three todos are open.", additional_kwargs=HIDDEN)
    joined = alternating([HumanMessage("And now the other half."), reminder])
    assert len(joined) == 1
    assert not is_host_message(joined[0])


@pytest.mark.parametrize("mark", [{"name": "todo_reminder"}, {"hide_from_ui": True}])
def test_a_dict_that_is_joined_with_a_reminder_is_the_users(mark):
    request = {"role": "user", "content": "And now the other half."}
    reminder = {"role": "user", "content": "Three todos are open.", **mark}
    for run in ([request, reminder], [reminder, request]):
        [joined] = alternating(run)
        assert not is_host_message(joined)
    [joined] = alternating([reminder, {**reminder, "content": "Two todos are open."}])
    assert is_host_message(joined)


@pytest.fixture
def a_host_of_ones_own():
    """What a test adds to the table is taken out again."""
    conventions_before = list(hosts.CONVENTIONS)
    rule = hosts._rule
    yield
    hosts.CONVENTIONS[:] = conventions_before
    hosts._rule = rule


@pytest.mark.parametrize(
    "reminder",
    [
        HumanMessage("Stay on course.", name="helm_7"),
        HumanMessage("Stay on course.", additional_kwargs={"from_the_helm": True}),
        HumanMessage("<helm>Stay on course.</helm>"),
        HumanMessage("(helm) Stay on course."),
    ],
    ids=["name", "mark", "tag", "beginning"],
)
def test_a_user_adds_a_host_to_the_table(reminder, a_host_of_ones_own):
    convention = HostMessages(
        "my host",
        names=("helm_*",),
        marks=("from_the_helm",),
        tags=("helm",),
        begins=("(helm) ",),
    )
    assert not is_host_message(reminder)
    add_host(convention)
    add_host(convention)
    graph, model = new_agent(
        tool_steps(16), new_middleware(), Reminding(lambda: reminder.model_copy(), 3)
    )
    graph.invoke(user_input(REQUEST), thread_config())

    assert all(shows_message(call, REQUEST) for call in model.calls)
    assert hosts.CONVENTIONS.count(convention) == 1


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "give names, marks, tags or begins"),
        ({"names": "nudge"}, "must be a list of texts"),
        ({"marks": ("",)}, "must be a list of texts"),
    ],
)
def test_a_wrong_convention_is_refused_and_says_why(fields, problem):
    with pytest.raises(PolicyError, match=problem):
        HostMessages("my host", **fields)
    with pytest.raises(PolicyError, match="takes HostMessages"):
        add_host({"names": ["nudge"]})


# What a host gives once a thread


def date(day: int, message_class: type[BaseMessage] = SystemMessage) -> BaseMessage:
    """A date as DeerFlow gives it."""
    text = f"<system-reminder>\n<current_date>2026-05-0{day}</current_date>\n</system-reminder>"
    marks = {**HIDDEN, "dynamic_context_reminder": True, "reminder_date": f"2026-05-0{day}"}
    return message_class(text, id=f"date{day}", additional_kwargs=marks)


MEMORY = HumanMessage(
    "<memory>\nThe user writes Rust.\n</memory>",
    id="memory",
    additional_kwargs={**HIDDEN, "dynamic_context_reminder": True},
)


class GivingDates(AgentMiddleware[Any, Any, Any]):
    """A host that gives the date and the user's memory once, and the date again when it changes."""

    day = 8

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        *earlier, request = state["messages"]
        ids = [message.id for message in earlier]
        if f"date{self.day}" in ids:
            return None
        new = [date(self.day), *([] if ids else [MEMORY.model_copy()])]
        users_message = request.model_copy(update={"id": f"{request.id}__user"})
        new[0] = new[0].model_copy(update={"id": request.id})
        return {"messages": [*new, users_message]}


def dates_in(call: Any) -> list[str]:
    return re.findall(r"2026-05-0\d", call.text)


def test_the_newest_date_and_memory_stay():
    host = GivingDates()
    answers = [*tool_steps(12), *tool_steps(12, prefix="n"), *tool_steps(6, prefix="p")]
    graph, model = new_agent(answers, new_middleware(), host)
    graph.invoke(user_input(REQUEST), thread_config())
    host.day = 9
    graph.invoke(user_input("And the other half."), thread_config())
    graph.invoke(user_input("Is that all?"), thread_config())

    assert all(dates_in(call)[-1:] == ["2026-05-08"] for call in model.calls[:13])
    assert all(dates_in(call)[-1:] == ["2026-05-09"] for call in model.calls[13:])
    assert all("The user writes Rust." in call.text for call in model.calls)
    assert dates_in(model.calls[-1]) == ["2026-05-09"]


def test_a_subagents_date_behind_its_task_stays():
    messages = [HumanMessage(REQUEST, id="request"), date(8), *work_with_reminder(MEMORY)[1:]]
    middleware = SummarizationMiddleware(None, trigger=("messages", 5), keep=("messages", 2))
    update = middleware.before_model({"messages": messages}, Runtime())

    ids_in_view = [message.id for message in update["messages"]]
    assert {"request", "date8", "reminder"} <= {*ids_in_view}


def test_what_codex_gives_once_stays_until_it_is_given_anew():
    def context(folder: str) -> HumanMessage:
        text = f"<environment_context><cwd>{folder}</cwd></environment_context>"
        return HumanMessage(text, id=folder)

    rules = HumanMessage("<user_instructions>Use tabs.</user_instructions>", id="rules")
    messages = [rules, context("/old"), *work_with_reminder(context("/new"))]
    ids_in_view = [getattr(message, "id", None) for message in compacted(messages).messages]
    assert ids_in_view[1:4] == ["rules", "request", "reminder"]


@pytest.mark.parametrize("message_class", [SystemMessage, HumanMessage])
def test_an_old_date_at_the_start_leaves(message_class):
    messages = [
        date(8, message_class),
        *work_with_reminder(HumanMessage("Go on.")),
        date(9, message_class),
        HumanMessage("?"),
    ]
    result = compacted(messages)

    text = "\n".join(str(message.text) for message in result.messages)
    assert "2026-05-09" in text
    assert "2026-05-08" not in text


def test_a_message_swapped_for_a_users_is_found():
    messages = [HumanMessage("One."), AIMessage("1"), AIMessage("2")]
    assert newest_user_message(messages) == 0
    messages[1] = HumanMessage("Two.")
    assert newest_user_message(messages) == 1
