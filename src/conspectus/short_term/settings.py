"""What a caller asks for, checked once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage

from conspectus._core.choices import FAILURES, OnFailure
from conspectus._newest import Newest
from conspectus.compactor.engine import AnyArchive
from conspectus.errors import PolicyError
from conspectus.redaction import Redact, Redaction
from conspectus.short_term.prompts import Prompt, shown
from conspectus.summarize import NotesSetting, Shares
from conspectus.tokens.tally import Tallies

TokenCounter = Callable[[Iterable[Any]], int]
"""What LangMem calls so. One that gives fractions is rounded up."""

TIMEOUT = 120.0
"""Seconds that one call of the model may take."""

COUNTERS = 8
"""Counters whose sizes are remembered between calls of the functions."""

_tallies: Newest[Any, Tallies] = Newest(COUNTERS)


@dataclass(frozen=True, slots=True)
class Settings:
    """The parameters of one call, or of one node.

    Attributes:
        model: what writes the summaries: anything with `invoke`.
        max_tokens: what the result must fit in.
        reach: tokens that must have gathered before anything is summarised.
        max_summary_tokens: tokens set aside for the summary.
        token_counter: tokens of a list of messages, a whole number.
        initial, existing, final: the templates.
        archive: where originals go, as the caller wrote it; None for nowhere.
        on_failure: what follows when no summary can be made.
        shares: the parts of the notes that are written.
        redaction: what takes secrets out of all that is kept; None for nothing.
        tallies: the sizes of messages that were counted before.
    """

    model: Any
    max_tokens: int
    reach: int
    max_summary_tokens: int
    token_counter: TokenCounter
    initial: Prompt
    existing: Prompt
    final: Prompt
    archive: AnyArchive | None
    on_failure: OnFailure
    redaction: Redaction | None
    shares: Shares
    tallies: Tallies

    def count(self, messages: Sequence[Any]) -> int:
        """Tokens of messages, as the caller counts.

        Raises:
            PolicyError: the counter returns what is no count.
        """
        return self.token_counter(messages)

    def summary_size(self, summary: str) -> int:
        """Tokens of the messages that show a summary."""
        return self.count(shown(self.final, summary))

    def bare_size(self, summary: str) -> int:
        """Tokens of a summary in the room of one reading."""
        return self.count([SystemMessage(summary)]) if summary else 0


def settings(
    *,
    model: Any,
    max_tokens: int,
    max_tokens_before_summary: int | None,
    max_summary_tokens: int,
    token_counter: TokenCounter,
    initial_summary_prompt: Prompt,
    existing_summary_prompt: Prompt,
    final_prompt: Prompt,
    archive: AnyArchive | None,
    on_failure: OnFailure,
    redact: Redact,
    notes: NotesSetting,
) -> Settings:
    """Check what a caller wrote.

    Raises:
        PolicyError: something cannot mean anything.
    """
    reach = max_tokens if max_tokens_before_summary is None else max_tokens_before_summary
    named = {
        "max_tokens": (max_tokens, 1),
        "max_tokens_before_summary": (reach, 0),
        "max_summary_tokens": (max_summary_tokens, 0),
    }
    for name, (value, least) in named.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise PolicyError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    if max_summary_tokens >= max_tokens:
        # The first sentence is the one that users of LangMem look for.
        raise PolicyError(
            "`max_summary_tokens` must be less than `max_tokens`. They are "
            f"{max_summary_tokens:,} and {max_tokens:,}, which leaves no room for any message."
        )
    if not callable(getattr(model, "invoke", None)):
        raise PolicyError(
            f"model must have a method invoke that takes a list of messages, and {model!r:.200} "
            "has none; give a LangChain chat model"
        )
    if not callable(token_counter):
        raise PolicyError(
            "token_counter must be a callable that takes a list of messages and returns their "
            f"tokens, not {token_counter!r:.200}"
        )
    if on_failure not in FAILURES:
        raise PolicyError(f"on_failure must be one of {FAILURES}, not {on_failure!r}")
    return Settings(
        model=model,
        max_tokens=max_tokens,
        reach=reach,
        max_summary_tokens=max_summary_tokens,
        token_counter=partial(_whole, token_counter),
        initial=initial_summary_prompt,
        existing=existing_summary_prompt,
        final=final_prompt,
        archive=archive,
        on_failure=on_failure,
        shares=Shares.build(notes),
        redaction=Redaction.of(redact, TIMEOUT),
        tallies=_tallies_of(token_counter),
    )


def _tallies_of(counter: TokenCounter) -> Tallies:
    """The sizes that a counter has told so far: a message object is counted once."""

    def count(message: BaseMessage) -> int:
        return _whole(counter, [message])

    try:
        return _tallies.get_or_make(counter, lambda: Tallies(count, by_content=False))
    except TypeError:  # it has no hash: a method of a model
        return Tallies(count, by_content=False)


def _whole(counter: TokenCounter, messages: Sequence[Any]) -> int:
    count: object = counter(messages)
    known = isinstance(count, Real) and not isinstance(count, bool)
    size = float(count) if known else math.nan  # type: ignore[arg-type]
    if not 0 <= size < math.inf:
        raise PolicyError(f"token_counter must return a number of tokens, and returned {count!r}")
    return math.ceil(size)
