"""The recording: what is said and called becomes a list of messages in OpenAI's chat form."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from demo_recorder.workspace import Workspace

Call = tuple[str, dict[str, Any]]
"""A tool's name and its arguments."""

_HIT = re.compile(r"^(?P<path>[^:\n]+):(?P<line>\d+): ?(?P<text>.*)$", re.MULTILINE)


class Gone(Exception):
    """What a task is about is no longer in the source; the agent says so and goes on."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One line that a search has found."""

    path: str
    line: int
    text: str


class Session:
    """One conversation of a user with the agent.

    Args:
        workspace: where the tools run.

    What the agent says goes into the message of its next call, as models do it; it is a message
    of its own where the user speaks next.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._calls = 0
        self._words = ""
        self._messages: list[dict[str, Any]] = []

    def system(self, text: str) -> None:
        """Instructions for the agent."""
        self._add(role="system", content=text)

    def user(self, text: str) -> None:
        """The user's turn."""
        self._speak()
        self._add(role="user", content=text)

    def say(self, text: str) -> None:
        """The agent's words."""
        self._words = f"{self._words}\n\n{text}".strip()

    def call(self, tool: str, why: str = "", **arguments: Any) -> str:
        """One tool call with its result."""
        return self.together([(tool, arguments)], why)[0]

    def together(self, calls: Sequence[Call], why: str = "") -> list[str]:
        """Tool calls made in one message; several are answered last one first.

        Returns:
            The results in the order of the calls.
        """
        ids = []
        made = []
        for tool, arguments in calls:
            self._calls += 1
            ids.append(f"call_{self._calls}")
            function = {"name": tool, "arguments": json.dumps(arguments, ensure_ascii=False)}
            made.append({"id": ids[-1], "type": "function", "function": function})
        self.say(why)
        self._add(role="assistant", content=self._words, tool_calls=made)
        self._words = ""
        results = [self._workspace.tools[tool](**arguments) for tool, arguments in calls]
        for place in reversed(range(len(calls))):
            self._add(
                role="tool",
                tool_call_id=ids[place],
                name=calls[place][0],
                content=results[place],
            )
        return results

    # What the agent does again and again.

    def find(self, pattern: str, path: str = "src/conspectus", why: str = "") -> list[Hit]:
        """Search, and read the result."""
        return hits(self.call("search", why, pattern=pattern, path=path))

    def read(self, path: str, start: int, end: int, why: str = "") -> str:
        """Read some lines; gives them without their numbers."""
        return unnumbered(self.call("read_file", why, path=path, start=start, end=end))

    def around(self, hit: Hit, before: int = 4, after: int = 14, why: str = "") -> str:
        """Read what surrounds a hit."""
        return self.read(hit.path, max(1, hit.line - before), hit.line + after, why)

    def edit(self, path: str, old: str, new: str, why: str = "") -> str:
        """Replace a text in a file."""
        return self.call("edit_file", why, path=path, old=old, new=new)

    def test(self, path_or_expr: str, why: str = "") -> str:
        """Run tests."""
        return self.call("run_tests", why, path_or_expr=path_or_expr)

    def read_pair(self, pair: Sequence[Hit], before: int, after: int, why: str = "") -> list[str]:
        """Read what surrounds one or two hits in one message; gives the numbered lines."""
        spans = [
            {"path": h.path, "start": max(1, h.line - before), "end": h.line + after} for h in pair
        ]
        return self.together([("read_file", span) for span in spans], why)

    def python(self, code: str, why: str = "") -> str:
        """Run a script."""
        return self.call("run_python", why, code=code)

    def finish(self) -> list[dict[str, Any]]:
        """The end: the messages that have been recorded."""
        self._speak()
        return self._messages

    def _speak(self) -> None:
        if self._words:
            self._add(role="assistant", content=self._words)
            self._words = ""

    def _add(self, **message: Any) -> None:
        self._messages.append({"id": f"m{len(self._messages) + 1}", **message})


def hits(result: str) -> list[Hit]:
    """The lines of a search result."""
    return [Hit(m["path"], int(m["line"]), m["text"]) for m in _HIT.finditer(result)]


def unnumbered(result: str) -> str:
    """A file's lines as they are in the file."""
    return "\n".join(line[5:] for line in result.split("\n"))


def first(found: Sequence[Hit], what: str) -> Hit:
    """The first hit, or `Gone`."""
    if not found:
        raise Gone(what)
    return found[0]


def apart(found: Sequence[Hit], lines: int = 6) -> list[Hit]:
    """Hits so far from each other that what is read around them does not overlap."""
    kept: list[Hit] = []
    for hit in found:
        if not kept or kept[-1].path != hit.path or hit.line - kept[-1].line > lines:
            kept.append(hit)
    return kept


def pairs(found: Sequence[Hit]) -> list[list[Hit]]:
    """Hits two by two; the last one alone where their number is odd."""
    return [list(found[at : at + 2]) for at in range(0, len(found), 2)]


def failures(result: str) -> list[str]:
    """What pytest gives as the reasons of failures."""
    return [line[1:].strip() for line in result.split("\n") if re.match(r"E +\S", line)]


def verdict(result: str) -> str:
    """The last line of a test run: how many passed and failed."""
    return result.rstrip().rpartition("\n")[2].strip("= ")
