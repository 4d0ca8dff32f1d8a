"""What a graph's checkpointed state holds of us, and whose history a step belongs to.

The middleware and the guard meet here: each reads what the other has left. All of it is plain JSON
data in private channels, so that it survives every serializer, is not part of a graph's input or
output, and comes back with the checkpoint that it belongs to.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware.types import AgentState, PrivateStateAttr
from langchain_core.messages import BaseMessage

from conspectus._core.items import Size, Window
from conspectus._core.records import Record
from conspectus.archive import Scope
from conspectus.compactor.naming import DERIVED, name_messages
from conspectus.errors import InputError

VERSION = 1
"""Version of the plain form; what another version wrote is not trusted."""

LOCAL = "local"
"""The tenant where nobody is authenticated."""

MAIN = "main"
"""The session of a graph that no other graph has called."""

HELD = "_conspectus"
REQUEST = "_conspectus_request"
RECALLED = "_conspectus_recalled"
ASKED = "_conspectus_asked"
"""Names of our channels."""

FORKED = "_deepagents_forked_context"
"""Set by Deep Agents in the state of a subagent that has inherited its parent's."""

Tenant = str | Callable[[Any], str | None] | None


def asked_together(
    before: Mapping[str, Any] | None, new: Mapping[str, Any] | None
) -> dict[str, Any]:
    """What two tools of one step ask for is one compaction; nothing takes a request back."""
    if not before or not new:
        return dict(new or {})
    focus = dict.fromkeys(text for one in (before, new) if (text := one.get("focus")))
    return {"v": VERSION, "focus": "; ".join(map(str, focus))}


class CompactionState(AgentState[Any]):
    """Private channels: the record in force, what the guard has seen of real requests, what was
    recalled for this turn, and whether somebody has asked for a compaction."""

    _conspectus: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    _conspectus_request: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    _conspectus_recalled: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    # `| None` keeps LangGraph from putting an empty dict into the state of every thread.
    _conspectus_asked: NotRequired[
        Annotated[dict[str, Any] | None, PrivateStateAttr, asked_together]
    ]
    # Written by Deep Agents' middleware; read here, so that a thread that had it can go on.
    _summarization_event: NotRequired[Annotated[Any, PrivateStateAttr]]


@dataclass(frozen=True, slots=True)
class Held:
    """The record in force, as a graph's state holds it.

    Attributes:
        thread: under which its originals are archived.
        session: likewise.
        data: its id where an archive holds it; else the records themselves as plain data, the
            one in force last; None for none.
        after: size of the view once it was in force, as the trigger counts.
        pending: messages that it covers are still in the channel, and should not be.
    """

    thread: str
    session: str
    data: list[Mapping[str, Any]] | str | None = None
    after: Size | None = None
    pending: bool = False

    @property
    def head(self) -> tuple[Record, ...] | str:
        """The records, the one in force last, or its id; none where they cannot be read."""
        if isinstance(self.data, str):
            return self.data
        try:
            return tuple(Record.from_json(one) for one in self.data or ())
        except (KeyError, TypeError, ValueError, AttributeError):
            return ()

    @property
    def messages_after(self) -> int:
        """Length of the history once the record was in force, in messages."""
        return self.after.messages if self.after else 0

    @property
    def head_id(self) -> str:
        """Id of the record in force; empty for none."""
        found: object = self.data
        if isinstance(self.data, list):
            found = self.data[-1].get("id") if self.data else None
        return found if isinstance(found, str) else ""

    def with_record(self, record: Record, after: Size, *, pending: bool = False) -> Held:
        """This with another record in force; one that is archived is named only."""
        if record.archived:
            return replace(self, data=record.id, after=after, pending=pending)
        # Records that cannot be read hold nothing that fits this one.
        before = self.data if isinstance(self.data, list) and self.head else []
        # Only the ledger in force is of use again.
        earlier = [{**one, "ledger": {}} for one in before]
        return replace(self, data=[*earlier, record.to_json()], after=after, pending=pending)

    def back_to(self, chain: Sequence[Record]) -> Held:
        """This with an earlier record in force, or none: the last of the records that it holds
        which still fit. The size it had then is not known any more."""
        if isinstance(self.data, str):
            return replace(self, data=chain[-1].id if chain else None, after=None)
        return replace(self, data=(self.data or [])[: len(chain)] or None, after=None)

    def settled(self, *, whole: bool) -> Held:
        """This once the channel is as it should be.

        Args:
            whole: the channel keeps what the records cover; otherwise only the newest is needed.
        """
        data = self.data if whole or not isinstance(self.data, list) else self.data[-1:]
        return replace(self, data=data, pending=False)

    @property
    def name(self) -> str:
        """Names the history, for what is remembered of it in this process."""
        return f"{self.thread}\0{self.session}"

    def to_json(self) -> dict[str, Any]:
        """As plain JSON data."""
        after = [self.after.tokens, self.after.messages] if self.after else None
        return {
            "v": VERSION,
            "thread": self.thread,
            "session": self.session,
            "head": self.data,
            "after": after,
            "pending": self.pending,
        }


