"""The outcome of a call: its result in one line, and whether it says that the call failed.

JSON becomes fields, a list of similar records becomes a table with its columns named once, and any
other text becomes its lines. The only phrases known here are
those by which programs say how they ended, or that they refuse what was asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from conspectus.notes.cutting import BREAK, one_line
from conspectus.notes.json_fields import data_text, read_json

EXIT_CODES = ("returncode", "return_code", "exit_code", "exitCode", "exit_status")
"""Fields that hold the exit code of a program."""

ERRORS = ("error", "errors", "error_code", "is_error", "isError")
"""Fields that hold an error."""

STATES = ("status", "state", "success", "ok", "approved", "decision")
"""Fields that hold the state of what was asked."""

HTTP_CODES = ("status", "status_code", "statusCode", "http_status", "httpStatus")
"""Fields that may hold a status of HTTP."""

ENDING_FIELDS = frozenset((*EXIT_CODES, *ERRORS, *STATES, *HTTP_CODES))
"""Fields that say how a call ended. They come first."""

FAILED_STATES = frozenset(
    "error failed failure incomplete false denied rejected refused declined forbidden unauthorized "
    "blocked aborted timeout not_executed".split()
)
"""Values of a state that say that a call failed, or that it was refused."""

REFUSALS = re.compile(
    r"\b(?:permission|access|authorization) (?:was |is )?(?:denied|refused)\b"
    r"|\b(?:operation|action|call|request|command|tool|change)s? (?:was |is |were |are )?not "
    r"(?:permitted|allowed|authori[sz]ed|approved|executed|applied)\b"
    r"|\bnot (?:been )?executed\b|\bnothing was (?:changed|executed|applied)\b"
    r"|\b(?:rejected|denied|refused|declined|cancell?ed|aborted|interrupted|blocked|stopped) by\b"
    r"|\b(?:user|human|reviewer|operator|admin|policy|server|host) "
    r"(?:has |was )?(?:rejected|denied|refused|declined|cancell?ed|aborted|interrupted|blocked)\b"
    r"|\b(?:was|were|been) (?:rejected|denied|refused|declined|aborted|interrupted|blocked)\b"
    r"|\bdoes(?: not|n't) want (?:you )?to\b"
    r"|\A\W?(?:rejected|denied|refused|declined|cancell?ed|aborted|interrupted|blocked|forbidden"
    r"|unauthori[sz]ed)\b"
    r"|zugriff verweigert|keine berechtigung|permission non accordée|accès refusé|permiso denegado"
    r"|acceso denegado|permesso negato|permissão negada|отказано в доступе|brak dostępu"
    r"|权限不够|拒绝访问|没有权限|許可がありません|アクセスが拒否|권한이 없|거부되었"
)
"""Words by which a program says that it refuses, in small letters."""

REFUSAL_STEMS = (
    "denied refus reject declin cancel abort interrupt block stopped forbid unauthori not nothing "
    "want verweigert berechtigung permis permes accès acceso отказано brak "
    "权限 拒绝 許可 拒否 권한 거부"
).split()
"""Each text that `REFUSALS` matches contains one of these. It is faster to look for them first."""

HTTP_ERROR = re.compile(
    r"(?:http(?:/\d(?:\.\d)?)?(?: (?:status|error))?(?: code)?:? |status(?: code)?:? )[45]\d\d\b"
    r"|\A\W?[45]\d\d:? (?:client error|server error|bad request|unauthorized|payment required"
    r"|forbidden|not found|method not allowed|conflict|gone|unprocessable|too many requests"
    r"|internal server error|bad gateway|service unavailable|gateway timeout)\b"
)
"""A status of HTTP that says that a request failed, in small letters."""

LONGEST_REFUSAL = 600
"""Characters. A longer text is no refusal, but may quote one."""

NO_ERROR = ("", "0", "false", "none", "null", "[]", "{}")
"""Values of an error that say that there was none."""

MOST_FIRST_LINES = 4
"""How many of the first lines may say how the program ended."""

MOST_LAST_LINES = 2
"""How many of the last lines may say so."""

ERROR_MARK = "error:"
"""The beginning, in small letters, of failures that no field and no exit code shows."""

_HTTP_ERROR_CODE = re.compile(r"[45]\d\d(?: [a-z ]{1,40})?")
_ENDED = re.compile(
    r"(?i)\A\W?(?:(?:\w++ ){0,3}?exited with|(?:(?:\w++ )?failed with )?exit) "
    r"(?:code|status) (-?\d++)\W?"
)
_SHORT_TAG = re.compile(r"<(\w{1,40})>([^<\n]{0,200})</\1>\s*")
_OPENING_TAG = re.compile(r"<(\w{1,40})>\n?")


class Outcome(NamedTuple):
    """What came of a call.

    Attributes:
        text: the result in one line.
        is_data: whether it is data. A record that is mostly what a program printed is not, because
            its end says what came of the call.
        failed: whether it says that the call failed.
        by_words: whether only words of the text say so. A file that was read may have such words.
    """

    text: str
    is_data: bool
    failed: bool
    by_words: bool = False


def outcome_of(text: str, args: Collection[str] = ()) -> Outcome:
    """Take a result apart.

    Args:
        text: the result.
        args: the values of the arguments of the call. Fields that repeat one of them, and empty
            fields, come last.

    Example:
        >>> outcome_of('{"seats": 2, "status": "failed"}')
        Outcome(text='status=failed; seats=2', is_data=True, failed=True, by_words=False)
    """
    text = text.strip()
    outcomes = (read(text, args) for read in FORMS)
    return next(outcome for outcome in outcomes if outcome is not None)


def _outcome_of_json(text: str, args: Collection[str]) -> Outcome | None:
    """Return the outcome of a result that is an object or a list."""
    data = read_json(text)
    if isinstance(data, list) and len(data) == 1 and isinstance(data[0], Mapping):
        data = data[0]
    if not data:
        return None
    fields = data if isinstance(data, Mapping) else {}
    ordered = dict(sorted(fields.items(), key=lambda item: _rank(item[0], item[1], args)))
    try:
        line = data_text(ordered or data)
        return Outcome(line, not _is_mostly_printed(fields, text), _says_failed(ordered))
    except RecursionError:  # nested almost too deep to be parsed
        return None


def _rank(name: str, value: Any, args: Collection[str]) -> int:
    """Return how late a field comes: how the call ended first; what says nothing new last."""
    if value is None or value in ("", [], {}) or (isinstance(value, str) and value in args):
        return 2
    return 0 if name in ENDING_FIELDS else 1


def _is_mostly_printed(fields: Mapping[str, Any], text: str) -> bool:
    texts = [value for value in fields.values() if isinstance(value, str)]
    return any("\n" in value and 2 * len(value) > len(text) for value in texts)


def _outcome_of_output(text: str, args: Collection[str]) -> Outcome:
    """Return the outcome of a result that a program printed.

    It may stand in a frame of tags, as shells for agents print it: short values, then the output.
    """
    tags, output = _take_off_tags(text)
    lines = [line for line in map(str.strip, output.split("\n")) if line]
    shown_tags = [f"{name}={value}" for name, value in tags.items() if not lines or value != "0"]
    failed = _says_failed(tags | _endings_in(lines))
    refused = not failed and len(output) <= LONGEST_REFUSAL and _is_refusal(lines)
    return Outcome(
        BREAK.join((*shown_tags, *lines)),
        is_data=False,
        failed=failed or refused,
        by_words=refused,
    )


def _is_refusal(lines: Sequence[str]) -> bool:
    """Tell whether the first line or the last one says that what was asked is refused."""
    ends = {line.lower() for line in (*lines[:1], *lines[-1:])}
    return any(
        (any(stem in line for stem in REFUSAL_STEMS) and REFUSALS.search(line))
        or (any(digit in line for digit in "45") and HTTP_ERROR.search(line))
        for line in ends
    )


def _take_off_tags(text: str) -> tuple[dict[str, str], str]:
    """Return the short values that stand in tags before an output, and the output."""
    tags: dict[str, str] = {}
    end = 0
    while match := _SHORT_TAG.match(text, end):
        tags[match[1]] = one_line(match[2])
        end = match.end()
    output = text[end:]
    frame = _OPENING_TAG.match(output)
    if frame is not None and output.endswith(f"</{frame[1]}>"):
        output = output[frame.end() : -len(f"</{frame[1]}>")]
    return tags, output


def _endings_in(lines: Sequence[str]) -> dict[str, str]:
    """Return how a program ended, as lines at the ends of its output say it."""
    endings: dict[str, str] = {}
    for line in (*lines[-MOST_LAST_LINES:], *lines[:MOST_FIRST_LINES]):
        if match := _ENDED.fullmatch(line):
            endings["exit_code"] = match[1]
    for line in lines[:MOST_FIRST_LINES]:
        name, _, value = line.partition(":")
        name = name.strip().lower().replace(" ", "_")
        if name in EXIT_CODES:
            endings[name] = value
    if lines and lines[0].lower().startswith(ERROR_MARK):
        endings["error"] = lines[0][len(ERROR_MARK) :]
    return endings


FORMS: tuple[Callable[[str, Collection[str]], Outcome | None], ...] = (
    _outcome_of_json,
    _outcome_of_output,
)
"""The forms of results. Each function returns None for a text of another form; the last one takes
any text. The first outcome that is not None is used."""


def _says_failed(fields: Mapping[str, Any]) -> bool:
    """Tell whether fields say that a call failed: an error, an exit code, a state.

    An exit code may also stand one level deeper.
    """
    values = {
        name: str(value).strip().lower() for name, value in fields.items() if name in ENDING_FIELDS
    }
    if any(name in ERRORS and value not in NO_ERROR for name, value in values.items()):
        return True
    for part in fields.values():
        if isinstance(part, Mapping):
            values |= {name: str(part[name]).strip() for name in EXIT_CODES if name in part}
    codes = (value for name, value in values.items() if name in EXIT_CODES)
    if any(map(_is_error_code, codes)):
        return True
    if any(name in STATES and value in FAILED_STATES for name, value in values.items()):
        return True
    return any(
        name in HTTP_CODES and _HTTP_ERROR_CODE.fullmatch(value) for name, value in values.items()
    )


def _is_error_code(value: str) -> bool:
    number = value.partition(" ")[0]
    return number.lstrip("-").isdecimal() and bool(number.strip("-0"))
