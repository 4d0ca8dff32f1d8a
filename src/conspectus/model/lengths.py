"""How long a model's answer may become by its own limit, and what is used of one that ended there.

A limit is set on a model (`ChatOpenAI(max_tokens=256)`) or bound to it
(`model.bind(max_tokens=128)`), below retries, fallbacks and configurations. An answer that ends at
a limit that the caller has set is short on purpose; one that ends for another reason, such as a
full window, is not.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from conspectus.model.chunks import split_text

LIMITS = (
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "num_predict",
    "max_new_tokens",
    "max_tokens_to_sample",
    "maxTokens",
    "maxOutputTokens",
    "n_predict",
)
"""Names under which models and providers take the limit of an answer."""

INSIDE = (
    "model_kwargs",
    "extra_body",
    "generation_config",
    "generationConfig",
    "options",
    "inferenceConfig",
    "additional_model_request_fields",
    "pipeline_kwargs",
    "parameters",
)
"""Settings that hold further ones, in which a limit may stand."""

DEEPEST = 16
"""Wrappers around a model that are looked through."""

REACHED = 0.9
"""Share of a limit that an answer which ended there has, as its provider counts tokens. A shorter
answer has filled the window instead."""

UNCOUNTED = 4
UNSEEN_TOKENS = 256
"""Where no provider counts, an answer has ended at its limit if so many times its estimate, and so
many tokens of thoughts that are not shown, reach that limit."""

NEARBY = 40
"""Characters on either side of a mark that tell whether a sentence ends there."""

LOOP = 40
"""Factor from which on a compressed text is a loop. Lists of like lines reach 20, prose 5."""

LEAST_PART = 0.25
"""Share of a text that its whole sentences must make up. Below it the text is cut at a word."""


@dataclass(frozen=True, slots=True)
class AnswerLimit:
    """The limit of the answers of one model."""

    tokens: int
    is_set: bool  # by the caller; a default of the model's class is not


# The limits of a model


def limits_of(model: object) -> list[AnswerLimit]:
    """Return the limit of each model that may answer: of this one, and of its fallbacks."""
    limits = (_first_limit(holders) for holders in _answering(model, (), {}, DEEPEST))
    return [limit for limit in limits if limit is not None]


def answer_limit(model: object) -> int | None:
    """Return the tokens that an answer of a model can have at most; None if nothing limits it."""
    return min((limit.tokens for limit in limits_of(model)), default=None)


def _answering(
    model: Any, outer: tuple[object, ...], configured: Mapping[str, Any], depth: int
) -> Iterator[tuple[object, ...]]:
    """Yield, for each model that may answer, the objects that set its options, outermost first.

    Args:
        model: a model, or a wrapper around one.
        outer: objects of the wrappers above.
        configured: values that those set for configurable fields.
        depth: wrappers that are still looked through.
    """
    attributes: Mapping[str, Any] = getattr(model, "__dict__", None) or {}
    if not depth:
        return
    depth -= 1
    if attributes.get("fallbacks") and attributes.get("runnable") is not None:
        for candidate in (attributes["runnable"], *attributes["fallbacks"]):
            yield from _answering(candidate, outer, configured, depth)
    elif attributes.get("bound") is not None:  # options, retries, a configuration
        configured = {**_configurable(attributes), **configured}
        outer = (*outer, attributes.get("kwargs"))
        yield from _answering(attributes["bound"], outer, configured, depth)
    elif attributes.get("default") is not None and "fields" in attributes:  # configurable fields
        configured = {**_configurable(attributes), **configured}
        chosen = {
            name: configured[field.id]
            for name, field in (attributes["fields"] or {}).items()
            if getattr(field, "id", None) in configured
        }
        yield from _answering(attributes["default"], (*outer, chosen), configured, depth)
    elif attributes.get("last") is not None and attributes.get("first") is not None:  # a sequence
        steps = (attributes["first"], *(attributes.get("middle") or ()), attributes["last"])
        for step in steps:
            yield from _answering(step, outer, configured, depth)
    elif isinstance(attributes.get("_default_config"), Mapping):  # a model built at each call
        queued = attributes.get("_queued_declarative_operations") or ()
        bound = (options for _, _, options in reversed(queued) if isinstance(options, Mapping))
        yield (*outer, *bound, attributes["_default_config"])
    elif getattr(attributes.get("func"), "__self__", None) is not None:  # a method of a model
        yield from _answering(attributes["func"].__self__, outer, configured, depth)
    else:
        yield (*outer, model, attributes.get("llm"))


def _configurable(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values that a wrapper sets for configurable fields below it."""
    config = attributes.get("config") or {}
    return config.get("configurable") or {}


def _first_limit(holders: tuple[object, ...]) -> AnswerLimit | None:
    """Return the limit that holds: of options that are set twice, the outer ones."""
    for holder in holders:
        limits = _limits_in(holder)
        if limits:
            smallest = min(limits, key=lambda limit: limit.tokens)
            return smallest if smallest.tokens > 0 else None  # 0 and -1 stand for no limit
    return None


def _limits_in(holder: object) -> list[AnswerLimit]:
    """Return the limits that an object names, or the settings inside it."""
    limits = list[AnswerLimit]()
    for settings in (holder, *(_setting(holder, name) for name in INSIDE)):
        for name in LIMITS:
            value = _setting(settings, name)
            if isinstance(value, int) and not isinstance(value, bool):
                limits.append(AnswerLimit(value, _is_set(settings, name, value)))
    return limits


def _setting(holder: object, name: str) -> Any:
    if isinstance(holder, Mapping):
        return holder.get(name)
    try:
        return getattr(holder, name, None)
    except Exception:  # a property of somebody's own class
        return None


