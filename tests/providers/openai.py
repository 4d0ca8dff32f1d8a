"""OpenAI's Chat Completions and Responses, and Mistral's form of the former.

Rules: OpenAI's pages on function calling, reasoning, computer use, MCP, shell and apply patch, and
the errors of the API; Mistral's validation of the order of messages.
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_mistralai.chat_models import _convert_message_to_mistral_chat_message
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models._compat import _convert_to_v03_ai_message

from providers.making import PIXEL, Maker, Provider, answers_remade, dumped, remade, standard
from stateful.oracle import openai_rejects

IMAGE = f"data:image/png;base64,{PIXEL}"


def _call(name: str, call_id: str, args: dict[str, Any]) -> dict[str, Any]:
    return {"id": call_id, "name": name, "args": args, "type": "tool_call"}


def make_chat(maker: Maker) -> None:
    maker.begin({"type": "image_url", "image_url": {"url": IMAGE}})
    for _ in range(maker.chance.randint(0, 4)):
        calls = [_call("edit", maker.id(), maker.args()) for _ in maker.some_of()]
        maker.say(AIMessage(maker.choose("", maker.text()), tool_calls=calls))
        for call in maker.shuffled(calls):
            maker.say(ToolMessage(maker.text(), tool_call_id=call["id"], name="edit"))
        maker.ask()
    maker.say(AIMessage(maker.text()))


@cache
def _model(name: str, responses: bool) -> ChatOpenAI:
    return ChatOpenAI(model=name, api_key="none", use_responses_api=responses)  # type: ignore[arg-type]


def request_chat(messages: Sequence[Any]) -> list[Any]:
    return _model("gpt-4.1", False)._get_request_payload(list(messages))["messages"]


def refuses_chat(rows: list[Any], whole: list[Any]) -> list[str]:
    wrong = list(openai_rejects(rows))
    for index, row in enumerate(rows):
        calls = row.get("tool_calls") or ()
        if not all(isinstance(json.loads(c["function"]["arguments"]), dict) for c in calls):
            wrong.append(f"{index}: arguments are no object")
        if row["role"] != "tool" and not row.get("content") and not calls:
            wrong.append(f"{index}: empty")
    return wrong


def request_mistral(messages: Sequence[Any]) -> list[Any]:
    return [_convert_message_to_mistral_chat_message(message) for message in messages]


FOLLOWS = {
    "": ("system", "user"),
    "system": ("system", "user", "assistant"),
    "user": ("user", "assistant"),
    "assistant": ("user", "tool"),
    "tool": ("tool", "assistant"),
}


def refuses_mistral(rows: list[Any], whole: list[Any]) -> list[str]:
    wrong = refuses_chat(rows, whole)
    previous_role = ""
    for index, row in enumerate(rows):
        if row["role"] not in FOLLOWS[previous_role]:
            wrong.append(f"{index}: {row['role']} after {previous_role}")
        previous_role = row["role"]
        for call in row.get("tool_calls") or ():
            if not re.fullmatch("[a-zA-Z0-9]{9}", call["id"]):
                wrong.append(f"{index}: {call['id']} is no id")
    if previous_role not in ("user", "tool"):
        wrong.append("the last message is neither a user's nor a tool's")
    return wrong


HOSTED = ("web_search_call", "file_search_call", "code_interpreter_call", "mcp_list_tools")


def _hosted(maker: Maker) -> dict[str, Any]:
    item_type = maker.choose(*HOSTED)
    fields = {
        "web_search_call": {"action": {"type": "search", "query": maker.text(30)}},
        "file_search_call": {"queries": [maker.text(30)], "results": []},
        "code_interpreter_call": {"code": maker.text(), "container_id": "cntr_1", "outputs": []},
        "mcp_list_tools": {"server_label": "docs", "tools": []},
    }[item_type]
    if item_type != "mcp_list_tools":
        fields = {**fields, "status": "completed"}
    return {"type": item_type, "id": maker.id("it_"), **fields}


def _asks(maker: Maker, *, items: bool) -> list[dict[str, Any]]:
    """What an answer asks of the caller: one kind of call, several of it at once."""
    item_types = ["function_call"] * 3 + [
        "custom_tool_call",
        "computer_call",
        "mcp_approval_request",
    ]
    item_types += ["apply_patch_call"] + (["local_shell_call", "shell_call"] if items else [])
    item_type = maker.choose(*item_types)
    calls = []
    for _ in maker.some_of(1 if item_type == "computer_call" else 3):
        call: dict[str, Any] = {
            "type": item_type,
            "id": maker.id("it_"),
            "call_id": maker.id("call_"),
        }
        if item_type == "function_call":
            call |= {"name": "edit", "arguments": json.dumps(maker.args())}
        elif item_type == "custom_tool_call":
            call |= {"name": "note", "input": maker.text()}
        elif item_type == "mcp_approval_request":
            del call["call_id"]
            call |= {"name": "find", "arguments": "{}", "server_label": "docs"}
        elif item_type == "computer_call":
            call |= {"action": {"type": "type", "text": maker.text()}, "pending_safety_checks": []}
        elif item_type == "apply_patch_call":
            call |= {"operation": {"type": "update_file", "path": "a.py", "diff": maker.text()}}
        elif item_type == "shell_call":
            call |= {"action": {"commands": [maker.text(30)]}}
        else:
            call |= {"action": {"type": "exec", "command": ["ls"], "env": {}}}
        if "action" in call or "operation" in call:
            call["status"] = "completed"
        calls.append(call)
    return calls


def _thoughts(maker: Maker) -> list[dict[str, Any]]:
    summary = [{"type": "summary_text", "text": maker.text()}] if maker.happens(0.5) else []
    thought = {"type": "reasoning", "id": maker.id("it_"), "summary": summary}
    if maker.happens(0.5):
        thought["encrypted_content"] = maker.id("enc_") * 20
    return [thought] if maker.happens(0.6) else []


def _words(maker: Maker) -> dict[str, Any]:
    cited = {"type": "url_citation", "url": "https://x.y", "title": "X", "start_index": 0}
    notes = [{**cited, "end_index": 4}] if maker.happens(0.3) else []
    return {"type": "text", "text": maker.text(), "id": maker.id("it_"), "annotations": notes}


def _answer(maker: Maker, blocks: list[Any]) -> AIMessage:
    calls = [
        _call(b["name"], b["call_id"], json.loads(b["arguments"]))
        if b["type"] == "function_call"
        else _call(b["name"], b["call_id"], {"__arg1": b["input"]})
        for b in blocks
        if b["type"] in ("function_call", "custom_tool_call")
    ]
    meta = {"model_provider": "openai", "id": maker.id("resp_")}
    return AIMessage(blocks, tool_calls=calls, response_metadata=meta)


def _outcome(maker: Maker, call: dict[str, Any]) -> Any:
    item_type = call["type"]
    if item_type == "function_call":
        image = {"type": "input_image", "image_url": IMAGE}
        output = maker.choose(maker.text(), [{"type": "input_text", "text": maker.text()}, image])
        return ToolMessage(output, tool_call_id=call["call_id"])
    if item_type == "custom_tool_call":
        block = {"type": "custom_tool_call_output", "output": maker.text()}
        return ToolMessage([block], tool_call_id=call["call_id"])
    if item_type == "computer_call":
        content = maker.choose(IMAGE, [{"type": "input_image", "image_url": IMAGE}])
        extra = {"type": "computer_call_output"}
        return ToolMessage(content, tool_call_id=call["call_id"], additional_kwargs=extra)
    if item_type == "apply_patch_call":
        return {
            "type": "apply_patch_call_output", "call_id": call["call_id"], "status": "completed",
            "output": maker.text(),
        }  # fmt: skip
    return {"type": "mcp_approval_response", "approval_request_id": call["id"], "approve": True}


def make_responses(maker: Maker) -> None:
    image = {"type": "input_image", "image_url": IMAGE}
    maker.say(
        HumanMessage(
            maker.choose(maker.text(), [{"type": "input_text", "text": maker.text()}, image])
        )
    )
    maker.ask()
    for _ in range(maker.chance.randint(0, 3)):
        calls = _asks(maker, items=False)
        hosted = [_hosted(maker)] if maker.happens(0.3) else []
        words = [_words(maker)] if maker.happens(0.3) else []
        maker.say(_answer(maker, [*_thoughts(maker), *hosted, *words, *calls]))
        outcomes = [_outcome(maker, call) for call in maker.shuffled(calls)]
        if isinstance(outcomes[0], dict):  # in the user's name, with or without words of his own
            users_words = (
                [{"type": "input_text", "text": maker.text()}] if maker.happens(0.5) else []
            )
            maker.say(HumanMessage([*outcomes, *users_words]))
        else:
            maker.say(*outcomes)
        maker.ask()
    maker.say(_answer(maker, [*_thoughts(maker), _words(maker)]))


def make_items(maker: Maker) -> None:
    """The same as a caller of OpenAI's own package has it: a list of items."""
    maker.say({"role": "user", "content": maker.text()})
    maker.ask()
    for _ in range(maker.chance.randint(0, 3)):
        calls = _asks(maker, items=True)
        hosted = [_hosted(maker)] if maker.happens(0.3) else []
        maker.say(*_thoughts(maker), *hosted, *([_message(maker)] if maker.happens(0.3) else []))
        maker.say(*calls)
        maker.say(*(_item(maker, call) for call in maker.shuffled(calls)))
        maker.ask()
    maker.say(*_thoughts(maker), _message(maker))


