"""Ask a caller's counter for the tokens of single messages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from conspectus.errors import PolicyError
from conspectus.observe import log

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

TokenCounter = Callable[[Iterable[Any]], int]
"""Tokens of a list of messages: the form of LangChain's `token_counter`."""

FILLER = "."  # the text of messages that stand beside a counted one


class MessageCounter:
    """Counts single messages by a caller's counter, fractions of a token rounded up.

    Some counters take only what a provider would: a result behind its call, and a user's message
    first. What the counter refuses alone is counted in the shortest such history, less the rest of
    that. What it refuses there too is estimated, and the log says so once.

    Args:
        counter: takes a list of LangChain messages and returns their tokens.
        estimate: the tokens of a message that the counter does not count.
    """

    def __init__(self, counter: TokenCounter, estimate: Callable[[Any], int]) -> None:
        self._counter, self._estimate = counter, estimate
        self._refused: set[tuple[type, bool]] = set()  # kinds that it does not take alone
        self._said = False
        self._base: int | None = None

    @property
    def base(self) -> int:
        """Tokens that it counts for no message at all, such as a reply's opening."""
        if self._base is None:
            try:
                self._base = self._ask([])
            except Exception:  # it may not be made for an empty list
                self._base = 0
        return self._base

    def __call__(self, message: BaseMessage) -> int:
        """Return the tokens of a message, with the base; raise `PolicyError` for no number."""
        kind = type(message), bool(getattr(message, "tool_calls", None))
        try:
            if kind not in self._refused:
                try:
                    return self._ask([message])
                except PolicyError:
                    raise
                except Exception:
                    size = self._beside_others(message)
                    self._refused.add(kind)
                    return size
            return self._beside_others(message)
        except PolicyError:
            raise
        except Exception as error:
            if not self._said:
                self._said = True
                log(
                    "counter_failed",
                    "token_counter does not count every message (%s: %.200s): those are estimated; "
                    "give one that takes any list of messages",
                    type(error).__name__,
                    error,
                )
            return self._estimate(message) + self.base

    @property
    def empty(self) -> int:
        """Tokens of a user's message without text."""
        from langchain_core.messages import HumanMessage

        try:
            return self._ask([HumanMessage("")])
        except PolicyError:
            raise
        except Exception:  # a provider may refuse it
            return max(0, self(HumanMessage(FILLER)) - 1)

    def _beside_others(self, message: BaseMessage) -> int:
        """Count the shortest history that the counter takes with a message, less the others."""
        failure: Exception | None = None
        for others, before in _histories(message):
            try:
                return max(0, self._ask(others) - self._ask(before)) + self.base
            except PolicyError:
                raise
            except Exception as error:
                failure = error
        assert failure is not None
        raise failure

    def _ask(self, messages: Sequence[Any]) -> int:
        count: Any = self._counter(list(messages))
        if isinstance(count, float) and math.isfinite(count):
            count = math.ceil(count)  # users write characters / 4
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise PolicyError(
                f"token_counter must return a whole number of tokens, and returned {count!r}"
            )
        return count


def _histories(message: BaseMessage) -> list[tuple[list[BaseMessage], list[BaseMessage]]]:
    """Return legal histories with a message, each with the one that it is compared with.

    A call may end a history or not. If not, the frame of a result is counted with its call.
    """
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    def result(call: str | None, name: str | None = None) -> BaseMessage:
        return ToolMessage(FILLER, tool_call_id=call or "", name=name)

    asked = HumanMessage(FILLER)
    if isinstance(message, SystemMessage):
        return [([message, asked], [asked])]
    if isinstance(message, ToolMessage):
        call, name = message.tool_call_id, message.name
        made = AIMessage("", tool_calls=[{"name": name or "tool", "args": {}, "id": call}])
        before: list[BaseMessage] = [asked, made]
        return [([*before, message], before), ([*before, message], [*before, result(call, name)])]
    results = [result(call["id"]) for call in getattr(message, "tool_calls", ())]
    return [([asked, message], [asked]), ([asked, message, *results], [asked])]
