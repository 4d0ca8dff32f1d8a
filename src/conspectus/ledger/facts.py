"""Exact facts in one message: rules and decisions as sentences, identifiers as they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from conspectus.messages import Entry

Kind = Literal["rule", "decision", "path", "url", "error", "id", "number", "symbol"]

QUOTE = 120
"""Characters around an identifier that are kept with it."""

DATA = 20_000
"""Characters of one line that are looked through for identifiers."""

STATEMENT = 600
"""Characters up to which a sentence is carried as a rule or a decision."""

_EXTENSION = (
    r"(?:pyi?|jsx?|tsx?|jsonl?|md|txt|rst|html?|css|ya?ml|toml|cfg|ini|sh|cpp|cc|hpp|java|kt|go|rs"
    r"|rb|php|sql|xml|csv|png|jpe?g|pdf|ipynb|lock|log|diff|patch|c|h)"
)
_IDENTIFIERS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("url", re.compile(r"https?://[^\s\"'<>)\]}\\`]+")),
    (
        "path",
        re.compile(
            r"(?<![\w/.-])(?:~|\.{1,2})?/?(?:[\w@+.-]+/)+[\w@+-][\w@+.-]*"
            rf"|(?<![\w/.-])/[\w@+-][\w@+.-]*|(?<![\w/.-])[\w-]+\.{_EXTENSION}\b"
        ),
    ),
    ("error", re.compile(r"\b[A-Z]\w*(?:Error|Exception|Warning|Fault)\b")),
    (
        "id",
        re.compile(
            r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b"
            r"|\b(?=[A-Z0-9-]*\d)(?=[A-Z0-9-]*[A-Z])[A-Z0-9][A-Z0-9-]{3,}[A-Z0-9]\b"
            r"|\b[a-z]+(?:_[a-z]+)*_\d{3,}\b|[\w.+-]+@[\w-]+\.\w[\w.]*"
        ),
    ),
    (
        "symbol",
        re.compile(
            r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\b|\b_*[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+_*\b|\b__\w+__\b"
            r"|\b(?:[A-Z][a-z0-9]+){2,}\b|\b[a-z]+(?:[A-Z][a-z0-9]+)+\b"
        ),
    ),
    (
        "number",
        re.compile(
            r"(?<![\w.])\d{4}-\d{2}-\d{2}(?!\w)|(?<![\w.])\d+(?:\.\d+)+(?!\w)"
            r"|(?<![\w.-])\d{4,}(?![\w.])|(?<![\w.])\d+(?:[.,]\d+)?\s?(?:%|€|\$|£|¥|元|ms|kB|MB|GB)"
        ),
    ),
)
_NOT_FACTS = frozenset({"utf-8", "e.g", "i.e", "a.m", "p.m", "and/or", "either/or", "N/A"})

_RULE = re.compile(
    r"\b(?:never|must(?: not|n't)?|always|at most|at least|no (?:later|more|less|fewer) than"
    r"|(?:do not|don't|cannot|can't) (?:ever|touch|change|edit|use|delete|remove|commit|push)"
    r"|only (?:use|touch|change|edit)|prefer(?:s|red)?|limit(?:ed)? (?:is|to|of)"
    r"|cap(?:ped)? (?:is|at)"
    r"|deadline|required? to|make sure|from now on|instead of"
    r"|nunca|siempre|debe[ns]?|como máximo|a más tardar|prefier[eo]"
    r"|niemals|immer|muss|müssen|höchstens|spätestens|bevorzug\w*|nicht mehr als"
    r"|jamais|toujours|doit|doivent|au plus|au plus tard|préfèr\w*)\b"
    r"|绝不|不要|不得|必须|务必|始终|总是|最多|至少|不超过|不晚于|优先|截止"
    r"|決して|必ず|常に|以内|以下|までに|しないで|してください|優先"
    r"|절대|반드시|항상|최대|최소|이내|까지|하지 마|우선",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:decided|decision|chose|we(?:'ll| will) (?:use|go with)|I(?:'ll| will) (?:use|go with)"
    r"|going with|settled on|root cause|the (?:cause|fix|problem|bug|issue) (?:is|was)|because of"
    r"|decidim\w+|entschieden|décidé)\b|决定|决策|原因是|決定|결정",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^(?:[-*•+]|\d{1,2}[.)])\s+")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")


@dataclass(frozen=True, slots=True)
class Fact:
    """One exact fact.

    Attributes:
        kind: what it is.
        value: the fact itself: an identifier, or for rules and decisions the whole sentence.
        quote: the words around it, as they stand in the message.
        source: how its message is cited.
        role: who said it.
        used: how often the agent itself has used it, in its words or in tool arguments.
        order: when it was last seen, counted in messages of the thread.
    """

    kind: Kind
    value: str
    quote: str
    source: str
    role: str
    used: int = 0
    order: int = 0

    def to_json(self) -> dict[str, Any]:
        """The fact as plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Fact:
        """The fact that `to_json` wrote."""
        return cls(**data)


