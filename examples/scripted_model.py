"""A chat model without a provider, for the examples: a function says what it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class ScriptedModel(BaseChatModel):
    """Answers by a function of the prompt; an exception that it returns is raised."""

    answer: Callable[[list[BaseMessage]], AIMessage | str | Exception]
    model_name: str = "gpt-4o"
    requests: list[tuple[list[BaseMessage], dict[str, Any]]] = []  # noqa: RUF012  pydantic copies it

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        """Tools go along with each request."""
        return self.bind(tools=list(tools), **options)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        self.requests.append((messages, options))
        answer = self.answer(messages)
        if isinstance(answer, Exception):
            raise answer
        message = AIMessage(answer) if isinstance(answer, str) else answer
        return ChatResult(generations=[ChatGeneration(message=message)])
