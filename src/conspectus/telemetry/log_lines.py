"""Write events as lines in the log, readable and as data."""

from __future__ import annotations

import json
import logging
from typing import Any, Literal, get_args

from conspectus.archive.scope import label_hash
from conspectus.errors import PolicyError
from conspectus.events import ArchiveOperation, CompactionStep, Event, RequestSent, Whose

Naming = Literal["hashed", "plain", "off"]
"""`hashed`: the first 16 characters of the archive's hash, but `main` for that session; `plain`:
the name; `off`: none."""

LOGGER = "conspectus.events"  # Name of the logger; sentences for people are in `conspectus`

QUIET: tuple[type[Event], ...] = (ArchiveOperation, CompactionStep, RequestSent)
"""Kinds that come many times with each compaction: level DEBUG."""

BAD = frozenset({"error", "failed", "stuck", "timeout", "overflow", "rejected"})
"""Outcomes that need attention: level WARNING. All else is INFO."""


class LogLines:
    """A listener that writes one line for each event.

    A line is the event's name, then `key=value` for each known field; `record.conspectus` has the
    same as a dict. It holds no text of a message or of an error.

    Args:
        thread: form of tenant, thread and session: `"hashed"`, `"plain"` or `"off"`.

    Raises:
        PolicyError: `thread` is none of these.

    Example:
        >>> from conspectus.events import Compaction
        >>> LogLines().line(Compaction(outcome="compacted", tokens_before=9000, seconds=0.25))
        'compaction outcome=compacted seconds=0.250 tokens_before=9000 ...'
    """

    def __init__(self, thread: Naming = "hashed") -> None:
        check_naming(thread)
        self._thread = thread
        self._logger = logging.getLogger(LOGGER)

    def __call__(self, event: Event) -> None:
        """Write an event, if its level is enabled."""
        if event.outcome in BAD:
            level = logging.WARNING
        else:
            level = logging.DEBUG if isinstance(event, QUIET) else logging.INFO
        if self._logger.isEnabledFor(level):
            self._logger.log(level, "%s", self.line(event), extra={"conspectus": self.data(event)})

    def data(self, event: Event) -> dict[str, Any]:
        """Return an event as plain data."""
        found = {"event": event.name, **event.plain(), **named(event.whose, self._thread)}
        return {**found, "seconds": round(event.seconds, 6)}

    def line(self, event: Event) -> str:
        """Return an event as one line."""
        data = self.data(event)
        data["seconds"] = f"{event.seconds:.3f}"
        name = data.pop("event")
        return " ".join([str(name), *(f"{key}={_shown(value)}" for key, value in data.items())])


class JsonFormatter(logging.Formatter):
    """A formatter: one JSON object a line, with the data of `LogLines`.

    Each has time, level, logger and message. Lines of other loggers have the same form, so one
    handler may serve a whole program.

    Example:
        >>> record = logging.LogRecord("app", 20, "", 0, "ready on %s", ("8000",), None)
        >>> json.loads(JsonFormatter().format(record))["message"]
        'ready on 8000'
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        data: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        more = getattr(record, "conspectus", None)
        if isinstance(more, dict):
            data |= more
        if record.exc_info:
            data["exception"] = self.formatException(record.exc_info)
        return json.dumps(data, ensure_ascii=False, default=str)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    plain = text and not any(one.isspace() or not one.isprintable() or one in '"=' for one in text)
    return text if plain else json.dumps(text, ensure_ascii=True)


def check_naming(given: object) -> None:
    if given not in get_args(Naming):
        raise PolicyError(f"thread must be one of {get_args(Naming)}, not {given!r}")


def named(whose: Whose | None, naming: Naming) -> dict[str, str]:
    """Return tenant, thread and session as attributes."""
    if whose is None or naming == "off":
        return {}
    labels = {"tenant": whose.tenant, "thread": whose.thread, "session": whose.session}
    if naming == "hashed":
        return {k: v if v == "main" else label_hash(v)[:16] for k, v in labels.items()}
    return labels
