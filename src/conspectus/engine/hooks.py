"""Functions of the caller that are called before a compaction takes effect, or that approve it.

They run in the calling thread; in async code, in another thread than the event loop, with a copy of
the caller's context. Only async functions of `before_summarization` run on the event loop.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

from conspectus.bridge import call_either_way, is_async
from conspectus.messages import Message, Source
from conspectus.messages.message import decode
from conspectus.observe import log


@dataclass(frozen=True, slots=True)
class PreviewRequest:
    """The question to a person before a summary takes effect.

    Attributes:
        summary: the text of the summary.
        evict: number of messages that the compaction would evict.
        cause: what caused the compaction.
        limit: the most tokens that the text may have.
        by: the name of the summariser.
        problem: why the last answer cannot be used; empty the first time.
        found: whether the summary was made and stored earlier, so that a person may have read it.
    """

    summary: str
    evict: int
    cause: str
    limit: int
    by: str
    problem: str = ""
    found: bool = False


Preview = Callable[[PreviewRequest], str | None]
"""A function that returns the text that takes effect, or None to decline it."""


@dataclass(frozen=True, slots=True)
class SummarizationEvent:
    """A compaction that is about to take effect.

    Attributes:
        messages_to_summarize: the messages that are about to be evicted, complete, the oldest
            first. They are copies, except for parts that cannot be copied.
        preserved_messages: copies of the messages that stay in the view.
        thread_id: the name of the conversation.
        session: the name of the agent's history in it: `main`, or that of a subagent.
        tenant: the owner of the conversation.
        cause: what caused the compaction, in words.
        agent_name: the name of the agent, from its host or `create_agent(name=...)`; None if it has
            none.
        runtime: in an agent, the runtime of the graph's run; else None.
    """

    messages_to_summarize: tuple[Source, ...]
    preserved_messages: tuple[Source, ...]
    thread_id: str
    session: str
    tenant: str
    cause: str
    agent_name: str | None = None
    runtime: Any = None


BeforeSummarization = Callable[[SummarizationEvent], Any]
"""A sync or async function. What it returns is ignored, and so is an error that it raises. It may
be called again for the same messages if the archive fails after it."""


async def call_hooks(
    hooks: Sequence[BeforeSummarization], event: SummarizationEvent, timeout: float | None
) -> None:
    """Call each hook with an event, within `timeout` seconds; log one that fails."""
    for hook in hooks:
        try:
            await call_either_way(
                partial(_call_hook, hook, event), _async_call(hook, event), timeout
            )
        except Exception:
            # If a caller's memory is down, the thread must continue.
            text = "before_summarization %r failed; the summary takes effect"
            log("hook_failed", text, hook, exc_info=True)


def copy_for_hook(message: Message, *, redacted: bool) -> Source:
    """Copy a message; if it was redacted, without objects that no redactor can read."""
    if redacted and not message.encoded.lossless:
        return decode(message.encoded.form, message.encoded.text, message.given_id)
    try:
        return deepcopy(message.source)
    except Exception:
        # It has a part that cannot be copied, such as a lock. Then the parts are not copied.
        return copy(message.source)


def _async_call(hook: BeforeSummarization, event: SummarizationEvent) -> Any:
    """Return the call of an async hook, which an event loop awaits; None for another one."""
    return partial(hook, event) if is_async(hook) else None


def _call_hook(hook: BeforeSummarization, event: SummarizationEvent) -> None:
    answer = hook(event)
    if inspect.isawaitable(answer):
        from conspectus.model.callables import on_own_loop

        on_own_loop(lambda: answer)
