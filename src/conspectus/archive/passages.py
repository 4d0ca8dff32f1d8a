"""What a search knows of a message: passages of some 120 tokens, their words, who did what."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from conspectus.archive.values import Item
from conspectus.messages import Call, Message
from conspectus.messages.framing import says_again

PASSAGE = 480  # Bytes of a passage, about 120 tokens in any script: a few sentences
SHORT = 1.5  # Passages up to whose size a text stays whole, as a rest of a few words says little
MANY = 2_000  # Most passages of one text; those of a larger one are longer
LONGEST = 80  # Characters of a word that an index keeps; a longer one is data
LAST = 400  # Characters at the end of a message that are searched for its question mark

ENDS = (
    ("\n\n",),
    ("\n",),
    (". ", "? ", "! ", "; ", "。", "！", "？", "；", "…"),
    ("}, ", "},", "], ", '",', '", ', ", ", " | "),
    (" ",),
)
"""Where a text divides: after a paragraph, else a line, a sentence, a field, a word."""

# Han, Kana, Hangul; and Thai, Lao, Myanmar and Khmer, which use no spaces either.
DENSE = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff\u1100-\u11ff\uac00-\ud7af\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
# Vowel signs and points, as of Hebrew, Arabic and Hindi: parts of words that are no letters.
MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06ed\u0711-\u074a\u07a6-\u07b0\u0816-\u0963\u0971-\u0dff\u0f71-\u0fbc"
)
PIECE = re.compile(rf"(?P<dense>[{DENSE}]+)|(?P<word>(?:(?![{DENSE}_])[\w{MARKS}])+)")
# Arrows, symbols and emoji, without those that draw tables.
SIGNS = re.compile("[\u2190-\u24ff\u25a0-\u2bff\U0001f000-\U0001faff]+")
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_DENSE = re.compile(rf"[{DENSE}]+")
_ACCENT = re.compile("(?<![иИ])[\u0300-\u036f]+")  # й is a letter of its own
_LETTERS = str.maketrans({"ß": "ss", "æ": "ae", "Æ": "AE"}) | str.maketrans("øØłŁđĐı", "oOlLdDi")
_HUMPED = re.compile("[A-Z](?<=[a-z0-9].)")  # Looks at capitals alone, which are few
_DATA = re.compile(rf"([^\W_]{{{LONGEST}}})[^\W_]+")


class _Names(dict[str, str]):
    """The word that stands for a sign, by the sign."""

    def __missing__(self, sign: str) -> str:
        self[sign] = f" u{ord(sign):x} "
        return self[sign]


_NAMES = _Names()

_ASKS = re.compile(r"[?？][\s\"'”’)»」』]*+(?:\[[^\[\]]*+\]\s*+)?\Z")
"""The end of a question, perhaps with a bracket behind it, such as a picture's description."""


def passages(text: str, start: int = 0) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each passage, in characters from `start`; they cover the text."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    room = max(1, int(max(PASSAGE, size / MANY) * len(text) / max(1, size)))
    at = 0
    while len(text) - at > SHORT * room:
        end = last_end(text, at + room // 2, at + room)
        yield start + at, start + end
        at = end
    yield start + at, start + len(text)


def last_end(text: str, least: int, most: int) -> int:
    """Return the last place between two where the text divides best."""
    for marks in ENDS:
        ends = (at + len(one) for one in marks if (at := text.rfind(one, least, most)) >= 0)
        if end := max(ends, default=0):
            return end
    return most


def plain(text: str) -> str:
    """Return a text without accents, in the compatible forms of its letters; signs are words.

    Example:
        >>> plain("Größe, ﬁne café")
        'Grosse, fine cafe'
    """
    if text.isascii():
        return text
    bare = _ACCENT.sub("", unicodedata.normalize("NFKD", text.translate(_LETTERS)))
    return SIGNS.sub(_named, unicodedata.normalize("NFKC", bare))


def _named(signs: re.Match[str]) -> str:
    return "".join(map(_NAMES.__getitem__, signs[0]))


def _pairs(run: re.Match[str]) -> str:
    return f" {' '.join(run[0][n : n + 2] for n in range(len(run[0])))} "


def words(text: str) -> str:
    """Return a text for an index that divides words at spaces and marks.

    A run of a script without spaces becomes its pairs of characters, and its last one alone; the
    humps of identifiers are added.

    Example:
        >>> words("getUser: 数据库 failed")
        'getUser:  数据 据库 库  failed get User:'
    """
    if not text.isascii():
        whole = text.encode("utf-8", "replace").decode()
        text = _DENSE.sub(_pairs, plain(whole))
    if max(map(len, text.split()), default=0) >= LONGEST:
        text = _DATA.sub(r"\1", text)
    if _HUMPED.search(text):  # most texts are neither
        mixed = dict.fromkeys([word for word in text.split() if not word.islower()])
        humps = dict.fromkeys(HUMP.sub(" ", " ".join(mixed)).split())
        text = " ".join([text, *(hump for hump in humps if hump not in mixed)])
    return text


def spans(text: str, calls: Sequence[Call]) -> list[tuple[int, int, str]]:
    """Return begin and end of each passage of a message, and the id of the call that it shows.

    Each of several calls has passages of its own.
    """
    if len(calls) < 2:
        return [(*span, calls[0].id if calls else "") for span in passages(text)]
    at = len(text) - sum(len(call.reading) + 1 for call in calls)
    parts = [(*span, "") for span in passages(text[:at])] if at > 0 else []
    for call in calls:
        parts += [(*span, call.id) for span in passages(call.reading, at + 1)]
        at += 1 + len(call.reading)
    return parts


def original_of(entry: Message, body: bytes) -> Item:
    """Return a message as a store keeps and searches it.

    What a search must know beside its id and its words is one line of fields, divided by tabs: the
    act (`s` says, `c` calls tools, `r` results alone, `x` repeats what was recalled, and is not
    searched; `S` ends in a question) and the role; the speaker's name; and the ids of the calls
    that it answers, or of those that it makes, with the first passage of each (`0:call_7`).
    """
    text, parts = entry.reading, spans(entry.reading, entry.calls)
    act, links = "s", list(entry.answers)
    if any(call.id not in entry.answers for call in entry.calls):
        act, first = "c", dict[str, int]()
        for at, (_, _, call) in enumerate(parts):
            first.setdefault(call, at)
        links = [f"{at}:{call}" for call, at in first.items() if call]
    elif entry.answers and not entry.own.strip():
        act = "x" if entry.role == "tool" and says_again(text) else "r"
    elif _ASKS.search(text[-LAST:]):
        act = "S"
    name = "" if entry.id == entry.key else one_line(entry.id)
    about = "\t".join([act + entry.role[0], *map(one_line, (entry.name, *links))])
    # A message is found by its speaker and date too, if its text does not name them.
    more = [part for part in (entry.name, entry.date) if part and part not in text]
    shown = [words("\n".join([*more, text[begin:end]])) for begin, end, _ in parts]
    found = ("",) if act == "x" else tuple(shown)
    return Item(entry.key, body, found, name, about.rstrip("\t"))


def one_line(text: str | None) -> str:
    """Return a name without what would end its field, or what a store refuses."""
    bare = text or ""
    if bare.isprintable():  # most are
        return bare
    return bare.translate({0: "?", 9: " "}).encode("utf-8", "replace").decode()
