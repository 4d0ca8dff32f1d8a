"""Show a replay as it happens, on standard error."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from conspectus.cli import output

if TYPE_CHECKING:
    from rich.progress import Progress

    from conspectus_lab.replay import Compaction, Step

MOST_NOTES = 5
"""Warnings of one run that are repeated at its end."""


class Live:
    """Show one replay after the other.

    Args:
        window: of the model that answers, in tokens.
        wanted: show compactions. Default: only on a terminal. The gauge needs a terminal.

    Attributes:
        notes: warnings of the library meanwhile, each once.
    """

    def __init__(self, window: int, wanted: bool | None) -> None:
        self._window = window
        self._screen = output.console(stderr=True)
        self._lines = self._screen.is_terminal if wanted is None else wanted
        self._gauge: Progress | None = None
        self._task: Any = None
        self._title = ""
        self.notes: list[str] = []
        self._log = _Kept(self.notes)

    def __enter__(self) -> Self:
        logging.getLogger("conspectus").addHandler(self._log)
        if self._lines and self._screen.is_terminal:
            from rich.progress import BarColumn, Progress, TextColumn

            self._gauge = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[fill]}", markup=False),
                console=self._screen,
                transient=True,
            )
            self._gauge.start()
        return self

    def __exit__(self, *raised: object) -> None:
        logging.getLogger("conspectus").removeHandler(self._log)
        if self._gauge is not None:
            self._gauge.stop()

    def title(self, name: str, messages: int) -> None:
        """Show the title of the next transcript."""
        self._line(f"{name}: {messages:,} messages", "bold")

    def on_event(self, event: str, data: Mapping[str, Any]) -> None:
        """Handle an event of `replay`."""
        if not self._lines:
            return
        if event == "start":
            self._start(data["title"], data["requests"])
        elif event == "step":
            self._step(data["step"])
        elif event == "compaction":
            self._line(in_words(data["compaction"]))
        elif event == "end" and self._gauge is not None:
            self._gauge.remove_task(self._task)

    def _start(self, title: str, requests: int) -> None:
        self._title, self._requests = title, requests
        self._line(f"{title}: {requests:,} requests", "bold cyan")
        if self._gauge is not None:
            self._task = self._gauge.add_task(title, total=self._window, fill="")

    def _step(self, step: Step) -> None:
        if self._gauge is None:
            return
        share = step.tokens / self._window
        self._gauge.update(
            self._task,
            completed=min(step.tokens, self._window),
            description=f"{self._title}, request {step.number:,} of {self._requests:,}",
            fill=f"{step.tokens:,} tokens, {share:.0%} of the window",
        )

    def _line(self, text: str, style: str = "") -> None:
        if self._lines:
            output.say(text, style, self._screen)


def in_words(done: Compaction) -> str:
    """Describe one compaction in one line."""
    parts = [f"  request {done.step:,}: {done.before:,} → {done.after:,} tokens ({done.cause})"]
    if done.left:
        share = done.read / done.characters if done.characters else 1.0
        read = "read whole" if share == 1 else f"{share:.0%} of them read"
        parts.append(f"{output.many(len(done.left), 'message')} left, {read}")
    if done.shortened:
        parts.append(f"{done.shortened:,} shown short")
    return "; ".join(parts)


class _Kept(logging.Handler):
    """Keep warnings, so that they do not run into the display."""

    def __init__(self, notes: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._notes = notes

    def emit(self, record: logging.LogRecord) -> None:
        said = record.getMessage()
        if said not in self._notes and len(self._notes) < MOST_NOTES:
            self._notes.append(said)
