"""The parameters of LangMem's functions and node, under LangMem's names, and a few of ours."""

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
"""A function that takes a list of messages and returns its tokens. The type has LangMem's name. A
fraction is rounded up."""


def _can_be_invoked(value: object) -> bool:
    return hasattr(value, "invoke")


Model = Annotated[
    Any, Check(_can_be_invoked, "a chat model, whose method invoke takes a list of messages")
]
Template = Annotated[Prompt, Check(_can_be_invoked, "a ChatPromptTemplate")]


@dataclass(frozen=True, kw_only=True)
class ShortTermSettings(CommonSettings):
    """The settings that `summarize_messages` and `SummarizationNode` share."""

    model: Model
    """The model that writes the summary.

    A chat model, or any object whose `invoke` takes a list of messages. The prompt tells it how
    long the summary may be: `max_summary_tokens`, or less if the model has a limit of its own, such
    as `model.bind(max_tokens=128)`. A summary that ends at such a limit is used up to its last
    whole sentence.
    """
    max_tokens: Tokens
    """The most tokens of the result of a call that summarises.

    New messages may exceed this limit until the next summary.
    """
    max_tokens_before_summary: Annotated[int, Ge(0)] | None = None
    """The oldest messages are summarised when the messages have this number of tokens.

    Default: `max_tokens`.
    """
    max_summary_tokens: ReservedTokens = 256
    """Tokens that are reserved for the summary. It must be less than `max_tokens`.

    The model is asked once to shorten a longer summary; then it is cut after its last whole
    sentence that fits. If the value is below 64, a longer summary is not cut.
    """
    token_counter: TokenCounter = count_tokens_approximately
    """A function that takes a list of messages and returns its tokens.

    Default: LangChain's approximation.
    """
    initial_summary_prompt: Template = field(default_factory=lambda: DEFAULT_INITIAL_SUMMARY_PROMPT)
    """The prompt for the first summary. It needs the placeholder `messages`.

    Default: `DEFAULT_INITIAL_SUMMARY_PROMPT`; its name and its placeholder are LangMem's, its text
    is ours.
    """
    existing_summary_prompt: Template = field(
        default_factory=lambda: DEFAULT_EXISTING_SUMMARY_PROMPT
    )
    """The prompt for a later summary. It needs `messages` and `existing_summary`.

    Default: `DEFAULT_EXISTING_SUMMARY_PROMPT`; its text is ours.
    """
    final_prompt: Template = field(default_factory=lambda: DEFAULT_FINAL_SUMMARY_PROMPT)
    """The template of the result. It needs `system_message`, `summary` and `messages`.

    Default: `DEFAULT_FINAL_SUMMARY_PROMPT`; its text is ours.
    """
    thread_id: str | None = None
    """The name of the conversation in the archive. Default: the `thread_id` of the graph's config.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_summary_tokens >= self.max_tokens:
            # The first sentence is the one that users of LangMem look for.
            raise PolicyError(
                "`max_summary_tokens` must be less than `max_tokens`. They are "
                f"{self.max_summary_tokens:,} and {self.max_tokens:,}, which leaves no room for "
                "any message: lower the first one."
            )
        TokenMeter(self.token_counter)  # raises if it is no counter


@dataclass(frozen=True, kw_only=True)
class SummarizationCall(ShortTermSettings):
    """The parameters of `summarize_messages`."""

    messages: Sequence[AnyMessage] = field(kw_only=False)
    """The messages, each with an id: the whole history, or the messages of the last result followed
    by the new ones.
    """
    running_summary: RunningSummary | None
    """The `running_summary` of the last result; None the first time.

    A dict with the same names is accepted, too. A strict serializer returns such a dict.
    """


@dataclass(frozen=True, kw_only=True)
class StateKeys(Checked):
    """The keys of the state that a node reads and writes, and the name of the node."""

    input_messages_key: str = "messages"
    """The key of the state that has the history."""
    output_messages_key: str = "summarized_messages"
    """The key of the state that gets the result.

    If it is equal to `input_messages_key`, the result replaces the history.
    """
    name: str = "summarization"
    """The name of the node."""


@dataclass(frozen=True, kw_only=True)
class NodeSettings(ShortTermSettings, StateKeys):
    """The settings of a `SummarizationNode`."""
