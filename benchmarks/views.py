"""Views at the end of the recorded sessions: what an agent could go on from, and the texts.

    make bench-views [WRITE=1]    or: python benchmarks/views.py [booking --show] [--window 4000]

A session is played step by step to `Compactor(window=...)` without a model, and compacted once more
at its end. Of the questions of its exam the share is printed whose evidence stands in the view, or
in it and what the question recalls; and of names from before a cut that the agent used after it,
the share that the compacted history still holds. The tail of the session in as many tokens is the
limit. `--show` prints the views, `--write` puts them into docs/views.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import resumption_policy
import retention_policy
from langchain_core.messages import convert_to_messages
from tables import Row, end
from views_measures import answered, needed, size, steps, tail, text_of

from conspectus import CompactionResult, Compactor

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
PAGE = ROOT / "docs" / "views.md"
RECALLED = 1_024
SUMMARY = 2_048
SHOWN = 96
"""Characters of a message that an outline shows."""


@dataclass(frozen=True, slots=True)
class Session:
    """A recorded session, and the window in which it is played."""

    path: Path
    window: int

    def messages(self) -> list[dict[str, Any]]:
        """Read the recorded messages."""
        read: list[dict[str, Any]] = json.loads(self.path.read_text(encoding="utf-8"))
        return read


SESSIONS: Mapping[str, Session] = {
    "coding": Session(EXAMPLES / "data" / "demo-transcript.json", 16_000),
    "booking": Session(EXAMPLES / "recorded" / "booking-transcript.json", 4_000),
    "research": Session(EXAMPLES / "recorded" / "research-transcript.json", 6_000),
}


@dataclass(frozen=True, slots=True)
class Played:
    """A session after its last compaction, and in how many of them messages left the view."""

    last: CompactionResult
    compactions: int


def played(messages: Sequence[dict[str, Any]], window: int) -> Played:
    """Play a session step by step, and compact it once more at its end."""
    compactor = Compactor(window=window, archive="memory:")
    view: list[Any] = []
    step: list[Any] = []
    compactions = 0
    for message in [*messages, None]:
        if step and (message is None or message["role"] != "tool"):
            result = compactor.compact([*view, *step], thread_id="views")
            compactions += result.evicted > 0
            view = list(result.messages)
            step = []
        step.append(message)
    last = compactor.compact(view, thread_id="views", force=True)
    return Played(last, compactions + (last.evicted > 0))


def outline(messages: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Each message of the user, and the steps of the agent up to the next one in one line."""
    between: list[dict[str, Any]] = []
    for message in [*messages, None]:
        if message is not None and message["role"] in ("assistant", "tool"):
            between.append(message)
            continue
        if between:
            yield _steps(between)
            between = []
        if message is not None:
            yield f"{message['id']} {message['role']}: {_begin(message['content'])}"


def _steps(messages: Sequence[dict[str, Any]]) -> str:
    calls = Counter(
        call["function"]["name"] for m in messages for call in m.get("tool_calls", ())
    ).most_common()
    first = messages[0]["id"]
    last = messages[-1]["id"]
    place = first if first == last else f"{first} to {last}"
    made = f"{', '.join(f'{name} {count}' for name, count in calls)} → " if calls else ""
    return f"  {place} agent: {made}{_begin(messages[-1]['content'])}"


