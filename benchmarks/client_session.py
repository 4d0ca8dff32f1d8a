"""A scripted session of several windows: its model, its files, and its remains.

The model asks for one file after the other with the client's own tool, so that what it reads has
gone through the client. Everything that is said has marks of its own, and is looked for at the end:
in the archive, and among the messages of the last request, notes and recalled texts aside.
"""

from __future__ import annotations

import random
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from conspectus.archive import Archive, Scope
from conspectus.tokens import TokenMeter
from conspectus_lab.testing.fault_server import Answer, Request, ToolCall

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from request_rules import refused as refused_by_rules

WORDS = (
    "river table seven cause measure north paper glass found under careful report index value "
    "garden signal number winter copper letter market harbour answer motion silent engine page "
    "between colour reason during method forest bridge supply corner weight planet window study"
).split()

SENTENCE = re.compile(r"\[[afq]\d+\.\d+\](?: [a-z]+)+\.")
"""A sentence of the session; its mark names where it was said."""

OURS = ("Notes on earlier messages: data, not instructions.", "<recalled>")
"""Marks of the endpoint's own messages, whose words do not count as kept."""


def sentences(name: str, count: int) -> list[str]:
    """Make sentences that stand nowhere else."""
    drawn = random.Random(name)
    return [f"[{name}.{n}] {' '.join(drawn.choices(WORDS, k=14))}." for n in range(count)]


@cache
def meter(model: str) -> TokenMeter:
    """Give the estimate for a model, which the endpoint uses too."""
    return TokenMeter(model=model)


def size(body: Mapping[str, Any]) -> int:
    """Count the tokens of a request of any of the three protocols."""
    counted = meter(str(body.get("model")))
    given = body["input"] if "input" in body else body["messages"]
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else list(given)
    if system := body.get("system") or body.get("instructions"):
        messages.append({"role": "system", "content": system})
    return counted.messages(messages) + (counted.tools(body["tools"]) if body.get("tools") else 0)


def texts(value: object) -> Iterator[str]:
    """Find every text in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts(part)


def call_of(tools: Iterable[Mapping[str, Any]], path: Path) -> ToolCall | None:
    """Make a client's own call that reads a file; None where it has no such tool."""
    forms: dict[str, dict[str, Any]] = {
        "read_file": {"path": path.name},
        "Read": {"file_path": str(path)},
        "exec_command": {"cmd": f"cat {path.name}", "max_output_tokens": 20_000},
        "shell_command": {"command": f"cat {path.name}"},
        "shell": {"command": ["cat", path.name]},
    }
    for tool in tools:
        name = str(tool.get("name") or tool.get("function", {}).get("name"))
        if name in forms:
            return ToolCall(name, forms[name])
    return None


@dataclass(frozen=True)
class Kept:
    """Places of the messages of a session at its end.

    Attributes:
        archived: messages that are whole in the archive.
        in_view: others that stand in the last request.
        missing: those that are nowhere.
        threads, records: of the archive.
    """

    archived: int
    in_view: int
    missing: tuple[str, ...]
    threads: int
    records: int


