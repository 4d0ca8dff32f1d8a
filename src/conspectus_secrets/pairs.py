"""Find secrets whose name stands apart from them, in another field or in a line above.

`name: DB_PASSWORD` with `value: ...` below it, `{"key": "DB_PASSWORD", "value": "..."}` in
either order, attributes of a tag, and blocks of YAML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from conspectus.redaction.names import named_kind
from conspectus_secrets.bounds import Bounds, Value, believed, telling, unfolded
from conspectus_secrets.calls import called_secrets
from conspectus_secrets.ends import Found
from conspectus_secrets.marked import marked_secrets
from conspectus_secrets.words import STANDS_FOR, can_be, placeholder

_FIELD = re.compile(
    r"(?<![\w$.-])(?P<quote>\\{0,8}[\"'])?"
    r"(?:[Pp]arameter_?)?(?:(?P<value>[Vv]alue|VALUE)|[Nn]ame|NAME|[Kk]ey|KEY)"
    r"(?(quote)(?P=quote))\s{0,4}(?P<sign>=>|[:=](?![=:]))[ \t]{0,8}"
)
_NAME = re.compile(
    r"(?P<quote>\\{0,8}[\"'])?(?P<name>[A-Za-z_][\w.:/-]{0,80}(?: [\w.-]{1,40})?)"
    r"(?(quote)(?P=quote)|(?=[ \t]{0,8}(?:[\s,}]|\Z)))"
)
_STRING = re.compile(r"(?P<quote>\\{0,8}[\"'])[^\n]{0,300}?(?P=quote)|(?:\A|\s)#[^\n]{0,300}")
_INLINE = re.compile(
    r"[^\n]{1,512}?(?=\s{0,8}(?:,\s|,[\w\"'-]{1,40}\s?[:=]|\},?(?:[\s{}\]\"\\]|\Z)|\n|\Z))"
)
_WORD = re.compile(r"[^\s]{1,512}+")
_NUMBER = re.compile(r"\d{4,64}(?=\s{0,8}[,}\n])")
_BLOCK = re.compile(
    r"(?P<lead>(?:\A|\n|(?<=\"))[ \t]{0,40}(?:- {1,4})?)(?P<quote>[\"']?)"
    r"(?P<name>[A-Za-z][\w.-]{1,60})(?P=quote):[ \t]{1,4}[|>][+-]?\d?[+-]?[ \t]{0,4}(?=\n)"
)
_BLOCK_MARK = re.compile(r"[|>][+-]?\d?[+-]?[ \t]{0,4}(?=\n)")
_LINE = re.compile(r"\n(?:[ \t]{0,80}\n){0,16}([ \t]{0,80})([^\n]{0,2048})")
"""The next line that is not empty, behind a few that are."""

FAR = 600
"""Maximum characters between a name and its value."""

NEAR = 3
"""Maximum fields called name or value between them."""


def paired_secrets(text: str) -> Iterator[Found]:
    """Yield secrets whose name stands apart from them.

    Example:
        >>> [text[a:b] for text in ["<password>Zx9-kq7w</password>"]
        ...  for a, b, _, _ in paired_secrets(text)]
        ['Zx9-kq7w']
    """
    yield from _all(Bounds(text))
    if "\\n" in text or "\\r" in text:  # lines in a string of JSON are lines too
        yield from _all(Bounds(text, unfolded(text)))


def _all(bounds: Bounds) -> Iterator[Found]:
    yield from marked_secrets(bounds)
    yield from called_secrets(bounds)
    yield from _blocks(bounds)
    yield from _fields(bounds)


Field = re.Match[str]
"""A field called name or value; its content begins at the match's end."""


def _fields(bounds: Bounds) -> Iterator[Found]:
    """Yield values whose name stands in another field of the same mapping."""
    view = bounds.view
    fields = list(_FIELD.finditer(view))
    for number, field in enumerate(fields):
        if field["value"]:
            continue
        name = _NAME.match(view, field.end())
        kind = named_kind(name["name"]) if name else None
        if name is None or kind is None:
            continue
        for step in (1, -1):
            found = _beside(bounds, fields, number, step, name, kind)
            if found is not None:
                yield found
                break


