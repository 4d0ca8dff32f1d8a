"""Tell listeners what happens: one type of event, for work of every kind; and the log.

The logger `conspectus` has one line for each compaction, and a warning with a remedy for a failure.

A context variable holds the work under way. It goes along into tasks and threads, so that inner
events know whose history they belong to, and which listeners hear them.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar, Token, copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from conspectus._turns import waiting
from conspectus.core.records import Cost, to_plain
from conspectus.errors import ArchiveOvertaken, PolicyError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened. It holds no text of a message, but `error_message` may quote one.

    `docs/operations.md` lists the kinds with their names, outcomes and `extra`. `messages` and
    sizes of the view are None where they have no meaning, `money`, in US dollars, where a price is
    unknown; `seconds` is 0 for an event without a length.
    """

    kind: str
    name: str = ""
    outcome: str = "ok"
    scope: Any = None
    seconds: float = 0.0
    tokens_before: int | None = None
    tokens_after: int | None = None
    messages: int | None = None
    cost: Cost = field(default_factory=Cost)
    money: float | None = None
    error: str = ""
    error_message: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        names = (name for name in to_plain(self) if name not in ("cost", "extra"))
        return f"Event({', '.join(f'{name}={getattr(self, name)!r:.80}' for name in names)})"


FIELDS = frozenset(part.name for part in dataclasses.fields(Event))

Listener = Callable[[Event], object]
"""Called with each event at its end, on the thread where it happened. One that raises changes
nothing. If it has a method `begin`, that is called with the event as known at its beginning, and
returns what is called at the end instead; so spans are made."""

_listeners: tuple[Listener, ...] = ()
_failed: set[tuple[int, str]] = set()
_context: ContextVar[tuple[Listener, ...]] = ContextVar("conspectus listeners", default=())
_around: ContextVar[Observation | None] = ContextVar("conspectus work", default=None)


def listen(listener: Listener) -> None:
    """Add a listener for all events of this process, once.

    Raises:
        PolicyError: it cannot be called with an event.
    """
    global _listeners
    _listeners = tuple(dict.fromkeys((*_listeners, *listeners_of(listener))))


def unlisten(listener: Listener) -> None:
    """Remove a listener, if it is there."""
    global _listeners
    _listeners = tuple(other for other in _listeners if other != listener)


def listeners_of(setting: object) -> tuple[Listener, ...]:
    """Return the value of a `telemetry=` as listeners: None, one, or several.

    Raises:
        PolicyError: one of them cannot be called with an event.
    """
    if setting is None:
        return ()
    several = tuple(setting) if isinstance(setting, (list, tuple)) else (setting,)
    for each in several:
        if not callable(each) or isinstance(each, type):
            form = "a listener is a callable that takes an event, such as a function or"
            raise PolicyError(f"{form} conspectus.observe.OpenTelemetry(), not {each!r}")
    return several


def listening() -> bool:
    """Return whether there are listeners here and now."""
    return bool(_listeners or _context.get())


async def heard_by(listeners: Sequence[Listener], work: Awaitable[T]) -> T:
    """Do work whose events these listeners hear too, beside those of the process."""
    token = _context.set((*_context.get(), *listeners))
    try:
        result = await work
    except GeneratorExit:  # closed, perhaps by the collector: the context here is not its own
        raise
    except BaseException:
        _reset(_context, token)
        raise
    _reset(_context, token)
    return result


def _reset(variable: ContextVar[Any], token: Token[Any]) -> None:
    """Reset a variable, unless a framework goes on with a coroutine in another context."""
    with contextlib.suppress(ValueError):
        variable.reset(token)


def emit(kind: str, scope: Any = None, /, **facts: Any) -> None:
    """Tell of an event without a length."""
    Observation(kind, scope, **facts).end({})


class Observation:
    """Work under way, in a `with`; its history is by default that of the outer one.

    Those who listen at its beginning hear of its end. `spent` is what models took inside it so far.
    With `hides_errors` no text of an error is in its event, or in those of inner work, but one that
    is added: the rest may be secret.
    """

    def __init__(self, kind: str, scope: Any = None, /, **facts: Any) -> None:
        self._kind, self._facts = kind, facts
        self._around = outer = _around.get()
        self._scope: Any = scope or (outer._scope if outer else None)
        self.hides_errors: bool = outer is not None and outer.hides_errors
        self.spent = Cost()
        self._ends: dict[Listener, Listener] = {one: one for one in (*_listeners, *_context.get())}

    def add(self, **facts: Any) -> None:
        """Add fields of the event; those that it does not have go into `extra`."""
        self._facts.update(facts)

    def __enter__(self) -> Observation:
        self._token: Token[Observation | None] = _around.set(self)
        self._context = copy_context()
        for listener in self._ends:
            if hasattr(listener, "begin"):
                begun = _tell(listener, listener.begin, self._event({}))
                self._ends[listener] = begun or listener
        self._start = time.perf_counter()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        ended: dict[str, Any] = {"seconds": time.perf_counter() - self._start}
        if error is not None:
            ended |= _ended_by(error)
        if isinstance(error, GeneratorExit):
            self._end_elsewhere(ended)
            return
        _reset(_around, self._token)
        if self.hides_errors:
            ended.pop("error_message", None)
        event = self.end(ended)
        told = error is None and self._kind in ("compaction", "preparation")
        wrong = event.outcome == "failed" or event.error_message
        # The line of a success is made only where somebody reads it.
        if told and (wrong or logger.isEnabledFor(logging.INFO)):
            _log_event(event)

    def _end_elsewhere(self, ended: Mapping[str, Any]) -> None:
        """Tell the listeners in a thread, in the context of this work.

        The collector closes a coroutine in the midst of other work, which may hold locks that a
        listener takes.
        """
        work = partial(self._context.run, self.end, ended)
        with contextlib.suppress(RuntimeError):  # the process ends
            threading.Thread(target=work, daemon=True, name="conspectus").start()

    def end(self, ended: Mapping[str, Any]) -> Event:
        """Tell the listeners how it ended."""
        event, outer = self._event(ended), self._around
        while outer is not None and event.kind == "model_call":
            outer.spent += event.cost
            outer = outer._around
        for listener, end in reversed(self._ends.items()):
            _tell(listener, end, event)
        return event

    def _event(self, ended: Mapping[str, Any]) -> Event:
        facts = {"cost": self.spent, **ended, **self._facts}
        if ended.get("outcome", "error") != "error":
            facts["outcome"] = ended["outcome"]
        if facts["cost"].calls and facts.get("money") is None:
            from conspectus.observe.prices import price_of  # which logs

            facts["money"] = price_of(facts["cost"])
        known = {name: facts.pop(name) for name in FIELDS & facts.keys()}
        return Event(kind=self._kind, scope=self._scope, extra=facts, **known)


