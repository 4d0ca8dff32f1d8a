"""Stale results of tools are shown short first, and only where that is worthwhile."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from conspectus import Compactor, ContextGuard, SummarizationMiddleware
from conspectus.archive import Archive, Scope
from conspectus.core.items import Compact, Item, Keep
from conspectus.core.plan import plan
from conspectus.core.policy import Policy, StaleResults
from conspectus.deep_agents import create_deep_agent, summarization_middleware
from conspectus.errors import PolicyError
from conspectus.messages.message import NOT_NEEDED
from graph_support import said, thread
from scripted_models import ScriptedChatModel

SCOPE = Scope("local", "t", "main")
MARK = {NOT_NEEDED: True}


def history(*results: tuple[str, int] | tuple[str, int, bool]) -> list[Item]:
    """A user's message, then a call and a result of so many tokens for each."""
    items = [Item("u", "user", 20)]
    for n, (name, tokens, *marked) in enumerate(results):
        items.append(Item(f"a{n}", "assistant", 10, calls=(f"c{n}",)))
        expendable = bool(marked and marked[0])
        items.append(
            Item(
                f"r{n}", "tool", tokens, floor=40, answers=(f"c{n}",), tools=(name,),
                expendable=expendable,
            )
        )  # fmt: skip
    return items


LOOKS = [("look", 2_000)] * 6
OTHERS = [("look", 2_000), ("fetch", 2_000), ("save", 2_000)]
MARKED = [("look", 300), ("look", 300, True), ("look", 2_000)]


@pytest.mark.parametrize(
    ("results", "how", "short"),
    [
        (LOOKS, {"newest": 3}, "r0 r1 r2"),
        (LOOKS, True, "r0 r1 r2 r3 r4 r5"),
        (LOOKS, {"newest": 9}, ""),
        ([("look", 1_000), ("look", 1_001), ("look", 500)], True, "r1"),
        ([("look", 1_000), ("look", 1_001), ("look", 500)], {"over": 400}, "r0 r1 r2"),
        (OTHERS, {"tools": ["fetch"]}, "r1"),
        (OTHERS, {"exclude": ["fetch"]}, "r0 r2"),
        (OTHERS, {"tools": ["fetch", "look"], "exclude": ["fetch"]}, "r0"),
        (MARKED, {"newest": 3}, "r1"),
        (MARKED, {"newest": 3, "exclude": ["look"]}, ""),
    ],
)
def test_which_results_are_shortened(results, how, short):
    items = history(*results)
    assert [items[place].key for place in StaleResults.build(how).stale(items)] == short.split()


def test_large_arguments_are_shortened_too_unless_that_is_off():
    items = [Item("u", "user", 20), Item("a", "assistant", 3_000, floor=40), Item("b", "user", 20)]
    assert StaleResults().stale(items) == [1]
    assert StaleResults.build({"arguments": False}).stale(items) == []


def policy(trigger: int, **how: Any) -> Policy:
    return Policy.build(trigger=("tokens", trigger), keep=("messages", 2), stale_results=how)


def test_it_frees_the_set_amount_or_does_not_happen():
    items = history(*[("look", 2_000)] * 3, ("look", 100))
    found = plan(items, policy(6_000, newest=0, least=5_400))
    assert isinstance(found, Compact)
    assert found.evicted == ()
    assert [(clip.index, clip.limit) for clip in found.clips] == [(2, 200), (4, 200), (6, 200)]
    assert found.tokens - found.at_most == 5_400
    more = plan(items, policy(6_000, newest=0, least=5_401))
    assert isinstance(more, Compact)
    assert more.clips == ()
    assert more.evicted != (), "then it is summarised"


def test_without_an_amount_it_must_reach_half_of_the_trigger():
    items = history(*[("look", 2_000)] * 3, ("fetch", 900))
    for how, clipped in (({}, True), ({"newest": 3}, False), ({"newest": 3, "least": 1_000}, True)):
        found = plan(items, policy(6_900, **how))
        assert isinstance(found, Compact)
        assert bool(found.clips) == clipped
        assert bool(found.evicted) == (not clipped)
    assert isinstance(plan(items, policy(9_000, least=1)), Keep), "below the trigger"


