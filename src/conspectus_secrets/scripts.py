"""Find the end of a bare value in texts that are not all ASCII.

It ends at a full stop of Chinese, at a typographic dash, or where Chinese, Japanese or Korean
follows. Such texts have no spaces between sentences, so reading to the next space would lose
the next sentence. Half a password left in view is worse, though: in doubt, all of it goes.
"""

from __future__ import annotations

import re
from itertools import pairwise

from conspectus_secrets.ends import cut
from conspectus_secrets.words import ALGORITHM, can_be, scattered

CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3040-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u3100-\u318f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\uff66-\uff9d\U00020000-\U0003ffff"
)
"""Letters of Chinese, Japanese and Korean, as part of a class."""

_DASHES = "\u2012-\u2015\u2025\u2026"
_MARKS = (
    "\u00ab\u00bb\u060c\u061b\u061f\u06d4\u0964\u0965\u2018-\u201f\u2039-\u203c\u2047-\u2049"
    "\u3001-\u3003\u3008-\u3011\u3014-\u301f\u30fb\ufe10-\ufe19\ufe30-\ufe44\ufe50-\ufe5e"
    "\uff01\uff02\uff07-\uff09\uff0c\uff0e\uff0f\uff1a\uff1b\uff1f\uff3b\uff3d\uff5b\uff5d-\uff65"
)
"""Punctuation that ends a value. Signs that could be part of one (`§`, `＃`, `＠`) do not."""

BREAKS = _DASHES + _MARKS
SPACES = " \t\u00a0\u202f\u3000"
"""Spaces within a line, those of French and Chinese among them."""

_BREAK = re.compile(f"[{BREAKS}]+")
_BREAK_SIGNS = "".join(re.findall(f"[{BREAKS}]", "".join(map(chr, range(0xA0, 0xFFFF)))))
_LETTER = re.compile(f"[{CJK}]")
_ASCII = re.compile(r"[!-~]+")
_NAMED = r"[A-Za-z_][A-Za-z0-9_.-]{0,40}\s?[=:：＝]"
_WORD = r"(?:[A-Z]?[a-z]{1,30}|[A-Z]{1,30})"
_PROSE = re.compile(rf"{_NAMED}|{_WORD}(?=[\s,;:.!?)]|[{CJK}{BREAKS}]|\Z)|\d{{1,6}}(?=[{CJK}])")
"""Text behind a full stop or a comma: a word, the next name, a number."""
_SENTENCE = re.compile(rf"{_WORD}(?:['’][a-z]{{1,3}})?(?=[,;:]?[ \t]{{1,4}}\S|[{CJK}])")
"""Text behind a dash, where a word alone could be the rest of a password."""
_PLAIN = re.compile(rf"{_WORD}|\d{{1,6}}|{_NAMED}.*")
_CALLED = re.compile(r"[A-Za-z]+\d(?:\.\d{1,3})*")
"""A name with its version, such as `OAuth2.0`."""
_ELSEWHERE = re.compile(r".*://.*|[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{1,64}")
"""An address or a mail address."""

_KINDS = (str.isdigit, str.islower, str.isupper)

_CLOSED_BY = {
    "“": "”“\"", "”": "”\"", "„": "“”\"", "‟": "”", "‘": "’'", "’": "’'", "‚": "‘’",
    "«": "»", "»": "«", "‹": "›", "›": "‹", "「": "」", "『": "』", "｢": "｣", "《": "》",
    "〈": "〉", "【": "】", "〝": "〞〟", "＂": "＂", "＇": "＇",
}  # fmt: skip
_OPEN = re.compile(f"[{''.join(_CLOSED_BY)}]")
_CLOSE = {a: re.compile(f"[{b}](?![A-Za-z0-9])") for a, b in _CLOSED_BY.items()}
"""Ends of a value, unless it goes on, as behind the apostrophe in `it’s9`."""

_AMONG = 64
"""Letters, in one clause, within which a value that begins with words must look like one."""
_WORDS_ONLY = re.compile(f"[{CJK}{BREAKS}]{{{_AMONG}}}")

_DOUBTS = 8
"""Maximum breaks before ASCII that are checked; a hostile text may have many."""

LONGEST_PRINTED = 512
"""Maximum characters between typographic quotes."""


def cjk(text: str, at: int = 0) -> bool:
    """Return whether a letter of Chinese, Japanese or Korean stands here."""
    return _LETTER.match(text, at) is not None


def worded(value: str) -> bool:
    """Return whether a value has such letters, and may be a sentence without spaces."""
    return _LETTER.search(value) is not None


def words_only(text: str, at: int) -> bool:
    """Return whether too many such letters stand here for a value to follow."""
    return _WORDS_ONLY.match(text, at) is not None


def printed(text: str, at: int) -> tuple[int, int] | None:
    """Return the place of the value in typographic quotes from here, without spaces.

    Example:
        >>> printed("« Zx9 »", 0), printed("Zx9", 0), printed("“Zx9", 0)
        ((2, 5), None, (1, 1))
    """
    if _OPEN.match(text, at) is None:
        return None
    limit = min(len(text), at + LONGEST_PRINTED)
    line = text.find("\n", at, limit)
    limit = limit if line < 0 else line
    close = _CLOSE[text[at]].search(text, at + 1, limit)
    begin = at + 1
    if close is None:  # not closed: what follows is read as if there were none
        return begin, begin
    end = close.start()
    while begin < end and text[begin].isspace():
        begin += 1
    while end > begin and text[end - 1].isspace():
        end -= 1
    return begin, end


