"""Answer clients that ask for a compaction by signed items, and hold histories left to a server."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conspectus._newest import Newest
from conspectus.archive import Archive
from conspectus.core.records import Cost
from conspectus.messages.blocks import at_path
from conspectus_serve.protocols import COMPACT, Refusal
from conspectus_serve.threads import scope_of

MARK = "conspectus.v1."  # before the content of our items; a provider's own begins otherwise
CONTENT = "encrypted_content"  # the field that clients send back untouched, in both protocols
TRIGGER = {"type": "compaction_trigger"}  # the item with which Codex asks, as the last one

EDIT, EDIT_FROM = "compact_20260112", 150_000
"""Anthropic's compaction edit, and the default input tokens from which it acts
(`BetaCompact20260112EditParam`).
"""

NOT_OURS = (
    "this endpoint has signed no such compaction item for this key; leave it out, or send the "
    "history that it stands for"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for beside an answer."""

    body: dict[str, Any]  # the rest of the request, for the upstream
    at: int | None = None  # tokens from which to compact; None where the endpoint decides
    alone: bool = False  # the compaction is all of the answer
    focus: str = ""  # instructions for the compaction


def asked_of(name: str, body: dict[str, Any]) -> Asked:
    """Read the compaction that a request asks for, by the name of its route."""
    if name == COMPACT:
        return Asked(body, 0, True)
    items = body.get("input")
    if name == "responses" and isinstance(items, list) and items[-1:] == [TRIGGER]:
        return Asked({**body, "input": items[:-1]}, 0, True)
    if not name.startswith("messages"):
        return Asked(body)
    wanted, management = body.get("compaction"), body.get("context_management")
    if isinstance(wanted, Mapping) and wanted.get("type") == "summarize":
        rest = {key: value for key, value in body.items() if key != "compaction"}
        return Asked(rest, 0, name == "messages", str(wanted.get("instructions") or ""))
    edits = management.get("edits") if isinstance(management, Mapping) else None
    listed = [one for one in edits if isinstance(one, Mapping)] if isinstance(edits, list) else []
    ours = [one for one in listed if one.get("type") == EDIT]
    if not ours:
        return Asked(body)
    rest = {key: value for key, value in body.items() if key != "context_management"}
    if others := [one for one in listed if one not in ours]:
        rest["context_management"] = {**body["context_management"], "edits": others}
    value = at_path(ours[-1], "trigger.value")
    at = value if isinstance(value, int) and not isinstance(value, bool) else EDIT_FROM
    pauses = ours[-1].get("pause_after_compaction") is True and name == "messages"
    return Asked(rest, max(0, at), pauses, str(ours[-1].get("instructions") or ""))


