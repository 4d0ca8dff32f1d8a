"""Recall archived originals in compacted requests.

What is shown is chosen once for a question and a record, so that each request of a turn has the
same bytes, and the provider's cache stays valid.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence, Set
from typing import Any

from conspectus._bounded_cache import BoundedCache
from conspectus.archive import Archive, Scope
from conspectus.bridge import run
from conspectus.errors import ArchiveError
from conspectus.messages import read_messages
from conspectus.messages.framing import recalled_text
from conspectus.messages.requests import LEAST_RECALL, is_users, newest_user, with_recalled
from conspectus.recall.for_agents import unasked_flow
from conspectus.tokens import TokenMeter

logger = logging.getLogger("conspectus.serve")

TURNS = 256  # turns whose recalled originals are remembered


class Recall:
    """Show models what the user's newest messages need, in at most so many tokens."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self._chosen = BoundedCache[tuple[Scope, str, str], str](TURNS)

    def shown(
        self,
        scope: Scope,
        head: str,
        history: Sequence[Any],
        view: Sequence[Any],
        meter: TokenMeter,
        spare: int | None,
        search: Callable[..., str],
    ) -> tuple[list[Any], int]:
        """Put the originals directly before the user's newest message; return their tokens, too.

        `head` is the record in force, `history` is whole, `view` is to be sent and leaves `spare`
        tokens of the window free; None if unknown. `search` does what `searched` does.
        """
        most = self._tokens if spare is None else min(self._tokens, spare)
        last = newest_user(history)
        if last is None:
            return [*view], 0
        first = last
        while first and is_users(history[first - 1]):  # clients add messages of their own
            first -= 1
        asked = read_messages(history[first : last + 1])
        said, own = "\n".join(one.own for one in asked), frozenset(one.id for one in asked)
        name = "\n".join([*sorted(own), said]).encode("utf-8", "replace")
        key = (scope, head, hashlib.sha256(name).hexdigest())
        if (text := self._chosen.get(key)) is None and most >= LEAST_RECALL:
            try:
                text = search(scope, head, said, own, most)
                self._chosen.put(key, text)
            except ArchiveError as error:
                logger.warning("nothing could be recalled for a request: %s", error)
        size = meter.message(_message(text)) if text else 0
        if not text or (spare is not None and size > spare):
            return [*view], 0
        made: list[Any] = with_recalled(view, _message(text))
        return made, size if len(made) > len(view) else 0


def searched(
    archive: Archive,
    meter: TokenMeter,
    scope: Scope,
    head: str,
    said: str,
    own: Set[str],
    most: int,
) -> str:
    """Return originals that a user's words need, framed; empty for none. Raises ArchiveError.

    `own` are the ids of the messages with these words.
    """
    flow = unasked_flow(
        archive,
        scope,
        archive.chain_at(scope, head),
        query=said,
        own=own,
        tokens=most,
        count=lambda text: meter.message(_message(recalled_text(text))),
    )
    found = run(flow)
    return recalled_text(found.text) if found is not None else ""


def _message(text: str) -> Any:
    return {"role": "user", "content": text}
