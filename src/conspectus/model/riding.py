"""A summary that rides the provider's cache: the agent's last request, and one instruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from conspectus.model import prompts

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable

    from conspectus.model.base import SummaryRequest

OPENING = 40  # characters of a message by which the instruction tells it from the others


@dataclass(frozen=True, slots=True)
class LastRequest:
    """An agent's last request, as it was sent."""

    model: Runnable[Any, Any]
    messages: Sequence[Any]  # the system prompt first
    tools: Sequence[Any] = ()  # empty where the model has its own bound already
    tool_choice: Any = None
    settings: Mapping[str, Any] = field(default_factory=dict)  # of that call alone
    window: int | None = None  # of the model, in tokens; None where it is unknown
    at: float = 0.0  # when it was answered, by `time.monotonic()`
    any_model: bool = False  # whoever summarises is taken to be the agent's model

    def bound(self) -> Runnable[Any, Any]:
        """Return the model as agents of LangChain call it: all that is cached stays the same."""
        model: Any = self.model
        if self.tools:
            tools, choice = list(self.tools), self.tool_choice
            return model.bind_tools(tools, tool_choice=choice, **self.settings)  # type: ignore[no-any-return]
        return self.model.bind(**self.settings) if self.settings else self.model

    def with_instruction(self, instruction: str) -> list[BaseMessage]:
        """Return the messages with an instruction after them."""
        from langchain_core.messages import HumanMessage

        return [*self.messages, HumanMessage(instruction)]


def instruction(request: SummaryRequest) -> str:
    """Return what is asked after an agent's last request, in which all its entries stand."""
    begun = ((e, shorten(e.reading[:200], OPENING, placeholder=" …")) for e in request.entries)
    openings = (f"{e.cite} {e.role}: {opening}" for e, opening in begun)
    return prompts.joined(
        prompts.PAUSE,
        prompts.INSTRUCTIONS[request.form],
        prompts.NO_ORDERS if request.form == "findings" else "",
        prompts.framed("messages", "\n".join(openings)),
        prompts.wishes(request),
    )
