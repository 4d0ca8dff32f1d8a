"""The private channels of a graph's state, and the names of its histories and messages.

All is plain JSON, so that it survives every serializer, and is no part of a graph's input or
output. The tenant is never read from the state, which users can write.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from operator import attrgetter
from typing import Annotated, Any, NotRequired, cast

from langchain.agents.middleware.types import AgentState, PrivateStateAttr
from langchain_core.messages import BaseMessage
from langgraph.config import get_config

from conspectus.core.items import Size, Window
from conspectus.core.records import Record
from conspectus.engine.settings import LOCAL
from conspectus.errors import InputError
from conspectus.messages import POINTER, read_messages
from conspectus.messages.recalled import newest_user, recalled_message

VERSION = 1  # of the plain form; other versions are not read

HELD, REQUEST = "_conspectus", "_conspectus_request"
RECALLED, ASKED = "_conspectus_recalled", "_conspectus_asked"

FORKED = "_deepagents_forked_context"
"""Set by Deep Agents in the state of a subagent that has inherited its parent's."""

LEARNED = 3  # other models whose limits are remembered
FOCUS = 2_000  # most characters of a focus
MAIN = "main"  # the session of a graph that no other graph has called
DERIVED = "unnamed-"  # prefix of an id that is derived from its message

Tenant = str | Callable[[Any], str | None] | None

_id = attrgetter("id")


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


def _data(state: Mapping[str, Any], channel: str) -> Mapping[str, Any]:
    data = state.get(channel)
    return data if isinstance(data, Mapping) and data.get("v") == VERSION else {}


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


# The records in force


@dataclass(frozen=True, slots=True)
class HeadState:
    """The record in force, as a graph's state holds it."""

    thread: str
    session: str
    # Its id if an archive holds it; else the records as plain data, the one in force last.
    data: list[Mapping[str, Any]] | str | None = None
    after: Size | None = None  # of the view when it came into force, as the trigger counts
    pending: bool = False  # messages that it covers are still in the channel

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
    def head_id(self) -> str:
        newest = self.data[-1].get("id") if isinstance(self.data, list) else self.data
        return newest if isinstance(newest, str) else ""

    @property
    def messages_after(self) -> int:
        return self.after.messages if self.after else 0

    def with_chain(
        self, chain: Sequence[Record], after: Size | None, *, pending: bool = False
    ) -> HeadState:
        """Put other records in force; only the id of an archived one is stored."""
        data: Any = None
        if chain:
            data = chain[-1].id if chain[-1].archived else [one.to_json() for one in chain]
        return replace(self, data=data, after=after, pending=pending)

    def with_record(self, record: Record, after: Size, *, pending: bool = False) -> HeadState:
        """Put one more record in force."""
        if record.archived:
            return self.with_chain([record], after, pending=pending)
        # Records that cannot be read hold nothing that fits this one.
        before = self.data if isinstance(self.data, list) and self.head else []
        # A record with notes holds all of them, as no archive has the earlier ones.
        earlier = [{**one, "segment": {}} for one in before] if record.segment else before
        return replace(self, data=[*earlier, record.to_json()], after=after, pending=pending)

    def settled(self, *, whole: bool) -> HeadState:
        """Return the head of a rewritten channel; a `whole` one needs all records."""
        data = self.data
        if isinstance(data, list) and not whole:
            noted = [at for at, one in enumerate(data) if one.get("segment")]
            data = data[noted[-1] if noted else -1 :]
        return replace(self, data=data, pending=False)

    def to_json(self) -> dict[str, Any]:
        after = [self.after.tokens, self.after.messages] if self.after else None
        own = {"thread": self.thread, "session": self.session, "head": self.data}
        return {"v": VERSION, **own, "after": after, "pending": self.pending}


def read_head(
    state: Mapping[str, Any], runtime: object, messages: Sequence[BaseMessage]
) -> HeadState:
    """Read the record in force, under the names of this run; invalid data is not trusted."""
    thread = thread_of_run(runtime) or _text(_configured().get("thread_id"))
    if messages and not thread and (messages[0].id or DERIVED).startswith(DERIVED):
        # Two conversations that begin with the same words are not the same one.
        messages[0].id = str(uuid.uuid4())
    else:
        name_messages(messages[:1])
    if data := _data(state, HELD):
        try:
            return _held(data)
        except (KeyError, TypeError, ValueError, AttributeError):
            pass
    # A forked subagent of Deep Agents goes on with its parent's history: a branch of its session.
    session = MAIN if state.get(FORKED) else session_of(runtime, messages)
    return HeadState(thread or f"{DERIVED}{_digest_of_first(messages)}", session)


def _held(data: Mapping[str, Any]) -> HeadState:
    head, after = data["head"], data["after"]
    ids = [head] if isinstance(head, str) else [one.get("id") for one in head or ()]
    names = (data["thread"], data["session"], *ids)
    if not all(isinstance(one, str) and one for one in names) or head == []:
        raise TypeError("a name is no text")
    if after is not None and not (len(after) == 2 and all(map(_is_count, after))):
        raise TypeError("a size is tokens and messages")
    size = None if after is None else Size(*after)
    return HeadState(data["thread"], data["session"], head, size, bool(data["pending"]))


