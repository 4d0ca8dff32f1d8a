"""The summariser that asks a chat model: any LangChain model, any size of span."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from conspectus._core.records import Cost
from conspectus._core.sizes import whole
from conspectus._drive import Flow, Io, arun, run
from conspectus._langchain import is_runnable
from conspectus.errors import PolicyError, SummaryError
from conspectus.summarize.base import Form, Summarizer, Summary, SummaryRequest
from conspectus.summarize.calls import (
    PER_MESSAGE,
    Bill,
    Caller,
    CannotPay,
    model_and_provider,
    named,
)
from conspectus.summarize.embedded import EmbeddedSummarizer
from conspectus.summarize.prompts import Prompts
from conspectus.summarize.reading import Reading, within_limit
from conspectus.summarize.riding import LastRequest, instruction

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable

DEFAULT_WINDOW = 32_000
"""Input limit, in tokens, assumed for a model that has no profile and for which no `window` is
given: small enough for nearly every model in use, and one that is smaller still says so by an
error, after which smaller pieces are read."""


class ChatModelSummarizer:
    """Has a chat model read what leaves the view, whole, and write the summary.

    A span that fits one reading takes one call. A longer one is divided, at turns where possible;
    its pieces are read side by side into notes, and the notes are merged with the standing summary.

    Args:
        model: a LangChain chat model, or `provider:model` as `init_chat_model` takes it.
        prompt: instructions instead of ours: a text with `{messages}` where the messages go, as in
            LangChain. The standing summary comes first among them; limit and facts come after.
        trim_tokens_to_summarize: tokens of messages in one reading; what is above it is read in
            further calls, and nothing is left out. Values below 200 count as 200. Default: as much
            as the window takes.
        window: input limit of the model, in tokens. Default: what its profile says, else
            32,000.
        max_summarizer_tokens: the most input and output tokens that one compaction may take, by
            estimate. The newest messages are read by the model as far as this pays for it, all
            others by the embedded summariser; their keys are in `Summary.embedded`. Default: no
            limit.
        max_concurrency: calls at once.
        timeout: seconds for each call; None waits as long as the model does. Without an event
            loop the late call goes on in a thread of its own, and its answer is thrown away.
        embedded: the summariser for what cannot be paid for. Default: `EmbeddedSummarizer`.

    Raises:
        PolicyError: the model is none, or cannot be built; the prompt has no `{messages}`; a
            number makes no sense.

    Example:
        >>> from conspectus_lab.testing.scripted_models import ScriptedChatModel
        >>> ChatModelSummarizer(ScriptedChatModel(answers=["## Goal\\n- ship it [m1]"])).name
        'ScriptedChatModel:scripted'
    """

    def __init__(
        self,
        model: BaseChatModel | Runnable[Any, Any] | str,
        *,
        prompt: str | None = None,
        trim_tokens_to_summarize: int | None = None,
        window: int | None = None,
        max_summarizer_tokens: int | None = None,
        max_concurrency: int = 4,
        timeout: float | None = 120.0,
        embedded: Summarizer | None = None,
    ) -> None:
        for value, name in (
            (trim_tokens_to_summarize, "trim_tokens_to_summarize"),
            (window, "window"),
            (max_summarizer_tokens, "max_summarizer_tokens"),
            (max_concurrency, "max_concurrency"),
        ):
            if value is not None:
                whole(value, name)
        if timeout is not None and (isinstance(timeout, bool) or not timeout > 0):
            raise PolicyError(f"timeout must be seconds above 0, or None, got {timeout!r}.")
        self._model, self._name = _model_and_name(model)
        self._prompts = Prompts(prompt)
        self._trim = trim_tokens_to_summarize
        self._window = window or _profile_window(self._model) or DEFAULT_WINDOW
        self._cap = max_summarizer_tokens
        self._concurrency = max_concurrency
        self._timeout = timeout
        self._embedded = embedded if embedded is not None else EmbeddedSummarizer()

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
        return "whole" if self._prompts.whole else "findings"

    @property
    def identity(self) -> str:
        """Hash of the model, its temperature, the prompts and the limits."""
        parts = [
            type(self._model).__qualname__,
            self._name,
            str(getattr(self._model, "temperature", None)),
            self._prompts.identity,
            self._trim,
            self._window,
            self._cap,
            self._embedded.identity,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    def summarize(self, request: SummaryRequest) -> Summary:
        """Summarise.

        Raises:
            SummaryRejected: an answer was cut off, refused, empty, or no text.
            SummarizerTimeout: no answer came in time.
            SummarizerOverflow: the span did not fit the model's window, not even in pieces.
            SummaryError: any other failure of the model.
        """
        return run(self.summarize_flow(request))

    async def asummarize(self, request: SummaryRequest) -> Summary:
        """Summarise on an event loop.

        A cancellation passes through, and no call is left behind.
        """
        return await arun(self.summarize_flow(request))

    def summarize_flow(self, request: SummaryRequest) -> Flow[Summary]:
        """Summarise, step by step for a driver: whoever stops driving stops the calls."""
        cap = None if self._cap is None else max(0, self._cap - request.spent)
        if not request.entries:
            return Summary(request.standing, ())
        if request.last is not None:
            return (yield from self._riding(request, request.last, cap))
        caller = self._caller(request, Bill(cap))
        reading = Reading(
            request, caller, self._prompts, self._window, self._trim, self._concurrency
        )
        every = tuple(entry.key for entry in request.entries)
        other = Cost()  # what the embedded summariser cost, should it be one that costs anything
        try:
            left = reading.choose(cap)
            keys, older = tuple(entry.key for entry in left), ""
            read = {*every} - {*keys}
            if left:
                part = yield from self._by_embedded(reading.left_over(left))
                older, other = part.text, part.cost
                read |= {*part.read}
            text = yield from reading.text(older)
            ordered = tuple(key for key in every if key in read)
            return Summary(text, ordered, caller.bill.spent + other, keys, caller.kind)
        except CannotPay:
            part = yield from self._by_embedded(request)
            return Summary(part.text, part.read, caller.bill.spent + other + part.cost, every)
        except SummaryError as failure:
            failure.cost = caller.bill.spent + other
            raise

    def rides(self, last: LastRequest, tokens: int, request: SummaryRequest) -> str:
        """Why it does not ask with an agent's last request; empty where it does.

        Args:
            last: that request.
            tokens: of it.
            request: what is to be read, as the model gets it.
        """
        if self._prompts.whole:
            return "a summary_prompt says where the messages go"
        if not last.any_model:
            own, theirs = (model_and_provider(one, "") for one in (self._model, last.model))
            if self._model is not last.model and (not own[0] or own != theirs):
                return "another model summarises"
        asked = tokens + self._instruction_size(request) + request.limit
        if asked > (last.window or self._window):
            return "with an instruction and an answer it does not fit the window"
        if self._cap is not None and asked > self._cap - request.spent:
            return "it would cost more than max_summarizer_tokens"
        return ""

    def _riding(self, request: SummaryRequest, last: LastRequest, cap: int | None) -> Flow[Summary]:
        """Return the summary that is asked for after the agent's last request."""
        bill, asked, limit = Bill(cap), self._instruction(request), request.limit
        caller = Caller(last.bound(), self._name, request.count, self._timeout, bill, "cached")
        size = request.last_tokens + self._instruction_size(request)
        try:
            prompt = last.with_instruction(asked)
            text = yield from caller.ask(prompt, limit, size=size)
            shorter = self._caller(request, bill)
            text = yield from within_limit(text, request, shorter, self._prompts)
        except CannotPay as error:
            raise SummaryError("it would cost more than max_summarizer_tokens") from error
        except SummaryError as failure:
            failure.cost = bill.spent
            raise
        every = tuple(entry.key for entry in request.entries)
        return Summary(text, every, bill.spent, (), caller.kind)

    def _instruction(self, request: SummaryRequest) -> str:
        return instruction(
            request.entries,
            standing=request.standing,
            focus=request.focus,
            limit=request.limit,
            whole=not request.shares.parts,
        )

    def _instruction_size(self, request: SummaryRequest) -> int:
        return request.count(self._instruction(request)) + PER_MESSAGE

    def _caller(self, request: SummaryRequest, bill: Bill) -> Caller:
        return Caller(self._model, self._name, request.count, self._timeout, bill)

    def _by_embedded(self, request: SummaryRequest) -> Flow[Summary]:
        embedded = self._embedded
        answer: Summary = yield Io(
            lambda: embedded.summarize(request), lambda: embedded.asummarize(request)
        )
        return answer


