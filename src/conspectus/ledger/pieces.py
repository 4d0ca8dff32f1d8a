"""A message in pieces: sentences of its speaker, and pasted blocks; in any script, in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from conspectus.ledger.patterns import WIDE

LONGEST = 600
"""Characters of a piece at most; a longer one is divided, at a mark or a blank where there is one."""

WORDS = 4
"""Plain words from which a line is prose."""

_FENCE = re.compile(r"^\s{0,3}(?:```|~~~)[`~]*\s*(\S?)")
_PASTED = re.compile(
    r"\s*(?:>|\[[^\]\n]*\]\s*$|\||\+\+\+ |--- |@@ |\$ |>>> |at \S+\(|File \"|Traceback|[\[{<(]?\"?\w+\"?[\]}>)]*[,;{}]?$(?<=[{};>\]])"
    r"|['\"][\w. -]+['\"]\s*[:,]|\(Pdb\)|(?:SELECT|FROM|WHERE|(?:INNER|OUTER|LEFT|RIGHT) [A-Z]+|GROUP BY|ORDER BY|INSERT INTO|LINE \d+)\b|ON \(|['\"]\w+['\"]\."
    r"|\W*(?:DEBUG|INFO|WARN(?:ING)?|ERROR|TRACE|FATAL)\b"
    r"|(?:\w+:\s)?\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|[A-Za-z_][\w.]*(?:Error|Exception|Warning)\b)"
)
COMMENT = "<!--"
"""Opens a comment of a template, which nobody who reads the page sees."""

_HIDDEN = re.compile(
    r"[^\S\n]*<!--(?:(?!-->|<!--|\n[^\S\n]*\n)[\s\S]){1,2000}?-->[^\S\n]*(?=\n|\Z)"
)

_ENDED = re.compile(r"\s{0,3}(?:``|~~|</?[A-Za-z][\w-]*>)\s*$")
_EXAMPLE = re.compile(r"\s*<(\w*example\w*)>\s*$", re.IGNORECASE)
"""Opens an example, in which nobody says a thing."""

_MARK = re.compile(
    r"\s*(?:[-*•+–]\s+|\d{1,2}[.)]\s+|[（(]?\d{1,2}[）)、]\s*|[①-⑳]\s*|・\s*|#{1,6}\s+)?(?:\[[ xX]\]\s+)?"
)
_END = re.compile(r"[.!?…][\"'”’»)\]*_]*(?=\s)|[。！？][」』”’）)\"]*")
_GOES_ON = re.compile(
    r"(?:^|[\s(])(?:[A-ZА-Я]|e\.g|i\.e|z\.\s?B|d\.\s?h|u\.\s?a|p\.\s?ej|Dr|Mr|Mrs|Ms|Prof|Nr|No|St|Sra?|Dra|Uds?"
    r"|ca|bzw|vgl|Abs|approx|vs|art|pág|Mme|Mlle|Hr|Fr|Str|Tel|inkl|max|min|ggf|Jan|Feb|Mar|Apr|Jun|Jul|Aug"
    r"|Sept?|Oct|Nov|Dec|Okt|Dez|Inc|Ltd|Co|cf|т\. ?е|руб|г)\.$|(?:^|[\s(])\d{1,2}\.$"
)
_QUOTED = re.compile(r"`[^`]+`")
_SIGN = re.compile(r"[(){}\[\]=<>_;|]")
_PLAIN = re.compile(r"(?<!\S)[^\W\d_]{2,}[,:]?(?!\S)")
_WIDE = re.compile(f"[{WIDE}]")
_CUT = re.compile(r"[,;:，、；：)\s]")


class Piece(NamedTuple):
    """One piece of a text: where it stands, and whether it is the speaker's own sentence."""

    start: int
    end: int
    own: bool


def pieces(text: str) -> Iterator[Piece]:
    """Yield the pieces of a text, in order, without list marks.

    Example:
        >>> [text[a:b] for text in ["- See Dr. Li. Then?"] for a, b, _ in pieces(text)]
        ['See Dr. Li.', 'Then?']
    """
    at, fenced, block, example, hidden = 0, False, -1, -1, -1
    closed = dict[str, int]()
    lines = text.splitlines(keepends=True)
    never_closed = _never_closed(lines)
    for place, line in enumerate(lines):
        fence = _FENCE.match(line)
        if at > example and (tag := _EXAMPLE.match(line)) is not None:
            if -1 < closed.get(tag[1], 0) <= at:
                closed[tag[1]] = text.find(f"</{tag[1]}>", at)
            example = closed[tag[1]]
        if at > hidden and COMMENT in line and (comment := _HIDDEN.match(text, at)) is not None:
            hidden = comment.end() - 1
        if (
            at <= max(example, hidden)
            or fenced
            or fence
            or not line.strip()
            or _PASTED.match(line[:200])
            or _code(line)
        ):
            if block < 0 and line.strip():
                block = at
            if fence:
                fenced = place not in never_closed and (bool(fence[1]) or not fenced)
        else:
            if block >= 0:
                yield from _divided(text, block, at, own=False)
            block = -1
            yield from _sentences(text, at, at + len(line))
        at += len(line)
    if block >= 0:
        yield from _divided(text, block, at, own=False)