def _message(maker: Maker) -> dict[str, Any]:
    words = {key: part for key, part in _words(maker).items() if key != "id"}
    return {
        "type": "message", "role": "assistant", "id": maker.id("it_"), "status": "completed",
        "content": [{**words, "type": "output_text"}],
    }  # fmt: skip


def _item(maker: Maker, call: dict[str, Any]) -> dict[str, Any]:
    item_type = call["type"]
    name = {"call_id": call.get("call_id")}
    if item_type in ("function_call", "custom_tool_call"):
        return {"type": f"{item_type}_output", **name, "output": maker.text()}
    if item_type == "computer_call":
        shot = {"type": "computer_screenshot", "image_url": IMAGE}
        return {"type": "computer_call_output", **name, "output": shot}
    if item_type == "local_shell_call":
        name = maker.choose(name, {"id": call["call_id"]})
        output = json.dumps({"stdout": maker.text(), "exit_code": 0})
        return {"type": "local_shell_call_output", **name, "output": output}
    if item_type == "shell_call":
        end = {"type": "exit", "exit_code": 0}
        output = [{"stdout": maker.text(), "stderr": "", "outcome": end}]  # type: ignore[assignment]
        return {"type": "shell_call_output", **name, "output": output}
    return _outcome(maker, call)


def request_responses(messages: Sequence[Any]) -> list[Any]:
    return _model("gpt-5", True)._get_request_payload(list(messages))["input"]


