"""Parts 4 and 5 of the notes: what is open, and where the rest is; both written anew each time."""

from __future__ import annotations

from collections.abc import Sequence

from conspectus.ledger import Ledger
from conspectus.messages import Entry
from conspectus.messages.framing import as_notes
from conspectus.summarize import users_words
from conspectus.summarize.compacting import LONG
from conspectus.summarize.cutting import cut, one_line
from conspectus.summarize.findings import plan_of
from conspectus.summarize.journal import call_text
from conspectus.summarize.notes import apart, cited
from conspectus.summarize.steps import Step, listed

UNDER_WAY, TO_DO, INTENT = (
    "the user's newest message, from before the last deeds above: ",
    "to do: ",
    "said it would: ",
)
"""Begin the lines of part 4, by which the next compaction knows them."""

NAMED = 8
"""Large originals that are named, the newest ones."""

SKILLS = 20
"""Skill files, and rules in them, the latest ones, that every summary tells of."""

NAME = 72
"""Characters of the name of a call."""

LARGE = 1_200
"""Characters from which an original is worth a name."""


def open_work(
    entries: Sequence[Entry],
    kept: Sequence[Entry],
    standing: Sequence[str],
    ahead: int = 0,
    words: Sequence[str] = (),
) -> list[str]:
    """Return what is open: the request under way, the newest to-do list, the agent's last plan.

    Args:
        entries: the messages that leave.
        kept: the messages that stay in view, whose own lists and words need no line.
        standing: the lines of the notes so far.
        ahead: of `kept`, those that were said before the last one that leaves.
        words: the user's words in the notes so far; a message that repeats one asks for nothing.
    """
    lines = [
        cited(f"{UNDER_WAY}{cut(as_notes(one_line(entry.text)), LONG * 4)}", [entry.cite])
        for entry in kept[:ahead][-1:]
        if entry.role == "user" and not any(one.role == "user" for one in kept[ahead:])
        if not users_words.repeats(entry, [*entries, *kept[: ahead - 1]], words)
    ]
    if not any(listed(call) for entry in kept for call in entry.calls):
        newest = next(
            (
                (items, entry.cite)
                for entry in reversed(entries)
                for call in reversed(entry.calls)
                if (items := listed(call)) is not None
            ),
            None,
        )
        if newest is not None:
            told = "; ".join(f"{as_notes(text)} ({state})" for text, state in newest[0])
            lines += [cited(TO_DO + (told or "nothing"), [newest[1]])]
        else:
            lines += [line for line in standing if line.startswith(TO_DO)]
    if not any(entry.role == "assistant" for entry in kept):
        last = next((e for e in reversed(entries) if e.role == "assistant"), None)
        if last is not None and (plan := plan_of(last)):
            lines.append(cited(INTENT + plan, [last.cite]))
    return lines


def skills(ledger: Ledger) -> list[str]:
    """Return the skill files that the agent has read, the latest first, and the rules in them."""
    read = [cited(as_notes(fact.value), [fact.source]) for fact in ledger.skills()[:SKILLS]]
    rules = [f for f in ledger.facts if f.role == "tool" and f.kind in ("rule", "preference")]
    return read + [cited(as_notes(one_line(f.value)), [f.source]) for f in rules[-SKILLS:]]


def index(
    entries: Sequence[Entry], done: Sequence[Step], standing: Sequence[str], room: int
) -> list[str]:
    """Return what can be recalled: the large originals, by name.

    Args:
        entries: the messages that leave.
        done: the steps among them.
        standing: the lines of the notes so far.
        room: characters at most.
    """
    sizes = {entry.cite: len(entry.text) for entry in entries}
    newest: dict[str, str] = {}
    for line in standing:
        name, cites = apart(line)
        # Two names that are cut may be those of two originals.
        newest |= {line if "…" in name else name: line} if cites else {}
    for step in done:
        if step.result is not None and len(step.result) >= LARGE and len(step.cites) > 1:
            call = call_text(step.call, step.args, LONG * 20, content=0)
            newest.pop(call, None)
            newest[call] = cited(as_notes(_named(call)), step.cites[-1:])
    for entry in entries:
        if entry.role == "user" and sizes[entry.cite] >= LARGE * 2:
            text = cut(as_notes(one_line(entry.text)), LONG * 2)
            newest[entry.cite] = cited(text, [entry.cite])
    lines = [*newest.values()][-NAMED:]
    while lines and sum(map(len, lines)) > room:
        lines.pop(0)
    return lines


def _named(call: str) -> str:
    """Return a call in few characters: its ends, as those of one program differ at the end.

    Example:
        >>> _named("$ nl -ba src/cafe/orders/kitchen/menu.py | head -n 900 | sed -n '290,320p'")
        "$ nl -ba src/cafe/orders/kitchen/men…py | head -n 900 | sed -n '290,320p'"
    """
    return call if len(call) <= NAME else f"{call[: NAME // 2].rstrip()}…{call[-NAME // 2 :]}"