@dataclass(frozen=True, slots=True)
class Requested:
    """What the guard has seen of the request that was really sent.

    Attributes:
        overhead: tokens beside the messages: system prompt, tools, response format.
        reserved: tokens of the window that are left for the answer.
        window: input limit of the model that was called, in tokens; None where it is unknown.
        model: that model.
        learned: the most that may be sent to a model that refused a request as too long, in
            tokens, by model.
    """

    overhead: int = 0
    reserved: int = 0
    window: int | None = None
    model: str = ""
    learned: Mapping[str, int] = field(default_factory=dict)

    def room(self, least: int = 0) -> Window | None:
        """The window, less what messages cannot have; None where nothing is known of it.

        Args:
            least: tokens that messages cannot have in any case.
        """
        rooms = []
        if self.window is not None:
            rooms.append(Window(self.window, max(least, self.overhead + self.reserved)))
        if self.model in self.learned:  # a limit of what is sent; the answer is no part of it
            rooms.append(Window(self.learned[self.model], self.overhead))
        return min(rooms, key=lambda room: room.budget, default=None)

    def having_learned(self, limit: int) -> Requested:
        """This with the most that may be sent to its model."""
        others = [one for one in self.learned.items() if one[0] != self.model][-LEARNED:]
        return replace(self, learned={**dict(others), self.model: limit})

    def to_json(self) -> dict[str, Any]:
        """As plain JSON data."""
        return {"v": VERSION, **asdict(self)}


LEARNED = 3
"""Other models whose limits are remembered."""

NOTHING_SEEN = Requested()


def read_requested(state: Mapping[str, Any]) -> Requested:
    """What the guard has left; nothing where it has not, or where it cannot be read."""
    data = state.get(REQUEST)
    if not data or not isinstance(data, Mapping) or data.get("v") != VERSION:
        return NOTHING_SEEN
    overhead, reserved, window = (_size(data.get(n)) for n in ("overhead", "reserved", "window"))
    learned = data.get("learned")
    known = learned.items() if isinstance(learned, Mapping) else ()
    return Requested(
        overhead,
        reserved,
        window or None,
        str(data.get("model") or ""),
        {str(model): size for model, limit in known if (size := _size(limit))},
    )


def _size(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return max(0, value)


def read_held(state: Mapping[str, Any], runtime: object, messages: Sequence[BaseMessage]) -> Held:
    """What the state holds of us; an empty one, under the names of this run, where it holds none.

    What cannot be read is not trusted: the history then goes on without its records. The first
    message is given an id if it has none, as a history without a thread is told by it.
    """
    _name_first(messages, runtime)
    data = state.get(HELD)
    if data and isinstance(data, Mapping) and data.get("v") == VERSION:
        try:
            return _held(data)
        except (KeyError, TypeError, ValueError, AttributeError):
            pass
    # A forked subagent of Deep Agents goes on with its parent's history: a branch of its session.
    session = MAIN if state.get(FORKED) else session_of(runtime, messages)
    return Held(thread_of(runtime, messages), session)


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


def _held(data: Mapping[str, Any]) -> Held:
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
    return Held(thread, session, head, size, bool(data["pending"]))


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def scope_of(held: Held, tenant: Tenant, runtime: object) -> Scope:
    """Whose originals these are. The tenant is never read from state, which users can write.

    Raises:
        InputError: the tenant is no text.
    """
    return Scope(tenant_of(tenant, runtime), held.thread, held.session)


def tenant_of(tenant: Tenant, runtime: object) -> str:
    """The tenant: as configured, else the authenticated user, else one local tenant."""
    if tenant is None:
        user = getattr(getattr(runtime, "server_info", None), "user", None)
        identity = getattr(user, "identity", None)
        return identity if isinstance(identity, str) and identity else LOCAL
    named = tenant(runtime) if callable(tenant) else tenant
    if named is None:
        return LOCAL
    if not isinstance(named, str) or not named:
        raise InputError(
            f"tenant must be a text that names it, or a callable that returns one, not {named!r}"
        )
    return named


def thread_of(runtime: object, messages: Sequence[BaseMessage]) -> str:
    """The thread: of the run, else of its configuration, else one named by its first message."""
    thread = thread_id_of(runtime)
    return thread if thread else f"unnamed-{_mark(messages)}"


def thread_id_of(runtime: object) -> str | None:
    """The id of the thread, of the run or of its configuration; None where neither has one."""
    thread = thread_of_run(runtime) or _configured_thread()
    return str(thread) if thread else None


def thread_of_run(runtime: object) -> str | None:
    """The thread that a run names; None where it names none, or outside a graph."""
    thread = getattr(getattr(runtime, "execution_info", None), "thread_id", None)
    return str(thread) if thread else None


def session_of(runtime: object, messages: Sequence[BaseMessage]) -> str:
    """Which agent's own history it is: subagents share the thread of the one that calls them.

    It must be the same when a step is tried again, so that drafts are found: it comes from the
    first message, whose id is a random one, or from the call of the subagent, and not from chance.
    """
    info = getattr(runtime, "execution_info", None)
    namespace = getattr(info, "checkpoint_ns", None) or ""
    if "|" not in namespace:
        return MAIN
    # An id that follows from the content is that of every subagent with the same job.
    derived = bool(messages) and (messages[0].id or DERIVED).startswith(DERIVED)
    return f"sub-{_mark(messages, namespace.rpartition('|')[0] if derived else '')}"


def _mark(messages: Sequence[BaseMessage], caller: str = "") -> str:
    first = messages[0] if messages else None
    text = f"{first.id}\0{first.content}{caller}" if first is not None else ""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def is_checkpointed() -> bool:
    """Whether a checkpointer keeps the state of the graph that runs here."""
    # LangGraph has no public way to ask; where it hands it on to subgraphs is the only one.
    return _configured().get("__pregel_checkpointer") not in (None, False)


def _configured_thread() -> object:
    return _configured().get("thread_id")


def _configured() -> Mapping[str, Any]:
    from langgraph.config import get_config

    try:
        found: Mapping[str, Any] = get_config().get("configurable", {})
    except RuntimeError:  # called by hand, outside a graph
        return {}
    return found
