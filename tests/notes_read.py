"""Read the notes as a person does: what stands under a heading, line by line."""

import re

SAID = "Said by the user"
DONE = "Done"

GAP = "…"
"""Marks what is left out of a text."""

LEFT_OUT = re.compile(r"\((\d+) messages? of the user left out")
COUNTED = re.compile(r"\((\d+) \w+ calls?: ")
FEWER = re.compile(r"\((\d+) (?:messages? of the user|lines?) left out|\((\d+) \w+ calls?: ")

_CITES = re.compile(r" \[[^\[\]\n]{1,200}\]$")


def under(heading: str, notes: str) -> list[str]:
    """Return the lines below a heading in all parts, each without its dash and its indents."""
    lines: list[str] = []
    current_heading = ""
    for line in notes.split("\n"):
        if line.startswith(("# ", "## ")):
            current_heading = line
        elif current_heading == f"## {heading}":
            if line.startswith("- "):
                lines.append(line[2:])
            elif lines:
                lines[-1] += "\n" + line.removeprefix("  ")
    return lines


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
    """Return all that stands under the user's words as one text."""
    return "\n".join(under(SAID, notes))