@given(
    st.lists(
        st.tuples(st.sampled_from(["look", "fetch"]), st.integers(50, 4_000), st.booleans()),
        min_size=2, max_size=30,
    ),
    st.integers(1, 20_000),
    st.integers(0, 6),
)  # fmt: skip
def test_no_plan_that_only_shortens_frees_less_than_the_set_amount(results, least, newest):
    items = history(*results)
    size = sum(item.tokens for item in items)
    found = plan(items, policy(max(1, size), newest=newest, least=least, exclude=["fetch"]))
    if isinstance(found, Compact) and found.clips and not found.evicted:
        assert found.tokens - found.at_most >= least
        assert found.at_most < size
        places = {clip.index for clip in found.clips}
        assert all("fetch" not in items[place].tools for place in places)
        newer = [i for i, item in enumerate(items) if item.role == "tool"][-newest:]
        assert newest == 0 or all(items[i].expendable for i in places & set(newer))


@pytest.mark.parametrize(
    "wrong",
    [
        "yes", 3, {"keep": 3}, {"over": 200}, {"newest": -1}, {"least": 0}, {"newest": True},
        {"tools": "look"}, {"tools": [""]}, {"tools": {"look": 3}}, {"exclude": [3]},
        {"exclude": "look"}, {"arguments": 1},
    ],
)  # fmt: skip
def test_what_cannot_mean_anything_is_refused(wrong):
    with pytest.raises(PolicyError, match="stale_results"):
        Compactor(stale_results=wrong)
    with pytest.raises(PolicyError, match="stale_results"):
        SummarizationMiddleware(None, stale_results=wrong)


# Real agents


@tool
def read(name: str) -> str:
    """Read a module."""
    return f"module {name}: " + "pass  # one more line of this module\n" * 60


@tool(response_format="content_and_artifact")
def count(name: str) -> tuple[str, dict[str, bool]]:
    """Count lines."""
    return f"lines of {name}: " + "1 " * 400, MARK


def call(name: str, number: int) -> AIMessage:
    asked = {"name": name, "args": {"name": f"m{number}"}, "id": f"c{number}", "type": "tool_call"}
    return AIMessage(f"{name} m{number}", tool_calls=[asked])


def working(*names: str) -> ScriptedChatModel:
    return ScriptedChatModel(answers=[*(call(name, n) for n, name in enumerate(names)), "Done."])


def writer() -> ScriptedChatModel:
    return ScriptedChatModel(answers=lambda messages: "## Found and decided\n- all is fine")


def run_agent(
    model: ScriptedChatModel, *own: Any, on_loop: bool = False, deep: bool = False
) -> tuple[Any, InMemoryStore, list[BaseMessage]]:
    store = InMemoryStore()
    make: Any = create_deep_agent if deep else create_agent
    agent = make(
        model, tools=[read, count], middleware=list(own), checkpointer=InMemorySaver(), store=store
    )
    if on_loop:
        out = asyncio.run(agent.ainvoke(said("Read all modules."), thread()))
    else:
        out = agent.invoke(said("Read all modules."), thread())
    return agent, store, out["messages"]


