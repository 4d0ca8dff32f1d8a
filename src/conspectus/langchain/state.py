"""Define a graph's private channels: records, requests, recalled originals, wishes.

The middleware and the guard share them. All is plain JSON, so that it survives every serializer,
and is no part of a graph's input or output.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, NotRequired, TypeGuard

from langchain.agents.middleware.types import AgentState, PrivateStateAttr
from langchain_core.messages import BaseMessage

from conspectus.archive import Scope
from conspectus.core.items import Size, Window
from conspectus.core.records import Record
from conspectus.langchain.identity import (
    DERIVED,
    MAIN,
    Tenant,
    name_messages,
    session_of,
    tenant_of,
    thread_id_of,
    thread_of,
)
from conspectus.messages import POINTER, read_messages
from conspectus.messages.recalled import newest_user, recalled_message

VERSION = 1
"""Version of the plain form; other versions are not read."""

HELD = "_conspectus"
REQUEST = "_conspectus_request"
RECALLED = "_conspectus_recalled"
ASKED = "_conspectus_asked"
"""Names of our channels."""

FORKED = "_deepagents_forked_context"
"""Set by Deep Agents in the state of a subagent that has inherited its parent's."""

LEARNED = 3
"""Other models whose limits are remembered."""

FOCUS = 2_000
"""Most characters of a focus."""


def _data(state: Mapping[str, Any], channel: str) -> Mapping[str, Any]:
    """Return the data of a channel, or nothing if it is of another version."""
    data = state.get(channel)
    return data if isinstance(data, Mapping) and data.get("v") == VERSION else {}


