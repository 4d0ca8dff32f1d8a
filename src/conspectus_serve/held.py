"""Store histories that clients leave to the server: those of responses and compaction items.

Their messages are stored with their thread, so that they can be compacted, and any upstream can
answer.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conspectus._bounded_cache import BoundedCache
from conspectus.archive import Archive, Scope
from conspectus.core.records import Cost
from conspectus_serve.protocols import COMPACT, HttpError
from conspectus_serve.threads import scope_of

OUR_MARK = "conspectus.v1."
"""The beginning of the content of our items; a provider's begins otherwise."""

ITEM_CONTENT = "encrypted_content"
"""The field of an item that clients send back untouched."""

TRIGGER = {"type": "compaction_trigger"}
"""The last item, with which Codex asks for a compaction."""

NAMES_PER_ROW = 64
"""Most names of responses in one row. So a long chain is found without a look-up for each response,
and rows do not grow with the chain."""

REMEMBERED_HISTORIES = 16
"""Histories that need not be read from the archive."""

HELD_SECONDS = 30 * 86_400
"""For this time providers keep a response, and so do we."""

DELETED_ROW = " deleted"
"""The note of a thread with the names of deleted responses."""

REMEMBERED_DELETIONS = 4_096

NOT_HELD = (
    "this endpoint holds no such compaction item for this key; leave it out, or send the history "
    "that it stands for"
)


@dataclass(frozen=True, slots=True)
class HeldHistory:
    """A history that the endpoint stores."""

    thread: str = ""
    names: list[str] = field(default_factory=list)  # the names of its responses, the oldest first
    messages: list[Any] = field(default_factory=list)


