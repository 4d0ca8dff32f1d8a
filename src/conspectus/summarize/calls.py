"""Calls of one model, and the bill for them: what a compaction may spend and has spent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from conspectus._core.records import Cost
from conspectus._drive import Flow, Io
from conspectus._langchain import is_chat_model, is_message
from conspectus.errors import (
    SummarizerOverflow,
    SummarizerTimeout,
    SummaryError,
    SummaryRejected,
)
from conspectus.events import SummarizerCall, observing
from conspectus.summarize.provider_errors import answer_text, explained, is_timeout

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable, RunnableConfig

PER_MESSAGE = 4
"""Tokens that a chat format spends on the role and the delimiters of one message."""

LEAST_REPORTED = 2
"""Where less than one part in so many of the estimate is reported, a limit goes by the estimate."""


class CannotPay(Exception):
    """The next call would exceed the limit; the embedded summariser takes over."""


class Bill:
    """Money held for calls under way, and the cost of those that have ended.

    Args:
        limit: tokens of input and output together; None for no limit.
    """

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._held = 0
        self._spent = Cost()
        self._gone = 0

    @property
    def spent(self) -> Cost:
        """What the calls that have ended cost."""
        with self._lock:
            return self._spent

    def affords(self, tokens: int) -> bool:
        """Whether a call of so many tokens can be paid now."""
        with self._lock:
            return self._affords(tokens)

    def hold(self, tokens: int) -> None:
        """Set tokens aside for a call.

        Raises:
            CannotPay: there are not as many left.
        """
        with self._lock:
            if not self._affords(tokens):
                raise CannotPay
            self._held += tokens

    def settle(self, held: int, cost: Cost, least: int = 0) -> None:
        """Put the real cost of a call in the place of what was held for it.

        Args:
            held: what was held.
            cost: what it cost, as reported.
            least: tokens that count towards the limit where less is reported.
        """
        with self._lock:
            self._held -= held
            self._spent += cost
            self._gone += max(cost.tokens, least)

    def _affords(self, tokens: int) -> bool:
        return self._limit is None or self._gone + self._held + tokens <= self._limit


class Caller:
    """Calls one model and keeps the bill.

    Args:
        model: the model.
        name: what errors call it.
        count: tokens of a text.
        timeout: seconds for each call.
        bill: what all calls together may take, and have taken.
        kind: of its requests; see `Summary.request`.
    """

    def __init__(
        self,
        model: Runnable[Any, Any],
        name: str,
        count: Callable[[str], int],
        timeout: float | None,
        bill: Bill,
        kind: str = "smallest",
    ) -> None:
        self.bill, self.kind = bill, kind
        self.name = name
        self._model = model
        self._count = count
        self._timeout = timeout
        self._asked, self._provider = model_and_provider(model, name)

    def size(self, prompt: Sequence[BaseMessage]) -> int:
        """Tokens of a prompt."""
        return sum(self._count(str(message.content)) + PER_MESSAGE for message in prompt)

    def ask(self, prompt: list[BaseMessage], limit: int, *, size: int | None = None) -> Flow[str]:
        """Return the text that the model answers.

        Args:
            prompt: the request.
            limit: tokens that the answer is expected to take at most.
            size: tokens of the prompt; None to count them.

        Raises:
            SummaryError: there is no answer, or none that can be used.
            CannotPay: the call would exceed the cap.
        """
        model, size = self._model, self.size(prompt) if size is None else size
        self.bill.hold(size + limit)
        with observing(
            SummarizerCall,
            summarizer=self.name,
            model=self._asked,
            provider=self._provider,
            request=self.kind,
        ) as seen:
            # A call that is cancelled or comes too late has been read all the same, and is charged.
            spent, least = Cost(1, size, 0), 0
            seen.tell(input_tokens=size, estimated=True)
            try:
                answer = yield Io(
                    lambda: model.invoke(prompt, config=call_config()),
                    lambda: model.ainvoke(prompt, config=call_config()),
                    self._timeout,
                )
                spent = self._cost(answer, size)
                seen.tell(**cost_fields(spent))
                least = size if spent.input_tokens * LEAST_REPORTED < size else 0
            except Exception as error:
                if not is_timeout(error):  # providers charge nothing for what they turn down
                    spent = Cost(calls=1)
                    seen.tell(**cost_fields(spent))
                failure = explained(error, self.name, self._timeout)
                seen.tell(outcome=outcome_of(failure))
                try:
                    raise failure from error
                finally:
                    del failure  # it holds this frame
            finally:
                asked = self._asked or self.name
                self.bill.settle(size + limit, spent.asked_of(asked), least)
            try:
                return answer_text(answer, self.name)
            except SummaryError as failure:
                seen.tell(outcome=outcome_of(failure))
                raise

    def _cost(self, answer: object, size: int) -> Cost:
        usage = getattr(answer, "usage_metadata", None)
        if usage:
            return reported(usage)
        text = str(answer.text) if is_message(answer) else str(answer)
        return Cost(1, size, self._count(text), estimated_calls=1)


def reported(usage: Mapping[str, Any]) -> Cost:
    """Return the cost of a call, as LangChain's `usage_metadata` reports it.

    Example:
        >>> usage = {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100,
        ...          "input_token_details": {"cache_read": 64}}
        >>> reported(usage).cached_tokens
        64
    """

    def detail(which: str, name: str) -> int:
        found = (usage.get(which) or {}).get(name)
        return found if isinstance(found, int) and found > 0 else 0

    # LangChain tells writes to Anthropic's cache by their lifetime, or as a whole, never both.
    hour = detail("input_token_details", "ephemeral_1h_input_tokens")
    minutes = detail("input_token_details", "ephemeral_5m_input_tokens")
    return Cost(
        1,
        max(0, int(usage["input_tokens"])),
        max(0, int(usage["output_tokens"])),
        detail("input_token_details", "cache_read"),
        detail("output_token_details", "reasoning"),
        written_tokens=(hour + minutes) or detail("input_token_details", "cache_creation"),
        hour_tokens=hour,
    )


def cost_fields(cost: Cost) -> dict[str, Any]:
    """Return the fields of an event on the cost of a call."""
    return {
        "input_tokens": cost.input_tokens,
        "output_tokens": cost.output_tokens,
        "cached_tokens": cost.cached_tokens,
        "reasoning_tokens": cost.reasoning_tokens,
        "written_tokens": cost.written_tokens,
        "hour_tokens": cost.hour_tokens,
        "estimated": cost.estimated_calls > 0,
    }


def outcome_of(failure: SummaryError) -> str:
    """Return the fields of an event on a call that failed."""
    if isinstance(failure, SummarizerOverflow):
        return "overflow"
    if isinstance(failure, SummarizerTimeout):
        return "timeout"
    return "rejected" if isinstance(failure, SummaryRejected) else "error"


def model_and_provider(model: object, name: str) -> tuple[str, str]:
    """Return the name of a model and of its provider, for LangSmith; empty if unknown.

    Args:
        model: a LangChain model, or what stands for one.
        name: as the summariser is called: `provider:model` where it was built from that.
    """
    inner, value = getattr(model, "bound", model), named(model)
    before, mark, after = name.partition(":")
    built = bool(mark) and before != type(inner).__name__
    if built:
        return value or after, before
    return value, _provider(inner)


def named(model: object) -> str:
    """Return the name of a model; empty if unknown."""
    names = ("model_name", "model", "model_id", "deployment_name")
    said = (getattr(getattr(model, "bound", model), one, None) for one in names)
    return next((one for one in said if one and isinstance(one, str)), "")


def _provider(model: object) -> str:
    """By the method in which every chat model of LangChain tells what it is traced as."""
    if not is_chat_model(model):
        return ""
    try:
        told: object = model._get_ls_params().get("ls_provider")
    except Exception:  # somebody's own model; nothing of ours hangs on it
        return ""
    return told if isinstance(told, str) else ""


def call_config() -> RunnableConfig:
    """Mark a call as a summariser's own, on top of the marks of a run around it."""
    from langchain.agents.middleware.internal_call_transformer import internal_call_metadata
    from langchain_core.runnables.config import ensure_config

    around = ensure_config()
    own = {"lc_source": "summarization", **internal_call_metadata()}
    return {
        "metadata": {**(around.get("metadata") or {}), **own},
        "tags": list(dict.fromkeys([*(around.get("tags") or []), "nostream"])),
    }
