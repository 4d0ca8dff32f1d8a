"""Write answers that are a compaction and nothing else."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from typing import Any

from conspectus.core.records import Cost
from conspectus_serve.answers.messages import MessagesAnswers
from conspectus_serve.answers.responses import ResponsesAnswers
from conspectus_serve.asked import COMPACT
from conspectus_serve.items import CONTENT

SETTINGS: dict[str, Any] = {
    "background": False,
    "frequency_penalty": 0,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": None,
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1,
    "truncation": "disabled",
}
"""Fields of a request that each response repeats, with their defaults (`ResponseResource` of Open
Responses).
"""


def compacted(
    name: str, asked: Mapping[str, Any], content: str, notes: str, cost: Cost, stream: bool
) -> bytes:
    """Write an answer that is one compaction item, in the protocol of its route.

    Args:
        name: of the request's route.
        asked: the body of the request.
        content: of the item, signed.
        notes: its notes, for people.
        cost: of the model that wrote them.
        stream: write events.
    """
    if name == "messages":
        return _message(asked["model"], content, notes, cost, stream)
    item = {"id": f"cmp_{secrets.token_hex(12)}", "type": "compaction", CONTENT: content}
    usage = {
        "input_tokens": cost.input_tokens,
        "input_tokens_details": {"cached_tokens": cost.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": cost.output_tokens,
        "output_tokens_details": {"reasoning_tokens": cost.reasoning_tokens},
        "total_tokens": cost.tokens,
    }
    response, now = f"resp_{secrets.token_hex(16)}", int(time.time())
    if name == COMPACT:
        frame = {"id": response, "object": "response.compaction", "created_at": now}
        made = {**frame, "model": asked["model"], "output": [item], "usage": usage}
        return json.dumps(made).encode()
    begun = {
        "id": response,
        "object": "response",
        "created_at": now,
        "completed_at": None,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "model": asked["model"],
        "output": [],
        "usage": None,
        **SETTINGS,
        **{key: asked[key] for key in SETTINGS if isinstance(asked.get(key), (str, int, float))},
    }
    done = {"status": "completed", "completed_at": now, "output": [item], "usage": usage}
    whole = {**begun, **done}
    return b"".join(ResponsesAnswers().events(whole)) if stream else json.dumps(whole).encode()


def block_of(content: str, notes: str) -> dict[str, Any]:
    """Write a compaction block of Anthropic's messages."""
    return {"type": "compaction", "content": notes or "Nothing was left out.", CONTENT: content}


def iteration_of(cost: Cost) -> dict[str, Any]:
    """Write the usage of a compaction, as Anthropic's messages list it."""
    return {
        "type": "compaction",
        "input_tokens": cost.input_tokens,
        "output_tokens": cost.output_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cost.cached_tokens,
    }


def _message(model: str, content: str, notes: str, cost: Cost, stream: bool) -> bytes:
    block = block_of(content, notes)
    usage = {"input_tokens": cost.input_tokens, "output_tokens": cost.output_tokens}
    begun: dict[str, Any] = {
        "id": f"msg_{secrets.token_hex(12)}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 0},
    }
    ends = {"content": [block], "stop_reason": "compaction", "usage": usage}
    whole = {**begun, **ends}
    return b"".join(MessagesAnswers().events(whole)) if stream else json.dumps(whole).encode()
