"""Whether old calls have large arguments to shorten, told without reading all of a history."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from langchain_core.messages import BaseMessage

from conspectus._core.arguments import Arguments
from conspectus._core.items import Size
from conspectus._newest import Newest
from conspectus.agents.state import Held
from conspectus.messages import has_long_arguments

THREADS = 256
"""Histories remembered at most; the one used least recently goes first."""


class OldArguments:
    """What was looked through of each history: a message is looked at once while it only grows.

    Args:
        how: what is a large argument, and when it is old.
        count: tokens of a message as the trigger counts.
    """

    def __init__(self, how: Arguments, count: Callable[[BaseMessage], int]) -> None:
        self._how, self._count = how, count
        self._looked: Newest[str, tuple[str, int]] = Newest(THREADS)

    def due(self, view: Sequence[BaseMessage], held: Held, asked: Size, limit: int | None) -> bool:
        """Whether there is something to shorten now.

        Args:
            view: the history as the model sees it.
            held: what the state holds of us.
            asked: the size that triggers are compared with.
            limit: of the window; None where it is unknown.
        """
        if not self._how.fired(asked, limit):
            return False
        by_messages = self._how.keep[0] == "messages" or (
            self._how.keep[0] == "fraction" and limit is None
        )
        sizes = [0] * len(view) if by_messages else [self._count(one) for one in view]
        old = self._how.old(sizes, limit)
        head, since = self._looked.get(held.name) or ("", 0)
        since = since if head == held.head_id and since <= old else 0
        long = any(
            has_long_arguments(one, self._how.longest)
            and "clip_of" not in one.additional_kwargs.get("conspectus", {})
            for one in view[since:old]
        )
        if not long:
            self._looked.put(held.name, (held.head_id, old))
        return long
