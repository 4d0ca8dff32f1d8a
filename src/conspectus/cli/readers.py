"""Read histories from files and standard input, and write them in the same form."""

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
from conspectus.cli import forms
from conspectus.cli.claude_code import claude_code_messages, is_claude_code
from conspectus.cli.forms import Format
from conspectus.cli.pairs import Mended, mend
from conspectus.cli.placed import Placed
from conspectus.errors import InputError, MessageError
from conspectus.messages import Source, read_messages

STDIN = "-"
DEEPEST = 200  # Most levels of nesting; real tool arguments have a dozen
COMMENT = "//"  # The beginning of a line that is a comment

KINDS = {type(None): "null", bool: "boolean", str: "string", list: "list"} | dict.fromkeys(
    (int, float), "number"
)  # JSON's names

EXPECTED = (
    'expected a list of chat messages, an object with one under "messages", or one message a line'
)


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """A history as it was read, LangChain messages or dicts.

    `path` is None for standard input. `thread_hint` is a stable thread name, by file or first
    message. `skipped` counts lines outside the conversation.
    """

    messages: list[Source]
    format: Format
    path: Path | None
    thread_hint: str
    skipped: int = 0

    @property
    def skipped_lines(self) -> str:
        """The skipped lines as a sentence; empty for none."""
        if self.skipped == 1:
            return "1 line that is no part of the conversation, or repeats it, was skipped"
        many = f"{self.skipped:,} lines that are no part of the conversation, or repeat it, "
        return f"{many}were skipped" if self.skipped else ""


def read_history(source: str | Path) -> HistoryFile:
    """Read a history in any form; its content tells the form.

    Known are OpenAI's messages (JSON, JSON lines, a request body), Anthropic's, LangChain's
    (`messages_to_dict`, constructor envelopes, the state of a LangGraph thread) and the sessions of
    Claude Code, in UTF-8 or UTF-16 with a byte order mark; `-` is standard input. Nothing in the
    file can run code: no class that it names is imported. Errors (`InputError`, `MessageError`)
    name the place.
    """
    path = None if str(source) == STDIN else Path(source)
    name = "standard input" if path is None else str(path)
    text = _decode(_bytes(path, name), name)
    try:
        wrapper, placed, lines = _parse(text, name)
        history = _history(text, wrapper, placed, lines, path)
    except RecursionError as error:
        raise InputError(_too_deep(name)) from error
    except MessageError as error:
        raise MessageError(f"{name}: {error}") from error
    return history


def write_history(messages: Sequence[Source], form: Format, encoding: str = "utf-8") -> str:
    """Write messages as the text of a file, in the form of the one that was read.

    LangChain messages are written by `messages_to_dict`, from any form; a Claude Code session as a
    list in Anthropic's form. Keys beside the list come back. Characters missing in `encoding` are
    escaped.
    """
    rows: list[Any] = []
    for message in messages:
        if is_message(message):
            from langchain_core.messages import messages_to_dict

            rows.extend(messages_to_dict([message]))
        elif form.name == "claude-code":  # no request may have the uuid and the time of a line
            rows.append({"role": message["role"], "content": message["content"]})
        else:
            rows.append(dict(message))
    if form.lines:
        return "".join(f"{dump(row, encoding=encoding)}\n" for row in rows)
    whole: Any = rows
    if form.wrapper is not None:
        whole = dict(form.wrapper)
        if form.system:
            if rows and rows[0].get("role") == "system":
                whole["system"] = rows.pop(0)["content"]
            else:
                del whole["system"]
        if form.values:
            whole["values"] = {**whole["values"], "messages": rows}
        else:
            whole["messages"] = rows
    return dump(whole, None if form.compact else 2, encoding) + "\n"


def mended(history: HistoryFile, messages: Sequence[Source] | None = None) -> Mended:
    """Put the tool calls and results of a history, or of other messages, in order.

    Results without a call stay in the history, so that a compaction archives them, but not in other
    messages.
    """
    unique = history.format.name in ("anthropic", "claude-code")
    given = history.messages if messages is None else messages
    return mend(given, unique_ids=unique, orphans=messages is None)


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
        if path is None:
            return sys.stdin.buffer.read()
        return path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{name} does not exist; check the path") from error
    except IsADirectoryError as error:
        raise InputError(f"{name} is a directory; name the file in it") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{name} cannot be read: {reason}") from error


def _decode(data: bytes, name: str) -> str:
    encoding = json.detect_encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} is no text in UTF-8 or UTF-16 (byte {error.start:,} cannot be read); "
            f"{EXPECTED}"
        ) from error
    if not text.strip():
        raise InputError(f"{name} is empty; {EXPECTED} (an empty history is written [])")
    return text


