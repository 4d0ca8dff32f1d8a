"""What a search knows of a message: its passages, their words, and who says or does what."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from operator import add
from typing import Literal, NamedTuple

from conspectus.archive.values import StoredItem
from conspectus.messages import Call, Message
from conspectus.messages.framing import is_recalled_text

PASSAGE_BYTES = 480
"""About 120 tokens in any script: a few sentences."""

UNDIVIDED_PASSAGES = 1.5
"""A text of up to so many passages is not divided: a passage of few words says little."""

MAX_PASSAGES = 2_000
"""The most passages of one text. A larger text has longer passages."""

MAX_WORD = 80
"""The most characters of a word in the index. Longer ones are data."""

FEW_SYMBOLS = 8
"""Up to so many different symbols in a text, each is replaced in the whole text at once."""

QUESTION_END = 400
"""Characters at the end of a message in which its question mark is looked for."""

DIVIDERS = (
    ("\n\n",),
    ("\n",),
    (". ", "? ", "! ", "; ", "。", "！", "？", "；", "…"),
    ("}, ", "},", "], ", '",', '", ', ", ", " | "),
    (" ",),
)
"""Where a text is divided, the best first: after a paragraph, a line, a sentence, a field, a
word."""

# Han, Kana, Hangul; and Thai, Lao, Myanmar and Khmer, which use no spaces either.
UNSPACED = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff\u1100-\u11ff\uac00-\ud7af\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
# Vowel signs and points, as of Hebrew, Arabic and Hindi: parts of words that are no letters.
MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06ed\u0711-\u074a\u07a6-\u07b0\u0816-\u0963\u0971-\u0dff\u0f71-\u0fbc"
)
WORD = re.compile(rf"(?P<unspaced>[{UNSPACED}]+)|(?P<word>(?:(?![{UNSPACED}_])[\w{MARKS}])+)")
# Arrows, symbols and emoji, without those that draw tables.
_SYMBOL = "\u2190-\u24ff\u25a0-\u2bff\U0001f000-\U0001faff"
# A pattern that begins with one character of a set is found many times faster than one that begins
# with a run of them, hence `[...][...]*+` for `[...]+`.
SYMBOLS = re.compile(f"[{_SYMBOL}][{_SYMBOL}]*+")
CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")  # between the words of "getUser"
_HAS_CAMEL_CASE = re.compile("[A-Z](?<=[a-z0-9].)")  # the same, faster: it visits only capitals
_UNSPACED_RUN = re.compile(f"[{UNSPACED}][{UNSPACED}]*+")
_ACCENT_SYMBOL_OR_UNSPACED = re.compile(f"[\u0300-\u036f{_SYMBOL}{UNSPACED}]")
_ACCENT = re.compile("[\u0300-\u036f](?<![иИ].)[\u0300-\u036f]*+")  # й is a letter of its own
_HAS_LIGATURE = re.compile("[ßæÆøØłŁđĐı]")
_PLAIN_LETTERS = {"ß": "ss", "æ": "ae", "Æ": "AE"} | dict(zip("øØłŁđĐı", "oOlLdDi", strict=True))
_LONG_WORD = re.compile(rf"(?<![^\W_])([^\W_]{{{MAX_WORD}}})[^\W_]+")

_QUESTION = re.compile(r"[?？][\s\"'”’)»」』]*+(?:\[[^\[\]]*+\]\s*+)?\Z")
"""The end of a question, perhaps with a bracket after it, such as a picture's description."""


class _SymbolWords(dict[str, str]):
    """The word for a symbol in the index, by the symbol."""

    def __missing__(self, symbol: str) -> str:
        word = f" u{ord(symbol):x} "
        self[symbol] = word
        return word


_SYMBOL_WORDS = _SymbolWords()


class Span(NamedTuple):
    """A passage of a message: from where to where, in characters, and the call that it shows."""

    start: int
    end: int
    call_id: str
    """Empty if it belongs to no tool call."""