def identifiers(text: str) -> Iterator[tuple[Kind, str, int]]:
    """Identifiers in a text with their kind and place; what an earlier kind claims stays its own.

    Example:
        >>> [value for _, value, _ in identifiers("see src/app.py, ValueError at 2024-05-01")]
        ['src/app.py', 'ValueError', '2024-05-01']
    """
    for kind, pattern in _IDENTIFIERS:
        claimed: list[tuple[int, int]] = []
        for match in pattern.finditer(text):
            value = match.group().rstrip(".,:;")
            if len(value) >= 3 and value not in _NOT_FACTS:
                claimed.append(match.span())
                yield kind, value, match.start()
        for start, end in claimed:
            text = text[:start] + " " * (end - start) + text[end:]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a message with the identifiers in it.

    Attributes:
        line: the line, as it stands.
        holds: kind, value and place of each.
        call: it is part of a tool call.
    """

    line: str
    holds: tuple[tuple[Kind, str, int], ...]
    call: bool = False


def identified(entry: Entry) -> tuple[Line, ...]:
    """The lines of a message that hold identifiers; looked for once and remembered."""
    if entry.found is None:
        lines = [(line, False) for line in entry.text.split("\n")]
        lines += [(line, True) for call in entry.calls for line in call.reading.split("\n")]
        entry.found = tuple(
            Line(line, holds, call)
            for line, call in lines
            # Of a line that is nothing but data, the start: the rest is found by recall.
            if (holds := tuple(identifiers(line[:DATA])))
        )
    found: tuple[Line, ...] = entry.found
    return found


def sentences(text: str) -> Iterator[str]:
    """The sentences and lines of a text, in any script, without the marks of a list."""
    for part in _SENTENCE.split(text):
        if part and (part := _BULLET.sub("", part.strip())):
            yield part


def is_rule(text: str) -> bool:
    """Whether a text states a rule, a limit or a preference."""
    return _RULE.search(text) is not None


def is_decision(text: str) -> bool:
    """Whether a text states a decision or the cause of something."""
    return _DECISION.search(text) is not None


def facts_of(entry: Entry, order: int = 0) -> Iterator[Fact]:
    """The exact facts of one message.

    Rules count only when the user or the system states them; a tool's output cannot set any.

    Args:
        entry: the message.
        order: its place in the thread, in messages.
    """
    used = 1 if entry.role == "assistant" else 0
    for sentence in sentences(entry.own):
        if len(sentence) > STATEMENT:
            continue
        if entry.role in ("user", "system") and is_rule(sentence):
            yield Fact("rule", sentence, sentence, entry.cite, entry.role, used, order)
        elif entry.role in ("user", "assistant") and is_decision(sentence):
            yield Fact("decision", sentence, sentence, entry.cite, entry.role, used, order)
    for found in identified(entry):
        for kind, value, at in found.holds:
            start = max(0, min(at - QUOTE // 3, len(found.line) - QUOTE))
            quote = found.line[start : start + QUOTE].strip()
            yield Fact(kind, value, quote, entry.cite, entry.role, used, order)
