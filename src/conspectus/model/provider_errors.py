"""What providers send back: errors told apart, and the text of an answer that is whole.

Providers' own libraries are not imported: an error is known by its status, by the name of its
class, by a code in its body, or by what it says.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from conspectus._drive import StepTimeout
from conspectus._langchain import is_ai_message, is_message
from conspectus.errors import SummarizerOverflow, SummarizerTimeout, SummaryError, SummaryRejected


class Row(NamedTuple):
    """A form of error: one of `words` in its text, `names` of classes, `codes`, or its status."""

    lasts: bool | None = None
    words: str = ""  # alternatives between bars; both sides of a plus stand in it, in any order
    names: str = ""
    codes: str = ""
    status: Container[int | None] = ()

    def fits(self, error: BaseException) -> bool:
        """Whether an error has this form."""
        codes, names = [*_codes(error)], _names(error)
        said = " ".join([str(error), *codes]).lower().replace("_", " ")
        return (
            status_of(error) in self.status
            or any(code in self.codes.split() for code in codes)
            or any(name in names for name in self.names.split())
            or any(all(p in said for p in w.split(" + ")) for w in self.words.split("|") if w)
        )


OVERFLOWS = (
    Row(names="ContextOverflowError"),  # LangChain
    Row(status={413}),  # gateways, before any model has read it
    Row(words="prompt is too long|request too large|request is too large"),  # Anthropic
    Row(words="input is too long|input too long|messages are too long"),  # Bedrock
    Row(words="prompt too long|context too long|conversation is too long"),  # Ollama, Perplexity
    # OpenAI, Azure, Groq, vLLM, xAI, TensorRT-LLM
    Row(words="maximum context length|exceed + context length|reduce the length of"),
    Row(words="content': string too long|content: string too long|exceed + context window"),
    Row(words="maximum prompt length|maximum model length|maximum input length"),
    Row(words="exceed + context limit|input token + exceed"),  # Anthropic; Gemini
    Row(words="exceed + context size|prompt exceed + length"),  # llama.cpp
    Row(words="too many tokens|too many input tokens|too many prompt tokens"),  # Cohere
    Row(words="prompt token count + exceed|tokens limit reached"),  # GitHub
    Row(words="exceed + model token limit|range of input length"),  # Moonshot; DashScope
    Row(words="input length + exceed|max new tokens + must be"),  # Hugging Face
    Row(words="max seq len|max model len|model max length"),  # MLC, vLLM, Transformers
    Row(words="too large for model with"),  # Mistral
    Row(words="input exceed + length|request exceed + length|input exceed + token limit"),
    Row(words="prompt exceed + token limit|request exceed + token limit"),  # gateways
)
LASTING = (
    # An empty account: OpenAI, Anthropic
    Row(True, "insufficient quota|credit balance is too low|billing error"),
    Row(False, status={408, 425, 429, *range(500, 600)}),
    Row(True, status=range(300, 500)),
    # In the middle of a stream, without a status: Anthropic, OpenAI; LangChain's own mark
    Row(False, codes="overloaded_error rate_limit_error api_error timeout_error server_error"),
    Row(False, codes="rate_limit_exceeded server_overloaded retryable"),
    # OpenAI, Anthropic, Google, AWS
    Row(False, names="RateLimit Timeout Connection ServiceUnavailable InternalServer Overload"),
    Row(False, names="TooManyRequests Throttl ResourceExhausted"),
    # httpx, requests; half of an answer
    Row(False, names="ConnectError RemoteProtocolError ReadError WriteError JSONDecodeError"),
    # The same providers
    Row(True, "invalid api key|incorrect api key|missing api key", codes="final"),
    Row(True, names="Authenticat Unauthori Forbidden Permission AccessDenied NotFound"),
    Row(True, names="BadRequest InvalidRequest InvalidArgument UnprocessableEntity"),
    # Python, over a call that cannot even be made
    Row(True, names="ConspectusError NotImplementedError ImportError NameError SyntaxError"),
)
"""Forms of errors; the first that fits decides."""

SAID = 300  # characters of an error that ours repeats
_SIGNS = "".join(map(chr, range(0x21, 0x7F)))

CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
REFUSED = frozenset(
    """content_filter content_filtered refusal safety recitation blocklist prohibited_content spii
    guardrail_intervened language image_safety""".split()
)
"""Reasons for the end of an answer, in small letters."""

_MARK = r"<{0}(?:\w{{1,12}}:)?(?i:think|thinking|thought|reasoning)>|\[{0}THINK\]|◁{0}think▷"
# A thought begins a line. One that nobody opened ends a line, or the answer follows at once;
# anywhere else a mark is a word, as in a talk about such marks.
_THOUGHT = re.compile(
    rf"(?:(?m:^)[ \t]*|(?<=[>\]▷]))(?P<open>{_MARK.format('')})"
    rf"|(?:{_MARK.format('/')})(?P<ends>(?=[ \t]*(?:[\n#<]|\Z)|[-*•\w]))?"
)


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that an error carries, unless a stream began well with it."""
    response = getattr(error, "response", None)
    names = ("status_code", "http_status", "status", "code")
    values = [getattr(holder, name, None) for holder in (error, response) for name in names]
    if isinstance(response, Mapping):
        values = [_of_boto(response, "HTTPStatusCode")]
    fitting = (v for v in values if isinstance(v, int) and not isinstance(v, bool))
    status = next((value for value in fitting if 100 <= value < 600), 0)
    return status if status >= 300 else None