class Items:
    """Write and read compaction items: a thread, and the messages in place of the compacted ones.

    Of the keys the first one signs; all of them verify.

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
        text = json.dumps({"thread": thread, "view": list(view)}, separators=(",", ":"))
        return f"{MARK}{_signature(self._keys[0], tenant, text)}.{text}"

    def read(self, tenant: str, content: str) -> tuple[str, list[Any]]:
        """Return the thread and the view of an item; a Refusal if no key of ours signed it."""
        signature, _, text = content.removeprefix(MARK).partition(".")
        signed = signature.encode("utf-8", "surrogatepass")
        right = [_signature(key, tenant, text).encode() for key in self._keys]
        if not any(hmac.compare_digest(one, signed) for one in right):
            raise Refusal(400, NOT_OURS, "invalid_compaction_item")
        data = json.loads(text)
        return data["thread"], data["view"]

    def expanded(self, tenant: str, history: Sequence[Any]) -> tuple[list[Any], str]:
        """Put the views of our items in their place; return the history and their thread."""
        made, thread = list[Any](), ""
        for message in history:
            if (content := _ours(message)) is not None:
                thread, view = self.read(tenant, content)
                # The view holds some messages before it once more.
                made = [*(one for one in made if one not in view), *view]
                continue
            blocks = message.get("content") if isinstance(message, Mapping) else None
            blocks = blocks if isinstance(blocks, list) else []
            places = [place for place, block in enumerate(blocks) if _ours(block) is not None]
            if places:  # all before the block stands in it
                thread, made = self.read(tenant, blocks[places[-1]][CONTENT])
                message = {**message, "content": blocks[places[-1] + 1 :]}
            if not places or message["content"]:
                made.append(message)
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
    name: str, model: str, content: str, notes: str, cost: Cost, *, stream: bool
) -> bytes:
    """Write an answer that is one signed item, with notes for people, as its route has it."""
    item: dict[str, Any] = {"type": "compaction", CONTENT: content}
    if name == "messages":
        item["content"] = notes or "Nothing was left out."
        whole, events = _message(model, item, cost)
    else:
        item["id"] = f"cmp_{secrets.token_hex(12)}"
        kind = "response.compaction" if name == COMPACT else "response"
        whole, events = _response(kind, model, item, cost)
    if not stream:
        return json.dumps(whole).encode()
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)


Written = tuple[dict[str, Any], list[dict[str, Any]]]
"""An answer as a whole, and as the events of a stream."""


def _message(model: str, item: dict[str, Any], cost: Cost) -> Written:
    usage = {"input_tokens": cost.input_tokens, "output_tokens": cost.output_tokens}
    ends = {"stop_reason": "compaction", "stop_sequence": None}
    whole: dict[str, Any] = {"id": f"msg_{secrets.token_hex(12)}", "type": "message"}
    whole |= {"role": "assistant", "model": model, "content": [item], **ends, "usage": usage}
    block: dict[str, Any] = {"type": "compaction", "content": None}
    return whole, [
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": {**item, "type": "compaction_delta"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ends, "usage": usage},
        {"type": "message_stop"},
    ]


def _response(kind: str, model: str, item: dict[str, Any], cost: Cost) -> Written:
    usage = {
        "input_tokens": cost.input_tokens,
        "input_tokens_details": {"cached_tokens": cost.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": cost.output_tokens,
        "output_tokens_details": {"reasoning_tokens": cost.reasoning_tokens},
        "total_tokens": cost.tokens,
    }
    whole: dict[str, Any] = {"id": f"resp_{secrets.token_hex(16)}", "object": kind, "model": model}
    whole |= {"created_at": int(time.time()), "status": "completed", "output": [item]}
    whole |= {"usage": usage, "tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    at = {"output_index": 0, "item": item}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", **at},
        {"type": "response.output_item.done", **at},
        {"type": "response.completed", "response": whole},
    ]
    return whole, [{**one, "sequence_number": number} for number, one in enumerate(events)]


RUN = 64  # most responses that one of them names; the first of these names the one before it

Held = tuple[str, list[str], list[Any]]
Known = Newest[tuple[str, str], Held]
"""A thread, the ids of its responses, and their items; by tenant and the last response."""


def held_until(archive: Archive, tenant: str, response: str, known: Known) -> Held | None:
    """Return a history that a client leaves to the server, up to a response; None if it is unknown.

    The items of each response are kept in the namespace of their thread, so that all of them can be
    compacted and any upstream can answer. Returns thread, ids of the responses so far, and items.
    """
    slip = archive.notes(tenant, "response", [response]).get(response, {})
    thread, ids, name = str(slip.get("thread")), list[str](), response
    scope = scope_of(tenant, thread)
    if slip and (held := known.get((tenant, response))) is not None:
        return held
    while name and name not in ids:  # an upstream may give one id twice
        row = archive.notes(scope, "response", [name]).get(name)
        if row is None:
            return None
        name, ids = row["before"], [*row["ids"], *ids]
    rows = archive.notes(scope, "response", ids)
    if not rows.keys() >= set(ids):  # expired or forgotten: the rest is not the whole history
        return None
    return thread, ids, [item for one in dict.fromkeys(ids) for item in rows[one]["items"]]


def hold(
    archive: Archive, tenant: str, thread: str, response: str, ids: Sequence[str], items: list[Any]
) -> None:
    """Keep the new items of a response behind those of others. Raises ArchiveError."""
    start = len(ids) - len(ids) % RUN
    before = ids[start - 1] if start else ""
    row = {"ids": [*ids[start:], response], "before": before, "items": items}
    archive.note(scope_of(tenant, thread), "response", {response: row})
    slip = {response: {"thread": thread}}
    archive.note(tenant, "response", slip, durable=True)  # and the row before it
