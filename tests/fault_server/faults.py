"""Make the answers of a script, and the faults of a provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool in an answer; by default its id names the request and the place in it."""

    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of the request and the answer to report, true or not."""

    input: int
    output: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a model; by default with the reason of its calls, and the server's count."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    stop: str | None = None
    usage: Usage | None = None

    @property
    def ends(self) -> str:
        return self.stop or ("tool_calls" if self.calls else "stop")


@dataclass(frozen=True, slots=True)
class HttpError:
    """A refusal with a status, and a body in the form of each provider."""

    status: int
    message: str
    type: str = "invalid_request_error"
    openai_type: str = "invalid_request_error"
    openai_code: str | None = None
    openai_param: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    anthropic_status: int | None = None
    anthropic_message: str | None = None


@dataclass(frozen=True, slots=True)
class Broken:
    """An answer that does not arrive as it should."""

    how: str
    answer: Answer
    seconds: float = 0.0
    error: HttpError | None = None


Fault = HttpError | Broken
Reply = str | Answer | Fault

TEXT = "This is an answer of a few words, and it goes on for a while before it comes to its end."


def context_length(limit: int, sent: int) -> HttpError:
    """Refuse a request that is too long for the model, with its limit and the counted tokens."""
    return HttpError(
        400,
        f"This model's maximum context length is {limit} tokens. However, your messages resulted "
        f"in {sent} tokens. Please reduce the length of the messages.",
        openai_code="context_length_exceeded",
        openai_param="messages",
        anthropic_message=f"prompt is too long: {sent} tokens > {limit} maximum",
    )


def bad_request(message: str) -> HttpError:
    return HttpError(400, message)


def not_found(name: str) -> HttpError:
    return HttpError(404, f"{name} was not found", "not_found_error")


def unauthorized() -> HttpError:
    return HttpError(
        401,
        "Incorrect API key provided.",
        "authentication_error",
        openai_code="invalid_api_key",
        anthropic_message="invalid x-api-key",
    )


def request_timeout() -> HttpError:
    return HttpError(408, "The request timed out.", "timeout_error", "timeout")


def too_large() -> HttpError:
    """Refuse a request of too many bytes, as a gateway does, unread."""
    return HttpError(413, "The request exceeds the maximum size.", "request_too_large")


def rate_limited(retry_after: float | None = None) -> HttpError:
    """Refuse too many tokens in a minute; `retry_after` is a header, in seconds."""
    return HttpError(
        429,
        "Rate limit reached on tokens per min: Limit 30000, Used 29000, Requested 2000.",
        "rate_limit_error",
        "tokens",
        "rate_limit_exceeded",
        headers=_retry_after(retry_after),
    )


def no_credit() -> HttpError:
    """Refuse an empty account, for which no waiting helps."""
    return HttpError(
        429,
        "You exceeded your current quota.",
        openai_type="insufficient_quota",
        openai_code="insufficient_quota",
        anthropic_status=400,
        anthropic_message="Your credit balance is too low to access the API.",
    )


def server_error() -> HttpError:
    return HttpError(500, "The server had an error.", "api_error", "server_error")


def unavailable(retry_after: float | None = None) -> HttpError:
    """Report an overloaded provider (503, or 529 with Anthropic); `retry_after` in seconds."""
    return HttpError(
        503,
        "The server is overloaded.",
        "overloaded_error",
        "server_error",
        headers=_retry_after(retry_after),
        anthropic_status=529,
        anthropic_message="Overloaded",
    )


def blocked() -> HttpError:
    """Refuse the request itself by a filter."""
    return HttpError(
        400,
        "The prompt was filtered by the content management policy.",
        openai_code="content_filter",
        openai_param="prompt",
        anthropic_message="Output blocked by content filtering policy",
    )


def slow(seconds: float, text: str = TEXT) -> Broken:
    """Answer in small pieces, in this number of seconds in all."""
    return Broken("slow", Answer(text), seconds)


def cut_before_headers() -> Broken:
    return Broken("cut before headers", Answer())


def cut_in_the_middle(text: str = TEXT) -> Broken:
    return Broken("cut in the middle", Answer(text))


def ends_early(text: str = TEXT) -> Broken:
    """End a stream cleanly after half of the text, as a proxy does that has lost its provider."""
    return Broken("ends early", Answer(text))


def error_in_the_stream(text: str = TEXT, error: HttpError | None = None) -> Broken:
    """Begin a stream well, and send an error after half of the text; by default, of overload."""
    return Broken("error in the stream", Answer(text), error=error or unavailable())


def invalid_json(text: str = TEXT) -> Broken:
    """Answer with status 200 and half of a JSON body."""
    return Broken("invalid JSON", Answer(text))


def empty_choices() -> Broken:
    """Answer with status 200 and no choices (OpenAI) or no content (Anthropic)."""
    return Broken("empty", Answer())


def content_filter(text: str = "") -> Answer:
    return Answer(text, stop="content_filter")


def refusal(text: str) -> Answer:
    return Answer(text, stop="refusal")


def length(text: str = TEXT) -> Answer:
    return Answer(text, stop="length")


def lying_usage(input: int, output: int, text: str = TEXT) -> Answer:
    return Answer(text, usage=Usage(input, output))


def _retry_after(seconds: float | None) -> tuple[tuple[str, str], ...]:
    return () if seconds is None else (("retry-after", f"{seconds:g}"),)
