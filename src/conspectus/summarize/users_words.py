"""Part 1 of the notes: what the user said, word for word and in order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from conspectus.ledger import Ledger, Said, choose, statements
from conspectus.ledger.pieces import left_open
from conspectus.messages import Entry, is_summary_message
from conspectus.messages.framing import as_notes
from conspectus.summarize.cutting import cut, one_line
from conspectus.summarize.notes import apart, cited

PASTE = 600
"""Characters of what a user pasted from which it is shown short: its first lines."""

SHOWN = 160
"""Characters of a long paste that stand."""

REPEATED = 60
"""Characters from which a message that says the same as one before stands once."""

LINE = 8
"""Tokens that a line takes beside its words: its dash and its citation."""

SAME = "(the same as "
"""Begins the line on messages that say the same as one before."""

LEFT_OUT = "(not all of it fits: the rest, at each …, is "
"""Begins the line that says so, behind which the rest of it says where that is."""

AND = " + "
"""Stands between the figures of one such message."""

FIGURED = 200
"""Characters from which a message that differs from one before in figures alone is told by them."""

_AGAIN = re.compile(r"\(the same as (\w+)(?: but with ([^,]+))?, (?:once|(\d+) times) more\)")
_FIGURE = re.compile(r"\d+")
_UNCLEAR = re.compile(r"[,;()]")
_GAPS = re.compile(r"…(?:\s*…)+")
_BLANK = re.compile(r"\n(?:[^\S\n]*\n){2,}")


def said(entries: Sequence[Entry], before: Sequence[str] = ()) -> list[str]:
    """Return a line for each message of the user; one that repeats another stands once.

    Args:
        entries: the messages that leave.
        before: lines of segments that stand.
    """
    stood, shapes = dict[str, str](), dict[str, tuple[str, str]]()
    rows: dict[str, dict[str, None]] = {}

    def stands(text: str, cite: str) -> None:
        line = one_line(text)
        stood.setdefault(line, cite)
        shapes.setdefault(_FIGURE.sub("0", line), (cite, line))
        for row in text.splitlines():
            rows.setdefault(row.strip(), {})[cite] = None

    short = set[str]()
    for text, cites in map(apart, before):
        if cites and not text.startswith("… "):
            stands(text, cites[0])
            short.update(cites[:1] if "…" in text and not text.startswith(SAME) else ())
    lines: list[str] = []
    again: list[str] = []
    for entry in entries:
        if not _users(entry):
            continue
        text = _words(entry)
        line = one_line(text)
        # One that stands short is known by its name, where that is made from what it says.
        hashed = entry.cite in short and entry.cite != entry.given_id
        name = entry.cite if hashed else stood.get(line)
        like = shapes.get(_FIGURE.sub("0", line))
        if len(text) >= REPEATED and name:
            again.append(_again(name, 1, [entry.cite]))
        elif len(text) >= FIGURED and like and (news := _figures(like[1], line)):
            again.append(_again(like[0], 1, [entry.cite], news))
        else:
            lines.append(cited(_once(text, rows), [entry.cite]))
            stands(text, entry.cite)
    return lines + once(again)


def repeats(entry: Entry, entries: Sequence[Entry], before: Sequence[str] = ()) -> bool:
    """Return whether a message says the same as one before it, but for some figures.

    Args:
        entry: the message.
        entries: the messages before it.
        before: lines of segments that stand.
    """
    lines = said([*entries, entry], before)
    return not any(entry.cite in apart(line)[1] for line in lines if not line.startswith(SAME))


def once(lines: Sequence[str]) -> list[str]:
    """Return lines of which those that say the same as one message stand as one.

    Those in other figures stand apart from those in the same ones.

    Example:
        >>> once(["(the same as m2 but with part 7, once more) [m4]", "No. [m5]",
        ...       "(the same as m2 but with part 8; part 9, 2 times more) [m6, m9]"])
        ['No. [m5]', '(the same as m2 but with part 7; part 8; part 9, 3 times more) [m4, m9]']
    """
    again: dict[tuple[str, bool], tuple[int, list[str], list[str]]] = {}
    kept: list[str] = []
    for line in lines:
        text, cites = apart(line)
        if (found := _AGAIN.fullmatch(text)) is None or not cites:
            kept.append(line)
        else:
            key = found[1], bool(found[2])
            times, named, news = again.get(key, (0, [], []))
            news = news + (found[2].split("; ") if found[2] else [])
            again[key] = times + int(found[3] or 1), named + cites, news
    return kept + [
        _again(key[0], times, cites, news) for key, (times, cites, news) in again.items()
    ]


def _again(name: str, times: int, cites: Sequence[str], news: Sequence[str] = ()) -> str:
    """Return the line on messages that repeat one, but for some figures."""
    more = f"{times} times" if times > 1 else "once"
    changed = list(dict.fromkeys(reversed(news)))[::-1]
    but = f" but with {'; '.join(changed)}" if changed else ""
    text = f"{SAME}{name}{but}, {more} more)"
    return cited(text, list(dict.fromkeys([cites[0], cites[-1]])))


def _figures(old: str, new: str) -> list[str]:
    """Return the figures that differ, each with the word before it; none that would be unclear.

    Unclear is a sign that parts figures, and a figure that could stand in two places.

    Example:
        >>> _figures("Look at part 3. Be brief.", "Look at part 14. Be brief.")
        ['part 14.']
    """
    words, before = new.split(), ["", *new.split()]
    if len(words) != len(old.split()):
        return []
    places = [f"{word} {figure}".strip() for word, figure in zip(before, words, strict=False)]
    shapes = Counter(_FIGURE.sub("0", place) for place in places)
    news = [one for was, one, word in zip(old.split(), places, words, strict=True) if was != word]
    unclear = any(_UNCLEAR.search(one) or shapes[_FIGURE.sub("0", one)] > 1 for one in news)
    return [] if unclear else [AND.join(news)]


def _once(text: str, rows: Mapping[str, Mapping[str, None]]) -> str:
    """Return a message without the lines that one before it has, if those are most of it.

    One that leaves out a line, and brings none like it, stands whole: that line holds no longer.

    Example:
        >>> _once("Not valid: 3 blocks.\\nWrite one block of bash, and wait for its result.",
        ...       {"Write one block of bash, and wait for its result.": {"m2": None}})
        'Not valid: 3 blocks. (the rest as m2)'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    names = Counter(name for line in lines for name in rows.get(line, ()))
    if len(text) < REPEATED or not names:
        return text
    [(name, _)] = names.most_common(1)
    news = [line for line in lines if name not in rows.get(line, ())]
    said = "\n".join(news)
    if not news or 2 * len(said) > len(text):
        return text
    gone = [row for row, cites in rows.items() if row and name in cites and row not in lines]
    changed = all(any(_alike(row, line) for line in news) for row in gone)
    return f"{said} (the rest as {name})" if changed else text


