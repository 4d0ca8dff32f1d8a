"""What providers send back: errors told apart without their libraries, and whole answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from conspectus._langchain import is_ai_message, is_message
from conspectus.bridge import StepTimeout
from conspectus.errors import SummarizerOverflow, SummarizerTimeout, SummaryError, SummaryRejected
from conspectus.messages.blocks import blocks_of
from conspectus.model.windows import answer_limits
from conspectus.observe.events import as_text, is_way_out

# Words for a request that is too long, and whose they are. Bars stand between alternatives; both
# sides of a plus occur, in any order.
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
# Parts of names of classes, and of codes in an error's body
_PASSES = """overload ratelimit apierror timeout servererror serviceunavailable toomanyrequests
    throttl resourceexhausted connect protocolerror readerror writeerror jsondecodeerror""".split()
_LASTS = """authenticat unauthori forbidden permission accessdenied notfound badrequest syntaxerror
    invalidrequest invalidargument unprocessable conspectuserror notimplemented importerror
    nameerror""".split()
_NO_CREDIT = ("insufficient quota", "credit balance is too low", "billing error")
_BUSY = (408, 425, 429, *range(500, 600))

WRAPPERS = ("summary", "answer", "output", "response", "result", "notes")
"""Tags that models put around a whole answer."""

SAID = 300  # characters of an error that ours repeats
_SIGNS = "".join(map(chr, range(0x21, 0x7F)))

ENDS = """finish_reason finishReason stop_reason stopReason done_reason completionReason
    completion_reason stop_type""".split()
"""Fields of an answer's metadata that say why it ends."""

# Reasons for the end of an answer, in small letters
FULL = {"model_context_window_exceeded", "model_length"}
CUT_OFF = {"length", "max_tokens", "max_output_tokens", "max_length", "limit", "reason_max_len"}
REFUSED = {
    *"""content_filter content_filtered refusal safety recitation blocklist spii language
    prohibited_content guardrail_intervened image_safety""".split()
}

_MARK = r"<{0}(?:\w{{1,12}}:)?(?i:think|thinking|thought|reasoning)>|\[{0}THINK\]|◁{0}think▷"
# A thought begins a line. One that nobody opened ends a line, or the answer follows at once;
# anywhere else a mark is a word, as in a talk about such marks.
_THOUGHT = re.compile(
    rf"(?:(?m:^)[ \t]*|(?<=[>\]▷]))(?P<open>{_MARK.format('')})"
    rf"|(?:{_MARK.format('/')})(?P<ends>(?=[ \t]*(?:[\n#<]|\Z)|[-*•\w]))?"
)


