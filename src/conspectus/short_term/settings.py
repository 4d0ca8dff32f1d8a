"""What LangMem's functions and node take, under LangMem's names, and a few settings of ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from annotated_types import Ge
from langchain_core.messages import AnyMessage
from langchain_core.messages.utils import count_tokens_approximately

from conspectus._arguments import Check, Checked
from conspectus.engine.settings import CommonSettings, ReservedTokens, Tokens
from conspectus.errors import PolicyError
from conspectus.short_term.prompts import (
    DEFAULT_EXISTING_SUMMARY_PROMPT,
    DEFAULT_FINAL_SUMMARY_PROMPT,
    DEFAULT_INITIAL_SUMMARY_PROMPT,
    Prompt,
)
from conspectus.short_term.running_summary import RunningSummary
from conspectus.tokens import TokenMeter

TokenCounter = Callable[[Any], int]
"""LangMem's name. Fractions are rounded up."""


def _can_be_invoked(value: object) -> bool:
    return hasattr(value, "invoke")


Model = Annotated[
    Any, Check(_can_be_invoked, "a chat model, whose method invoke takes a list of messages")
]
Template = Annotated[Prompt, Check(_can_be_invoked, "a ChatPromptTemplate")]


@dataclass(frozen=True, kw_only=True)
class ShortTermSettings(CommonSettings):
    """What `summarize_messages` and `SummarizationNode` share."""

    model: Model
    """The model that writes the summary.

    A chat model, or anything whose `invoke` takes a list of messages. It is told how long the
    summary may be: `max_summary_tokens`, or less where the model has a limit, as by
    `model.bind(max_tokens=128)`. A summary that ends at such a limit is used up to its last whole
    sentence.
    """
    max_tokens: Tokens
    """Most tokens of the result of a call that summarises.

    Messages that gather after it may exceed them until the next summary.
    """
    max_tokens_before_summary: Annotated[int, Ge(0)] | None = None
    """Tokens that gather before a summary. Default: `max_tokens`."""
    max_summary_tokens: ReservedTokens = 256
    """Tokens set aside for the summary.

    A longer one is sent back once to be shortened, and then cut behind its last whole sentence that
    fits. From 64 on; fewer are set aside only.
    """
    token_counter: TokenCounter = count_tokens_approximately
    """Tokens of a list of messages. Default: LangChain's approximate count."""
    initial_summary_prompt: Template = field(default_factory=lambda: DEFAULT_INITIAL_SUMMARY_PROMPT)
    """Asks for the first summary. Slot: `messages`. Default: LangMem's."""
    existing_summary_prompt: Template = field(
        default_factory=lambda: DEFAULT_EXISTING_SUMMARY_PROMPT
    )
    """Asks to update it. Slots: `messages`, `existing_summary`. Default: LangMem's."""
    final_prompt: Template = field(default_factory=lambda: DEFAULT_FINAL_SUMMARY_PROMPT)
    """Puts the result together. Slots: `system_message`, `summary`, `messages`. Default: LangMem's.
    """
    thread_id: str | None = None
    """The conversation, for the archive. Default: that of the graph's config."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_summary_tokens >= self.max_tokens:
            # The first sentence is the one that users of LangMem look for.
            raise PolicyError(
                "`max_summary_tokens` must be less than `max_tokens`. They are "
                f"{self.max_summary_tokens:,} and {self.max_tokens:,}, which leaves no room for "
                "any message: lower the first one."
            )
        TokenMeter(self.token_counter)  # raises for what counts nothing


@dataclass(frozen=True, kw_only=True)
class SummarizationCall(ShortTermSettings):
    """What `summarize_messages` takes."""

    messages: Sequence[AnyMessage] = field(kw_only=False)
    """The history, with ids: whole, or the last result and what is new."""
    running_summary: RunningSummary | None
    """The one of the last result; None the first time.

    A dict with the same names, as from a strict serializer, will do.
    """


@dataclass(frozen=True, kw_only=True)
class StateKeys(Checked):
    """Where a node finds the history, and where it puts the result."""

    input_messages_key: str = "messages"
    """Key of the state that has the history."""
    output_messages_key: str = "summarized_messages"
    """Key of the state for the result; the same as `input_messages_key` replaces the history."""
    name: str = "summarization"
    """Name of the node."""


@dataclass(frozen=True, kw_only=True)
class NodeSettings(ShortTermSettings, StateKeys):
    """What a `SummarizationNode` takes."""
