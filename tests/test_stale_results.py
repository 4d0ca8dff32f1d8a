"""Stale results of tools are truncated first; stale thoughts are not sent."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from conspectus import Compactor, ContextGuard, SummarizationMiddleware
from conspectus.archive import Archive, Scope
from conspectus.core.items import Compact, Item
from conspectus.core.plan import plan
from conspectus.core.policy import Policy, StaleResults
from conspectus.engine.settings import Settings
from conspectus.errors import PolicyError
from conspectus.messages.message import NOT_NEEDED
from conspectus.messages.thoughts import without_stale_thoughts
from graph_support import Bench, is_summary, middleware
from scripted_models import ScriptedChatModel

SCOPE = Scope("local", "t", "main")


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


def policy(trigger: int, **how: Any) -> Policy:
    return Settings(trigger=("tokens", trigger), keep=("messages", 2), stale_results=how).policy()


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


@tool
def read(name: str) -> str:
    """Read a module."""
    return f"module {name}: " + "pass  # one more line of this module\n" * 60


def call(name: str, number: int) -> AIMessage:
    asked = {"name": name, "args": {"name": f"m{number}"}, "id": f"c{number}", "type": "tool_call"}
    return AIMessage(f"{name} m{number}", tool_calls=[asked])


def writer() -> ScriptedChatModel:
    return ScriptedChatModel(answers=lambda messages: "## Found and decided\n- all is fine")


def short(messages: Sequence[BaseMessage]) -> list[str]:
    """Names of the results that are truncated."""
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
    answers = iter([*(call("read", n) for n in range(8)), "Done."])
    guard = [ContextGuard(own)] if guarded else []
    bench = Bench(lambda _: next(answers), own, *guard, tools=[read])
    messages = bench.say("Read all modules.", "async" if on_loop else "sync")
    store = bench.store
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


class Refused(Exception):
    status_code = 400


def sign(before: list[BaseMessage]) -> str:
    said = [(m.type, m.content, getattr(m, "tool_calls", None)) for m in before]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


class Binding:
    """A model whose thoughts are signed with all that stood before them.

    Attributes:
        calls: of tools in a turn.
        refused: requests with a thought behind another beginning.
    """

    def __init__(self, calls: int) -> None:
        self.calls, self.refused, self.answers = calls, 0, 0

    def __call__(self, messages: list[BaseMessage]) -> Any:
        for place, message in enumerate(messages):
            for block in message.content if isinstance(message.content, list) else ():
                if not isinstance(block, dict) or block["type"] != "thinking":
                    continue
                if block["signature"] != sign(messages[:place]):
                    self.refused += 1
                    return Refused("Invalid `signature` in `thinking` block. Remove the block.")
        results = sum(isinstance(m, ToolMessage) for m in messages)
        thought = {"type": "thinking", "thinking": "Hm.", "signature": sign(messages)}
        told = {"model_provider": "anthropic"}
        content: list[Any] = [thought, {"type": "text", "text": f"I look, {results}."}]
        self.answers += 1
        if self.answers % (self.calls + 1) == 0:
            return AIMessage(content, response_metadata=told)
        call = {"name": "look", "args": {"name": "m"}, "id": f"c{self.answers}"}
        return AIMessage(content, tool_calls=[call], response_metadata=told)


def played(model: Binding, history: str, guarded: bool, loop: bool = False) -> Any:
    events: list[str] = []
    own = middleware(history=history, on_event=lambda event, data: events.append(event))
    bench = Bench(model, own, *([ContextGuard(own, window=20_000)] if guarded else []))
    for n in range(24 // (model.calls + 1)):
        state = bench.say(f"Go on, {n}.", "async" if loop else "sync")
    assert any(map(is_summary, bench.requests[-1]))
    return state, events.count("end")


WAYS = [("replace", False, False), ("preserve", True, False), ("preserve", True, True)]
"""History, guard, event loop."""


@pytest.mark.parametrize(("history", "guarded", "loop"), WAYS)
def test_stale_thoughts_are_not_sent_and_stay_in_the_state(history, guarded, loop):
    model = Binding(calls=0)
    state, compactions = played(model, history, guarded, loop)
    assert compactions
    assert model.refused == 0
    thinking = [m for m in state if isinstance(m, AIMessage)]
    assert all(isinstance(m.content, list) and len(m.content) == 2 for m in thinking)


@pytest.mark.parametrize(("history", "guarded", "loop"), WAYS)
def test_a_refusal_of_the_newest_thoughts_is_answered_without_them(history, guarded, loop, caplog):
    """They stay with their calls at first: most models ask for them there."""
    model = Binding(calls=5)
    _, compactions = played(model, history, guarded, loop)
    assert 0 < model.refused <= compactions
    assert "refused thoughts" in caplog.text


def test_thoughts_of_other_providers_stay():
    content: list[Any] = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Yes."}]
    message = AIMessage(content, response_metadata={"model_provider": "google_genai"})
    view = [message, HumanMessage("And?")]
    assert without_stale_thoughts(view, 2)[0] is message
    other = message.model_copy(update={"response_metadata": {}})
    assert without_stale_thoughts([other, view[1]], 2)[0].content == content[1:]
