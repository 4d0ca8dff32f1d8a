"""Find the end of a value, and judge whether it is a secret.

A value in quotes goes to the same quote, and a bare one to the end of its line: a remaining
part of a secret is worse than an extra word. JSON around the line stays valid, though: the end
of the string ends the line too.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

from conspectus_secrets.ends import LONGEST, LONGEST_QUOTED, QUOTE, RUN, closing, cut
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
"""Signs of prose, types and quotes; a word with no other sign and no digit is no password."""

DEPTHS = 4
"""Levels of JSON in JSON that are distinguished."""


def unfolded(text: str) -> str:
    """Replace escaped line ends of JSON by real ones, each character in its place.

    Example:
        >>> unfolded("a\\\\nb")
        'a \\nb'
    """
    return _BREAKS.sub(lambda m: " " * (len(m[0]) - 1) + ("\n" if m[0][-1] in "nr" else " "), text)


@dataclass(frozen=True, slots=True)
class Value:
    """The place of a value, with its quote, which may be empty."""

    begin: int
    end: int
    quote: str


class Bounds:
    """Find where values end.

    Args:
        text: the text.
        view: the text to search, with the line ends of JSON as such. Default: the same.
    """

    def __init__(self, text: str, view: str | None = None) -> None:
        self.text = text
        self.view = text if view is None else view
        self._run = (0, 0)
        self._ended: dict[int, int] = {}

    @cached_property
    def _lines(self) -> list[int]:
        return [match.start() for match in re.finditer("\n", self.text)]

    @cached_property
    def _quotes(self) -> list[list[int]]:
        """Find quotes, by the number of JSON strings around them."""
        found: list[list[int]] = [[] for _ in range(DEPTHS)]
        for match in _QUOTES.finditer(self.text):
            depth, count = 0, len(match[1])
            while count % 2:
                depth, count = depth + 1, count // 2
            if depth < DEPTHS:
                found[depth].append(match.start())
        return found

    def _depth(self, at: int) -> int:
        """Return the depth of the innermost open JSON string, from 0; -1 for none."""
        return self._open(at)[0]

    def run_end(self, at: int) -> int:
        """Return the end of the unbroken run from here, at a space, a quote or a tag."""
        begin, end = self._run  # a long one is read once for many requests
        if not begin <= at < end:
            match = RUN.match(self.view, at)
            self._run = begin, end = at, match.end() if match else at
        return end

    def column(self, at: int) -> int:
        """Count the characters before this place on its line, or in its JSON string."""
        least = max(0, at - 200)
        begin = self.view.rfind("\n", least, at) + 1 or least
        depth, opened = self._open(at)
        return at - (max(begin, opened + 1) if depth >= 0 else begin)

    def _open(self, at: int) -> tuple[int, int]:
        """Return the depth of the innermost open JSON string, and the place of its quote."""
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
        """Return the end of the line, or of its JSON string, without trailing spaces."""
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
        """Return whether two places lie in the same JSON string, or in none."""
        depth = self._depth(at)
        if depth < 0:
            return True
        return not any(
            bisect_left(quotes, at) < bisect_left(quotes, stop)
            for quotes in self._quotes[: depth + 1]
        )

    def trimmed(self, at: int, stop: int) -> int:
        """Move an end before its spaces."""
        while stop > at and self.view[stop - 1].isspace():
            stop -= 1
        return stop

    def quoted(self, at: int) -> Value | None:
        """Return the value in quotes here; a doubled quote is part of it."""
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
        """Return whether a single quote in a JSON string is escaped, by escaped backslashes."""
        run = 0
        while at - 1 - run >= begin and self.text[at - 1 - run] == "\\":
            run += 1
        return run > 1 and (run >> (self._depth(begin) + 1)) % 2 == 1

    def bare(self, at: int, kind: str) -> Value | None:
        """Return the rest of the line, unless its first word shows that it is prose."""
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
        """Return the value here, in quotes or bare, if it is a secret of this kind."""
        value = self.quoted(at)
        if value is None or self.clings(value):
            value = self.bare(at, kind)
        if value is None or not believed(kind, name, self.of(value), sure, bool(value.quote)):
            return None
        return value

    def clings(self, value: Value) -> bool:
        """Return whether text follows the quote at once, so that it quotes no value."""
        after = value.end + len(value.quote)
        return self.view[after : after + 1].isalnum()

    def of(self, value: Value) -> str:
        """Return the text of a value."""
        return self.view[value.begin : value.end]


def believed(kind: str, name: str, value: str, sure: bool, quoted: bool) -> bool:
    """Return whether a value at the place of a secret is one.

    Args:
        kind: from `named_kind`.
        name: of the value.
        value: without its quotes; of several words, one must look like a secret.
        sure: only a value can stand there, so one plain word is one.
        quoted: it stood in quotes; the first word of a bare value must look like a secret, as the
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
    """Return whether a word alone looks like a secret, not like prose, a type or a length.

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