def asked_together(
    before: Mapping[str, Any] | None, new: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Join the requests for a compaction by two tools of one step."""
    if not before or not new:
        return dict(new or {})
    focus = dict.fromkeys(text for one in (before, new) if (text := one.get("focus")))
    return {"v": VERSION, "focus": "; ".join(map(str, focus))}


class CompactionState(AgentState[Any]):
    _conspectus: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    _conspectus_request: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    _conspectus_recalled: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    # `| None` keeps LangGraph from putting an empty dict into the state of every thread.
    _conspectus_asked: NotRequired[
        Annotated[dict[str, Any] | None, PrivateStateAttr, asked_together]
    ]
    # Written by Deep Agents' middleware; read here, so that a thread that had it can go on.
    _summarization_event: NotRequired[Annotated[Any, PrivateStateAttr]]


# The records in force


@dataclass(frozen=True, slots=True)
class HeadState:
    """The record in force, as a graph's state holds it.

    Attributes:
        data: its id if an archive holds it; else the records as plain data, the one in force last.
        after: size of the view when it came into force, as the trigger counts.
        pending: messages that it covers are still in the channel, and should not be.
    """

    thread: str
    session: str
    data: list[Mapping[str, Any]] | str | None = None
    after: Size | None = None
    pending: bool = False

    @property
    def head(self) -> tuple[Record, ...] | str:
        """The records, the one in force last, or its id; none if they cannot be read."""
        if isinstance(self.data, str):
            return self.data
        try:
            return tuple(Record.from_json(one) for one in self.data or ())
        except (KeyError, TypeError, ValueError, AttributeError):
            return ()

    @property
    def messages_after(self) -> int:
        return self.after.messages if self.after else 0

    @property
    def head_id(self) -> str:
        found: object = self.data
        if isinstance(self.data, list):
            found = self.data[-1].get("id") if self.data else None
        return found if isinstance(found, str) else ""

    def with_record(self, record: Record, after: Size, *, pending: bool = False) -> HeadState:
        """Put another record in force; only the id of an archived one is stored."""
        if record.archived:
            return replace(self, data=record.id, after=after, pending=pending)
        # Records that cannot be read hold nothing that fits this one.
        before = self.data if isinstance(self.data, list) and self.head else []
        # A record with notes holds all of them, as no archive has the earlier ones; one of clips
        # alone adds none, and leaves them where they are.
        earlier = [{**one, "segment": {}} for one in before] if record.segment else before
        return replace(self, data=[*earlier, record.to_json()], after=after, pending=pending)

    def back_to(self, chain: Sequence[Record]) -> HeadState:
        if isinstance(self.data, str):
            return replace(self, data=chain[-1].id if chain else None, after=None)
        return replace(self, data=(self.data or [])[: len(chain)] or None, after=None)

    def settled(self, *, whole: bool) -> HeadState:
        """Return the head of a settled channel; a `whole` one needs all records."""
        data = self.data
        if isinstance(data, list) and not whole:
            noted = [at for at, one in enumerate(data) if one.get("segment")]
            data = data[noted[-1] if noted else -1 :]
        return replace(self, data=data, pending=False)

    @property
    def name(self) -> str:
        """Key of the history in the caches of this process."""
        return f"{self.thread}\0{self.session}"

    def to_json(self) -> dict[str, Any]:
        after = [self.after.tokens, self.after.messages] if self.after else None
        return {
            "v": VERSION,
            "thread": self.thread,
            "session": self.session,
            "head": self.data,
            "after": after,
            "pending": self.pending,
        }


def as_data(chain: Sequence[Record]) -> list[Mapping[str, Any]] | str:
    """Return a chain as `HeadState` holds it."""
    return chain[-1].id if chain[-1].archived else [record.to_json() for record in chain]


def scope_of(held: HeadState, tenant: Tenant, runtime: object) -> Scope:
    """Return the scope; the tenant is never read from state, which users can write."""
    return Scope(tenant_of(tenant, runtime), held.thread, held.session)


def read_head(
    state: Mapping[str, Any], runtime: object, messages: Sequence[BaseMessage]
) -> HeadState:
    """Read the record in force, under the names of this run if there is none.

    Invalid data is not trusted: the history goes on without its records. The first message gets an
    id, as it names a history without a thread.
    """
    _name_first(messages, runtime)
    if data := _data(state, HELD):
        try:
            return _held(data)
        except (KeyError, TypeError, ValueError, AttributeError):
            pass
    # A forked subagent of Deep Agents goes on with its parent's history: a branch of its session.
    session = MAIN if state.get(FORKED) else session_of(runtime, messages)
    return HeadState(thread_of(runtime, messages), session)


def _name_first(messages: Sequence[BaseMessage], runtime: object) -> None:
    if not messages:
        return
    first = messages[0]
    derived = first.id is None or first.id.startswith(DERIVED)
    if derived and not thread_id_of(runtime):
        # Two conversations that begin with the same words are not the same one.
        first.id = str(uuid.uuid4())
    else:
        name_messages(messages[:1])


def _held(data: Mapping[str, Any]) -> HeadState:
    head, after = data["head"], data["after"]
    thread, session = data["thread"], data["session"]
    if not (_is_name(thread) and _is_name(session)):
        raise TypeError("thread and session are text")
    # Whether records can be read is seen where they are needed; a step needs only their id.
    records = isinstance(head, list) and head and all(_is_name(one.get("id")) for one in head)
    if not (head is None or _is_name(head) or records):
        raise TypeError("the head is an id, or records")
    size = None
    if after is not None:
        tokens, messages = after
        if not (_is_count(tokens) and _is_count(messages)):
            raise TypeError("a size is tokens and messages")
        size = Size(tokens, messages)
    return HeadState(thread, session, head, size, bool(data["pending"]))


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


# The latest request


@dataclass(frozen=True, slots=True)
class Requested:
    """The latest request, as the guard has measured it.

    Attributes:
        overhead: tokens of system prompt, tools and response format.
        reserved: tokens of the window for the answer.
        learned: most tokens of a request, by model that has refused a larger one.
    """

    overhead: int = 0
    reserved: int = 0
    window: int | None = None
    model: str = ""
    learned: Mapping[str, int] = field(default_factory=dict)

    def room(self, least: int = 0) -> Window | None:
        """Return the room for messages in the window, less `least` tokens; None if unknown."""
        rooms = []
        if self.window is not None:
            rooms.append(Window(self.window, max(least, self.overhead + self.reserved)))
        if self.model in self.learned:  # a limit of the request; the answer is no part of it
            rooms.append(Window(self.learned[self.model], self.overhead))
        return min(rooms, key=lambda room: room.budget, default=None)

    def having_learned(self, limit: int) -> Requested:
        others = [one for one in self.learned.items() if one[0] != self.model][-LEARNED:]
        return replace(self, learned={**dict(others), self.model: limit})

    def to_json(self) -> dict[str, Any]:
        return {"v": VERSION, **asdict(self)}


def read_requested(state: Mapping[str, Any]) -> Requested:
    """Read the latest request; an empty one without a guard."""
    data = _data(state, REQUEST)
    overhead, reserved, window = (
        value if _is_count(value := data.get(name)) else 0
        for name in ("overhead", "reserved", "window")
    )
    learned = data.get("learned")
    known = learned.items() if isinstance(learned, Mapping) else ()
    return Requested(
        overhead,
        reserved,
        window or None,
        str(data.get("model") or ""),
        {str(model): limit for model, limit in known if _is_count(limit) and limit},
    )


# The turn under way


@dataclass(frozen=True, slots=True)
class Recalled:
    """The originals that one turn is shown again, with the same bytes until the next turn.

    Attributes:
        keys: of the originals in it, which must be within reach as long as it is shown.
    """

    turn: str
    text: str = ""
    keys: tuple[str, ...] = ()

    @property
    def message(self) -> BaseMessage | None:
        return recalled_message(self.text, self.turn) if self.text else None

    def to_json(self) -> dict[str, Any]:
        return {"v": VERSION, "turn": self.turn, "text": self.text, "keys": list(self.keys)}


def read_recalled(state: Mapping[str, Any]) -> Recalled | None:
    data = _data(state, RECALLED)
    turn, text, keys = data.get("turn"), data.get("text"), data.get("keys")
    if not (isinstance(turn, str) and isinstance(text, str) and isinstance(keys, list)):
        return None
    return Recalled(turn, text, tuple(map(str, keys)))


def turn_of(messages: Sequence[BaseMessage], known: Recalled | None = None) -> str:
    """Return the name of the turn under way, from its first message; empty for none.

    A message that is shown short since names the same turn as `known`; an edited one another.
    """
    place = newest_user(messages)
    if place is None:
        return ""
    [entry] = read_messages([messages[place]])
    name = hashlib.sha256(entry.id.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    if known is not None and known.turn.startswith(name) and POINTER in entry.text:
        return known.turn
    return f"{name}{entry.key}"


def read_asked(state: Mapping[str, Any]) -> str | None:
    """Read the focus of a compaction that was asked for; None if none was."""
    data = _data(state, ASKED)
    if not data:
        return None
    focus = data.get("focus")
    return focus[:FOCUS] if isinstance(focus, str) else ""


def asking(focus: str | None) -> dict[str, Any]:
    """Make the update of a state that asks for a compaction at the next step."""
    return {ASKED: {"v": VERSION, "focus": (focus or "").strip()[:FOCUS]}}