def split_passages(text: str, offset: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each passage of a text, which together cover it.

    Both are in characters, and count from `offset`.
    """
    bytes_of_text = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    bytes_of_passage = max(PASSAGE_BYTES, bytes_of_text / MAX_PASSAGES)
    # The same in characters.
    length = max(1, int(bytes_of_passage * len(text) / max(1, bytes_of_text)))
    start = 0
    while len(text) - start > UNDIVIDED_PASSAGES * length:
        end = best_division(text, start + length // 2, start + length)
        yield offset + start, offset + end
        start = end
    yield offset + start, offset + len(text)


def best_division(text: str, earliest: int, latest: int) -> int:
    """Return where to divide a text between two positions: at the last of the best dividers."""
    for dividers in DIVIDERS:
        positions = [
            position + len(divider)
            for divider in dividers
            if (position := text.rfind(divider, earliest, latest)) >= 0
        ]
        if positions:
            return max(positions)
    return latest


def plain(text: str) -> str:
    """Return a text without accents and ligatures; each symbol becomes a word.

    Example:
        >>> plain("Größe, ﬁne café")
        'Grosse, fine cafe'
    """
    return text if text.isascii() else _in_plain_letters(text)[0]


def _in_plain_letters(text: str) -> tuple[str, bool]:
    """Do as `plain`, and tell whether the result may have letters of a script without spaces."""
    if _HAS_LIGATURE.search(text):
        for letter, plain_letters in _PLAIN_LETTERS.items():
            text = text.replace(letter, plain_letters)
    decomposed = unicodedata.normalize("NFKD", text)
    # Composing other letters gives no symbols, and no letters of scripts without spaces.
    if not _ACCENT_SYMBOL_OR_UNSPACED.search(decomposed):
        return unicodedata.normalize("NFKC", decomposed), False
    composed = unicodedata.normalize("NFKC", _ACCENT.sub("", decomposed))
    return _with_symbols_as_words(composed), True


def _with_symbols_as_words(text: str) -> str:
    runs = SYMBOLS.findall(text)
    symbols = set("".join(runs))
    if len(symbols) > FEW_SYMBOLS:
        words = ["".join(map(_SYMBOL_WORDS.__getitem__, run)) for run in runs]
        return _joined_alternately(SYMBOLS.split(text), words)
    for symbol in symbols:
        text = text.replace(symbol, _SYMBOL_WORDS[symbol])
    return text


def _with_pairs(text: str) -> str:
    """Return a text in which each run of a script without spaces is the pairs of its characters."""
    runs = _UNSPACED_RUN.findall(text)
    pairs = [f" {run} " if len(run) == 1 else _pairs_of(run) for run in runs]
    return _joined_alternately(_UNSPACED_RUN.split(text), pairs)


def _pairs_of(run: str) -> str:
    pairs = map(add, run, run[1:])
    return f" {' '.join([*pairs, run[-1]])} "


def _joined_alternately(parts: list[str], replaced: list[str]) -> str:
    """Join what a pattern has split, with what takes the place of each match.

    With many matches this takes a third of the time of a pattern's `sub` with a function.
    """
    joined = parts + replaced
    joined[::2] = parts
    joined[1::2] = replaced
    return "".join(joined)


def _may_have_long_word(text: str) -> bool:
    """Tell whether a word may be longer than `MAX_WORD`, by a look at a few positions only.

    A longer word is at one of these positions, and half of it is on one side of that position.
    """
    half = MAX_WORD // 2
    last_of_half = len(text) - half
    for position in range(MAX_WORD - 1, len(text), MAX_WORD):
        if text[position - half : position].isalnum():
            return True
        if position <= last_of_half and text[position : position + half].isalnum():
            return True
    return False


def index_words(text: str) -> str:
    """Return a text for an index that divides words at spaces and marks.

    A run of a script without spaces becomes its pairs of characters, and its last character. The
    words inside identifiers are added.

    Example:
        >>> index_words("getUser: 数据库 failed")
        'getUser:  数据 据库 库  failed get User:'
    """
    if not text.isascii():
        encodable = text.encode("utf-8", "replace").decode()
        text, may_be_unspaced = _in_plain_letters(encodable)
        if may_be_unspaced:
            text = _with_pairs(text)
    if _may_have_long_word(text):
        text = _LONG_WORD.sub(r"\1", text)
    if _HAS_CAMEL_CASE.search(text):  # most texts have none
        mixed_case = dict.fromkeys([word for word in text.split() if not word.islower()])
        parts = dict.fromkeys(CAMEL_CASE.sub(" ", " ".join(mixed_case)).split())
        text = " ".join([text, *(part for part in parts if part not in mixed_case)])
    return text


def spans(text: str, calls: Sequence[Call]) -> list[Span]:
    """Return the passages of a message. Each of several calls has passages of its own."""
    if len(calls) < 2:
        call_id = calls[0].id if calls else ""
        return [Span(start, end, call_id) for start, end in split_passages(text)]
    # The calls are at the end of the text, each on lines of its own.
    speech_end = len(text) - sum(len(call.reading) + 1 for call in calls)
    found: list[Span] = []
    if speech_end > 0:
        found += [Span(start, end, "") for start, end in split_passages(text[:speech_end])]
    line_end = speech_end
    for call in calls:
        call_start = line_end + 1
        found += [
            Span(start, end, call.id) for start, end in split_passages(call.reading, call_start)
        ]
        line_end = call_start + len(call.reading)
    return found


Act = Literal["speaks", "calls", "answers", "repeats"]
"""What a message does: it speaks, calls tools, has nothing but results, or repeats what was
recalled."""

_ACT_OF_LETTER: dict[str, Act] = {
    "s": "speaks",
    "S": "speaks",  # and ends in a question
    "c": "calls",
    "r": "answers",
    "x": "repeats",
}
_LETTER_OF_ACT = {act: letter for letter, act in _ACT_OF_LETTER.items() if letter.islower()}


class About(NamedTuple):
    """What a search knows of a message in addition to its words.

    A store keeps it as one line of fields that are divided by tabs: the letters of its act and its
    role, the speaker, and further the links.
    """

    act: Act
    is_question: bool
    """It speaks, and ends in a question."""

    role: str
    """The first letter of its role."""

    speaker: str

    links: Sequence[str]
    """The ids of the calls that it answers; of a message that calls tools, those of its calls, each
    after the number of its first passage (`0:call_7`)."""

    def to_text(self) -> str:
        """Return the line that a store keeps."""
        letter = "S" if self.is_question else _LETTER_OF_ACT[self.act]
        fields = [letter + self.role, one_line(self.speaker), *map(one_line, self.links)]
        return "\t".join(fields).rstrip("\t")

    @classmethod
    def from_text(cls, line: str) -> About:
        """Read a line that `to_text` wrote."""
        letters, *fields = line.split("\t")
        speaker = fields[0] if fields else ""
        letter = letters[0]
        return cls(_ACT_OF_LETTER[letter], letter == "S", letters[1], speaker, fields[1:])


def original_of(message: Message, body: bytes) -> StoredItem:
    """Return a message as a store keeps it, `body`, with what a search knows of it.

    What was recalled is not searched again, so a message that repeats it has no passages.
    """
    text = message.reading
    parts = spans(text, message.calls)
    act = _act_of(message)
    about = About(
        act,
        is_question=act == "speaks" and _QUESTION.search(text[-QUESTION_END:]) is not None,
        role=message.role[0],
        speaker=message.name or "",
        links=_call_links(parts) if act == "calls" else message.answers,
    )
    passage_texts: tuple[str, ...] = ("",)
    if act != "repeats":
        # A message is also found by its speaker and date, if its text does not name them.
        also = [label for label in (message.name, message.date) if label and label not in text]
        shown = ("\n".join([*also, text[part.start : part.end]]) for part in parts)
        passage_texts = tuple(map(index_words, shown))
    return StoredItem(
        message.key,
        body,
        passage_texts,
        name="" if message.id == message.key else one_line(message.id),
        about=about.to_text(),
    )


def _act_of(message: Message) -> Act:
    """Return what a message does."""
    if any(call.id not in message.answers for call in message.calls):
        return "calls"
    if message.answers and not message.own.strip():
        is_repetition = message.role == "tool" and is_recalled_text(message.reading)
        return "repeats" if is_repetition else "answers"
    return "speaks"


def _call_links(parts: Sequence[Span]) -> list[str]:
    """Return the ids of calls, each after the number of the first passage that shows it."""
    first_passages: dict[str, int] = {}
    for number, part in enumerate(parts):
        first_passages.setdefault(part.call_id, number)
    return [f"{number}:{call_id}" for call_id, number in first_passages.items() if call_id]


def one_line(text: str | None) -> str:
    """Return a name without tabs, NUL and lone surrogates, which no field and no store takes."""
    name = text or ""
    if name.isprintable():  # most are
        return name
    return name.translate({0: "?", 9: " "}).encode("utf-8", "replace").decode()
