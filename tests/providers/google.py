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
    return [thought] if maker.often(0.5) else []


def _words(maker: Maker) -> dict[str, Any]:
    signed = {"extras": {"signature": _signature(maker)}} if maker.often(0.3) else {}
    return {"type": "text", "text": maker.text(), **signed}


def _code(maker: Maker) -> list[Any]:
    if maker.often(0.8):
        return []
    code = {"type": "executable_code", "executable_code": maker.text(), "language": "PYTHON"}
    told = {"type": "code_execution_result", "code_execution_result": maker.text(), "outcome": 1}
    return [code, told]


def make(maker: Maker) -> None:
    image = {"url": f"data:image/png;base64,{PIXEL}"}
    maker.begin({"type": "image_url", "image_url": image})
    for _ in range(maker.chance.randint(0, 4)):
        calls = [
            {"id": maker.id(), "name": "edit", "args": maker.args(), "type": "tool_call"}
            for _ in maker.few()
        ]
        last = {"name": "edit", "arguments": json.dumps(calls[-1]["args"])}
        signed = {calls[0]["id"]: _signature(maker)} if maker.often(0.7) else {}
        extra = {"function_call": last, **({SIGNATURES: signed} if signed else {})}
        words = [_words(maker)] if maker.often(0.4) else []
        blocks = [*_thoughts(maker), *_code(maker), *words]
        maker.say(_answer(blocks, tool_calls=calls, additional_kwargs=extra))
        for call in maker.mixed(calls):
            maker.say(ToolMessage(maker.text(), tool_call_id=call["id"], name="edit"))
        maker.ask()
    maker.say(_answer([*_thoughts(maker), *_code(maker), _words(maker)]))


def _answer(blocks: list[Any], **more: Any) -> AIMessage:
    return AIMessage(blocks, response_metadata={"model_provider": "google_genai"}, **more)


def request(messages: Sequence[Any]) -> list[Any]:
    _, contents = _parse_chat_history(list(messages), model="gemini-3-pro-preview")
    return [content.model_dump(mode="python", exclude_none=True) for content in contents]


def refuses(contents: list[Any], whole: list[Any]) -> list[str]:
    wrong: list[str] = []
    originals = {dumped(part) for content in whole for part in content["parts"]}
    waiting = 0
    before = ""
    for place, content in enumerate(contents):
        role = content["role"]
        parts = content.get("parts") or []
        calls = [part for part in parts if "function_call" in part]
        results = [part for part in parts if "function_response" in part]
        if not parts:
            wrong.append(f"{place}: no parts")
        if place == 0 and role != "user":
            wrong.append("the first turn is no user's")
        if calls and before == "model":
            wrong.append(f"{place}: a function call after the model's turn")
        if len(results) != waiting:
            wrong.append(f"{place}: {len(results)} results for {waiting} calls")
        if results and len(results) < len(parts):
            wrong.append(f"{place}: results beside something else")
        if any(part["function_response"].get("name") != "edit" for part in results):
            wrong.append(f"{place}: a result without its function's name")
        for part in parts:
            vouched = part.get("thought_signature") or part.get("thought")
            run = "executable_code" in part or "code_execution_result" in part
            if (vouched or run) and dumped(part) not in originals:
                dummy = part.get("thought_signature") == "skip_thought_signature_validator"
                if not dummy:
                    wrong.append(f"{place}: a part with a signature was changed")
        waiting = len(calls)
        before = role
    if waiting:
        wrong.append("the last calls have no result")
    return wrong


PROVIDERS = [
    Provider("Google, messages", make, request, refuses, False),
    Provider("Google, standard content", standard(make), request, refuses, False),
]
