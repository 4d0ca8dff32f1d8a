"""What providers send back: errors told apart, answers told from cut-offs and refusals.

Providers' own libraries are not imported: an error is known by LangChain's error classes, by its
status code, by the name of its class, or by what it says.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from conspectus._drive import StepTimeout
from conspectus._langchain import is_ai_message, is_message, known
from conspectus.errors import (
    ConspectusError,
    SummarizerOverflow,
    SummarizerTimeout,
    SummaryError,
    SummaryRejected,
)

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

_ERRORS = "langchain_core.exceptions"

_OVERFLOW = re.compile(
    r"context[_ ]?(?:length|window|size|limit)[_ ]?\w*[_ ]?exceed|exceed\w* (?:\w+ ){0,3}"
    r"context (?:length|window|size|limit)|maximum (?:context|prompt|model|input) length"
    r"|(?:prompt|input|message|request|conversation)s? (?:is|are) too (?:long|large)"
    r"|(?:prompt|input|request|conversation|context) too (?:long|large)"
    r"|(?:prompt|input|request) exceed\w* (?:\w+ ){0,2}(?:length|token limit)"
    r"|too many (?:input |prompt )?tokens|input (?:token|length|tokens)\b.{0,60}\bexceed"
    r"|prompt token count\b.{0,60}\bexceed|max_(?:model|seq)_len|model_max_length"
    r"|reduce the length of (?:the|your)|tokens_limit_reached|content'?: string too long"
    r"|range of input length|exceed\w* (?:the )?model token limit"
    r"|max_new_tokens\W+must be|too large for model with",
    re.IGNORECASE | re.DOTALL,
)
_OVERFLOW_STATUS = frozenset({None, 400, 413, 422})
_TOO_LARGE = 413
_TRANSIENT_STATUS = frozenset({408, 425, 429})
_TRANSIENT_NAMES = re.compile(
    r"RateLimit|Timeout|Connection|ConnectError|ServiceUnavailable|InternalServer|Overloaded"
    r"|TooManyRequests|Throttl|ResourceExhausted|RemoteProtocolError|ReadError|WriteError"
)
_TRANSIENT_KINDS = frozenset(
    """overloaded_error rate_limit_error api_error timeout_error server_error rate_limit_exceeded
    server_overloaded""".split()
)
"""What bodies call errors that pass: one in the middle of a stream comes without a status."""

_OVERFLOW_KINDS = frozenset({"context_length_exceeded"})
_NO_MONEY = re.compile(r"insufficient_quota|credit balance is too low|billing_error", re.IGNORECASE)

_FINAL_NAMES = re.compile(
    r"Authenticat|Unauthori|Forbidden|Permission|AccessDenied|NotFound|BadRequest|InvalidRequest"
    r"|InvalidArgument|UnprocessableEntity"
)
_FINAL_TEXT = re.compile(r"(?:invalid|incorrect|missing)[_ ]api[_ ]key", re.IGNORECASE)
_FINAL_KINDS = (ConspectusError, NotImplementedError, ImportError, NameError, SyntaxError)
"""What is raised over a call that can never succeed, as it cannot even be made."""

SAID = 300
"""Characters of an error that ours repeats."""

CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
"""Reasons for the end of an answer, in lower case, that mean that it is not whole."""

WINDOW_FULL = frozenset({"model_context_window_exceeded"})
"""Reasons that mean that input and output together filled the window."""

REFUSED = frozenset(
    """content_filter content_filtered refusal safety recitation blocklist prohibited_content spii
    guardrail_intervened language image_safety""".split()
)
"""Reasons that mean that the provider or the model would not answer."""

_THOUGHT = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"\A```(\w*)[ \t]*\n(.*?)\n?```\Z", re.DOTALL)


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that an error carries, wherever its library keeps it."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        found = _of_boto(response, "HTTPStatusCode")
        return found if isinstance(found, int) else None
    for holder in (error, response):
        for name in ("status_code", "http_status", "status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and 100 <= value < 600:
                return value
    return None


def retry_after(error: BaseException) -> float | None:
    """Return the seconds that a provider asks to wait, by the headers of its response.

    Example:
        >>> class Busy(Exception):
        ...     class response:
        ...         headers = {"retry-after": "7"}
        >>> retry_after(Busy())
        7.0
    """
    for cause in _chain(error):
        response = getattr(cause, "response", None)
        headers = getattr(response, "headers", None)
        if isinstance(response, Mapping):
            headers = _of_boto(response, "HTTPHeaders")
        if not isinstance(headers, Mapping):
            continue
        for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
            seconds = _seconds(headers.get(name), unit)
            if seconds is not None:
                return seconds
    return None


def _seconds(value: object, unit: float) -> float | None:
    """Return a number, or the seconds until a date; None where it is neither."""
    if value is None:
        return None
    try:
        seconds = float(str(value)) * unit
    except ValueError:
        try:
            then = parsedate_to_datetime(str(value))
            seconds = (then.astimezone(UTC) - datetime.now(UTC)).total_seconds()
        except (ValueError, OverflowError):  # no date, or one beyond the calendar's ends
            return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def _of_boto(response: Mapping[str, Any], name: str) -> Any:
    about = response.get("ResponseMetadata")
    return about.get(name) if isinstance(about, Mapping) else None


def is_overflow(error: BaseException) -> bool:
    """Whether a provider says that the request was too long for its model.

    Example:
        >>> is_overflow(ValueError("prompt is too long: 205371 tokens > 200000 maximum"))
        True
    """
    for cause in _chain(error):
        if isinstance(cause, known(_ERRORS, "ContextOverflowError")):
            return True
        status = _failed_with(cause)
        if "RateLimit" in type(cause).__name__:  # "too many tokens" in a minute, not in a request
            continue
        if status == _TOO_LARGE:
            return True
        told = _OVERFLOW.search(str(cause)) or _OVERFLOW_KINDS & {*_kinds(cause)}
        if status in _OVERFLOW_STATUS and told:
            return True
    return False


def lasts(error: BaseException) -> bool | None:
    """Tell whether the same request is certain to fail again; None where nothing tells.

    An empty account lasts; a busy server, a lost connection and half of an answer do not.

    Example:
        >>> lasts(PermissionError("no key")), lasts(ConnectionError()), lasts(RuntimeError("?"))
        (True, False, None)
    """
    for cause in _chain(error):
        status, kinds = _failed_with(cause), {*_kinds(cause)}
        names = " ".join(kind.__name__ for kind in type(cause).__mro__)
        said = " ".join([str(cause), *kinds])
        retryable = getattr(cause, "is_retryable", None)
        if _NO_MONEY.search(said):
            return True
        if status is not None:
            return status not in _TRANSIENT_STATUS and status < 500
        if retryable is True or kinds & _TRANSIENT_KINDS:
            return False
        if isinstance(cause, json.JSONDecodeError) or _TRANSIENT_NAMES.search(names):
            return False
        if (
            retryable is False
            or isinstance(cause, _FINAL_KINDS)
            or _FINAL_NAMES.search(names)
            or _FINAL_TEXT.search(said)
        ):
            return True
    return None


def is_timeout(error: BaseException) -> bool:
    """Whether nothing came back in time."""
    return isinstance(error, (TimeoutError, known(_ERRORS, "ModelTimeoutError"))) or any(
        "Timeout" in kind.__name__ for kind in type(error).__mro__
    )


def is_way_out(error: BaseException) -> bool:
    """Whether this is how LangGraph leaves a node: to ask a person, or for a parent's command.

    Example:
        >>> from langgraph.errors import GraphInterrupt
        >>> is_way_out(GraphInterrupt()), is_way_out(RuntimeError("boom"))
        (True, False)
    """
    return any(kind.__name__ == "GraphBubbleUp" for kind in type(error).__mro__)


def explained(
    error: Exception,
    name: str,
    timeout: float | None,
    cure: str = "raise timeout",
    check: str = "its name and the rights of its account, or use another model",
    retry_unknown: bool = True,
) -> SummaryError:
    """Return a summariser's failure as one of ours, marked if it is worth another try.

    Args:
        error: what the call raised.
        name: the summariser.
        timeout: the seconds that it had.
        cure: what helps where those were not enough, besides a faster model.
        check: what to look at where nothing tells what is wrong.
        retry_unknown: whether an error that nothing tells anything of is worth another try, as
            LangChain has it for models.

    Raises:
        GraphBubbleUp: what LangGraph leaves a node by is no failure, and passes.
    """
    if isinstance(error, SummaryError):
        return error
    if is_way_out(error):
        raise error
    said = _short(" ".join(str(error).split())) or "no explanation"
    what = f"{type(error).__name__}: {said}"
    found: SummaryError
    if is_overflow(error):
        return SummarizerOverflow(f"the request was too long for {name} ({what})")
    if is_timeout(error):
        if isinstance(error, StepTimeout):
            took = f"{name} did not answer within {timeout:g} seconds; {cure}"
        else:
            took = f"{name} gave up waiting ({what}); raise the timeout of its client"
        found = SummarizerTimeout(f"{took}, or use a faster model to summarise")
    elif lasts(error) is False:
        found = SummaryError(f"{name} could not be reached or is busy ({what}); try again later")
    else:
        found = SummaryError(f"{name} failed ({what}); check {check}")
    passes = lasts(error)
    found.transient = retry_unknown if passes is None else not passes
    found.retry_after = retry_after(error)
    return found


def _short(text: str) -> str:
    """Return the start of a text, for an error.

    Half a word at the end goes: it may be half a secret, which no pattern would find.
    """
    return text if len(text) <= SAID else re.sub(r"[!-~]+\Z", "", text[:SAID]) + "..."


def answer_text(answer: object, name: str) -> str:
    """Return the text of an answer, without reasoning and a code fence around it.

    Args:
        answer: what the model returned.
        name: the summariser, for the error.

    Raises:
        SummaryRejected: it was cut off, refused, empty, or asks for tools instead.
        SummarizerOverflow: the window was full before it was finished.
    """
    if not is_message(answer):
        text = answer if isinstance(answer, str) else ""
        return _filled(text, name)
    if _unfinished(answer):
        broken = _rejected(f"the answer of {name} broke off before its end; try again later")
        broken.transient = True
        raise broken
    reasons = set(_reasons(answer))
    if reasons & WINDOW_FULL:
        raise SummarizerOverflow(f"the window of {name} was full before it had finished")
    if reasons & CUT_OFF:
        raise _rejected(
            f"the answer of {name} was cut off at its output limit; raise the model's max_tokens, "
            "or ask for a smaller summary"
        )
    refusal = answer.additional_kwargs.get("refusal")
    blocks = answer.content if isinstance(answer.content, list) else ()
    if refusal is None:
        refusal = next(
            (
                str(block.get("refusal", "no reason given"))
                for block in blocks
                if isinstance(block, Mapping) and block.get("type") == "refusal"
            ),
            None,
        )
    if reasons & REFUSED or refusal:
        why = refusal or ", ".join(sorted(reasons & REFUSED))
        raise _rejected(f"{name} refused to summarise ({why}); use another model for it")
    if is_ai_message(answer) and (answer.tool_calls or answer.invalid_tool_calls):
        raise _rejected(f"{name} asked for tools instead of summarising; use a model without tools")
    return _filled(str(answer.text), name)


def _filled(text: str, name: str) -> str:
    text = _THOUGHT.sub("", text, count=1).strip()
    fence = _FENCE.match(text)
    if fence and (fence[1].lower() in ("markdown", "md", "text", "txt") or "```" not in fence[2]):
        text = fence[2].strip()
    if not text:
        raise _rejected(f"the answer of {name} was empty; use another model to summarise")
    return text


def _rejected(problem: str) -> SummaryRejected:
    return SummaryRejected(problem, (problem,))


def _reasons(answer: BaseMessage) -> Iterator[str]:
    """Why the answer ended, in lower case, in the keys of all providers."""
    metadata = answer.response_metadata or {}
    for key in ("finish_reason", "stop_reason", "stopReason", "done_reason"):
        if isinstance(value := metadata.get(key), str):
            yield value.lower().removeprefix("finishreason.")
    details = metadata.get("incomplete_details")
    if isinstance(details, Mapping) and isinstance(reason := details.get("reason"), str):
        yield reason.lower()


def _unfinished(answer: BaseMessage) -> bool:
    """Whether a stream has ended without the event that says why: something on the way cut it.

    Only of providers that always say why; those of others, and fakes, often do not.
    """
    metadata = answer.response_metadata or {}
    ends = ("finish_reason", "stop_reason", "status")
    return metadata.get("model_provider") in ("openai", "anthropic") and not any(
        name in metadata for name in ends
    )


def _failed_with(error: BaseException) -> int | None:
    """Return the status, unless it is that of a stream that began well."""
    status = status_of(error)
    return None if status is not None and status < 300 else status


def _kinds(error: BaseException) -> Iterator[str]:
    """Return the names of an error in its body, and in its library."""
    body = getattr(error, "body", None)
    inner = body.get("error") if isinstance(body, Mapping) else None
    for holder in (body, inner):
        if isinstance(holder, Mapping):
            yield from (v for k in ("type", "code") if isinstance(v := holder.get(k), str))
    yield from (v for k in ("type", "code") if isinstance(v := getattr(error, k, None), str))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Return the error and what it was raised from, a few steps back."""
    cause: BaseException | None = error
    for _ in range(5):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__
