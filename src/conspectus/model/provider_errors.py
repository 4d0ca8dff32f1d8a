"""What errors of providers mean, without their libraries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from conspectus.bridge import StepTimeout
from conspectus.errors import SummarizerOverflow, SummarizerTimeout, SummaryError
from conspectus.model.answer_limits import limits_named_by
from conspectus.observe.observation import is_way_out, safe_text

OVERFLOWS = (
    ("prompt is too long|request too large|request is too large", "Anthropic"),
    ("exceed + context limit|exceed + context length|exceed + context size", "Anthropic"),
    ("exceed + context window|maximum context length|reduce the length of", "OpenAI, Azure, Groq"),
    ("content': string too long|content: string too long|input tokens exceed", "OpenAI"),
    ("input is too long|input too long|messages are too long|expected maxlength", "Bedrock"),
    ("token count + exceed + maximum|input token + exceed|token count + only supports", "Google"),
    ("exceed + model token limit|prompt exceed + token limit|range of input length", "Moonshot"),
    ("prompt too long|context too long|conversation is too long", "Ollama, Perplexity"),
    ("maximum prompt length|maximum model length|maximum input length", "xAI, vLLM, TensorRT"),
    ("too many tokens|too many input tokens|too many prompt tokens", "Cohere"),
    ("total number of tokens + cannot exceed|contextwindowexceeded", "Cohere, LiteLLM"),
    ("prompt token count + exceed|tokens limit reached|request body too large + tokens", "GitHub"),
    ("input length + exceed|max new tokens + must be|must have less than + tokens", "Hugging Face"),
    ("max seq len|max model len|model max length|maximum sequence length", "vLLM, Transformers"),
    ("too large for model with|contextoverflowerror", "Mistral, LangChain"),
    ("input exceed + length|request exceed + length|input exceed + token limit", "gateways"),
    ("keep the first + context|tokens to keep + context length|context overflow", "LM Studio"),
    ("longer than the model's context length|number of input tokens must be", "SGLang, Yandex"),
    ("prompt length + should not exceed|exceed max num tokens", "TensorRT-LLM"),
    ("exceed max input len|exceeds the maximum number of tokens", "TensorRT-LLM, Vertex AI"),
    ("more than max tokens allowed|prompt 超长|'1261'|超出最大长度", "Zhipu, Z.AI"),
    ("text length is + outside the range|exceed max message tokens", "Yandex, Volcengine Ark"),
    ("413 + tokens limit exceeded|make the prompt shorter", "GigaChat, Writer"),
    ("maximum allowed number of input tokens|total tokens + exceed", "gateways"),
    ("content length exceeds threshold|effective context limit reached", "Kiro, gateways"),
    ("larger than the maximum context|context window is full", "MLX, Jan"),
    ("too long to fit into the model|you passed + input tokens + context length", "vLLM"),
    ("current length is + while limit is|prompt tokens limit exceeded", "Cerebras, OpenRouter"),
    ("max tokens of + exceeded|prompt token + cannot be", "Snowflake, Databricks, Lemonade"),
    ("maximum supported sequence length|prompt length exceed", "SambaNova, AI21"),
    ("prompt exceed + length|inputs must have less than", "Gemini, gateways"),
    ("larger than the model input length|input length error", "MLC, LMDeploy"),
    ("max input characters|prompt tokens too long|exceed + available context", "Baidu, llama.cpp"),
    ("输入 + 过长|内容过长|提示词过长|上下文过长|上下文超长|prompt 过长|prompt过长", "Hunyuan"),
    ("输入 + token + 超|token 总数 + 超|token 数 + 超|token数 + 超|tokens 总数 + 超", "StepFun"),
    ("上下文窗口|上下文长度|超过模型 + 长度|最大上下文|请求超过模型", "relays in China"),
    ("请求的 tokens 超|提示词长度 + 超|输入长度 + 超|内容超过最大长度", "relays, too"),
    ("supports only + k context|total message size + exceeds limit", "Kimi"),
    ("message token length|but the configured context size", "Qwen, DS4"),
    ("n keep + >= n ctx|too big compared to kv", "LM Studio, llama-box"),
    ("too large to process. increase|request payload size exceeds", "llama.cpp, Gemini"),
    ("messages': array too long|input': array too long|too much media", "OpenAI, Anthropic"),
    ("extra usage + long context", "Claude's subscriptions"),
)
"""Words for a request that is too long, and who uses them. A bar divides alternatives; a plus
divides words that occur together in any order."""

MOST_CAUSES = 5
"""The most errors of a chain of causes that are read."""

# Parts of the names of errors, and of the codes in their bodies. The first are of failures that may
# pass, the second of failures that the same request would cause again.
_PASSING = """overload ratelimit apierror timeout servererror serviceunavailable toomanyrequests
    throttl resourceexhausted connect protocolerror readerror writeerror jsondecodeerror""".split()
_LASTING = """authenticat unauthori forbidden permission accessdenied notfound badrequest
    syntaxerror invalidrequest invalidargument unprocessable conspectuserror notimplemented
    importerror nameerror""".split()
_NO_CREDIT = ("insufficient quota", "credit balance is too low", "billing error")
_BUSY = (408, 425, 429, *range(500, 600))  # statuses of failures that may pass

QUOTED_CHARACTERS = 300
"""The most characters of an error that our error quotes."""

_VISIBLE_ASCII = "".join(map(chr, range(0x21, 0x7F)))


def retry_after(error: BaseException) -> float | None:
    """Return the seconds that a provider asks to wait, by the header of its response."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    value = headers.get("retry-after") if isinstance(headers, Mapping) else None
    if not isinstance(value, str) or not value.replace(".", "", 1).isdecimal():
        return None
    return float(value) or None


