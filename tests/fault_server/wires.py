"""The three protocols: what each refuses, and how it writes an answer, a stream, and an error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from fault_server.faults import Answer, HttpError, Usage
from stateful.oracle import anthropic_rejects, openai_rejects

Body = Mapping[str, Any]

REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
REASONS |= dict.fromkeys(("content_filter", "refusal"), "refusal")
"""Anthropic's reasons for the end of an answer."""

INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
PREFIXES = {"message": "msg", "function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs"}
REPEATED: dict[str, Any] = {"instructions": None, "max_output_tokens": None, "metadata": {}}
REPEATED |= {"parallel_tool_calls": True, "temperature": 1, "tool_choice": "auto", "top_p": 1}
"""Of a response: its reasons, prefixes of its ids, and the settings that it repeats."""


def split_words(text: str) -> list[str]:
    return re.findall(r"\S+\s*|\s+", text)


def pieces(text: str) -> list[str]:
    return [text[at : at + 16] for at in range(0, len(text), 16)]


def event(data: Any, event_type: str = "") -> bytes:
    name = f"event: {event_type}\n" if event_type else ""
    return f"{name}data: {json.dumps(data)}\n\n".encode()


class Chat:
    """Chat Completions.

    As in the other two: `content` names the field of a body with the answer, `bad_event` holds
    incomplete JSON, `refusals` finds calls without results and what else is refused.
    """

    name = "openai"
    content = "choices"
    bad_event = b'data: {"id": "chatcmpl", "choices": [{"index": 0, "delta": {"conte\n\n'

    def refusals(self, body: Body) -> Iterator[str]:
        yield from openai_rejects(body["messages"])

    def error(self, fault: HttpError, number: int) -> tuple[int, dict[str, Any]]:
        fields = {"param": fault.openai_param, "code": fault.openai_code}
        error = {"message": fault.message, "type": fault.openai_type, **fields}
        return fault.status, {"error": error}

    def error_event(self, fault: HttpError, number: int) -> bytes:
        return event(self.error(fault, number)[1])

    def whole(self, answer: Answer, body: Body, number: int, usage: Usage) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
        if answer.ends == "refusal":
            message |= {"content": None, "refusal": answer.text}
        if answer.calls:
            calls = self._calls(answer, number)
            message |= {"tool_calls": calls, "content": answer.text or None}
        body = self._frame(body, number, "chat.completion", message=message, answer=answer)
        return {**body, "usage": self._usage(usage)}

    def stream(
        self, answer: Answer, body: Body, number: int, usage: Usage, nothing: bool
    ) -> Iterator[bytes]:
        usage_asked = bool((body.get("stream_options") or {}).get("include_usage"))
        usage_field: dict[str, Any] = {"usage": None} if usage_asked else {}

        def chunk(delta: dict[str, Any], end: bool = False) -> bytes:
            object_type = "chat.completion.chunk"
            ended = answer if end else None
            return event(
                self._frame(body, number, object_type, delta=delta, answer=ended) | usage_field
            )

        if not nothing:
            yield chunk({"role": "assistant", "content": "", "refusal": None})
            field = "refusal" if answer.ends == "refusal" else "content"
            for piece in split_words(answer.text):
                yield chunk({field: piece})
            for index, call in enumerate(self._calls(answer, number)):
                function = call["function"]
                head = {**call, "index": index, "function": {**function, "arguments": ""}}
                yield chunk({"tool_calls": [head]})
                for piece in pieces(function["arguments"]):
                    part = {"index": index, "function": {"arguments": piece}}
                    yield chunk({"tool_calls": [part]})
            yield chunk({}, end=True)
        if usage_asked:
            last = self._frame(body, number, "chat.completion.chunk") | {"choices": []}
            yield event(last | {"usage": self._usage(usage)})
        yield b"data: [DONE]\n\n"

    def _calls(self, answer: Answer, number: int) -> list[dict[str, Any]]:
        calls = []
        for index, call in enumerate(answer.calls):
            function = {"name": call.name, "arguments": json.dumps(dict(call.args))}
            name = call.id or f"call_{number}_{index}"
            calls.append({"id": name, "type": "function", "function": function})
        return calls

    def _frame(
        self,
        body: Body,
        number: int,
        object_type: str,
        answer: Answer | None = None,
        **message_or_delta: Any,
    ) -> dict[str, Any]:
        reason = None if answer is None else answer.ends.replace("refusal", "stop")
        choice = {"index": 0, **message_or_delta, "finish_reason": reason, "logprobs": None}
        frame = {"id": f"chatcmpl-{number}", "object": object_type, "created": 0}
        return {**frame, "model": body.get("model", ""), "choices": [choice]}

    def _usage(self, usage: Usage) -> dict[str, int]:
        counts = {"prompt_tokens": usage.input, "completion_tokens": usage.output}
        return {**counts, "total_tokens": usage.input + usage.output}


