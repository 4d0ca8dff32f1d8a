"""Histories in files: read in any form, told by its content, and written in the same."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from conspectus._langchain import is_message
from conspectus.errors import InputError, MessageError
from conspectus.messages import Source, read_messages
from conspectus.messages.blocks import at_path
from conspectus.transcripts.forms import FORMS, Form, Reading

TRIES = 1_000  # places in a damaged line at which a record may begin

LISTS = ("messages", "input", "values.messages")
"""Where the list stands in an object, such as a request's body or the state of a thread."""

EXPECTED = (
    'expected a list of chat messages, an object with one under "messages" or "input", or one '
    "message a line"
)
_DECODER = json.JSONDecoder()
_BEGIN, _SPACE = re.compile(r'\{\s*"'), re.compile(r"\s*")


@dataclass(slots=True)
class Parsed:
    """The records of a file."""

    records: list[Any]
    lines: list[int] | None = None  # the line of each, if they stand on lines of their own
    wrapper: Mapping[str, Any] | None = None  # the object that holds their list
    broken: int = 0  # lines that are no records, or not only records

    def where(self, index: int) -> str:
        """Name a record in an error; -1 is the system prompt beside the list."""
        name = "the system prompt" if index < 0 else f"message {index}"
        return name if self.lines is None else f"line {self.lines[index]}: {name}"


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """A history as it was read, LangChain messages or dicts."""

    messages: list[Source]  # in the order of the conversation
    form: Form
    parsed: Parsed  # how the file was built, so that it can be written that way again
    path: Path | None  # None for standard input
    thread_hint: str  # a stable thread name, by file or first message
    skipped: int = 0  # records outside the conversation, and messages nobody understands
    model: str = ""  # that answered last; empty if the file does not say
    window: int | None = None  # its input limit in tokens, if the file says so

    @property
    def remarks(self) -> list[str]:
        """What was left out, as sentences."""
        counts = {
            "no part of the conversation, or a repetition": self.skipped,
            "damaged": self.parsed.broken,
        }
        return [f"{n:,} line{'s' * (n != 1)} skipped: {why}" for why, n in counts.items() if n]


def read_history(source: str | Path) -> HistoryFile:
    """Read a history in any of `FORMS`, in UTF-8 or UTF-16; `-` is standard input.

    Nothing in the file can run code: no class that it names is imported. Of a file of lines, and of
    a session of another program, all that is sound is read.

    Raises:
        InputError: the file cannot be read, or holds no history.
        MessageError: a message cannot be understood; names the place.
    """
    path = None if str(source) == "-" else Path(source)
    name = "standard input" if path is None else str(path)
    parsed = _parsed(_text(path, name), name)
    try:
        return _history(parsed, path)
    except MessageError as error:
        raise MessageError(f"{name}: {error}") from error


def write_history(messages: Sequence[Source], like: HistoryFile) -> str:
    """Write messages as the text of a file, in the form of the one that was read.

    LangChain messages are written by `messages_to_dict`; the session of a program as a list, in
    Anthropic's form (Claude Code), as items of Responses (Codex), or in OpenAI's form. Keys beside
    the list come back.
    """
    rows: list[Any] = []
    for message in messages:
        if is_message(message):
            from langchain_core.messages import messages_to_dict

            rows += messages_to_dict([message])
        else:
            rows.append({k: v for k, v in message.items() if k not in like.form.added})
    if like.form.session or (like.parsed.wrapper is None and like.parsed.lines is None):
        return dump(rows, 2) + "\n"
    if like.parsed.wrapper is None:
        return "".join(f"{dump(row)}\n" for row in rows)
    whole = dict(like.parsed.wrapper)
    if "system" in whole and like.form.name != "langchain":
        system = rows.pop(0)["content"] if rows and rows[0].get("role") == "system" else None
        whole |= {"system": system} if system else {}
    outer, _, field = _list_in(whole).rpartition(".")
    whole |= {outer: {**whole[outer], field: rows}} if outer else {field: rows}
    return dump(whole, 2) + "\n"


