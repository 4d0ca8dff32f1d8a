"""The hook before a summary takes effect: it gets what is about to leave, and can undo nothing."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any

from conspectus._drive import Flow, Io
from conspectus._langchain import is_message
from conspectus.archive import Scope
from conspectus.errors import PolicyError
from conspectus.events.notes import noted
from conspectus.messages import Entry, Source, decode

logger = logging.getLogger("conspectus")


@dataclass(frozen=True, slots=True)
class SummarizationEvent:
    """What is about to happen to a history.

    Attributes:
        messages_to_summarize: what leaves the model's view, whole, oldest first; copies, save
            for parts that cannot be copied.
        preserved_messages: what stays in it; copies.
        thread_id: of the conversation.
        session: whose history in that thread: `main`, or a subagent's own.
        tenant: whose conversation it is.
        cause: what asked for the compaction, in words.
    """

    messages_to_summarize: tuple[Source, ...]
    preserved_messages: tuple[Source, ...]
    thread_id: str
    session: str
    tenant: str
    cause: str


BeforeSummarization = Callable[[SummarizationEvent], Any]
"""A function, sync or async. What it returns or raises changes nothing. It may be called again for
the same messages where the archive fails after it."""


def hooks_of(given: BeforeSummarization | Sequence[BeforeSummarization] | None) -> tuple[Any, ...]:
    """The hooks from what a user writes: one, several or none.

    Raises:
        PolicyError: one of them cannot be called.
    """
    if given is None:
        return ()
    hooks = (given,) if callable(given) else tuple(given)
    for hook in hooks:
        if not callable(hook):
            raise PolicyError(
                f"before_summarization must be callables that take an event, not {hook!r}"
            )
    return hooks


def event_of(
    leaving: Sequence[Entry],
    staying: Sequence[Entry],
    scope: Scope,
    cause: str,
    *,
    closed: bool = False,
) -> SummarizationEvent:
    """The event for these messages; what hooks do with theirs stays with them.

    Where it is `closed`, objects that no redactor can look into are left out of messages.
    """
    return SummarizationEvent(
        tuple(_closed(entry) if closed else _copy(entry.source) for entry in leaving),
        tuple(_closed(entry) if closed else _copy(entry.source) for entry in staying),
        scope.thread,
        scope.session,
        scope.tenant,
        cause,
    )


def _closed(entry: Entry) -> Source:
    """A copy of a message; of one with an object of a program in it, as it is archived."""
    encoded = entry.encoded
    if encoded.lossless:
        return _copy(entry.source)
    return decode(encoded.form, encoded.text, entry.given_id)


def _copy(message: Source) -> Source:
    try:
        return message.model_copy(deep=True) if is_message(message) else deepcopy(message)
    except Exception:
        # It holds what cannot be copied, such as a lock: its parts are the history's own then.
        return message.model_copy() if is_message(message) else copy(message)


def tell(
    hooks: Sequence[BeforeSummarization], event: SummarizationEvent, timeout: float | None
) -> Flow[None]:
    """Call each hook in turn; one that fails, or takes too long, is logged.

    Args:
        hooks: whom to tell.
        event: what is about to happen.
        timeout: seconds for each; None for no limit.
    """
    for hook in hooks:
        try:
            yield Io(lambda h=hook: _call(h, event), lambda h=hook: _acall(h, event), timeout)  # type: ignore[misc]
        except Exception:
            # Somebody's memory that is down must not keep a thread from going on.
            logger.exception(
                "before_summarization %r failed; the summary takes effect",
                hook,
                extra=noted("hook_failed"),
            )


def _call(hook: BeforeSummarization, event: SummarizationEvent) -> None:
    answer = hook(event)
    if inspect.isawaitable(answer):
        from conspectus.summarize.callables import apart

        apart(lambda: answer)


async def _acall(hook: BeforeSummarization, event: SummarizationEvent) -> None:
    if inspect.iscoroutinefunction(hook):
        await hook(event)
        return
    answer = await asyncio.to_thread(hook, event)  # it may wait, and others have the loop
    if inspect.isawaitable(answer):
        await answer
