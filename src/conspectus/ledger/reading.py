"""What each sentence of a message states: a rule, a preference, a decision, a fact, a task, nothing.

Two things count: words of the sentence's language (`words`), and its form, in any language: values
such as numbers, names, identifiers and code; a question, an exclamation, a quotation, a paste.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from conspectus.ledger.patterns import Phrases
from conspectus.ledger.pieces import pieces
from conspectus.ledger.words import LANGUAGES

Stated = Literal["rule", "preference", "decision", "fact", "task", ""]

_PURPOSES = ("bind", "lean", "like", "decide", "give", "ask", "tale", "change")
_HEAD = Phrases([one["head"] for one in LANGUAGES])
_LOUD = re.compile(
    r"\b(?:MUST|NEVER|DO NOT|DON'T|EXACTLY|ONLY|ALWAYS|CRITICAL|IMPORTANT|REQUIRED|NICHT|NIEMALS|MUSS"
    r"|NUNCA|SIEMPRE|JAMAIS|TOUJOURS)\b"
)
_ITEM = re.compile(r"\s*(?:[-*•+–・①-⑳]|[（(]?\d{1,2}[.)）、])")
_WORDS = tuple({name: Phrases([one[name]]) for name in _PURPOSES} for one in LANGUAGES)
_SPACED = {n: frozenset(one["filler"].split()) for n, one in enumerate(LANGUAGES[:4])}
_KANA, _HANGUL, _HAN = (
    re.compile(f"[{s}]") for s in ("\u3040-\u30ff", "\uac00-\ud7af", "\u3400-\u9fff")
)

_QUESTION = re.compile(
    r"[?？][\"'”’»)」』*_\s]*$|(?:ですか|ますか|でしょうか|ませんか|까요|나요|吗|呢)[。.!]?$"
)
_YES = re.compile(
    r"\W*(?:yes|yep|ok(?:ay)?|agreed|approved|go ahead|ja|sí|oui|sim|да)\b[,.]? +\w+ \w+"
    r"|(?:はい|네|예|好的?|可以|是的|同意)[、，,。 ]?\w{2}",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"[,、，]\s*(?:ok(?:ay)?|right|alright|please|yes|deal|understood|got it|will you|would you|ja|gell|oder|bitte|vale|sí|por favor"
    r"|de acuerdo|d'accord|hein|non|va bene|certo|ладно|хорошо|好吗|好吧|行吗|可以吗|いいですか|いいですね|알겠죠|알았죠|됐죠)\s*[?？]\W*$",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"“„«「『]([^\"“”„«»「」『』\n]{13,400})[\"”“»」』]")
_VALUES = re.compile(
    r"(?P<code>`[^`\n]{2,80}`|https?://[^\s<>]{1,200}|[\w.+-]{1,40}@[\w-]{1,40}\.[\w.]{2,40}"
    r"|(?<![\w/])[~.]{0,2}/?(?:[A-Za-z0-9_.-]{1,40}/){1,8}[A-Za-z0-9_.-]{1,40}"
    r"|(?<![\w&])[#@][A-Za-z][\w-]{2,40}|(?<![\w/.])~?/[A-Za-z][\w.-]{1,40}"
    r"|(?<!\w)(?=[\w.:/-]{0,40}\d)(?=[\w.:/-]{0,40}[^\W\d_])[A-Za-z0-9]{1,20}(?:[-_.:/][A-Za-z0-9]{1,20}){1,6}(?!\w)"
    r"|(?<!\w)[a-z0-9]{2,20}(?:_[a-z0-9]{1,20}){1,5}(?!\w)|(?<!\w)[a-z]{1,20}[A-Z][a-z][A-Za-z]{1,20}(?!\w))"
    r"|(?P<number>(?:[€$£¥₩]\s?)?\d[\d.,:'’  /-]{0,20}\d(?!\w)|(?:[€$£¥₩]\s?)?\d+(?:[.,]\d+)?)"
    r"|(?P<joined>(?<![\w-])[a-z]{3,20}-[a-z]{3,20}(?:-[a-z]{3,20})?(?![\w-]))"
    r"|(?P<quoted>[「『“„«‘][^「」『』“”„«»‘’\n]{1,24}[」』”“»’]|(?<!\w)['\"][^'\"\n]{2,24}['\"](?!\w))"
    r"|(?P<name>(?:(?<=[\w,;)’'] )|(?<=[а-яё] ))[^\W\d_a-zà-ÿа-яё][^\W\d_]{2,30}(?:[ &-]{1,3}[^\W\d_a-zà-ÿа-яё][^\W\d_]{1,30}){0,3}"
    r"|[一-鿿]{1,4}(?:さん|様|氏|くん|ちゃん|部長|課長|社長|先生|女士|经理|主任|老师|总监)|[가-힣]{2,4} ?(?:님|씨|팀장|대리|과장|부장))"
)
_WORTH = {"code": 1.3, "number": 1.0, "quoted": 0.7, "name": 0.7, "joined": 0.4}
_MOST = 3.0
_WORD = re.compile(r"[a-zà-ÿ]+")
_LEANS = re.compile(
    r"\W*(?:(?:and|but|so|then|also|please)\s)?(?:it|its|that|this|they|those|these|both|he|she|es|das|dies\w*|er|sie|eso|esto|ello|lo|la|cela|ça|c'est"
    r"|ce|il|elle|isso|isto|ele|ela|ciò|questo|это|он|она)\b|\W*(?:それ|これ|あれ|그건|그것|이건|이것|那个|这个|那|它|这)",
    re.IGNORECASE,
)

LEAST = (1.5, 0.9)
"""Score from which on a sentence states something; the second for a fact, which has its values."""

PLAIN = 0.5
"""Weight from which on a sentence states something plainly."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of a message, and what it states.

    Attributes:
        start, end: where it stands in the text.
        text: the sentence as it stands.
        kind: what it states; empty if nothing.
        weight: how plainly, from 0 to 1.
        own: whether it is the speaker's own sentence, and no paste.
        values: what it names exactly: numbers, names, identifiers, code.
        marks: which purposes of words it has.
    """

    start: int
    end: int
    text: str
    kind: Stated = ""
    weight: float = 0.0
    own: bool = True
    values: tuple[tuple[str, str], ...] = ()
    marks: tuple[str, ...] = ()

    @property
    def alone(self) -> bool:
        """Whether it states something and is understood only after the sentence before it."""
        if self.kind in ("", "task", "fact") or self.weight < PLAIN:
            return False
        named = any(form in ("name", "code", "quoted") for form, _ in self.values)
        return not named or _LEANS.match(self.text) is not None


def statements(text: str, role: str = "user") -> list[Statement]:
    """Every sentence of a message in order, with what it states.

    Args:
        text: the speaker's words.
        role: who speaks; only users and systems state anything.

    Example:
        >>> [one.kind for one in statements("Never push to main. How are you?")]
        ['rule', '']
    """
    read: list[Statement] = []
    last, headed = 0, False
    for start, end, own in pieces(text):
        sentence = text[start:end]
        between, last = text[last:start], end
        if not own or role not in ("user", "system"):
            read.append(Statement(start, end, sentence, own=own))
            continue
        if "\n" in between or not read:
            mark = between[between.rfind("\n") + 1 :]
            if "#" in mark or sentence.endswith((":", "：", ":**")):
                headed = _HEAD.search(sentence.lower()) is not None
            elif not _ITEM.match(mark):
                headed = False
        read.append(_read(sentence, start, end, headed=headed))
        if sentence.endswith((":", "：", ":**")) and read[-1].kind == "rule":
            headed = True  # "always, for all of us:" binds each item below
    return read


def bare(text: str) -> str:
    """Return the text without long quotations, at the same places.

    The words of others are nobody's rule.
    """
    if not any(mark in text for mark in '"“„«「『'):
        return text
    return _QUOTED.sub(lambda m: " " * len(m[0]), text)


def values_in(text: str) -> tuple[tuple[str, str], ...]:
    """Return the values that a text names, each with its form.

    A form is code, number, quoted or name.
    """
    return tuple(
        dict.fromkeys((m.lastgroup or "", m[0].strip("`")) for m in _VALUES.finditer(text))
    )


def languages(low: str) -> tuple[list[int], bool]:
    """Which of the known languages a text in lower case is in, and whether that is sure.

    Scripts and small words tell. A text in another language is read with the words of those that
    it shares most small words with, as many are alike.
    """
    words = set(_WORD.findall(low[:600]))
    hits = {n: len(words & filler) for n, filler in _SPACED.items()}
    most = max(hits.values())
    found = [n for n, hit in hits.items() if hit == most and hit] if words else []
    if _HANGUL.search(low):
        return [*found, 5], True
    if _KANA.search(low):
        return [*found, 4], True
    if _HAN.search(low):
        return [*found, 4, 6], True
    return found or list(_SPACED), most > 1 or len(words) <= 4


def _read(sentence: str, start: int, end: int, *, headed: bool) -> Statement:
    said = bare(sentence)
    low = said.lower()
    found = dict.fromkeys(_PURPOSES, 0)
    known, sure = languages(low)
    for number in known:
        for name, words in _WORDS[number].items():
            if name == "tale" and not sure:
                continue  # what only looks like a word of this language takes nothing away
            hits = set(words.findall(low))
            found[name] += len(hits)
            if name == "lean" and hits and words.match(low.lstrip('*_"“«¡¿ ')):
                found["bind"] += 1  # "never", where a sentence begins, is an order
    found["bind"] += headed + (_LOUD.search(said) is not None)
    found["decide"] += _YES.match(said) is not None
    values = values_in(said)
    score, kind = judged(found, values, sentence)
    marks = tuple(name for name in _PURPOSES if found[name])
    return Statement(start, end, sentence, kind, score, True, values, marks)


def judged(
    found: Mapping[str, int], values: Collection[tuple[str, str]], sentence: str
) -> tuple[float, Stated]:
    """How plainly a sentence states something, and what."""
    worth = min(_MOST, sum(_WORTH[form] for form, _ in values))
    hard = any(form in ("code", "number") for form, _ in values)
    tale = min(found["tale"], 3) * 0.9
    asks = bool(_QUESTION.search(sentence)) and not _TAG.search(sentence[-30:])
    score = worth - tale - 0.8 * sentence.rstrip().endswith(("!", "！"))
    kind: Stated = ""
    if asks and not found["ask"]:
        return _weight(score - 3), ""
    score -= asks
    bind = 2.2 + 0.4 * min(found["bind"] - 1, 2) if found["bind"] else 0.0
    lean = 0.7 * min(found["lean"], 2)
    if bind or lean > 0.7 or (lean and worth >= 0.7):
        kind, score = "rule", score + bind + lean
    elif found["like"]:
        kind, score = "preference", score + 1.6
    elif found["decide"]:
        kind, score = "decision", score + 1.6
    elif found["give"] and values:
        kind, score = "fact", score + 0.8
    elif found["ask"]:
        kind, score = "task", score + 0.8
    elif hard:
        kind = "fact"
    return _weight(score), kind if score >= LEAST[kind == "fact"] else ""


def _weight(score: float) -> float:
    return round(min(1.0, max(0.0, (score + 3) / 10)), 4)
