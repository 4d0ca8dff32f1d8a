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
from conspectus.messages.message import NOT_NEEDED
from graph_support import Bench, is_summary, new_middleware, thread_config
from histories import call_and_result, user
from scripted_models import ScriptedChatModel

SCOPE = Scope("local", "t", "main")


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


@pytest.mark.parametrize("which", [{"tools": ["search", "list"]}, {"exclude": ["open"]}])
def test_a_loop_over_dicts_names_tools_by_their_calls_and_marks_its_results(which):
    archive = Archive.open("memory:")
    compactor = Compactor(
        writer(), window=50_000, trigger=("tokens", 4_000), keep=("messages", 4), archive=archive,
        stale_results={"newest": 0, "over": 300, "least": 500, **which},
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


@pytest.mark.parametrize(("least", "clipped"), [(500, 5), (10**6, 0)])
def test_what_frees_less_than_the_set_amount_is_summarised_instead(least, clipped):
    compactor = Compactor(
        writer(), window=50_000, trigger=("tokens", 6_000), keep=("messages", 4), archive="memory:",
        stale_results={"newest": 4, "over": 300, "least": least},
    )  # fmt: skip
    looked = [
        one
        for n in range(9)
        for one in call_and_result("look", {"n": n}, "a line of it " * 150, f"{n}")
    ]
    result = compactor.compact([user("Look."), *looked, user("And?")], thread_id="t")
    assert (result.clipped, bool(result.evicted)) == (clipped, not clipped)


class Refused(Exception):
    status_code = 400


def sign(before: list[BaseMessage]) -> str:
    said = [(m.type, m.content, getattr(m, "tool_calls", None)) for m in before]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


class Binding:
    """A model whose thoughts are signed with all that stood before them.

    `refused` are requests with a thought behind another beginning.
    """

    def __init__(self, calls: int) -> None:
        self.calls = calls
        self.refused = 0
        self.answers = 0

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


@pytest.mark.parametrize("calls", [0, 5])
@pytest.mark.parametrize(
    ("history", "guarded", "way"),
    [("replace", False, "sync"), ("preserve", True, "sync"), ("preserve", True, "async")],
)
def test_stale_thoughts_are_not_sent_and_stay_in_the_state(history, guarded, way, calls, caplog):
    """Those of the newest turn stay with their calls at first: most models ask for them there."""
    model = Binding(calls)
    events = list[str]()
    listen: Any = {"on_event": lambda event, data: events.append(event)}
    own = new_middleware(history=history, alternate_roles="off", **listen)
    bench = Bench(model, own, *([ContextGuard(own, window=20_000)] if guarded else []))
    for n in range(24 // (calls + 1)):
        state = bench.say(f"Go on, {n}.", way)
    assert any(map(is_summary, bench.requests[-1]))
    assert (model.refused > 0) == ("refused thoughts" in caplog.text) == (calls > 0)
    assert model.refused <= events.count("end") > 0
    if not calls:
        answers = [m for m in state if isinstance(m, AIMessage)]
        assert all(isinstance(m.content, list) and len(m.content) == 2 for m in answers)


def test_thoughts_behind_an_edit_are_left_out_before_the_first_compaction():
    model = Binding(0)
    bench = Bench(model, new_middleware())
    first = bench.say("Go on.")[0]
    bench.graph.update_state(thread_config(), {"messages": [HumanMessage("Wait.", id=first.id)]})
    assert bench.say("And now?")[-1].text == "I look, 0."
    assert model.refused == 1