def is_overflow(error: BaseException, *holders: object) -> bool:
    """Tell whether a provider says that a request was too long.

    Args:
        error: what the call raised.
        holders: settings or models that limit the answer of the request.
    """
    patterns = [
        alternative.split(" + ") for words, _ in OVERFLOWS for alternative in words.split("|")
    ]
    if all(limit > 0 for limit in limits_named_by(holders)):
        patterns.append(["tokens must be at least 1, got"])  # vLLM, of what the window leaves
    for facts in _facts_of(error):
        names_overflow = any(all(part in facts.words for part in pattern) for pattern in patterns)
        if (facts.status == 413 or names_overflow) and _may_be_overflow(facts):
            return True
    return False


def _may_be_overflow(facts: _ErrorFacts) -> bool:
    """Tell whether an error is about one request. Words about a rate may be the same.

    "Too many tokens" in a minute is a rate limit, whatever its status, unless one request alone has
    too many, or more than a subscription of Claude's takes. Gateways and local servers report a
    request that is too long with any 5xx.
    """
    words = facts.words
    is_one_request = "request too large for" in words and "requested" in words
    is_subscription = "extra usage" in words and "long context" in words
    if is_one_request or is_subscription:
        return True
    if "ratelimit" in facts.names or "rate limit" in words:
        return False
    status = facts.status
    return status in (None, 400, 401, 402, 413, 422) or status >= 500


def will_come_again(error: BaseException) -> bool | None:
    """Tell whether the same request is certain to fail again; None where nothing tells."""
    for facts in _facts_of(error):
        if any(words in facts.words for words in _NO_CREDIT):
            return True
        if facts.status is not None:
            return facts.status not in _BUSY
        if any(part in facts.names for part in _PASSING):
            return False
        if any(part in facts.names for part in _LASTING) or "api key" in facts.words:
            return True
    return None


def as_summary_error(
    error: Exception, name: str, timeout: float | None, *, is_model: bool = True
) -> SummaryError:
    """Return the failure of a summariser as one of our errors, marked if it may pass.

    An exception by which LangGraph leaves a node, such as an interrupt, is raised again.

    Args:
        error: what the call raised.
        name: the name of the summariser.
        timeout: seconds that it had.
        is_model: whether it is a model, and not a caller's function.
    """
    if isinstance(error, SummaryError):
        return error
    if is_way_out(error):
        raise error
    if is_overflow(error):
        return SummarizerOverflow(f"the request was too long for {name} ({_description_of(error)})")
    comes_again = will_come_again(error)
    failure = _failure(error, name, timeout, is_busy=comes_again is False, is_model=is_model)
    failure.transient = is_model if comes_again is None else not comes_again
    failure.retry_after = retry_after(error)
    return failure


def _description_of(error: Exception) -> str:
    """Return the class and the beginning of the message of an error, on one line."""
    text = " ".join(safe_text(error).split()) or "no explanation"
    if (
        len(text) > QUOTED_CHARACTERS
    ):  # half a word may be half a secret, which no pattern would find
        text = text[:QUOTED_CHARACTERS].rstrip(_VISIBLE_ASCII) + "..."
    return f"{type(error).__name__}: {text}"


def _failure(
    error: Exception, name: str, timeout: float | None, *, is_busy: bool, is_model: bool
) -> SummaryError:
    """Say what went wrong, and what to do."""
    if isinstance(error, StepTimeout):
        return SummarizerTimeout(
            f"{name} did not answer within {timeout:g} seconds; raise summarizer_timeout, have it "
            "write less, or use a faster model to summarise"
        )
    description = _description_of(error)
    answered = getattr(error, "status_code", None) is not None  # with 408, say, which is no wait
    if "Timeout" in _class_names(error) and not answered:
        return SummarizerTimeout(
            f"{name} gave up waiting ({description}); raise the timeout of its client, or use a "
            "faster model to summarise"
        )
    if is_busy:
        return SummaryError(
            f"{name} could not be reached or is busy ({description}); try again later"
        )
    if is_model:
        remedy = "check its name and the rights of its account, or use another model"
    else:
        remedy = "check the function and what it calls"
    return SummaryError(f"{name} failed ({description}); {remedy}")


class _ErrorFacts(NamedTuple):
    """What an error says, in small letters."""

    status: int | None  # None for errors without one, and for 2xx: a stream may fail later
    names: str  # of its classes, with its codes, without underscores
    words: str  # its message, its class names and its codes, with spaces for underscores


def _facts_of(error: BaseException) -> Iterator[_ErrorFacts]:
    """Yield what an error says, and each of its causes."""
    cause: BaseException | None = error
    for _ in range(MOST_CAUSES):
        if cause is None:
            return
        codes = [safe_text(getattr(cause, name, "")) for name in ("body", "type", "code")]
        names = " ".join([_class_names(cause), *codes]).lower()
        yield _ErrorFacts(
            status=_status(cause),
            names=names.replace("_", ""),
            words=f"{safe_text(cause).lower()} {names}".replace("_", " "),
        )
        cause = cause.__cause__


def _status(error: BaseException) -> int | None:
    """Return the HTTP status of a failure; None where there is none, or no failure."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and 100 <= value < 600:
                return value if value >= 300 else None
    return None


def _class_names(error: BaseException) -> str:
    return " ".join(base.__name__ for base in type(error).__mro__)
