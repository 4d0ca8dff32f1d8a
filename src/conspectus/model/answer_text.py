"""The text of a model's answer: without thoughts, fences and tags, and why it ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from conspectus._langchain import is_ai_message, is_message
from conspectus.errors import SummarizerOverflow, SummaryRejected
from conspectus.messages.blocks import blocks_of

WRAPPERS = ("summary", "answer", "output", "response", "result", "notes")
"""Tags that models put around a whole answer."""

END_FIELDS = """finish_reason finishReason stop_reason stopReason done_reason completionReason
    completion_reason stop_type""".split()
"""Fields of an answer's metadata that say why it ends."""

WINDOW_FULL = {"model_context_window_exceeded", "model_length"}
"""Reasons for the end of an answer, in small letters: the window was full."""

CUT_OFF = {"length", "max_tokens", "max_output_tokens", "max_length", "limit", "reason_max_len"}
"""The same: the answer reached a limit of its length."""

REFUSED = {
    *"""content_filter content_filtered refusal safety recitation blocklist spii language
    prohibited_content guardrail_intervened image_safety""".split()
}
"""The same: the provider or the model refused."""

_MARK = r"<{0}(?:\w{{1,12}}:)?(?i:think|thinking|thought|reasoning)>|\[{0}THINK\]|◁{0}think▷"
# A mark opens a thought only at the beginning of a line. The closing mark of a thought that nobody
# opened is at the end of a line, or the answer follows directly. Elsewhere a mark is a word, as in
# a conversation about such marks.
_THOUGHT = re.compile(
    rf"(?:(?m:^)[ \t]*|(?<=[>\]▷]))(?P<open>{_MARK.format('')})"
    rf"|(?:{_MARK.format('/')})(?P<ends>(?=[ \t]*(?:[\n#<]|\Z)|[-*•\w]))?"
)


def _end_reasons(answer: Any) -> set[str]:
    """Return why an answer ends, in small letters."""
    metadata = answer.response_metadata or {}
    reasons = [metadata.get(field) for field in END_FIELDS]
    details = metadata.get("incomplete_details")
    if isinstance(details, Mapping):
        reasons.append(details.get("reason"))
    return {
        reason.lower().removeprefix("finishreason.")
        for reason in reasons
        if isinstance(reason, str)
    }


def fills_window(answer: object) -> bool:
    """Tell whether an answer is empty because its request has filled the window."""
    if not is_ai_message(answer) or answer.tool_calls or str(answer.text).strip():
        return False
    return bool(WINDOW_FULL & _end_reasons(answer))


def is_cut_off(answer: object) -> bool:
    """Tell whether an answer ended at a limit of its length, whoever set that."""
    if not is_message(answer):
        return False
    reasons = _end_reasons(answer)
    return bool(reasons & CUT_OFF) and not reasons & (WINDOW_FULL | REFUSED)


def text_of(answer: object, name: str, *, may_be_cut: bool = False) -> str:
    """Return the text of an answer, without thoughts, a fence or tags; it may be empty.

    Raises:
        SummarizerOverflow: the window was full before the answer had ended.
        SummaryRejected: the answer was refused, asks for tools, broke off, or unless `may_be_cut`
            was cut off.
    """
    if not is_message(answer):
        return _without_wrapping(answer) if isinstance(answer, str) else ""
    reasons = _end_reasons(answer)
    if reasons & WINDOW_FULL:
        raise SummarizerOverflow(f"the window of {name} was full before it had finished")
    refusals = [*_refusals(answer), *sorted(reasons & REFUSED)]
    is_complete = _is_complete(answer, reasons)
    problem = ""
    if not is_complete:
        problem = "broke off before its end; try again later"
    elif reasons & CUT_OFF and not may_be_cut:
        problem = (
            "was cut off, and not at a limit that was set for it; set the model's max_tokens, or "
            "use a model with a larger window"
        )
    elif refusals:
        problem = f"was refused ({refusals[0]}); use another model for it"
    elif is_ai_message(answer) and _asks_for_tools(answer):
        problem = "asked for tools instead of summarising; use a model without tools"
    if problem:
        rejected = SummaryRejected(f"the answer of {name} {problem}")
        rejected.transient = not is_complete
        raise rejected
    return _without_wrapping(str(answer.text), may_be_cut=may_be_cut)


def _asks_for_tools(answer: Any) -> bool:
    return bool(answer.tool_calls or answer.invalid_tool_calls)


def _refusals(answer: Any) -> list[str]:
    """Return the refusals in an answer, as fields or as blocks of its content."""
    refusals = [answer.additional_kwargs.get("refusal")]
    for block in blocks_of(answer):
        if block.get("type") == "refusal":
            refusals.append(block.get("refusal", "refusal"))
    return [refusal for refusal in refusals if refusal]


def _is_complete(answer: Any, reasons: set[str]) -> bool:
    """Tell whether an answer was received to its end.

    OpenAI and Anthropic say why a stream ended. Others, and fake models, often do not.
    """
    metadata = answer.response_metadata or {}
    says_why = metadata.get("model_provider") in ("openai", "anthropic")
    return bool(reasons) or "status" in metadata or not says_why


def _without_wrapping(text: str, *, may_be_cut: bool = False) -> str:
    """Return a text without thoughts, and without a fence or tag around all of it.

    A thought without an end leaves nothing. If the text `may_be_cut`, the fence or the tag need not
    be closed.
    """
    return _without_tag(_without_fence(_without_thoughts(text), may_be_cut), may_be_cut)


def _without_thoughts(text: str) -> str:
    kept = list[str]()
    position = 0
    is_thought = False
    for mark in _THOUGHT.finditer(text):
        if mark["open"]:
            if not is_thought:
                kept.append(text[position : mark.start()])
            is_thought = True
        elif is_thought or mark["ends"] is not None:
            if not is_thought:
                # The thought was not opened, so all before its end belongs to it.
                kept.clear()
            position = mark.end()
            is_thought = False
    if is_thought:
        return ""
    return "".join([*kept, text[position:]]).strip()


def _without_fence(text: str, may_be_cut: bool) -> str:
    fences = text.count("```")
    is_whole = fences == 2 and text.endswith("```")
    is_cut = fences == 1 and may_be_cut
    if not text.startswith("```") or not (is_whole or is_cut):
        return text
    return text.partition("\n")[2].removesuffix("```").strip()


def _without_tag(text: str, may_be_cut: bool) -> str:
    """Return a text without one of `WRAPPERS` around it; a gateway's page stays as it is."""
    name, _, content = text[1:].partition(">")
    closing = f"</{name}>"
    if not text.startswith("<") or name not in WRAPPERS or text.count(f"<{name}>") != 1:
        return text
    is_whole = text.count(closing) == 1 and text.endswith(closing)
    is_cut = text.count(closing) == 0 and may_be_cut
    return content.removesuffix(closing).strip() if is_whole or is_cut else text
