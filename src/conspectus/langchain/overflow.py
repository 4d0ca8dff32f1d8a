"""LangChain's own errors for requests that are too long."""

from __future__ import annotations

from typing import Any

from langchain_core.exceptions import ContextOverflowError

from conspectus.errors import StuckError
from conspectus.model.answer_text import fills_window


class StillTooLong(StuckError, ContextOverflowError):
    """A request cannot be made to fit. It is an error of LangChain and of Conspectus."""


def check_not_empty(response: Any) -> None:
    """Raise LangChain's error if the request has left no room for an answer."""
    answer = getattr(response, "model_response", response)
    if any(map(fills_window, getattr(answer, "result", [answer]))):
        raise ContextOverflowError("the answer is empty, as the request has filled the window")
