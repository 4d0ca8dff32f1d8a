"""A thread goes back, over to another branch, or is copied: the archive is told of it.

What belongs to a checkpoint comes back with it, so a step itself never needs this. It is for those
who read the archive without a state, such as `Compactor.recall`: they go by the archive's pointer
to the record in force, which must not lead them to what was abandoned.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from langchain_core.messages import BaseMessage, HumanMessage

from conspectus._drive import Flow
from conspectus._newest import Newest
from conspectus.agents.identity import Tenant, is_checkpointed, thread_of_run
from conspectus.agents.state import Held, scope_of
from conspectus.archive import Archive
from conspectus.errors import ArchiveError
from conspectus.events.notes import noted
from conspectus.messages import is_summary_message

logger = logging.getLogger("conspectus")

HISTORIES = 1024
"""Histories whose record in force is remembered; the one used least recently goes first."""


class Branches:
    """Keeps archives with the branches that go on; safe to share between workers.

    The pointer is looked at in the first step of a turn, and whenever the state's record is not
    the one that this process has seen last; in all other steps nothing is asked.

    Args:
        tenant: whose conversations these are.
    """

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant
        self._heads: Newest[tuple[int, str], str] = Newest(HISTORIES)

    def follow(
        self,
        held: Held,
        messages: Sequence[BaseMessage],
        archive: Archive | None,
        runtime: object,
        *,
        turn: bool,
    ) -> Flow[Held]:
        """What the state holds, under the name of the thread that it is in now.

        Args:
            held: what the state holds of us.
            messages: its channel.
            archive: where the originals are, if anywhere.
            runtime: of the run.
            turn: whether to look at the pointer whenever a user has spoken last.
        """
        own = thread_of_run(runtime)
        if own is None or not is_checkpointed():  # nothing is kept between runs, nor goes back
            return held
        if held.data is not None and own != held.thread:
            return (yield from self._copied(held, own, archive, runtime))
        if archive is None or isinstance(held.data, list):
            return held
        place = (id(archive), held.name)
        turn = turn and (not messages or isinstance(messages[-1], HumanMessage))
        if self._heads.get(place) == held.head_id and not turn:
            return held
        try:
            yield from self._pointed(held, messages, archive, runtime)
        except ArchiveError as error:
            logger.warning(
                "the archive could not be asked which record is in force: %s",
                error,
                extra=noted("head_unknown"),
            )
            return held
        self._heads.put(place, held.head_id)
        return held

    def _pointed(
        self, held: Held, messages: Sequence[BaseMessage], archive: Archive, runtime: object
    ) -> Flow[None]:
        """Point the archive to the record that the state holds."""
        scope = scope_of(held, self._tenant, runtime)
        pointed = yield from archive.pointer_flow(scope)
        if pointed is None or pointed == held.head_id:
            return  # nothing was archived here, or it was forgotten
        if not held.head_id and any(map(is_summary_message, messages)):
            return  # the state is new and the history is not: its summary names the record
        if held.head_id and not (yield from archive.chain_at_flow(scope, held.head_id)):
            return  # it is in another archive
        yield from archive.set_head_flow(scope, held.head_id or None)

    def _copied(
        self, held: Held, thread: str, archive: Archive | None, runtime: object
    ) -> Flow[Held]:
        """A state that was copied from another thread takes its originals along: what happens in
        one of the two is no business of the other from now on."""
        moved = replace(held, thread=thread)
        if archive is not None and isinstance(held.data, str):
            source = scope_of(held, self._tenant, runtime)
            target = scope_of(moved, self._tenant, runtime)
            try:
                yield from archive.copy_flow(source, target, held.data)
            except ArchiveError as error:
                logger.warning(
                    "a copied thread could not take its originals along: %s",
                    error,
                    extra=noted("copy_failed"),
                )
                return held
        return moved
