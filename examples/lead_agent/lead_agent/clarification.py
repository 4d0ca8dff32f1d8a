"""Clarification: the agent asks the user, the run stops, and goes on with the answer."""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain_core.tools import tool
from langgraph.types import interrupt

KIND = "clarification"
"""Marks our interrupts among others."""


@tool
def ask_clarification(question: str, options: list[str] | None = None) -> str:
    """Ask the user one question, with options to choose from if there are any, and wait."""
    if not question.strip():
        return "Nothing was asked: give a question in words."
    # The first time this ends the run; resumed, in whatever process, it returns the answer.
    answer = interrupt({"type": KIND, "question": question, "options": options or []})
    return f"The user answered: {answer}"


class ClarificationMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Gives the agent `ask_clarification`."""

    def __init__(self) -> None:
        super().__init__()
        self.tools = [ask_clarification]
