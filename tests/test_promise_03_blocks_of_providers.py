"""Promise 3: content blocks of providers are asked and answered together, and never rewritten."""

import json
from copy import deepcopy
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from conspectus import Compactor
from conspectus.messages import clip, read_messages
from conspectus.messages.blocks import KINDS, author_of, is_item
from conspectus.messages.recalled import recalled_message, with_recalled
from conspectus.tokens import TokenMeter
from engine import compacted, engine
from histories import talk

METER = TokenMeter()
LONG = "word " * 3_000


def short(message: Any, limit: int = 1) -> Any:
    [entry] = read_messages([message])
    return clip(entry, limit, METER.message)


def block_of(message: Any) -> Any:
    content = message["content"] if isinstance(message, dict) else message.content
    return content[0]


ASKED = [
    (
        [{"type": "mcp_approval_request", "id": "r1", "name": "f", "arguments": "{}"}],
        [{"type": "mcp_approval_response", "approval_request_id": "r1", "approve": True}],
    ),
    (
        [{"type": "computer_call", "call_id": "c1", "id": "cu1", "action": {"type": "click"}}],
        [
            {
                "type": "computer_call_output",
                "call_id": "c1",
                "output": {"type": "computer_screenshot", "image_url": "https://x/y.png"},
            }
        ],
    ),
    (
        [{"type": "apply_patch_call", "call_id": "c2", "operation": {"type": "delete_file"}}],
        [{"type": "apply_patch_call_output", "call_id": "c2", "status": "completed"}],
    ),
    (
        [{"type": "non_standard", "value": {"type": "shell_call", "call_id": "c3"}}],
        [{"type": "non_standard", "value": {"type": "shell_call_output", "call_id": "c3"}}],
    ),
    (
        [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}],
        [{"type": "tool_result", "tool_use_id": "t1", "content": "4"}],
    ),
    (
        [{"toolUse": {"toolUseId": "t2", "name": "f", "input": {}}}],
        [{"toolResult": {"toolUseId": "t2", "content": [{"text": "4"}]}}],
    ),
]


@pytest.mark.parametrize(("question", "answer"), ASKED)
@pytest.mark.parametrize("form", ["dicts", "messages"])
def test_an_answer_in_a_users_message_keeps_its_question(question, answer, form):
    said = [*answer, {"type": "text", "text": "And go on with it."}]
    history: list[Any] = talk(20)
    if form == "dicts":
        asks, newest = {"role": "assistant", "content": question}, {"role": "user", "content": said}
    else:
        history = [HumanMessage(m["content"]) for m in history]
        asks, newest = AIMessage(question), HumanMessage(said)  # type: ignore[assignment]
    history = [*history[:10], asks, newest, *({"role": "assistant", "content": "ok"},) * 6]
    result = compacted(history, engine(keep=("messages", 2)), force=True)
    assert result.outcome == "compacted"
    shown = [id(message) for message in result.messages]
    assert id(asks) in shown
    assert id(newest) in shown


def test_what_follows_a_paused_turn_goes_on_with_it():
    paused = AIMessage("Searching", response_metadata={"stop_reason": "pause_turn"})
    history = [HumanMessage("a"), paused, AIMessage("Found."), HumanMessage("b")]
    assert [entry.joined for entry in read_messages(history)] == [False, False, True, False]


WHOLE = [
    {"type": "a_kind_of_next_year", "text": LONG, "content": [{"type": "text", "text": LONG}]},
    {"type": "thinking", "thinking": LONG, "signature": "s"},
    {"type": "redacted_thinking", "data": LONG},
    {"type": "reasoning", "reasoning": LONG, "extras": {"signature": "s"}},
    {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": LONG}]},
    {"type": "reasoning_content", "reasoning_content": {"text": LONG, "signature": "s"}},
    {"type": "non_standard", "value": {"type": "redacted_thinking", "data": LONG}},
    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": LONG}},
    {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"title": LONG}]},
    {"type": "web_search_call", "id": "ws", "action": {"query": LONG}},
    {"type": "code_interpreter_call", "id": "ci", "code": LONG, "outputs": []},
    {"type": "mcp_call", "id": "m", "arguments": "{}", "output": LONG},
    {"type": "computer_call", "call_id": "c", "id": "cu", "action": {"text": LONG}},
    {"type": "text", "text": LONG, "citations": [{"cited_text": "word"}]},
    {"type": "text", "text": LONG, "annotations": [{"type": "citation"}]},
    {"type": "text", "text": LONG, "extras": {"signature": "s"}},
    {"type": "container_upload", "file_id": LONG},
]


