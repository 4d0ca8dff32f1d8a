"""Where the value of a secret ends, and whether it is one: its quote, its line, its string of JSON.

A value in quotes goes to the same quote, and a bare one to the end of its line: a part of a secret
that is left behind is worse than a word too many that goes with it. What would break JSON in which
the line stands is left, though: the end of the string ends the line too.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

from conspectus_secrets.ends import LONGEST, LONGEST_QUOTED, QUOTE, Runs, closing, cut
from conspectus_secrets.scripts import ended
from conspectus_secrets.words import STANDS_FOR, can_be, placeholder

_QUOTES = re.compile(r'(?<!\\)(\\*+)"')
_STOPS = re.compile(r'(?<!\\)(\\++)[nr]|(?<!\\)(\\*+)"')
_BREAKS = re.compile(r"\\++[nrt]")
_WORD = re.compile(r"\S{1,512}+")
_MORE = re.compile(r"[ \t]{1,64}\S")
_CALL = re.compile(
    r"\A(?:[A-Za-z_.:>-]{1,80}(?:\(.*\)|\[.*\])|[\w.:>-]{1,80}(?:\(\d{0,9}\)|\[\d{0,9}\]))[,;]?\Z"
)
"""A call, an element, or a type with a length."""

_NAMES = re.compile(r"\A[A-Za-z_][A-Za-z_]*+(?:(?:\.|->|::|\?\.)[A-Za-z_]++)+[,;]?\Z")
_WAYS = re.compile(r"(?i:\A(?:argon2\w{0,2}|pbkdf2\w{0,12}|bcrypt\w?|scrypt\w?)\Z)")
_NO_SIGNS = frozenset("_-.:/,;'’\"()<>[]{}|?`")
"""They stand in prose, in types and around words; what has no other sign and no digit is a word."""

DEPTHS = 4
"""JSON in JSON so deep is told apart."""


def unfolded(text: str) -> str:
    """The text with the ends of lines in JSON as such, each character in its place.

    Example:
        >>> unfolded("a\\\\nb")
        'a \\nb'
    """
    return _BREAKS.sub(lambda m: " " * (len(m[0]) - 1) + ("\n" if m[0][-1] in "nr" else " "), text)


@dataclass(frozen=True, slots=True)
class Value:
    """A value as it stands: where it begins and ends, and its quote, which is empty without."""

    begin: int
    end: int
    quote: str


class Bounds:
    """Finds where values end.

    Args:
        text: what is searched.
        view: the same with the ends of lines in JSON as such, if it is that which is searched.
    """

    def __init__(self, text: str, view: str | None = None) -> None:
        self.text = text
        self.view = text if view is None else view
        self._runs = Runs(self.view)
        self._ended: dict[int, int] = {}

    @cached_property
    def _lines(self) -> list[int]:
        return [match.start() for match in re.finditer("\n", self.text)]

    @cached_property
    def _quotes(self) -> list[list[int]]:
        """Where quotes stand, by how many strings of JSON they lie in."""
        found: list[list[int]] = [[] for _ in range(DEPTHS)]
        for match in _QUOTES.finditer(self.text):
            depth, count = 0, len(match[1])
            while count % 2:
                depth, count = depth + 1, count // 2
            if depth < DEPTHS:
                found[depth].append(match.start())
        return found

    def _depth(self, at: int) -> int:
        """The innermost string of JSON that is open here, 0 for the outermost; -1 for none."""
        return self._open(at)[0]

    def run_end(self, at: int) -> int:
        """Where what is written here without a break ends."""
        return self._runs.end(at)

    def column(self, at: int) -> int:
        """So many characters stand before this on its line, or in its string of JSON."""
        least = max(0, at - 200)
        begin = self.view.rfind("\n", least, at) + 1 or least
        depth, opened = self._open(at)
        return at - (max(begin, opened + 1) if depth >= 0 else begin)

    def _open(self, at: int) -> tuple[int, int]:
        """The innermost string of JSON that is open here, as above, and where its quote stands."""
        line = bisect_left(self._lines, at)
        least = self._lines[line - 1] if line else -1
        inner = opened = -1
        for depth, quotes in enumerate(self._quotes):
            last = bisect_left(quotes, at)
            first = bisect_left(quotes, least)
            if (last - first) % 2:
                inner, opened = depth, quotes[last - 1] + (1 << depth) - 1
            if last > first:
                least = quotes[last - 1]
        return inner, opened

    def line_end(self, at: int) -> int:
        """Where the line ends, or the string of JSON in which it stands; without spaces before."""
        if at not in self._ended:  # blocks that lie in one another ask for the same lines
            self._ended[at] = self._line_end(at)
        return self._ended[at]

    def _line_end(self, at: int) -> int:
        stop = min(len(self.text), at + LONGEST)
        fold = self.view.find("\n", at, stop)
        stop = stop if fold < 0 else fold
        depth = self._depth(at)
        for match in _STOPS.finditer(self.text, at, stop) if depth >= 0 else ():
            run = len(match[1] or match[2] or "")
            level = 0
            if match[0][-1] == '"':
                while run % 2:
                    level, run = level + 1, run // 2
            else:
                while run and run % 2 == 0:
                    level, run = level + 1, run // 2
            if level <= depth:
                stop = match.start()
                break
        if stop == at + LONGEST and (end := self.run_end(at)) > stop:
            stop = cut(self.text, at, end)
        return self.trimmed(at, stop)

    def in_string(self, at: int, stop: int) -> bool:
        """Whether what stands here goes on to there in the same string of JSON, if in any."""
        depth = self._depth(at)
        if depth < 0:
            return True
        return not any(
            bisect_left(quotes, at) < bisect_left(quotes, stop)
            for quotes in self._quotes[: depth + 1]
        )

    def trimmed(self, at: int, stop: int) -> int:
        """Where it ends without spaces."""
        while stop > at and self.view[stop - 1].isspace():
            stop -= 1
        return stop

    def quoted(self, at: int) -> Value | None:
        """The value in quotes here, to the same quote; a quote written twice is part of it."""
        match = QUOTE.match(self.text, at)
        if match is None:
            return None
        quote, begin = match["quote"], match.end()
        stop = closing(self.text, begin, quote)
        while stop is not None and begin < stop < begin + LONGEST_QUOTED:
            if quote in ("'", '"') and self.text.startswith(quote, stop + 1):
                stop = closing(self.text, stop + 2, quote)
            elif quote == "'" and self._escaped(begin, stop):
                stop = closing(self.text, stop + 1, quote)
            else:
                break
        return None if stop is None else Value(begin, stop, quote)

    def _escaped(self, begin: int, at: int) -> bool:
        """Whether a simple quote in a string of JSON is escaped: its backslashes are, too."""
        run = 0
        while at - 1 - run >= begin and self.text[at - 1 - run] == "\\":
            run += 1
        return run > 1 and (run >> (self._depth(begin) + 1)) % 2 == 1

    def bare(self, at: int, kind: str) -> Value | None:
        """The line from here, unless its first word tells that it is prose: then it is not read."""
        word = _WORD.match(self.view, at)
        if word is None:
            return None
        end, first = -1, word.end()
        if '"' in word.group() or "\\" in word.group():  # the end of a string may be in it
            end = self.line_end(at)
            first = min(first, end)
        if (cut_at := ended(self.view, at, first, kind, True)) is not None and cut_at < first:
            return Value(at, cut_at, "")
        more = _MORE.match(self.view, first) if end < 0 or first < end else None
        if more and not telling(kind, self.view[at:first]):
            return None
        return Value(at, self.line_end(at) if end < 0 else end, "")

    def secret(self, at: int, kind: str, name: str, sure: bool = True) -> Value | None:
        """The value here, in quotes or to the end of its line, if it is a secret of this kind."""
        value = self.quoted(at)
        if value is None or self.clings(value):
            value = self.bare(at, kind)
        if value is None or not believed(kind, name, self.of(value), sure, bool(value.quote)):
            return None
        return value

    def clings(self, value: Value) -> bool:
        """Whether something follows its quote at once, so that it is no value in quotes."""
        after = value.end + len(value.quote)
        return self.view[after : after + 1].isalnum()

    def of(self, value: Value) -> str:
        """What a value says."""
        return self.view[value.begin : value.end]


def believed(kind: str, name: str, value: str, sure: bool, quoted: bool) -> bool:
    """Whether what stands where a secret may stand is one.

    Args:
        kind: as `named_kind` has it.
        name: what it is called.
        value: without its quotes; of several words, one must look like a secret.
        sure: only a value can stand there, so one plain word is one.
        quoted: it stood in quotes; of a bare value the first word must look like a secret, as the
            others may be a remark.
    """
    words = STANDS_FOR.sub("", value).split()
    if not words or placeholder(value):
        return False
    if len(words) > 1:
        if sure and quoted and kind == "password" and name.isupper():
            return can_be(kind, "-".join(words), True, False)
        return any(telling(kind, word) for word in (words if quoted else words[:1]))
    word = words[0]
    if not sure:
        return telling(kind, word)
    if not quoted and (_CALL.match(word) or _NAMES.match(word)):
        return False
    return can_be(kind, word, True, False)


def telling(kind: str, word: str) -> bool:
    """Whether a word by itself looks like a secret, not like prose, a type or a length.

    Example:
        >>> telling("password", "tr0ub4dor"), telling("password", "VARCHAR(255)")
        (True, False)
    """
    if _CALL.match(word) or _WAYS.match(word):
        return False
    bare = word.strip(".,:;!?()*_`'\"")
    if not bare or not bare.isascii() or not can_be(kind, bare, False, False):
        return False
    parts = re.split(r"[_.:/-]", bare)
    if all(part.isalpha() or not part or (part.isdigit() and len(part) < 4) for part in parts):
        return False  # words, short numbers, versions
    if "-" in bare and all(map(str.isdigit, parts)):
        return False  # a date
    return kind != "password" or any(
        c.isdigit() or (c not in _NO_SIGNS and not c.isalpha()) for c in bare
    )
