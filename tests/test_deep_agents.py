"""Deep Agents with our middleware: in every agent, with its own limits, and all else as it was."""

import pickle
import re
import sys
from typing import Any

import deepagents
import pytest
from deepagents.backends import FilesystemBackend, StateBackend
from deepagents.middleware.summarization import SummarizationMiddleware as Theirs
from deepagents.middleware.summarization import (
    SummarizationToolMiddleware,
    create_summarization_tool_middleware,
)
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from conspectus import ContextGuard, PolicyError
from conspectus.deep_agents import (
    create_deep_agent,
    summarization_defaults,
    summarization_middleware,
    wiring,
)
from conspectus.deep_agents.middleware import DeepAgentsSummarization
from conspectus.model.overflow import FURTHER_TRIES
from graph_support import Bench
from scripted_models import ScriptedChatModel

Stacks = dict[str, list[AgentMiddleware[Any, Any, Any]]]


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> Stacks:
    """The middleware of every agent that is compiled, by the agent's name."""
    stacks_by_agent: Stacks = {}
    subagents = sys.modules["deepagents.middleware.subagents"]
    for module, name in ((wiring.real, "create_agent"), (subagents, "create_agent")):
        original = getattr(module, name)

        def recorded(*args: Any, original: Any = original, **kwargs: Any) -> Any:
            stacks_by_agent[kwargs.get("name") or "main"] = list(kwargs["middleware"])
            return original(*args, **kwargs)

        monkeypatch.setattr(module, name, recorded)
    return stacks_by_agent


def model(window: int | None = 50_000, answers: Any = "fine", **options: Any) -> ScriptedChatModel:
    answer_function = (lambda messages: answers) if isinstance(answers, str) else answers
    profile: Any = {"max_input_tokens": window} if window else None
    return ScriptedChatModel(answers=answer_function, profile=profile, **options)


def subagent(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "description": name, "system_prompt": f"You are {name}.", **fields}


needs_forks = pytest.mark.skipif(
    not hasattr(wiring.parts, "UnsupportedContentMiddleware"),
    reason="this version of Deep Agents has no forked subagents",
)


@needs_forks
def test_every_agent_gets_our_middleware_and_a_guard_last(stacks):
    main = model(50_000)
    small_model = model(8_000)
    fork: Any = {"name": "f", "description": "f", "mode": "fork", "model": small_model}
    create_deep_agent(main, subagents=[subagent("a", model=small_model), subagent("b"), fork])
    assert set(stacks) == {"main", "general-purpose", "a", "b", "f"}
    for name, stack in stacks.items():
        summarizations = [
            middleware for middleware in stack if middleware.name == "SummarizationMiddleware"
        ]
        assert [type(middleware) for middleware in summarizations] == [DeepAgentsSummarization], (
            name
        )
        summarization = summarizations[0]
        assert isinstance(summarization, DeepAgentsSummarization)
        assert summarization.history == "preserve"
        assert summarization.model is (small_model if name in "af" else main)
        assert isinstance(stack[-1], ContextGuard)


def test_all_else_stands_where_deep_agents_puts_it(stacks):
    class Mine(AgentMiddleware[Any, Any, Any]):
        pass

    arguments: dict[str, Any] = {
        "middleware": [Mine()],
        "subagents": [subagent("a", middleware=[Mine()], skills=["/skills/"]), subagent("b")],
        "skills": ["/skills/"],
        "memory": ["/AGENTS.md"],
        "interrupt_on": {"write_file": True},
    }
    deepagents.create_deep_agent(model(), **arguments)
    names_of_theirs = {
        name: [middleware.name for middleware in stack] for name, stack in stacks.items()
    }
    stacks.clear()
    create_deep_agent(model(), **arguments)
    names_of_ours = {
        name: [middleware.name for middleware in stack if not isinstance(middleware, ContextGuard)]
        for name, stack in stacks.items()
    }
    # HumanInTheLoopMiddleware changes no request, so it may stand on either side.
    for names_by_agent in (names_of_theirs, names_of_ours):
        for names in names_by_agent.values():
            names.sort(key=lambda name: name == "HumanInTheLoopMiddleware")
    assert names_of_ours == names_of_theirs
    for stack in stacks.values():
        without_approvals = [
            middleware
            for middleware in stack
            if not type(middleware).__name__.startswith("HumanInTheLoop")
        ]
        assert isinstance(without_approvals[-1], ContextGuard)


