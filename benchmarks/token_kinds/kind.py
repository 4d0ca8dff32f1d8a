"""What a kind of text is, and parts from which the kinds are written."""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

Writer = Callable[[Random, int], str]
"""Writes one text of about so many characters."""

LineWriter = Callable[[Random], str]


@dataclass(frozen=True)
class Kind:
    """A kind of text."""

    name: str
    write: Writer


class Registry(list[Kind]):
    """Collects kinds, by decorators."""

    def text(self, name: str) -> Callable[[Writer], Writer]:
        """Add a kind whose function writes a whole text."""

        def add(write: Writer) -> Writer:
            self.append(Kind(name, write))
            return write

        return add

    def lines(self, name: str, between: str = "\n") -> Callable[[LineWriter], LineWriter]:
        """Add a kind whose function writes one line, or one part, of it."""

        def add(line: LineWriter) -> LineWriter:
            self.append(Kind(name, lambda draw, size: repeated(draw, size, line, between)))
            return line

        return add


def repeated(draw: Random, size: int, line: LineWriter, between: str = "\n") -> str:
    """Write lines until there are so many characters."""
    lines: list[str] = []
    length = 0
    while length < size:
        lines.append(line(draw))
        length += len(lines[-1]) + len(between)
    return between.join(lines)


WORDS = """time year people way day man thing woman life child world school state family student group
country problem hand part place case week company system program question work government number night
point home water room mother area money story fact month lot right study book eye job word business
issue side kind head house service friend father power hour game line end member law car city community
name president team minute idea kid body information back parent face others level office door health
person art war history party result change morning reason research girl guy moment air teacher force
education the of and to in is that for it was on are as with they be at this have from or by not but
what all were when we there can an your which their said if do will each about how up out them then she
many some so these would other into has more her two like him see could no make than first been its who
now find long down did get come made may after should very through just where most know take think""".split()
"""Usual English words."""

NAMES = """user account order invoice payment session token config handler request response client server
cache queue worker task job event message index query result record field value node edge graph parser
buffer stream reader writer file path image layer model batch loss metric score label feature table column
row cell widget button panel view route proxy pool thread lock timer signal filter mapper factory builder
manager service adapter schema migration template module package import export version release branch
commit patch merge deploy cluster region bucket volume secret policy role group tenant plan quota limit
retry timeout backoff health probe trace span log level error warning debug""".split()
"""Usual words of identifiers."""

PEOPLE = "Anna Ben Chloe David Elena Farid Grace Hiro Ines Jonas Karim Lena Maria Noah Olga Priya".split()
VERBS = "get set make load save parse build find create update delete check fetch send run start stop".split()
EXTENSIONS = (
    "py js ts rs go java c h cpp md txt json yaml toml cfg sh html css sql lock log".split()
)
FOLDERS = "src lib app core api tests docs utils models views static assets bin etc usr var home data".split()
HEX = "0123456789abcdef"
ALPHANUMERIC = string.ascii_letters + string.digits


def word(draw: Random) -> str:
    """Draw a usual word."""
    return draw.choice(WORDS)


def words(draw: Random, least: int, most: int) -> str:
    """Draw some words with spaces between."""
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(least, most)))


def sentence(draw: Random) -> str:
    """Draw a sentence of words without sense."""
    return words(draw, 5, 16).capitalize() + "."


def snake(draw: Random) -> str:
    """Draw a name in snake case."""
    return "_".join(draw.choice(NAMES) for _ in range(draw.randint(1, 3)))


def camel(draw: Random) -> str:
    """Draw a name in camel case."""
    parts = [draw.choice(NAMES) for _ in range(draw.randint(1, 3))]
    return parts[0] + "".join(part.capitalize() for part in parts[1:])


def pascal(draw: Random) -> str:
    """Draw a name of a class."""
    return "".join(draw.choice(NAMES).capitalize() for _ in range(draw.randint(1, 3)))


def hexadecimal(draw: Random, size: int) -> str:
    """Draw hexadecimal digits."""
    return "".join(draw.choices(HEX, k=size))


def alphanumeric(draw: Random, size: int) -> str:
    """Draw letters and digits."""
    return "".join(draw.choices(ALPHANUMERIC, k=size))


def path(draw: Random) -> str:
    """Draw the path of a file."""
    folders = [draw.choice(FOLDERS) for _ in range(draw.randint(1, 4))]
    return "/".join([*folders, f"{snake(draw)}.{draw.choice(EXTENSIONS)}"])


def uuid(draw: Random) -> str:
    """Draw a UUID."""
    return "-".join(hexadecimal(draw, size) for size in (8, 4, 4, 4, 12))


def date(draw: Random) -> str:
    """Draw a date."""
    return f"{draw.randint(1990, 2030)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"


def clock(draw: Random) -> str:
    """Draw a time of the day."""
    return f"{draw.randint(0, 23):02}:{draw.randint(0, 59):02}:{draw.randint(0, 59):02}"


def address(draw: Random) -> str:
    """Draw an address of the internet protocol."""
    return ".".join(str(draw.randint(0, 255)) for _ in range(4))


def number(draw: Random) -> str:
    """Draw a whole number of any length."""
    return str(draw.randint(0, 10 ** draw.randint(1, 8)))


def decimal(draw: Random) -> str:
    """Draw a decimal fraction."""
    return f"{draw.uniform(-1, 1) * 10 ** draw.randint(0, 4):.{draw.randint(1, 6)}f}"


def value(draw: Random) -> str:
    """Draw what may stand in a cell of a table."""
    makers = (word, snake, number, decimal, date, lambda draw: words(draw, 1, 4))
    return draw.choice(makers)(draw)
