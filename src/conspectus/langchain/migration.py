"""Take over summaries that other libraries have left in a graph's state.

LangChain's own is a message with a marker. Deep Agents and LangMem note beside the history what
their summary covers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage

from conspectus.messages.summary import summary_body


@dataclass(frozen=True, slots=True)
class ForeignSummary:
    """A summary of another library; it covers the messages with these ids."""

    text: str
    covers: frozenset[str]
    by: str


def foreign_summary(state: Mapping[str, Any]) -> ForeignSummary | None:
    """Read a usable summary of Deep Agents or LangMem, or None."""
    found = _deep_agents(state) or _langmem(state)
    return found if found is not None and found.text and found.covers else None


def _deep_agents(state: Mapping[str, Any]) -> ForeignSummary | None:
    event = state.get("_summarization_event")
    if event is None or not isinstance(event, Mapping):
        return None
    message, cutoff = event.get("summary_message"), event.get("cutoff_index")
    messages: Sequence[BaseMessage] = state["messages"]
    if not isinstance(message, BaseMessage) or not isinstance(cutoff, int) or cutoff < 1:
        return None
    covers = frozenset(m.id for m in messages[:cutoff] if m.id is not None)
    return ForeignSummary(summary_body(str(message.text)), covers, "deepagents")


def _langmem(state: Mapping[str, Any]) -> ForeignSummary | None:
    context = state.get("context")
    if context is None or not isinstance(context, Mapping):
        return None
    running = context.get("running_summary")
    text = _field(running, "summary")
    covered = _field(running, "summarized_message_ids")
    if not isinstance(text, str) or not isinstance(covered, (set, frozenset, list, tuple)):
        return None
    present = {message.id for message in state["messages"]}
    covers = frozenset(one for one in covered if isinstance(one, str) and one in present)
    return ForeignSummary(text.strip(), covers, "langmem")


def _field(holder: object, name: str) -> object:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
