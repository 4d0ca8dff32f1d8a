"""Remember what changed nothing lately, so that not every step tries again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from langchain_core.messages import BaseMessage

from conspectus._newest import Newest
from conspectus.core.items import Size
from conspectus.core.policy import Arguments
from conspectus.langchain.state import HeadState
from conspectus.messages import has_long_arguments

THREADS = 256
"""Most histories in memory; the least recently used goes first."""

PART = 256
"""After a try that changed nothing, a history is tried again once more than one in this many of its
messages has come: a short one at the next step, a long one rarely enough to stay cheap."""


@dataclass(frozen=True, slots=True)
class _Tried:
    summary: int | None = None
    head: str = ""
    over: bool = False
    messages: int = -1


class Waiting:
    """The steps of histories that changed nothing: bounded, and safe to share."""

    def __init__(self) -> None:
        self._histories: Newest[str, _Tried] = Newest(THREADS)

    def useless(self, history: str, summary: int) -> bool:
        """Return whether this foreign summary covers nothing that may leave."""
        return self._of(history).summary == summary

    def found_useless(self, history: str, summary: int) -> None:
        self._histories.put(history, replace(self._of(history), summary=summary))

    def waits(self, history: str, head: str, over: bool, messages: int) -> bool:
        """Return whether it is too early to try again."""
        tried = self._of(history)
        same = tried.head == head and tried.over == over
        return same and 0 <= messages - tried.messages < tried.messages // PART

    def helped_nothing(self, history: str, head: str, over: bool, messages: int) -> None:
        tried = replace(self._of(history), head=head, over=over, messages=messages)
        self._histories.put(history, tried)

    def _of(self, history: str) -> _Tried:
        return self._histories.get(history) or _Tried()


class OldArguments:
    """Find large arguments of old calls; a message is checked once while all only grows."""

    def __init__(self, how: Arguments, count: Callable[[BaseMessage], int]) -> None:
        self._how, self._count = how, count
        self._looked: Newest[str, tuple[str, int]] = Newest(THREADS)

    def due(
        self,
        view: Sequence[BaseMessage],
        held: HeadState,
        asked: Size,
        limit: int | None,
        history: str,
    ) -> bool:
        """Return whether there are arguments to shorten now in a history of this key."""
        if not self._how.fired(asked, limit):
            return False
        by_messages = self._how.keep[0] == "messages" or (
            self._how.keep[0] == "fraction" and limit is None
        )
        sizes = [0] * len(view) if by_messages else [self._count(one) for one in view]
        old = self._how.old(sizes, limit)
        head, since = self._looked.get(history) or ("", 0)
        since = since if head == held.head_id and since <= old else 0
        long = any(
            has_long_arguments(one, self._how.longest)
            and "clip_of" not in one.additional_kwargs.get("conspectus", {})
            for one in view[since:old]
        )
        if not long:
            self._looked.put(history, (held.head_id, old))
        return long
