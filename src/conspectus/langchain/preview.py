"""Ask a person by an interrupt before a summary takes effect, and read the answer.

The graph is interrupted after the draft is stored. On resume the node runs again, makes the same
plan, finds the draft, gets the answer, and commits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langgraph.types import interrupt

from conspectus.engine.hooks import Preview, PreviewRequest
from conspectus.errors import PolicyError
from conspectus.observe import log

PreviewChoice = bool | Callable[[PreviewRequest], str | None]

KIND = "conspectus.preview"
"""The `type` of the interrupt's value."""

FORMS = 'answer {"type": "approve"}, {"type": "edit", "summary": "..."} or {"type": "reject"}'


def asked_of(choice: PreviewChoice) -> Preview | None:
    """Return the function to ask: none, the graph's interrupt, or the user's own."""
    if choice is False or choice is None:
        return None
    if choice is not True and not callable(choice):
        raise PolicyError(
            "preview must be True, False or a callable that takes the finished summary and "
            f"returns a text or None, not {choice!r}"
        )
    return _interrupt if choice is True else choice


def _interrupt(request: PreviewRequest) -> str | None:
    problem = request.problem
    shown = {name: getattr(request, name) for name in ("summary", "evict", "cause", "limit", "by")}
    while True:
        answer = interrupt({"type": KIND, **shown, "problem": problem, "answers": FORMS})
        understood, text = _read(answer, request.summary)
        if understood and text == request.summary and not request.kept:
            # An interrupt answers at once only where it was asked before: about another text.
            log(
                "approval_lost",
                "the summary that was approved is gone with the process that made it, so the "
                "history was kept as it was: pass archive= or a store, which keep it",
            )
            return None
        if understood:
            return text
        problem = f"{answer!r:.200} is no answer: {FORMS}"


def _read(answer: object, summary: str) -> tuple[bool, str | None]:
    """Read an answer: return whether it is understood, and the text that it approves."""
    if isinstance(answer, Mapping) and isinstance(answer.get("decisions"), list):
        answer = next(iter(answer["decisions"]), None)  # the form of LangChain's own approvals
    kind: Any = answer.get("type") if isinstance(answer, Mapping) else answer
    if kind in ("approve", True):
        return True, summary
    if kind in ("reject", False):
        return True, None
    text = answer.get("summary") if isinstance(answer, Mapping) else None
    if kind == "edit" and isinstance(text, str):
        return True, text
    return False, None
