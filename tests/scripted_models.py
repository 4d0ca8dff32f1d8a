"""Answer as a real LangChain chat model from a script."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import ConfigDict, PrivateAttr, SkipValidation

_ID = re.compile(r'<message(?: id="|s>\n)([^"\s<]{1,80})[" ]|<notes[^>]*>[^<]*?\[([\w.:-]+)\]')

Answer = AIMessage | str | BaseException
"""The answer to one call: a message, its text, or an error to raise."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call as the model saw it."""

    messages: tuple[BaseMessage, ...]
    tags: tuple[str, ...] = ()  # of the run, those of surrounding runs included
    options: dict[str, Any] = field(default_factory=dict)  # of the call, tools among them

    @property
    def text(self) -> str:
        """Join the whole prompt."""
        return "\n".join(str(message.text) for message in self.messages)


class ScriptedChatModel(BaseChatModel):
    """Answer from a list, or from a callable that sees the prompt.

    A list that is used up raises `RuntimeError`. An answer that is a text ends with the id of a
    message where the prompt shows messages with ids, as the prompts of our summarisers ask for.
    """

    answers: SkipValidation[Sequence[Answer] | Callable[[list[BaseMessage]], Answer]]
    delay: float = 0.0  # seconds that each answer takes
    usage: tuple[int, int] | None = None  # input and output tokens to report with texts
    model_name: str = "scripted"
    cites: bool = True

    model_config = ConfigDict(arbitrary_types_allowed=True)

    _calls: list[RecordedCall] = PrivateAttr(default_factory=list)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @property
    def calls(self) -> list[RecordedCall]:
        """Return the calls so far, in the order in which they began."""
        return self._calls

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Accept tools; they are recorded with each call."""
        return self.bind(tools=list(tools), tool_choice=tool_choice, **kwargs)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        number = self._begin(messages, run_manager, kwargs)
        time.sleep(self.delay)
        return self._answer(number, messages)

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        number = self._begin(messages, run_manager, kwargs)
        await asyncio.sleep(self.delay)
        return self._answer(number, messages)

    def _begin(self, messages: list[BaseMessage], manager: Any, options: dict[str, Any]) -> int:
        tags = tuple(manager.tags) if manager else ()
        with self._lock:
            self._calls.append(RecordedCall(tuple(messages), tags, options))
            return len(self._calls)

    def _answer(self, number: int, messages: list[BaseMessage]) -> ChatResult:
        if callable(self.answers):
            answer = self.answers(messages)
        elif number <= len(self.answers):
            answer = self.answers[number - 1]
        else:
            raise RuntimeError(
                f"the script has {len(self.answers)} answers and this is call {number}; "
                "add an answer, or give a callable"
            )
        if isinstance(answer, BaseException):
            # One that a script raises again would keep the frames of all times before, and theirs.
            raise answer.with_traceback(None)
        if isinstance(answer, str):
            answer = self._cited(answer, messages) if self.cites else answer
            answer = AIMessage(answer)
            if self.usage is not None:
                sent, got = self.usage
                answer.usage_metadata = {
                    "input_tokens": sent,
                    "output_tokens": got,
                    "total_tokens": sent + got,
                }
        return ChatResult(generations=[ChatGeneration(message=answer.model_copy(deep=True))])

    def _cited(self, answer: str, messages: list[BaseMessage]) -> str:
        shown = _ID.search(str(messages[-1].text)) if messages else None
        if shown is None or not answer.strip() or "[" in answer or "<" in answer:
            return answer
        return f"{answer} [{shown[1] or shown[2]}]"
