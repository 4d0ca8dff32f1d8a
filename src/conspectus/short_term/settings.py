"""Hold and check the parameters of the functions and the node, and count tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any
from weakref import ref

from langchain_core.messages import BaseMessage

from conspectus._newest import Newest
from conspectus.archive import Archive
from conspectus.core.policy import OnFailure, Policy
from conspectus.core.sizes import TriggerClause, whole
from conspectus.engine.background import AnyBackground, Preparations
from conspectus.engine.memory import Memory
from conspectus.engine.settings import AnyArchive, Engine, check_settings
from conspectus.errors import PolicyError
from conspectus.redaction import Redact
from conspectus.short_term import prompts
from conspectus.short_term.prompts import Prompt
from conspectus.short_term.summarizer import TIMEOUT, PromptedSummarizer
from conspectus.tokens import TokenMeter

TokenCounter = Callable[[Iterable[Any]], int]
"""LangMem's name. Fractions are rounded up."""

COUNTERS = 8
"""Counters whose sizes are cached between calls."""

MESSAGES = 65_536
"""Messages of each whose sizes are cached."""


class Counts:
    """A caller's counter; while nothing is due, it is asked once for each message object."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._sizes: Newest[int, tuple[ref[BaseMessage], int]] = Newest(MESSAGES)

    @classmethod
    def of(cls, counter: TokenCounter) -> Counts:
        try:
            return _counts.get_or_make(counter, lambda: cls(counter))
        except TypeError:  # a counter without a hash
            return cls(counter)

    def history(self, messages: Sequence[BaseMessage]) -> int:
        """Count the messages of a history, one by one."""
        return sum(map(self._message, messages))

    def _message(self, message: BaseMessage) -> int:
        known = self._sizes.get(id(message))
        if known is None or known[0]() is not message:
            known = ref(message), self([message])
            self._sizes.put(id(message), known)
        return known[1]

    def __call__(self, messages: Iterable[Any]) -> int:
        count: object = self._counter(list(messages))
        known = isinstance(count, Real) and not isinstance(count, bool)
        size = float(count) if known else math.nan  # type: ignore[arg-type]
        if not 0 <= size < math.inf:
            raise PolicyError(
                f"token_counter must return a number of tokens, and returned {count!r}"
            )
        return math.ceil(size)


_counts: Newest[Any, Counts] = Newest(COUNTERS)


@dataclass(kw_only=True, eq=False, repr=False)
class ShortTerm:
    """The parameters, as attributes that are read at each call; `summarize_messages` has them."""

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
    background: AnyBackground = False

    def __post_init__(self) -> None:
        self.check()
        self.memory, self._background = Memory(), Preparations.of(self.background)

    def check(self) -> None:
        """Raise `PolicyError` for an invalid parameter."""
        whole(self.max_tokens, "max_tokens")
        whole(self.reach, "max_tokens_before_summary", 0)
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
        check_settings(vars(self))

    @property
    def reach(self) -> int:
        """Tokens that gather before anything is summarised."""
        before = self.max_tokens_before_summary
        return self.max_tokens if before is None else before

    def summary_size(self, summary: str) -> int:
        """Count the tokens of the messages that show a summary."""
        return Counts.of(self.token_counter)(prompts.shown(self.final_prompt, summary))

    def engine(self, archive: Archive | None) -> Engine:
        """Return the engine of a call."""
        count = Counts.of(self.token_counter)
        templates = self.initial_summary_prompt, self.existing_summary_prompt
        asked = PromptedSummarizer(self.model, templates, max(self.max_tokens, self.reach), count)
        # With a prepared summary, less has gathered.
        enough = max(1, min(self.reach + self.max_summary_tokens, self.max_tokens))
        own = {"summarizer": asked, "archive": archive, "summarizer_timeout": TIMEOUT}
        policy = Policy(trigger=(TriggerClause(tokens=enough),))
        engine = Engine.build({**vars(self), **own}, policy, TokenMeter(count))
        return replace(
            engine,
            memory=self.memory,
            background=self._background,
            frame=self.summary_size(""),
            size=self.summary_size,
        )


NAMES = tuple(one.name for one in fields(ShortTerm))
