"""The private channels of a graph's state, and the names of its histories and messages.

All channels hold plain JSON, so every serializer restores them. They are no part of a graph's input
or output. Data of another form is not trusted. The tenant is never read from the state, because
users can write the state.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, field, replace
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, NotRequired, Required, Self, cast

from langchain.agents.middleware.types import AgentState, PrivateStateAttr
from langchain_core.messages import AnyMessage, BaseMessage, convert_to_messages
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.channels.delta import DeltaChannel
from langgraph.graph.message import Messages, add_messages
from pydantic import Field, PositiveInt, ValidationError
from pydantic.dataclasses import dataclass

from conspectus.core.items import Size, Window
from conspectus.core.policy import check_text
from conspectus.core.records import Chain, Record
from conspectus.langchain.private_channel import PrivateValue

FORKED = "_deepagents_forked_context"
"""Set by Deep Agents in the state of a subagent that has inherited its parent's."""

SNAPSHOT_UPDATES = 50
"""Updates after which a preserved channel is written whole."""

MOST_FOCUS_CHARACTERS = 2_000
"""The most characters of a focus."""

MAIN = "main"
"""The session of a graph that no other graph has called."""

DERIVED = "unnamed-"
"""Prefix of an id that is derived from its message."""

Tenant = str | Callable[[Any], str | None] | None
Name = Annotated[str, Field(min_length=1)]
Tokens = Annotated[int, Field(ge=0, strict=True)]

_id = attrgetter("id")


Private = Annotated[dict[str, Any] | None, PrivateStateAttr, PrivateValue]


class CompactionState(AgentState[Any]):
    _conspectus: NotRequired[Private]
    _conspectus_request: NotRequired[Private]
    _conspectus_recalled: NotRequired[Private]
    _conspectus_requested_compaction: NotRequired[Private]
    _conspectus_requested_undo: NotRequired[Private]


def add_writes(state: Messages | None, writes: Sequence[Messages]) -> Messages:
    """Add messages write by write. Messages without ids get the same ids each time."""
    messages: Messages = state or []
    for write in writes:
        listed = cast("list[Any]", write if isinstance(write, list) else [write])
        new_messages = convert_to_messages(listed)
        name_messages(new_messages, cast("list[BaseMessage]", messages))
        messages = add_messages(messages, cast("Messages", new_messages))
    return messages


class PreservedState(AgentState[Any]):
    """State for `create_agent(state_schema=...)` with `history="preserve"`.

    A plain channel is written whole at each step, so checkpoints grow with the square of the
    history. In this state `messages` is LangGraph's delta channel, as in Deep Agents: each step
    writes only new messages, and every 50th step writes all of them. Agents read and write it like
    a plain channel.

    Example:
        >>> from langchain.agents import create_agent
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["hello"])
        >>> agent = create_agent(model, state_schema=PreservedState)
        >>> agent.invoke({"messages": [("user", "hi")]})["messages"][-1].text
        'hello'
    """

    messages: Required[
        Annotated[list[AnyMessage], DeltaChannel(add_writes, snapshot_frequency=SNAPSHOT_UPDATES)]
    ]


@dataclass(frozen=True, kw_only=True)
class Stored:
    """What one private channel holds."""

    CHANNEL: ClassVar[str]
    # The data that was read last, and the result. A step reads the same data several times.
    _last_read: ClassVar[tuple[object, Any]] = (None, None)

    v: Literal[1] = 1  # the version of the form

    @classmethod
    def read(cls, state: Mapping[str, Any]) -> Self | None:
        """Read the channel; None if it is empty, or if its data cannot be trusted."""
        data = state.get(cls.CHANNEL)
        if not data:
            return None
        last_data, stored = cls._last_read
        if data is not last_data:
            try:
                stored = cls(**data)
            except (ValidationError, TypeError):
                stored = None
            cls._last_read = (data, stored)
        return cast("Self | None", stored)

    def as_update(self) -> dict[str, Any]:
        """Return an update of a state that stores this, as plain data."""
        # Records are plain already and never change. To copy them would cost more than all the
        # rest.
        parts = vars(self).items()
        plain = {name: asdict(part) if isinstance(part, Size) else part for name, part in parts}
        return {self.CHANNEL: plain}