def _alike(old: str, new: str) -> bool:
    """Whether a line may stand in the place of another: most of its words are there."""
    words = set(old.split())
    return 2 * len(words & set(new.split())) > len(words)


def _words(entry: Entry) -> str:
    text = as_notes(without_pastes(entry.text.strip()))
    return f"(system) {text}" if entry.role == "system" else text


def _users(entry: Entry) -> bool:
    """Whether it is a message of the user, or of the system in the middle of a talk."""
    said = entry.role in ("user", "system") and bool(entry.text.strip())
    return said and not is_summary_message(entry.source)


def without_pastes(text: str) -> str:
    """Return a message with long pastes shown short; the user's own sentences stay as they are."""
    if len(text) <= PASTE:
        return text
    parts: list[str] = []
    at = start = stop = 0
    for one in (*statements(text), None):
        if one is not None and not one.own:
            start, stop = (start, one.end) if stop else (one.start, one.end)
            continue
        if stop - start > PASTE:
            head = cut(text[start:stop], SHOWN)
            more = f"{head} ({stop - start - len(head):,} characters more)"
            parts += [text[at:start], more, f"\n{sign}" if (sign := left_open(head)) else ""]
            at = stop
        start = stop = 0
    return "".join([*parts, text[at:]])


def left_out(archived: bool) -> str:
    """Return the line that says where those of the user's words are that do not stand."""
    return LEFT_OUT + ("one recall away)" if archived else "gone)")


def chosen(
    lines: Sequence[str], room: int, count: Callable[[str], int], known: Ledger
) -> list[str | None]:
    """Choose what stands where the user's words outgrow their room; see `ledger.choose`.

    Returns:
        For each line what stands of it, None for nothing.
    """
    pairs = [apart(line) for line in lines]
    kept = choose([Said(text) for text, _ in pairs], room, count, line=LINE, known=known)
    stands: list[str | None] = [None] * len(lines)
    for one in kept:
        text = _BLANK.sub("\n\n", _GAPS.sub("…", one.text))  # more was left out beside a gap
        if any(map(str.isalnum, text)):
            stands[one.place] = cited(text, pairs[one.place][1])
    return stands
