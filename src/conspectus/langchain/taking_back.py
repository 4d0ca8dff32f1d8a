"""Take a compaction of an agent's state back: on request, or because it was undone elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from conspectus._langchain import hide_from_streams
from conspectus.core.records import Chain, without_undone
from conspectus.engine.branches import load_view
from conspectus.engine.undoing import NO_ARCHIVE, NOTHING_TO_UNDO, START, undo
from conspectus.errors import ArchiveError, ConspectusError, InputError, NotFoundError
from conspectus.langchain.agent_step import AgentStep
from conspectus.langchain.state import RequestedUndo
from conspectus.messages import is_summary_message, read_messages
from conspectus.observe import log

NO_RECORD = "the state of this agent has no record {!r}; its records, the latest last: {}"
UNDO_UNKNOWN = (
    "whether a compaction was taken back elsewhere is not known; the next turn asks again: %s"
)


class TakenBack(NamedTuple):
    """A step after an undo, and the update of the state."""

    step: AgentStep
    update: dict[str, Any]


async def take_back(step: AgentStep) -> TakenBack | None:
    """Undo what is requested in the state, or what was undone elsewhere; None if nothing is.

    Raises:
        ConspectusError: it failed, and `on_failure` is `"raise"`.
    """
    requested = RequestedUndo.read(step.state)
    if requested is None:
        return await _follow_archive(step)
    cleared: dict[str, Any] = {RequestedUndo.CHANNEL: {}}
    try:
        taken_back = await _undo(step, requested.to)
    except ConspectusError as error:
        if step.setup.engine.settings.on_failure == "raise":
            raise
        reason = await step.redact_error(error)
        log("undo_failed", "the compaction was not taken back: %s", reason)
        return TakenBack(step, cleared)
    return taken_back._replace(update={**taken_back.update, **cleared})


async def _undo(step: AgentStep, to: str | None) -> TakenBack:
    if step.archive is None or step.held.records:
        return _undo_in_state(step, to)
    undone = await undo(step.prepare_history(None), step.messages, to)
    messages = cast("list[BaseMessage]", undone.result.messages)
    return _with_chain(step, undone.chain, messages)


def _undo_in_state(step: AgentStep, to: str | None) -> TakenBack:
    """Undo without an archive: the state has the records and, if it keeps all, the originals.

    Raises:
        InputError: the state does not keep evicted messages.
        NotFoundError: it has no record, or not the one that is asked for.
    """
    if not step.preserve:
        raise InputError(f'{NO_ARCHIVE}, or history="preserve"')
    chain = step.held.chain
    if to is None and not chain:
        raise NotFoundError(NOTHING_TO_UNDO.format(step.held.thread))
    names = [record.id for record in chain]
    if to is None:
        count = len(chain) - 1
    elif to.strip() in ("", START):
        count = 0
    elif to.strip() in names:
        count = names.index(to.strip()) + 1
    else:
        raise NotFoundError(NO_RECORD.format(to, ", ".join(names) or "none"))
    return _with_chain(step, chain[:count], step.messages)


async def _follow_archive(step: AgentStep) -> TakenBack | None:
    """Bring a state to an undo by another program; the archive is asked once a turn."""
    archive = step.archive
    if archive is None or step.held.records:
        return None
    if not (step.archive_may_lag(turn=True) or step.may_be_known()):
        return None
    try:
        undone = await archive.call_either_way(archive.undone, step.scope)
    except ArchiveError as error:
        # Nothing may be due, so an archive that is away is no failure of this step.
        log("head_unknown", UNDO_UNKNOWN, await step.redact_error(error))
        return None
    if not undone:
        return None
    head_id = step.held.head_id
    chain = await archive.call_either_way(archive.chain_at, step.scope, head_id) if head_id else ()
    entries = read_messages(step.messages)
    view = await load_view(step.prepare_history(None), entries)
    shows_undone = view.entries is not entries
    if not shows_undone and len(without_undone(chain, undone)) == len(chain):
        return None
    return _with_chain(step, view.chain, cast("list[BaseMessage]", view.sources))


def _with_chain(step: AgentStep, chain: Chain, messages: Sequence[BaseMessage]) -> TakenBack:
    """Put other records in force, with the view that they make of the messages."""
    size = chain[-1].size_after if chain else None
    step = step.with_head(step.held.with_chain(chain, size))
    update = step.held.as_update()
    if step.preserve:
        return TakenBack(step, update)
    hide_from_streams(message for message in messages if is_summary_message(message))
    removal = RemoveMessage(id=REMOVE_ALL_MESSAGES)
    step = replace(step, messages=[*messages])
    return TakenBack(step, {"messages": [removal, *messages], **update})
