"""Texts and commands cut to a room, at a word, with what names them."""

from __future__ import annotations

import re

LEAST = 16
"""Characters of what a command writes into a file from which it is shown."""

_SUBSTITUTION = re.compile(
    r"\bsed -i[^'\"\n]{0,20}['\"][^/'\"\n]{0,20}?s(/)((?:[^/\\\n]|\\.){2,400})/"
)
_FIRST = re.compile(r"((?:\$ )?)(?:cd \S++|rm (?:-\w+ )++(\S++)(?=(.*))) (?:&&|⏎|;) ")
_BUILD = re.compile(r" \((?:(\d+ lines): |[^()⏎]* ⏎ )")
_BLANKS = re.compile(r"\s+")


def one_line(text: str) -> str:
    """Return the text with every run of white space as one blank."""
    return _BLANKS.sub(" ", text).strip()


def cut(text: str, room: int) -> str:
    """Return the text, shortened at a word to at most `room` characters where it is longer.

    Of a path or an address the end stays too, as that is what names it.

    Example:
        >>> cut("no flight was found", 14)
        'no flight…'
        >>> cut("/home/ann/projects/atlas/readme.md", 20)
        '/home/ann/…readme.md'
    """
    if len(text) <= room:
        return text
    if " " not in text and "/" in text:
        return f"{text[: room // 2]}…{text[len(text) - (room - room // 2 - 1) :]}"
    short = text[: max(1, room - 1)]
    at = max(short.rfind(" "), short.rfind(","))
    return (short[:at] if at > room // 2 else short).rstrip(" ,;:/…") + "…"


def cut_command(text: str, room: int) -> str:
    """Return a command, shortened before its last word where that is a path: what it is about.

    Left out first are the text that a substitution takes away, as what comes in its place is news,
    the folder in which the command runs, the removal of a file that it makes again, and what the
    file holds that it writes.

    Example:
        >>> cut_command("sed -i '3s/return spam and eggs/return None/' menu.py", 44)
        "sed -i '3s/…/return None/' menu.py"
        >>> cut_command("sed -i 's/spam/more spam/' src/cafe/menu.py", 34)
        "sed -i 's/…/more… src/cafe/menu.py"
        >>> cut_command("cd src/cafe && cat > menu.py (9 lines: class Menu:; class Dish:)", 26)
        'cat > menu.py (9 lines)'
    """
    if len(text) > room and (found := _SUBSTITUTION.search(text)) is not None:
        text = f"{text[: found.start(2)]}…{text[found.end(2) :]}"
    while len(text) > room and (first := _FIRST.match(text)) is not None:
        if first[2] and first[2] not in first[3]:
            break
        text = first[1] + text[first.end() :]
    if len(text) > room and text.endswith(")") and (build := _BUILD.search(text)) is not None:
        lines, left = build[1], room - build.start() - len(build[1] or "") - 5
        holds = text[build.end() if lines else build.start() + 2 : -1]
        shown = cut(holds, left) if left > LEAST else "" if lines else "…"
        text = f"{text[: build.start()]} ({': '.join(filter(None, [lines, shown]))})"
    start, _, last = text.rpartition(" ")
    if len(text) <= room or len(last) > room // 2 or not ("/" in last or "." in last):
        return cut(text, room)
    return f"{cut(start, room - len(last) - 1)} {last}"
