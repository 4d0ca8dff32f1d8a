"""Histories in files: read in any form, told by its content, and written in the same."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conspectus._langchain import is_message
from conspectus.errors import InputError, MessageError
from conspectus.messages import Source, read_messages
from conspectus.transcripts import chat, claude_code, codex, gemini_cli, opencode
from conspectus.transcripts.pairs import Mended, mend
from conspectus.transcripts.records import KINDS, Form, Parsed, parse

SESSIONS = (claude_code.FORM, codex.FORM, gemini_cli.FORM, opencode.FORM)
FORMS = (*SESSIONS, chat.LANGCHAIN, chat.ANTHROPIC, chat.OPENAI)
"""All forms; the first one that knows a record is that of the file."""


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

    def mended(self, messages: Sequence[Source] | None = None) -> Mended:
        """Give each call of the history, or of other messages, a result.

        Results without a call stay in the history, so that a compaction archives them, but not in
        other messages.
        """
        return mend(self.messages if messages is None else messages, orphans=messages is None)


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
    parsed = parse(_bytes(path, name), name)
    try:
        return _history(parsed, path)
    except MessageError as error:
        raise MessageError(f"{name}: {error}") from error


def write_history(messages: Sequence[Source], like: HistoryFile, encoding: str = "utf-8") -> str:
    """Write messages as the text of a file, in the form of the one that was read.

    LangChain messages are written by `messages_to_dict`; the session of a program as a list, in
    Anthropic's form (Claude Code), as items of Responses (Codex), or in OpenAI's form. Keys beside
    the list come back. Characters missing in `encoding` are escaped.
    """
    rows: list[Any] = []
    for message in messages:
        if is_message(message):
            from langchain_core.messages import messages_to_dict

            rows.extend(messages_to_dict([message]))
        else:
            rows.append({k: v for k, v in message.items() if k not in like.form.added})
    parsed, session = like.parsed, like.form.session
    if parsed.lines and not session:
        return "".join(f"{dump(row, encoding=encoding)}\n" for row in rows)
    whole: Any = rows
    if parsed.wrapper is not None and not session:
        whole = dict(parsed.wrapper)
        if "system" in whole and like.form is not chat.LANGCHAIN:
            del whole["system"]
            if rows and rows[0].get("role") == "system":
                whole = {**parsed.wrapper, "system": rows.pop(0)["content"]}
        if isinstance(whole.get("messages"), list):
            whole["messages"] = rows
        else:
            whole["values"] = {**whole["values"], "messages": rows}
    return dump(whole, None if parsed.flat else 2, encoding) + "\n"


def dump(value: Any, indent: int | None = None, encoding: str = "utf-8") -> str:
    """Write JSON in `encoding`, with other characters escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:  # a lone surrogate, or a terminal that has no such letters
        text = json.dumps(value, indent=indent)
    return text


def _bytes(path: Path | None, name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if path is None else path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{name} does not exist; check the path") from error
    except IsADirectoryError as error:
        raise InputError(f"{name} is a directory; name the file in it") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{name} cannot be read: {reason}") from error


def _history(parsed: Parsed, path: Path | None) -> HistoryFile:
    for part in parsed.records:
        if not isinstance(part.data, dict):
            right = 'a message is an object such as {"role": "user", "content": "..."}'
            raise MessageError(f"{part.where} is a JSON {KINDS[type(part.data)]}; {right}")
    every: list[Mapping[str, Any]] = [part.data for part in parsed.records]
    every += [parsed.wrapper] if parsed.wrapper is not None else []
    form = next((form for form in FORMS if any(map(form.knows, every))), chat.OPENAI)
    reading = form.read(parsed)
    if form.session and not reading.records:
        raise MessageError(f"this session ({form.name}) holds no message yet")
    sound: list[Source] = []
    for part in reading.records:
        try:
            read_messages([part.data])
            sound.append(part.data)
        except MessageError as error:
            if not form.session:  # what a program wrote for itself may hold more than messages
                raise MessageError(str(error).replace("message 0", part.where, 1)) from error
    seed = dump(parsed.records[0].data) if parsed.records else ""
    stem = "stdin"
    if path is not None:
        stem, seed = re.sub(r"[^\w.-]+", "-", path.stem)[:40] or "file", str(path.resolve())
    hint = f"{stem}-{hashlib.sha256(seed.encode('utf-8', 'backslashreplace')).hexdigest()[:8]}"
    skipped = reading.skipped + len(reading.records) - len(sound)
    return HistoryFile(sound, form, parsed, path, hint, skipped, reading.model, reading.window)
