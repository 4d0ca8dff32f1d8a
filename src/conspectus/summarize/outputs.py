"""Commands and what came of them in few characters: status, the lines that tell most, outlines."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Mapping

from conspectus.summarize.compacting import LONG, compact, is_empty, parsed
from conspectus.summarize.cutting import cut, cut_command, one_line

SALIENT = re.compile(
    r"\b(?:error|exception|traceback|fatal|fail(?:ed|ure|s)?|denied|refused|rejected|not found"
    r"|no such|cannot|unable|invalid|conflict|timed? ?out|success(?:ful(?:ly)?)?|created|updated"
    r"|deleted|written|saved|cancell?ed|confirmed)\b|\w(?:Error|Exception)\b"
    r"|\b\d+ (?:passed|failed|errors?|tests?|warnings?|files?|rows?|matches|problems)\b"
    r"|错误|失败|成功|エラー|失敗|成功|오류|실패|성공",
    re.IGNORECASE,
)
"""Lines of an output that say how it ended."""

_EXIT = re.compile(
    r"<?(?:return ?code|exit(?:ed)?(?: with)?(?: code| status)?)\W{1,3}(-?\d+)(?:</\w+>)?", re.I
)
_TAG_LINE = re.compile(
    r"^\s*(?:(?:</?[\w-]+>\s*)+$|\[?!\[|</?(?:img|a|p|div|center|br|!--)\b|<!--|(?:src|href|alt|target|width|height)=\")"
)
_TAGS = re.compile(r"</?(?:returncode|output|output_head|output_tail|stdout|stderr|result)>")
_WARNING = re.compile(r"<warning>[^<]*</warning>(?=\s*<output_head>)")  # says that it is cut
_FAILED = re.compile(
    r"\W*(?:error\b|failed\b|traceback\b|fatal\b|exception\b|\w+(?:Error|Exception)\b|错误|失败|エラー|오류)",
    re.IGNORECASE,
)
_HEREDOC = re.compile(
    r"<<-?\s*\\?(['\"]?)(\w+)\1([^\n]*)\n(?:\2[^\S\n]*(?=\n|\Z)|(.*?)(?:\n\s*\2(?=\s|$)|\Z))",
    re.DOTALL,
)
_HEADING = re.compile(r"#{1,4} \S")
_SECTION = re.compile(
    r"\s*(?:/\*+ .*\*/|<!-- .*-->|//[ =-]+\w.*"
    r"|<(?:section|nav|header|main|footer|form)\b[^>]*>)\s*$"
    r"|(?:export )?(?:const|let|var) \w+ = [\[{(]"
)
"""A comment on a line of its own, a part of a page, or data with a name: what heads a section."""
_OUTLINE = re.compile(
    r"^\s*(?:(?:async )?def \w|class \w|(?:export )?function \w|fn \w|func \w"
    r"|interface \w)|(?:export )?(?:const|let|var) \w+ = [\[{(]"
)
_LINKS = re.compile(
    r"\s*(?:[-*+] )?(?:!?\[[^\]\n]{0,200}\]\([^)\n]{0,500}\)|[\w.]{0,40}:? ?https?://\S{1,500})\s*$"
)
"""A line that is a link alone: a menu, a sponsor."""

PARAGRAPH = 100
"""Characters of a paragraph from which its beginning says something."""

_BLOB = re.compile(r"(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/_=-]{160,}")
_RULER = re.compile(r"(?<!\S)[=_*#~.-]{4,}(?!\S)")


def command(
    text: str, room: int, content: int, shown: Callable[[str, int], str] | None = None
) -> str:
    """Return a shell command in one line; a file that it writes is told by its outline.

    Args:
        text: the command.
        room: characters of the command itself.
        content: characters of all outlines together.
        shown: returns what stands for a written text, in so many characters; None for `outline`.
    """
    shown = shown or outline
    written: list[str] = []

    def told(match: re.Match[str]) -> str:
        written.append(match[4] or "")
        return f"{match[3].strip()} \0 "

    text = _HEREDOC.sub(told, text)
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    text = cut_command(one_line(" ⏎ ".join(lines)), room + len(written))
    for body in written:
        held = shown(body, content // len(written)) if body.strip() else "empty"
        told_by = f"({held})" if content else ""
        text = text.replace("\0", told_by, 1) if "\0" in text else f"{text} {told_by}"
    return text


def unwrapped(text: str) -> str:
    """Return an output without its status, the tags around it, and data in no words."""
    text = _BLOB.sub("…", _WARNING.sub("", text))
    body = _EXIT.sub("", text[:200], count=1) + text[200:] if _EXIT.search(text[:200]) else text
    lines = (line for line in body.splitlines() if not _TAG_LINE.match(line))
    return _TAGS.sub("", "\n".join(lines)).strip()


def outline(text: str, room: int, more: int = 0) -> str:
    """Return the length of a text and its build: data, headings, definitions, or its start.

    Of a text with headings, paragraphs begin there, too, where there is room or `more` of it.
    """
    data = parsed(text)
    if data is not None:
        return compact(data, room)
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) <= 1:
        return cut(one_line(text), room)
    whole = one_line(" ⏎ ".join(line.strip() for line in lines))
    if len(whole) <= room:
        return whole
    built = [line for line in lines if _OUTLINE.match(line)]
    marks = built or [line for line in lines if _HEADING.match(line)]
    if not marks and len(parts := [line for line in lines if _SECTION.match(line)]) > 1:
        marks = parts
    plain = 0 if built or not marks else len(lines) - len(marks)
    room += more if plain else 0
    marks = marks or lines[:1]
    left = room - sum(len(one_line(line)) + 2 for line in marks)
    each = max(PARAGRAPH, left // plain) if plain and left >= PARAGRAPH else 0
    heads, shown = set(marks), list[str]()
    for line in lines:
        if line in heads:
            shown.append(one_line(line))
        elif each and left >= PARAGRAPH and not _LINKS.match(line):
            shown.append(cut(one_line(line), each))
            left -= len(shown[-1]) + 2
    return cut(f"{len(text.splitlines())} lines: {'; '.join(shown)}", room)


def failed(text: str) -> bool:
    """Whether an output says by its status or its first words that nothing came of it."""
    status = _EXIT.search(text[:200])
    if status is not None:
        return status[1] != "0"
    data = parsed(text) if len(text) < 20_000 else None
    if isinstance(data, Mapping):
        return bool(data.get("error")) or data.get("success") is False
    return _FAILED.match(text[:80]) is not None


def output(
    text: str,
    room: int,
    known: Collection[str] = (),
    seen: Container[str] = (),
    schemas: Mapping[str, str] | None = None,
    more: int = 0,
) -> str:
    """Return what came of a call: records as pairs, else its status and the lines that tell most.

    Args:
        text: the result.
        room: the most characters.
        known: values that the reader has already.
        seen: lines of earlier outputs, which say nothing new.
        schemas: names of columns that stand before; see `compact`.
        more: characters on top for the other lines of an output in words, from its start.
    """
    data = parsed(text)
    if data is not None:
        return compact(data, room, known, schemas) if not is_empty(data) else "nothing"
    status = _EXIT.search(text[:200])
    code = status[1] if status else ""
    body = unwrapped(text).splitlines()
    lines = [one_line(_RULER.sub("", line)) for line in body]
    lines = [line for line in lines if any(c.isalnum() for c in line)]
    new = [line for line in lines if len(line) < LONG or line not in seen] or lines[-1:]
    head = f"exit {code}" if code not in ("", "0") else ""
    if not lines:
        return head or "ok"
    whole = " ⏎ ".join(new)
    if len(whole) + len(head) + 2 <= room + more or len(lines) == 1:
        whole = cut(whole, max(room + more - len(head), 40))
        return f"{head}: {whole}" if head else whole
    told = [i for i, line in enumerate(new) if SALIENT.search(line)]
    fresh = [i for i, line in enumerate(new) if line not in seen]
    fresh = fresh if 2 * len(fresh) <= len(new) else []
    order = list(dict.fromkeys([*told[-1:], len(new) - 1, *fresh, *told[::-1][:6], 0]))
    left, kept = room - len(head) - 14, set[int]()
    for i in order:
        size = min(len(new[i]), max(40, room // 2)) + 3
        if size <= left:
            kept.add(i)
            left -= size
    left = more
    for i in range(len(new)):
        if i not in kept and (left := left - len(new[i]) - 3) >= 0:
            kept.add(i)
    shown = " ⏎ ".join(cut(new[i], max(40, room // 2)) for i in sorted(kept))
    count = f"({len(body)} lines)"
    return " ".join(part for part in (f"{head}:" if head else "", shown, count) if part)
