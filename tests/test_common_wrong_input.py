"""What people pass by mistake, or in another library's form, is taken or named."""

import asyncio
import json
import uuid
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from anthropic.types import TextBlock, ToolUseBlock
from langchain_core.messages import HumanMessage, RemoveMessage
from langgraph.store.memory import InMemoryStore
from openai.types.chat import ChatCompletionMessage

from conspectus import CompactionResult, Compactor, SummarizationMiddleware
from conspectus.core.records import Cost
from conspectus.errors import InputError, MessageError, PolicyError
from conspectus.langchain import ContextGuard
from conspectus.observe import OpenTelemetry
from conspectus_sdk import Fitter
from conspectus_secrets import SecretRedactor
from graph_support import new_agent, thread_config, user_input
from histories import talk
from scripted_models import ScriptedChatModel
from stateful.oracle import anthropic_rejects, openai_rejects

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"name": "a"}'}}


def call_and_result_of_sdk(form: str, n: int) -> list[Any]:
    """An answer of an SDK as loops put it into their history, and the result of its call."""
    if form == "anthropic":
        asks = ToolUseBlock(type="tool_use", id=f"t{n}", name="look", input={"at": None})
        answer = {"role": "assistant", "content": [TextBlock(type="text", text=f"ok {n}"), asks]}
        content = [TextBlock(type="text", text=f"fine {n} " * 60)]
        result = {"type": "tool_result", "tool_use_id": f"t{n}", "content": content}
        return [answer, {"role": "user", "content": [result]}]
    message = ChatCompletionMessage.model_validate(
        {"role": "assistant", "content": f"ok {n}", "tool_calls": [{**CALL, "id": f"t{n}"}]}
    )
    part = {"role": "assistant", "content": message.content, "tool_calls": message.tool_calls}
    answer = part if form == "openai" else message
    return [answer, {"role": "tool", "tool_call_id": f"t{n}", "content": f"fine {n} " * 60}]


@pytest.mark.parametrize("form", ["anthropic", "openai", "whole"])
@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.parametrize("method", ["compact", "acompact", "fit"])
def test_objects_of_an_sdk_are_read_as_dicts(form, goes_on, method):
    compactor = Compactor(window=3_000, archive="memory:")
    fitter = Fitter(window=3_000, archive="memory:")
    fit: dict[str, Callable[[Any], CompactionResult]] = {
        "compact": partial(compactor.compact, thread_id="t"),
        "acompact": lambda sent: asyncio.run(compactor.acompact(sent, thread_id="t")),
        "fit": partial(fitter.fit, model="claude", thread_id="t"),
    }
    rejects = anthropic_rejects if form == "anthropic" else openai_rejects
    sent = [{"role": "user", "content": "Look at all of it."}]
    compactions = 0
    for n in range(60):
        sent.extend(call_and_result_of_sdk(form, n))
        result = fit[method](sent)
        compactions += result.outcome == "compacted"
        json.dumps(result.messages)
        assert not rejects(result.messages)
        assert f"fine {n}" in str(result.messages[-1])
        sent = result.messages if goes_on else sent
    assert compactions > 2
    assert "Block(" not in result.summary
    assert form != "anthropic" or result.messages[-2]["content"][1]["input"] == {"at": None}


@pytest.mark.parametrize("field", ["content", "tool_calls"])
def test_an_object_that_nothing_reads_is_named_with_its_place(field):
    wrong = {"role": "assistant", "content": "", field: [SimpleNamespace(type="text", text="b")]}
    with pytest.raises(MessageError, match=rf"message 1 .* its {field} .*\.model_dump\(\)"):
        Compactor().compact([{"role": "user", "content": "hi"}, wrong], thread_id="t")


class AwaitedCall:
    async def __call__(self, *arguments: Any) -> bool:
        return False


