"""Find secrets whose name stands in a tag, in bold type or in a cell of a table.

`<password>...</password>`, `<property name="password">...</property>`, `<key>password</key>`
with `<string>...</string>` behind it, `**API key**: ...`, `| Password | ... |`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from conspectus.redaction.names import named_kind
from conspectus_secrets.bounds import Bounds, Value, believed, telling
from conspectus_secrets.ends import LONGEST, Found
from conspectus_secrets.words import STANDS_FOR, can_be

_TAG = re.compile(r"<(?P<tag>[A-Za-z][\w.:-]{0,60})(?P<more>\s[^<>]{0,200})?>")
_NAMED = re.compile(r"\b(?:name|key|id)\s{0,2}=\s{0,2}\\{0,8}[\"'](?P<name>[A-Za-z][\w.:/-]{1,80})")
_CELLS = re.compile(
    r"<(?P<tag>key|name|Key|Name|td|th|dt)>\s{0,8}(?P<name>[A-Za-z][\w.:/ -]{1,60}):?\s{0,8}"
    r"</(?P=tag)>\s{0,40}<(?P<held>string|value|Value|td|dd)>"
)
_CDATA = re.compile(r"\s{0,200}<!\[CDATA\[(?P<value>.*?)\]\]>\s{0,200}", re.DOTALL)
_BOLD = re.compile(
    r"(?:(?P<mark>\*{1,3}|__?)|<(?P<tag>b|strong|em|i|B|STRONG)>)(?P<name>[^\W_][^\n*_:`<>]{1,40})"
    r"(?P<colon>:?)(?(mark)(?P=mark)|</(?P=tag)>)(?P<more>:?)[ \t]{1,4}"
)
_ROW = re.compile(
    r"(?:\A|\n|(?<=\"))[ \t>]{0,16}\|(?:[^|\n]{0,80}\|){0,3}?[ \t]{0,40}"
    r"(?P<mark>[*_`]{0,3})(?P<name>[^\W\d_][\w. -]{1,40}?):?(?P=mark):?[ \t]{0,40}"
    r"\|[ \t]{0,40}(?P<quote>[*_`]{0,3})(?P<value>(?:[^\s|\\]|\\.){4,}+)[ \t]{0,80}(?=\|)"
)
_NEXT_TAG = re.compile(r"</?[A-Za-z]")


def marked_secrets(bounds: Bounds) -> Iterator[Found]:
    """Yield secrets whose name stands in a tag, in bold type or in a cell."""
    yield from _tags(bounds)
    yield from _bold(bounds)
    for match in _ROW.finditer(bounds.view):
        kind = named_kind(match["name"])
        value = match["value"]
        end = match.end("value")
        if match["quote"] and value.endswith(match["quote"]):
            value, end = value[: -len(match["quote"])], end - len(match["quote"])
        if kind is None or not telling(kind, STANDS_FOR.sub("", value)):
            continue
        if bounds.line_end(match.start("value")) >= end:  # else a string of JSON ends in it
            yield match.start("value"), end, kind, ""


def _tags(bounds: Bounds) -> Iterator[Found]:
    """Yield the texts between `<password>` and its end, or after a tag that holds a name."""
    view = bounds.view
    for match in _TAG.finditer(view):
        kind, sure, name = named_kind(match["tag"]), True, match["tag"]
        if kind is None and match["more"] and (given := _NAMED.search(match["more"])) is not None:
            kind, sure, name = named_kind(given["name"]), False, given["name"]
        if kind is not None and not match[0].endswith("/>"):
            yield from _between(bounds, match.end(), match["tag"], kind, name, sure)
    for match in _CELLS.finditer(view):
        kind = named_kind(match["name"])
        if kind is not None:
            yield from _between(bounds, match.end(), match["held"], kind, match["name"], False)


def _between(
    bounds: Bounds, at: int, tag: str, kind: str, name: str, sure: bool
) -> Iterator[Found]:
    """Yield the text from here to the end of this tag."""
    view = bounds.view
    first = view.find("</", at, at + LONGEST)
    if first < 0:
        first = bounds.run_end(at)
        if first - at < LONGEST or not view.startswith("</", first):
            return
    stop = view.find(f"</{tag}", first, max(at + LONGEST, first + len(tag) + 2))
    stop = first if stop < 0 else stop
    if not bounds.in_string(at, stop):
        return
    data = _CDATA.fullmatch(view, at, stop)
    begin, end = (data.start("value"), data.end("value")) if data else (at, stop)
    while begin < end and view[begin].isspace():
        begin += 1
    end = bounds.trimmed(begin, end)
    value = view[begin:end]
    if not data and _TAG.search(value):  # a part with parts
        return
    if believed(kind, name, value, sure, True) and (
        sure or len(STANDS_FOR.sub("", value).split()) == 1
    ):
        yield begin, end, kind, ""


def _bold(bounds: Bounds) -> Iterator[Found]:
    """Yield the rest of the line after a name in bold type."""
    done = 0
    for match in _BOLD.finditer(bounds.view):
        if match.start() < done:
            continue
        if match["mark"] in ("*", "_") and not (match["colon"] or match["more"]):
            continue
        kind = named_kind(match["name"])
        value = None if kind is None else _behind(bounds, match, kind)
        if kind is not None and value is not None:
            yield value.begin, value.end, kind, ""
            done = value.end


def _behind(bounds: Bounds, match: re.Match[str], kind: str) -> Value | None:
    value = bounds.secret(match.end(), kind, match["name"])
    if value is None or value.quote or not match["tag"]:
        return value
    tag = _NEXT_TAG.search(bounds.view, value.begin, value.end)
    if tag is None:
        return value
    end = bounds.trimmed(value.begin, tag.start())
    text = bounds.view[value.begin : end]
    return Value(value.begin, end, "") if can_be(kind, text, True, False) else value
