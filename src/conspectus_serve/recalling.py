"""Recall the originals that the user's newest message needs, in compacted requests.

They are chosen when a turn begins and kept beside the thread, so that every instance sends the
same bytes for each request of the turn, and the provider's cache stays valid.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conspectus.archive import Archive
from conspectus.archive.values import manifest
from conspectus.core.records import Chain
from conspectus.errors import ArchiveError
from conspectus.messages import read_messages
from conspectus.messages.recalled import (
    LEAST_RECALL,
    brings_results,
    is_users,
    newest_user,
    recalled_text,
)
from conspectus.recall.for_agents import question_of, unasked_flow
from conspectus_serve.fitting import Turn
from conspectus_serve.recall_tool import Lookups, may_have_tool, tool_in

logger = logging.getLogger("conspectus")


@dataclass(frozen=True, slots=True)
class RecalledView:
    """A request's messages with the recalled ones, and the tokens of those."""

    view: Sequence[Any]
    tokens: int = 0


class RequestRecall:
    """Recall originals for a turn.

    Args:
        archive: of the originals.
        tokens: maximum that they take in a request; 0 for none.
        looked_up: maximum of one call of the model's tool; 0 for no tool.
    """

    def __init__(self, archive: Archive, tokens: int, looked_up: int = 0) -> None:
        self._archive, self._tokens, self._looked_up = archive, tokens, looked_up

    def lookups(
        self, turn: Turn, body: Mapping[str, Any], shown: int, *, held: bool
    ) -> Lookups | None:
        """Return the object that carries out the model's calls; None if it gets no tool.

        Args:
            turn, body: of the request.
            shown: tokens that were recalled unasked.
            held: a later request may name the answer and find its history here.
        """
        if not self._looked_up or not turn.head or not may_have_tool(turn.protocol, body):
            return None
        if turn.protocol.name == "responses" and not held and body.get("store") is not False:
            return None  # the upstream would know the answer by another name than the client
        spare = turn.spare
        if spare is not None:
            spare -= shown + turn.engine.meter.tools([tool_in(turn.protocol)])
            if spare < LEAST_RECALL:
                return None
        return Lookups(self._archive, turn, self._looked_up, spare)

    async def shown_flow(self, turn: Turn, view: Sequence[Any]) -> RecalledView:
        """Insert the recalled originals directly before the user's newest message."""
        last = newest_user(turn.plain)
        view = list(view)
        place = newest_user([one if isinstance(one, Mapping) else {} for one in view])
        if not self._tokens or not turn.head or last is None or place is None:
            return RecalledView(view)
        try:
            text = await self._text(turn, last)
        except ArchiveError as error:
            logger.warning("nothing could be recalled for a request: %s", error)
            return RecalledView(view)
        message = {"role": "user", "content": text}
        size = turn.engine.meter.message(message)
        if not text or (turn.spare is not None and size > turn.spare):
            return RecalledView(view)
        while place and is_users(view[place - 1]):  # the user's messages of a turn stay together
            place -= 1
        if brings_results(view[place]):  # nothing may stand between a call and its result
            place += 1
        return RecalledView([*view[:place], message, *view[place:]], size)

    async def _text(self, turn: Turn, last: int) -> str:
        """Return the kept choice of the turn, or choose now; empty for nothing."""
        chain = await self._archive.flow(self._archive.chain_at, turn.scope, turn.head)
        if not chain:
            return ""
        name, archive = _name(turn, last), self._archive
        notes = await archive.flow(archive.notes, turn.scope, "recalled", [name])
        known = notes.get(name)
        if known is not None:
            # A record may be gone or replaced; then the thread holds fewer originals.
            within = set(known["keys"]).issubset(manifest(chain))
            return str(known["text"]) if within else ""
        text, keys = await self._chosen(turn, last, chain)
        note = {name: {"text": text, "keys": keys}}
        await archive.flow(archive.note, turn.scope, "recalled", note)
        return text

    async def _chosen(self, turn: Turn, last: int, chain: Chain) -> tuple[str, list[str]]:
        tokens = self._tokens if turn.spare is None else min(self._tokens, turn.spare)
        if tokens < LEAST_RECALL:
            return "", []
        first = last
        while first and is_users(turn.plain[first - 1]):
            first -= 1
        said = read_messages(turn.plain)[first : last + 1]
        meter = turn.engine.meter
        found = await unasked_flow(
            self._archive,
            turn.scope,
            chain,
            query=question_of([entry.own for entry in said]),
            own=frozenset(entry.id for entry in said),
            tokens=tokens,
            count=lambda text: meter.message({"role": "user", "content": recalled_text(text)}),
        )
        if found is None:
            return "", []
        return recalled_text(found.text), list(dict.fromkeys(hit.key for hit in found.hits))


def _name(turn: Turn, last: int) -> str:
    """Name a turn by all messages up to its beginning."""
    names = turn.prefixes.names
    known = max((count for count in names if count <= last), default=0)
    rest = json.dumps(list(turn.plain[known : last + 1]), sort_keys=True)
    return hashlib.sha256(f"{names.get(known, '')} {rest}".encode()).hexdigest()[:32]
