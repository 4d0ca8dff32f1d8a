"""Recall archived originals in compacted requests.

What is shown is chosen once a turn and record, so that each request of the turn has the
same bytes, and the provider's cache stays valid.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from conspectus._newest import Newest
from conspectus.archive import Archive, Scope
from conspectus.bridge import run
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
from conspectus.tokens import TokenMeter

logger = logging.getLogger("conspectus.serve")

Chosen = Newest[tuple[Scope, str, str], str]
"""The text that is shown in a turn, by thread, record in force and name of the turn."""


@dataclass(slots=True)
class Recall:
    """The originals of one thread, for one request."""

    archive: Archive
    scope: Scope
    head: str
    meter: TokenMeter
    tokens: int  # maximum of what is shown
    spare: int | None  # free tokens of the window; None if unknown
    chosen: Chosen  # what was shown before

    def shown(
        self, turn: str, history: Sequence[Any], view: Sequence[Any]
    ) -> tuple[list[Any], int]:
        """Put what the user's newest message needs directly before it; return its tokens, too.

        `turn` names what was said before; `history` is whole, `view` is to be sent.
        """
        last, place, made = newest_user(history), newest_user(view), list(view)
        if last is None or place is None:
            return made, 0
        first = last
        while first and is_users(history[first - 1]):  # the user's messages of a turn stay together
            first -= 1
        while place and is_users(made[place - 1]):
            place -= 1
        key = (self.scope, self.head, turn)
        text = self.chosen.get(key)
        if text is None:
            try:
                text = self._chosen(history[first : last + 1])
            except ArchiveError as error:
                logger.warning("nothing could be recalled for a request: %s", error)
                return made, 0
            self.chosen.put(key, text)
        message = {"role": "user", "content": text}
        size = self.meter.message(message)
        if not text or (self.spare is not None and size > self.spare):
            return made, 0
        place += brings_results(made[place])  # nothing may stand between a call and its result
        return [*made[:place], message, *made[place:]], size

    def _chosen(self, asked: Sequence[Any]) -> str:
        tokens = self.tokens if self.spare is None else min(self.tokens, self.spare)
        if tokens < LEAST_RECALL:
            return ""
        entries, meter = read_messages(asked), self.meter
        flow = unasked_flow(
            self.archive,
            self.scope,
            self.archive.chain_at(self.scope, self.head),
            query=question_of([entry.own for entry in entries]),
            own=frozenset(entry.id for entry in entries),
            tokens=tokens,
            count=lambda text: meter.message({"role": "user", "content": recalled_text(text)}),
        )
        found = run(flow)
        return recalled_text(found.text) if found is not None else ""