def retry_after(error: BaseException) -> float | None:
    """Return the seconds that a provider asks to wait, by the header of its response."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    said = headers.get("retry-after") if isinstance(headers, Mapping) else None
    is_number = isinstance(said, str) and said.replace(".", "", 1).isdecimal()
    return float(said) or None if is_number else None  # type: ignore[arg-type]


def is_overflow(error: BaseException, *holders: object) -> bool:
    """Whether a provider says that a request was too long; `holders` name limits of its answer."""
    ways = [way.split(" + ") for words, _ in OVERFLOWS for way in words.split("|")]
    if all(limit > 0 for limit in answer_limits(holders)):
        ways.append(["tokens must be at least 1, got"])  # vLLM, of what the window leaves
    return any(
        status == 413 or any(all(part in said for part in way) for way in ways)
        for status, about, said in _read(error)
        # "too many tokens" in a minute is a rate limit, whatever its status, unless one request has
        # too many alone, or more than a subscription of Claude's takes. Relays and servers of one's
        # own tell of one that is too long with any 5xx.
        if ("request too large for" in said and "requested" in said)
        or ("extra usage" in said and "long context" in said)
        or (
            not ("ratelimit" in about or "rate limit" in said)
            and (status in (None, 400, 401, 402, 413, 422) or status >= 500)
        )
    )


def lasts(error: BaseException) -> bool | None:
    """Tell whether the same request is certain to fail again; None where nothing tells."""
    for status, about, said in _read(error):
        if any(words in said for words in _NO_CREDIT):
            return True
        if status is not None:
            return status not in _BUSY
        if any(part in about for part in _PASSES):
            return False
        if any(part in about for part in _LASTS) or "api key" in said:
            return True
    return None


def explained(
    error: Exception, name: str, timeout: float | None, *, is_model: bool = True
) -> SummaryError:
    """Return the failure of the summariser `name` as one of ours, marked if it may pass.

    How LangGraph leaves a node is raised again.
    """
    if isinstance(error, SummaryError):
        return error
    if is_way_out(error):
        raise error
    text = " ".join(as_text(error).split()) or "no explanation"
    if len(text) > SAID:  # half a word may be half a secret, which no pattern would find
        text = text[:SAID].rstrip(_SIGNS) + "..."
    what, final = f"{type(error).__name__}: {text}", lasts(error)
    if is_overflow(error):
        return SummarizerOverflow(f"the request was too long for {name} ({what})")
    if isinstance(error, StepTimeout):
        cure = "raise summarizer_timeout, have it write less, or use a faster model to summarise"
        failure: SummaryError = SummarizerTimeout(
            f"{name} did not answer within {timeout:g} seconds; {cure}"
        )
    # A provider that answers, as with 408, does so at once.
    elif "Timeout" in _names(error) and getattr(error, "status_code", None) is None:
        cure = "raise the timeout of its client, or use a faster model to summarise"
        failure = SummarizerTimeout(f"{name} gave up waiting ({what}); {cure}")
    elif final is False:
        failure = SummaryError(f"{name} could not be reached or is busy ({what}); try again later")
    else:
        account = "its name and the rights of its account, or use another model"
        check = account if is_model else "the function and what it calls"
        failure = SummaryError(f"{name} failed ({what}); check {check}")
    failure.transient = is_model if final is None else not final
    failure.retry_after = retry_after(error)
    return failure


def _reasons(answer: Any) -> set[str]:
    """Return why an answer ends, in small letters."""
    about = answer.response_metadata or {}
    ends = [about.get(name) for name in ENDS]
    if isinstance(details := about.get("incomplete_details"), Mapping):
        ends.append(details.get("reason"))
    return {end.lower().removeprefix("finishreason.") for end in ends if isinstance(end, str)}


def fills_window(answer: object) -> bool:
    """Tell whether an answer is empty, as its request has left no room for one in the window."""
    if not is_ai_message(answer) or answer.tool_calls or str(answer.text).strip():
        return False
    return bool(FULL & _reasons(answer))


def is_cut_off(answer: object) -> bool:
    """Tell whether an answer ended because it was as long as was allowed, by whomever."""
    if not is_message(answer):
        return False
    reasons = _reasons(answer)
    return bool(reasons & CUT_OFF) and not reasons & (FULL | REFUSED)


def text_of(answer: object, name: str, *, may_be_cut: bool = False) -> str:
    """Return the text of an answer, without thoughts, a fence or tags; it may be empty.

    Raises a `SummaryError` where it was refused or asks for tools, and unless `may_be_cut` where it
    was cut off.
    """
    if not is_message(answer):
        return _written(answer) if isinstance(answer, str) else ""
    about, reasons = answer.response_metadata or {}, _reasons(answer)
    blocks = [block for block in blocks_of(answer) if block.get("type") == "refusal"]
    why = [answer.additional_kwargs.get("refusal"), *(b.get("refusal", "refusal") for b in blocks)]
    why = [*filter(None, why), *sorted(reasons & REFUSED)]
    # These two say why a stream ended; others, and fakes, often do not.
    maker = about.get("model_provider")
    complete = reasons or "status" in about or maker not in ("openai", "anthropic")
    if FULL & reasons:
        raise SummarizerOverflow(f"the window of {name} was full before it had finished")
    wrong = ""
    if not complete:
        wrong = "broke off before its end; try again later"
    elif reasons & CUT_OFF and not may_be_cut:
        wrong = (
            "was cut off, and not at a limit that was set for it; set the model's max_tokens, or "
            "use a model with a larger window"
        )
    elif why:
        wrong = f"was refused ({why[0]}); use another model for it"
    elif is_ai_message(answer) and (answer.tool_calls or answer.invalid_tool_calls):
        wrong = "asked for tools instead of summarising; use a model without tools"
    if wrong:
        rejected = SummaryRejected(f"the answer of {name} {wrong}")
        rejected.transient = not complete
        raise rejected
    return _written(str(answer.text), has_end=not may_be_cut)


def _written(text: str, *, has_end: bool = True) -> str:
    """Return a text without thoughts and what encloses it; nothing where a thought has no end.

    A text without its end may lack the end of what encloses it, too.
    """
    kept, at, inside = list[str](), 0, False
    for mark in _THOUGHT.finditer(text):
        if mark["open"]:
            kept += [] if inside else [text[at : mark.start()]]
            inside = True
        elif inside or mark["ends"] is not None:
            kept = kept if inside else []  # before a mark that only closes all was thought
            at, inside = mark.end(), False
    text = "" if inside else "".join([*kept, text[at:]]).strip()
    fences = text.count("```")
    is_fenced = (fences == 2 and text.endswith("```")) or (fences == 1 and not has_end)
    if is_fenced and text.startswith("```"):
        text = text.partition("\n")[2].removesuffix("```").strip()
    name, _, rest = text[1:].partition(">")  # a gateway's page or error stays as it is
    if not text.startswith("<") or name not in WRAPPERS or text.count(f"<{name}>") != 1:
        return text
    ends = text.count(f"</{name}>")
    is_wrapped = (ends == 1 and text.endswith(f"</{name}>")) or (ends == 0 and not has_end)
    return rest.removesuffix(f"</{name}>").strip() if is_wrapped else text


def _names(error: BaseException) -> str:
    return " ".join(kind.__name__ for kind in type(error).__mro__)


def _read(error: BaseException) -> Iterator[tuple[int | None, str, str]]:
    """Yield status, names with codes, and words of an error and its causes, in small letters."""
    cause: BaseException | None = error
    for _ in range(5):
        if cause is None:
            return
        holders = (cause, getattr(cause, "response", None))
        values = (
            getattr(one, n, None) for one in holders for n in ("status_code", "status", "code")
        )
        status = next((one for one in values if isinstance(one, int) and 100 <= one < 600), 0)
        codes = (as_text(getattr(cause, name, "")) for name in ("body", "type", "code"))
        about = " ".join([_names(cause), *codes]).lower()
        said = f"{as_text(cause).lower()} {about}".replace("_", " ")
        # A stream may begin well.
        yield (status if status >= 300 else None), about.replace("_", ""), said
        cause = cause.__cause__
