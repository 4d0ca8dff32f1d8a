"""Google's Gemini: thoughts, signatures, function calls, code that the model runs.

Rules: the pages on function calling and thought signatures of the Gemini API's documentation, and
the errors of the API.
"""

import base64
import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_google_genai.chat_models import _parse_chat_history

from providers.making import PIXEL, Maker, Provider, dumped, standard

SIGNATURES = "__gemini_function_call_thought_signatures__"


def _signature(maker: Maker) -> str:
    return base64.b64encode(maker.id("sig_", 30).encode()).decode()


def _thoughts(maker: Maker) -> list[Any]:
    thought = {"type": "thinking", "thinking": maker.text(), "signature": _signature(maker)}
    return [thought] if maker.happens(0.5) else []


def _words(maker: Maker) -> dict[str, Any]:
    signed = {"extras": {"signature": _signature(maker)}} if maker.happens(0.3) else {}
    return {"type": "text", "text": maker.text(), **signed}


def _code(maker: Maker) -> list[Any]:
    if maker.happens(0.8):
        return []
    code = {"type": "executable_code", "executable_code": maker.text(), "language": "PYTHON"}
    result = {"type": "code_execution_result", "code_execution_result": maker.text(), "outcome": 1}
    return [code, result]


def make(maker: Maker) -> None:
    image = {"url": f"data:image/png;base64,{PIXEL}"}
    maker.begin({"type": "image_url", "image_url": image})
    for _ in range(maker.chance.randint(0, 4)):
        calls = [
            {"id": maker.id(), "name": "edit", "args": maker.args(), "type": "tool_call"}
            for _ in maker.some_of()
        ]
        last = {"name": "edit", "arguments": json.dumps(calls[-1]["args"])}
        signed = {calls[0]["id"]: _signature(maker)} if maker.happens(0.7) else {}
        extra = {"function_call": last, **({SIGNATURES: signed} if signed else {})}
        words = [_words(maker)] if maker.happens(0.4) else []
        blocks = [*_thoughts(maker), *_code(maker), *words]
        maker.say(_answer(blocks, tool_calls=calls, additional_kwargs=extra))
        for call in maker.shuffled(calls):
            maker.say(ToolMessage(maker.text(), tool_call_id=call["id"], name="edit"))
        maker.ask()
    maker.say(_answer([*_thoughts(maker), *_code(maker), _words(maker)]))


def _answer(blocks: list[Any], **fields: Any) -> AIMessage:
    return AIMessage(blocks, response_metadata={"model_provider": "google_genai"}, **fields)


def request(messages: Sequence[Any]) -> list[Any]:
    _, contents = _parse_chat_history(list(messages), model="gemini-3-pro-preview")
    return [content.model_dump(mode="python", exclude_none=True) for content in contents]


def refuses(contents: list[Any], whole: list[Any]) -> list[str]:
    faults: list[str] = []
    originals = {dumped(part) for content in whole for part in content["parts"]}
    waiting = 0
    previous_role = ""
    for index, content in enumerate(contents):
        role = content["role"]
        parts = content.get("parts") or []
        calls = [part for part in parts if "function_call" in part]
        results = [part for part in parts if "function_response" in part]
        if not parts:
            faults.append(f"{index}: no parts")
        if index == 0 and role != "user":
            faults.append("the first turn is no user's")
        if calls and previous_role == "model":
            faults.append(f"{index}: a function call after the model's turn")
        if len(results) != waiting:
            faults.append(f"{index}: {len(results)} results for {waiting} calls")
        if results and len(results) < len(parts):
            faults.append(f"{index}: results beside something else")
        if any(part["function_response"].get("name") != "edit" for part in results):
            faults.append(f"{index}: a result without its function's name")
        for part in parts:
            vouched = part.get("thought_signature") or part.get("thought")
            run = "executable_code" in part or "code_execution_result" in part
            if (vouched or run) and dumped(part) not in originals:
                dummy = part.get("thought_signature") == "skip_thought_signature_validator"
                if not dummy:
                    faults.append(f"{index}: a part with a signature was changed")
        waiting = len(calls)
        previous_role = role
    if waiting:
        faults.append("the last calls have no result")
    return faults


PROVIDERS = [
    Provider("Google, messages", make, request, refuses, False),
    Provider("Google, standard content", standard(make), request, refuses, False),
]
