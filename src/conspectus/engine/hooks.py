"""Functions of the caller's that hear of a compaction before it takes effect, or approve it.

They run where the compaction does: in the thread that called it, or in one beside its event loop,
with a copy of the caller's context. Only async functions of `before_summarization` run on the loop.
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
        summary: the text that would replace the messages that leave.
        evict: messages that would leave the view.
        cause: the reason for the compaction.
        limit: most tokens of the text.
        by: name of the summariser.
        problem: the reason why the last answer cannot be used; empty the first time.
        found: it was made and stored earlier, so it may have been read already.
    """

    summary: str
    evict: int
    cause: str
    limit: int
    by: str
    problem: str = ""
    found: bool = False


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
        agent_name: the name of the agent, as its host or `create_agent(name=...)` gives it; None
            without one.
        runtime: of the graph's run, in an agent; else None.
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
"""A sync or async function. What it returns or raises changes nothing. It may be called again for
the same messages if the archive fails after it."""


async def call_hooks(
    hooks: Sequence[BeforeSummarization], event: SummarizationEvent, timeout: float | None
) -> None:
    """Call each hook with an event, within `timeout` seconds; log one that fails."""
    for hook in hooks:
        try:
            await call_either_way(partial(_call, hook, event), _call_on_loop(hook, event), timeout)
        except Exception:
            # Somebody's memory that is down must not keep a thread from going on.
            text = "before_summarization %r failed; the summary takes effect"
            log("hook_failed", text, hook, exc_info=True)


def copy_for_hook(message: Message, *, redacted: bool) -> Source:
    """Copy a message; if it was redacted, without objects that no redactor can read."""
    if redacted and not message.encoded.lossless:
        return decode(message.encoded.form, message.encoded.text, message.given_id)
    try:
        return deepcopy(message.source)
    except Exception:
        # It holds what cannot be copied, such as a lock: its parts are the history's own then.
        return copy(message.source)


def _call_on_loop(hook: BeforeSummarization, event: SummarizationEvent) -> Any:
    """Return the call of an async hook, which an event loop awaits; None for another one."""
    return partial(hook, event) if is_async(hook) else None


def _call(hook: BeforeSummarization, event: SummarizationEvent) -> None:
    answer = hook(event)
    if inspect.isawaitable(answer):
        from conspectus.model.callables import on_own_loop

        on_own_loop(lambda: answer)
