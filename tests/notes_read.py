"""Read the notes as a person does: who said what, and which call brought what, line by line."""

import re

SAID = "said by the user"
DONE = "done"
AGENT = "said by the agent"
FOUND = "found"

GAP = "…"
"""Marks what is left out of a text."""

LEFT_OUT = re.compile(r"\((\d+) messages? of the user left out")
COUNTED = re.compile(r"\((\d+) \w+ calls?: ")
FEWER = re.compile(
    r"\((\d+) (?:messages? of [a-z ]+|findings?|lines) left out|\((\d+) \w+ calls?: "
)

_CITES = re.compile(r" \[[^\[\]\n]{1,200}\]$")
_USER = re.compile(r"The user(?:, to ([^:\n]+)|, again as in \[[^\]\n]+\]|, again)?: ")
_AGENT = "Agent: "
_CALL = re.compile(r"\S+\(.*\) → ", re.DOTALL)


def lines_in_order(notes: str) -> list[tuple[str, str]]:
    """Return the lines of the notes with what each is, without its dash, its indents, its speaker.

    What the user said to a tool that asked keeps the name of the tool.
    """
    lines: list[tuple[str, str]] = []
    heading = ""
    for item in _items(notes):
        if item.startswith("#"):
            heading = item
        elif heading == "## Found and decided":
            lines.append((FOUND, item))
        elif heading == "## In order":
            lines.append(_classified(item))
    return lines


def _items(notes: str) -> list[str]:
    items: list[str] = []
    for line in notes.split("\n"):
        if line.startswith("- "):
            items.append(line[2:])
        elif line.startswith("#") or not items:
            items.append(line)
        else:
            items[-1] += "\n" + line.removeprefix("  ")
    return items


def _classified(item: str) -> tuple[str, str]:
    speaker = _USER.match(item)
    if speaker:
        asked_by = f"{speaker[1]}: " if speaker[1] else ""
        return SAID, asked_by + item[speaker.end() :]
    if LEFT_OUT.match(item):
        return SAID, item
    if COUNTED.match(item):
        return DONE, item
    words = item.removeprefix(_AGENT)
    is_call = _CALL.search(words) and not item.startswith("From ")
    return (DONE if is_call else AGENT), words


def under(kind: str, notes: str) -> list[str]:
    """Return the lines of a kind."""
    return [text for kind_of_line, text in lines_in_order(notes) if kind_of_line == kind]


def is_repeated(notes: str, text: str) -> bool:
    """Tell whether a line of the user quotes only what differs from an earlier message."""
    return any(item.startswith("The user, again") and item.endswith(text) for item in _items(notes))


def uncited(line: str) -> str:
    """Return a line without the ids that it ends with."""
    return _CITES.sub("", line)


def cites(line: str) -> list[str]:
    """Return the ids that a line ends with."""
    match = _CITES.search(line)
    return match[0].strip(" []").split(", ") if match else []


def words(notes: str) -> list[str]:
    """Return what the user said as it is shown, without what stands for other words."""
    lines = map(uncited, under(SAID, notes))
    return [text for text in lines if not FEWER.match(text)]


def pieces(text: str) -> list[str]:
    """Return what stands between marks of omission."""
    return [piece.strip() for piece in text.split(GAP) if piece.strip()]


def left_out(notes: str) -> int:
    """Return how many of the user's messages are said to be left out."""
    return sum(int(match[1]) for line in under(SAID, notes) if (match := LEFT_OUT.match(line)))


def said_in(notes: str) -> str:
    """Return all that the user said as one text."""
    return "\n".join(under(SAID, notes))
