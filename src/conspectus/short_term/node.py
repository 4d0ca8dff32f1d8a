"""Provide `SummarizationNode`: the function as a node of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from langchain_core.messages import RemoveMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import RunnableConfig
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.utils.runnable import RunnableCallable  # type: ignore[attr-defined]
from pydantic import BaseModel

from conspectus.bridge import arun, run
from conspectus.core.policy import OnFailure
from conspectus.engine.background import AnyBackground, Closing, Preparations
from conspectus.engine.memory import Memory
from conspectus.engine.settings import AnyArchive, open_archive
from conspectus.errors import InputError
from conspectus.redaction import Redact
from conspectus.short_term.prompts import (
    DEFAULT_EXISTING_SUMMARY_PROMPT,
    DEFAULT_FINAL_SUMMARY_PROMPT,
    DEFAULT_INITIAL_SUMMARY_PROMPT,
    Prompt,
)
from conspectus.short_term.settings import NAMES, ShortTerm, TokenCounter
from conspectus.short_term.step import summarized


class SummarizationNode(ShortTerm, Closing, RunnableCallable):
    """Summarise the oldest messages of a state once enough has gathered.

    It takes the parameters of `summarize_messages`, and reads and writes the state in LangMem's
    form: `{output_messages_key: [...], "context": {"running_summary": RunningSummary}}`, the latter
    once something was summarised. It works with and without an event loop.

    Args:
        model, max_tokens, max_tokens_before_summary, max_summary_tokens: as for
            `summarize_messages`.
        token_counter, initial_summary_prompt, existing_summary_prompt, final_prompt: likewise.
        input_messages_key: where the state has the history. Default: `"messages"`.
        output_messages_key: where the result goes. Default: `"summarized_messages"`. The same as
            `input_messages_key` replaces the history.
        name: of the node. Default: `"summarization"`.
        archive, on_failure, redact, notes: as for `summarize_messages`. The archive is opened once.
        background: True prepares the next summary in the background, from seven tenths of
            `max_tokens_before_summary` on; `{"prepare": 0.6}` from another share of it. Close the
            node, or use it as a context manager, before you close its store. Default: False. See
            `docs/operations.md`.
        thread_id: the conversation, for the archive. Default: that of each run's config.

    Raises:
        ValueError: a setting is invalid (`PolicyError`).
        ArchiveError: the archive cannot be opened.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> from langchain_core.language_models import FakeListChatModel
        >>> node = SummarizationNode(
        ...     model=FakeListChatModel(responses=["A talk."]), max_tokens=1_000
        ... )
        >>> list(node.invoke({"messages": [HumanMessage("hi", id="1")]}))
        ['summarized_messages']
    """

    def __init__(
        self,
        *,
        model: Any,
        max_tokens: int,
        max_tokens_before_summary: int | None = None,
        max_summary_tokens: int = 256,
        token_counter: TokenCounter = count_tokens_approximately,
        initial_summary_prompt: Prompt = DEFAULT_INITIAL_SUMMARY_PROMPT,
        existing_summary_prompt: Prompt = DEFAULT_EXISTING_SUMMARY_PROMPT,
        final_prompt: Prompt = DEFAULT_FINAL_SUMMARY_PROMPT,
        input_messages_key: str = "messages",
        output_messages_key: str = "summarized_messages",
        name: str = "summarization",
        archive: AnyArchive | None = None,
        thread_id: str | None = None,
        on_failure: OnFailure = "degrade",
        redact: Redact = None,
        notes: bool = False,
        background: AnyBackground = False,
    ) -> None:
        settings = {name: value for name, value in locals().items() if name in NAMES}
        ShortTerm.__init__(self, **settings)  # what is invalid is refused before it is opened
        RunnableCallable.__init__(self, self._summarise, self._asummarise, name=name, trace=False)
        self.archive = opened = open_archive(archive)
        self._opened = opened if isinstance(archive, (str, Path)) else None
        self._thread = thread_id
        self.input_messages_key = input_messages_key
        self.output_messages_key = output_messages_key

    def _summarise(self, given: Any, config: RunnableConfig) -> dict[str, Any]:
        return run(self._updated(given, config))

    async def _asummarise(self, given: Any, config: RunnableConfig) -> dict[str, Any]:
        return await arun(self._updated(given, config))

    async def _updated(self, given: Any, config: RunnableConfig) -> dict[str, Any]:
        messages, context = self._read(given)
        thread = self._thread or (config.get("configurable") or {}).get("thread_id")
        same = self.input_messages_key == self.output_messages_key
        running = context.get("running_summary")
        done = await summarized(self, messages, running, thread, named=same)
        update: dict[str, Any] = {self.output_messages_key: done.messages}
        if done.running_summary is not None:
            if same:
                removal = RemoveMessage(REMOVE_ALL_MESSAGES)
                update[self.output_messages_key] = [removal, *done.messages]
            update["context"] = {**context, "running_summary": done.running_summary}
        return update

    def __getstate__(self) -> dict[str, Any]:
        """Copy without caches and preparations; the original closes the archive."""
        return {
            **vars(self),
            **dict.fromkeys(("func", "afunc", "memory", "_background", "_opened")),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, func=self._summarise, afunc=self._asummarise)
        self.memory, self._background = Memory(), Preparations.of(self.background)

    def _read(self, given: Any) -> tuple[Any, Mapping[str, Any]]:
        if not isinstance(given, (Mapping, BaseModel)):
            raise InputError(f"Invalid input type: {type(given)}. Give a dict or a pydantic model.")
        state = given if isinstance(given, Mapping) else vars(given)
        messages, context = state.get(self.input_messages_key), state.get("context")
        if messages is None:
            raise InputError(
                f"Missing required field `{self.input_messages_key}` in the input. Name the one "
                "that holds the history with input_messages_key."
            )
        if context is not None and not isinstance(context, Mapping):
            raise InputError(f"context must be a dict, not {type(context).__name__}")
        return messages, context or {}
