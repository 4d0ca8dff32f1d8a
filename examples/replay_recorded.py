"""Carry out every call of the recorded sessions again, and compare the results.

    python examples/replay_recorded.py

The sessions are in examples/recorded: a travel desk with a SQLite database, and a reading room with
documents and notes. The words were written by hand; the calls and their results are real.
"""

from __future__ import annotations

import sys

from recorded.replaying import SESSIONS, problems, read


def main() -> int:
    """Replay; gives the exit code."""
    failed = False
    for name in SESSIONS:
        messages = read(name)
        calls = sum(message["role"] == "tool" for message in messages)
        found = list(problems(name, messages))
        print(f"{name}: {len(messages)} messages, {calls} calls, {len(found)} differ")
        for problem in found:
            print(problem)
        failed = failed or bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
