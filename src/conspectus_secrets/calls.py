"""Find secrets in calls: `setPassword("...")`, `getenv("DB_PASSWORD", "...")`, `ENV`.

Also defaults beside a variable of the environment, defaults of Terraform, and commands that
store a setting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from conspectus.redaction.names import named_kind
from conspectus_secrets.bounds import Bounds, believed
from conspectus_secrets.ends import Found

_SETTERS = re.compile(
    r"(?:\b(?=[sS]et|with)|\.)(?P<name>[A-Za-z]\w{1,60})"
    r"\(\s{0,4}(?=[bBrRuU]?\\{0,8}[\"'`])"
)
_SETTINGS = re.compile(
    r"\b(?:(?P<sure>getenv|environ\.get|environ\.setdefault|env|config|ENV\.fetch"
    r"|environ\.pop|set[eE]nv|putenv|define)|[sg]etProperty|put|set|setdefault|getOrDefault|[sS]etConf"
    r"|[sS]etHeader|addHeader|setRequestHeader|header)"
    r"\(\s{0,4}\\{0,8}[\"'](?P<name>[A-Za-z][\w.:-]{1,80})\\{0,8}[\"'],\s{0,4}"
    r"(?:default\s{0,2}[=:]\s{0,2})?(?=[bBrRuU]?\\{0,8}[\"'`])"
)
_DEFAULTS = re.compile(
    r"(?:\benv\.|\bENV\[\\{0,8}[\"']|\benv\[\\{0,8}[\"']|\bgetenv\(\\{0,8}[\"'])"
    r"(?P<name>[A-Za-z]\w{1,80})(?:\\{0,8}[\"'][\])])?"
    r"\s{0,4}(?:\|\||\?\?|\?:|\bor\b)\s{0,4}(?=\\{0,8}[\"'`])"
)
_VARIABLES = re.compile(
    r"\bvariable\s{1,4}\\{0,8}\"(?P<name>[A-Za-z][\w-]{1,80})\\{0,8}\"\s{0,4}\{[^{}]{0,600}?"
    r"\bdefault\s{0,8}=\s{0,4}(?=\\{0,8}\")"
)
_SECURE_STRINGS = re.compile(
    r"(?i:\bConvertTo-SecureString)\s{1,4}(?i:-String\s{1,4})?(?=\\{0,8}[\"'])"
)
_LINES = re.compile(
    r"(?:\A|\n)[ \t]{0,16}(?:ENV|setx|SETX|set -[A-Za-z]{1,4})[ \t]{1,4}"
    r"(?P<name>[A-Z][A-Z0-9_]{1,80})[ \t]{1,4}"
    r"(?=[^\s=])"
)
_STORED = re.compile(
    r"\bconfig(?:ure)?\s(?:set\s|--?\w{1,20}\s){1,3}(?P<name>[A-Za-z/][\w./:-]{1,120})[ =]"
    r"(?:\\{0,8}[\"'])?(?P<value>[^\s\"'`;|&<>()\\]{4,}+)"
)
_PARTS = re.compile(
    r"\bname=\\{0,8}\"(?P<name>[A-Za-z][\w.-]{0,60})\\{0,8}\""
    r"(?:[ \t]{0,4}\r?\n){2,4}[ \t]{0,4}(?=\S)"
)
"""A field of a multipart form."""


def called_secrets(bounds: Bounds) -> Iterator[Found]:
    """Yield secrets in calls, commands and defaults."""
    view = bounds.view
    for match in _SETTERS.finditer(view):
        sure = match["name"].lower().startswith(("set", "with"))
        yield from _quoted(bounds, match, match["name"], sure, ")")
    for match in _SETTINGS.finditer(view):
        yield from _quoted(bounds, match, match["name"], bool(match["sure"]), "),")
    for match in (*_DEFAULTS.finditer(view), *_VARIABLES.finditer(view)):
        yield from _quoted(bounds, match, match["name"], True, "")
    for match in _SECURE_STRINGS.finditer(view):
        yield from _quoted(bounds, match, "password", True, "")
    parts = _PARTS.finditer(view) if "name=" in view else ()
    for match in (*_LINES.finditer(view), *parts):
        kind = named_kind(match["name"])
        value = None if kind is None else bounds.secret(match.end(), kind, match["name"])
        if kind is not None and value is not None:
            yield value.begin, value.end, kind, ""
    for match in _STORED.finditer(view):
        kind = named_kind(match["name"])
        if kind is not None and believed(kind, match["name"], match["value"], False, False):
            yield match.start("value"), match.end("value"), kind, ""


def _quoted(
    bounds: Bounds, match: re.Match[str], name: str, sure: bool, after: str
) -> Iterator[Found]:
    """Yield the quoted value after a match, if one of the given signs follows it."""
    kind = named_kind(name)
    value = None if kind is None else bounds.quoted(match.end())
    if kind is None or value is None:
        return
    at = value.end + len(value.quote)
    if after and bounds.view[at : at + 8].lstrip()[:1] not in tuple(after):
        return
    if believed(kind, name, bounds.of(value), sure, True):
        yield value.begin, value.end, kind, ""