FREE = ("function_call", "custom_tool_call", "message")
SHORTENED = ("function_call_output", "custom_tool_call_output", "shell_call_output")
SHORTENED += ("local_shell_call_output", "apply_patch_call_output")
PAIRS = "function_call custom_tool_call computer_call local_shell_call shell_call apply_patch_call"


def refuses_responses(items: list[Any], whole: list[Any]) -> list[str]:
    faults: list[str] = []
    originals = {dumped(item) for item in whole}
    follows = _following(whole)
    open_calls: dict[str, str] = {}
    approvals = set[str]()
    item_ids = set[str]()
    for index, item in enumerate(items):
        item_type = item.get("type", "message")
        item_id = item.get("id")
        if item_type not in (*FREE, *SHORTENED) and dumped(item) not in originals:
            faults.append(f"{index}: {item_type} was changed")
        if item_id and not item_type.endswith("_output"):
            if item_id in item_ids:
                faults.append(f"{index}: {item_id} stands there twice")
            item_ids.add(item_id)
        if item_type in PAIRS.split():
            open_calls[item["call_id"]] = item_type
        elif item_type.endswith("_call_output"):
            call_id = item.get("call_id") or item["id"]  # a local shell's may hold it as `id`
            if open_calls.pop(call_id, "") != item_type.removesuffix("_output"):
                faults.append(f"{index}: {item_type} without its call")
        elif item_type == "mcp_approval_request":
            approvals.add(item["id"])
        elif item_type == "mcp_approval_response" and item["approval_request_id"] not in approvals:
            faults.append(f"{index}: an approval that nobody asked for")
        faults += _shape(index, item_type, item)
    if open_calls:
        faults.append(f"calls {sorted(open_calls)} have no output")
    following = _following(items)
    for item_id, next_id in follows.items():
        if item_id in item_ids and following.get(item_id) != next_id:
            faults.append(f"{item_id}: what follows a thought is not {next_id}")
    needed = {next_id: item_id for item_id, next_id in follows.items()}
    faults += [
        f"{needed_id} without its thought"
        for needed_id in item_ids & needed.keys()
        if needed[needed_id] not in item_ids
    ]
    return faults