def test_settings_of_the_main_agent_reach_every_subagent(stacks):
    main = model(50_000)
    small_model = model(8_000)
    given_middleware = summarization_middleware(
        main, None, keep=("messages", 3), archive="memory:", window=9_000
    )
    create_deep_agent(
        main, middleware=[given_middleware], subagents=[subagent("a", model=small_model)]
    )
    for name in ("main", "general-purpose", "a"):
        middleware = next(
            middleware
            for middleware in stacks[name]
            if isinstance(middleware, DeepAgentsSummarization)
        )
        assert middleware.keep == ("messages", 3)
        assert middleware._setup.engine.archive is given_middleware._setup.engine.archive
        assert middleware.window == (None if name == "a" else 9_000)


def test_a_setting_that_is_set_later_reaches_every_subagent(stacks):
    main = model(50_000)
    small_model = model(8_000)
    summarization = summarization_middleware(main)
    summarization.keep = ("messages", 5)
    create_deep_agent(
        main, middleware=[summarization], subagents=[subagent("a", model=small_model)]
    )
    for name in ("main", "general-purpose", "a"):
        middleware = next(
            part for part in stacks[name] if isinstance(part, DeepAgentsSummarization)
        )
        assert middleware.keep == ("messages", 5)
        assert middleware.trigger == ("fraction", 0.85)  # of its own model's window


def test_a_middleware_with_an_archive_can_be_pickled(tmp_path):
    small_model = FakeListChatModel(responses=["fine"], profile={"max_input_tokens": 8_000})
    summarization = summarization_middleware(small_model, archive=tmp_path / "a.db", recall="tool")
    copied = pickle.loads(pickle.dumps(summarization))
    for middleware in (copied, copied.for_model(small_model)):
        assert (middleware.trigger, middleware.history) == (("fraction", 0.85), "preserve")
        assert middleware.archive is copied.archive
    copied.close()
    summarization.close()


def test_deep_agents_compact_tool_is_refused_beside_ours():
    chat = model()
    backend = StateBackend()
    deep_agents_middleware = Theirs(chat, backend=backend)
    our_middleware = summarization_middleware(chat, backend, archive="memory:")
    wrong_tool: Any = SummarizationToolMiddleware(our_middleware)  # type: ignore[arg-type]
    for middleware in (
        [our_middleware, wrong_tool],
        [create_summarization_tool_middleware(chat, backend)],
    ):
        with pytest.raises(PolicyError, match="compact_tool=True"):
            create_deep_agent(chat, backend=backend, middleware=middleware)
    with pytest.raises(TypeError, match="unexpected keyword argument 'archive'"):
        create_deep_agent(chat, archive="memory:")
    accepted: Any = [deep_agents_middleware, SummarizationToolMiddleware(deep_agents_middleware)]
    create_deep_agent(chat, backend=backend, middleware=accepted)


