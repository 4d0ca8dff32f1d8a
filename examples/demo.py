"""The demo: a recorded coding session runs again through a real agent, and nothing of it is lost.

    make demo        or: python examples/demo.py

It runs `conspectus replay` on a transcript of some 100,000 tokens: each compaction as it happens,
then a table beside no compaction and LangChain's own middleware, and a page with every compaction
opened up. Then it compacts the same session into an archive, recalls two facts that have left the
view, and checks for itself that every original is kept or archived. It needs no network and no key.
The exit code is 1 if a check fails.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from conspectus import Compactor
from conspectus.archive import Archive, Scope
from conspectus.tokens import TokenMeter

ROOT = Path(__file__).resolve().parents[1]
TRANSCRIPT = "examples/data/demo-transcript.json"
OUT = "demo-output"
WINDOW = 8_000
REPLAYED = 16_000
"""The window of the replay: the session outgrows it often, and the compactions fit one screen."""

OURS = "conspectus"

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """Something to recall: how it is asked, and what of the transcript answers it."""

    text: str
    answer: str


ERRORS = (
    Question("Which regular expression was invalid, and why?", r"invalid regular expression: .+"),
    Question("ImportError: which name could not be imported?", r"ImportError: cannot import .+"),
    Question(
        "TypeError: unexpected keyword argument of summary_text", r"TypeError: summary_text.+"
    ),
)
REASONS = (
    Question(
        "Why does the merge-request entry come directly after the one for addresses?",
        r"an address that ends in a merge request has to be claimed whole .+?\.",
    ),
    Question(
        "Why do quiet summaries keep their first line?",
        r"without it a second compaction would take the summary .+?\.",
    ),
    Question(
        "Why was a date cut out of the middle of a path?",
        r"A word boundary is also true next to a slash.+?\.",
    ),
)
"""Of each group the first is asked whose answer was really evicted."""

REPLACED = (("at most 40 lines", "up to 60 lines"), ("Friday at 17:00", "Monday at 12:00"))
"""What the user said first, and what the user said later about the same thing."""


class Demo:
    """One run.

    Args:
        screen: where it is shown.
        out: folder for what the command writes, made anew; below the project unless absolute.
    """

    def __init__(self, screen: Console, out: str = OUT) -> None:
        self.screen = screen
        self.out = out
        self.failed: list[str] = []
        self.before: list[Message] = _read(ROOT / TRANSCRIPT)
        self.after: list[Message] = []
        self.report: dict[str, Any] = {}
        self.evicted: list[Message] = []

    def run(self) -> int:
        """All of it; gives the exit code."""
        shutil.rmtree(ROOT / self.out, ignore_errors=True)
        (ROOT / self.out).mkdir(parents=True)
        if not self.replay() or not self.compact():
            return 1
        self.show_words()
        with Archive.open(ROOT / self.out / "archive.db") as archive:
            self.recall(archive)
            self.verify(archive)
        page = ROOT / self.out / "replay.html"
        self._line(f"\nEvery compaction, opened up: {page.as_uri()}", "bold")
        for failure in self.failed:
            self.screen.print(Text(f"Failed: {failure}", "bold red"))
        return 1 if self.failed else 0

    def replay(self) -> bool:
        """The session through a real agent, once under each policy."""
        arguments = ["replay", TRANSCRIPT, "--window", str(REPLAYED), "--live"]
        arguments += ["-o", f"{self.out}/replay.json", "--report", f"{self.out}/replay.html"]
        self.screen.rule("A session is run again through a real agent")
        if self._command(arguments, shown=True) is None:
            return False
        data = json.loads((ROOT / self.out / "replay.json").read_text(encoding="utf-8"))
        ours = data["totals"][OURS]
        for name, what in (
            ("broken", "requests with a parted tool call or result"),
            ("over", f"requests above the window of {REPLAYED:,} tokens"),
            ("missing", "originals that are neither in view nor in the archive"),
        ):
            self._check(ours[name] == 0, f"Conspectus: {ours[name]} {what}")
        read = ours["read_share"]
        self._check(read == 1, f"Conspectus: {read:.1%} of the text that left was read")
        return True

    def compact(self) -> bool:
        """The same session into an archive that stays, with `--json` for what is shown below."""
        arguments = ["compact", TRANSCRIPT, "--window", str(WINDOW), "--keep", "messages:20"]
        arguments += ["--archive", f"{self.out}/archive.db", "--thread", "demo"]
        arguments += ["-o", f"{self.out}/compacted.json", "--json"]
        self.screen.rule("The whole session at once, into an archive that stays")
        said = self._command(arguments)
        if said is None:
            return False
        self.report = json.loads(said)
        self.after = _read(ROOT / self.out / "compacted.json")
        in_view = {message.get("id") for message in self.after}
        self.evicted = [message for message in self.before if message["id"] not in in_view]
        report = self.report
        self._line(
            f"{len(self.before):,} messages, {report['tokens_before']:,} tokens → "
            f"{len(self.after):,} messages, {report['tokens_after']:,} tokens in a window of "
            f"{report['budget']:,}"
        )
        return True

    def _command(self, arguments: list[str], *, shown: bool = False) -> str | None:
        """Run a command as anybody would type it; gives what it prints, None if it fails."""
        self.screen.print(Text(f"$ conspectus {shlex.join(arguments)}", "bold"), soft_wrap=True)
        self.screen.file.flush()
        done = subprocess.run(
            [sys.executable, "-X", "utf8", "-m", "conspectus.cli", *arguments],
            cwd=ROOT,
            stdout=None if shown else subprocess.PIPE,
            stderr=None if shown else subprocess.PIPE,
            encoding="utf-8",
            check=False,
        )
        if done.returncode:
            said = (done.stderr or done.stdout or "").strip()
            what = f"conspectus {arguments[0]} ended with {done.returncode} {said}"
            self.screen.print(Text(what, "bold red"))
            return None
        return done.stdout or ""

    def show_words(self) -> None:
        """What the user said in evicted messages: word for word, in the order said."""
        view = _text(self.after)
        left = [message for message in self.evicted if message["role"] == "user"]
        whole = [m for m in left if m["content"].replace("\n", "\n  ") in view]
        self._line(
            f"{len(left)} messages of the user were evicted; "
            f"the notes hold {len(whole)} of them word for word"
        )
        for message in whole:
            self._line(f"  {message['content'].splitlines()[0]} [{message['id']}]", "dim")
        for old, new in REPLACED:
            self._check(
                view.rfind(old) < view.rfind(new),
                f"the notes hold {new!r} [{_where(self.before, new)}] after {old!r} "
                f"[{_where(self.before, old)}], which it replaces",
            )

    def recall(self, archive: Archive) -> None:
        """Two facts of evicted messages."""
        self.screen.rule("Recalled from the archive")
        compactor = Compactor(window=WINDOW, archive=archive)
        for what, group in (("an error line", ERRORS), ("a reason", REASONS)):
            found = self._gone(group)
            if found is None:
                self._check(False, f"no question about {what} has an answer that was evicted")
                continue
            question, answer, source = found
            result = compactor.recall(question.text, thread_id="demo", tokens=400)
            hit = next((hit for hit in result.hits if answer in hit.text), None)
            self._line(f"Q: {question.text}", "bold")
            if hit is not None:
                self._line(f"A: {_around(hit.text, answer)}", "green")
                self._line(f"   [{hit.cite}] {hit.role}; {result.tokens} tokens recalled", "dim")
            self._check(
                hit is not None and hit.cite == source,
                f"{what} out of {source}, which is in view nowhere, is recalled word for word",
            )

    def verify(self, archive: Archive) -> None:
        """The promises, checked on the files that the command has written."""
        self.screen.rule("Checked")
        rows = archive.export(Scope("local", "demo"))
        archived = {row["id"]: row["message"] for row in rows}
        kept = {m["id"]: m for m in self.after if "id" in m}
        whole = [m for m in self.before if m == kept.get(m["id"])]
        safe = [m for m in self.before if m == kept.get(m["id"]) or m == archived.get(m["id"])]
        self._check(
            len(safe) == len(self.before),
            f"{len(safe):,} of {len(self.before):,} originals are equal to what was recorded: "
            f"{len(whole):,} in view, {len(rows):,} archived",
        )
        broken = broken_pairs(self.after)
        self._check(not broken, f"{len(broken)} tool calls or results without their counterpart")
        size = TokenMeter().count_messages(self.after)
        self._check(
            size <= self.report["budget"] and size == self.report["tokens_after"],
            f"{size:,} tokens, counted anew, are within the window of {self.report['budget']:,}",
        )
        self._check(self.report["archived"], "the archive has confirmed every original")

    def _gone(self, group: Iterable[Question]) -> tuple[Question, str, str] | None:
        """The first question whose answer is in the evicted part and nowhere in view."""
        view = _text(self.after)
        for question in group:
            for message in self.evicted:
                match = re.search(question.answer, message["content"])
                if match and match[0] not in view:
                    return question, match[0], message["id"]
        return None

    def _check(self, good: bool, what: str) -> None:
        if not good:
            self.failed.append(what)
        self._line(f"{'✓' if good else '✗'} {what}", "green" if good else "bold red")

    def _line(self, text: str, style: str = "") -> None:
        self.screen.print(Text(text, style), soft_wrap=True)


def broken_pairs(messages: Iterable[Message]) -> list[str]:
    """Ids of calls without a result and of results without a call."""
    open_calls: set[str] = set()
    broken: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                broken.append(message["tool_call_id"])
            open_calls.discard(message["tool_call_id"])
            continue
        broken += sorted(open_calls)
        open_calls = {call["id"] for call in message.get("tool_calls", ())}
    return [*broken, *sorted(open_calls)]


def _read(path: Path) -> list[Message]:
    messages: list[Message] = json.loads(path.read_text(encoding="utf-8"))
    return messages


def _text(messages: Iterable[Message]) -> str:
    """All that a model reads of them, as one text."""
    return "\n".join(
        part
        for message in messages
        for part in (
            message["content"] or "",
            *(call["function"]["arguments"] for call in message.get("tool_calls", ())),
        )
    )


def _where(messages: Iterable[Message], said: str) -> str:
    """The first message in which the user says it."""
    return next((m["id"] for m in messages if m["role"] == "user" and said in m["content"]), "?")


def _around(text: str, part: str) -> str:
    """The line in which it stands."""
    return next((line.strip() for line in text.split("\n") if part in line), part)


def main() -> int:
    """Run the demo; gives the exit code."""
    stream = sys.stdout
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(encoding="utf-8", errors="replace")  # for consoles of another encoding
    return Demo(Console(markup=False, emoji=False, highlight=False)).run()


if __name__ == "__main__":
    sys.exit(main())
