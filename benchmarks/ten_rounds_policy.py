"""The adapter of `resumption_policy` with nine more rounds.

A script that takes `module:factory` is given `benchmarks.ten_rounds_policy:make`, run from the root
of the repository. What it finds after ten rounds can be compared with its figures after one.
"""

from __future__ import annotations

from benchmarks.resumption_policy import Message, Policy

ROUNDS = 10
"""Compactions from the end of the conversation on."""


class TenRounds(Policy):
    """One conversation whose end is compacted ten times, with steps in between."""

    def close(self) -> list[Message]:
        """Compact ten times, whatever the size."""
        view = super().close()
        for number in range(1, ROUNDS):
            call = {"name": "list_files", "arguments": f'{{"folder": "part-{number}"}}'}
            called = {"id": f"round-{number}", "type": "function", "function": call}
            self.send(
                [
                    {"role": "assistant", "content": "", "tool_calls": [called]},
                    {"role": "tool", "tool_call_id": called["id"], "content": "a.txt\nb.txt"},
                    {"role": "assistant", "content": f"Part {number} has two files."},
                ]
            )
            view = super().close()
        return view


def make(window: int) -> TenRounds:
    """Return a policy for one conversation, as the script asks for it."""
    return TenRounds(window)
