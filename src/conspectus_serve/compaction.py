"""Answer clients that ask for a compaction: what they ask, and the signed items that they get."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conspectus.core.records import Cost
from conspectus.errors import InputError
from conspectus_serve.answers import answers_of
from conspectus_serve.protocols import COMPACT

MARK = "conspectus.v1."
"""Prefix of the content of our items; a provider's own begins otherwise."""

CONTENT = "encrypted_content"
"""The field that clients send back untouched, in both protocols."""

TRIGGER = {"type": "compaction_trigger"}
"""The item with which Codex asks for a compaction, as the last of its input."""

EDIT, EDIT_FROM = "compact_20260112", 150_000
"""Anthropic's compaction edit, and the default input tokens from which it acts
(`BetaCompact20260112EditParam`).
"""

UNSET: dict[str, Any] = {
    "background": False,
    "frequency_penalty": 0,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0,
    "service_tier": "default",
    "store": True,
    "temperature": 1,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1,
    "truncation": "disabled",
} | dict.fromkeys(
    "instructions max_output_tokens max_tool_calls previous_response_id prompt_cache_key reasoning"
    " safety_identifier".split()
)
"""Fields of a request that each response repeats, with their defaults (`ResponseResource` of Open
Responses)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for beside an answer.

    Attributes:
        body: the rest of the request, for the upstream.
        at: tokens from which to compact; 0 for now, None where the endpoint decides.
        alone: the compaction is all of the answer.
        focus: instructions for the compaction.
    """

    body: dict[str, Any]
    at: int | None = None
    alone: bool = False
    focus: str = ""


def asked_of(name: str, body: dict[str, Any]) -> Asked:
    """Read the compaction that a request asks for, by the name of its route.

    Raises:
        InputError: a trigger is misplaced, or a compaction is asked for without a model.
    """
    asked = _asked(name, body)
    if asked.alone and not (isinstance(body.get("model"), str) and body["model"]):
        raise InputError("model is missing; name the model for which the history is compacted")
    return asked


def _asked(name: str, body: dict[str, Any]) -> Asked:
    if name == COMPACT:
        return Asked(body, 0, True)
    items = body.get("input")
    if name == "responses" and isinstance(items, list) and TRIGGER in items:
        if items.index(TRIGGER) != len(items) - 1:
            raise InputError("a compaction_trigger must be the last item of the input, once")
        return Asked({**body, "input": items[:-1]}, 0, True)
    if not name.startswith("messages"):
        return Asked(body)
    wanted = body.get("compaction")
    if isinstance(wanted, Mapping) and wanted.get("type") == "summarize":
        rest = {key: value for key, value in body.items() if key != "compaction"}
        return Asked(rest, 0, True, str(wanted.get("instructions") or ""))
    management = body.get("context_management")
    edits = management.get("edits") if isinstance(management, Mapping) else None
    ours = [one for one in edits or () if isinstance(one, Mapping) and one.get("type") == EDIT]
    if not ours or not isinstance(management, Mapping) or not isinstance(edits, list):
        return Asked(body)
    rest = {key: value for key, value in body.items() if key != "context_management"}
    if others := [one for one in edits if one not in ours]:
        rest["context_management"] = {**management, "edits": others}
    trigger = ours[-1].get("trigger")
    value = trigger.get("value") if isinstance(trigger, Mapping) else None
    at = value if isinstance(value, int) and not isinstance(value, bool) else EDIT_FROM
    pauses = ours[-1].get("pause_after_compaction") is True
    return Asked(rest, max(0, at), pauses, str(ours[-1].get("instructions") or ""))


class BadItem(InputError):
    """A compaction item has our prefix and no valid signature."""


