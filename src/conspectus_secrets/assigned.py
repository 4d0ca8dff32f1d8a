"""Find secrets by their names: in assignments, fields, tags, cells, options, calls.

Each form of an assignment is one pattern that ends where the value begins. One function reads the
value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from conspectus_secrets.values import (
    LABELS,
    Secret,
    ValueStyle,
    can_be_secret,
    kind_of_value,
    may_be_doubtful,
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
"""Parts of names in lower case. A text is only searched if it has one of them."""

_Q = r"\\{0,8}[\"'`]"
_QS = f"(?:{_Q})?"
_NAME = r"(?P<name>[A-Za-z][\w.:/-]{1,80})"
_WORDS = r"(?:(?:[aA](?i:pi|ccess|ccount|uth)|[sSſ](?i:ecret)|[pP](?i:rivate)|[mM](?i:ot de)) )?"
_IS = r"改成|改为|設定為|设置为|设为|是|为|為|は|が|은|는"
_VERBS = ("is", "was", "lautet", "ist", "war", "es", "est", "è")

_MARK = r"\[redacted: [a-z0-9-]{1,40}\]"
_MARKED = rf"[\"'`]?{_MARK}(?=[\s\"'`]|\Z)"
"""A whole value that was already replaced."""


@dataclass(frozen=True, slots=True)
class AssignmentForm:
    """A way to write a name before its value.

    Attributes:
        pattern: has the group `name`, and perhaps the group `close` for a quote after the name. It
            ends where the value begins.
        unquoted: the style of a value without quotes; None if a value must have quotes.
        quoted: the style of a value in quotes.
        hints: words in small letters; a text is only searched if it contains one of them.
        has_close: whether the pattern has the group `close`.
    """

    pattern: re.Pattern[str]
    unquoted: ValueStyle | None
    quoted: ValueStyle
    hints: tuple[str, ...]
    has_close: bool


def assignment_form(
    pattern: str,
    unquoted: ValueStyle | None = "bare",
    quoted: ValueStyle = "quoted",
    hints: Iterable[str] = ("",),
) -> AssignmentForm:
    compiled = re.compile(pattern, re.MULTILINE)
    has_close = "close" in compiled.groupindex
    return AssignmentForm(compiled, unquoted, quoted, tuple(hints), has_close)


ASSIGNED = assignment_form(
    rf"(?<![\w.-])(?!redacted:)(?>(?P<name>{_WORDS}[\w.-]++)(?P<close>{_Q})?[\])]{{0,2}}[*_`]{{0,3}}"
    r"(?P<gap>\s{0,4})(?::\s{0,2}&?[A-Za-z_][\w.\[\]| ]{0,40}?\s{0,2}=(?![=\s]{0,8}$)"
    r"|(?P<sign>=>|:=|={1,3}(?![=~])|:(?![:=])|[：＝]|%3[AaDd]))(?:[*]{1,3}|__|</\w{1,8}>)?"
    rf"(?P<after>[ \t\u3000]{{0,8}}|\s{{0,40}}(?={_Q}))[*`]{{0,3}}"
    rf"(?:[|>][+-]?[ \t]{{0,4}}\n\s{{1,40}})?)(?!{_MARKED})"
)
"""A name and a sign: `name = ...`, `"name": "..."`, `**name:** ...`, `name: str = ...`."""

ASSIGNMENT_FORMS = (
    ASSIGNED,
    # An option of a command, also in a list.
    assignment_form(rf"--(?P<name>[\w-]++)(?:[ \t]{{1,4}}|{_Q},\s{{0,4}})(?![-\s])"),
    # A sentence: the password for staging is ...
    assignment_form(
        rf"(?<![\w.-])(?P<name>{_WORDS}[\w.-]++)\s{{1,4}}"
        r"(?:(?:for|of|to|on|at|in)\s[^\n.,;:!?\"'=]{1,60}?\s)?"
        rf"(?:{'|'.join(_VERBS)}):?[ \t]{{1,4}}",
        hints=[f"{verb}{behind}" for verb in _VERBS for behind in " \t:"],
    ),
    # 密码是 ...
    assignment_form(
        rf"(?P<name>(?i:{_LABELS}))(?:[ \t]{{0,2}}(?:{_IS})[:：]?|[ \t])[ \t]{{0,2}}",
        hints={label.strip("api") for labels in LABELS.values() for label in labels},
    ),
    # Fields of their own: name: DB_PASSWORD, value: ...
    assignment_form(
        rf"\b(?:[Pp]arameter_?)?(?:[Nn]ame|NAME|[Kk]ey|KEY){_QS}\s{{0,4}}[:=][ \t]{{0,4}}{_QS}"
        rf"{_NAME}{_QS},?\s{{0,40}}(?:#[^\n]{{0,80}}\n\s{{0,40}})?"
        rf"(?:{_QS}type{_QS}\s?[:=]\s?{_QS}\w{{1,20}}{_QS},?\s{{0,40}})?"
        rf"{_QS}(?:[Pp]arameter_?)?(?:[Vv]alue|VALUE)(?P<close>{_Q})?\s{{0,4}}[:=][ \t]{{0,4}}",
        hints=["value"],
    ),
    # Its value in an object: "db_password": {"type": "string", "value": ...
    assignment_form(
        rf"{_Q}{_NAME}{_Q}\s{{0,4}}:\s{{0,4}}(?:\[\s{{0,40}})?\{{"
        rf"(?:\s{{0,40}}{_Q}(?:type|sensitive){_Q}\s{{0,4}}:\s{{0,4}}{_QS}\w{{1,20}}{_QS},){{0,2}}"
        rf"\s{{0,40}}{_Q}[Vv]alue(?P<close>{_Q})\s{{0,4}}:[ \t]{{0,4}}",
        hints=["value"],
    ),
    # <password>..., <property name="password">...
    assignment_form(
        r"<(?P<name>[A-Za-z][\w.:-]{0,60})(?:\s[^<>]{0,200})?>\s{0,40}(?:<!\[CDATA\[)?"
    ),
    assignment_form(
        rf"<\w{{1,40}}\s[^<>]{{0,200}}?\b(?:name|key|id)={_Q}{_NAME}{_Q}[^<>]{{0,200}}>\s{{0,40}}"
    ),
    # | Password | ... |
    assignment_form(
        r"\|[ \t]{0,40}[*_`]{0,3}(?P<name>[A-Za-z][\w.-]{1,40}(?: \w{1,20})?):?[*_`]{0,3}"
        r"[ \t]{0,40}\|[ \t]{0,40}[*_`]{0,3}"
    ),
    # setPassword("..."), put("password", "...")
    assignment_form(
        rf"\b(?P<name>[A-Za-z]\w{{1,60}})\(\s{{0,4}}[bBrRuU]?(?={_Q})", None, "bare", hints=["("]
    ),
    assignment_form(
        rf"\({_Q}{_NAME}{_Q},\s{{0,4}}(?:default\s{{0,2}}[=:]\s{{0,2}})?[bBrRuU]?(?={_Q})",
        None,
        "bare",
    ),
    # ENV DB_PASSWORD ..., aws configure set aws_secret_access_key ...
    assignment_form(
        rf"(?:^[ \t]{{0,16}}(?:ENV|setx)|\bconfig(?:ure)? set)[ \t]{{1,4}}{_NAME}[ \t]",
        "shell",
        hints=["env", "setx", "config"],
    ),
)

_OPEN = re.compile(r"[bBrRfFuU]{0,2}(?P<back>\\{0,8})(?P<quote>[\"'`“‘„「『«])")
_CLOSING = {"“": "”", "‘": "’", "„": "“”", "「": "」", "『": "』", "«": "»"}
"""The closing quotes that differ from their opening quotes."""

_END_OF_QUOTED = {
    quote: re.compile(rf"(?<!\\)(?P<back>\\*+)(?P<sign>[\"{_CLOSING.get(quote, quote)}])|\n")
    for quote in "\"'`“‘„「『«"
}
MAX_QUOTED = {'"': 40_000, "'": 40_000, "`": 40_000}
"""Characters of a value in these quotes. The longest values are private keys."""

MAX_IN_OTHER_QUOTES = 200  # characters

_REPLACED = re.compile(_MARKED)
_BREAKS = r"、-〟！-～‐-‧‹-›„“”‘’«»぀-ヿ㐀-鿿가-힣"
"""Letters and punctuation of Chinese, Japanese and Korean, and dashes, which end a bare value."""

_ESCAPE = r"\\[^\s\"'`\\nrtu]"
_WIDE = rf"(?:{_MARK}|{_ESCAPE}|[^\s\"'`\\{_BREAKS}]|'(?=\w))"
_NARROW = (
    rf"(?:{_MARK}|{_ESCAPE}|[^\s\"'`\\,;&|<>(){{}}\[\]{_BREAKS}]"
    r"|(?<=[^\s&])&(?=[^\s\"'`,;&|<>(){}\[\]])(?!amp;|[\w.%-]{1,64}=))"
)
JUDGED = 512
"""Characters of a bare value that are judged. Further characters without a break belong to it."""


class _Bare(NamedTuple):
    """The characters of a value without quotes: those that are judged, and all that follow."""

    judged: re.Pattern[str]
    rest: re.Pattern[str]


WIDE = _Bare(re.compile(f"{_WIDE}{{1,{JUDGED}}}+"), re.compile(f"{_WIDE}*+"))
"""A line with only a name and a value, so that its signs belong to the value."""

NARROW = _Bare(re.compile(f"{_NARROW}{{1,{JUDGED}}}+"), re.compile(f"{_NARROW}*+"))
"""Signs after a value that may continue with code or prose."""

_LINE_BEGINS = re.compile(r"(?:\A|\n|\bexport |\bset |-e |--env[= ])[ \t-]{0,40}\Z")
_ENDS_BEGIN_OF_LINE = "\ntev="  # possible last characters of a match, before blanks and dashes
_REACH_BACK = 48  # the beginning of a line is looked for so many characters before a name
_LINE_ENDS = re.compile(r"[,;]?[ \t]{0,8}(?:\n|\\{0,64}+\"|\Z)")
_NUMBER = re.compile(r"\d{4,64}+(?=\s{0,8}[,}\n])")
"""A password that is a number in JSON. Its replacement needs quotes."""


def named_secrets(text: str, lower: str) -> Iterator[Secret]:
    """Yield secrets that follow their names; `lower` is the text in lower case."""
    if not any(hint in lower for hint in HINTS):
        return
    is_json = text.lstrip()[:1] in ("{", "[", '"')
    for form in ASSIGNMENT_FORMS:
        if not any(hint in lower for hint in form.hints):
            continue
        position = 0
        while (match := form.pattern.search(text, position)) is not None:
            position = max(match.end("name"), match.start() + 1)
            kind = named_kind(match["name"])
            if kind is None and not may_be_doubtful(match["name"]):
                continue
            secret = _secret_behind(text, match, form, kind, is_json)
            if secret is not None:
                yield secret
                position = max(secret.end, match.start() + 1)


def _secret_behind(
    text: str, match: re.Match[str], form: AssignmentForm, kind: str | None, is_json: bool
) -> Secret | None:
    """Return the secret at the end of a match, if its value is one.

    `kind` is the kind of secrets with this name; None if only the value can tell.
    """
    begin = match.end()
    name = match["name"]
    if form is not ASSIGNED and _REPLACED.match(text, begin):
        return None
    opened = _OPEN.match(text, begin)
    if opened is not None:
        quoted = _quoted_span(text, opened, is_json)
        if quoted is not None:
            begin, end = quoted
            value = text[begin:end]
            if kind == "password" and form is ASSIGNED and name.isupper():
                value = value.replace(" ", "-")  # several words are a passphrase there
            value_kind = kind_of_value(value, form.quoted, name, kind)
            return Secret(begin, end, value_kind) if value_kind is not None else None
    if form.has_close and match["close"] is not None:
        return _number_in_json(text, match) if kind == "password" else None
    style = _style_unquoted(text, match, form)
    if style is None:
        return None
    is_wide = style == "shell"
    if form is ASSIGNED:
        may_be_wide = is_wide or match["sign"] == ":"
        is_wide = may_be_wide and _begins_line(text, match.start("name"))
    if opened is not None:
        begin = opened.end()
    return _unquoted_secret(text, begin, name, kind, style, is_wide)


def _number_in_json(text: str, match: re.Match[str]) -> Secret | None:
    """Return a password that is a number. Its replacement gets the quotes of its name."""
    number = _NUMBER.match(text, match.end())
    if number is None:
        return None
    return Secret(match.end(), number.end(), "password", match["close"])


def _style_unquoted(text: str, match: re.Match[str], form: AssignmentForm) -> ValueStyle | None:
    """Return the style of a value without quotes after a name; None if there can be none."""
    if form is not ASSIGNED:
        return form.unquoted
    sign, gap, after = match.group("sign", "gap", "after")
    if sign is not None and sign.startswith("=="):
        return None  # a comparison
    if sign in ("=", "%3D", "%3d") and not gap and not after:
        name = match["name"]
        begin = match.start("name")
        is_parameter = text[begin - 1 : begin] in ("?", "&", ";")
        if is_parameter or name.isupper() or name.startswith("--"):
            return "shell"
    return form.unquoted


def _begins_line(text: str, position: int) -> bool:
    """Tell whether only a command that sets variables is before this place."""
    reach = max(0, position - _REACH_BACK)
    before = text[reach:position].rstrip(" \t-")
    if before and before[-1] not in _ENDS_BEGIN_OF_LINE:
        return False
    return _LINE_BEGINS.search(text, reach, position) is not None


def _quoted_span(text: str, opened: re.Match[str], is_json: bool) -> tuple[int, int] | None:
    """Return the span of a value after its quote; in JSON, in quotes of the same depth."""
    begin = opened.end()
    quote = opened["quote"]
    depth = len(opened["back"])
    limit = begin + MAX_QUOTED.get(quote, MAX_IN_OTHER_QUOTES)
    for match in _END_OF_QUOTED[quote].finditer(text, begin, limit):
        sign = match["sign"]
        if sign is None:
            return None  # the end of the line
        backslashes = len(match["back"])
        if sign == '"' and (backslashes < depth if quote == '"' else is_json or quote in _CLOSING):
            return None  # a string around this value ends
        if quote in _CLOSING:
            return _without_blanks(text, begin, match.end() - 1)
        if sign == quote and backslashes % (2 * (depth + 1)) == depth:
            return begin, match.end() - 1 - depth
    return None


def _without_blanks(text: str, begin: int, end: int) -> tuple[int, int] | None:
    value = text[begin:end].lstrip()
    begin = end - len(value)
    value = value.rstrip()
    return (begin, begin + len(value)) if value else None


def _unquoted_secret(
    text: str, begin: int, name: str, kind: str | None, style: ValueStyle, is_wide: bool
) -> Secret | None:
    """Return the value without quotes that begins here, or after a quote that never closes."""
    for bare in (WIDE, NARROW) if is_wide else (NARROW,):
        match = bare.judged.match(text, begin)
        if match is None:
            return None
        end = match.end()
        value = match[0]
        if bare is WIDE and style == "bare":
            value = value.rstrip(",")
            if not _LINE_ENDS.match(text, end) or value[-1:] in (*")]};(", ""):
                continue
            end = begin + len(value)
        if style == "bare":
            value = value.rstrip(".:?*_")
            if end - begin < JUDGED:
                end = begin + len(value)
        if text[end : end + 1] in ("(", "["):
            continue
        value_kind = kind_of_value(value, style, name, kind)
        if value_kind is None:
            continue
        if end - begin >= JUDGED:
            rest = bare.rest.match(text, end)
            end = rest.end() if rest is not None else end
        return Secret(begin, end, value_kind)
    return None


def kind_alone(name: str, value: str) -> str | None:
    """Return the kind of a whole value with a name, as in a dict; None if it is no secret."""
    if name.lower() in ("cookies", "cookiejar"):
        return "cookie" if len(value) >= 12 and can_be_secret("token", value, "quoted") else None
    if named_kind(name) == "password" and name.isupper() and len(value) <= 200:
        value = "-".join(value.split())
    return secret_kind(name, value, "quoted")
