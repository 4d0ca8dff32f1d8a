"""Find secrets after a name: `password: ...`, `API_KEY=...`, `--token ...`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from conspectus.redaction.names import LABELS, named_kind
from conspectus_secrets.bounds import telling
from conspectus_secrets.ends import QUOTE, Found, closing, cut, whole
from conspectus_secrets.scripts import BREAKS, CJK, SPACES, cjk, ended, printed, worded, words_only
from conspectus_secrets.words import CODE, can_be, env_key, passes, placeholder, scattered

_KEYWORDS = (
    *"passw passphrase passcode pwd secret token key pass contrase пароль".split(),
    *[label for labels in LABELS.values() for label in labels],
)
"""Words of which each name of a secret holds one."""

_LONGEST_NAME = 60
_RIGHT = re.compile(r"[\w-]{0,80}")

_SEPARATOR = re.compile(
    r"""(?P<close>\\{0,8}["'`])?(?P<gap>\s{0,4})(?:\]\s{0,2})?"""
    r"""(?:(?P<typed>:\s{0,2}&?(?:'[a-z]{1,16}\s)?[A-Za-z_][\w.\[\]| ]{0,40}?\s{0,2}"""
    r"""=(?!=|[ \t]{0,8}(?:[\r\n\\]|\Z)))"""
    r"""|(?P<sign>=>|:=|={1,3}(?![=~])|:(?!:)|[：＝]|%3[Aa]|%3[Dd]))"""
    rf"(?P<after>[{SPACES}]{{0,8}})"
)
_SAID = re.compile(
    r"""\s{1,4}(?:(?:for|of|to|on|at|in)\s[^\n.,;:!?"'=]{1,60}?\s)?"""
    r"""(?:is|was|lautet|ist|war|es|est|è):?[ \t]{1,4}"""
)
"""A sentence such as `the password for staging is ...`."""

_IN_LINE = r"""(?:[^\s"'`]|'(?=\w))"""
_ON = f"(?![{CJK}{BREAKS}])"
_LINE, _LINE_MORE = re.compile(_IN_LINE + "{1,512}+"), re.compile(f"(?:{_ON}{_IN_LINE})*+")
"""A value to the end of its line, as in an `.env` file."""

_STARTS_LINE = re.compile(r"(?:\A|\n|\\n|\bexport |\bENV |\bset |-e |--env[= ])\s{0,8}\Z")
_STARTS_FIELD = re.compile(r"(?:\A|\n|\\n)[ \t]{0,40}(?:-[ \t]{1,4})?\Z")
_IN_BARE = (
    r"""(?:[^\s"'`,;&|<>(){}\[\]]"""
    r"""|(?<=[^\s&])&(?=[^\s"'`,;&|<>(){}\[\]])(?!amp;|[\w.%-]{1,64}=))"""
)
BARE, BARE_MORE = re.compile(_IN_BARE + "{1,512}+"), re.compile(f"(?:{_ON}{_IN_BARE})*+")
"""A bare value; a `&` belongs to it unless the next field or command follows."""

_GAP = re.compile(r"(?:[ \t]{1,4}|[\"'],\s{0,4}(?=[\"'])|\\\s?\n\s{0,8})")
"""Between `--password` and its value."""

_TWO_WORDS = re.compile(r"(?i:\b(?:api|access|secret|account|auth)) \Z")
"""The first word of a name such as `API key`."""


def named_secrets(text: str, lower: str) -> Iterator[Found]:
    """Yield secrets after a name; `lower` is the text in lower case, place by place."""
    done = 0
    for at in _keywords(lower):
        if at < done:
            continue
        begin = at
        least = max(done, at - _LONGEST_NAME)
        while begin > least and (text[begin - 1].isalnum() or text[begin - 1] in "_.-"):
            begin -= 1
        if text[begin - 1 : begin] == "\\" and text[begin] in "nrt" and begin < at:
            begin += 1  # the end of a line, in JSON
        rest = _RIGHT.match(text, at)
        end = rest.end() if rest else at
        name = text[begin:end]
        if name.lower() == "key" and (more := _TWO_WORDS.search(text, max(0, begin - 9), begin)):
            name = f"{more[0].strip()}_key"
        done = end
        value = _value_under(text, begin, end, name)
        if value is not None:
            yield value
            done = value[1]


def _value_under(text: str, begin: int, end: int, name: str) -> Found | None:
    """Return the secret after this name."""
    kind = named_kind(name)
    if kind is not None:
        return _value_of(text, begin, end, kind, name)
    if name.lower().removeprefix("--") == "pass":
        value = _value_of(text, begin, end, "password", name)
        sure = name.isupper() or name[0] == "-"
        if value is None or not (sure or text[value[0] - 1] in "\"'`"):
            return None
        return value if passes(text[value[0] : value[1]]) else None
    if name.isupper() and name.endswith("_KEY") and _starts_line(text, begin):
        value = _value_of(text, begin, end, "key", name)
        return value if value and env_key(name, text[value[0] : value[1]]) else None
    return None


def _starts_line(text: str, begin: int) -> bool:
    return _STARTS_LINE.search(text, max(0, begin - 24), begin) is not None


def _keywords(lower: str) -> list[int]:
    places = set()
    for word in _KEYWORDS:
        at = lower.find(word)
        while at >= 0:
            places.add(at)
            at = lower.find(word, at + len(word))
    return sorted(places)


def _value_of(text: str, begin: int, end: int, kind: str, name: str) -> Found | None:
    flag = name.startswith("--") or text[max(0, begin - 2) : begin] == "--"
    sign = _SEPARATOR.match(text, end)
    if sign is None:
        return _flagged(text, end, kind) if flag else _said(text, end, kind)
    at = sign.end()
    if (sign["sign"] or "").startswith("==") and kind != "password":
        return None  # code that compares
    plain = sign["sign"] in ("=", "%3D", "%3d") and not sign["gap"] and not sign["after"]
    lined = plain and name.isupper() and _starts_line(text, begin)
    quote = QUOTE.match(text, at)
    if quote is not None:
        start = quote.end()
        stop = closing(text, start, quote["quote"])
        if stop is None:
            return read_bare(text, start, kind)
        value = text[start:stop]
        if lined and kind == "secret" and value.isalnum():
            return (start, stop, kind, "") if can_be("password", value, True, False) else None
        if "passphrase" in name.lower() and not placeholder(value):
            value = value.replace(" ", "-")  # several words are no sentence there
        if lined and kind == "password":
            value = value.replace(" ", "-")
        return (start, stop, kind, "") if can_be(kind, value, True, False) else None
    if (found := read_printed(text, at, kind)) is not None:
        return found
    if (sign["sign"] or "").startswith("=="):
        return None
    if kind == "password" and sign["sign"] == ":" and sign["after"] and not sign["close"]:
        field = _field(text, begin, at)
        if field is not None:
            return field
    shell = (
        plain and (name.isupper() or flag or text[max(0, begin - 1) : begin] in ("?", "&"))
    ) or (sign["sign"] == "=" and _in_connection_string(text, begin))
    if sign["close"] is None:
        return read_bare(text, at, kind, shell, lined)
    # A name in quotes and a bare value, as in JSON: a number may be a password.
    bare = BARE.match(text, at)
    value = text[at : cut(text, at, bare.end())] if bare else ""
    number = kind == "password" and value.isdigit() and len(value) >= 4
    stop = at + len(value)
    called = text[stop : stop + 1] in ("(", "[")
    return (at, stop, kind, sign["close"]) if number and not called else None


def read_printed(text: str, at: int, kind: str) -> Found | None:
    """Return the value in typographic quotes; an open quote ends at the next break."""
    span = printed(text, at)
    if span is None:
        return None
    begin, end = span
    if begin == end:
        return read_bare(text, begin, kind)
    value = text[begin:end]
    if worded(value):  # words, unless one part of it looks like a secret
        return (begin, end, kind, "") if ended(text, begin, end, kind, False) == end else None
    return (begin, end, kind, "") if can_be(kind, value, True, False) else None


def read_bare(
    text: str, at: int, kind: str, shell: bool = False, lined: bool = False
) -> Found | None:
    """Return the bare value from here, or one whose quote is not closed."""
    pattern = _LINE if lined else BARE
    bare = None if not shell and words_only(text, at) else pattern.match(text, at)
    if bare is None:
        return None
    stop = cut(text, at, bare.end())
    judged = ended(text, at, stop, kind, shell)
    if judged is None or called(text, judged):
        return None
    value = text[at:judged]
    if lined and CODE.match(value) and any(map(str.isdigit, value)):
        value = value.replace(".", "-")  # `NAME=value` of a shell is no code
    if value.isascii() and not can_be(kind, value, False, shell):
        return None
    if judged == bare.end():
        judged = whole(text, at, judged, _LINE_MORE if lined else BARE_MORE)
    return at, judged, kind, ""


def called(text: str, stop: int) -> bool:
    """Return whether a call or an element follows; a remark is neither."""
    return text[stop : stop + 1] in ("(", "[") and not cjk(text, stop + 1)


def _field(text: str, begin: int, at: int) -> Found | None:
    """Return a password in a line of YAML with a sign that would end it elsewhere."""
    if not _STARTS_FIELD.search(text, max(0, begin - 48), begin):
        return None
    line, bare = _LINE.match(text, at), BARE.match(text, at)
    if line is None or bare is None or line.end() == bare.end():
        return None
    stop = cut(text, at, line.end())
    while stop > at and text[stop - 1] in ",;":
        stop -= 1
    value = text[at:stop]
    if stop <= bare.end() or len(value) < 8 or not telling("password", value):
        return None
    sure = scattered(bare.group()) and scattered(value) and "(" not in value
    return (at, stop, "password", "") if sure else None


def _in_connection_string(text: str, begin: int) -> bool:
    """Return whether a name stands after a semicolon, as in `Server=db;Password=...`."""
    return (
        text[max(0, begin - 2) : begin].rstrip().endswith(";")
        and "=" in text[max(0, begin - 80) : begin]
    )


def _flagged(text: str, end: int, kind: str) -> Found | None:
    """Return the value of `--password value`."""
    gap = _GAP.match(text, end)
    if gap is None or text.startswith("-", gap.end()):
        return None
    return _quoted(text, gap.end(), kind) or read_bare(text, gap.end(), kind)


def _said(text: str, end: int, kind: str) -> Found | None:
    """Return the value in a sentence such as `the password is ...`."""
    gap = _SAID.match(text, end)
    if gap is None:
        return None
    found = _quoted(text, gap.end(), kind)
    if found is not None:
        return found
    bare = BARE.match(text, gap.end())
    value = bare.group().partition("\\")[0].rstrip(".:!?") if bare else ""
    stop = ended(text, gap.end(), gap.end() + len(value), kind, False)
    value = text[gap.end() : stop].rstrip(".:!?") if stop else ""
    if not value or (value.isascii() and not can_be(kind, value, False, False)):
        return None
    stop = whole(text, gap.end(), gap.end() + len(value), BARE_MORE)
    return gap.end(), stop, kind, ""


def _quoted(text: str, at: int, kind: str) -> Found | None:
    """Return the value in quotes from here; an open quote ends at the next break."""
    quote = QUOTE.match(text, at)
    if quote is None:
        return read_printed(text, at, kind)
    stop = closing(text, quote.end(), quote["quote"])
    if stop is None:
        return read_bare(text, quote.end(), kind)
    fits = can_be(kind, text[quote.end() : stop], True, False)
    return (quote.end(), stop, kind, "") if fits else None
