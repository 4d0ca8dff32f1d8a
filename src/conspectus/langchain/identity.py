"""Name the tenant, thread and session of a step, and messages without ids."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, cast

from langchain_core.messages import BaseMessage

from conspectus.engine.settings import LOCAL
from conspectus.errors import InputError

MAIN = "main"
"""The session of a graph that no other graph has called."""

DERIVED = "unnamed-"
"""Prefix of an id that is derived from its message."""

Tenant = str | Callable[[Any], str | None] | None

_id = attrgetter("id")


def tenant_of(tenant: Tenant, runtime: object) -> str:
    """Return the tenant: as configured, else the authenticated user, else `LOCAL`."""
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
    return thread_id_of(runtime) or f"unnamed-{_digest_of_first(messages)}"


def thread_id_of(runtime: object) -> str | None:
    return thread_of_run(runtime) or _name(_configured().get("thread_id"))


def thread_of_run(runtime: object) -> str | None:
    return _name(getattr(getattr(runtime, "execution_info", None), "thread_id", None))


def _name(thread: object) -> str | None:
    """Return the name of a thread, which may be a number or a UUID, as text."""
    return None if thread is None or thread == "" else str(thread)


def session_of(runtime: object, messages: Sequence[BaseMessage]) -> str:
    """Return the session of a history: subagents share the thread of their caller.

    A retried step, and the next run of the same agent, must get the same one. So it is derived from
    the agent's place in the graph and its first message, or from the subagent's call.
    """
    info = getattr(runtime, "execution_info", None)
    caller = _above(getattr(info, "checkpoint_ns", None))
    if not caller:
        return MAIN
    # Every subagent with the same job has the same derived id: only their calls differ.
    if messages and not (messages[0].id or DERIVED).startswith(DERIVED):
        caller = "|".join(node.partition(":")[0] for node in caller.split("|"))
    return f"sub-{_digest_of_first(messages, caller)}"


def run_of_subgraph() -> str:
    """Return the name of this run of a subgraph; empty where its state outlives the run.

    LangGraph puts the id of the calling task into the namespace of a subgraph whose state begins
    anew with each call, and into no other.
    """
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


def name_messages(messages: Sequence[BaseMessage], before: Iterable[BaseMessage] = ()) -> None:
    """Give each message without an id one derived from its content and occurrence.

    A delta channel is rebuilt from its writes, and its ids must be the same each time. Messages
    `before` stand before these in the channel.
    """
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
        while (found := f"{name}-{counts[name]}") in taken:
            counts[name] += 1
        message.id = found
        taken.add(found)


def _digest_of_first(messages: Sequence[BaseMessage], caller: str = "") -> str:
    first = messages[0] if messages else None
    return _digest(f"{first.id}\0{first.content}{caller}" if first is not None else "")[:16]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def _configured() -> Mapping[str, Any]:
    found: Mapping[str, Any] = config_of_run().get("configurable", {})
    return found


def config_of_run() -> Mapping[str, Any]:
    """Return the config of the running graph; an empty one for a step called by hand."""
    from langgraph.config import get_config

    try:
        return cast("Mapping[str, Any]", get_config())
    except RuntimeError:  # outside a graph
        return {}