@dataclass(frozen=True, kw_only=True)
class HeadState(Stored):
    """The record in force."""

    CHANNEL = "_conspectus"

    thread: Name
    session: Name
    head_id: str = ""  # of the record in force; empty if there is none
    # The records as plain data, the one in force last. Empty if an archive holds them.
    records: list[dict[str, Any]] = field(default_factory=list)
    size_after: Size | None = None  # of the view when it came into force, as the trigger counts
    pending: bool = False  # messages that it covers are still in the state
    # the latest summary as plain data, if it failed and no archive can note that
    failed: dict[str, Any] | None = None
    # no model has answered two messages of the user in a row in this history, so it may refuse them
    may_need_joining: bool = False
    corrections: dict[str, float] = field(default_factory=dict)  # as for `Record`

    def __post_init__(self) -> None:
        if self.records and self.records[-1].get("id") != self.head_id:
            raise ValueError("the last record is not the one in force")

    @property
    def chain(self) -> Chain:
        """The records that the state holds; empty if there are none, or if they are unreadable."""
        try:
            return tuple(map(Record.from_json, self.records))
        except (KeyError, TypeError, ValueError, AttributeError):
            return ()

    @property
    def messages_after(self) -> int:
        """The messages in view when the record came into force; 0 without a record."""
        return self.size_after.messages if self.size_after else 0

    def with_chain(
        self, chain: Chain, size_after: Size | None, *, pending: bool = False, whole: bool = True
    ) -> Self:
        """Return the state with a chain in force; `whole` keeps records before the newest notes."""
        newest = chain[-1] if chain else None
        return replace(
            self,
            head_id="" if newest is None else newest.id,
            records=_records_to_store(chain, whole=whole),
            size_after=size_after,
            pending=pending,
            failed=None,
            may_need_joining=newest is not None and newest.may_need_joining,
            corrections={} if newest is None else dict(newest.corrections),
        )


def _records_to_store(chain: Chain, *, whole: bool) -> list[dict[str, Any]]:
    """Return the records of a chain that a state has to hold, as plain data.

    If an archive holds them, there are none. Else the newest notes hold everything, so notes of
    earlier records are left out.
    """
    if not chain or chain[-1].archived:
        return []
    with_notes = (index for index, record in enumerate(chain) if record.notes)
    start = max(with_notes, default=len(chain) - 1)
    earlier = [replace(record, notes={}) for record in chain[:start]] if whole else []
    return [record.to_json() for record in (*earlier, *chain[start:])]


@dataclass(frozen=True, kw_only=True)
class RequestSizes(Stored):
    """The sizes of the latest request without its messages, if a guard has measured them."""

    CHANNEL = "_conspectus_request"

    overhead: Tokens = 0  # of system prompt, tools and response format
    reserved: Tokens = 0  # of the window, for the answer
    window: PositiveInt | None = None
    model: str = ""
    # Most tokens of a request, by model that has refused a larger one.
    learned: dict[str, PositiveInt] = field(default_factory=dict)
    # Features of a request, by model that refuses them; see `RefusedFeature`.
    refused: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> RequestSizes:
        """Read it from a state."""
        return cls.read(state) or NOT_MEASURED

    def window_for_messages(self, least: int = 0, limit: int | None = None) -> Window | None:
        """Return the window with the smallest budget for messages; None if no window is known.

        At least `least` tokens are reserved in the window of the request, and in a window of
        `limit` tokens. A learned size limits the request alone, without the answer.
        """
        reserved = max(least, self.overhead + self.reserved)
        windows = [
            Window(tokens, reserved) for tokens in (self.window, limit) if tokens is not None
        ]
        if self.model in self.learned:
            windows.append(Window(self.learned[self.model], self.overhead))
        return min(windows, key=lambda window: window.budget, default=None)


NOT_MEASURED = RequestSizes()


@dataclass(frozen=True, kw_only=True)
class Recalled(Stored):
    """The originals that one turn is shown again; the same bytes until the next turn."""

    CHANNEL = "_conspectus_recalled"

    turn: str
    text: str = ""
    keys: list[str] = field(default_factory=list)  # of the originals; all must be on this branch


@dataclass(frozen=True, kw_only=True)
class RequestedCompaction(Stored):
    """A compaction that was requested for the next step, with its focus."""

    CHANNEL = "_conspectus_requested_compaction"

    focus: Annotated[str, Field(max_length=MOST_FOCUS_CHARACTERS)] = ""

    @classmethod
    def of(cls, focus: str | None) -> dict[str, Any]:
        """Make the update of a state that requests a compaction at the next step."""
        return cls(focus=check_text(focus, "focus").strip()[:MOST_FOCUS_CHARACTERS]).as_update()


@dataclass(frozen=True, kw_only=True)
class RequestedUndo(Stored):
    """An undo that was requested for the next step."""

    CHANNEL = "_conspectus_requested_undo"

    to: str | None = None  # as for `Compactor.undo`


# Names