def short(messages: Sequence[BaseMessage]) -> list[str]:
    """Names of the results that are shown short."""
    results = [one for one in messages if isinstance(one, ToolMessage)]
    return [one.tool_call_id for one in results if "archived" in str(one.content)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("on_loop", [False, True])
@pytest.mark.parametrize("guarded", [False, True])
def test_old_results_are_shown_short_and_no_model_is_asked(on_loop, guarded):
    summarizer = writer()
    own = SummarizationMiddleware(
        None, summarizer=summarizer, trigger=("tokens", 3_000), keep=("messages", 4),
        stale_results={"newest": 2, "over": 300, "least": 800}, window=50_000,
    )  # fmt: skip
    model = working(*["read"] * 8)
    guard = [ContextGuard(own)] if guarded else []
    _, store, messages = run_agent(model, own, *guard, on_loop=on_loop)
    records = Archive(store).chain(SCOPE)
    assert records
    assert all(not record.covers and record.clips for record in records)
    assert summarizer.calls == []
    found = short(messages)
    assert found
    assert found == [f"c{n}" for n in range(len(found))]
    assert len(found) <= 6, "the newest stay"
    originals = [
        str(one.message)
        for one in Archive(store).get(SCOPE, [c.key for r in records for c in r.clips])
    ]
    assert len(originals) == len(found)
    assert all("one more line" in text for text in originals)
    assert len([one for one in messages if isinstance(one, ToolMessage)]) == 8, "none has left"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("deep", [False, True])
def test_a_tool_says_of_its_own_result_that_it_will_not_be_needed(deep):
    settings: dict[str, Any] = {
        "trigger": ("tokens", 3_000), "keep": ("messages", 4), "summarizer": writer(),
        "stale_results": {"newest": 90, "least": 300}, "window": 50_000,
    }  # fmt: skip
    model = working(*["count", "read"] * 5)
    own = (
        summarization_middleware(model, **settings)
        if deep
        else SummarizationMiddleware(model, **settings)
    )
    _, store, _ = run_agent(model, own, deep=deep)
    clips = {clip.key for record in Archive(store).chain(SCOPE) for clip in record.clips}
    assert clips
    originals = [str(one.message) for one in Archive(store).get(SCOPE, list(clips))]
    assert all("lines of" in text for text in originals)


def test_a_loop_over_dicts_names_tools_by_their_calls_and_marks_its_results():
    archive = Archive.open("memory:")
    compactor = Compactor(
        writer(), window=50_000, trigger=("tokens", 4_000), keep=("messages", 4), archive=archive,
        stale_results={"newest": 0, "over": 300, "least": 500, "tools": ["search", "list"]},
    )  # fmt: skip
    messages: list[Any] = [{"role": "user", "content": "Look."}]
    for n in range(12):
        name = ("search", "open", "list")[n % 3]
        asked = {"id": "same", "type": "function", "function": {"name": name, "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [asked]})
        text = f"{name} {n}: " + "a few words of text " * (14 if name == "list" else 120)
        messages.append({"role": "tool", "tool_call_id": "same", "content": text})
        if name == "list":
            messages[-1][NOT_NEEDED] = True
        messages = list(compactor.compact(messages, thread_id="t").messages)
    records = archive.chain(SCOPE)
    assert records[0].clips
    assert not records[0].covers
    keys = [clip.key for record in records for clip in record.clips]
    texts = [one.message["content"] for one in archive.get(SCOPE, keys)]  # type: ignore[index]
    assert {text.split()[0] for text in texts} == {"search", "list"}


def test_blocks_of_anthropics_results_have_the_names_of_their_calls():
    compactor = Compactor(
        writer(), window=50_000, trigger=("tokens", 3_000), keep=("messages", 2),
        archive="memory:",
        stale_results={"newest": 0, "over": 300, "least": 500, "exclude": ["open"]},
    )  # fmt: skip
    messages: list[Any] = [{"role": "user", "content": "Look."}]
    for n in range(10):
        name = "open" if n % 2 else "search"
        messages.append(
            {"role": "assistant",
             "content": [{"type": "tool_use", "id": f"c{n}", "name": name, "input": {}}]}
        )  # fmt: skip
        text = f"{name} {n}: " + "a few words of text " * 120
        messages.append(
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": f"c{n}", "content": text}],
            }
        )
        result = compactor.compact(messages, thread_id="t")
        if result.record is not None:
            break
    assert result.record.clips
    assert not result.record.covers
    shown = [str(one) for one in result.messages]
    assert all(
        "text a few words" in one for one in shown if "open " in one and "tool_result" in one
    )
    assert any("archived" in one for one in shown if "search " in one)