class Messages:
    name = "anthropic"
    content = "content"
    bad_event = b'event: content_block_delta\ndata: {"type": "content_block_delta", "ind\n\n'

    def refusals(self, body: Body) -> Iterator[str]:
        yield from anthropic_rejects(body["messages"])

    def error(self, fault: HttpError, number: int) -> tuple[int, dict[str, Any]]:
        error = {"type": fault.type, "message": fault.anthropic_message or fault.message}
        body = {"type": "error", "error": error, "request_id": f"req_{number}"}
        return fault.anthropic_status or fault.status, body

    def error_event(self, fault: HttpError, number: int) -> bytes:
        return event(self.error(fault, number)[1], "error")

    def whole(self, answer: Answer, body: Body, number: int, usage: Usage) -> dict[str, Any]:
        counts = {"input_tokens": usage.input, "output_tokens": usage.output}
        ended = {"stop_reason": REASONS[answer.ends], "usage": counts}
        return {**self._frame(body, number), "content": self._blocks(answer, number), **ended}

    def stream(
        self, answer: Answer, body: Body, number: int, usage: Usage, nothing: bool
    ) -> Iterator[bytes]:
        def typed(event_type: str, **fields: Any) -> bytes:
            return event({"type": event_type, **fields}, event_type)

        begun = {"input_tokens": usage.input, "output_tokens": 1}
        yield typed("message_start", message={**self._frame(body, number), "usage": begun})
        yield typed("ping")
        for index, block in enumerate([] if nothing else self._blocks(answer, number)):
            text = block["type"] == "text"
            start = {**block, "text": ""} if text else {**block, "input": {}}
            yield typed("content_block_start", index=index, content_block=start)
            delta_type, field = (
                ("text_delta", "text") if text else ("input_json_delta", "partial_json")
            )
            for piece in split_words(block["text"]) if text else pieces(json.dumps(block["input"])):
                yield typed(
                    "content_block_delta", index=index, delta={"type": delta_type, field: piece}
                )
            yield typed("content_block_stop", index=index)
        ends = {"stop_reason": REASONS[answer.ends], "stop_sequence": None}
        counts = {"input_tokens": usage.input, "output_tokens": usage.output}
        yield typed("message_delta", delta=ends, usage=counts)
        yield typed("message_stop")

    def _blocks(self, answer: Answer, number: int) -> list[dict[str, Any]]:
        blocks: list[Any] = [{"type": "text", "text": answer.text}] if answer.text else []
        for index, call in enumerate(answer.calls):
            use = {"type": "tool_use", "id": call.id or f"toolu_{number}_{index}"}
            blocks.append({**use, "name": call.name, "input": dict(call.args)})
        return blocks

    def _frame(self, body: Body, number: int) -> dict[str, Any]:
        frame = {"id": f"msg_{number}", "type": "message", "role": "assistant", "content": []}
        model = {"model": body.get("model", "")}
        return {**frame, **model, "stop_reason": None, "stop_sequence": None}


