"""Check the parameters of the functions and the node, and count tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from numbers import Real
from typing import Any

from langchain_core.messages import BaseMessage

from conspectus._core.choices import FAILURES, OnFailure
from conspectus._core.sizes import whole
from conspectus._newest import Newest
from conspectus.compactor.settings import AnyArchive
from conspectus.errors import PolicyError
from conspectus.redaction import Redact, Redaction
from conspectus.short_term.prompts import Prompt, shown
from conspectus.tokens.tally import Sizes, Tallies

TokenCounter = Callable[[Iterable[Any]], int]
"""LangMem's name. Fractions are rounded up."""

TIMEOUT = 120.0
"""Seconds for one call of the model."""

COUNTERS = 8
"""Counters whose sizes are cached between calls."""

_tallies: Newest[Any, Tallies] = Newest(COUNTERS)


@dataclass(kw_only=True)
class ShortTermSettings:
    """The parameters of one call; `known` sizes of messages are by `id()`."""

    model: Any
    max_tokens: int
    max_tokens_before_summary: int | None
    max_summary_tokens: int
    token_counter: TokenCounter
    initial_summary_prompt: Prompt
    existing_summary_prompt: Prompt
    final_prompt: Prompt
    archive: AnyArchive | None
    on_failure: OnFailure
    redact: Redact
    notes: bool
    known: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        whole(self.max_tokens, "max_tokens")
        if self.max_tokens_before_summary is not None:
            whole(self.max_tokens_before_summary, "max_tokens_before_summary", 0)
        whole(self.max_summary_tokens, "max_summary_tokens", 0)
        if self.max_summary_tokens >= self.max_tokens:
            # The first sentence is the one that users of LangMem look for.
            raise PolicyError(
                "`max_summary_tokens` must be less than `max_tokens`. They are "
                f"{self.max_summary_tokens:,} and {self.max_tokens:,}, which leaves no room for "
                "any message."
            )
        if not callable(getattr(self.model, "invoke", None)):
            raise PolicyError(
                "model must have a method invoke that takes a list of messages, and "
                f"{self.model!r:.200} has none; give a LangChain chat model"
            )
        if not callable(self.token_counter):
            raise PolicyError(
                "token_counter must be a callable that takes a list of messages and returns their "
                f"tokens, not {self.token_counter!r:.200}"
            )
        if self.on_failure not in FAILURES:
            raise PolicyError(f"on_failure must be one of {FAILURES}, not {self.on_failure!r}")

    @cached_property
    def redaction(self) -> Redaction | None:
        return Redaction.of(self.redact, TIMEOUT)

    @property
    def reach(self) -> int:
        """Tokens that gather before anything is summarised."""
        before = self.max_tokens_before_summary
        return self.max_tokens if before is None else before

    def sizes(self, thread: str, messages: Sequence[BaseMessage]) -> Sizes:
        """Count a history; each message object is counted once, over all calls."""
        counter = self.token_counter

        def made() -> Tallies:
            return Tallies(lambda message: _whole(counter, [message]), by_content=False)

        try:
            tallies = _tallies.get_or_make(counter, made)
        except TypeError:  # a counter without a hash
            tallies = made()
        return tallies.follow(thread, messages)

    def count(self, messages: Iterable[Any]) -> int:
        counted = list(messages)
        if len(counted) == 1 and (size := self.known.get(id(counted[0]))) is not None:
            return size
        return _whole(self.token_counter, counted)

    def summary_size(self, summary: str) -> int:
        """Count the tokens of the messages that show a summary."""
        return self.count(shown(self.final_prompt, summary))


NAMES = tuple(one.name for one in fields(ShortTermSettings) if one.name != "known")


def _whole(counter: TokenCounter, messages: Sequence[Any]) -> int:
    count: object = counter(messages)
    known = isinstance(count, Real) and not isinstance(count, bool)
    size = float(count) if known else math.nan  # type: ignore[arg-type]
    if not 0 <= size < math.inf:
        raise PolicyError(f"token_counter must return a number of tokens, and returned {count!r}")
    return math.ceil(size)
