"""Find the records of a running summary in the archive, by its text.

A caller's state holds only the running summary. So each record is named after the running summary
that it led to, and time travel brings back the records that belong to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from weakref import ref

from langchain_core.messages import BaseMessage

from conspectus._core.records import Record
from conspectus._newest import Newest
from conspectus.archive import Archive, Scope
from conspectus.compactor.anchors import Chain
from conspectus.compactor.settings import AnyArchive
from conspectus.errors import InputError
from conspectus.short_term.running_summary import RunningSummary, name_of

REMEMBERED = 256
"""Most notes of callers without an archive, and most threads followed."""


_notes: Newest[Any, tuple[Record, ...]] = Newest(REMEMBERED)
_followed: Newest[Any, Any] = Newest(REMEMBERED)


def notes_before(running: RunningSummary, where: object) -> tuple[Record, ...]:
    """Return the records that this process has made without an archive; none if it knows none."""
    return _notes.get((where, name_of(running))) or ()


def keep_notes(running: RunningSummary, where: object, records: Sequence[Record]) -> None:
    """Remember the records behind a running summary, for `notes_before`."""
    _notes.put((where, name_of(running)), tuple(records))


def conversation(
    thread: object, messages: Sequence[BaseMessage], running: RunningSummary | None
) -> object:
    """Name the conversation, so that notes do not cross over to another.

    It is the thread, or without one a hash of the covered messages.
    """
    if thread is not None:
        return str(thread)
    covered = set() if running is None else running.summarized_message_ids
    return hash(tuple(str(m.content) for m in messages if m.id in covered))


def is_news(given: AnyArchive, scope: Scope, running: RunningSummary | None) -> bool:
    kept = _followed.get((_key(given), scope))
    if kept is None or kept[1] != _short(running):
        return True
    whose = kept[0]
    return whose is not None and whose() is not given


async def follow_flow(
    archive: Archive, given: AnyArchive, scope: Scope, running: RunningSummary | None
) -> None:
    """Move the archive's pointer with the caller, for recall without a state."""
    if not is_news(given, scope, running):
        return
    pointer = await archive.flow(archive.pointer, scope)
    if pointer:
        chain = await archive.flow(archive.chain_of, scope, name_of(running))
        head = chain[-1].id if chain else None
        if head != pointer:
            await archive.flow(archive.set_head, scope, head)
    whose = None if isinstance(given, (str, Path)) else ref(given)
    _followed.put((_key(given), scope), (whose, _short(running)))


def _key(given: AnyArchive) -> str | int:
    return str(given) if isinstance(given, (str, Path)) else id(given)


def _short(running: RunningSummary | None) -> object:
    """Return enough of a running summary to tell it from another."""
    if running is None:
        return None
    last = running.last_summarized_message_id
    return running.summary, len(running.summarized_message_ids), last


async def chain_flow(archive: Archive, scope: Scope, running: RunningSummary | None) -> Chain:
    """Return the records behind a running summary; none if it is unknown."""
    chain = await archive.flow(archive.chain_of, scope, name_of(running))
    said = running.summary if running is not None else ""
    return chain if chain and chain[-1].summary in (said, "") else ()


def scope_of(thread: object) -> Scope:
    """Return the scope; raise `InputError` without a thread."""
    if thread is None or thread == "":
        raise InputError(
            "archive= needs to know the conversation: pass thread_id=, or call it in a graph whose "
            'config has {"configurable": {"thread_id": ...}}'
        )
    return Scope("local", str(thread))