def retry_after(error: BaseException) -> float | None:
    """Return the seconds that a provider asks to wait, by the headers of its response."""
    for cause in _chain(error):
        response = getattr(cause, "response", None)
        headers = getattr(response, "headers", None)
        if isinstance(response, Mapping):
            headers = _of_boto(response, "HTTPHeaders")
        if isinstance(headers, Mapping):
            for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
                if (seconds := _seconds(headers.get(name), unit)) is not None:
                    return seconds
    return None


def _seconds(value: object, unit: float) -> float | None:
    """Return a number, or the seconds until a date; None where it is neither."""
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
    """Whether a provider says that the request was too long for its model."""
    fitting = (
        cause  # "too many tokens" in a minute is a rate limit, whatever its status
        for cause in _chain(error)
        if "RateLimit" not in _names(cause) and status_of(cause) in (None, 400, 413, 422)
    )
    return any(row.fits(cause) for cause in fitting for row in OVERFLOWS)


def lasts(error: BaseException) -> bool | None:
    """Tell whether the same request is certain to fail again; None where nothing tells."""
    fitting = (row for cause in _chain(error) for row in LASTING if row.fits(cause))
    return next((row.lasts for row in fitting), None)


def is_timeout(error: BaseException) -> bool:
    """Whether nothing came back in time."""
    return "Timeout" in _names(error)


def is_way_out(error: BaseException) -> bool:
    """Whether this is how LangGraph leaves a node: to ask a person, or for a parent's command."""
    return "GraphBubbleUp" in _names(error).split()


def explained(
    error: Exception,
    name: str,
    timeout: float | None,
    cure: str = "raise timeout",
    check: str = "its name and the rights of its account, or use another model",
    retry_unknown: bool = True,
) -> SummaryError:
    """Return the failure of the summariser `name` as one of ours, marked if it may pass.

    `cure` helps where the seconds of `timeout` were not enough, `check` where nothing tells what is
    wrong; `retry_unknown` says whether that is worth another try. An error by which LangGraph
    leaves a node is raised again.
    """
    if isinstance(error, SummaryError):
        return error
    if is_way_out(error):
        raise error
    text = " ".join(str(error).split()) or "no explanation"
    if len(text) > SAID:  # half a word may be half a secret, which no pattern would find
        text = text[:SAID].rstrip(_SIGNS) + "..."
    what, final = f"{type(error).__name__}: {text}", lasts(error)
    if is_overflow(error):
        return SummarizerOverflow(f"the request was too long for {name} ({what})")
    found = SummaryError(f"{name} failed ({what}); check {check}")
    if is_timeout(error):
        took = f"{name} gave up waiting ({what}); raise the timeout of its client"
        if isinstance(error, StepTimeout):
            took = f"{name} did not answer within {timeout:g} seconds; {cure}"
        found = SummarizerTimeout(f"{took}, or use a faster model to summarise")
    elif final is False:
        found = SummaryError(f"{name} could not be reached or is busy ({what}); try again later")
    found.transient = retry_unknown if final is None else not final
    found.retry_after = retry_after(error)
    return found


