"""The log: one line for each compaction, and a warning with a remedy for a failure."""

from __future__ import annotations

import logging
import math
from typing import Any

from conspectus.observe.event import Event

logger = logging.getLogger("conspectus")

LONGEST_TEXT = 500
"""The most characters of a text in a line."""

LONGEST_NAME = 64
"""The most characters of a name in a line."""

SMALLEST_AMOUNT = 1e-6
"""The fewest US dollars that a line shows if a call cost anything."""

REMEDIES = {
    "archive": "check that the archive can be reached; the next step tries again",
    "redaction": "check the redactor; without it nothing is archived or summarised",
    "timeout": "raise summarizer_timeout, or take a faster summariser",
    "overflow": "take a summariser with a larger window",
    "rejected": "take another summariser, or add one to fallbacks",
    "summary": "check the summariser's name, key and network, or add one to fallbacks",
}
"""What to do, by the cause of a failure (`Event.extra["failure"]`)."""


def log(
    name: str, sentence: str, *parts: object, level: int = logging.WARNING, **options: Any
) -> None:
    """Log a sentence, with `%s` for its parts.

    Programs find its name in `record.conspectus["event"]`.
    """
    extra = {"conspectus": {"event": name}}
    logger.log(level, sentence, *parts, extra=extra, stacklevel=2, **options)


def log_event(event: Event) -> None:
    """Log the line of a compaction, or of a failure with what to do."""
    if event.outcome == "failed":
        _log_failure(event)
    elif event.kind == "compaction" and event.outcome == "compacted":
        # Another summariser has written than the first one: the log should say why.
        reason = f", as {event.error_message}" if event.error_message else ""
        level = logging.WARNING if reason else logging.INFO
        log("compacted", "%s: %s%s", _history(event), _compacted(event), reason, level=level)


def safe_text(value: object) -> str:
    """Return the text of any value, even of an error whose `__str__` raises."""
    try:
        return str(value)
    except Exception:
        return f"a {type(value).__name__} without a text"


def _log_failure(event: Event) -> None:
    is_compaction = event.kind == "compaction"
    log(
        f"{event.kind}_failed",
        "%s: %s failed, nothing has changed: %s%s",
        _history(event),
        "compaction" if is_compaction else "preparing the next notes",
        event.error_message,
        _remedy(event),
    )


def _remedy(event: Event) -> str:
    """Return what to do; empty if the error has a second clause, which then says it."""
    if "; " in event.error_message:
        return ""
    return "; " + REMEDIES[event.extra.get("failure", "summary")]


def _history(event: Event) -> str:
    """Name the history of an event: its thread, and tenant and session unless they are usual."""
    if event.scope is None:
        return "a thread"
    names = (event.scope.tenant, event.scope.thread, event.scope.session)
    tenant, thread, session = (f"{name:.{LONGEST_NAME}}" for name in names)
    owner = "" if tenant == "local" else f"{tenant}/"
    agent = "" if session == "main" else f" ({session})"
    return f"thread {owner}{thread}{agent}"


def _compacted(event: Event) -> str:
    """Say what a compaction has changed, who wrote its summary, and what that took."""
    extra = event.extra
    # As the trigger counts, so that a reader can compare both.
    tokens_before = extra.get("trigger_before", event.tokens_before)
    tokens_after = extra.get("trigger_after", event.tokens_after)
    parts = [f"compacted {tokens_before:,} → {tokens_after:,} tokens ({extra.get('cause')})"]
    if event.messages:
        where = "archived" if extra.get("archived") else "out of view, not archived"
        parts.append(f"{event.messages:,} messages {where}")
    if extra.get("clipped"):
        parts.append(f"{extra['clipped']:,} clipped")
    parts.append(f"{_writer(event)}in {extra.get('waited', event.seconds):.1f} s")
    if event.cost.calls:
        parts.append(_money(event))
    failed_tries = extra.get("tries_failed")
    if failed_tries:
        parts.append(f"after {failed_tries:,} failed {'try' if failed_tries == 1 else 'tries'}")
    return ", ".join(parts)


def _writer(event: Event) -> str:
    """Name the model that wrote, without its provider; nothing where no summary was written."""
    _, _, model = event.name.partition(":")
    name = (model or event.name)[:LONGEST_NAME]
    if name == "embedded":
        return "without a model "
    return f"by {name} " if name else ""


def _money(event: Event) -> str:
    amount = event.money
    if amount is None:
        return "price unknown"
    if amount >= 1 or amount == 0:
        return f"${amount:.2f}"
    amount = max(amount, SMALLEST_AMOUNT)
    decimals = 1 - math.floor(math.log10(amount))  # two digits that say something
    return "$" + f"{amount:.{decimals}f}".rstrip("0")


def _on_one_line(record: logging.LogRecord) -> bool:
    """Keep foreign texts from beginning a line of the log, whoever wrote the sentence."""
    if isinstance(record.args, tuple):
        record.args = tuple(
            part if isinstance(part, (int, float)) else _escaped(part) for part in record.args
        )
    if record.exc_info and not record.exc_text:
        trace = logging.Formatter().formatException(record.exc_info)
        record.exc_text = "\n".join("    " + _escaped(line) for line in trace.splitlines())
    return True


def _escaped(value: object) -> str:
    """Return a text on one line, cut to a length."""
    text = safe_text(value)
    if len(text) > LONGEST_TEXT:
        text = text[: LONGEST_TEXT - 1] + "…"
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


logger.addFilter(_on_one_line)