def _parse(text: str, name: str) -> tuple[Mapping[str, Any] | None, list[Placed], bool]:
    """Return the messages of a file, their wrapper, and whether it has lines."""
    try:
        whole = json.loads(text)
    except json.JSONDecodeError as error:
        if (bare := without_comments(text)) is not None:
            return _parse(bare, name)
        return None, _lines(text, name, error), True
    except ValueError as error:
        raise InputError(f"{name} cannot be read as JSON: {_wrong(error)}") from error
    if forms.nested_deeper_than([whole], DEEPEST):
        raise InputError(_too_deep(name))
    if isinstance(whole, list):
        return None, _placed(whole), False
    if not isinstance(whole, dict):
        raise InputError(f"{name} holds a JSON {KINDS[type(whole)]}; {EXPECTED}")
    values = whole.get("values")
    for holder in (whole, values if isinstance(values, dict) else {}):
        if isinstance(holder.get("messages"), list):
            return whole, _placed(holder["messages"]), False
    if "role" in whole or "type" in whole:
        return None, [Placed(whole, 0, 1)], True  # a file of one line
    keys = ", ".join(repr(key) for key in list(whole)[:5]) or "nothing"
    raise InputError(f"{name} holds a JSON object with {keys} and no messages; {EXPECTED}")


def without_comments(text: str) -> str | None:
    """Empty the `//` lines of a text, and keep line numbers; None without any.

    A JSON string has no line break, so such a line is no part of one.
    """
    lines = text.split("\n")
    bare = ["" if line.lstrip().startswith(COMMENT) else line for line in lines]
    return "\n".join(bare) if bare != lines else None


def _placed(messages: Sequence[Any]) -> list[Placed]:
    return [Placed(data, index) for index, data in enumerate(messages)]


def _lines(text: str, name: str, error: json.JSONDecodeError) -> list[Placed]:
    """Parse one JSON object a line; `error` says why the whole is no JSON."""
    placed: list[Placed] = []
    # Not splitlines: the line separators of Unicode may stand inside a JSON string.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except ValueError as bad:
            if not placed:  # not even its first line is JSON, so this was not meant to be lines
                raise InputError(
                    f"{name} is not JSON (line {error.lineno}, column {error.colno}: {error.msg}); "
                    f"{EXPECTED}"
                ) from error
            raise InputError(
                f"{name}: line {number} is not JSON ({_wrong(bad)}); mend or remove that line"
            ) from bad
        if forms.nested_deeper_than([data], DEEPEST):
            raise InputError(_too_deep(name))
        placed.append(Placed(data, len(placed), number))
    if not placed:
        raise InputError(f"{name} is empty but for comments; {EXPECTED}")
    if all(_is_conversation(part.data) for part in placed):
        raise InputError(
            f"{name} holds {len(placed):,} conversations, one a line; put one of them into a file "
            "of its own"
        )
    return placed


def _wrong(error: ValueError) -> str:
    """Say why a text is not JSON, without JSON's own count of lines."""
    if isinstance(error, json.JSONDecodeError):
        return f"column {error.colno}: {error.msg}"
    return "it holds a number of more digits than Python reads"


def _is_conversation(data: Any) -> bool:
    return isinstance(data, dict) and isinstance(data.get("messages"), list) and "role" not in data


def _history(
    text: str,
    wrapper: Mapping[str, Any] | None,
    placed: list[Placed],
    lines: bool,
    path: Path | None,
) -> HistoryFile:
    for part in placed:
        if not isinstance(part.data, dict):
            raise MessageError(
                f"{part.where} is a JSON {KINDS[type(part.data)]}; a message is an object such as "
                '{"role": "user", "content": "..."}'
            )
    session = placed and all({"sessionId", "leafUuid"} & part.data.keys() for part in placed)
    if session and not any(is_claude_code(part.data) for part in placed):
        raise MessageError("this session of Claude Code holds no message yet")
    kind = forms.name_of(placed, wrapper)
    skipped = 0
    messages: list[Source]
    if kind == "claude-code":
        placed, skipped = claude_code_messages(placed)
        lines = False
    system = wrapper is not None and kind in ("openai", "anthropic") and "system" in wrapper
    if wrapper is not None and system:
        placed = [Placed({"role": "system", "content": wrapper["system"]}, None), *placed]
    if kind == "langchain":
        messages = forms.langchain_messages(placed)
    else:
        messages = [part.data for part in placed]
    _check(messages, placed)
    form = Format(
        name=kind,
        lines=lines,
        wrapper=wrapper,
        values=wrapper is not None and not isinstance(wrapper.get("messages"), list),
        system=system,
        compact="\n" not in text.strip(),
    )
    return HistoryFile(messages, form, path, _thread_hint(path, placed), skipped)


def _check(messages: list[Source], placed: Sequence[Placed]) -> None:
    """Refuse messages that cannot be understood, with the line of the first."""
    try:
        read_messages(messages)
    except MessageError:
        for index, part in enumerate(placed):
            try:
                read_messages([messages[index]])
            except MessageError as error:
                raise MessageError(str(error).replace("message 0", part.where, 1)) from error
        raise


def _thread_hint(path: Path | None, placed: Sequence[Placed]) -> str:
    if path is None:
        seed = dump(placed[0].data) if placed else ""
        stem = "stdin"
    else:
        seed = str(path.resolve())
        stem = re.sub(r"[^\w.-]+", "-", path.stem)[:40] or "file"
    return f"{stem}-{hashlib.sha256(seed.encode('utf-8', 'backslashreplace')).hexdigest()[:8]}"


def _too_deep(name: str) -> str:
    return f"{name} is nested deeper than {DEEPEST} levels, which no history is; check the file"
