"""Secrets whose name stands apart from them: in a tag, in bold type, in a field of its own.

`<password>...</password>`, `**API key**: ...`, `name: DB_PASSWORD` with `value: ...` below it, a
YAML block, `setPassword("...")`, `getenv("DB_PASSWORD", "...")`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from conspectus.archive.secret_names import Found, can_be, named_kind

_FORMS = tuple(
    re.compile(pattern)
    for pattern in (
        r"<(?P<name>[A-Za-z][\w.:-]{1,60})(?:\s[^<>]{0,200})?>\s{0,8}(?P<value>[^\s<>]{4,512})\s{0,8}</",
        r"(?P<mark>\*\*|__)(?P<name>[^\W_][^\n*_:`]{1,40}):?(?P=mark):?[ \t]{1,4}"
        r"(?P<quote>[`\"']?)(?P<value>[^\s`\"'<>]{4,512})(?P=quote)(?![^\s.,;])",
        r"""\bname["']?\s{0,4}:\s{0,4}["']?(?P<name>[A-Za-z][\w.-]{1,80})["']?,?\s{0,40}"""
        r"""["']?\bvalue["']?\s{0,4}:\s{0,4}(?P<quote>["']?)(?P<value>[^\s"',{}\[\]]{4,512})(?P=quote)""",
        r"(?<![\w.-])(?P<name>[A-Za-z][\w.-]{1,60}):[ \t]{1,4}[|>][+-]?[ \t]{0,4}\n[ \t]{1,16}"
        r"(?P<value>\S{4,512})[ \t]{0,4}(?:\n|\Z)",
        r"""\b(?P<name>set\w{1,60})\(\s{0,4}(?P<quote>["'])(?P<value>[^\s"']{4,512})(?P=quote)\s{0,4}\)""",
        r"""(?:getenv|environ\.get|\benv)\(\s{0,4}["'](?P<name>\w{2,80})["'],\s{0,4}"""
        r"""(?P<quote>["'])(?P<value>[^\s"']{4,512})(?P=quote)\s{0,4}\)""",
    )
)


def paired_secrets(text: str) -> Iterator[Found]:
    """Secrets whose name stands apart from them.

    Args:
        text: what is searched.

    Example:
        >>> [text[a:b] for text in ["<password>Zx9-kq7w</password>"]
        ...  for a, b, _, _ in paired_secrets(text)]
        ['Zx9-kq7w']
    """
    for form in _FORMS:
        for match in form.finditer(text):
            kind = named_kind(match["name"])
            if kind is not None and can_be(kind, match["value"], True, False):
                yield match.start("value"), match.end("value"), kind, ""
