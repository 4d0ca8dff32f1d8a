"""The tokens of requests that no prompt cache holds: `python -m benchmarks.request_parts F`.

F is a folder of transcripts: JSON lists of chat messages. Each is sent step by step in a window of
8,000 tokens, all else as by default. A request pays whole for what differs from the one before,
from the first changed character on. Printed are, per compaction, the tokens of what stands in the
request behind it; the least that new messages alone cost, which no compaction can lower; and the
same figures for notes that nobody could write: see `ideal`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.resumption_policy import Message, make
from langchain_core.messages.utils import count_tokens_approximately

from conspectus.messages import is_summary_message

WINDOW = 8_000
NOW = "\n# Now, before the messages below\n"
"""Begins what is rewritten at each compaction."""


def size(messages: Sequence[Message]) -> int:
    """Return the tokens of some messages."""
    return count_tokens_approximately(list(messages)) if messages else 0


def steps(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Yield each message with the results of its calls."""
    step: list[Message] = []
    for message in messages:
        if step and message["role"] != "tool":
            yield step
            step = []
        step.append(message)
    yield step


def alike(text: str, other: str) -> int:
    """Return the characters with which both texts begin."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(text), len(other)))


def run(messages: Sequence[Message]) -> Counter[str]:
    """Return the sums over all requests of one transcript."""
    policy, sums = make(WINDOW), Counter[str]()
    before: list[Message] = []
    notes, seen = "", set[str]()
    for step in steps([m | {"id": f"m{i}"} for i, m in enumerate(messages)]):
        view = policy.send(step)
        if step[-1]["role"] not in ("user", "tool"):
            continue  # nothing is sent to a model after its own answer
        pairs = zip(view, before, strict=False)
        same = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(view), len(before)))
        repeated = float(size(view[:same]))
        summary = next((m for m in view if is_summary_message(m)), None)
        text = summary["content"] if summary else ""
        both = same < len(view) and same < len(before) and view[same] is summary
        if both and notes and before[same]["content"] == notes:
            repeated += alike(text, notes) / 4
        fresh = [m for m in view if m is not summary and m["id"] not in seen]
        sums.update({"requests": 1, "tokens": size(view), "paid": round(size(view) - repeated)})
        sums["new"] += size(fresh)
        if text != notes:
            stands = alike(text, notes)
            now = len(text) - text.rfind(NOW) if NOW in text else 0
            old = [m for m in view if m not in fresh and m is not summary and m["role"] != "system"]
            sums["compactions"] += 1
            end = notes.rfind(NOW) if NOW in notes else notes.rfind("\n")  # of the segments
            sums["condensed"] += stands < end - 8
            sums["system"] += size([m for m in view if m["role"] == "system"])
            sums["notes that stood"] += stands // 4
            sums["notes written"] += (len(text) - stands - now) // 4
            sums["notes at the end"] += now // 4
            sums["kept messages"] += size(old)
            sums["new messages"] += size(fresh)
        seen.update(m["id"] for m in view if m is not summary)
        before, notes = view, text
    return sums


def ideal(messages: Sequence[Message], notes_of: int = 20, most: int = 1_800) -> Counter[str]:
    """Return the sums for a compaction at the last moment that keeps the newest step alone.

    A step of more than a quarter of the window is shown short, as ours is.

    Args:
        messages: one transcript.
        notes_of: its notes are one token for so many that leave, and are never written anew.
        most: tokens of notes at most; what is beyond is left out at no cost.
    """
    sums = Counter[str]()
    head = notes = held = before = 0
    for step in steps(messages):
        tokens = min(size(step), WINDOW // 4)
        if step[0]["role"] == "system":
            head += tokens
            continue
        stood = before
        if head + notes + held + tokens > WINDOW and held:
            stood = min(before, head + notes)
            notes, held = min(most, notes + held // notes_of), 0
        held += tokens
        if step[-1]["role"] in ("user", "tool"):
            sent = head + notes + held
            sums.update({"requests": 1, "tokens": sent, "paid": sent - min(stood, sent)})
            before = sent
        else:
            before = stood
    return sums


def main(folder: str) -> None:
    """Print the sums over all transcripts that outgrow the window by half."""
    sums, best = Counter[str](), Counter[str]()
    for path in sorted(Path(folder).glob("*.json")):
        messages = json.loads(path.read_text())
        if size(messages) >= WINDOW * 3 // 2:
            sums.update(run(messages))
            best.update(ideal(messages))
    requests, compactions = sums["requests"], max(1, sums["compactions"])
    if not requests:
        sys.exit(f"{folder} holds no transcript of {WINDOW * 3 // 2:,} tokens or more")
    paid, tokens = sums["paid"], sums["tokens"]
    print(f"requests {requests:,}, cached {1 - paid / tokens:.3f}")
    cost = (0.1 * tokens + 0.9 * paid) / requests
    least = (0.1 * best["tokens"] + 0.9 * best["paid"]) / requests
    print(f"cost a request {cost:,.0f}; of ideal notes {least:,.0f}, ", end="")
    print(f"cached {1 - best['paid'] / best['tokens']:.3f}")
    print(f"tokens a request {tokens / requests:,.0f}, paid whole {paid / requests:,.0f}")
    print(f"new messages a request {sums['new'] / requests:,.0f}")
    print(f"at best, with these sizes, cached {1 - sums['new'] / tokens:.3f}")
    print(f"compactions {sums['compactions']:,}, of which {sums['condensed']:,} condense")
    for name in list(sums)[list(sums).index("system") :] if "system" in sums else ():
        print(f"  {name}: {sums[name] / compactions:,.0f}")


if __name__ == "__main__":
    main(sys.argv[1])
