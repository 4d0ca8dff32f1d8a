"""Recall archived originals in compacted requests.

The originals are chosen once for a question and a record. So each request of a turn has the same
bytes, and the provider's cache stays valid.
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
from conspectus.messages.recalled import LEAST_RECALL, with_recalled
from conspectus.messages.users import is_by_user, newest_user_message
from conspectus.recall.for_agents import search_unasked
from conspectus.tokens import TokenMeter

logger = logging.getLogger("conspectus.serve")

REMEMBERED_TURNS = 256
"""Turns whose recalled originals are remembered."""


class RecallForRequests:
    """Shows models the originals that the user's newest messages need.

    Args:
        most_tokens: the most tokens of originals in a request.
    """

    def __init__(self, most_tokens: int) -> None:
        self._most_tokens = most_tokens
        self._chosen = BoundedCache[tuple[Scope, str, str], str](REMEMBERED_TURNS)

    def add_to(
        self,
        view: Sequence[Any],
        scope: Scope,
        head_id: str,
        *,
        history: Sequence[Any],
        meter: TokenMeter,
        free_tokens: int | None,
        search: Callable[..., str],
    ) -> tuple[list[Any], int]:
        """Put originals directly before the user's newest message; return their tokens, too.

        Args:
            view: the messages to send.
            scope: the thread to recall from.
            head: the id of the record in force.
            history: the whole history.
            meter: counts tokens.
            free_tokens: tokens of the window that the view leaves; None if unknown.
            search: does what `search_originals` does; takes its arguments but the first two.
        """
        newest = _newest_user_messages(history)
        if not newest:
            return list(view), 0
        entries = read_messages(newest)
        words = "\n".join(entry.own for entry in entries)
        ids = frozenset(entry.id for entry in entries)
        key = self._key(scope, head_id, words, ids)
        most_tokens = self._most_tokens
        if free_tokens is not None:
            most_tokens = min(most_tokens, free_tokens)
        text = self._chosen.get(key)
        if text is None and most_tokens >= LEAST_RECALL:
            try:
                text = search(scope, head_id, words, ids, most_tokens)
                self._chosen.put(key, text)
            except ArchiveError as error:
                logger.warning("nothing could be recalled for a request: %s", error)
        if not text:
            return list(view), 0
        message = _user_message(text)
        tokens = meter.count_message(message)
        if free_tokens is not None and tokens > free_tokens:
            return list(view), 0
        with_originals: list[Any] = with_recalled(view, message)
        was_added = len(with_originals) > len(view)
        return with_originals, tokens if was_added else 0

    def _key(self, scope: Scope, head_id: str, words: str, ids: Set[str]) -> tuple[Scope, str, str]:
        """Return the key of a choice: the record in force and the question."""
        question = "\n".join([*sorted(ids), words]).encode("utf-8", "replace")
        return scope, head_id, hashlib.sha256(question).hexdigest()


def _newest_user_messages(history: Sequence[Any]) -> Sequence[Any]:
    """Return the user's newest message, and those of the user directly before it."""
    last = newest_user_message(history)
    if last is None:
        return []
    first = last
    while first and is_by_user(history[first - 1]):  # clients add their own messages
        first -= 1
    return history[first : last + 1]


def search_originals(
    archive: Archive,
    meter: TokenMeter,
    scope: Scope,
    head_id: str,
    words: str,
    word_ids: Set[str],
    most_tokens: int,
) -> str:
    """Return originals that a user's words need, framed; empty for none.

    `word_ids` are the ids of the messages with these words.

    Raises:
        ArchiveError: the archive cannot be read.
    """
    flow = search_unasked(
        archive,
        scope,
        archive.chain_at(scope, head_id),
        query=words,
        own=word_ids,
        tokens=most_tokens,
        count=lambda text: meter.count_message(_user_message(recalled_text(text))),
    )
    originals = run(flow)
    return recalled_text(originals.text) if originals is not None else ""


def _user_message(text: str) -> Any:
    return {"role": "user", "content": text}