SURFACES = (Compactor, partial(SummarizationMiddleware, None))
STALE = [{"keep": 3}, {"over": 200}, {"newest": -1}, {"least": 0}, {"newest": True}]
STALE += [{name: value} for name in ("tools", "exclude") for value in ("look", [""], [3], {"a": 3})]
WRONG: list[tuple[str, list[Any], str]] = [
    ("background", [0.7, "yes", {"at": 0.5}], "background must be True or False"),
    ("stale_results", ["yes", 3, {"arguments": 1}, *STALE], "stale_results"),
    ("redact", ["passwords", 5, object(), SecretRedactor], "redact must be True"),
    ("on_failure", ["ignore"], "on_failure must be one of"),
    ("archive", [7], "archive must be a path"),
    ("trim_tokens_to_summarize", [0], "trim_tokens_to_summarize must be"),
    ("fallbacks", [[7]], "cannot summarise"),
    ("fallbacks", ["embedded"], "fallbacks must be a list"),
    ("telemetry", [3, "otel", OpenTelemetry], "a listener is a callable that takes an event"),
    ("on_event", [3, asyncio.sleep], "on_event must be"),
    ("pin", ["", asyncio.sleep, AwaitedCall()], "pin must be"),
    ("preview", ["yes", asyncio.sleep], "preview must be True, False or a callable"),
    ("summary_prompt", [3], r"\{messages\}"),
    ("summarizer", [ScriptedChatModel], "a class: give an instance"),
    ("summarizer", ["embeded"], "did you mean 'embedded'"),
    ("tokenizer", ["tiktoken:no-such-encoding"], "tiktoken"),
    ("tokenizer", [7], "tokenizer must be"),
    ("token_counter", [7], "token_counter must be"),
    ("token_counter", ["tiktoken", "gpt-4o"], "write tiktoken:o200k_base"),
    ("tenant", [7, ""], "tenant must be a text or a callable"),
    ("skills", ["read_file"], "skills must be a conspectus.langchain.Skills"),
    ("summarizer_timeout", [30_000], r"seconds above 0 and at most 3,600, or None, not 30000"),
]
WITH_MODEL = partial(SummarizationMiddleware, ScriptedChatModel(answers=[]))
ONLY = dict.fromkeys(
    ("trim_tokens_to_summarize", "preview", "skills", "summary_prompt", "tenant"), (WITH_MODEL,)
)
ONLY["tokenizer"] = SURFACES[:1]


@pytest.mark.parametrize(("name", "values", "problem"), WRONG)
def test_a_setting_that_means_nothing_is_refused_with_what_to_write(name, values, problem):
    for surface in ONLY.get(name, SURFACES):
        for value in values:
            with pytest.raises(PolicyError, match=problem):
                surface(**{name: value})


@pytest.mark.parametrize("surface", SURFACES)
def test_a_trigger_and_a_summary_beyond_the_window_are_said(surface):
    with pytest.warns(UserWarning, match="never reached in a window of 8,000 tokens. Lower"):
        surface(window=8_000, trigger=("tokens", 80_000))
    with pytest.warns(UserWarning, match=r"\(5,000\) are not less than a window of 2,000 tokens"):
        surface(window=2_000, max_summary_tokens=5_000)


def test_a_private_method_of_langchain_that_nothing_calls_is_said():
    class Mine(SummarizationMiddleware[Any, Any]):
        def _create_summary(self, messages: list[Any]) -> str:
            return "mine"

    with pytest.warns(UserWarning, match="_create_summary is never called here: give a function"):
        Mine(None, trigger=("tokens", 9_000))


@pytest.mark.parametrize("messages", [[{"role": "user", "content": "hi"}], [HumanMessage("hi")]])
def test_a_body_or_a_state_is_its_messages(messages):
    compactor = Compactor()
    for body in (messages, {"messages": messages}, {"model": "m", "messages": messages}):
        result = compactor.compact(body, thread_id="t")  # type: ignore[arg-type]
        assert list(result.messages) == messages


@pytest.mark.parametrize(
    ("no_history", "problem"),
    [
        ([{"role": "user"}], 'no "content"'),
        ({"role": "user", "content": "hi"}, "wrap a single message in a list"),
        ("hi", "must be a list of messages"),
        ({"messages": "hi"}, "must be a list of messages"),
        ({"input": []}, "must be a list of messages"),
        ([["user", "hi"]], 'dicts such as {"role": "user"'),
        ([42], "message 0 is int"),
        ([{"content": "x"}], 'has no "role"'),
        ([{"role": "wizard", "content": ""}], "message 0 has the unknown role 'wizard'"),
        ([{"role": "user", "content": 5}], "message 0 has content of the type int"),
        ([RemoveMessage(id="x")], "RemoveMessage"),
    ],
)
def test_an_error_says_what_a_history_is(no_history, problem):
    with pytest.raises(MessageError, match=problem):
        Compactor().compact(no_history, thread_id="t")