observing = Observation  # as in `with observing("recall", scope) as seen:`


def is_way_out(error: BaseException) -> bool:
    """Whether this is how LangGraph leaves a node: to ask a person, or for a parent's command."""
    # Known by name, as nothing here imports it.
    return any(kind.__name__ == "GraphBubbleUp" for kind in type(error).__mro__)


def _ended_by(error: BaseException) -> dict[str, Any]:
    """Return the fields of an event that describe how work ended."""
    if is_way_out(error):
        return {"outcome": "interrupted"}
    if isinstance(error, ArchiveOvertaken):
        return {"outcome": "overtaken"}
    if isinstance(error, (GeneratorExit, asyncio.CancelledError, KeyboardInterrupt)):
        return {"outcome": "cancelled"}
    return {"outcome": "error", **error_fields(error)}


def error_fields(error: BaseException) -> dict[str, str]:
    """Return the class of an error, or of its cause, and its text on one line."""
    cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
    message = " ".join(as_text(error).split())[:500]
    return {"error": type(cause).__qualname__, "error_message": message}


def _tell(listener: Listener, call: Listener, event: Event) -> Any:
    """Call a listener; log its failure, once for each class of error, and go on."""
    try:
        with waiting.get()():
            return call(event)
    except Exception as error:
        key = (id(listener), type(error).__qualname__)
        if key not in _failed:
            _failed.add(key)
            text = "the listener %r failed and is called on; this is said once"
            log("listener_failed", text, listener, exc_info=error)


# The log

logger = logging.getLogger("conspectus")

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


def as_text(value: object) -> str:
    """Return the text of any value, also of an error whose `__str__` raises."""
    try:
        return str(value)
    except Exception:
        return f"a {type(value).__name__} without a text"


def _escaped(value: object) -> str:
    """Return a text on one line, cut to a length."""
    text = as_text(value)
    text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def _on_one_line(record: logging.LogRecord) -> bool:
    """Keep texts of others from beginning a line of the log, whoever wrote the sentence."""
    if isinstance(record.args, tuple):
        plain = (int, float)
        record.args = tuple(x if isinstance(x, plain) else _escaped(x) for x in record.args)
    if record.exc_info and not record.exc_text:
        text = logging.Formatter().formatException(record.exc_info)
        record.exc_text = "\n".join("    " + _escaped(line) for line in text.splitlines())
    return True


logger.addFilter(_on_one_line)


def _log_event(event: Event) -> None:
    """Log the line of a compaction, or of a failure with what to do."""
    history = "a thread"
    if event.scope is not None:
        names = (event.scope.tenant, event.scope.thread, event.scope.session)
        tenant, thread, session = (f"{name:.{LONGEST_NAME}}" for name in names)
        history = f"thread {'' if tenant == 'local' else f'{tenant}/'}{thread}"
        history += "" if session == "main" else f" ({session})"
    if event.outcome == "failed":
        work = "compaction" if event.kind == "compaction" else "preparing the next notes"
        remedy = "; " + REMEDIES[event.extra.get("failure", "summary")]
        if "; " in event.error_message:  # many errors of ours end with a remedy of their own
            remedy = ""
        text = "%s: %s failed, nothing has changed: %s%s"
        log(f"{event.kind}_failed", text, history, work, event.error_message, remedy)
    elif event.kind == "compaction" and event.outcome == "compacted":
        # Another summariser than was asked for has written: somebody should know why.
        why = f", as {event.error_message}" if event.error_message else ""
        level = logging.WARNING if why else logging.INFO
        log("compacted", "%s: %s%s", history, _compacted(event), why, level=level)


def _compacted(event: Event) -> str:
    extra, by = event.extra, (event.name.partition(":")[2] or event.name)[:LONGEST_NAME]
    by = "without a model " if by == "embedded" else f"by {by} " if by else ""
    gone = "archived" if extra.get("archived") else "out of view, not archived"
    tries = extra.get("tries_failed")
    # As the trigger counts, so that a reader can compare both.
    before = extra.get("trigger_before", event.tokens_before)
    after = extra.get("trigger_after", event.tokens_after)
    parts = [
        f"compacted {before:,} → {after:,} tokens ({extra.get('cause')})",
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
    whole = event.money >= 1 or not event.money
    return f"${event.money:.2f}" if whole else f"${max(event.money, 1e-6):.2g}"
