"""The adapter for an outside script that measures what our compactions keep.

It calls only the public `Compactor` and `recall`, with LangChain's approximate token counter, so
that sizes mean the same on both sides. A script that takes `module:factory` is given
`benchmarks/retention_policy.py:make`, run from this folder as `retention_policy:make`.
"""

from __future__ import annotations

from itertools import count as numbers
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.messages.utils import count_tokens_approximately

from conspectus import Compactor, NotFoundError

OVERHEAD = 4
"""Tokens that the counter adds for the message that recalled text would be sent in."""


class Policy:
    """One way to compact: the tail that stays, and the limit of the summary."""

    def __init__(self, keep: tuple[str, float], summary_tokens: int) -> None:
        self._compactor = Compactor(
            keep=keep,
            max_summary_tokens=summary_tokens,
            token_counter=count_tokens_approximately,
            archive="memory:",
        )
        self._names = numbers()
        self._thread = ""

    def compact(self, messages: list[BaseMessage]) -> list[Any]:
        """Return the model's view of a history."""
        self._thread = f"thread-{next(self._names)}"
        return self._compactor.compact(messages, thread_id=self._thread, force=True).messages

    def recall(self, query: str, tokens: int) -> str:
        """Return originals found for a query, in at most this number of tokens."""
        try:
            found = self._compactor.recall(query, thread_id=self._thread, tokens=tokens - OVERHEAD)
        except NotFoundError:  # nothing has left the view
            return ""
        return found.text


def make(keep: tuple[str, float], summary_tokens: int) -> Policy:
    """Return a policy, as the script asks for it."""
    return Policy(keep, summary_tokens)
