"""Stale results of tools are clipped first; stale thoughts are not sent."""

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
    tool_call = {
        "name": name,
        "args": {"name": f"m{number}"},
        "id": f"c{number}",
        "type": "tool_call",
    }
    return AIMessage(f"{name} m{number}", tool_calls=[tool_call])


def writer() -> ScriptedChatModel:
    return ScriptedChatModel(answers=lambda messages: "## Found and decided\n- all is fine")


def clipped_results(messages: Sequence[BaseMessage]) -> list[str]:
    """Names of the results that are clipped."""
    results = [message for message in messages if isinstance(message, ToolMessage)]
    return [message.tool_call_id for message in results if "archived" in str(message.content)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("on_loop", [False, True])
@pytest.mark.parametrize("guarded", [False, True])
def test_old_results_are_shown_short_and_no_model_is_asked(on_loop, guarded):
    summarizer = writer()
    middleware = SummarizationMiddleware(
        None, summarizer=summarizer, trigger=("tokens", 3_000), keep=("messages", 4),
        stale_results={"newest": 2, "over": 300, "least": 800}, window=50_000,
    )  # fmt: skip
    answers = iter([*(call("read", n) for n in range(8)), "Done."])
    guard = [ContextGuard(middleware)] if guarded else []
    bench = Bench(lambda _: next(answers), middleware, *guard, tools=[read])
    messages = bench.say("Read all modules.", "async" if on_loop else "sync")
    store = bench.store
    records = Archive(store).chain(SCOPE)
    assert records
    assert all(not record.covers and record.clips for record in records)
    assert summarizer.calls == []
    truncated_ids = clipped_results(messages)
    assert truncated_ids
    assert truncated_ids == [f"c{n}" for n in range(len(truncated_ids))]
    assert len(truncated_ids) <= 6, "the newest stay"
    originals = [
        str(original.message)
        for original in Archive(store).get(SCOPE, [c.key for r in records for c in r.clips])
    ]
    assert len(originals) == len(truncated_ids)
    assert all("one more line" in text for text in originals)
    assert len([message for message in messages if isinstance(message, ToolMessage)]) == 8, (
        "none has left"
    )


@pytest.mark.parametrize("choice_of_tools", [{"tools": ["search", "list"]}, {"exclude": ["open"]}])
def test_a_loop_over_dicts_names_tools_by_calls(choice_of_tools):
    archive = Archive.open("memory:")
    compactor = Compactor(
        writer(), window=50_000, trigger=("tokens", 4_000), keep=("messages", 4), archive=archive,
        stale_results={"newest": 0, "over": 300, "least": 500, **choice_of_tools},
    )  # fmt: skip
    messages: list[Any] = [{"role": "user", "content": "Look."}]
    for n in range(12):
        name = ("search", "open", "list")[n % 3]
        tool_call = {
            "id": "same",
            "type": "function",
            "function": {"name": name, "arguments": "{}"},
        }
        messages.append({"role": "assistant", "content": None, "tool_calls": [tool_call]})
        text = f"{name} {n}: " + "a few words of text " * (14 if name == "list" else 120)
        messages.append({"role": "tool", "tool_call_id": "same", "content": text})
        if name == "list":
            messages[-1][NOT_NEEDED] = True
        messages = list(compactor.compact(messages, thread_id="t").messages)
    records = archive.chain(SCOPE)
    assert records[0].clips
    assert not records[0].covers
    keys = [clip.key for record in records for clip in record.clips]
    texts = [original.message["content"] for original in archive.get(SCOPE, keys)]  # type: ignore[index]
    assert {text.split()[0] for text in texts} == {"search", "list"}


@pytest.mark.parametrize(("least", "clipped"), [(500, 5), (10**6, 0)])
def test_what_frees_less_than_the_set_amount_is_summarised_instead(least, clipped):
    compactor = Compactor(
        writer(), window=50_000, trigger=("tokens", 6_000), keep=("messages", 4), archive="memory:",
        stale_results={"newest": 4, "over": 300, "least": least},
    )  # fmt: skip
    calls_and_results = [
        message
        for n in range(9)
        for message in call_and_result("look", {"n": n}, "a line of it " * 150, f"{n}")
    ]
    result = compactor.compact([user("Look."), *calls_and_results, user("And?")], thread_id="t")
    assert (result.clipped, bool(result.evicted)) == (clipped, not clipped)


class Refused(Exception):
    status_code = 400


def signature_of(earlier: list[BaseMessage]) -> str:
    parts = [(m.type, m.content, getattr(m, "tool_calls", None)) for m in earlier]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class SigningModel:
    """A model whose thoughts are signed with all that stood before them.

    `refused` are requests with a thought behind another beginning.
    """

    def __init__(self, calls: int) -> None:
        self.calls = calls
        self.refused = 0
        self.answers = 0

    def __call__(self, messages: list[BaseMessage]) -> Any:
        for index, message in enumerate(messages):
            for block in message.content if isinstance(message.content, list) else ():
                if not isinstance(block, dict) or block["type"] != "thinking":
                    continue
                if block["signature"] != signature_of(messages[:index]):
                    self.refused += 1
                    return Refused("Invalid `signature` in `thinking` block. Remove the block.")
        results = sum(isinstance(m, ToolMessage) for m in messages)
        thought = {"type": "thinking", "thinking": "Hm.", "signature": signature_of(messages)}
        metadata = {"model_provider": "anthropic"}
        content: list[Any] = [thought, {"type": "text", "text": f"I look, {results}."}]
        self.answers += 1
        if self.answers % (self.calls + 1) == 0:
            return AIMessage(content, response_metadata=metadata)
        call = {"name": "look", "args": {"name": "m"}, "id": f"c{self.answers}"}
        return AIMessage(content, tool_calls=[call], response_metadata=metadata)


@pytest.mark.parametrize("calls", [0, 5])
@pytest.mark.parametrize(
    ("history", "guarded", "mode"),
    [("replace", False, "sync"), ("preserve", True, "sync"), ("preserve", True, "async")],
)
def test_stale_thoughts_are_not_sent_and_stay_in_the_state(history, guarded, mode, calls, caplog):
    """Those of the newest turn stay with their calls at first: most models ask for them there."""
    model = SigningModel(calls)
    events = list[str]()
    listen: Any = {"on_event": lambda event, data: events.append(event)}
    middleware = new_middleware(history=history, alternate_roles="off", **listen)
    bench = Bench(
        model, middleware, *([ContextGuard(middleware, window=20_000)] if guarded else [])
    )
    for n in range(24 // (calls + 1)):
        state = bench.say(f"Go on, {n}.", mode)
    assert any(map(is_summary, bench.requests[-1]))
    assert (model.refused > 0) == ("refused thoughts" in caplog.text) == (calls > 0)
    assert model.refused <= events.count("end") > 0
    if not calls:
        answers = [m for m in state if isinstance(m, AIMessage)]
        assert all(isinstance(m.content, list) and len(m.content) == 2 for m in answers)


def test_thoughts_behind_an_edit_are_left_out_before_the_first_compaction():
    model = SigningModel(0)
    bench = Bench(model, new_middleware())
    first = bench.say("Go on.")[0]
    bench.graph.update_state(thread_config(), {"messages": [HumanMessage("Wait.", id=first.id)]})
    assert bench.say("And now?")[-1].text == "I look, 0."
    assert model.refused == 1
