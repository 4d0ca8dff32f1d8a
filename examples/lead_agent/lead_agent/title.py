"""Title: a name for the thread after its first exchange, and never again."""

from __future__ import annotations

import logging
import re
from typing import Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from conspectus import is_summary_message
from lead_agent.settings import TitleSettings

logger = logging.getLogger("lead_agent")

REQUEST = "Write a title for this conversation"
"""How the request begins."""

READ = 500
"""Characters of each side that the model reads."""

LONGEST = 80
"""Characters of a title, at most."""


class TitleState(AgentState[Any]):
    """The title; whatever stands there is never replaced."""

    title: NotRequired[str]


class TitleMiddleware(AgentMiddleware[TitleState, Any, Any]):
    """Has the model write a title when the first run has ended; else takes the first message.

    Args:
        model: a chat model.
        settings: who writes it, and its length.
    """

    state_schema = TitleState

    def __init__(self, model: Any, settings: TitleSettings) -> None:
        super().__init__()
        self._model, self._settings = model, settings

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Write it, if there is none."""
        if state.get("title"):
            return None
        first = _first(state["messages"], HumanMessage)
        if not first:
            return None
        answer = _first(state["messages"], AIMessage)
        written = self._written(first, answer) if self._settings.by == "model" else ""
        return {"title": written or self._cleaned(first) or "Untitled"}

    def _written(self, first: str, answer: str) -> str:
        """The model's title; empty where it has none."""
        prompt = (
            f"{REQUEST}, of at most {self._settings.words} words, in its language. Answer with "
            f"the title alone.\n\nUser: {first[:READ]}\n\nAgent: {answer[:READ]}"
        )
        try:
            # Its words are no part of what the agent says.
            reply = self._model.invoke([HumanMessage(prompt)], {"tags": ["nostream"]})
            return self._cleaned(str(reply.text))
        except Exception as error:  # a title is not worth the run
            logger.warning("the first message is the title: the model failed: %s", error)
            return ""

    def _cleaned(self, text: str) -> str:
        """One line of so many words, without quotes, reasoning or marks around it."""
        text = re.sub(r"<think>.*?</think>", " ", text, flags=re.DOTALL)
        lines = [line for one in text.splitlines() if (line := _plain(one))]
        words = lines[0].split()[: self._settings.words] if lines else []
        title = " ".join(words)
        return title if len(title) <= LONGEST else title[: LONGEST - 1].rstrip() + "…"


def _plain(line: str) -> str:
    shown = "".join(one if one.isprintable() else " " for one in line)
    return re.sub(r"^title:\s*", "", shown.strip(" \"'`*#"), flags=re.IGNORECASE).strip(" \"'`*#")


def _first(messages: list[BaseMessage], kind: type[BaseMessage]) -> str:
    """The first text of one side that is no summary."""
    for message in messages:
        if isinstance(message, kind) and not is_summary_message(message):
            text = str(message.text).strip()
            if text:
                return text
    return ""
