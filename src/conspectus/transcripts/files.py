"""Read history files in any format, recognised by content; write them in the same format."""

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
from conspectus.transcripts.formats import FORMATS, FileFormat
from conspectus.transcripts.reading import Reading

TRIES = 1_000  # most places in a damaged line where a record is looked for

LISTS = ("messages", "input", "values.messages")
"""Keys under which an object, such as a request's body or a thread's state, has the list."""

EXPECTED = (
    'expected a list of chat messages, an object with one under "messages" or "input", or one '
    "message a line"
)
_DECODER = json.JSONDecoder()
_OBJECT_BEGINS = re.compile(r'\{\s*"')
_SPACE = re.compile(r"\s*")


@dataclass(slots=True)
class Parsed:
    """The records of a file."""

    records: list[Any]
    lines: list[int] | None = None  # the line of each, if each record has its own line
    wrapper: Mapping[str, Any] | None = None  # the object around their list
    broken: int = 0  # lines that are no records, or not only records

    def where(self, index: int) -> str:
        """Return the name of a record for an error; -1 is the system prompt outside of the list."""
        name = "the system prompt" if index < 0 else f"message {index}"
        return name if self.lines is None else f"line {self.lines[index]}: {name}"


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """A history that was read: LangChain messages or dicts."""

    messages: list[Source]  # in the order of the conversation
    format: FileFormat
    parsed: Parsed  # how the file was built, so that it can be written that way again
    path: Path | None  # None for standard input
    thread_hint: str  # a stable thread name, by file or first message
    skipped: int = 0  # records outside the conversation, and messages that cannot be read
    model: str = ""  # the model that answered last; empty if the file does not say
    window: int | None = None  # its input limit in tokens, if the file says so

    @property
    def remarks(self) -> list[str]:
        """Sentences that say what was left out."""
        counts = {
            "no part of the conversation, or a repetition": self.skipped,
            "damaged": self.parsed.broken,
        }
        return [f"{n:,} line{'s' * (n != 1)} skipped: {why}" for why, n in counts.items() if n]


def read_history(source: str | Path) -> HistoryFile:
    """Read a history in any of `FORMATS`, in UTF-8 or UTF-16; `-` is standard input.

    Nothing in the file can run code: no class that it names is imported. In a file of lines, and in
    a session of another program, damaged records are skipped.

    Raises:
        InputError: the file cannot be read, or holds no history.
        MessageError: a message cannot be understood. The error names its place.
    """
    path = None if str(source) == "-" else Path(source)
    name = "standard input" if path is None else str(path)
    parsed = _parse_records(_text(path, name), name)
    try:
        return _history(parsed, path)
    except MessageError as error:
        raise MessageError(f"{name}: {error}") from error


def write_history(messages: Sequence[Source], like: HistoryFile) -> str:
    """Write messages as the text of a file, in the form of the one that was read.

    LangChain messages are written by `messages_to_dict`. The session of a program is written as a
    list: in Anthropic's form (Claude Code), as items of Responses (Codex), or in OpenAI's form.
    Other keys of the object around the list are kept.
    """
    rows: list[Any] = []
    for message in messages:
        if is_message(message):
            from langchain_core.messages import messages_to_dict

            rows += messages_to_dict([message])
        else:
            rows.append({k: v for k, v in message.items() if k not in like.format.added_keys})
    if like.format.is_session or (like.parsed.wrapper is None and like.parsed.lines is None):
        return dump(rows, 2) + "\n"
    if like.parsed.wrapper is None:
        return "".join(f"{dump(row)}\n" for row in rows)
    wrapper = dict(like.parsed.wrapper)
    if "system" in wrapper and like.format.name != "langchain":
        has_system_prompt = bool(rows) and rows[0].get("role") == "system"
        system = rows.pop(0)["content"] if has_system_prompt else None
        if system:
            wrapper["system"] = system
    outer, _, field = _list_in(wrapper).rpartition(".")
    if outer:
        wrapper[outer] = {**wrapper[outer], field: rows}
    else:
        wrapper[field] = rows
    return dump(wrapper, 2) + "\n"