def dump(value: Any, indent: int | None = None) -> str:
    """Write JSON with the characters as they are."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _list_in(whole: Any) -> str:
    """Return where the list of messages stands in an object; empty if nowhere."""
    return next((path for path in LISTS if isinstance(at_path(whole, path), list)), "")


def _text(path: Path | None, name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if path is None else path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{name} cannot be read: {reason}; check its path") from error
    try:
        text = data.decode("utf-8" if data.startswith(b"\0\0") else json.detect_encoding(data))
    except UnicodeDecodeError as error:
        if not data.lstrip(b"\0\r\n\t ").startswith(b"{"):
            at = f"byte {error.start:,} cannot be read"
            raise InputError(f"{name} is no text in UTF-8 or UTF-16 ({at}); {EXPECTED}") from error
        text = data.decode("utf-8", "replace")  # a record was cut within a letter
    text = text.replace("\0", "")  # what a file system may leave after a crash
    if not text.strip():
        raise InputError(f"{name} is empty; {EXPECTED} (an empty history is written [])")
    return text


def _parsed(text: str, name: str) -> Parsed:
    """Read the records of a text: one JSON value, or lines, of which half may be damaged."""
    try:
        whole = json.loads(text)
    except json.JSONDecodeError as error:
        return _parsed_lines(text, name, error)
    except (RecursionError, ValueError) as error:  # of Python's own: nested or digits without end
        raise InputError(f"{name} cannot be read as JSON: {error}; {EXPECTED}") from error
    if isinstance(whole, list):
        return Parsed(whole)
    if path := _list_in(whole):
        return Parsed(at_path(whole, path), wrapper=whole)
    if isinstance(whole, dict) and ("role" in whole or "type" in whole):
        return Parsed([whole], [1])
    raise InputError(f"{name} holds no messages; {EXPECTED}")


def _parsed_lines(text: str, name: str, error: json.JSONDecodeError) -> Parsed:
    """Read the records of lines; `error` says why the whole is no JSON."""
    # Not splitlines: Unicode's separators may stand in a string.
    filled = [(at, line) for at, line in enumerate(text.split("\n"), 1) if line.strip()]
    rows = [(number, *_objects(line)) for number, line in filled]
    records = [value for _, values, whole in rows if whole for value in values]
    common = set[str]().union(*records[:1]).intersection(*records)
    # What stands in a damaged line may be a part of a record: it has not the keys that all have.
    found = [
        (value, number)
        for number, values, whole in rows
        for value in values
        if whole or common <= value.keys()
    ]
    broken = sum(not whole for _, _, whole in rows)
    if not found or broken > len(filled) / 2:
        at = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise InputError(f"{name} is not JSON ({at}); {EXPECTED}")
    return Parsed([value for value, _ in found], [number for _, number in found], broken=broken)


def _objects(line: str) -> tuple[list[dict[str, Any]], bool]:
    """Return the JSON objects at the end of a line, and whether it holds nothing else.

    A writer that was stopped leaves a part of a record, and the next one stands right behind it.
    """
    first: list[dict[str, Any]] = []
    for begin in islice(_BEGIN.finditer(line), TRIES):
        objects, at = list[dict[str, Any]](), begin.start()
        with suppress(ValueError, RecursionError):
            while at < len(line):
                if line[at] != "{":
                    raise ValueError
                value, at = _DECODER.raw_decode(line, at)
                objects.append(value)
                at = _SPACE.match(line, at).end()  # type: ignore[union-attr]
            return objects, not line[: begin.start()].strip()
        first = first or objects
    return first, False


def _reading(form: Form, records: Sequence[Any], parsed: Parsed) -> Reading | None:
    """Read records; None where one of them is not as the form has it."""
    odd = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, OSError)
    with suppress(*odd):
        return form.read(records, parsed.wrapper or {})
    return None


def _history(parsed: Parsed, path: Path | None) -> HistoryFile:
    for index, record in enumerate(parsed.records):
        if not isinstance(record, dict):
            right = 'an object such as {"role": "user", "content": "..."}'
            raise MessageError(f"{parsed.where(index)} is no message, which is {right}")
    every = [*parsed.records, parsed.wrapper or {}]
    form = next(form for form in FORMS if any(map(form.knows, every)))
    reading = _reading(form, parsed.records, parsed)
    if reading is None:  # without the records that it does not understand
        known = [record for record in parsed.records if _reading(form, [record], parsed)]
        reading = _reading(form, known, parsed) if known else None
    if reading is None:
        raise MessageError(
            f"this session ({form.name}) is not of a form that is known; give its messages as a "
            "list"
        )
    if form.session and not reading.messages:
        raise MessageError(f"this session ({form.name}) holds no message yet; give another file")
    sound: list[Source] = []
    before = len(reading.messages) - len(parsed.records)  # a system prompt beside the list
    for index, message in enumerate(reading.messages):
        try:
            made = form.made(message)
            read_messages([made])
        except MessageError as error:
            if not form.session:
                where = parsed.where(index - before)
                raise MessageError(str(error).replace("message 0", where, 1)) from error
        else:  # what a program wrote for itself may hold more than messages
            sound.append(made)
    seed = dump(parsed.records[0]) if parsed.records else ""
    stem = "stdin"
    if path is not None:
        stem, seed = re.sub(r"[^\w.-]+", "-", path.stem)[:40] or "file", str(path.resolve())
    hint = f"{stem}-{hashlib.sha256(seed.encode('utf-8', 'backslashreplace')).hexdigest()[:8]}"
    skipped = len(parsed.records) - reading.used + len(reading.messages) - len(sound)
    return HistoryFile(sound, form, parsed, path, hint, skipped, reading.model, reading.window)
