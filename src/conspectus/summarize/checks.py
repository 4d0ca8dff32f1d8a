"""The checks that stand between every summary and the history."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence

from conspectus._core.records import Draft
from conspectus.messages import Entry

FLOOR = 200
"""Tokens that a summary may always take, even where it stands for less: tiny histories."""

SAMPLE = 20_000
"""Characters of the originals that are looked at to tell their script."""

_REFUSAL = re.compile(
    r"^\W*(?:i(?:'m| am) (?:sorry|unable|not able)|sorry,|i (?:cannot|can't|can not|won't)"
    r"|as an ai\b|unfortunately,? i|抱歉|对不起|我(?:无法|不能)|申し訳|죄송|lo siento"
    r"|es tut mir leid|je suis désolé)",
    re.IGNORECASE,
)
_REPLY = re.compile(
    r"^\W*(?:sure[,!.]|certainly[,!.]|of course[,!.]|great question|hello[,!]|hi[,!] |let me know"
    r"|how can i help|i(?:'ll| will) (?:help|start|now)|当然|好的[，,。]|もちろん)",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"^\W*(?:error(?: generating)?\b.{0,80}summar|error:|traceback \(most recent|\w+Error:"
    r"|http \d{3}|\{\"error\")",
    re.IGNORECASE,
)
_PROMPT = "<message id="
_SCRIPTS = {
    "han": re.compile(r"[\u3400-\u9fff]"),
    "kana": re.compile(r"[\u3040-\u30ff]"),
    "hangul": re.compile(r"[\uac00-\ud7af]"),
    "cyrillic": re.compile(r"[\u0400-\u04ff]"),
    "greek": re.compile(r"[\u0370-\u03ff]"),
    "hebrew": re.compile(r"[\u0590-\u05ff]"),
    "thai": re.compile(r"[\u0e00-\u0e7f]"),
    "arabic": re.compile(r"[\u0600-\u06ff]"),
    "devanagari": re.compile(r"[\u0900-\u097f]"),
    "latin": re.compile(r"[A-Za-zÀ-ɏ]"),
}


def problems(
    draft: Draft, entries: Sequence[Entry], *, tokens: int, replaced: int, limit: int
) -> tuple[str, ...]:
    """Why a draft cannot be used, one short sentence for each reason; empty if it can.

    Args:
        draft: the summary.
        entries: the originals that it stands for.
        tokens: size of the whole summary message.
        replaced: size of what it replaces, the standing summary included.
        limit: the most that the message may take.
    """
    text = draft.text.strip()
    found = []
    if not text:
        return ("it is empty",)
    unread = {entry.key for entry in entries} - set(draft.read)
    if unread:
        found.append(f"{len(unread)} of {len(entries)} messages were not read")
    if tokens > limit:
        found.append(f"it takes {tokens:,} tokens and {limit:,} are allowed")
    if tokens > max(replaced, FLOOR):
        found.append(f"it takes {tokens:,} tokens and what it replaces only {replaced:,}")
    return tuple(found)


def wrong_with(text: str, entries: Sequence[Entry]) -> tuple[str, ...]:
    """Say why a summariser's own text cannot be used, one short sentence a reason; empty if it can.

    Args:
        text: what it has written.
        entries: the originals that it was given.
    """
    text = text.strip()
    if not text:
        return ("it is empty",)
    found = []
    if _REFUSAL.search(text):
        found.append("it is a refusal")
    elif _ERROR.search(text):
        found.append("it is an error message")
    elif _REPLY.search(text):
        found.append("it is a reply, not a summary")
    if _PROMPT in text:
        found.append("it repeats the prompt")
    if (wrong := _other_script(text, entries)) is not None:
        found.append(wrong)
    return tuple(found)


def cut_short(text: str, limit: int, count: Callable[[str], int]) -> tuple[str, int]:
    """Cut a summary at the end of a line.

    Args:
        text: a summary that is too long.
        limit: the most that it may take, in tokens.
        count: tokens of a text.

    Returns:
        The shorter text, and the tokens that were cut off.

    Example:
        >>> cut_short("## Done\\n- one two\\n- three four\\n## Next\\n- five", 7,
        ...           lambda text: len(text.split()))
        ('## Done\\n- one two', 7)
    """
    kept = _lines_within(text, limit, count)
    return kept, count(text) - count(kept)


def _lines_within(text: str, limit: int, count: Callable[[str], int]) -> str:
    """As many whole lines from the start as fit; of one line, as many words."""
    lines = text.splitlines()
    fit = bisect_right(range(1, len(lines) + 1), limit, key=lambda n: count("\n".join(lines[:n])))
    while fit and (not lines[fit - 1].strip() or lines[fit - 1].startswith("#")):
        fit -= 1  # a heading with nothing below it says nothing
    if fit:
        return "\n".join(lines[:fit])
    words = text.split()
    return " ".join(
        words[
            : bisect_right(
                range(1, len(words) + 1), limit, key=lambda n: count(" ".join(words[:n]))
            )
        ]
    )


def _other_script(text: str, entries: Sequence[Entry]) -> str | None:
    """A summary in a script that the conversation does not use is not in its language.

    Only what people say counts: a tool's output is in English more often than its user is.
    """
    said, room = [], SAMPLE
    for entry in entries:
        if entry.role in ("user", "assistant") and room > 0:
            said.append(entry.own[:room])
            room -= len(entry.own)
    spoken = _shares("\n".join(said))
    if sum(spoken.values()) < 200:
        return None
    main = max(spoken, key=lambda script: spoken[script])
    written = _shares(text)
    letters = sum(written.values())
    if letters < 40:
        return None
    theirs = max(written, key=lambda script: written[script])
    # Identifiers are Latin in every language, so Latin letters prove nothing where the
    # conversation's own script is there too; and Japanese shares Han with Chinese.
    own = written[main] >= 0.02 * letters
    if theirs != "latin" and spoken[theirs] < 0.02 * sum(spoken.values()):
        return f"it is written in {theirs} script and the conversation is not"
    if main != "latin" and not own and spoken[main] > 2 * spoken["latin"]:
        return f"it is not in the conversation's language: no {main} script"
    return None


def _shares(text: str) -> dict[str, int]:
    return {script: len(pattern.findall(text)) for script, pattern in _SCRIPTS.items()}
