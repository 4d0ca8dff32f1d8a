"""Functions of the caller's that hear of a compaction before it takes effect, or approve it.

They run where the compaction does: in the thread that called it, or in one beside its event loop,
with a copy of the caller's context. Only async functions of `before_summarization` run on the loop.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from conspectus._turns import waiting
from conspectus.bridge import io, is_async
from conspectus.core.records import Draft
from conspectus.engine.material import Material, body_of
from conspectus.errors import SummaryError
from conspectus.messages import Message, Source
from conspectus.messages.message import decode
from conspectus.notes.segment import Segment
from conspectus.observe import log, observing

MOST_ASKED = 20  # Answers that do not fit, after which a preview is given up


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


async def call_hooks(material: Material) -> None:
    """Call the caller's hooks with copies of what leaves and of what stays; log one that fails."""
    engine, scope = material.thread.engine, material.thread.scope
    if not material.to_read:
        return
    closed = engine.redaction is not None
    leave, stay = (
        tuple(_copy_of(entry, closed) for entry in entries)
        for entries in (material.to_read, material.staying)
    )
    names = scope.thread, scope.session, scope.tenant
    event = SummarizationEvent(
        leave,
        stay,
        *names,
        material.plan.cause,
        agent_name=engine.agent_name,
        runtime=engine.runtime,
    )
    for hook in engine.hooks:
        try:
            acall: Any = partial(hook, event) if is_async(hook) else None
            await io(partial(_call, hook, event), acall, engine.settings.summarizer_timeout)
        except Exception:
            # Somebody's memory that is down must not keep a thread from going on.
            text = "before_summarization %r failed; the summary takes effect"
            log("hook_failed", text, hook, exc_info=True)


def _copy_of(entry: Message, closed: bool) -> Source:
    """Copy a message; with `closed` without objects that no redactor can read."""
    message = entry.source
    if closed and not entry.encoded.lossless:
        return decode(entry.encoded.form, entry.encoded.text, entry.given_id)
    try:
        return deepcopy(message)
    except Exception:
        # It holds what cannot be copied, such as a lock: its parts are the history's own then.
        return copy(message)


def _call(hook: BeforeSummarization, event: SummarizationEvent) -> None:
    answer = hook(event)
    if inspect.isawaitable(answer):
        from conspectus.model.callables import apart

        apart(lambda: answer)


class Refused(SummaryError):
    """A person has refused the summary, which raises nothing."""


async def approved(ask: Preview, material: Material, draft: Draft, stored: bool) -> Draft:
    """Return the draft as a person approved it, who is asked again until the text fits.

    That is in the caller's context, where a graph's interrupt works. Raise `Refused` if the person
    does not want it, `SummaryError` if no answer can be used.
    """
    limit, problem = material.most, ""
    request = PreviewRequest(
        summary=draft.text,
        evict=len(material.keys),
        cause=material.plan.cause,
        limit=material.text_within(limit),
        by=draft.by,
        kept=stored,
    )
    with observing("step", name="preview", by=draft.by, outcome="refused") as seen:
        for _ in range(MOST_ASKED):
            with waiting.get()():
                text = ask(replace(request, problem=problem))
            if text is None:
                break
            if not isinstance(text, str):
                raise SummaryError(f"answer a preview by text, or None to refuse: not {text!r:.70}")
            if text == draft.text:
                seen.add(outcome="ok")
                return draft
            edited = await material.clean(body_of(text))  # a redactor may lengthen it
            tokens = material.size(edited)
            if edited and tokens <= limit:
                seen.add(outcome="ok")
                segment = Segment(text=edited, edited=True).to_json()
                return replace(draft, text=edited, tokens=tokens, segment=segment)
            problem = f"it takes {tokens:,} tokens and there is room for {limit:,}; shorten it"
            if not edited:
                problem = "it is empty; refuse it to leave the history as it is"
    if text is None:
        raise Refused("the summary was refused by the person who was asked")
    raise SummaryError(
        f"the preview answered {MOST_ASKED} times with a text that cannot be used ({problem}); "
        "answer with the summary, with a text within `request.limit` tokens, or with None to refuse"
    )