def _following(items: list[Any]) -> dict[str, str]:
    """By the id of each thought, the id of the item that must follow it."""
    next_ids = {}
    for item, next_item in pairwise(items):
        if item.get("type") == "reasoning":
            next_ids[item["id"]] = str(next_item.get("id"))
    return next_ids


def _shape(index: int, item_type: str, item: dict[str, Any]) -> Iterator[str]:
    if item_type == "function_call" and not isinstance(json.loads(item["arguments"]), dict):
        yield f"{index}: arguments are no object"
    if item_type == "local_shell_call_output":
        json.loads(item["output"])
    if item_type == "function_call_output" and not isinstance(item["output"], str):
        part_types = {part["type"] for part in item["output"]}
        if not part_types <= {"input_text", "input_image", "input_file"}:
            yield f"{index}: output of {part_types}"
    if item_type == "message" and isinstance(item["content"], list):
        allowed = {"output_text", "refusal"}
        if item["role"] != "assistant":
            allowed = {"input_text", "input_image", "input_file"}
        if not {part["type"] for part in item["content"]} <= allowed:
            yield f"{index}: {item['role']} says {[part['type'] for part in item['content']]}"


def first_form(answer: AIMessage) -> AIMessage:
    """As the first versions of the package gave it: calls of hosted tools beside."""
    return _convert_to_v03_ai_message(answer.model_copy(deep=True))


def request_raw(messages: Sequence[Any]) -> list[Any]:
    return list(messages)


MAKE_DICTS = remade(make_chat, request_chat)
CHAT = [
    Provider("OpenAI Chat Completions, messages", make_chat, request_chat, refuses_chat, False),
    Provider("OpenAI Chat Completions, dicts", MAKE_DICTS, request_raw, refuses_chat, False),
]
MAKERS = {
    "first form": (answers_remade(make_responses, first_form), request_responses),
    "messages": (make_responses, request_responses),
    "standard content": (standard(make_responses), request_responses),
    "items": (make_items, request_raw),
}
RESPONSES = [
    Provider(f"OpenAI Responses, {form}", *make_and_request, refuses_responses)
    for form, make_and_request in MAKERS.items()
]
MISTRAL = [Provider("Mistral", make_chat, request_mistral, refuses_mistral, False)]