@pytest.mark.parametrize("block", WHOLE, ids=lambda block: str(block["type"]))
def test_what_the_table_gives_nothing_of_is_never_rewritten(block):
    before = deepcopy(block)
    message = AIMessage([block, {"type": "text", "text": LONG}])
    shown = short(message)
    assert block_of(shown) == before
    assert shown.content[1]["text"] != LONG
    assert short({"role": "assistant", "content": [block]})["content"] == [before]


LONG_ARGS = {"path": "a.txt", "text": LONG}
CALLS = [
    {"type": "function_call", "id": "fc", "call_id": "c", "name": "f"},
    {"type": "tool_call", "id": "c", "name": "f", "args": LONG_ARGS},
    {"type": "tool_use", "id": "c", "name": "f", "input": LONG_ARGS},
]
CALLS[0]["arguments"] = json.dumps(LONG_ARGS)
CALLS[1]["extras"] = {"item_id": "fc", "arguments": json.dumps(LONG_ARGS)}


@pytest.mark.parametrize("limit", [1, 200])
@pytest.mark.parametrize("block", CALLS, ids=lambda block: str(block["type"]))
def test_arguments_are_shortened_in_place_in_each_form_of_a_call(block, limit):
    call = {"id": "c", "name": "f", "args": LONG_ARGS, "type": "tool_call"}
    message = AIMessage([block], tool_calls=[call])
    shown = short(message, limit)
    made = block_of(shown)
    same = ("type", "id", "call_id", "name")
    assert {k: made[k] for k in same if k in block} == {k: block[k] for k in same if k in block}
    assert LONG[:2_000] not in json.dumps(made)
    assert LONG[:2_000] not in json.dumps(shown.tool_calls)
    args = made.get("input") or made.get("args") or json.loads(made["arguments"])
    assert args == shown.tool_calls[0]["args"]
    if "extras" in block:
        assert json.loads(made["extras"]["arguments"]) == args


def test_the_copy_that_google_makes_of_a_call_waits_for_nothing():
    made: list[Any] = []
    for n in range(8):
        call = {"id": f"c{n}", "name": "f", "args": {"q": LONG[:400]}, "type": "tool_call"}
        extra = {"function_call": {"name": "f", "arguments": json.dumps(call["args"])}}
        made.append(AIMessage("", tool_calls=[call], additional_kwargs=extra))
        made.append(ToolMessage(LONG[:400], tool_call_id=f"c{n}"))
    history = [HumanMessage("go"), *made, AIMessage("done")]
    result = Compactor(keep=("messages", 2)).compact(history, thread_id="t", force=True)
    assert result.outcome == "compacted"
    assert len(result.messages) == 5


def test_items_of_kinds_that_nobody_knows_yet_are_read():
    call = {"type": "hologram_call", "id": "h1", "light": "blue"}
    [entry] = read_messages([call])
    assert (entry.role, entry.id) == ("assistant", "h1")
    assert "blue" in entry.text
    assert read_messages([{"type": "hologram_call_output", "call_id": "h"}])[0].role == "tool"
    assert not is_item({"type": "human", "content": "hi"})
    assert all(author_of({"type": name}) in ("model", "client") for name in KINDS)


def test_recalled_text_stands_between_no_call_and_its_result():
    result = {"type": "tool_result", "tool_use_id": "t", "content": "4"}
    asks = AIMessage([{"type": "tool_use", "id": "t", "name": "f", "input": {}}])
    newest = HumanMessage([result, {"type": "text", "text": "And now?"}])
    recalled = recalled_message("an old text", "turn")
    assert with_recalled([asks, newest], recalled) == [asks, newest, recalled]
