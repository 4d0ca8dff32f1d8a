"""Hold histories that clients leave to the server, behind a response or a compaction item.

Their messages are kept in the namespace of their thread, so that they can be compacted, and any
upstream can answer.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conspectus._bounded_cache import BoundedCache
from conspectus.archive import Archive
from conspectus.core.records import Cost
from conspectus_serve.protocols import COMPACT, Refusal
from conspectus_serve.threads import scope_of

MARK = "conspectus.v1."  # before the name in an item of ours; a provider's own begins otherwise
CONTENT = "encrypted_content"  # the field of an item that clients send back untouched
TRIGGER = {"type": "compaction_trigger"}  # the item with which Codex asks, as the last one

RUN = 64  # most names that one row has; the first of these has the name before it
REMEMBERED = 16  # histories that are remembered, beside the archive

HELD_FOR = 30 * 86_400  # seconds for which providers keep a response
DELETED = " deleted"  # the note of a thread with the names of deleted responses
DELETED_NAMES = 4_096  # names of them that a process remembers

NOT_HELD = (
    "this endpoint holds no such compaction item for this key; leave it out, or send the history "
    "that it stands for"
)


@dataclass(frozen=True, slots=True)
class Held:
    """A history that is held: its thread, the names of its parts, and their messages."""

    thread: str = ""
    names: list[str] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)


class HeldHistories:
    """Keep parts of histories, and find a history by the name of its last part."""

    def __init__(self, archive: Archive) -> None:
        self._archive, self._newest = archive, BoundedCache[tuple[str, str], Held](REMEMBERED)
        self._deleted = BoundedCache[tuple[str, str], bool](DELETED_NAMES)

    def find(self, tenant: str, name: str) -> Held | None:
        """Return the history up to a response, or behind an item; None if it is not all held.

        As at its provider, nothing is held behind a response that was deleted or has expired.
        """
        slip = self._archive.notes(tenant, "response", [name]).get(name)
        if slip is None or slip.get("at", 0.0) + HELD_FOR < time.time():
            return None
        thread, names, before = slip["thread"], list[str](), name
        scope = scope_of(tenant, thread)
        held = self._newest.get((tenant, name))
        if held is not None:
            known = self._archive.notes(scope, "response", [name, DELETED])
            gone = known.get(DELETED, {}).get("names", ())  # by any process
            if name not in known:
                return None  # its thread was forgotten
            if set(gone).isdisjoint(held.names):
                return held
        while before and before not in names:  # an upstream may give one id twice
            row = self._archive.notes(scope, "response", [before]).get(before)
            if row is None or not _is_whole(row):
                return None
            before, names = row["before"], [*row["ids"], *names]
        rows = self._archive.notes(scope, "response", names)
        if not (rows.keys() >= set(names) and all(map(_is_whole, rows.values()))):
            return None  # expired or forgotten: the rest is not the whole history
        if any(self._deleted.get((tenant, one)) for one in names):
            return None
        messages = [one for name in dict.fromkeys(names) for one in rows[name]["items"]]
        return Held(thread, names, messages)

    def keep(
        self, tenant: str, held: Held, name: str, new: Sequence[Any], *, pending: bool = False
    ) -> None:
        """Keep new messages under a name, behind those that are held. Raises ArchiveError.

        Of a response that is `pending`, the output is not there yet; see `complete`.
        """
        start = len(held.names) - len(held.names) % RUN
        names, before = [*held.names, name], held.names[start - 1] if start else ""
        row = {"ids": names[start:], "before": before, "items": [*new], "pending": pending}
        self._archive.note(scope_of(tenant, held.thread), "response", {name: row})
        slip = {name: {"thread": held.thread, "at": time.time()}}
        self._archive.note(tenant, "response", slip, durable=True)  # and the row before it
        self._deleted.drop((tenant, name))
        if not pending:
            self._newest.put((tenant, name), Held(held.thread, names, [*held.messages, *new]))

    def is_pending(self, tenant: str, name: str) -> bool:
        """Return whether a response is held whose output is not there yet."""
        return self._row(tenant, name).get("pending") is True

    def complete(self, tenant: str, name: str, output: Sequence[Any]) -> None:
        """Keep the output of a response that was pending. Raises ArchiveError."""
        row = self._row(tenant, name)
        if row.get("pending") is True:
            whole = {**row, "items": [*row["items"], *output], "pending": False}
            self._archive.note(row["scope"], "response", {name: _stored(whole)}, durable=True)

    def delete(self, tenant: str, name: str) -> None:
        """Drop a response, so that nothing is held behind it. Raises ArchiveError.

        Where the archive fails, this process at least holds it no more.
        """
        self._deleted.put((tenant, name), True)
        for held in self._newest.values():
            if name in held.names:
                self._newest.drop((tenant, held.names[-1]))
        if not (row := self._row(tenant, name)):
            return
        scope = row["scope"]
        gone = self._archive.notes(scope, "response", [DELETED]).get(DELETED, {}).get("names", [])
        rows = {name: {}, DELETED: {"names": [*gone, name]}}
        self._archive.note(scope, "response", rows, durable=True)

    def _row(self, tenant: str, name: str) -> dict[str, Any]:
        """Return what is kept under a name, with its scope; empty for nothing."""
        slip = self._archive.notes(tenant, "response", [name]).get(name)
        if slip is None:
            return {}
        scope = scope_of(tenant, slip["thread"])
        row = self._archive.notes(scope, "response", [name]).get(name)
        return {**row, "scope": scope} if row else {}

    def expanded(self, tenant: str, history: Sequence[Any]) -> tuple[list[Any], str]:
        """Put the messages behind our items in their place; return the history and its thread.

        Raises Refusal for an item that is not held, which may be another tenant's.
        """
        named = [
            (at, name) for at, one in enumerate(history) if (name := _name_of(one)) is not None
        ]
        if not named:
            return [*history], ""
        at, name = named[-1]  # the earlier ones stand in it
        held = self.find(tenant, name) if name.isascii() and name.startswith("cmp_") else None
        if held is None:
            raise Refusal(400, NOT_HELD, "invalid_compaction_item")
        # Some messages before the item are held once more; Codex gives its own new ids.
        said = [_said(one) for one in held.messages]
        before = (one for one in history[:at] if _name_of(one) is None)
        made = [one for one in before if _said(one) not in said]
        return [*made, *held.messages, *history[at + 1 :]], held.thread


def _is_whole(row: Mapping[str, Any]) -> bool:
    """Return whether a response has its output, and was not deleted."""
    return "items" in row and row.get("pending") is not True


def _stored(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in row.items() if name != "scope"}


def _said(item: Any) -> Any:
    """Return who says what in a message; anything else as it is."""
    is_message = isinstance(item, Mapping) and "role" in item
    return (item["role"], item.get("content")) if is_message else item


def _name_of(item: Any) -> str | None:
    """Return the name in a compaction item of ours; None for anything else."""
    if not isinstance(item, Mapping) or item.get("type") != "compaction":
        return None
    before, mark, name = str(item.get(CONTENT)).partition(MARK)
    return name if mark and not before else None


def asked_of(name: str, body: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the body of a request without its trigger, and whether it asks for a compaction.

    `name` is that of its route.
    """
    items = body.get("input")
    if name == "responses" and isinstance(items, list) and items[-1:] == [TRIGGER]:
        return {**body, "input": items[:-1]}, True
    return body, name == COMPACT


def answer_of(route: str, model: str, name: str, cost: Cost, *, stream: bool) -> bytes:
    """Write an answer that is one compaction item with a name, as its route has it."""
    item = {"type": "compaction", "id": name, CONTENT: MARK + name}
    usage = {
        "input_tokens": cost.input_tokens,
        "input_tokens_details": {"cached_tokens": cost.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": cost.output_tokens,
        "output_tokens_details": {"reasoning_tokens": cost.reasoning_tokens},
        "total_tokens": cost.tokens,
    }
    kind = "response.compaction" if route == COMPACT else "response"
    whole: dict[str, Any] = {"id": f"resp_{secrets.token_hex(16)}", "object": kind, "model": model}
    whole |= {"created_at": int(time.time()), "status": "completed", "output": [item]}
    whole |= {"usage": usage, "tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
    if not stream:
        return json.dumps(whole).encode()
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    return b"".join(
        f"event: {one['type']}\ndata: {json.dumps({**one, 'sequence_number': number})}\n\n".encode()
        for number, one in enumerate(events)
    )
