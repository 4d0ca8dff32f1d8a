"""Deep Agents with our middleware: in every agent, with its own limits, and all else as it was."""

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
from conspectus.langchain.overflow import TRIES
from graph_support import Bench
from scripted_models import ScriptedChatModel

Stacks = dict[str, list[AgentMiddleware[Any, Any, Any]]]


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> Stacks:
    """The middleware of every agent that is compiled, by the agent's name."""
    seen: Stacks = {}
    subagents = sys.modules["deepagents.middleware.subagents"]
    for place, name in ((wiring.real, "create_agent"), (subagents, "create_agent")):
        original = getattr(place, name)

        def kept(*args: Any, original: Any = original, **kwargs: Any) -> Any:
            seen[kwargs.get("name") or "main"] = list(kwargs["middleware"])
            return original(*args, **kwargs)

        monkeypatch.setattr(place, name, kept)
    return seen


def model(window: int | None = 50_000, answers: Any = "fine", **more: Any) -> ScriptedChatModel:
    made = (lambda messages: answers) if isinstance(answers, str) else answers
    profile: Any = {"max_input_tokens": window} if window else None
    return ScriptedChatModel(answers=made, profile=profile, **more)


def subagent(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": name, "system_prompt": f"You are {name}.", **more}


has_forks = pytest.mark.skipif(
    not hasattr(wiring.parts, "UnsupportedContentMiddleware"),
    reason="this version of Deep Agents has no forked subagents",
)


@has_forks
def test_ours_stands_in_every_agent_with_the_limits_of_its_model_and_a_guard_last(stacks):
    main = model(50_000)
    own = model(8_000)
    fork: Any = {"name": "f", "description": "f", "mode": "fork", "model": own}
    create_deep_agent(main, subagents=[subagent("a", model=own), subagent("b"), fork])
    assert set(stacks) == {"main", "general-purpose", "a", "b", "f"}
    for name, stack in stacks.items():
        found = [one for one in stack if one.name == "SummarizationMiddleware"]
        assert [type(one) for one in found] == [DeepAgentsSummarization], name
        ours = found[0]
        assert isinstance(ours, DeepAgentsSummarization)
        assert ours.history == "preserve"
        assert ours.model is (own if name in "af" else main)
        assert isinstance(stack[-1], ContextGuard)


def test_all_else_stands_where_deep_agents_puts_it(stacks):
    class Mine(AgentMiddleware[Any, Any, Any]):
        pass

    given: dict[str, Any] = {
        "middleware": [Mine()],
        "subagents": [subagent("a", middleware=[Mine()], skills=["/skills/"]), subagent("b")],
        "skills": ["/skills/"],
        "memory": ["/AGENTS.md"],
        "interrupt_on": {"write_file": True},
    }
    deepagents.create_deep_agent(model(), **given)
    theirs = {name: [one.name for one in stack] for name, stack in stacks.items()}
    stacks.clear()
    create_deep_agent(model(), **given)
    ours = {
        name: [one.name for one in stack if not isinstance(one, ContextGuard)]
        for name, stack in stacks.items()
    }
    # HumanInTheLoopMiddleware changes no request, so it may stand on either side.
    for each in (theirs, ours):
        for names in each.values():
            names.sort(key=lambda name: name == "HumanInTheLoopMiddleware")
    assert ours == theirs
    for stack in stacks.values():
        inner = [one for one in stack if not type(one).__name__.startswith("HumanInTheLoop")]
        assert isinstance(inner[-1], ContextGuard)


def test_settings_of_the_main_agent_reach_every_subagent(stacks):
    main = model(50_000)
    own = model(8_000)
    mine = summarization_middleware(
        main, None, keep=("messages", 3), archive="memory:", window=9_000
    )
    create_deep_agent(main, middleware=[mine], subagents=[subagent("a", model=own)])
    for name in ("main", "general-purpose", "a"):
        ours = next(one for one in stacks[name] if isinstance(one, DeepAgentsSummarization))
        assert ours.keep == ("messages", 3)
        assert ours._setup.engine.archive is mine._setup.engine.archive
        assert ours.window == (None if name == "a" else 9_000)


def test_the_tool_of_deep_agents_is_refused_where_its_summarisation_is_not_there():
    chat = model()
    backend = StateBackend()
    theirs = Theirs(chat, backend=backend)
    mine = summarization_middleware(chat, backend, archive="memory:")
    wrong: Any = SummarizationToolMiddleware(mine)  # type: ignore[arg-type]
    for middleware in ([mine, wrong], [create_summarization_tool_middleware(chat, backend)]):
        with pytest.raises(PolicyError, match="compact_tool=True"):
            create_deep_agent(chat, backend=backend, middleware=middleware)
    with pytest.raises(TypeError, match="unexpected keyword argument 'archive'"):
        create_deep_agent(chat, archive="memory:")
    kept: Any = [theirs, SummarizationToolMiddleware(theirs)]
    create_deep_agent(chat, backend=backend, middleware=kept)


def test_a_warning_of_deep_agents_is_about_the_callers_line(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    with pytest.warns(DeprecationWarning, match="model=None") as warned:
        create_deep_agent()
    assert warned[0].filename == __file__


def test_a_wrong_profile_can_be_overridden():
    assert summarization_defaults(model(1_000_000), window=32_000)["window"] == 32_000
    assert summarization_defaults(model(None), window=32_000)["trigger"] == ("fraction", 0.85)
    ours = summarization_middleware(model(1_000_000), window=32_000, archive="memory:")
    assert ours._setup.window == 32_000
    with pytest.raises(PolicyError):
        summarization_defaults(model(), window=-1)


@has_forks
def test_a_forked_subagent_goes_on_with_the_folded_history_and_its_chain(tmp_path):
    paid: list[int] = []

    def summarise(messages: list[Any]) -> str:
        paid.append(len(messages))
        return "The user asks about modules, one question after the other."

    def answers(messages: list[Any]) -> Any:
        last = messages[-1]
        if isinstance(last, HumanMessage) and "delegate" in str(last.content):
            args = {"description": "look into it", "subagent_type": "f"}
            return AIMessage("", tool_calls=[{"name": "task", "args": args, "id": "c1"}])
        return "Seen. " * 30

    main = model(40_000, answers)
    own = model(40_000, "The fork has looked.")
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    mine = summarization_middleware(
        main, backend, trigger=("messages", 12), keep=("messages", 4), summarizer=summarise
    )
    fork: Any = {"name": "f", "description": "f", "mode": "fork", "model": own}
    bench = Bench(main, mine, make=create_deep_agent, backend=backend, subagents=[fork])
    for turn in range(8):
        bench.say(f"Question {turn}")
    assert len(paid) == 1
    held = bench.say("Please delegate this")
    assert any(isinstance(m, ToolMessage) and "fork has looked" in m.text for m in held)
    seen = own.calls[-1].messages
    assert sum("asks about modules" in str(m.text) for m in seen) == 1
    assert not any(str(m.text) == "Question 0" for m in seen)
    assert len(paid) == 1


@pytest.mark.slow
def test_no_session_has_anothers_files(tmp_path):
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    settings: Any = {"trigger": ("messages", 8), "keep": ("messages", 2)}
    settings["summarizer"] = lambda _: "Seen and answered. " * 20
    chat = model(40_000, "Seen. " * 30)
    mine = summarization_middleware(chat, backend, **settings)
    kept: Any = {"checkpointer": InMemorySaver(), "store": InMemoryStore()}
    compiled = create_deep_agent(chat, backend=backend, middleware=[mine], **kept)
    for turn in range(8):
        for who in ("ann", "bob"):
            thread: Any = {"configurable": {"thread_id": who}}
            compiled.invoke({"messages": [HumanMessage(f"{who} asks {turn}")]}, thread)
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
    found = [call for m in messages if isinstance(m, AIMessage) for call in m.tool_calls]
    return [call["args"]["content"] for call in found if call["name"] == "write_file"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("store", "way"), [(False, "sync"), (False, "async"), (True, "sync")])
def test_old_arguments_are_shortened_before_anything_is_summarised(store, way, tmp_path):
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    kept: dict[str, Any] = {} if store else {"store": None}
    limits: Any = {"trigger": ("tokens", 5_000), "keep": ("messages", 6)}
    mine = summarization_middleware(model(), backend, **limits)
    bench = Bench(writes, mine, make=create_deep_agent, backend=backend, **kept)
    for turn in range(7):
        held = bench.say(f"Module {turn} please.", way)
    seen = contents(bench.requests[-1])
    short = [text for text in seen if len(text) < 1_000]
    assert (len(seen), len(short)) == (7, 5)
    assert all(text.startswith(f"module {n}\n") for n, text in enumerate(seen))
    assert all(("archived as" in text) == store for text in short)
    assert all(LONG in text for text in contents(held))  # the state has them whole
    if not store:
        path, cite = short[0].partition("kept in files under ")[2].split("]")[0].split(", as ")
        found = backend.grep(cite, path=path).matches or []
        assert len(found) == 1
        assert "module 0" in (tmp_path / found[0]["path"].lstrip("/")).read_text()
    assert len(bench.requests[-1]) == 28  # nothing was summarised, and the prompt


def test_the_setting_of_deep_agents_for_arguments_is_read():
    on: Any = {"trigger": ("messages", 50), "max_length": 4_000, "truncation_text": "..."}

    def made(**given: Any) -> Any:
        return summarization_middleware(model(), archive="memory:", **given)._setup.engine

    for settings, over in ((on, 1_000), ({**on, "max_length": 9}, 201), (None, None), ({}, None)):
        stale = made(truncate_args_settings=settings).policy.stale
        assert (stale and stale.over, stale and stale.tools) == (over, over and ())
    both = made(truncate_args_settings=None, stale_results={"over": 700}).policy.stale
    assert (both.over, both.tools, both.arguments) == (700, None, False)
    with pytest.raises(PolicyError, match="max_length"):
        made(truncate_args_settings={"longest": 9})


LIMIT = 9_000
ASKED = "What do the tables say?"
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
    if newest.text == ASKED:
        return AIMessage("", tool_calls=[call("read_table", n, name=f"t{n}") for n in range(8)])
    kept = re.search(r"kept in files under (\S+), as (\w+)", newest.text)
    if isinstance(newest, ToolMessage) and newest.name == "read_table" and kept:
        args = {"pattern": "needle of", "path": kept[1], "output_mode": "content"}
        return AIMessage("", tool_calls=[call("grep", 0, **args)])
    return "Done."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("store", "way"), [(False, "sync"), (False, "stream"), (False, "async"), (True, "sync")]
)
def test_a_batch_that_is_too_large_is_rescued_after_the_import_swap_alone(store, way):
    kept: dict[str, Any] = {} if store else {"store": None}
    bench = Bench(searching, make=create_deep_agent, limit=LIMIT, tools=[read_table], **kept)

    def refused() -> int:  # not counting what asks for a summary
        asked = zip(bench.requests, bench.sizes, strict=True)
        return sum(size > LIMIT for one, size in asked if not one[-1].text.startswith("<"))

    held = bench.say(ASKED, way)
    assert held[-1].text == "Done."
    assert 1 <= refused() <= TRIES
    if not store:  # what was truncated is in a file before the agent can ask for it
        [found] = [one.text for one in held if isinstance(one, ToolMessage) and one.name == "grep"]
        assert "needle of t7" in found
    results = [message for message in held if message.type == "tool"][:8]
    assert [message.tool_call_id for message in results] == [f"read_table{n}" for n in range(8)]
    # What was accepted may have been just below a limit that nobody has named: the next turn may
    # find it from above once more, and no later one.
    bench.say("And then?", way)
    assert (before := refused()) <= TRIES
    for turn in range(3):
        bench.say(f"And then, {turn}?", way)
    assert refused() == before
