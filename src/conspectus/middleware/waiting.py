"""What has helped nothing lately, so that it is not gone into again at every step."""

from __future__ import annotations

from dataclasses import dataclass, replace

from conspectus._newest import Newest

THREADS = 256
"""Histories remembered at most; the one used least recently goes first."""

PART = 256
"""A history is read again, after that helped nothing, once more than one part in so many of its
messages has come: a short one at the next step, and reading a long one stays cheap for each."""


@dataclass(frozen=True, slots=True)
class _Tried:
    summary: int | None = None
    head: str = ""
    over: bool = False
    messages: int = -1


class Waiting:
    """Which steps of which histories changed nothing: bounded, and safe to share."""

    def __init__(self) -> None:
        self._histories: Newest[str, _Tried] = Newest(THREADS)

    def useless(self, history: str, summary: int) -> bool:
        """Whether this summary of another library stands for nothing that may leave."""
        return self._of(history).summary == summary

    def found_useless(self, history: str, summary: int) -> None:
        """Remember that it does."""
        self._histories.put(history, replace(self._of(history), summary=summary))

    def waits(self, history: str, head: str, over: bool, messages: int) -> bool:
        """Whether it is too early to look again.

        Args:
            history: names it.
            head: the record in force.
            over: it does not fit the window.
            messages: its length now.
        """
        tried = self._of(history)
        same = tried.head == head and tried.over == over
        return same and 0 <= messages - tried.messages < tried.messages // PART

    def helped_nothing(self, history: str, head: str, over: bool, messages: int) -> None:
        """Remember that nothing could be done for a history as it is now."""
        tried = replace(self._of(history), head=head, over=over, messages=messages)
        self._histories.put(history, tried)

    def _of(self, history: str) -> _Tried:
        return self._histories.get(history) or _Tried()