def _model_and_name(model: object) -> tuple[Runnable[Any, Any], str]:
    if isinstance(model, str):
        return _built(model), model
    if not is_runnable(model):
        raise PolicyError(
            f"model must be a LangChain chat model or a text such as 'openai:gpt-5-mini', not "
            f"{model!r}"
        )
    kind, name = type(getattr(model, "bound", model)).__name__, named(model)
    return model, f"{kind}:{name}" if name else kind


def _built(model: str) -> Runnable[Any, Any]:
    from langchain.chat_models import init_chat_model

    provider = model.partition(":")[0]
    try:
        return init_chat_model(model)
    except ImportError as error:
        package = getattr(error, "name", None) or f"langchain-{provider}"
        raise PolicyError(
            f"the model {model!r} needs a package that is not installed: {error}. Install it, for "
            f"example with `pip install {package.replace('_', '-')}`"
        ) from error
    except Exception as error:
        raise PolicyError(
            f"the model {model!r} could not be built ({type(error).__name__}: {error}). Write it "
            "as 'provider:model', such as 'openai:gpt-5-mini'; install the package of the "
            "provider (`pip install langchain-openai`) and set its key; or pass a chat model, or "
            "'embedded', which needs no model"
        ) from error


def _profile_window(model: object) -> int | None:
    """Return the input limit in the model's profile, if it has one that makes sense."""
    profile = getattr(model, "profile", None)
    limit = profile.get("max_input_tokens") if isinstance(profile, dict) else None
    return limit if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0 else None
