"""Find secrets by their place: addresses, cookies, commands, SQL and `.netrc`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from conspectus_secrets.ends import Found
from conspectus_secrets.formats import Format, mixed
from conspectus_secrets.scripts import ended
from conspectus_secrets.words import placeholder


def _given(value: str) -> bool:
    return len(value) >= 3 and not placeholder(value)


def _scattered(value: str) -> bool:
    """Check a value with a `/`, `#` or `?`, which mostly end the part of an address before `@`."""
    return "://" not in value and mixed(value) and not placeholder(value)


def _session(value: str) -> bool:
    return len(value) >= 12 and mixed(value)


def _place(kind: str, hints: str, pattern: str, real: Callable[[str], bool] = _given) -> Format:
    return Format.of(kind, hints, pattern, real)


_VALUE = r"""(?P<q>\\{0,4}["']?)(?P<value>[^\s"'\\;|&<>()\[\]]++)(?P=q)"""
"""A word of a command, in quotes or bare."""

_REST = r"(?:[^\n|;&]|&(?![&\s])|(?<=\\)\r?\n){0,240}?"
"""Text in a command before an option, such as an address with `&`, over several lines."""

PLACES = (
    _place(
        "url-password",
        "://",
        r"""://[^\s/:@"'<>\[\]{}()$\\]{0,128}:(?P<value>[^\s/"'<>\\]{1,2048})@(?=[\w\[${])""",
    ),
    _place(
        "url-password",
        "://",
        r"""://[^\s/:@"'<>\[\]{}()$\\]{1,128}:(?!\d{1,5}[/?#])(?P<value>[^\s@"'<>\\]{6,256}+)@(?=[\w\[${])""",
        _scattered,
    ),
    _place("url-token", "://", r"://(?P<value>[A-Za-z0-9_-]{24,200}+)@(?=[\w\[${])", mixed),
    _place(
        "password",
        "identified password",
        r"(?i:identified\s{1,4}(?:with\s{1,4}\S{1,64}\s{1,4})?by(?:\s{1,4}password)?|\bpassword)"
        r"\s{1,4}(?P<q>\\{0,4}')(?P<value>[^'\\\n]{3,256})(?P=q)",
    ),
    _place(
        "password",
        "machine",
        r"\bmachine\s{1,8}\S{1,200}\s{1,8}(?:login\s{1,8}\S{1,200}\s{1,8})?"
        r"password\s{1,8}(?P<value>[^\s\\\"']++)",
    ),
    _place("password", "sshpass", r"\bsshpass\s{1,4}-p\s{0,4}" + _VALUE),
    _place(
        "password",
        "mysql mariadb",
        r"\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|;&]{0,120}?\s-p" + _VALUE,
    ),
    _place(
        "password",
        "login ldap mongo redis-cli sqlcmd zip 7z",
        r"\b(?:docker|podman|helm registry|az|oc|cf|buildah|skopeo) login\b[^\n|;&]{0,120}?\s-p[ =]"
        + _VALUE,
    ),
    _place(
        "password",
        "mongo sqlcmd rabbitmqadmin",
        r"\b(?:mongo|mongosh|mongodump|mongorestore|rabbitmqadmin)\b[^\n|;&]{0,120}?\s-p " + _VALUE,
    ),
    _place(
        "password",
        "stdin with-token sudo",
        r"\b(?:echo|printf)\s{1,4}(?:-[ne]\s{1,4})?" + _VALUE + r"\s{0,4}\|\s{0,4}"
        r"(?:[^\n|;&]{0,160}?\s--(?:password-stdin|token-stdin|with-token)\b|sudo\s[^\n|;&]{0,40}?-S\b)",
    ),
    _place("password", "sqlcmd", r"\bsqlcmd\b[^\n|;&]{0,120}?\s-P " + _VALUE),
    _place("password", "redis-cli", r"\bredis-cli\b[^\n|;&]{0,120}?\s-a " + _VALUE),
    _place(
        "password", "ldap", r"\bldap(?:search|modify|add|whoami)\b[^\n|;&]{0,120}?\s-w " + _VALUE
    ),
    _place(
        "password",
        "curl wget http",
        rf"\b(?:curl\b{_REST}\s(?:-[A-Za-z]{{0,6}}u[ =]?|--(?:proxy-)?user[ =])"
        rf"|https?\b[^\n|;&]{{0,160}}?\s(?:-u|--user|--proxy-user|-a)[ =])"
        r"(?:\\{0,4}[\"']?)[^\s:\"'\\]{1,128}:(?P<value>[^\s\"'\\]{3,}+)",
    ),
    _place(
        "password",
        "chpasswd",
        r"\b[\w.-]{1,64}:(?P<value>[^\s\"'|\\]{3,128}+)[\"']?\s{0,4}\|\s{0,4}(?:sudo\s{1,4})?chpasswd",
    ),
    _place(
        "session-id",
        "sess sid auth",
        r"(?i:\b(?:(?:php|j|asp\.net_)?sess(?:ion)?_?(?:id)?|connect\.sid|sid|_?[a-z0-9_]{0,24}_session"
        r"|remember_token|auth(?:_?session)?|\.aspxauth))=(?P<value>[A-Za-z0-9%._~+/-]{12,}+=*+)",
        _session,
    ),
)

_COOKIES = re.compile(r"(?i:\b(?:set-)?cookie\d?)\\{0,4}[\"']?\s{0,3}[:=,]\s{0,3}\\{0,4}[\"']?")
_COOKIE = re.compile(r"\s{0,2}(?P<name>[\w.$!%*+-]{1,64}+)=(?P<value>[^\s;,\"'\\]*+)(?P<more>;?)")
_PUBLIC = frozenset(
    "path domain expires max-age samesite secure httponly priority lang locale theme tz".split()
)


def placed_secrets(text: str, lower: str) -> Iterator[Found]:
    """Yield secrets by their place; `lower` is the text in lower case."""
    for place in PLACES:
        for match, begin, end in place.found(text, lower):
            if place.kind == "password" and not match.groupdict().get("q"):
                end = ended(text, begin, end, "password", True) or end
            yield begin, end, place.kind, ""
    if "cookie" in lower:
        yield from _cookies(text)


def _cookies(text: str) -> Iterator[Found]:
    """Yield values of a `Cookie` or `Set-Cookie` header that could be credentials."""
    at = 0
    for header in _COOKIES.finditer(text):
        if header.start() < at:
            continue
        at = header.end()
        while (pair := _COOKIE.match(text, at)) is not None:
            value = pair["value"]
            if pair["name"].lower() not in _PUBLIC and len(value) >= 8 and mixed(value):
                yield pair.start("value"), pair.end("value"), "cookie", ""
            at = pair.end()
            if not pair["more"]:
                break
