"""The logger `conspectus`: one line for each compaction, a warning with a remedy for a failure."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conspectus.observe.events import Event

logger = logging.getLogger("conspectus")

LOGGED = frozenset({"compaction", "preparation"})  # Kinds of events that may make a line
LONGEST, LONGEST_NAME = 500, 64  # Most characters of a text in a line, and of a name

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
    name: str, sentence: str, *parts: object, level: int = logging.WARNING, **more: Any
) -> None:
    """Log a sentence, with `%s` for its parts.

    Programs find its name in `record.conspectus["event"]`.
    """
    logger.log(level, sentence, *parts, extra={"conspectus": {"event": name}}, stacklevel=2, **more)


def escaped(value: object, most: int = LONGEST) -> str:
    """Return a text on one line, cut to a length."""
    try:
        text = str(value)
    except Exception:
        text = f"a {type(value).__name__} without a text"
    if len(text) > most:
        text = text[: most - 1] + "…"
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


class OneLine(logging.Filter):
    """Keep texts of others from beginning a line of the log, whoever wrote the sentence."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Escape the parts of a sentence, and indent the lines of a traceback."""
        if isinstance(record.args, tuple):
            plain = (int, float)
            record.args = tuple(x if isinstance(x, plain) else escaped(x) for x in record.args)
        if record.exc_info and not record.exc_text:
            text = logging.Formatter().formatException(record.exc_info)
            record.exc_text = "\n".join("    " + escaped(line) for line in text.splitlines())
        return True


logger.addFilter(OneLine())


def log_event(event: Event) -> None:
    """Log the line of an event, if it has one."""
    if event.outcome == "failed":
        work = "compaction" if event.kind == "compaction" else "preparing the next notes"
        remedy = "; " + REMEDIES[event.extra.get("failure", "summary")]
        if "; " in event.error_message:  # many errors of ours end with a remedy of their own
            remedy = ""
        text = "%s: %s failed, nothing has changed: %s%s"
        log(f"{event.kind}_failed", text, _who(event), work, event.error_message, remedy)
    elif event.kind == "compaction" and event.outcome == "compacted":
        # Another summariser than was asked for has written: somebody should know why.
        why = f", as {escaped(event.error_message)}" if event.error_message else ""
        level = logging.WARNING if why else logging.INFO
        if logger.isEnabledFor(level):
            log("compacted", "%s: %s%s", _who(event), _compacted(event), why, level=level)


def _who(event: Event) -> str:
    if event.scope is None:
        return "a thread"
    names = (event.scope.tenant, event.scope.thread, event.scope.session)
    tenant, thread, session = (escaped(name, LONGEST_NAME) for name in names)
    before = "" if tenant == "local" else f"{tenant}/"
    return f"thread {before}{thread}" + ("" if session == "main" else f" ({session})")


def _compacted(event: Event) -> str:
    extra, by = event.extra, escaped(event.name.partition(":")[2] or event.name, LONGEST_NAME)
    by = "without a model " if by == "embedded" else f"by {by} " if by else ""
    gone = "archived" if extra.get("archived") else "out of view, not archived"
    tries = extra.get("tries_failed")
    parts = [
        f"compacted {event.tokens_before:,} → {event.tokens_after:,} tokens",
        f"{event.messages:,} messages {gone}" if event.messages else "",
        f"{extra['clipped']:,} truncated" if extra.get("clipped") else "",
        f"{by}in {extra.get('waited', event.seconds):.1f} s",
        _money(event) if event.cost.calls else "",
        f"after {tries:,} failed {'try' if tries == 1 else 'tries'}" if tries else "",
    ]
    return ", ".join(part for part in parts if part)


def _money(event: Event) -> str:
    if event.money is None:
        return "price unknown"
    amount = event.money
    text = f"{amount:.2f}" if amount >= 1 or not amount else f"{max(amount, 1e-6):.2g}"
    return f"${text}" if event.currency == "USD" else f"{text} {event.currency}"
