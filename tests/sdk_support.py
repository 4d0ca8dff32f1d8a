"""What the loops of other SDKs talk to, and what they must have kept."""

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from anthropic import Anthropic
from openai import OpenAI

from conspectus import Archive
from conspectus.archive import Scope
from conspectus_sdk.fitting import plain
from fault_server import Answer, FaultServer, Request, ToolCall

WINDOW = 4_000
WINDOWS = 10
RESULT = "".join(f"line {n} of the module says what it does. " for n in range(50))
PROMPT = "You are a careful coding agent. Look before you answer."
PARAMETERS = {
    "type": "object",
    "properties": {"n": {"type": "integer", "description": "Which module."}},
    "required": ["n"],
}
OPENAI_TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Read a module.", "parameters": PARAMETERS},
}
ANTHROPIC_TOOL = {"name": "look", "description": "Read a module.", "input_schema": PARAMETERS}
RESPONSES_TOOL = {
    "type": "function", "name": "look", "description": "Read a module.", "parameters": PARAMETERS,
    "strict": False,
}  # fmt: skip


def question_of(turn: int) -> str:
    return f"Look at module_{turn}.py: is it sound?"


def module_text(turn: int) -> str:
    return f"module_{turn}.py: {RESULT}"


def script(request: Request) -> Answer:
    """A model that looks once at each question, and then answers."""
    last = request.messages[-1]
    content = last.get("content")
    blocks = content if isinstance(content, list) else [last]
    results = ("tool_result", "function_call_output")
    if last.get("role") == "tool" or any(block.get("type") in results for block in blocks):
        return Answer(f"It is sound, says request {request.number}.")
    return Answer("I look.", calls=(ToolCall("look", {"n": request.number}),))


def size(messages: Sequence[Any]) -> int:
    """Tokens as the servers here count them: one for four characters."""
    return len(json.dumps(messages, ensure_ascii=False)) // 4


def check_kept(archive: Archive, scope: Scope, history: Sequence[Any], sent: Sequence[Any]) -> None:
    """All of a history is in view or archived, each message as it was."""
    rows = archive.export(scope)
    kept_or_sent = [row["message"] for row in rows] + [plain(sent_message) for sent_message in sent]
    assert len(rows) > len(history) / 2
    assert len({row["cite"] for row in rows}) == len(rows)  # each can be recalled by its own name
    for message in history:
        assert plain(message) in kept_or_sent


def check_requests(server: FaultServer) -> None:
    """No request was over the window, and none had torn calls."""
    assert server.requests
    assert server.too_long == []
    assert server.invalid == []
    assert max(request.tokens for request in server.requests) <= WINDOW


MARK = {"cache_control": {"type": "ephemeral"}}


class Chat:
    """A loop around OpenAI's chat completions."""

    model = "gpt-4o"
    fit_arguments: ClassVar[dict[str, Any]] = {"tools": [OPENAI_TOOL]}

    def __init__(self, server: Any) -> None:
        self.client = OpenAI(base_url=server.openai_url, api_key="k", max_retries=0)
        self.history: list[Any] = [{"role": "system", "content": PROMPT}]

    def ask(self, text: str) -> None:
        self.history.append({"role": "user", "content": text})

    def answer(self, sent: list[Any]) -> list[str]:
        """Ask the provider; return the ids of the calls that it makes."""
        answer = self.client.chat.completions.create(
            model=self.model, messages=sent, tools=[OPENAI_TOOL]
        )
        message = answer.choices[0].message.model_dump(exclude_none=True)
        self.history.append(message)
        return [call["id"] for call in message.get("tool_calls", ())]

    def add_results(self, calls: list[str], text: str) -> None:
        self.history += [
            {"role": "tool", "tool_call_id": call_id, "content": text} for call_id in calls
        ]


class Responses(Chat):
    """A loop around OpenAI's Responses, whose items are sent whole each time."""

    fit_arguments: ClassVar = {"system": PROMPT, "tools": [RESPONSES_TOOL]}

    def __init__(self, server: Any) -> None:
        super().__init__(server)
        self.history = []

    def answer(self, sent: list[Any]) -> list[str]:
        answer = self.client.responses.create(
            model=self.model, instructions=PROMPT, input=sent, tools=[RESPONSES_TOOL], store=False
        )
        self.history.extend(item.model_dump(exclude_none=True) for item in answer.output)
        return [item.call_id for item in answer.output if item.type == "function_call"]

    def add_results(self, calls: list[str], text: str) -> None:
        item_type = "function_call_output"
        self.history += [
            {"type": item_type, "call_id": call_id, "output": text} for call_id in calls
        ]


class Messages(Chat):
    """A loop around Anthropic's messages, whose newest one bears the mark for the cache."""

    model = "claude-next"
    system: ClassVar = [{"type": "text", "text": PROMPT, **MARK}]
    fit_arguments: ClassVar = {"system": system, "tools": [ANTHROPIC_TOOL], "answer_tokens": 200}

    def __init__(self, server: Any) -> None:
        self.anthropic = Anthropic(base_url=server.anthropic_url, api_key="k", max_retries=0)
        self.history = []

    def ask(self, text: str) -> None:
        for message in self.history:
            for block in message["content"]:
                block.pop("cache_control", None)
        self.history.append({"role": "user", "content": [{"type": "text", "text": text, **MARK}]})

    def answer(self, sent: list[Any]) -> list[str]:
        with self.anthropic.messages.stream(
            model=self.model, max_tokens=200, system=self.system, messages=sent,
            tools=[ANTHROPIC_TOOL],
        ) as stream:  # fmt: skip
            content = stream.get_final_message().model_dump(exclude_none=True)["content"]
        self.history.append({"role": "assistant", "content": content})
        return [block["id"] for block in content if block["type"] == "tool_use"]

    def add_results(self, calls: list[str], text: str) -> None:
        block_type = "tool_result"
        blocks = [
            {"type": block_type, "tool_use_id": call_id, "content": text} for call_id in calls
        ]
        self.history.append({"role": "user", "content": blocks})