class Responses:
    name = "responses"
    content = "output"
    bad_event = (
        b"event: response.output_text.delta\n"
        b'data: {"type": "response.output_text.delta", "delta": "conte\n\n'
    )

    def refusals(self, body: Body) -> Iterator[str]:
        if parent := body.get("previous_response_id"):
            yield f"Previous response with id '{parent}' not found."
        input_items = [] if isinstance(body["input"], str) else body["input"]
        items = [
            given_item for given_item in input_items if given_item.get("type") != "item_reference"
        ]
        waiting = dict[tuple[str, str], str]()
        item_ids = set[str]()
        for index, (item, next_item) in enumerate(zip(items, [*items[1:], {}], strict=False)):
            item_type = str(item.get("type", "message"))
            call_id = str(item.get("call_id") or "")
            next_type = str(next_item.get("type", "message"))
            spoken_type = item_type.removesuffix("_output").replace("_", " ")
            if item_type.endswith(("_call", "_call_output")) and not 0 < len(call_id) <= 64:
                yield f"Invalid 'input[{index}].call_id': empty, or longer than maximum length 64."
            if item_type == "function_call" and not item.get("name"):
                yield f"Missing required parameter: 'input[{index}].name'."
            if item_type.endswith("_call"):
                if (item_type, call_id) in waiting:
                    yield f"Duplicate {spoken_type} with call_id {call_id}."
                waiting[item_type, call_id] = spoken_type
            elif item_type.endswith("_call_output"):
                if waiting.pop((item_type.removesuffix("_output"), call_id), None) is None:
                    yield f"No tool call found for {spoken_type} output with call_id {call_id}."
            elif item_type == "reasoning" and (
                next_type.endswith("_output")
                or (next_type == "message" and next_item.get("role") != "assistant")
            ):
                yield f"Item '{item.get('id')}' was provided without its required following item."
            item_id = str(item.get("id") or "")
            prefix = PREFIXES.get(item_type, "")
            if item_id in item_ids:
                duplicate = f"Duplicate item found with id {item_id}."
                yield f"{duplicate} Remove duplicate items and try again."
            item_ids |= {item_id} if item_id else set()
            if item_id and not item_id.startswith(prefix):
                yield f"Invalid 'input[{index}].id': '{item_id}'. It begins with '{prefix}'."
            yield from self._wrong_parts(item)
        for (_, call_id), spoken_type in waiting.items():
            yield f"No tool output found for {spoken_type} {call_id}."

    def _wrong_parts(self, item: Body) -> Iterator[str]:
        content = item.get("content")
        role = item.get("role")
        is_models = role == "assistant"
        allowed = ("output_text", "refusal") if is_models else ("input_text", "input_image")
        for part in content if role and isinstance(content, list) else ():
            if part.get("type") not in (*allowed, *(() if is_models else ("input_file",))):
                yield f"Invalid value: '{part.get('type')}'. Supported values are: {allowed}."

    def error(self, fault: HttpError, number: int) -> tuple[int, dict[str, Any]]:
        status, body = Chat().error(fault, number)
        if fault.openai_code == "context_length_exceeded":  # in words that name no limit
            message = "Your input exceeds the context window of this model."
            message = f"{message} Please adjust your input and try again."
            body["error"] |= {"message": message, "param": "input"}
        return status, body

    def error_event(self, fault: HttpError, number: int) -> bytes:
        error = self.error(fault, number)[1]["error"]
        code = {"code": error["code"] or error["type"], "message": error["message"]}
        failed = self._frame({}, number) | {"status": "failed", "error": code}
        fields = {name: error[name] for name in ("code", "message", "param")}
        first = self._event(0, "error", fields)
        return first + self._event(0, "response.failed", {"response": failed})

    def whole(self, answer: Answer, body: Body, number: int, usage: Usage) -> dict[str, Any]:
        reason = INCOMPLETE.get(answer.ends)
        counts = {"input_tokens": usage.input, "output_tokens": usage.output}
        details = {"input_tokens_details": {"cached_tokens": 0}}
        details["output_tokens_details"] = {"reasoning_tokens": 0}
        return self._frame(body, number) | {
            "status": "incomplete" if reason else "completed",
            "incomplete_details": {"reason": reason} if reason else None,
            "output": self._items(answer, number),
            "usage": {**counts, **details, "total_tokens": usage.input + usage.output},
        }

    def stream(
        self, answer: Answer, body: Body, number: int, usage: Usage, nothing: bool
    ) -> Iterator[bytes]:
        last = self.whole(answer, body, number, usage) | ({"output": []} if nothing else {})
        started = {"response": self._frame(body, number)}
        events = [(f"response.{name}", started) for name in ("created", "in_progress")]
        for index, item in enumerate(last["output"]):
            events += self._item_events(item, index)
        events.append((f"response.{last['status']}", {"response": last}))
        for sequence, (event_type, fields) in enumerate(events):
            yield self._event(sequence, event_type, fields)

    def _item_events(self, item: dict[str, Any], index: int) -> list[tuple[str, dict[str, Any]]]:
        position = {"output_index": index, "item_id": item["id"]}
        inner: list[tuple[str, dict[str, Any]]] = []
        if item["type"] == "function_call":
            started = {**item, "status": "in_progress", "arguments": ""}
            event_prefix = "response.function_call_arguments"
            arguments = item["arguments"]
            inner = [
                (f"{event_prefix}.delta", {**position, "delta": piece})
                for piece in pieces(arguments)
            ]
            finished = {**position, "name": item["name"], "arguments": arguments}
            inner.append((f"{event_prefix}.done", finished))
        else:
            started = {**item, "status": "in_progress", "content": []}
            part = item["content"][0]
            field = "refusal" if part["type"] == "refusal" else "text"
            event_prefix = f"response.{'refusal' if field == 'refusal' else 'output_text'}"
            position = {**position, "content_index": 0} | (
                {"logprobs": []} if field == "text" else {}
            )
            inner = [
                ("response.content_part.added", {**position, "part": {**part, field: ""}}),
                *(
                    (f"{event_prefix}.delta", {**position, "delta": piece})
                    for piece in split_words(part[field])
                ),
                (f"{event_prefix}.done", {**position, field: part[field]}),
                ("response.content_part.done", {**position, "part": part}),
            ]
        return [
            ("response.output_item.added", {"output_index": index, "item": started}),
            *inner,
            ("response.output_item.done", {"output_index": index, "item": item}),
        ]

    def _items(self, answer: Answer, number: int) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        if answer.text or not answer.calls:
            part: dict[str, Any] = {"type": "refusal", "refusal": answer.text}
            if answer.ends != "refusal":
                part = {"type": "output_text", "text": answer.text}
                part |= {"annotations": [], "logprobs": []}
            message = {"type": "message", "id": f"msg_{number}", "role": "assistant"}
            status = "incomplete" if answer.ends in INCOMPLETE else "completed"
            items.append({**message, "status": status, "content": [part]})
        for index, call in enumerate(answer.calls):
            name = {"id": f"fc_{number}_{index}", "call_id": call.id or f"call_{number}_{index}"}
            function = {"name": call.name, "arguments": json.dumps(dict(call.args))}
            items.append({"type": "function_call", **name, **function, "status": "completed"})
        return items

    def _frame(self, body: Body, number: int) -> dict[str, Any]:
        settings = {name: body[name] for name in REPEATED if body.get(name) is not None}
        frame = {"id": f"resp_{number}", "object": "response", "created_at": 0, "output": []}
        frame |= {"status": "in_progress", "model": body.get("model", "")}
        frame |= dict.fromkeys(("error", "incomplete_details", "usage"))
        unset = dict.fromkeys(("description", "parameters", "strict"))
        tools = [{**unset, **tool} for tool in body.get("tools") or []]
        return {**frame, **REPEATED, **settings, "tools": tools}

    def _event(self, sequence: int, event_type: str, fields: Mapping[str, Any]) -> bytes:
        return event({"type": event_type, "sequence_number": sequence, **fields}, event_type)


Wire = Chat | Messages | Responses
WIRES: dict[str, Wire] = {
    "/v1/chat/completions": Chat(),
    "/v1/responses": Responses(),
    "/v1/messages": Messages(),
}