def _begin(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= SHOWN else words[:SHOWN].rstrip() + " …"


def shown(session: Session, window: int | None = None) -> str:
    """Write the part of the page on one session, in its own or another window."""
    messages = session.messages()
    size = window or session.window
    done = played(messages, size)
    last = done.last
    summary = next(m for m in last.messages if m["role"] == "user" and last.summary in m["content"])
    whole = Compactor(window=1_000_000, archive=None).compact(messages, thread_id="whole")
    return (
        f"\n### Before: {len(messages)} messages, {whole.tokens_before:,} tokens\n\n"
        + _block("\n".join(outline(messages)))
        + f"\n### After {done.compactions} compactions in a window of {size:,}: "
        + f"{len(last.messages)} messages, {last.tokens_after:,} tokens\n\n"
        + _block(summary["content"])
        + "\n"
    )


def _block(text: str) -> str:
    return "```text\n" + text.replace("```", "'''") + "\n```\n"


def with_part(page: str, name: str, text: str) -> str:
    """Replace the part of this name in a page."""
    begin = f"<!-- {name} -->\n"
    end = f"<!-- end of {name} -->"
    before, found, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not (found and ended):
        raise SystemExit(f"{PAGE.name} has no place for {name}")
    return before + begin + text + end + after


def written() -> str:
    """Write the page with all parts as they are today."""
    page = PAGE.read_text(encoding="utf-8")
    for name, session in SESSIONS.items():
        page = with_part(page, name, shown(session))
    return page


def measured(name: str, session: Session) -> Iterator[Row]:
    """Measure one session: its exam, and the names that are used again."""
    messages = session.messages()
    policy = resumption_policy.Policy(session.window)
    for step in steps(messages):
        policy.send([dict(message) for message in step])
    view = policy.close()
    newest = tail(messages, size(view))
    texts = ["\n".join(text_of(m) for m in part) for part in (view, newest)]

    def recalled(question: str) -> str:
        return "\n".join([texts[0], *(text for _, text in policy.recall(question, RECALLED))])

    seen, other, found = answered(
        session.path.with_suffix(".exam.json"),
        [lambda _: texts[0], lambda _: texts[1], recalled],
    )
    detail = f"view of {size(view):,} tokens; the tail in as many: {other:.2f}"
    yield Row(f"{name}: answers in view", seen, other, "", detail, at_least=True)
    yield Row(f"{name}: answers in view or at one recall of {RECALLED:,} tokens", found, seen, "",
              at_least=True)  # fmt: skip
    yield from _names(name, messages)


def _names(name: str, messages: Sequence[dict[str, Any]]) -> Iterator[Row]:
    """Measure the names that are used again, at three cuts."""
    kept = 0
    everything = 0
    for share in (0.4, 0.6, 0.8):
        cut = int(share * len(messages))
        while messages[cut]["role"] == "tool":
            cut -= 1
        policy = retention_policy.make(("messages", 10), SUMMARY)
        named = [message.model_copy(update={"id": f"m{at}"})
                 for at, message in enumerate(convert_to_messages(messages[:cut]))]  # fmt: skip
        view = policy.compact(named)
        names = needed(messages, cut, messages[cut - 10 : cut])
        said = "\n".join(str(message.text) for message in view)
        kept = kept + sum(n in said for n in names)
        everything = everything + len(names)
    if everything:
        detail = f"{kept} of {everything}, in a summary of {SUMMARY:,} tokens"
        yield Row(f"{name}: names used again that are in view", kept / everything, unit="",
                  detail=detail)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it as a command; gives the exit code."""
    parser = argparse.ArgumentParser(description="The views at the end of recorded sessions.")
    parser.add_argument("sessions", nargs="*", help=f"some of {', '.join(SESSIONS)}; default: all")
    parser.add_argument("--window", type=int, help="tokens; default: the session's own")
    parser.add_argument("--show", action="store_true", help="print the views, and no table")
    parser.add_argument("--json", action="store_true", help="print the rows as data")
    parser.add_argument("--write", action="store_true", help=f"write all into {PAGE.name}")
    given = parser.parse_args(arguments)
    if unknown := set(given.sessions) - set(SESSIONS):
        parser.error(f"no session {', '.join(sorted(unknown))}")
    if given.write:
        PAGE.write_text(written(), encoding="utf-8")
        return 0
    names = given.sessions or list(SESSIONS)
    if not given.show:
        rows = [row for name in names for row in measured(name, SESSIONS[name])]
        return end("Views of the recorded sessions", rows, given.json)
    for name in names:
        print(f"# {name}\n{shown(SESSIONS[name], given.window)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
