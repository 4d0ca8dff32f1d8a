"""Dates in a text as terms, so that `2023-05-08`, `May 8th, 2023` and `8 May` match."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NAMES = "january february march april may june july august september october november december"
_MONTHS = {name: at for at, name in enumerate(_NAMES.split(), 1)}
_MONTHS |= {name[:3]: at for name, at in list(_MONTHS.items())} | {"sept": 9}
_MONTH = rf"(?P<name>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\b\.?"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_FORMS = [
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"\b{_YEAR}[-/.](?P<month>[01]?\d)(?:[-/.](?P<day>[0-3]?\d))?(?!\d)",
        rf"(?<!\d){_YEAR}\s*年\s*(?P<month>[01]?\d)\s*月(?:\s*(?P<day>[0-3]?\d)\s*[日号號])?",
        r"(?<![\d年])(?P<month>[01]?\d)\s*月\s*(?P<day>[0-3]?\d)\s*[日号號]",
        rf"\b{_DAY}(?: of)? {_MONTH}(?:,? {_YEAR}\b)?",
        rf"\b{_MONTH} {_DAY}\b(?:,? {_YEAR}\b)?",
        rf"\b{_MONTH},? (?:of )?{_YEAR}\b",
    )
]
_NUMERIC, _WIDE, _NAMED = _FORMS[:1], _FORMS[1:3], _FORMS[3:]
_SHORT = tuple(name[:3] for name in _NAMES.split())
_HAS_NAME = re.compile(rf"\b(?=[adfjmnos]){_MONTH}", re.IGNORECASE)


def date_terms(text: str) -> tuple[str, ...]:
    """Return the terms of the dates in a text: day, day of any year, and month.

    A bare year or month is a plain word. Relative dates mean nothing without a clock.

    Example:
        >>> date_terms("on May 8th, 2023")
        ('day20230508', 'day0508', 'month202305')
    """
    forms = list(_NUMERIC)
    if "月" in text:
        forms += _WIDE
    small = text.lower()
    if any(name in small for name in _SHORT) and _HAS_NAME.search(text):
        forms += _NAMED
    return tuple(dict.fromkeys(term for form in forms for term in _found(form, text)))


def _found(form: re.Pattern[str], text: str) -> Iterator[str]:
    for match in form.finditer(text):
        parts = match.groupdict()
        name = parts.get("name")
        month = _MONTHS[name.lower()] if name else int(parts["month"])
        year, day = parts.get("year"), int(parts.get("day") or 0)
        if not 1 <= month <= 12 or day > 31:
            continue
        if year and day:
            yield f"day{year}{month:02d}{day:02d}"
        if day:
            yield f"day{month:02d}{day:02d}"
        if year:
            yield f"month{year}{month:02d}"