def _beside(
    bounds: Bounds, fields: list[Field], number: int, step: int, name: re.Match[str], kind: str
) -> Found | None:
    """Return the value after a name, or before it."""
    field = fields[number]
    for other in range(number + step, number + step * (NEAR + 1), step):
        if not 0 <= other < len(fields) or abs(fields[other].start() - field.start()) > FAR:
            return None
        if fields[other]["value"]:
            value = fields[other]
            break
    else:
        return None
    if bool(field["quote"]) != bool(value["quote"]):
        return None
    after = step > 0
    gap = bounds.view[name.end() : value.start()] if after else ""
    held = _held(bounds, value, gap, kind, name["name"], after)
    if held is None:
        return None
    if not after:
        if held.end > field.start():
            return None
        gap = bounds.view[held.end + len(held.quote) : field.start()]
    if not _together(bounds, gap, field, value):
        return None
    quotes = value["quote"] if value["quote"] and not held.quote else ""
    return held.begin, held.end, kind, quotes


def _held(
    bounds: Bounds, field: Field, gap: str, kind: str, name: str, after: bool
) -> Value | None:
    """Return the value of a field, if it can be a secret of this kind."""
    at = field.end()
    quoted = bounds.quoted(at)
    if quoted is not None and not bounds.clings(quoted):
        return quoted if believed(kind, name, bounds.of(quoted), True, True) else None
    if field["sign"] != ":":
        return None  # code: a variable, a call
    if field["quote"]:  # a number may be a password
        number = _NUMBER.match(bounds.view, at) if kind == "password" else None
        return Value(number.start(), number.end(), "") if number else None
    if mark := _BLOCK_MARK.match(bounds.view, at):
        return _block(bounds, mark.end(), bounds.column(field.start()), kind)
    if not after or ((gap.lstrip().startswith(",") or "\n" not in gap) and "#" not in gap):
        word = _WORD.match(bounds.view, at)
        if word is None or not ("," in word[0] or "}" in word[0] or telling(kind, word[0])):
            return None
        line = _INLINE.match(bounds.view, at)
        end = line.end() if line else bounds.run_end(at)
        stop = bounds.trimmed(at, min(end, bounds.line_end(at)))
        while line is None and stop > at and bounds.view[stop - 1] in "},]":
            stop -= 1
        value = Value(at, stop, "")
        sure = False
    else:
        whole = bounds.bare(at, kind)
        if whole is None:
            return None
        value, sure = whole, not bounds.of(whole).endswith((",", ";"))
    return value if believed(kind, name, bounds.of(value), sure, False) else None


def _together(bounds: Bounds, gap: str, field: Field, value: Field) -> bool:
    """Return whether a name and a value stand in the same mapping, by the text between them."""
    rest = _STRING.sub(" ", gap.lstrip("\"'\\") if gap[:1] in "\"'\\" else gap)
    if any(sign in rest.replace("=>", "") for sign in "{};()<>"):
        return False
    if field["quote"] or value["quote"]:
        return True
    if "\n" not in gap:
        return not rest.strip() or rest.lstrip().startswith(",") or field["sign"] == "="
    columns = [bounds.column(one.start()) for one in (field, value)]
    if columns[0] != columns[1]:
        return False
    lines = rest.split("\n")[1:-1]
    return all(not line.strip() or len(line) - len(line.lstrip()) >= columns[0] for line in lines)


def _blocks(bounds: Bounds) -> Iterator[Found]:
    """Yield values in a block of YAML, with all of its lines."""
    for match in _BLOCK.finditer(bounds.view):
        kind = named_kind(match["name"])
        if kind is None:
            continue
        column = bounds.column(match.end("lead"))
        value = _block(bounds, match.end(), column, kind)
        if value is not None:
            yield value.begin, value.end, kind, ""


def _block(bounds: Bounds, at: int, column: int, kind: str) -> Value | None:
    """Return the following lines that are indented more than their name, if they are a secret."""
    lines: list[tuple[int, int]] = []
    begin = at
    while (line := _LINE.match(bounds.view, at)) is not None:
        if line[2].strip():
            if len(line[1]) <= column:
                break
            stop = max(line.start(2), bounds.line_end(line.start(2)))
            if len(line[2]) < 2048:
                stop = min(line.end(), stop)
            lines.append((line.start(2), bounds.trimmed(line.start(2), stop)))
        at = line.end()
        if at - begin > 20_000 or (lines and lines[-1][1] < bounds.trimmed(begin, at)):
            break  # a string of JSON ends there
    if not lines:
        return None
    words = STANDS_FOR.sub("", bounds.view[lines[0][0] : lines[-1][1]]).split()
    if not words or placeholder(" ".join(words)):
        return None
    fits = len(words) == 1 and can_be(kind, words[0], True, False)
    firsts = (bounds.view[a:b].split()[0] for a, b in lines if b > a)
    if fits or any(telling(kind, STANDS_FOR.sub("", word)) for word in firsts):
        return Value(lines[0][0], lines[-1][1], "")
    return None