def _is_set(holder: object, name: str, value: int) -> bool:
    """Tell whether a caller has set a limit: it is bound, or no default of LangChain's classes."""
    if isinstance(holder, Mapping):
        return True
    profile = getattr(holder, "profile", None)
    if isinstance(profile, Mapping) and profile.get("max_output_tokens") == value:
        return False
    fields_set = getattr(holder, "model_fields_set", None)
    is_langchains = type(holder).__module__.startswith("langchain")
    return not is_langchains or fields_set is None or name in fields_set


def ends_at_limit(answer: Any, limits: list[AnswerLimit], count: Callable[[str], int]) -> bool:
    """Tell whether an answer that was cut off has reached a limit that its caller has set."""
    limits_set = [limit.tokens for limit in limits if limit.is_set]
    usage = getattr(answer, "usage_metadata", None)
    reported = usage.get("output_tokens") if isinstance(usage, Mapping) else None
    if reported:
        return any(reported >= REACHED * limit for limit in limits_set)
    estimate = count(str(getattr(answer, "content", answer)))
    return any(UNCOUNTED * estimate + UNSEEN_TOKENS >= limit for limit in limits_set)


# A text that is cut


# Signs that end a sentence wherever they stand, and those that do so before a space or at the end.
_ANYWHERE = "。！？｡؟۔।॥։።፧፨။។៕།༎᠃᠉꘎꛳"
_BEFORE_SPACE = ".!?…‼⁇⁈⁉｡"
_CLOSING = "\"'”’»›」』）)】］\\]》〉*_`"
_SOURCES = r"(?:[ \t]*[\[【][^\[\]【】\n]{1,200}[\]】][.。]?)*"
# A run of signs is tried once, from its beginning: a long one costs no more than its length.
_SENTENCE_END = re.compile(
    rf"(?:[{_ANYWHERE}]++[{_CLOSING}]*+"
    rf"|(?<![{_BEFORE_SPACE}])[{_BEFORE_SPACE}]++[{_CLOSING}]*+(?=\s|\Z)){_SOURCES}"
)
_LINE_END = re.compile(r"\n\s*")
_ITEM = re.compile(r"(?:[-*•+–—#|>]|\d{1,3}[.)]|[^\W\d_][.)])\s")
_HEADING = re.compile(r"\s*(?:#.*|\*\*[^*\n]*\*\*:?|[-*•+–—]|\d{1,3}[.)])\s*")
_LETTER = re.compile(r"(?:^|[\s(.])[^\W\d_]$")  # before the full stop of "z. B." and "J. S. Bach"
_NUMBER = re.compile(r"(?:^|\n)[^\S\n]*\d{1,3}$")  # before the full stop of an item
_CLAUSES = "，、；,;:：،؛"


def shortened(text: str, limit: int, count: Callable[[str], int]) -> str:
    """Return the beginning of a text in `limit` tokens, up to its last whole sentence."""
    beginning = split_text(text, limit, count)[0]
    return text if len(beginning) == len(text) else whole_sentences(beginning)


def whole_sentences(text: str) -> str:
    """Return a text that was cut anywhere up to its last whole sentence, line or item of a list.

    Where its sentences are only a small part of it, it is cut at a word. A heading that heads
    nothing any more is left out.

    Example:
        >>> whole_sentences("Ship on Friday. The budget is 3.5 million, and the tea")
        'Ship on Friday.'
    """
    text = text.rstrip(" \t")
    whole = _without_headings(text[: max(_ends(text), default=0)])
    if len(whole) >= LEAST_PART * len(text.strip()):
        return whole
    return _without_headings(_at_a_word(text)) or whole


def repeats_itself(text: str) -> bool:
    """Tell whether a text says the same over and over, as a model does that finds no end."""
    packed = zlib.compress(text.encode("utf-8", "replace"))
    return len(text) > LOOP * len(packed)


def _ends(text: str) -> Iterator[int]:
    """Yield the places behind sentences, and behind lines that are no part of a longer one."""
    for end in _SENTENCE_END.finditer(text):
        if text[end.start()] != "." or _is_full_stop(text, end.start(), end.end()):
            yield end.end()
    for end in _LINE_END.finditer(text):
        following = text[end.end() : end.end() + NEARBY]
        is_indented = end[0].rpartition("\n")[2] != ""
        begins_block = bool(_ITEM.match(following)) or end[0].count("\n") > 1 or not following
        if begins_block or not (is_indented or following[0].islower()):
            yield end.start()


def _is_full_stop(text: str, position: int, end: int) -> bool:
    """Tell a full stop from that of an abbreviation, of an item, or of a number that was cut."""
    preceding = text[max(0, position - NEARBY) : position]
    next_char = text[end : end + NEARBY].lstrip()[:1]
    if _LETTER.search(preceding) or _NUMBER.search(preceding) or next_char.islower():
        return False
    return end < len(text) or not preceding[-1:].isdigit()


def _at_a_word(text: str) -> str:
    if text[-1:].isspace() or text[-1:] in _BEFORE_SPACE:
        return text.rstrip()
    space = max(map(text.rfind, " \n\t"))
    if space >= LEAST_PART * len(text):
        return text[:space].rstrip()
    clause = max(map(text.rfind, _CLAUSES))  # of a script without spaces
    return text[: clause + 1] if clause >= LEAST_PART * len(text) else text


def _without_headings(text: str) -> str:
    lines = text.rstrip().splitlines()
    while lines and (not lines[-1].strip() or _HEADING.fullmatch(lines[-1])):
        lines.pop()
    return "\n".join(lines)