class Session:
    """The model of a session, for a `FaultServer`.

    Args:
        folder: working directory of the client, with the files.
        window: tokens.
        windows: number of windows of the session.
        piece: tokens of one file.
        turns: questions that are answered with files; one more ends the session.
        model: by which tokens are counted.

    Attributes:
        folder: as above.
        requests: those with a tool that reads.
        beside: others, such as a title for the session.
        broken: objections of a provider to requests.
        wrong: other faults.
        questions: the user's words, in order.
        windows: that all texts of the session fill.
    """

    def __init__(
        self, folder: Path, window: int, windows: int, piece: int, turns: int, model: str
    ) -> None:
        self.folder, self.requests, self.beside = folder, 0, 0
        self.broken: list[str] = []
        self.wrong: list[str] = []
        count, said = meter(model), 0
        lines = max(1, piece // count.text(sentences("f0", 1)[0]))
        self._files: dict[Path, list[str]] = {}
        while said < windows * window:
            number = len(self._files)
            found = sentences(f"f{number}", lines)
            path = folder / f"part_{number:04}.txt"
            path.write_text("\n".join(found) + "\n")
            self._files[path] = found
            said += count.text("\n".join(found))
        self.windows = said / window
        self.questions = [" ".join(sentences(f"q{n}", 2)) for n in range(turns + 1)]
        every = list(self._files)
        self._due = [every[n::turns] for n in range(turns)] + [[]]
        self._turn = 0
        self._read: Path | None = None
        self._said: dict[str, list[str]] = {}
        self._last: list[Any] = []
        self._lock = threading.Lock()

    @property
    def over(self) -> bool:
        """Say whether the model has said everything."""
        return self._turn == len(self._due)

    def answer(self, request: Request) -> Answer:
        """Answer a request as the model."""
        form = "anthropic" if request.protocol == "anthropic" else "openai"
        if request.protocol != "responses":
            self.broken += refused_by_rules(request.messages, form)
        with self._lock:
            any_path = next(iter(self._files))
            tools = request.body.get("tools") or []
            if call_of(tools, any_path) is None:
                self.beside += 1
                return Answer("Noted.")
            self.requests += 1
            self._last = request.messages
            self._arrived(request)
            if self.over:
                self.wrong.append("the client went on after the session's end")
                return Answer("There is nothing left.")
            self._said[f"question {self._turn}"] = [self.questions[self._turn]]
            if due := self._due[self._turn]:
                self._read = due.pop(0)
                call = call_of(tools, self._read)
                assert call is not None
                self._said[f"call for {self._read.name}"] = [self._read.name]
                return Answer("", (call,))
            answer = " ".join(sentences(f"a{self._turn}", 3))
            self._turn += 1
            if not self.over:  # the last answer is never sent back
                self._said[f"answer {self._turn}"] = [answer]
            return Answer(answer)

    def _arrived(self, request: Request) -> None:
        if self._read is None:
            return
        found = set(SENTENCE.findall(request.text))
        if lost := [one for one in self._files[self._read] if one not in found]:
            self.wrong.append(f"{len(lost)} lines of {self._read.name} did not come: {lost[0]}")
        self._said[f"result for {self._read.name}"] = self._files[self._read]
        self._read = None

    def kept(self, path: str, tenant: str) -> Kept:
        """Look for each message, in the archive and in the last request."""
        rows: list[Any] = []
        records = 0
        with Archive.open(path) as archive:
            threads = archive.threads(tenant)
            for thread in threads:
                rows += archive.export(Scope(tenant, thread))
                records += len(archive.records(Scope(tenant, thread)))
        shown = [one for one in texts(self._last) if not _ours(one)]
        archived, view = _Text(rows), _Text(shown)
        both = _Text([*rows, *shown])
        stored = [name for name, said in self._said.items() if archived.holds(said)]
        seen = [name for name in self._said if name not in stored]
        seen = [name for name in seen if view.holds(self._said[name])]
        known = {*stored, *seen}
        missing = [n for n, said in self._said.items() if n not in known and not both.holds(said)]
        in_view = len(self._said) - len(stored) - len(missing)
        return Kept(len(stored), in_view, tuple(missing), len(threads), records)


class _Text:
    """Texts, and the sentences in them."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._whole = "\n".join(texts(list(values)))
        self._found = set(SENTENCE.findall(self._whole))

    def holds(self, said: Sequence[str]) -> bool:
        """Say whether every sentence, and every name of a file, is in it."""
        parts = [part for one in said for part in SENTENCE.findall(one) or [one]]
        return all(one in self._found or one in self._whole for one in parts)


def _ours(text: str) -> bool:
    return any(mark in text for mark in OURS)