def test_a_warning_of_deep_agents_is_about_the_callers_line(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    with pytest.warns(DeprecationWarning, match="model=None") as warned:
        create_deep_agent()
    assert warned[0].filename == __file__


def test_a_wrong_profile_can_be_overridden():
    assert summarization_defaults(model(1_000_000), window=32_000)["window"] == 32_000
    assert summarization_defaults(model(None), window=32_000)["trigger"] == ("fraction", 0.85)
    middleware = summarization_middleware(model(1_000_000), window=32_000, archive="memory:")
    assert middleware._setup.window == 32_000
    with pytest.raises(PolicyError):
        summarization_defaults(model(), window=-1)


@needs_forks
def test_a_forked_subagent_continues_the_folded_history(tmp_path):
    summary_calls: list[int] = []

    def summarise(messages: list[Any]) -> str:
        summary_calls.append(len(messages))
        return "The user asks about modules, one question after the other."

    def answers(messages: list[Any]) -> Any:
        last = messages[-1]
        if isinstance(last, HumanMessage) and "delegate" in str(last.content):
            args = {"description": "look into it", "subagent_type": "f"}
            return AIMessage("", tool_calls=[{"name": "task", "args": args, "id": "c1"}])
        return "Seen. " * 30

    main = model(40_000, answers)
    fork_model = model(40_000, "The fork has looked.")
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    middleware = summarization_middleware(
        main, backend, trigger=("messages", 12), keep=("messages", 4), summarizer=summarise
    )
    fork: Any = {"name": "f", "description": "f", "mode": "fork", "model": fork_model}
    bench = Bench(main, middleware, make=create_deep_agent, backend=backend, subagents=[fork])
    for turn in range(8):
        bench.say(f"Question {turn}")
    assert len(summary_calls) == 1
    state_messages = bench.say("Please delegate this")
    assert any(isinstance(m, ToolMessage) and "fork has looked" in m.text for m in state_messages)
    sent_to_fork = fork_model.calls[-1].messages
    assert sum("asks about modules" in str(m.text) for m in sent_to_fork) == 1
    assert not any(str(m.text) == "Question 0" for m in sent_to_fork)
    assert len(summary_calls) == 1


@pytest.mark.slow
def test_no_session_has_anothers_files(tmp_path):
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    settings: Any = {"trigger": ("messages", 8), "keep": ("messages", 2)}
    settings["summarizer"] = lambda _: "Seen and answered. " * 20
    chat = model(40_000, "Seen. " * 30)
    middleware = summarization_middleware(chat, backend, **settings)
    persistence: Any = {"checkpointer": InMemorySaver(), "store": InMemoryStore()}
    compiled = create_deep_agent(chat, backend=backend, middleware=[middleware], **persistence)
    for turn in range(8):
        for user in ("ann", "bob"):
            thread: Any = {"configurable": {"thread_id": user}}
            compiled.invoke({"messages": [HumanMessage(f"{user} asks {turn}")]}, thread)
    folders: dict[str, str] = {}
    for path in (tmp_path / "conversation_history").rglob("*.*"):
        folders[path.parent.name] = folders.get(path.parent.name, "") + path.read_text()
    assert len(folders) == 2
    assert sorted(("ann asks" in text, "bob asks" in text) for text in folders.values()) == [
        (False, True),
        (True, False),
    ]
    assert not any("ann" in name or "bob" in name for name in folders)


LONG = "a line of a module\n" * 150


def writes(messages: list[BaseMessage]) -> Any:
    """A file in each turn."""
    if isinstance(messages[-1], ToolMessage):
        return "Written."
    turn = messages[-1].text.split()[1]
    args = {"file_path": f"/m{turn}.py", "content": f"module {turn}\n{LONG}"}
    call = {"name": "write_file", "args": args, "id": f"w{turn}", "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


def contents(messages: Any) -> list[str]:
    calls = [call for m in messages if isinstance(m, AIMessage) for call in m.tool_calls]
    return [call["args"]["content"] for call in calls if call["name"] == "write_file"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("store", "mode"), [(False, "sync"), (False, "async"), (True, "sync")])
def test_old_arguments_are_shortened_before_anything_is_summarised(store, mode, tmp_path):
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    store_argument: dict[str, Any] = {} if store else {"store": None}
    limits: Any = {"trigger": ("tokens", 5_000), "keep": ("messages", 6)}
    middleware = summarization_middleware(model(), backend, **limits)
    bench = Bench(writes, middleware, make=create_deep_agent, backend=backend, **store_argument)
    for turn in range(7):
        state_messages = bench.say(f"Module {turn} please.", mode)
    sent_contents = contents(bench.requests[-1])
    shortened = [text for text in sent_contents if len(text) < 1_000]
    assert (len(sent_contents), len(shortened)) == (7, 5)
    assert all(text.startswith(f"module {n}\n") for n, text in enumerate(sent_contents))
    assert all(("archived as" in text) == store for text in shortened)
    assert all(LONG in text for text in contents(state_messages))  # the state has them whole
    if not store:
        path, cite = shortened[0].partition("kept in files under ")[2].split("]")[0].split(", as ")
        matches = backend.grep(cite, path=path).matches or []
        assert len(matches) == 1
        assert "module 0" in (tmp_path / matches[0]["path"].lstrip("/")).read_text()
    assert len(bench.requests[-1]) == 28  # nothing was summarised, and the prompt


def test_the_setting_of_deep_agents_for_arguments_is_read():
    enabled: Any = {"trigger": ("messages", 50), "max_length": 4_000, "truncation_text": "..."}

    def engine_of(**arguments: Any) -> Any:
        return summarization_middleware(model(), archive="memory:", **arguments)._setup.engine

    for settings, over in (
        (enabled, 1_000),
        ({**enabled, "max_length": 9}, 201),
        (None, None),
        ({}, None),
    ):
        stale = engine_of(truncate_args_settings=settings).policy.stale
        assert (stale and stale.over, stale and stale.tools) == (over, over and ())
    both = engine_of(truncate_args_settings=None, stale_results={"over": 700}).policy.stale
    assert (both.over, both.tools, both.arguments) == (700, None, False)
    with pytest.raises(PolicyError, match="max_length"):
        engine_of(truncate_args_settings={"longest": 9})


LIMIT = 9_000
QUESTION = "What do the tables say?"
LINE = "one more row of a table that is far too long\n"


@tool
def read_table(name: str) -> str:
    """Read a table."""
    return f"first row of {name}\n" + LINE * 600 + f"needle of {name}\n" + LINE * 100


def call(name: str, number: int, /, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": f"{name}{number}", "type": "tool_call"}


def searching(messages: list[BaseMessage]) -> Any:
    """Reads eight tables at once, and then looks into the file that one of them is kept in."""
    newest = messages[-1]
    if newest.text.startswith("<"):
        return "The agent has read eight tables."
    if newest.text == QUESTION:
        return AIMessage("", tool_calls=[call("read_table", n, name=f"t{n}") for n in range(8)])
    file_mark = re.search(r"kept in files under (\S+), as (\w+)", newest.text)
    if isinstance(newest, ToolMessage) and newest.name == "read_table" and file_mark:
        args = {"pattern": "needle of", "path": file_mark[1], "output_mode": "content"}
        return AIMessage("", tool_calls=[call("grep", 0, **args)])
    return "Done."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("store", "mode"), [(False, "sync"), (False, "stream"), (False, "async"), (True, "sync")]
)
def test_a_large_batch_is_rescued_after_the_import_swap(store, mode):
    store_argument: dict[str, Any] = {} if store else {"store": None}
    bench = Bench(
        searching, make=create_deep_agent, limit=LIMIT, tools=[read_table], **store_argument
    )

    def count_refused() -> int:  # not counting what asks for a summary
        requests_and_sizes = zip(bench.requests, bench.request_tokens, strict=True)
        return sum(
            size > LIMIT
            for request, size in requests_and_sizes
            if not request[-1].text.startswith("<")
        )

    state_messages = bench.say(QUESTION, mode)
    assert state_messages[-1].text == "Done."
    assert 1 <= count_refused() <= FURTHER_TRIES  # the provider refuses it, and the steps are few
    if not store:  # what was clipped is in a file before the agent can ask for it
        [grep_results] = [
            message.text
            for message in state_messages
            if isinstance(message, ToolMessage) and message.name == "grep"
        ]
        assert "needle of t7" in grep_results
    results = [message for message in state_messages if message.type == "tool"][:8]
    assert [message.tool_call_id for message in results] == [f"read_table{n}" for n in range(8)]
    # What was accepted may have been just below a limit that nobody has named: the next turn may
    # find it from above once more, and no later one.
    bench.say("And then?", mode)
    assert (refused_so_far := count_refused()) <= FURTHER_TRIES
    for turn in range(3):
        bench.say(f"And then, {turn}?", mode)
    assert count_refused() == refused_so_far
