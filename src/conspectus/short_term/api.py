"""Provide `summarize_messages`, with and without an event loop."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from langchain_core.messages import AnyMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables.config import ensure_config

from conspectus._core.choices import OnFailure
from conspectus.bridge import arun, run
from conspectus.compactor.background import AnyBackground, Background, Preparations, check_seconds
from conspectus.compactor.memory import Memory
from conspectus.compactor.settings import AnyArchive
from conspectus.errors import PolicyError
from conspectus.redaction import Redact
from conspectus.short_term.prompts import (
    DEFAULT_EXISTING_SUMMARY_PROMPT,
    DEFAULT_FINAL_SUMMARY_PROMPT,
    DEFAULT_INITIAL_SUMMARY_PROMPT,
    Prompt,
)
from conspectus.short_term.settings import NAMES, ShortTermSettings, TokenCounter
from conspectus.short_term.step import ShortTermCall
from conspectus.short_term.summary import RunningSummary, SummarizationResult


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
    background: AnyBackground = False,
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
        background: True prepares the next summary in the background, from seven tenths of
            `max_tokens_before_summary` on; `{"prepare": 0.6}` from another share of it. The
            archive, if there is one, must be open. Default: False. See `docs/background.md`.

    Returns:
        The messages to send to the model, and the running summary to pass the next time.

    Raises:
        ValueError: `max_summary_tokens` is not less than `max_tokens`; a message has no id, or one
            that was summarised already; another setting is invalid (`PolicyError`,
            `MessageError`, `InputError`).
        SummaryError, ArchiveError, StuckError: only with `on_failure="raise"`.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> from conspectus_lab.testing.scripted_models import ScriptedChatModel
        >>> talk = [HumanMessage("hello " * 60, id="1"), AIMessage("hi " * 60, id="2")]
        >>> talk.append(HumanMessage("and now?", id="3"))
        >>> model = ScriptedChatModel(answers=["They greeted each other."])
        >>> result = summarize_messages(
        ...     talk, running_summary=None, model=model, max_tokens=140, max_summary_tokens=60,
        ... )
        >>> [message.type for message in result.messages], result.running_summary.summary
        (['system', 'human'], 'They greeted each other.')
    """
    return run(_call(locals()).run(messages, running_summary))


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
    background: AnyBackground = False,
) -> SummarizationResult:
    """`summarize_messages` on an event loop; a model without `ainvoke` gets a thread."""
    return await arun(_call(locals()).run(messages, running_summary))


def close_background(timeout: float | None = None) -> None:
    """Wait for preparations of the functions, so that their store can be closed.

    Args:
        timeout: seconds to wait; later answers of a model are thrown away. Default: no limit.

    Raises:
        PolicyError: `timeout` is no number of seconds.
    """
    run(_closed_flow(timeout))


async def aclose_background(timeout: float | None = None) -> None:
    """`close_background` on an event loop."""
    await arun(_closed_flow(timeout))


async def _closed_flow(timeout: float | None) -> None:
    check_seconds(timeout)
    with _LOCK:
        _CLOSING.update(one for kept in _PREPARING.values() for one, _ in kept.values())
        _PREPARING.clear()
        closing = list(_CLOSING)
    for one in closing:
        await one.close_flow(timeout)
        _CLOSING.discard(one)


_LOCK = threading.Lock()
_CLOSING: set[Preparations] = set()
_PREPARING: WeakKeyDictionary[object, dict[Background, tuple[Preparations, Memory]]]
_PREPARING = WeakKeyDictionary()
"""Preparations of the functions, and memories, by archive and setting: threads of two archives may
have one name. Without an archive, `Memory` itself is the key."""


def _call(given: Mapping[str, Any]) -> ShortTermCall:
    """Make one call of a function; its memory ends with it, unless notes are prepared."""
    settings = ShortTermSettings(**{name: given[name] for name in NAMES})
    archive, setting = settings.archive, Background.of(given["background"])
    if archive == "memory:" or (setting is not None and isinstance(archive, (str, Path))):
        why = "would be gone after the call" if archive == "memory:" else "is used after the call"
        raise PolicyError(
            f"the archive {str(archive)!r} {why}: open it once with "
            f"Archive.open({str(archive)!r}) and pass that"
        )
    preparations, memory = None, Memory()
    if setting is not None:
        with _LOCK:
            kept = _PREPARING.setdefault(Memory if archive is None else archive, {})
            preparations, memory = kept.setdefault(setting, (Preparations(setting), memory))
    return ShortTermCall(settings, memory, given["thread_id"] or thread_of_run(), preparations)


def thread_of_run() -> object:
    """Return the thread of the running graph, or None."""
    return (ensure_config().get("configurable") or {}).get("thread_id")