class Run(NamedTuple):
    """The run of a graph in which a step is made."""

    thread: str  # empty if there is none
    parent_graph: str  # namespace of the graph that has called this one; empty if none has
    checkpointed: bool  # a checkpointer stores the state between runs
    parent_checkpointed: bool = False  # of this graph, or of a graph around it

    @classmethod
    def of(cls, runtime: object) -> Run:
        """Read the run from the runtime of a node, or else from the configuration."""
        info = getattr(runtime, "execution_info", None)
        config = var_child_runnable_config.get() or {}  # empty outside a graph
        configurable = config.get("configurable") or {}
        thread = getattr(info, "thread_id", None)
        if thread is None:
            thread = configurable.get("thread_id")
        namespace = getattr(info, "checkpoint_ns", None) or configurable.get("checkpoint_ns") or ""
        parent_graph = namespace.rpartition("|")[0]
        # LangGraph has no public way to ask. It passes the checkpointer to subgraphs under this
        # key.
        parent_checkpointed = bool(configurable.get("__pregel_checkpointer"))
        return cls(
            thread="" if thread is None else str(thread),
            parent_graph=parent_graph,
            checkpointed=parent_checkpointed and ":" not in parent_graph,
            parent_checkpointed=parent_checkpointed,
        )

    def session(self, messages: Sequence[BaseMessage]) -> str:
        """Return the session of a history. It is the same in a retried step and in the next run."""
        path = self.parent_graph
        if not path:
            return MAIN
        # Subagents with the same task have the same derived id; only their calls differ.
        if messages and not (messages[0].id or DERIVED).startswith(DERIVED):
            path = "|".join(node.partition(":")[0] for node in path.split("|"))
        return f"sub-{_digest_of_first(messages, path)}"


def agent_name_of(runtime: object) -> str | None:
    """Return the running agent's name: its host's name for it, else the one it was built with."""
    config = var_child_runnable_config.get() or {}
    context = getattr(runtime, "context", None)
    if not isinstance(context, Mapping):
        context = getattr(context, "__dict__", {})
    configurable = config.get("configurable") or {}
    metadata = config.get("metadata") or {}
    by_host = context.get("agent_name") or configurable.get("agent_name")
    name = by_host or metadata.get("lc_agent_name")
    return name if isinstance(name, str) else None


def name_and_read_head(
    state: Mapping[str, Any], run: Run, messages: Sequence[BaseMessage]
) -> HeadState:
    """Read the record in force from a state; without one, name the history after this run.

    The first message gets an id if it has none.
    """
    if messages and not run.thread and (messages[0].id or DERIVED).startswith(DERIVED):
        # Two conversations may begin with the same words, and are different.
        messages[0].id = str(uuid.uuid4())
    elif messages and messages[0].id is None:
        name_messages(messages[:1])
    held = HeadState.read(state)
    if held is not None:
        return held
    # A forked subagent of Deep Agents continues its parent's history, as a branch of that session.
    session = MAIN if state.get(FORKED) else run.session(messages)
    thread = run.thread or f"{DERIVED}{_digest_of_first(messages)}"
    return _no_record(thread, session)


@lru_cache(1_024)  # its validation takes a tenth of a step that has nothing to do
def _no_record(thread: str, session: str) -> HeadState:
    return HeadState(thread=thread, session=session)


def without_response_id(message: BaseMessage) -> BaseMessage:
    """Return a message without the id of the response that OpenAI's server would continue.

    The server holds all messages up to that response, also those that were evicted later.
    """
    meta = {key: part for key, part in message.response_metadata.items() if key != "id"}
    if meta == message.response_metadata:
        return message
    return message.model_copy(update={"response_metadata": meta})


def name_messages(messages: Sequence[BaseMessage], others: Iterable[BaseMessage] = ()) -> None:
    """Give messages without ids the same ids each time a delta channel is rebuilt.

    The ids of `others` are not used.
    """
    if None not in map(_id, messages):
        return
    taken = {message.id for message in (*others, *messages)}
    counts: Counter[str] = Counter()
    for message in messages:
        if message.id is not None:
            continue
        name = f"{DERIVED}{_digest(said_in(message))[:24]}"
        while (free := f"{name}-{counts[name]}") in taken:
            counts[name] += 1
        message.id = free
        taken.add(free)


def said_in(message: BaseMessage) -> str:
    """Return what two equal messages have in common, without their ids."""
    calls = getattr(message, "tool_calls", None), getattr(message, "tool_call_id", None)
    return repr((message.type, message.name, message.content, calls))


def _digest_of_first(messages: Sequence[BaseMessage], path: str = "") -> str:
    first = messages[0] if messages else None
    return _digest(f"{first.id}\0{first.content}{path}" if first is not None else "")[:16]


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()
