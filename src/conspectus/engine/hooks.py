"""Functions of the caller's that hear of a compaction before it takes effect, or approve it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

from conspectus._langchain import is_message
from conspectus.bridge import io
from conspectus.errors import PolicyError
from conspectus.messages import Message, Source, decode
from conspectus.observe import log


@dataclass(frozen=True, slots=True)
class PreviewRequest:
    """The question to a person before a summary takes effect.

    Attributes:
        summary: the text that would replace the messages that leave.
        evict: messages that would leave the view.
        cause: the reason for the compaction.
        limit: most tokens of the text.
        by: name of the summariser.
        problem: the reason why the last answer cannot be used; empty the first time.
        kept: it was made and stored earlier, so it may have been read already.
    """

    summary: str
    evict: int
    cause: str
    limit: int
    by: str
    problem: str = ""
    kept: bool = False


Preview = Callable[[PreviewRequest], str | None]
"""Return the text that is to take effect, or None to refuse it."""


@dataclass(frozen=True, slots=True)
class SummarizationEvent:
    """The compaction that is about to take effect.

    Attributes:
        messages_to_summarize: the messages that leave the model's view, whole, oldest first;
            copies, save for parts that cannot be copied.
        preserved_messages: copies of the messages that stay in view.
        thread_id: of the conversation.
        session: the agent's history in that thread: `main`, or a subagent's own.
        tenant: the owner of the conversation.
        cause: the reason for the compaction, in words.
    """

    messages_to_summarize: tuple[Source, ...]
    preserved_messages: tuple[Source, ...]
    thread_id: str
    session: str
    tenant: str
    cause: str


BeforeSummarization = Callable[[SummarizationEvent], Any]
"""A sync or async function. What it returns or raises changes nothing. It may be called again for
the same messages if the archive fails after it."""


def hooks_of(given: BeforeSummarization | Sequence[BeforeSummarization] | None) -> tuple[Any, ...]:
    """Read `before_summarization`: none, one or several functions."""
    hooks = () if given is None else (given,) if callable(given) else tuple(given)
    for hook in hooks:
        if not callable(hook):
            raise PolicyError(
                f"before_summarization must be callables that take an event, not {hook!r}"
            )
    return hooks


def copied(entries: Sequence[Message], *, closed: bool) -> tuple[Source, ...]:
    """Copy messages for hooks; with `closed` without objects that no redactor can read."""

    def one(entry: Message) -> Source:
        message = entry.source
        if closed and not entry.encoded.lossless:
            return decode(entry.encoded.form, entry.encoded.text, entry.given_id)
        try:
            return message.model_copy(deep=True) if is_message(message) else deepcopy(message)
        except Exception:
            # It holds what cannot be copied, such as a lock: its parts are the history's own then.
            return message.model_copy() if is_message(message) else copy(message)

    return tuple(map(one, entries))


async def call_hooks(
    hooks: Sequence[BeforeSummarization], event: SummarizationEvent, timeout: float | None
) -> None:
    """Call each hook in turn, at most `timeout` seconds; log one that fails."""
    for hook in hooks:
        try:
            await io(partial(_call, hook, event), partial(_acall, hook, event), timeout)
        except Exception:
            # Somebody's memory that is down must not keep a thread from going on.
            text = "before_summarization %r failed; the summary takes effect"
            log("hook_failed", text, hook, exc_info=True)


def _call(hook: BeforeSummarization, event: SummarizationEvent) -> None:
    answer = hook(event)
    if inspect.isawaitable(answer):
        from conspectus.model.callables import apart

        apart(lambda: answer)


async def _acall(hook: BeforeSummarization, event: SummarizationEvent) -> None:
    if inspect.iscoroutinefunction(hook):
        await hook(event)
        return
    answer = await asyncio.to_thread(hook, event)  # it may wait, and others have the loop
    if inspect.isawaitable(answer):
        await answer