def dump(value: Any, indent: int | None = None) -> str:
    """Write JSON with the characters as they are."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _list_in(whole: Any) -> str:
    """Return the keys that lead to the list of messages in an object; empty if there is none."""
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
    text = text.replace("\0", "")  # file systems may leave these after a crash
    if not text.strip():
        raise InputError(f"{name} is empty; {EXPECTED} (an empty history is written [])")
    return text


def _parse_records(text: str, name: str) -> Parsed:
    """Read the records of a text: one JSON value, or lines, up to half of them damaged."""
    try:
        whole = json.loads(text)
    except json.JSONDecodeError as error:
        return _parse_lines(text, name, error)
    except (RecursionError, ValueError) as error:  # errors of Python: endless nesting or digits
        raise InputError(f"{name} cannot be read as JSON: {error}; {EXPECTED}") from error
    if isinstance(whole, list):
        return Parsed(whole)
    if path := _list_in(whole):
        return Parsed(at_path(whole, path), wrapper=whole)
    if isinstance(whole, dict) and ("role" in whole or "type" in whole):
        return Parsed([whole], [1])
    raise InputError(f"{name} holds no messages; {EXPECTED}")


def _parse_lines(text: str, name: str, error: json.JSONDecodeError) -> Parsed:
    """Read the records of lines. `error` says why the whole text is no JSON."""
    # Not `splitlines`: a string may have Unicode's line separators.
    filled_lines = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    rows = [(number, *_objects(line)) for number, line in filled_lines]
    whole_records = [record for _, records, is_whole in rows if is_whole for record in records]
    # An object in a damaged line may be a part of a record. Then it lacks a key that all records
    # have.
    common_keys = set(whole_records[0]).intersection(*whole_records) if whole_records else set()
    sound_records: list[Any] = []
    line_numbers: list[int] = []
    for number, records, is_whole in rows:
        for record in records:
            if is_whole or common_keys <= record.keys():
                sound_records.append(record)
                line_numbers.append(number)
    broken = sum(not is_whole for _, _, is_whole in rows)
    if not sound_records or broken > len(filled_lines) / 2:
        place = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise InputError(f"{name} is not JSON ({place}); {EXPECTED}")
    return Parsed(sound_records, line_numbers, broken=broken)


def _objects(line: str) -> tuple[list[dict[str, Any]], bool]:
    """Return the JSON objects at the end of a line, and whether the line has nothing else.

    A writer that was stopped leaves a part of a record, and the next record follows it directly.
    """
    first_objects: list[dict[str, Any]] = []
    for begin in islice(_OBJECT_BEGINS.finditer(line), TRIES):
        objects: list[dict[str, Any]] = []
        end = begin.start()
        with suppress(ValueError, RecursionError):
            while end < len(line):
                if line[end] != "{":
                    raise ValueError
                value, end = _DECODER.raw_decode(line, end)
                objects.append(value)
                end = _SPACE.match(line, end).end()  # type: ignore[union-attr]
            return objects, not line[: begin.start()].strip()
        first_objects = first_objects or objects
    return first_objects, False


_UNEXPECTED = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, OSError)
"""Errors that a reader raises for a record with an unexpected form."""


def _reading(file_format: FileFormat, records: Sequence[Any], parsed: Parsed) -> Reading | None:
    """Read records; None if one of them has an unexpected form."""
    with suppress(*_UNEXPECTED):
        return file_format.read(records, parsed.wrapper or {})
    return None


def _history(parsed: Parsed, path: Path | None) -> HistoryFile:
    for index, record in enumerate(parsed.records):
        if not isinstance(record, dict):
            example = 'an object such as {"role": "user", "content": "..."}'
            raise MessageError(f"{parsed.where(index)} is no message, which is {example}")
    candidates = [*parsed.records, parsed.wrapper or {}]
    file_format = next(
        file_format for file_format in FORMATS if any(map(file_format.knows, candidates))
    )
    reading = _sound_reading(file_format, parsed)
    messages = _sound_messages(file_format, parsed, reading)
    unused_records = len(parsed.records) - reading.used_records
    unread_messages = len(reading.messages) - len(messages)
    return HistoryFile(
        messages=messages,
        format=file_format,
        parsed=parsed,
        path=path,
        thread_hint=_thread_hint(parsed, path),
        skipped=unused_records + unread_messages,
        model=reading.model,
        window=reading.window,
    )


def _sound_reading(file_format: FileFormat, parsed: Parsed) -> Reading:
    """Read all records. If that fails, read those that can be read one by one."""
    reading = _reading(file_format, parsed.records, parsed)
    if reading is None:
        sound_records = [row for row in parsed.records if _reading(file_format, [row], parsed)]
        reading = _reading(file_format, sound_records, parsed) if sound_records else None
    if reading is None:
        raise MessageError(
            f"this session ({file_format.name}) is not of a form that is known; give its messages "
            "as a list"
        )
    if file_format.is_session and not reading.messages:
        raise MessageError(
            f"this session ({file_format.name}) holds no message yet; give another file"
        )
    return reading


def _sound_messages(file_format: FileFormat, parsed: Parsed, reading: Reading) -> list[Source]:
    """Return the messages that can be read.

    A session of a program may have more than messages; the rest is left out. In other files, it is
    an error that names the place.
    """
    sound: list[Source] = []
    # A system prompt from outside of the list comes first, and is not one of its records.
    system_prompts = 0 if file_format.is_session else len(reading.messages) - len(parsed.records)
    for index, message in enumerate(reading.messages):
        try:
            source = file_format.to_message(message)
            read_messages([source])
        except MessageError as error:
            if not file_format.is_session:
                place = parsed.where(index - system_prompts)
                raise MessageError(str(error).replace("message 0", place, 1)) from error
        else:
            sound.append(source)
    return sound


def _thread_hint(parsed: Parsed, path: Path | None) -> str:
    """Make a name for a thread from the path of its file, or from its first record."""
    if path is None:
        stem = "stdin"
        seed = dump(parsed.records[0]) if parsed.records else ""
    else:
        stem = re.sub(r"[^\w.-]+", "-", path.stem)[:40] or "file"
        seed = str(path.resolve())
    digest = hashlib.sha256(seed.encode("utf-8", "backslashreplace")).hexdigest()
    return f"{stem}-{digest[:8]}"
