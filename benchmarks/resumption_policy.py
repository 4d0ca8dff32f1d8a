"""The adapter for an outside script that measures whether an agent could go on.

It calls only the public `Compactor`, with LangChain's approximate token counter, so that sizes mean
the same on both sides. A script that takes `module:factory` is given
`benchmarks.resumption_policy:make`, run from the root of the repository.
"""

from __future__ import annotations

from itertools import count as numbers
from typing import Any

from langchain_core.messages.utils import count_tokens_approximately

from conspectus import Compactor, NotFoundError

Message = dict[str, Any]
_THREADS = numbers()


class Policy:
    """One conversation in a window; all else is the default."""

    def __init__(self, window: int) -> None:
        self._compactor = Compactor(
            window=window, token_counter=count_tokens_approximately, archive="memory:"
        )
        self._thread = f"thread-{next(_THREADS)}"
        self._view: list[Message] = []

    def send(self, messages: list[Message]) -> list[Message]:
        """Take new messages; return those that a model would be sent now."""
        return self._compact([*self._view, *messages])

    def close(self) -> list[Message]:
        """Compact once more, whatever the size."""
        return self._compact(self._view, force=True)

    def recall(self, query: str, tokens: int) -> list[tuple[str, str]]:
        """Return the text that a query recalls, in at most so many tokens."""
        try:
            found = self._compactor.recall(query, thread_id=self._thread, tokens=tokens)
        except NotFoundError:  # nothing has left the view yet
            return []
        return [("recalled", found.text)] if found.text else []

    def _compact(self, messages: list[Message], force: bool = False) -> list[Message]:
        result = self._compactor.compact(messages, thread_id=self._thread, force=force)
        self._view = list(result.messages)
        return self._view


def make(window: int) -> Policy:
    """Return a policy for one conversation, as the script asks for it."""
    return Policy(window)