@pytest.mark.parametrize("name", [7, uuid.UUID(int=5)])
def test_a_thread_may_be_a_number_or_a_uuid(name):
    store = InMemoryStore()
    messages = [HumanMessage(f"Look at module {n}. " * 5, id=f"m{n}") for n in range(9)]
    compactor = Compactor(archive=store, keep=("messages", 2))
    assert compactor.compact(messages, thread_id=name, force=True).record
    for thread in (name, str(name)):
        assert compactor.recall("module 1", thread_id=thread).text
    middleware = SummarizationMiddleware(None, trigger=("messages", 4), keep=("messages", 2))
    graph, _ = new_agent(lambda _: "Sound.", middleware)
    for n in range(4):
        state = graph.invoke(
            user_input(f"And {n}? " + "Please look at that module, too. " * 5), thread_config(name)
        )
    assert len(state["messages"]) < 8
    channel = graph.get_state(thread_config(name)).values["_conspectus"]
    assert channel["thread"] == str(name)


@pytest.mark.parametrize(
    ("trigger", "problem"),
    [
        ({"type": "tokens", "value": 4000}, r"in Python write \('tokens', 4000\)"),
        (("fraction", 1.5), r"got 1\.5\. Write"),
        (("fraction", 85), r"got 85\. Did you mean 0\.85\? Write"),
    ],
)
def test_a_trigger_of_another_form_names_the_right_one(trigger, problem):
    with pytest.raises(PolicyError, match=problem):
        Compactor(trigger=trigger)


@pytest.mark.parametrize("name", ["", None, True, 1.5, ("a",)])
def test_what_names_no_thread_is_an_error(name):
    with pytest.raises(InputError, match="must be a text that is not empty"):
        Compactor().compact([HumanMessage("hi")], thread_id=name)


def test_a_quiet_step_notices_a_change_in_place():
    compactor = Compactor("embedded", window=3_000)
    sent = talk(3)
    assert compactor.compact(sent, thread_id="t").tokens_before < 800
    sent[2]["content"] = "much more " * 700
    assert compactor.compact(sent, thread_id="t").tokens_before > 1_000
    sent[2]["content"] = [block := TextBlock(type="text", text="b")]
    assert compactor.compact(sent, thread_id="t").tokens_before < 800
    block.text = "much more " * 700
    assert compactor.compact(sent, thread_id="t").tokens_before > 1_000


SLIPS: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (Fitter(archive="memory:").fit, {"messages": [], "model": "m"}, r"Fitter.fit\(\) missing 1"),
    (partial(SummarizationMiddleware, None), {"tirgger": 1}, "tion.*: unexpected .* 'tirgger'"),
    (partial(Fitter, archive="memory:"), {"pinn": "x"}, "Fitter: .* 'pinn'; did you mean 'pin'"),
    (ContextGuard, {"sumarizer": "embedded"}, "unexpected keyword argument 'sumarizer'"),
]


@pytest.mark.parametrize(("callee", "arguments", "problem"), SLIPS)
def test_a_parameter_that_does_not_exist_is_refused_by_its_name(callee, arguments, problem):
    with pytest.raises(TypeError, match=problem):
        callee(**arguments)


def test_a_compactor_accepts_no_setting_later():
    with pytest.raises(AttributeError, match="Compactor has no setting 'window'"):
        Compactor(window=4_000).window = 3_000  # type: ignore[attr-defined]


@pytest.mark.parametrize(("archive", "lost"), [("memory:", ""), (None, ", not archived")])
def test_a_printed_result_shows_evicted_and_kept(archive, lost):
    talk = [
        {"role": ("user", "assistant")[n % 2], "content": f"Step {n} is done. " * 5}
        for n in range(12)
    ]
    compactor = Compactor(archive=archive, keep=("messages", 4))
    assert "summarizer='embedded', trigger=('tokens', 170000), keep=('mess" in repr(compactor)
    result = compactor.compact(talk, thread_id="t", force=True)
    assert f" {result.evicted} messages evicted{lost}, {result.kept} in view" in repr(result)
    assert "not archived" not in repr(compactor.compact(talk[:2], thread_id="new"))
    assert f" {result.evicted} messages evicted" in repr(result.record)
    assert repr(Cost(2, 90).asked_of("m")) == "Cost(calls=2, input_tokens=90, models=['m'])"