# The latest request


@dataclass(frozen=True, slots=True)
class Requested:
    """The latest request, as the guard has measured it."""

    overhead: int = 0  # tokens of system prompt, tools and response format
    reserved: int = 0  # tokens of the window for the answer
    window: int | None = None
    model: str = ""
    # Most tokens of a request, by model that has refused a larger one.
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
    if not data:
        return Requested()
    sizes: Any = map(data.get, ("overhead", "reserved", "window"))
    overhead, reserved, window = (one if _is_count(one) else 0 for one in sizes)
    known = data["learned"].items() if isinstance(data.get("learned"), Mapping) else ()
    learned = {str(model): limit for model, limit in known if _is_count(limit) and limit}
    return Requested(overhead, reserved, window or None, str(data.get("model") or ""), learned)


# The turn under way, and what was asked for


@dataclass(frozen=True, slots=True)
class Recalled:
    """The originals that one turn is shown again, with the same bytes until the next turn."""

    turn: str
    text: str = ""
    keys: tuple[str, ...] = ()  # of the originals, which must stay within reach

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
    """Return the name of the turn under way, also if its message is shown short by now."""
    place = newest_user(messages)
    if place is None:
        return ""
    [entry] = read_messages([messages[place]])
    name = _digest(entry.id)[:16]
    if known is not None and known.turn.startswith(name) and POINTER in entry.text:
        return known.turn
    return f"{name}{entry.key}"


def read_asked(state: Mapping[str, Any]) -> str | None:
    """Read the focus of a compaction that was asked for; None if none was."""
    data = _data(state, ASKED)
    focus = data.get("focus", "")
    return None if not data else focus[:FOCUS] if isinstance(focus, str) else ""


def asking(focus: str | None) -> dict[str, Any]:
    """Make the update of a state that asks for a compaction at the next step."""
    return {ASKED: {"v": VERSION, "focus": (focus or "").strip()[:FOCUS]}}


# Names


def tenant_of(tenant: Tenant, runtime: object) -> str:
    """Return the tenant: as configured, else the authenticated user, else `LOCAL`."""
    if tenant is None:
        user = getattr(getattr(runtime, "server_info", None), "user", None)
        identity = getattr(user, "identity", None)
        return identity if isinstance(identity, str) and identity else LOCAL
    named = tenant(runtime) if callable(tenant) else tenant
    if named is not None and (not isinstance(named, str) or not named):
        raise InputError(
            f"tenant must be a text that names it, or a callable that returns one, not {named!r}"
        )
    return LOCAL if named is None else named


def thread_of_run(runtime: object) -> str | None:
    return _text(getattr(getattr(runtime, "execution_info", None), "thread_id", None))


def _text(thread: object) -> str | None:
    """Return the name of a thread, which may be a number or a UUID, as text."""
    return None if thread in (None, "") else str(thread)


def session_of(runtime: object, messages: Sequence[BaseMessage]) -> str:
    """Return the session of a history, the same in a retried step and in the next run."""
    info = getattr(runtime, "execution_info", None)
    caller = _above(getattr(info, "checkpoint_ns", None))
    if not caller:
        return MAIN
    # Every subagent with the same job has the same derived id: only their calls differ.
    if messages and not (messages[0].id or DERIVED).startswith(DERIVED):
        caller = "|".join(node.partition(":")[0] for node in caller.split("|"))
    return f"sub-{_digest_of_first(messages, caller)}"


def run_of_subgraph() -> str:
    """Return the name of this run of a subgraph; empty where its state outlives the run."""
    caller = _above(_configured().get("checkpoint_ns"))
    return caller if ":" in caller else ""


def is_checkpointed() -> bool:
    """Return whether a checkpointer keeps the state of the running graph from run to run."""
    # LangGraph has no public way to ask; this is where it hands the checkpointer to subgraphs.
    checkpointer = _configured().get("__pregel_checkpointer")
    return checkpointer not in (None, False) and not run_of_subgraph()


def _above(namespace: str | None) -> str:
    """Return the namespace of the graph that a node is in; empty for one that no other called."""
    return (namespace or "").rpartition("|")[0]


def _configured() -> Mapping[str, Any]:
    try:
        return cast("Mapping[str, Any]", get_config().get("configurable", {}))
    except RuntimeError:  # outside a graph
        return {}


def name_messages(messages: Sequence[BaseMessage], before: Iterable[BaseMessage] = ()) -> None:
    """Give messages without ids the same ones each time a delta channel is rebuilt."""
    if None not in map(_id, messages):
        return
    taken = {message.id for message in (*before, *messages)}
    counts: Counter[str] = Counter()
    for message in messages:
        if message.id is not None:
            continue
        calls = getattr(message, "tool_calls", None), getattr(message, "tool_call_id", None)
        said = repr((message.type, message.name, message.content, calls))
        name = f"{DERIVED}{_digest(said)[:24]}"
        while (free := f"{name}-{counts[name]}") in taken:
            counts[name] += 1
        message.id = free
        taken.add(free)


def _digest_of_first(messages: Sequence[BaseMessage], caller: str = "") -> str:
    first = messages[0] if messages else None
    return _digest(f"{first.id}\0{first.content}{caller}" if first is not None else "")[:16]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
