"""The JSON records of a file, whole or damaged, each with its place; what a form is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from conspectus.errors import InputError

DEEPEST = 200  # most levels of nesting; real tool arguments have a dozen
TRIES = 1_000  # places in a damaged line at which a record may begin
KINDS = {type(None): "null", bool: "boolean", str: "string", list: "list"} | dict.fromkeys(
    (int, float), "number"
)  # JSON's names

EXPECTED = (
    'expected a list of chat messages, an object with one under "messages", or one message a line'
)
_DECODER = json.JSONDecoder()
_BEGIN, _SPACE = re.compile(r'\{"'), re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class Record:
    """A record, such as a message, with its place in the list and its line."""

    data: Any
    index: int | None  # None for a system prompt beside the list
    line: int | None = None

    @property
    def where(self) -> str:
        """Its name in an error."""
        name = "the system prompt" if self.index is None else f"message {self.index}"
        return name if self.line is None else f"line {self.line}: {name}"


@dataclass(frozen=True, slots=True)
class Parsed:
    """The records of a file."""

    records: list[Record]
    wrapper: Mapping[str, Any] | None = None  # the object that holds the list
    lines: bool = False  # each record stands on a line of its own
    broken: int = 0  # lines that are no records, or not only records
    flat: bool = False  # the whole file is one line


@dataclass(frozen=True, slots=True)
class Reading:
    """What a form makes of the records."""

    records: list[Record]  # the messages, in the order of the conversation
    skipped: int = 0  # records that are no part of it
    model: str = ""  # that answered last; empty if the file does not say
    window: int | None = None  # its input limit in tokens, if the file says so


@dataclass(frozen=True, slots=True)
class Form:
    """A form of files."""

    name: str
    knows: Callable[[Mapping[str, Any]], bool]  # whether a record, or the wrapper, is of this form
    read: Callable[[Parsed], Reading]
    session: bool = False  # a program wrote it for itself: what cannot be understood is skipped
    added: tuple[str, ...] = ()  # keys that `read` adds to messages, and that no request may have


def parse(data: bytes, name: str) -> Parsed:
    """Read the records of a file in UTF-8 or UTF-16.

    A file of lines may be damaged: NULs, a record cut by the next one, or two on a line. All whole
    records are read, and damaged lines counted, if at least half of the lines are sound.

    Raises:
        InputError: it holds no list of messages; names the place.
    """
    text = _decoded(data, name)
    try:
        whole = json.loads(text)
        if _is_deep(whole):
            raise RecursionError
    except json.JSONDecodeError as error:
        # Not splitlines: Unicode's separators may stand in a string.
        return _lines(text.split("\n"), name, error)
    except RecursionError as error:
        said = f"{name} is nested deeper than {DEEPEST} levels, which no history is; check the file"
        raise InputError(said) from error
    except ValueError as error:  # of Python's own, which reads no number of so many digits
        raise InputError(f"{name} cannot be read as JSON: {error}") from error
    flat = "\n" not in text.strip()
    if isinstance(whole, list):
        return Parsed(_numbered(whole), flat=flat)
    if not isinstance(whole, dict):
        raise InputError(f"{name} holds a JSON {KINDS[type(whole)]}; {EXPECTED}")
    for holder in (whole, whole.get("values")):
        if isinstance(holder, dict) and isinstance(holder.get("messages"), list):
            return Parsed(_numbered(holder["messages"]), whole, flat=flat)
    if "role" in whole or "type" in whole:
        return Parsed([Record(whole, 0, 1)], lines=True)
    keys = ", ".join(repr(key) for key in list(whole)[:5]) or "nothing"
    raise InputError(f"{name} holds a JSON object with {keys} and no messages; {EXPECTED}")


def _numbered(values: Sequence[Any]) -> list[Record]:
    return [Record(value, index) for index, value in enumerate(values)]


def _decoded(data: bytes, name: str) -> str:
    encoding = "utf-8" if data.startswith(b"\0\0") else json.detect_encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        if not data.lstrip(b"\0\r\n\t ").startswith(b"{"):
            at = f"byte {error.start:,} cannot be read"
            raise InputError(f"{name} is no text in UTF-8 or UTF-16 ({at}); {EXPECTED}") from error
        text = data.decode("utf-8", "replace")  # a record was cut within a letter
    text = text.replace("\0", "")  # what a file system may leave after a crash
    if not text.strip():
        raise InputError(f"{name} is empty; {EXPECTED} (an empty history is written [])")
    return text


def _lines(lines: Sequence[str], name: str, error: json.JSONDecodeError) -> Parsed:
    """Read the records of lines; `error` says why the whole is no JSON."""
    records: list[Record] = []
    sound = broken = 0
    for number, line in enumerate(lines, 1):
        if line.strip():
            values, whole = _objects(line)
            sound, broken = sound + whole, broken + (not whole)
            records += [Record(value, len(records) + i, number) for i, value in enumerate(values)]
    if not records or broken > sound:
        at = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise InputError(f"{name} is not JSON ({at}); {EXPECTED}")
    if all(isinstance(r.data.get("messages"), list) and "role" not in r.data for r in records):
        said = f"{name} holds {len(records):,} conversations, one a line; put one of them into a "
        raise InputError(f"{said}file of its own")
    return Parsed(records, lines=True, broken=broken)


def _objects(line: str) -> tuple[list[dict[str, Any]], bool]:
    """Return the JSON objects of a line, and whether it holds nothing else.

    A writer that was stopped leaves a part of a record, and the next one stands right behind it.
    """
    objects, at = _front(line, 0)
    if at == len(line):
        return objects, True
    for begin in islice(_BEGIN.finditer(line, at + 1), TRIES):
        rest, end = _front(line, begin.start())
        if end == len(line):
            return [*objects, *rest], False
    return objects, False


def _front(line: str, at: int) -> tuple[list[dict[str, Any]], int]:
    """Read objects from a place on, and return where the reading ended."""
    objects: list[dict[str, Any]] = []
    while (at := _SPACE.match(line, at).end()) < len(line):  # type: ignore[union-attr]
        try:
            value, end = _DECODER.raw_decode(line, at)
        except (ValueError, RecursionError):
            break
        if not isinstance(value, dict) or _is_deep(value):
            break
        objects.append(value)
        at = end
    return objects, at


def _is_deep(value: Any) -> bool:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(DEEPEST + 1):
        parts = (value.values() if isinstance(value, dict) else value for value in level)
        level = [one for part in parts for one in part if isinstance(one, (dict, list))]
    return bool(level)
