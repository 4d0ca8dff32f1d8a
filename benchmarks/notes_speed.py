"""What a compaction without a model costs, in seconds of CPU.

    make bench-notes      or: python benchmarks/notes_speed.py

An agent's history (calls that read files, one user message) of 100,000 and of 2,000,000 tokens, and
a talk of 100,000 messages, half of them the user's, each compacted at once. The second row shows
the growth: its cost a token beside that of the first one.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

from conspectus import CompactionResult, Compactor

ROOT = Path(__file__).resolve().parents[1]
WINDOW = 60_000
CHARACTERS = 4  # of a token, about

Message = dict[str, Any]


def agent(tokens: int) -> list[Message]:
    """Return a session that reads as many files as it takes."""
    source = (ROOT / "src" / "conspectus" / "notes" / "rendering.py").read_text(encoding="utf-8")
    messages: list[Message] = [
        {"role": "system", "content": "You are a coding agent."},
        {"role": "user", "content": "Fix the parser bug. Never push to main."},
    ]
    size = number = 0
    while size < tokens * CHARACTERS:
        start = number * 613 % 8_000
        text = f"{source[start : start + 2_400]}\n# {number}"
        call = {"name": "read_file", "arguments": json.dumps({"path": f"src/a{number}.py"})}
        called = {"id": f"c{number}", "type": "function", "function": call}
        said = f"Let me look at file {number}, as parse_{number} fails."
        messages.append({"role": "assistant", "content": said, "tool_calls": [called]})
        messages.append({"role": "tool", "tool_call_id": called["id"], "content": text})
        size += len(text) + len(said)
        number += 1
    return [*messages, {"role": "user", "content": "And now run the tests."}]


def talk(count: int) -> list[Message]:
    """Return so many messages of 25 words, of the user and the agent in turn."""
    words = (ROOT / "docs" / "bill.md").read_text(encoding="utf-8").split()
    drawn = random.Random(1)
    roles = ("user", "assistant")
    return [
        {"role": roles[n % 2], "content": " ".join(drawn.choices(words, k=25))}
        for n in range(count + 1)
    ]


def compacted(messages: list[Message]) -> tuple[float, CompactionResult]:
    """Compact a history at once; return the seconds of CPU and the result."""
    compactor = Compactor(window=WINDOW)
    begin = time.process_time()
    result = compactor.compact(messages, thread_id="speed", force=True)
    return time.process_time() - begin, result


def main() -> int:
    """Print a row for each history; the exit code is 1 where one was not compacted."""
    rows = [
        ("an agent, 100,000 tokens", agent(100_000)),
        ("an agent, 2,000,000 tokens", agent(2_000_000)),
        ("a talk of 100,000 messages", talk(100_000)),
    ]
    wrong, first = 0, 0.0
    print("| history | messages | tokens | seconds of CPU | microseconds a token | first row = 1 |")
    print("|---|---|---|---|---|---|")
    for name, messages in rows:
        seconds, result = compacted(messages)
        wrong += result.outcome != "compacted"
        each = seconds / result.tokens_before * 1e6
        first = first or each
        print(
            f"| {name} | {len(messages):,} | {result.tokens_before:,} | {seconds:.2f} "
            f"| {each:.2f} | {each / first:.1f} |"
        )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