def _never_closed(lines: Sequence[str]) -> set[int]:
    """Return the lines that open a block of code which a next one shows to have never ended.

    That one names a language, and so opens a block itself; what stands between the two is no code
    where a tag on a line of its own, or half a fence, shows that the first had ended.

    Example:
        >>> _never_closed(["```", "menu", "``", "Never burn it.", "```sh", "make", "```"])
        {0}
    """
    found, opened, ended = set[int](), -1, False
    for place, line in enumerate(lines):
        if (fence := _FENCE.match(line)) is None:
            ended = ended or _ENDED.match(line) is not None
            continue
        if opened >= 0 and fence[1] and ended:
            found.add(opened)
        opened, ended = place if opened < 0 or fence[1] else -1, False
    return found


def marked_from(text: str, start: int) -> int:
    """Return where the list mark, or the signs of a heading, before a sentence begin.

    Example:
        >>> marked_from("Rules:\\n- No tabs.", 9)
        7
    """
    line = text.rfind("\n", 0, start) + 1
    mark = _MARK.match(text, line, start)
    return line + len(mark[0]) - len(mark[0].lstrip()) if mark and mark.end() == start else start


def left_open(text: str) -> str:
    """Return the sign that closes the code block with which a text ends, if it ends in one.

    Example:
        >>> left_open("Run this:\\n```sh\\nmake")
        '```'
    """
    sign = ""
    for line in text.splitlines():
        if fence := _FENCE.match(line):
            sign = "" if sign and not fence[1] else line.strip()[:3]
    return sign


def is_prose(text: str) -> bool:
    """Return whether a sentence has words as people write them, and not names and signs alone.

    Example:
        >>> is_prose("Make changes to files that are no tests."), is_prose("alias_map = {'U0': T5}")
        (True, False)
    """
    return len(_PLAIN.findall(text)) >= WORDS or _WIDE.search(text) is not None


def _code(line: str) -> bool:
    """Whether a line is code: many of its signs, few words between blanks, no end of a sentence.

    Signs between backticks are quoted.
    """
    line = _QUOTED.sub("", line[:200]).rstrip()
    signs = len(_SIGN.findall(line))
    if signs < 2 or signs < 0.07 * len(line) or line.endswith((".", "!", "?", "。")):
        return False
    return not is_prose(line)


def _sentences(text: str, at: int, end: int) -> Iterator[Piece]:
    mark = _MARK.match(text, at, end)
    start = mark.end() if mark else at
    for match in _END.finditer(text, start, end):
        if match[0][0] == "." and _runs_on(text, max(start, match.start() - 12), match):
            continue
        yield from _divided(text, start, match.end(), own=True)
        start = match.end()
    yield from _divided(text, start, end, own=True)


def _runs_on(text: str, start: int, match: re.Match[str]) -> bool:
    """Whether a full stop ends no sentence: a short form, or "3." before a month."""
    found = _GOES_ON.search(text[start : match.start() + 1])
    if found is None:
        return False
    after = text[match.end() : match.end() + 3].strip()
    return after[:1].islower() or not found[0].strip(" (.").isdigit() or after[:2] in _MONTHS


_MONTHS = frozenset("Ja Jä Fe Mä Ap Ma Ju Au Se Ok No De".split())


def _divided(text: str, start: int, end: int, *, own: bool) -> Iterator[Piece]:
    while start < end:
        while start < end and text[start].isspace():
            start += 1
        stop = end
        if end - start > LONGEST:
            cuts = [m.end() for m in _CUT.finditer(text, start + LONGEST // 2, start + LONGEST)]
            stop = cuts[-1] if cuts else start + LONGEST
        last = stop
        while last > start and text[last - 1].isspace():
            last -= 1
        if last > start:
            yield Piece(start, last, own)
        start = stop
