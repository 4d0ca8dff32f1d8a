"""Secrets whose name tells what they are: assignments, fields, tags, cells, options, calls.

Each way of writing is one pattern that ends where the value begins; one function reads the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from conspectus_secrets.values import (
    LABELS,
    Secret,
    Written,
    can_be,
    may_name,
    named_kind,
    secret_kind,
)

_LABELS = "|".join(
    sorted((re.escape(label) for labels in LABELS.values() for label in labels), reverse=True)
)
HINTS = tuple(
    "pass pwd secret token key data 密 口令 パス 비밀번호 пароль contrase".split()
    + [label for labels in LABELS.values() for label in labels]
)
"""Parts of names in lower case, of which a text must hold one."""

_Q = r"\\{0,8}[\"'`]"
_QS = f"(?:{_Q})?"
_NAME = r"(?P<name>[A-Za-z][\w.:/-]{1,80})"
_WORDS = r"(?:(?:[aA](?i:pi|ccess|ccount|uth)|[sSſ](?i:ecret)|[pP](?i:rivate)|[mM](?i:ot de)) )?"
_IS = r"改成|改为|設定為|设置为|设为|是|为|為|は|が|은|는"
_VERBS = ("is", "was", "lautet", "ist", "war", "es", "est", "è")

_MARK = r"\[redacted: [a-z0-9-]{1,40}\]"
_MARKED = rf"[\"'`]?{_MARK}(?=[\s\"'`]|\Z)"
"""A value that was replaced before, whole."""


@dataclass(frozen=True, slots=True)
class Writing:
    """A way to write a name before its value."""

    pattern: re.Pattern[str]  # has the group `name`, and ends where the value begins
    written: Written | None = "bare"  # how a value without quotes stands there; None if none can
    quoted: Written = "quoted"  # how one in quotes stands there
    closes: bool = False  # the pattern has the group `close`
    needs: tuple[str, ...] = ("",)  # in small letters: a text must hold one of them


def _writing(
    pattern: str,
    written: Written | None = "bare",
    quoted: Written = "quoted",
    needs: Iterable[str] = ("",),
) -> Writing:
    made = re.compile(pattern, re.MULTILINE)
    return Writing(made, written, quoted, "close" in made.groupindex, tuple(needs))


ASSIGNED = _writing(
    rf"(?<![\w.-])(?!redacted:)(?>(?P<name>{_WORDS}[\w.-]++)(?P<close>{_Q})?[\])]{{0,2}}[*_`]{{0,3}}"
    r"(?P<gap>\s{0,4})(?::\s{0,2}&?[A-Za-z_][\w.\[\]| ]{0,40}?\s{0,2}=(?![=\s]{0,8}$)"
    r"|(?P<sign>=>|:=|={1,3}(?![=~])|:(?![:=])|[：＝]|%3[AaDd]))(?:[*]{1,3}|__|</\w{1,8}>)?"
    rf"(?P<after>[ \t\u3000]{{0,8}}|\s{{0,40}}(?={_Q}))[*`]{{0,3}}"
    rf"(?:[|>][+-]?[ \t]{{0,4}}\n\s{{1,40}})?)(?!{_MARKED})"
)
"""A name and a sign: `name = ...`, `"name": "..."`, `**name:** ...`, `name: str = ...`."""

WRITINGS = (
    ASSIGNED,
    # An option of a command, also in a list.
    _writing(rf"--(?P<name>[\w-]++)(?:[ \t]{{1,4}}|{_Q},\s{{0,4}})(?![-\s])"),
    # A sentence: the password for staging is ...
    _writing(
        rf"(?<![\w.-])(?P<name>{_WORDS}[\w.-]++)\s{{1,4}}"
        r"(?:(?:for|of|to|on|at|in)\s[^\n.,;:!?\"'=]{1,60}?\s)?"
        rf"(?:{'|'.join(_VERBS)}):?[ \t]{{1,4}}",
        needs=[f"{verb}{behind}" for verb in _VERBS for behind in " \t:"],
    ),
    # 密码是 ...
    _writing(
        rf"(?P<name>(?i:{_LABELS}))(?:[ \t]{{0,2}}(?:{_IS})[:：]?|[ \t])[ \t]{{0,2}}",
        needs={label.strip("api") for labels in LABELS.values() for label in labels},
    ),
    # Fields of their own: name: DB_PASSWORD, value: ...
    _writing(
        rf"\b(?:[Pp]arameter_?)?(?:[Nn]ame|NAME|[Kk]ey|KEY){_QS}\s{{0,4}}[:=][ \t]{{0,4}}{_QS}"
        rf"{_NAME}{_QS},?\s{{0,40}}(?:#[^\n]{{0,80}}\n\s{{0,40}})?"
        rf"(?:{_QS}type{_QS}\s?[:=]\s?{_QS}\w{{1,20}}{_QS},?\s{{0,40}})?"
        rf"{_QS}(?:[Pp]arameter_?)?(?:[Vv]alue|VALUE)(?P<close>{_Q})?\s{{0,4}}[:=][ \t]{{0,4}}",
        needs=["value"],
    ),
    # <password>..., <property name="password">...
    _writing(r"<(?P<name>[A-Za-z][\w.:-]{0,60})(?:\s[^<>]{0,200})?>\s{0,40}(?:<!\[CDATA\[)?"),
    _writing(
        rf"<\w{{1,40}}\s[^<>]{{0,200}}?\b(?:name|key|id)={_Q}{_NAME}{_Q}[^<>]{{0,200}}>\s{{0,40}}"
    ),
    # | Password | ... |
    _writing(
        r"\|[ \t]{0,40}[*_`]{0,3}(?P<name>[A-Za-z][\w.-]{1,40}(?: \w{1,20})?):?[*_`]{0,3}"
        r"[ \t]{0,40}\|[ \t]{0,40}[*_`]{0,3}"
    ),
    # setPassword("..."), put("password", "...")
    _writing(
        rf"\b(?P<name>[A-Za-z]\w{{1,60}})\(\s{{0,4}}[bBrRuU]?(?={_Q})", None, "bare", needs=["("]
    ),
    _writing(
        rf"\({_Q}{_NAME}{_Q},\s{{0,4}}(?:default\s{{0,2}}[=:]\s{{0,2}})?[bBrRuU]?(?={_Q})",
        None,
        "bare",
    ),
    # ENV DB_PASSWORD ..., aws configure set aws_secret_access_key ...
    _writing(
        rf"(?:^[ \t]{{0,16}}(?:ENV|setx)|\bconfig(?:ure)? set)[ \t]{{1,4}}{_NAME}[ \t]",
        "shell",
        needs=["env", "setx", "config"],
    ),
)

_OPEN = re.compile(r"[bBrRfFuU]{0,2}(?P<back>\\{0,8})(?P<quote>[\"'`“‘„「『«])")
_CLOSE = {"“": "”", "‘": "’", "„": "“”", "「": "」", "『": "』", "«": "»"}
_ENDS = {
    quote: re.compile(rf"(?<!\\)(?P<back>\\*+)(?P<sign>[\"{_CLOSE.get(quote, quote)}])|\n")
    for quote in "\"'`“‘„「『«"
}
LONGEST = {'"': 40_000, "'": 40_000, "`": 40_000}
"""Characters of a value in these quotes. Default: 200."""

_REPLACED = re.compile(_MARKED)
_BREAKS = r"、-〟！-～‐-‧‹-›„“”‘’«»぀-ヿ㐀-鿿가-힣"
"""Letters and punctuation of Chinese, Japanese and Korean, and dashes: they end a bare value."""

_ESCAPE = r"\\[^\s\"'`\\nrtu]"
_WIDE = rf"(?:{_MARK}|{_ESCAPE}|[^\s\"'`\\{_BREAKS}]|'(?=\w))"
_NARROW = (
    rf"(?:{_MARK}|{_ESCAPE}|[^\s\"'`\\,;&|<>(){{}}\[\]{_BREAKS}]"
    r"|(?<=[^\s&])&(?=[^\s\"'`,;&|<>(){}\[\]])(?!amp;|[\w.%-]{1,64}=))"
)
JUDGED = 512
"""Characters of a bare value that are judged; an unbroken rest belongs to it."""

WIDE = re.compile(f"{_WIDE}{{1,{JUDGED}}}+"), re.compile(f"{_WIDE}*+")
NARROW = re.compile(f"{_NARROW}{{1,{JUDGED}}}+"), re.compile(f"{_NARROW}*+")
_LINE_BEGINS = re.compile(r"(?:\A|\n|\bexport |\bset |-e |--env[= ])[ \t-]{0,40}\Z")
_BEFORE_NAMES = "\ntev="
"""What `_LINE_BEGINS` may end with, before blanks and dashes."""
_LINE_ENDS = re.compile(r"[,;]?[ \t]{0,8}(?:\n|\\{0,64}+\"|\Z)")
_NUMBER = re.compile(r"\d{4,64}+(?=\s{0,8}[,}\n])")
"""A password that is a number in JSON; its mark takes quotes."""


def named_secrets(text: str, lower: str) -> Iterator[Secret]:
    """Yield secrets behind their names; `lower` is the text in lower case."""
    if not any(hint in lower for hint in HINTS):
        return
    json = text.lstrip()[:1] in ("{", "[", '"')
    for writing in WRITINGS:
        if not any(part in lower for part in writing.needs):
            continue
        at = 0
        while (match := writing.pattern.search(text, at)) is not None:
            secret = None
            if may_name(match["name"]):
                secret = _secret(text, match, writing, json)
            if secret is not None:
                yield secret
            at = max(secret.end if secret is not None else match.end("name"), match.start() + 1)


def _secret(text: str, match: re.Match[str], writing: Writing, json: bool) -> Secret | None:
    """Return the secret at the end of a match, if its value is one."""
    name, at = match["name"], match.end()
    if writing is not ASSIGNED and _REPLACED.match(text, at):
        return None
    opened = _OPEN.match(text, at)
    quoted = None if opened is None else _quoted(text, opened, json)
    close = match["close"] if writing.closes else None
    if close is not None and quoted is None:
        number = _NUMBER.match(text, at) if named_kind(name) == "password" else None
        return Secret(at, number.end(), "password", close) if number else None
    if quoted is not None:
        value = text[quoted[0] : quoted[1]]
        if writing is ASSIGNED and name.isupper() and named_kind(name) == "password":
            value = value.replace(" ", "-")  # several words are a passphrase there
        kind = secret_kind(name, value, writing.quoted)
        return Secret(*quoted, kind) if kind else None
    written: Written | None = writing.written
    wide = written == "shell"
    if writing is ASSIGNED:
        sign, gap, after = match.group("sign", "gap", "after")
        begin = match.start("name")
        if sign is not None and sign.startswith("=="):
            return None
        if sign in ("=", "%3D", "%3d") and not gap and not after:
            before = text[begin - 1 : begin]
            if name.isupper() or name.startswith("--") or before in ("?", "&", ";"):
                written = "shell"
        may_be_wide = sign == ":" or written == "shell"
        wide = may_be_wide and _begins_line(text, begin)
    if written is None:
        return None
    return _bare(text, at if opened is None else opened.end(), name, written, wide)


def _begins_line(text: str, at: int) -> bool:
    """Return whether nothing but a command that sets variables stands before this place."""
    before = text[max(0, at - 48) : at].rstrip(" \t-")[-1:]
    if before and before not in _BEFORE_NAMES:
        return False
    return _LINE_BEGINS.search(text, max(0, at - 48), at) is not None


def _quoted(text: str, opened: re.Match[str], json: bool) -> tuple[int, int] | None:
    """Return the span of a value behind its quote; in JSON, in quotes of the same depth."""
    begin, quote, depth = opened.end(), opened["quote"], len(opened["back"])
    for match in _ENDS[quote].finditer(text, begin, begin + LONGEST.get(quote, 200)):
        sign, run = match["sign"], len(match["back"] or "")
        if sign is None:
            return None  # the end of the line
        if sign == '"' and (run < depth if quote == '"' else json or quote in _CLOSE):
            return None  # a string around this value ends
        if quote in _CLOSE:
            value = text[begin : match.end() - 1]
            begin += len(value) - len(value.lstrip())
            return (begin, begin + len(value.strip())) if value.strip() else None
        if sign == quote and run % (2 * (depth + 1)) == depth:
            return begin, match.end() - 1 - depth
    return None


def _bare(text: str, at: int, name: str, written: Written, wide: bool) -> Secret | None:
    """Return the value without quotes that begins here, or behind a quote that never closes."""
    for first, more in (WIDE, NARROW) if wide else (NARROW,):
        match = first.match(text, at)
        if match is None:
            return None
        end, value = match.end(), match[0]
        if first is WIDE[0] and written == "bare":
            value = value.rstrip(",")
            if not _LINE_ENDS.match(text, end) or value[-1:] in (*")]};(", ""):
                continue
            end = at + len(value)
        if written == "bare":
            value = value.rstrip(".:?*_")
            end = at + len(value) if end - at < JUDGED else end
        if text[end : end + 1] in ("(", "["):
            continue
        kind = secret_kind(name, value, written)
        if kind is not None:
            end = more.match(text, end).end() if end - at >= JUDGED else end  # type: ignore[union-attr]
            return Secret(at, end, kind)
    return None


def value_kind(name: str, value: str) -> str | None:
    """Return the kind of a value that stands alone under a name, as in a dict; None for none."""
    if name.lower() in ("cookies", "cookiejar"):
        return "cookie" if len(value) >= 12 and can_be("token", value, "quoted") else None
    if named_kind(name) == "password" and name.isupper() and len(value) <= 200:
        value = "-".join(value.split())
    return secret_kind(name, value, "quoted")