def ended(text: str, at: int, stop: int, kind: str, shell: bool) -> int | None:
    """Return the end of a bare value, or None if it is none.

    Args:
        text: the text.
        at: where it begins.
        stop: the end of the unbroken run.
        kind: of the secret.
        shell: as for `can_be`.

    Example:
        >>> ended("Zx9#mP2q。然后", 0, 11, "password", False)
        8
        >>> ended("密Zx9#mP2q", 0, 9, "password", False)
        9
        >>> ended("请勿外传", 0, 4, "password", False)
    """
    if text[at:stop].isascii():
        return stop
    stop = at + len(text[at:stop].rstrip(_BREAK_SIGNS))
    first = _LETTER.search(text, at, stop)
    letter = first.start() if first else stop
    broken = _broken(text, at, letter, stop, kind, shell)
    if broken is not None or letter == stop:
        stop = stop if broken is None else broken
        return stop if can_be(kind, plainly(text[at:stop]), False, shell) else None
    clause = _BREAK.search(text, letter, stop)
    end = clause.start() if clause else stop
    lead = text[at:letter]
    prose = not any(map(_goes_on, _ASCII.finditer(text[letter:end])))
    if prose and any(sure(one, lead, shell) for one in {kind, "password"}):
        return cut(text, at, letter)
    if len(lead) >= 6 and can_be(kind, plainly(lead), False, shell):
        return end if prose else stop
    if shell:
        return stop if can_be(kind, text[at:stop], False, True) else None
    odd = any(_odd(part[0]) for part in _ASCII.finditer(text, at, min(end, at + _AMONG)))
    return stop if odd else None


def _broken(text: str, at: int, letter: int, stop: int, kind: str, shell: bool) -> int | None:
    """Return the place of punctuation that certainly ends a value before the first such letter."""
    doubts = 0
    for match in _BREAK.finditer(text, at + 1, letter):
        begin, after = match.span()
        if after == letter < stop:
            return begin
        if not text[after].isascii() or "’" in match[0]:
            continue
        doubts += 1
        if doubts > _DOUBTS:
            break
        dash = re.match(f"[{_DASHES}]", match[0])
        if (_SENTENCE if dash else _PROSE).match(text, after) and can_be(
            kind, plainly(text[at:begin]), False, shell
        ):
            return begin
    return None


def plainly(value: str) -> str:
    """Replace punctuation that is not ASCII by hyphens, so that a word with a dash stays a word."""
    return value if value.isascii() else _BREAK.sub("-", value)


def sure(kind: str, value: str, shell: bool = False) -> bool:
    """Return whether this is a secret in any surroundings: no word, numbered name or length.

    Example:
        >>> sure("password", "Zx9#mP2q"), sure("password", "OAuth2"), sure("password", "8")
        (True, False, False)
    """
    if len(value) < 6 or not can_be(kind, plainly(value), False, shell):
        return False
    if _CALLED.fullmatch(value) or ALGORITHM.match(value) or _ELSEWHERE.fullmatch(value):
        return False
    if scattered(value):
        return True
    digits, letters = sum(map(str.isdigit, value)), sum(map(str.isalpha, value))
    return (
        len(value) >= 12 and digits >= 3 and letters >= 3 and can_be("token", value, False, shell)
    )


def _goes_on(part: re.Match[str]) -> bool:
    """Return whether the rest of a password may stand here, behind letters of another script."""
    if _PLAIN.fullmatch(part[0]) is None:
        return True
    return part[0].isdigit() and part.start() < 2


def _odd(part: str) -> bool:
    """Return whether a part looks like a secret among words."""
    if len(part) < 4 or not scattered(part) or _CALLED.fullmatch(part) or ALGORITHM.match(part):
        return False
    bland = all(c.isalnum() or c in "_-.:/%()[],!?" for c in part)  # signs of words and paths
    return not _ELSEWHERE.fullmatch(part) and (not bland or changes(part) >= 3)


def changes(value: str) -> int:
    """Count the changes between digits, small letters and capitals.

    Example:
        >>> changes("Secp256"), changes("Hk7mP2qLz9")
        (2, 9)
    """
    kinds = [n for c in value for n, is_one in enumerate(_KINDS) if is_one(c)]
    return sum(a != b for a, b in pairwise(kinds))


def heads(value: str) -> list[str]:
    """List the starts of a value, to its first break or other script, that are secrets alone.

    Example:
        >>> heads("Zx9#mP2q，x8然后")
        ['Zx9#mP2q', 'Zx9#mP2q，x8']
    """
    if value.isascii():
        return []
    places = [re.search(f"[\\s{BREAKS}]", value), _LETTER.search(value)]
    cuts = [value[: place.start()] for place in places if place is not None]
    odd = {one for one in cuts if any(map(_odd, _ASCII.findall(one)))}
    return [one for one in dict.fromkeys(cuts) if one in odd or sure("password", one)]
