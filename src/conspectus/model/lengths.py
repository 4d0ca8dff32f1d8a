"""How long an answer may become by its model's own limit, and what is used of one that ended there.

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

DEEPEST = 16  # wrappers around a model that are looked through

# An answer whose provider counts its tokens has at least this share of the limit at which it ended:
# one with less filled the window instead.
REACHED = 0.9
# Without such a count its text is an estimate. A model may also have thought, unseen; but of a
# large limit a short text is not the end.
UNCOUNTED, UNSEEN = 4, 256

FOLLOWING = 40  # characters around an end that tell what kind of end it is

# The factor by which a loop is compressed: a list of like lines is by some twenty, prose by five.
LOOP = 40

LEAST_PART = 0.25  # the share of a text that its whole sentences make, or it is cut at a word


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
    """Yield what sets the options of each model that may answer, the outermost first."""
    own: Mapping[str, Any] = getattr(model, "__dict__", None) or {}
    if not depth:
        return
    depth -= 1
    if own.get("fallbacks") and own.get("runnable") is not None:
        for one in (own["runnable"], *own["fallbacks"]):
            yield from _answering(one, outer, configured, depth)
    elif own.get("bound") is not None:  # options, retries, a configuration
        config = own.get("config") or {}
        configured = {**(config.get("configurable") or {}), **configured}
        yield from _answering(own["bound"], (*outer, own.get("kwargs")), configured, depth)
    elif own.get("default") is not None and "fields" in own:  # configurable fields
        config = own.get("config") or {}
        configured = {**(config.get("configurable") or {}), **configured}
        chosen = {
            name: configured[field.id]
            for name, field in (own["fields"] or {}).items()
            if getattr(field, "id", None) in configured
        }
        yield from _answering(own["default"], (*outer, chosen), configured, depth)
    elif own.get("last") is not None and own.get("first") is not None:  # a sequence
        for step in (own["first"], *(own.get("middle") or ()), own["last"]):
            yield from _answering(step, outer, configured, depth)
    elif isinstance(own.get("_default_config"), Mapping):  # a model that is built at each call
        later = own.get("_queued_declarative_operations") or ()
        bound = (options for _, _, options in reversed(later) if isinstance(options, Mapping))
        yield (*outer, *bound, own["_default_config"])
    elif getattr(own.get("func"), "__self__", None) is not None:  # a method of a model
        yield from _answering(own["func"].__self__, outer, configured, depth)
    else:
        yield (*outer, model, own.get("llm"))


def _first_limit(holders: tuple[object, ...]) -> AnswerLimit | None:
    """Return the limit that holds: of options that are set twice, the outer ones."""
    for holder in holders:
        settings = [holder, *(_setting(holder, name) for name in INSIDE)]
        found = [
            (value, name, one)
            for one in settings
            for name in LIMITS
            if isinstance(value := _setting(one, name), int) and not isinstance(value, bool)
        ]
        if found:
            value, name, one = min(found, key=lambda each: each[0])
            # 0 and -1 stand for no limit.
            return AnswerLimit(value, _is_set(one, name, value)) if value > 0 else None
    return None


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
    given = getattr(holder, "model_fields_set", None)
    theirs = type(holder).__module__.startswith("langchain")
    return not theirs or given is None or name in given


def ends_at_limit(answer: Any, limits: list[AnswerLimit], count: Callable[[str], int]) -> bool:
    """Tell whether an answer that was cut off has reached a limit that its caller has set."""
    wanted = [limit.tokens for limit in limits if limit.is_set]
    usage = getattr(answer, "usage_metadata", None)
    reported = usage.get("output_tokens") if isinstance(usage, Mapping) else None
    if reported:
        return any(reported >= REACHED * limit for limit in wanted)
    written = count(str(getattr(answer, "content", answer)))
    return any(UNCOUNTED * written + UNSEEN >= limit for limit in wanted)


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
        following = text[end.end() : end.end() + FOLLOWING]
        is_indented = end[0].rpartition("\n")[2] != ""
        starts_anew = bool(_ITEM.match(following)) or end[0].count("\n") > 1 or not following
        if starts_anew or not (is_indented or following[0].islower()):
            yield end.start()


def _is_full_stop(text: str, at: int, end: int) -> bool:
    """Tell a full stop from that of an abbreviation, of an item, or of a number that was cut."""
    before = text[max(0, at - FOLLOWING) : at]
    after = text[end : end + FOLLOWING].lstrip()[:1]
    if _LETTER.search(before) or _NUMBER.search(before) or after.islower():
        return False
    return end < len(text) or not before[-1:].isdigit()


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
