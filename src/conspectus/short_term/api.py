"""Provide `summarize_messages`, with and without an event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AnyMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables.config import ensure_config

from conspectus.bridge import arun, run
from conspectus.core.policy import OnFailure
from conspectus.engine.settings import AnyArchive
from conspectus.errors import PolicyError
from conspectus.redaction import Redact
from conspectus.short_term.prompts import (
    DEFAULT_EXISTING_SUMMARY_PROMPT,
    DEFAULT_FINAL_SUMMARY_PROMPT,
    DEFAULT_INITIAL_SUMMARY_PROMPT,
    Prompt,
)
from conspectus.short_term.running_summary import RunningSummary, SummarizationResult
from conspectus.short_term.settings import NAMES, ShortTerm, TokenCounter
from conspectus.short_term.step import summarized


def summarize_messages(
    messages: Sequence[AnyMessage],
    *,
    running_summary: RunningSummary | None,
    model: Any,
    max_tokens: int,
    max_tokens_before_summary: int | None = None,
    max_summary_tokens: int = 256,
    token_counter: TokenCounter = count_tokens_approximately,
    initial_summary_prompt: Prompt = DEFAULT_INITIAL_SUMMARY_PROMPT,
    existing_summary_prompt: Prompt = DEFAULT_EXISTING_SUMMARY_PROMPT,
    final_prompt: Prompt = DEFAULT_FINAL_SUMMARY_PROMPT,
    archive: AnyArchive | None = None,
    thread_id: str | None = None,
    on_failure: OnFailure = "degrade",
    redact: Redact = None,
    notes: bool = False,
) -> SummarizationResult:
    """Replace the oldest messages by a summary once enough has gathered.

    From the oldest to the newest: once `max_tokens_before_summary` have gathered and the rest fits
    in `max_tokens`, less the system message and `max_summary_tokens`, all up to there is
    summarised. A leading system message, the newest human message, the last exchange and unanswered
    calls stay; a call and its results stay together. What is longer than `max_tokens` is read in
    several calls of the model. A summary that fails a check never takes effect.

    Args:
        messages: the history, with ids: whole, or the last result and what is new.
        running_summary: of the last result; None the first time. A dict with the same names, as
            from a strict serializer, will do.
        model: writes the summary: a chat model, or anything whose `invoke` takes a list of
            messages. It is not told how long the summary may be: use `model.bind(max_tokens=...)`.
        max_tokens: most tokens of the result, once something was summarised.
        max_tokens_before_summary: tokens that gather before that. Default: `max_tokens`.
        max_summary_tokens: tokens set aside for the summary. A longer one is sent back once to be
            shortened, and then refused. Default: 256.
        token_counter: tokens of a list of messages. Default: LangChain's approximate count. A
            message object is counted once.
        initial_summary_prompt: asks for the first summary. Slot: `messages`.
        existing_summary_prompt: asks to update it. Slots: `messages`, `existing_summary`.
        final_prompt: puts the result together. Slots: `system_message`, `summary`, `messages`.
        archive: where originals go before they leave: an `Archive`, a LangGraph store, a path or a
            URL. Default: nowhere; then nothing is shown short, and nothing can be recalled.
        thread_id: the conversation, for the archive. Default: that of the graph's config.
        on_failure: when no summary can be made: `"degrade"` keeps the history while it fits
            `max_tokens`, and else uses the embedded summariser; `"keep"` keeps it; `"raise"`
            raises. Default: `"degrade"`.
        redact: takes secrets out of all that is archived or summarised; see `Compactor`. Default:
            None, for off.
        notes: whether the user's words and one line a call are written beside the model's summary;
            see `Compactor`. Default: False, the summary alone, as in LangMem.

    Returns:
        The messages to send to the model, and the running summary to pass the next time.

    Raises:
        ValueError: `max_summary_tokens` is not less than `max_tokens`; a message has no id, or one
            that was summarised already; another setting is invalid (`PolicyError`,
            `MessageError`, `InputError`).
        SummaryError, ArchiveError, StuckError: only with `on_failure="raise"`.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> from langchain_core.language_models import FakeListChatModel
        >>> talk = [HumanMessage("hello " * 60, id="1"), AIMessage("hi " * 60, id="2")]
        >>> talk.append(HumanMessage("and now?", id="3"))
        >>> model = FakeListChatModel(responses=["They greeted each other."])
        >>> result = summarize_messages(
        ...     talk, running_summary=None, model=model, max_tokens=140, max_summary_tokens=60,
        ... )
        >>> [message.type for message in result.messages], result.running_summary.summary
        (['system', 'human'], 'They greeted each other.')
    """
    return run(_call(locals()))


async def asummarize_messages(
    messages: Sequence[AnyMessage],
    *,
    running_summary: RunningSummary | None,
    model: Any,
    max_tokens: int,
    max_tokens_before_summary: int | None = None,
    max_summary_tokens: int = 256,
    token_counter: TokenCounter = count_tokens_approximately,
    initial_summary_prompt: Prompt = DEFAULT_INITIAL_SUMMARY_PROMPT,
    existing_summary_prompt: Prompt = DEFAULT_EXISTING_SUMMARY_PROMPT,
    final_prompt: Prompt = DEFAULT_FINAL_SUMMARY_PROMPT,
    archive: AnyArchive | None = None,
    thread_id: str | None = None,
    on_failure: OnFailure = "degrade",
    redact: Redact = None,
    notes: bool = False,
) -> SummarizationResult:
    """`summarize_messages` on an event loop; a model without `ainvoke` gets a thread."""
    return await arun(_call(locals()))


def _call(given: Mapping[str, Any]) -> Awaitable[SummarizationResult]:
    own = ShortTerm(**{name: given[name] for name in NAMES if name in given})
    if own.archive == "memory:":
        raise PolicyError(
            "an archive of 'memory:' would be gone after each call; make one with "
            "Archive.open('memory:') and pass that"
        )
    thread = given["thread_id"] or (ensure_config().get("configurable") or {}).get("thread_id")
    return summarized(own, given["messages"], given["running_summary"], thread)