def answer_text(answer: object, name: str) -> str:
    """Return the text of an answer; raises as `text_of`, and where there is none."""
    if text := text_of(answer, name):
        return text
    raise _rejected(f"the answer of {name} was empty; use another model to summarise")


def text_of(answer: object, name: str) -> str:
    """Return the text of an answer, without thoughts and a code fence; it may be empty.

    Raises:
        SummaryRejected: it was cut off or refused, or asks for tools.
        SummarizerOverflow: the window was full before it was finished.
    """
    if not is_message(answer):
        return _written(answer) if isinstance(answer, str) else ""
    metadata = answer.response_metadata or {}
    ends = [metadata.get(key) for key in ("finish_reason", "stop_reason", "stopReason")]
    details = metadata.get("incomplete_details")
    ends += [metadata.get("done_reason"), isinstance(details, Mapping) and details.get("reason")]
    reasons = {end.lower().removeprefix("finishreason.") for end in ends if isinstance(end, str)}
    said_why = metadata.keys() & {"finish_reason", "stop_reason", "status"}
    if metadata.get("model_provider") in ("openai", "anthropic") and not said_why:
        # These say why a stream ended; others, and fakes, often do not.
        broken = _rejected(f"the answer of {name} broke off before its end; try again later")
        broken.transient = True
        raise broken
    if "model_context_window_exceeded" in reasons:
        raise SummarizerOverflow(f"the window of {name} was full before it had finished")
    if reasons & CUT_OFF:
        cure = "raise the model's max_tokens, or ask for a smaller summary"
        raise _rejected(f"the answer of {name} was cut off at its output limit; {cure}")
    blocks = [b for b in answer.content if isinstance(b, Mapping) and b.get("type") == "refusal"]
    refusals = [answer.additional_kwargs.get("refusal"), *(b.get("refusal") for b in blocks)]
    if blocks or any(refusals) or reasons & REFUSED:
        why = next(filter(None, refusals), ", ".join(sorted(reasons & REFUSED)))
        raise _rejected(f"{name} refused to summarise ({why}); use another model for it")
    if is_ai_message(answer) and (answer.tool_calls or answer.invalid_tool_calls):
        raise _rejected(f"{name} asked for tools instead of summarising; use a model without tools")
    return _written(str(answer.text))


def _written(text: str) -> str:
    """Return a text without thoughts and a fence around it; nothing where a thought has no end."""
    kept, at, inside = list[str](), 0, False
    for mark in _THOUGHT.finditer(text):
        if mark["open"]:
            kept += [] if inside else [text[at : mark.start()]]
            inside = True
        elif inside or mark["ends"] is not None:
            kept = kept if inside else []  # before a mark that only closes all was thought
            at, inside = mark.end(), False
    text = "" if inside else "".join([*kept, text[at:]]).strip()
    first, _, rest = text.partition("\n")
    if first.startswith("```") and rest.endswith("```"):
        body, kind = rest[:-3].rstrip("\n"), first[3:].strip().lower()
        if kind in ("markdown", "md", "text", "txt") or "```" not in body:
            return body.strip()
    return text


def _rejected(problem: str) -> SummaryRejected:
    return SummaryRejected(problem, (problem,))


def _names(error: BaseException) -> str:
    return " ".join(kind.__name__ for kind in type(error).__mro__)


def _codes(error: BaseException) -> Iterator[str]:
    """Return the names of an error in its body, and in its library."""
    body = getattr(error, "body", None)
    inner = body.get("error") if isinstance(body, Mapping) else None
    for name in ("type", "code"):
        held = (one.get(name) for one in (body, inner) if isinstance(one, Mapping))
        yield from (v for v in (*held, getattr(error, name, None)) if isinstance(v, str))
    retryable = getattr(error, "is_retryable", None)
    if isinstance(retryable, bool):
        yield "retryable" if retryable else "final"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Return the error and what it was raised from, a few steps back."""
    cause: BaseException | None = error
    for _ in range(5):
        if cause is not None:
            yield cause
            cause = cause.__cause__