class HeldHistories:
    """Stores histories in parts, and finds a history by the name of its last part.

    A part is stored under its name in the scope of its thread, as a *row*: its messages, and the
    names of the parts before it. If there are more parts than one row lists, its field `before`
    names the part whose row has the next names. A *pointer*, which is stored for the tenant, has
    the thread of a name.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._newest = BoundedCache[tuple[str, str], HeldHistory](REMEMBERED_HISTORIES)
        # By tenant and name: the thread that has stored another response of that name since then.
        self._deleted = BoundedCache[tuple[str, str], str](REMEMBERED_DELETIONS)

    def find(self, tenant: str, name: str) -> HeldHistory | None:
        """Return the history up to a response, or that of an item; None if a part is missing.

        As with a provider, a history with a deleted or expired response cannot be read.

        Raises:
            ArchiveError: the archive cannot be read.
        """
        pointer = self._notes(tenant, name)
        if pointer is None or pointer.get("at", 0.0) + HELD_SECONDS < time.time():
            return None
        thread = pointer["thread"]
        scope = scope_of(tenant, thread)
        remembered = self._newest.get((tenant, name))
        if remembered is not None:
            rows = self._archive.read_remarks(scope, "response", [name, DELETED_ROW])
            if name not in rows:  # its thread was forgotten
                return None
            deleted_names = rows.get(DELETED_ROW, {}).get("names", ())  # by any process
            if set(deleted_names).isdisjoint(remembered.names):
                return remembered
        return self._read(tenant, thread, name)

    def _read(self, tenant: str, thread: str, name: str) -> HeldHistory | None:
        """Read a history from the archive; None if a part of it is missing."""
        scope = scope_of(tenant, thread)
        names: list[str] = []
        last_name = name
        while last_name and last_name not in names:  # an upstream may give one name twice
            row = self._notes(scope, last_name)
            if row is None or not _is_whole(row):
                return None
            names = [*row["ids"], *names]
            last_name = row["before"]
        rows = self._archive.read_remarks(scope, "response", names)
        are_all_there = rows.keys() >= set(names) and all(map(_is_whole, rows.values()))
        if not are_all_there or any(self._is_deleted(tenant, thread, part) for part in names):
            return None  # the remaining parts are not the whole history
        messages: list[Any] = []
        for part in dict.fromkeys(names):
            messages += rows[part]["items"]
        return HeldHistory(thread, names, messages)

    def keep(
        self,
        tenant: str,
        held: HeldHistory,
        name: str,
        new_messages: Sequence[Any],
        *,
        pending: bool = False,
    ) -> None:
        """Store new messages under a name, after those that are stored already.

        The output of a `pending` response is not there yet; see `complete`.

        Raises:
            ArchiveError: the archive cannot be read or written.
        """
        listed_from = len(held.names) - len(held.names) % NAMES_PER_ROW
        names = [*held.names, name]
        row = {
            "ids": names[listed_from:],
            "before": held.names[listed_from - 1] if listed_from else "",
            "items": list(new_messages),
            "pending": pending,
        }
        self._archive.write_remarks(scope_of(tenant, held.thread), "response", {name: row})
        pointer = {"thread": held.thread, "at": time.time()}
        # When this row is on the disk, the row before it is, too.
        self._archive.write_remarks(tenant, "response", {name: pointer}, durable=True)
        if self._deleted.get((tenant, name)) is not None:
            self._deleted.put((tenant, name), held.thread)
        if not pending:
            messages = [*held.messages, *new_messages]
            self._newest.put((tenant, name), HeldHistory(held.thread, names, messages))

    def is_pending(self, tenant: str, name: str) -> bool:
        """Tell whether a stored response has no output yet."""
        return self._find_row(tenant, name)[1].get("pending") is True

    def complete(self, tenant: str, name: str, output: Sequence[Any]) -> None:
        """Store the output of a pending response.

        Raises:
            ArchiveError: the archive cannot be read or written.
        """
        scope, row = self._find_row(tenant, name)
        if scope is not None and row.get("pending") is True:
            whole = {**row, "items": [*row["items"], *output], "pending": False}
            self._archive.write_remarks(scope, "response", {name: whole}, durable=True)

    def delete(self, tenant: str, name: str) -> None:
        """Delete a response, so that no history with it can be read.

        If the archive fails, at least this process does not read it any more.

        Raises:
            ArchiveError: the archive cannot be read or written.
        """
        self._deleted.put((tenant, name), "")
        for held in self._newest.values():
            if name in held.names:
                self._newest.drop((tenant, held.names[-1]))
        scope, row = self._find_row(tenant, name)
        if scope is None or not row:
            return
        deleted_row = self._notes(scope, DELETED_ROW) or {}
        deleted_names = deleted_row.get("names", [])
        rows = {name: {}, DELETED_ROW: {"names": [*deleted_names, name]}}
        self._archive.write_remarks(scope, "response", rows, durable=True)

    def _is_deleted(self, tenant: str, thread: str, name: str) -> bool:
        """Tell whether a response was deleted here, and none with its name was stored since."""
        kept_again_in = self._deleted.get((tenant, name))
        return kept_again_in is not None and kept_again_in != thread

    def _find_row(self, tenant: str, name: str) -> tuple[Scope | None, dict[str, Any]]:
        """Return the scope in which a name is stored, and its row; None and {} if there is none."""
        pointer = self._notes(tenant, name)
        if pointer is None:
            return None, {}
        scope = scope_of(tenant, pointer["thread"])
        return scope, self._notes(scope, name) or {}

    def _notes(self, namespace: str | Scope, name: str) -> dict[str, Any] | None:
        return self._archive.read_remarks(namespace, "response", [name]).get(name)

    def expand_items(self, tenant: str, history: Sequence[Any]) -> tuple[list[Any], str]:
        """Replace our compaction items by their messages; return the history and its thread.

        The thread is empty if the history has no such item.

        Raises:
            HttpError: an item is unknown; it may be another tenant's.
            ArchiveError: the archive cannot be read.
        """
        last_item = _last_item(history)
        if last_item is None:
            return list(history), ""
        index, name = last_item
        may_be_ours = name.isascii() and name.startswith("cmp_")
        held = self.find(tenant, name) if may_be_ours else None
        if held is None:
            raise HttpError(400, NOT_HELD, "invalid_compaction_item")
        # Some messages before the item are stored already; Codex gives them new ids.
        held_contents = [_content(message) for message in held.messages]
        not_held = [
            item
            for item in history[:index]
            if _name_in(item) is None and _content(item) not in held_contents
        ]
        return [*not_held, *held.messages, *history[index + 1 :]], held.thread


def _is_whole(row: Mapping[str, Any]) -> bool:
    """Tell whether a response has its output, and was not deleted."""
    return "items" in row and row.get("pending") is not True


def _content(item: Any) -> Any:
    """Return role and content of a message; any other item as it is."""
    is_message = isinstance(item, Mapping) and "role" in item
    return (item["role"], item.get("content")) if is_message else item


def _last_item(history: Sequence[Any]) -> tuple[int, str] | None:
    """Return the place and the name of our last item; it has the earlier ones."""
    for index in range(len(history) - 1, -1, -1):
        name = _name_in(history[index])
        if name is not None:
            return index, name
    return None


def _name_in(item: Any) -> str | None:
    """Return the name in a compaction item of ours; None for other items."""
    if not isinstance(item, Mapping) or item.get("type") != "compaction":
        return None
    content = str(item.get(ITEM_CONTENT))
    return content.removeprefix(OUR_MARK) if content.startswith(OUR_MARK) else None


def without_trigger(route_name: str, body: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return a request's body without its trigger, and whether it asks for a compaction."""
    items = body.get("input")
    if route_name == "responses" and isinstance(items, list) and items[-1:] == [TRIGGER]:
        return {**body, "input": items[:-1]}, True
    return body, route_name == COMPACT


def compaction_answer(route_name: str, model: str, name: str, cost: Cost, *, stream: bool) -> bytes:
    """Write an answer that is one compaction item with a name, in the form of its route."""
    item = {"type": "compaction", "id": name, ITEM_CONTENT: OUR_MARK + name}
    usage = {
        "input_tokens": cost.input_tokens,
        "input_tokens_details": {"cached_tokens": cost.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": cost.output_tokens,
        "output_tokens_details": {"reasoning_tokens": cost.reasoning_tokens},
        "total_tokens": cost.tokens,
    }
    response: dict[str, Any] = {
        "id": f"resp_{secrets.token_hex(16)}",
        "object": "response.compaction" if route_name == COMPACT else "response",
        "model": model,
        "created_at": int(time.time()),
        "status": "completed",
        "output": [item],
        "usage": usage,
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
    }
    if not stream:
        return json.dumps(response).encode()
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ]
    return b"".join(_event(number, event) for number, event in enumerate(events))


def _event(number: int, event: Mapping[str, Any]) -> bytes:
    data = json.dumps({**event, "sequence_number": number})
    return f"event: {event['type']}\ndata: {data}\n\n".encode()