class Items:
    """Write and read compaction items.

    An item holds its thread, and a view: the messages in place of the compacted ones.

    Args:
        keys: the first one signs; all of them verify.

    Example:
        >>> items = Items(["key-one"])
        >>> text = items.written("tenant", "t-1", [{"role": "user", "content": "Notes."}])
        >>> items.read("tenant", text)
        ('t-1', [{'role': 'user', 'content': 'Notes.'}])
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = [key.encode() for key in keys]

    def written(self, tenant: str, thread: str, view: Sequence[Any]) -> str:
        """Return the content of an item, which only its tenant can bring back."""
        data = {"thread": thread, "view": list(view)}
        text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
        return f"{MARK}{_signature(self._keys[0], tenant, text)}.{text}"

    def read(self, tenant: str, content: str) -> tuple[str, list[Any]]:
        """Verify an item, and return its thread and its view.

        Raises:
            BadItem: no key of the operator has signed it for this tenant.
        """
        signature, _, text = content.removeprefix(MARK).partition(".")
        given = signature.encode("utf-8", "surrogatepass")
        right = [_signature(key, tenant, text).encode() for key in self._keys]
        if not any(hmac.compare_digest(one, given) for one in right):
            raise BadItem(
                "a compaction item is not one that this endpoint has signed for this key: it was "
                "changed, belongs to another key, or its signing key is gone; leave it out, or "
                "send the history that it stands for"
            )
        data = json.loads(text)
        return data["thread"], data["view"]

    def expanded(self, tenant: str, history: Sequence[Any]) -> tuple[list[Any], str]:
        """Put the views of our items in their place, and return the history and their thread.

        Raises:
            BadItem: see `read`.
        """
        made: list[Any] = []
        thread = ""
        for message in history:
            if (content := _ours(message)) is not None:
                thread, view = self.read(tenant, content)
                # The view holds some messages before it once more.
                made = [*(one for one in made if one not in view), *view]
                continue
            blocks = message.get("content") if isinstance(message, Mapping) else None
            blocks = blocks if isinstance(blocks, list) else []
            ours = [place for place, block in enumerate(blocks) if _ours(block) is not None]
            if not ours:
                made.append(message)
                continue
            thread, made = self.read(tenant, blocks[ours[-1]][CONTENT])  # all before is behind it
            if rest := blocks[ours[-1] + 1 :]:
                made.append({**message, "content": rest})
        return made, thread


def _ours(block: Any) -> str | None:
    if not isinstance(block, Mapping) or block.get("type") != "compaction":
        return None
    content = block.get(CONTENT)
    return content if isinstance(content, str) and content.startswith(MARK) else None


def _signature(key: bytes, tenant: str, text: str) -> str:
    # JSON can hold lone surrogates.
    data = tenant.encode() + b"\0" + text.encode("utf-8", "surrogatepass")
    return hmac.new(key, data, hashlib.sha256).hexdigest()


def answer_of(
    name: str, asked: Mapping[str, Any], item: str, notes: str, cost: Cost, *, stream: bool
) -> bytes:
    """Write an answer that is one compaction item, in the protocol of its route.

    Args:
        name: of the route.
        asked: the body of the request.
        item: its content, signed.
        notes: for people.
        cost: of the model that wrote them.
        stream: write events.
    """
    whole = _whole(name, asked, item, notes, cost)
    protocol = "messages" if name == "messages" else "responses"
    return answers_of(protocol).events(whole) if stream else json.dumps(whole).encode()


def _whole(
    name: str, asked: Mapping[str, Any], content: str, notes: str, cost: Cost
) -> dict[str, Any]:
    usage: dict[str, Any] = {
        "input_tokens": cost.input_tokens,
        "output_tokens": cost.output_tokens,
    }
    block = {"type": "compaction", CONTENT: content}
    if name == "messages":
        return {
            "id": f"msg_{secrets.token_hex(12)}",
            "type": "message",
            "role": "assistant",
            "model": asked["model"],
            "content": [{**block, "content": notes or "Nothing was left out."}],
            "stop_reason": "compaction",
            "stop_sequence": None,
            "usage": usage,
        }
    now = int(time.time())
    usage |= {
        "input_tokens_details": {"cached_tokens": cost.cached_tokens, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": cost.reasoning_tokens},
        "total_tokens": cost.tokens,
    }
    made = {
        "id": f"resp_{secrets.token_hex(16)}",
        "object": "response.compaction" if name == COMPACT else "response",
        "created_at": now,
        "model": asked["model"],
        "output": [{"id": f"cmp_{secrets.token_hex(12)}", **block}],
        "usage": usage,
    }
    if name == COMPACT:
        return made
    repeated = {key: asked[key] for key in UNSET if isinstance(asked.get(key), (str, int, float))}
    ended = {"completed_at": now, "status": "completed", "error": None, "incomplete_details": None}
    return {**made, **ended, **UNSET, **repeated}
