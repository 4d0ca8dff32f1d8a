"""The summariser that asks a chat model: any LangChain model, any size of span."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conspectus._core.records import Cost
from conspectus._drive import Flow
from conspectus._langchain import is_runnable
from conspectus.errors import PolicyError, SummaryError
from conspectus.model.base import Form, Steps, Summary, SummaryRequest, check_numbers
from conspectus.model.calls import PER_MESSAGE, Caller, model_and_provider, named
from conspectus.model.checks import wrong_with
from conspectus.model.prompts import Prompts
from conspectus.model.reading import Reading, within_limit
from conspectus.model.riding import LastRequest, instruction

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable

DEFAULT_WINDOW = 32_000
"""Input limit, in tokens, of a model of which nothing is known. One that is smaller says so by an
error, after which smaller pieces are read."""


class ChatModelSummarizer(Steps):
    """Has a chat model read what leaves the view, whole, and write the summary.

    A span that fits one reading takes one call. A longer one is divided, at turns where possible;
    its pieces are read side by side into notes, and of those one summary is made. An answer that is
    no summary is asked for once more.

    Args:
        model: a LangChain chat model, or `provider:model` as `init_chat_model` takes it.
        prompt: instructions instead of ours: a text with `{messages}` where the messages go, as in
            LangChain. The last summary comes first among them, the limit after them.
        trim_tokens_to_summarize: tokens of messages in one reading; what is above it is read in
            further calls, and nothing is left out. Values below 200 count as 200. Default: as much
            as the window takes.
        window: input limit of the model, in tokens. Default: what its profile says, else 32,000.
        max_concurrency: calls at once.
        timeout: seconds for each call; None waits as long as the model does. Without an event
            loop the late call goes on in a thread of its own, and its answer is thrown away.
        min_tokens: tokens that make any text a summary, instead of our own measure; 0 takes every
            answer that is not empty. Default: an answer to our prompt cites a message, and one to
            `prompt` is not far too small for what it stands for.

    Raises:
        PolicyError: the model is none, or cannot be built; the prompt has no `{messages}`; a
            number makes no sense.
    """

    def __init__(
        self,
        model: BaseChatModel | Runnable[Any, Any] | str,
        *,
        prompt: str | None = None,
        trim_tokens_to_summarize: int | None = None,
        window: int | None = None,
        max_concurrency: int = 4,
        timeout: float | None = 120.0,
        min_tokens: int | None = None,
    ) -> None:
        check_numbers(trim_tokens_to_summarize=trim_tokens_to_summarize, min_tokens=min_tokens)
        check_numbers(window=window, max_concurrency=max_concurrency)
        if timeout is not None and (isinstance(timeout, bool) or not timeout > 0):
            raise PolicyError(f"timeout must be seconds above 0, or None, got {timeout!r}.")
        self._model, self._name = _model_and_name(model)
        self._prompts, self._trim = Prompts(prompt), trim_tokens_to_summarize
        self._min_tokens = min_tokens
        self._window = window or _profile_window(self._model) or DEFAULT_WINDOW
        self._concurrency, self._timeout = max_concurrency, timeout

    @property
    def name(self) -> str:
        """`provider:model` if it was built from that, else the model's class and its name."""
        return self._name

    @property
    def model(self) -> Runnable[Any, Any]:
        """The model that it asks."""
        return self._model

    @property
    def form(self) -> Form:
        """Findings; with a caller's own prompt a whole summary."""
        return "whole" if self._prompts.template else "findings"

    @property
    def identity(self) -> str:
        """Hash of the model, its temperature, the prompts and the limits."""
        model = (type(self._model).__qualname__, str(getattr(self._model, "temperature", None)))
        parts = (self._name, self._prompts.identity, self._trim, self._window, self._min_tokens)
        return hashlib.sha256(json.dumps([*model, *parts]).encode()).hexdigest()[:16]

    def summarize_flow(self, request: SummaryRequest) -> Flow[Summary]:
        """Summarise, step by step for a driver: whoever stops driving stops the calls."""
        if not request.entries:
            return Summary(request.notes, ())
        if self._prompts.template:
            request = replace(request, form="whole")
        caller = Caller(self._model, self._name, request.count, self._timeout)
        sizes = (self._window, self._trim, self._concurrency, self._min_tokens)
        try:
            if request.last is not None:
                text = yield from self._riding(request, request.last, caller)
            else:
                text = yield from Reading(request, caller, self._prompts, *sizes).text()
        except SummaryError as failure:
            failure.cost = sum(caller.costs, Cost())
            raise
        read = tuple(entry.key for entry in request.entries)
        kind = caller.kind if request.last is None else "cached"
        return Summary(text, read, sum(caller.costs, Cost()), kind)

    def rides(self, last: LastRequest, tokens: int, request: SummaryRequest) -> str:
        """Why it does not ask with an agent's last request of so many tokens; empty if it does."""
        if self._prompts.template:
            return "a summary_prompt says where the messages go"
        own, other = (model_and_provider(one, "") for one in (self._model, last.model))
        same = last.any_model or self._model is last.model or (own[0] and own == other)
        if not same:
            return "another model summarises"
        asked = tokens + request.count(instruction(request)) + PER_MESSAGE + request.limit
        fits = asked <= (last.window or self._window)
        return "" if fits else "with an instruction and an answer it does not fit the window"

    def _riding(self, request: SummaryRequest, last: LastRequest, own: Caller) -> Flow[str]:
        """Return the summary that is asked for after the agent's last request."""

        def check(text: str) -> tuple[str, ...]:
            return wrong_with(text, request, min_tokens=self._min_tokens)

        caller, asked = replace(own, model=last.bound(), kind="cached"), instruction(request)
        size = request.last_tokens + request.count(asked) + PER_MESSAGE
        # Where the answer is none, whoever asked goes on with the smallest request.
        text = yield from caller.ask(last.with_instruction(asked), check, size=size, tries=1)
        return (yield from within_limit(text, request, own, check))


def _model_and_name(model: object) -> tuple[Runnable[Any, Any], str]:
    if isinstance(model, str):
        return _built(model), model
    if not is_runnable(model):
        form = "a LangChain chat model or a text such as 'openai:gpt-5-mini'"
        raise PolicyError(f"model must be {form}, not {model!r}")
    kind, name = type(getattr(model, "bound", model)).__name__, named(model)
    return model, f"{kind}:{name}" if name else kind


def _built(model: str) -> Runnable[Any, Any]:
    from langchain.chat_models import init_chat_model

    try:
        return init_chat_model(model)
    except Exception as error:
        package = str(getattr(error, "name", None) or "langchain-openai").replace("_", "-")
        raise PolicyError(
            f"the model {model!r} could not be built ({type(error).__name__}: {error}). Write it "
            "as 'provider:model', such as 'openai:gpt-5-mini'; install the package of the "
            f"provider, for example with `pip install {package}`, and set its key; or pass a chat "
            "model, or 'embedded', which needs no model"
        ) from error


def _profile_window(model: object) -> int | None:
    """Return the input limit in the model's profile, if it has one that makes sense."""
    profile = getattr(model, "profile", None)
    limit = profile.get("max_input_tokens") if isinstance(profile, dict) else None
    return limit if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0 else None
