"""The checks that stand between every summary and the history."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence

from conspectus._core.records import Draft
from conspectus.messages import Entry
from conspectus.summarize.prompts import UPDATE, WHOLE
from conspectus.summarize.riding import TEXTS

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
_FRAME = "<message id="
_END = re.compile(r"</(?:messages?|facts|focus|notes|summary)>")
RUN = 12
"""Words of our instructions in a row that nobody writes by chance."""


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


def wrong_with(text: str, entries: Sequence[Entry], *, prompted: bool = False) -> tuple[str, ...]:
    """Say why a summariser's own text cannot be used, one short sentence a reason; empty if it can.

    Args:
        text: what it has written.
        entries: the originals that it was given.
        prompted: it has read them in the frames of our prompts.
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
    words, said = " ".join([UPDATE, WHOLE, *TEXTS]).split(), " ".join(text.split())
    runs = (" ".join(words[n : n + RUN]) for n in range(len(words) - RUN + 1))
    # A model sees the tags of messages made harmless, so a whole tag in its answer is ours.
    repeats = _FRAME in text or (prompted and _END.search(text)) or any(run in said for run in runs)
    if repeats:
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
    """Return the fault of a summary in a script that the conversation does not use.

    Only what people say counts: a tool's output is in English more often than its user is.
    """
    said = " ".join(entry.own for entry in entries if entry.role in ("user", "assistant"))
    spoken, written = _scripts(said), _scripts(text)
    if spoken.total() < 200 or written.total() < 40:
        return None
    [(main, times)], [(theirs, _)] = spoken.most_common(1), written.most_common(1)
    # Identifiers are Latin in every language, so Latin letters prove nothing where the
    # conversation's own script is there too; and Japanese shares Han with Chinese.
    if theirs != "latin" and spoken[theirs] < 0.02 * spoken.total():
        return f"it is written in {theirs} script and the conversation is not"
    if times > 2 * spoken["latin"] and written[main] < 0.02 * written.total():
        return f"it is not in the conversation's language: no {main} script"
    return None


def _scripts(text: str) -> Counter[str]:
    """Letters by script, as Unicode names it: the first word of a letter's name."""
    return Counter(
        unicodedata.name(c, "?").split()[0].lower() for c in text[:SAMPLE] if c.isalpha()
    )
