"""Calls of one model or function: their answers and costs, and a second call if one is needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

from conspectus._langchain import innermost, is_chat_model, named, without_streams
from conspectus.bridge import arun, call_either_way, run
from conspectus.core.records import Cost
from conspectus.errors import SummarizerTimeout, SummaryError, SummaryRejected
from conspectus.messages.alternation import without_refused
from conspectus.messages.refusals import RefusedFeature, refused_by_template
from conspectus.model import prompts
from conspectus.model.answer_limits import answer_limit, answer_limits_of, ends_at_limit
from conspectus.model.answer_text import is_cut_off, text_of
from conspectus.model.base import Summary, SummaryRequest
from conspectus.model.gate import LONGEST_ANSWER_CHARACTERS
from conspectus.model.provider_errors import as_summary_error
from conspectus.model.sentences import whole_sentences
from conspectus.observe import observing
from conspectus.tokens.meter import PER_MESSAGE

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable, RunnableConfig

    Prompt = list[BaseMessage]

AnswerCheck = Callable[[str], str]
"""Returns why a text cannot be used; an empty text if it can."""

_AGAIN = "An earlier answer to this request was not used: {}. Answer it as asked."

POSITIONAL = (
    Parameter.POSITIONAL_ONLY,
    Parameter.POSITIONAL_OR_KEYWORD,
    Parameter.VAR_POSITIONAL,
)
"""Kinds of parameters that take arguments without a name."""

SHOWN_CHARACTERS = 60
"""Characters of a rejected answer that an error shows."""

CALL_TAGS = ("nostream", "middleware:summarize")
"""Tags of a summariser's calls. LangGraph keeps the first out of its streams. DeerFlow's journal
books the tokens of the second to summaries."""

CHAT_MODELS = "langchain_core.language_models.chat_models"
"""The module with the async methods that call a model's sync methods in a thread."""


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """The answer to one call.

    Attributes:
        text: its text.
        rejection_reason: why the text cannot be used; empty if it can.
        cut: as for `Summary`.
    """

    text: str
    rejection_reason: str = ""
    cut: int = 0


@dataclass(slots=True)
class ModelCalls:
    """Calls one model, or one function of the caller's, and keeps the cost of each call.

    `name` is its name in errors.
    """

    model: Runnable[Any, Any]
    name: str
    count: Callable[[str], int]
    timeout: float | None
    kind: str = "smallest"
    """As `Summary.request_kind`; empty for a function of the caller's."""

    costs: list[Cost] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)
    """`CallAnswer.cut` of each answer that is used."""

    refused: set[RefusedFeature] = field(default_factory=set)
    """Features that the model has refused since its summariser was made."""

    @property
    def is_model(self) -> bool:
        """Whether a chat model is called, and not a function of the caller's."""
        return bool(self.kind)

    def size(self, prompt: Prompt) -> int:
        """Return the tokens of a prompt."""
        per_message = PER_MESSAGE if self.is_model else 0
        # Counting one long text is several times faster than counting many short ones.
        text = "\n".join(str(message.content) for message in prompt)
        return self.count(text) + per_message * len(prompt)

    async def ask(
        self,
        prompt: Prompt,
        check: AnswerCheck,
        *,
        most: int | None = None,
        size: int | None = None,
        once: bool = False,
        complaint: str = "",
    ) -> str:
        """Return an answer that passes `check`, asked for twice at most.

        A model that fails the check is told why, and asked again. A model whose answer is too long
        gets it back to shorten, and the shorter one of both is returned. A function is asked again
        with the same messages.

        Args:
            prompt: the messages to send.
            check: returns why a text cannot be used.
            most: tokens above which an answer is sent back to be shortened; None for no limit.
            size: tokens of the prompt; None to have them counted.
            once: make a single call, whatever its answer is.
            complaint: why an earlier answer was refused. This is then the second try.

        Raises:
            SummaryRejected: no answer passes.
        """
        if complaint:
            prompt = _with_complaint(prompt, complaint)
            size = None
            once = True
        size = self.size(prompt) if size is None else size
        answer = await self._call_once(prompt, check, size)
        is_too_long = most is not None and self.count(answer.text) > most
        if once or not (answer.rejection_reason or is_too_long):
            return self._use_or_reject(answer)
        if answer.rejection_reason or not self.is_model:
            return self._use_or_reject(await self._call_again(prompt, answer, check, size))
        assert most is not None, "only an answer above `most` is shortened"
        return self._use_or_reject(await self._have_shortened(answer, check, most))

    async def _call_again(
        self, prompt: Prompt, answer: CallAnswer, check: AnswerCheck, size: int
    ) -> CallAnswer:
        """Ask a second time. A model is told why its answer was rejected; a function cannot be."""
        if self.is_model:
            prompt = _with_complaint(prompt, answer.rejection_reason)
            size = self.size(prompt)
        try:
            return await self._call_once(prompt, check, size)
        except SummaryError as error:
            error.after_rejection = bool(answer.rejection_reason)
            raise

    async def _have_shortened(
        self, answer: CallAnswer, check: AnswerCheck, most: int
    ) -> CallAnswer:
        """Have an answer shortened; return it unchanged if that fails or makes it no shorter."""
        prompt = prompts.shortening_prompt(answer.text, self.count(answer.text), most)
        try:
            shorter = await self._call_once(prompt, check, self.size(prompt))
        except SummaryError:
            # The long answer is paid for and complete. Whoever uses it makes it fit.
            return answer
        is_shorter = self.count(shorter.text) < self.count(answer.text)
        return shorter if is_shorter and not shorter.rejection_reason else answer

    def _use_or_reject(self, answer: CallAnswer) -> str:
        """Return the text of an answer and remember its `cut`.

        Raises:
            SummaryRejected: the answer cannot be used.
        """
        if not answer.rejection_reason:
            self.cuts.append(answer.cut)
            return answer.text
        beginning = answer.text[: 4 * SHOWN_CHARACTERS].strip()[:SHOWN_CHARACTERS]
        rejected = SummaryRejected(
            f"what {self.name} wrote is no summary: {answer.rejection_reason}; "
            f"it begins with {beginning!r}; "
            "take another summariser, add one to fallbacks, or accept any text with "
            "check_summaries=False"
        )
        rejected.missing = answer.rejection_reason
        raise rejected

    async def _call_once(self, prompt: Prompt, check: AnswerCheck, sent_tokens: int) -> CallAnswer:
        """Make one call, and keep its cost in any case."""
        model, provider = model_and_provider(self.model, self.name) if self.is_model else ("", "")
        name = model or self.name
        facts = {"summarizer": self.name, "provider": provider, "request": self.kind}
        with observing("model_call", name=name, **facts) as observation:
            # Providers charge for a call that is cancelled, or answered too late.
            unanswered = Cost(1, sent_tokens, 0, estimated_calls=1)
            cost = unanswered
            try:
                message = await self._send(prompt, name)
                cost = self._cost_of(message, sent_tokens)
                answer = self._text_of(message)
                reason = check(answer.text)
                if reason:
                    observation.add(outcome="rejected")
                return replace(answer, rejection_reason=reason)
            except Exception as error:
                failure = as_summary_error(error, self.name, self.timeout, is_model=self.is_model)
                if cost is unanswered and not isinstance(failure, SummarizerTimeout):
                    cost = Cost(1)  # providers charge nothing for a request that they refuse
                outcome = "error" if failure.failure == "summary" else failure.failure
                observation.add(outcome=outcome)
                raise failure from (error if failure is not error else error.__cause__)
            finally:
                self.costs.append(cost.asked_of(name))
                observation.add(cost=self.costs[-1])

    def _cost_of(self, message: Any, sent_tokens: int) -> Cost:
        """Return the cost that a provider reports, or an estimate."""
        usage = getattr(message, "usage_metadata", None)
        if usage:
            return cost_reported(usage)
        text = str(getattr(message, "text", message))
        return Cost(1, sent_tokens, self.count(text[:LONGEST_ANSWER_CHARACTERS]), estimated_calls=1)

    async def _send(self, prompt: Prompt, name: str) -> Any:
        """Send a prompt. If the model's template refuses a feature, send it again without that."""
        model = self.model
        while True:
            messages = without_refused(prompt, self.refused)
            try:
                return await call_either_way(
                    partial(_invoke, model.invoke, messages),
                    None if answers_in_sync(model) else partial(_invoke, model.ainvoke, messages),
                    self.timeout,
                )
            except Exception as error:
                feature = refused_by_template(error)
                if not self.is_model or feature is None or feature in self.refused:
                    raise
                if without_refused(prompt, {*self.refused, feature}) == messages:
                    raise
                self.refused.add(feature)
                self.costs.append(Cost(1).asked_of(name))

    def _text_of(self, message: Any) -> CallAnswer:
        """Take the text out of an answer.

        A text that ends at a limit that the caller has set is used up to its last whole sentence.
        """
        if not self.is_model:
            return self._text_of_function(message)
        limits = answer_limits_of(self.model)
        is_cut = is_cut_off(message) and ends_at_limit(message, limits, self.count)
        text = text_of(message, self.name, may_be_cut=is_cut).strip()
        if not is_cut:
            return CallAnswer(text)
        if not text:
            limit = answer_limit(self.model) or 0
            raise SummaryRejected(
                f"the answer of {self.name} has no text: its thoughts took all of its limit of "
                f"{limit:,} tokens; raise the model's max_tokens, or let it think less"
            )
        whole = whole_sentences(text)
        missing = self.count(text) - self.count(whole)
        return CallAnswer(whole, cut=max(1, missing))

    def _text_of_function(self, returned: Any) -> CallAnswer:
        if isinstance(returned, str):
            return CallAnswer(text_of(returned.strip(), self.name))
        raise SummaryError(
            f"{self.name} returned {type(returned).__name__}, and not a text; return the text of "
            "the answer, such as answer.text"
        )


class SteppedSummarizer:
    """A summariser whose work is one coroutine, `summarize_flow`. Cancelling it stops its calls."""

    name: str
    _model: Runnable[Any, Any]
    _timeout: float | None
    _request_kind = "smallest"
    _write: Callable[[SummaryRequest, ModelCalls], Awaitable[str]]

    @cached_property
    def _refused(self) -> set[RefusedFeature]:
        """Features that the model's template has refused. Later requests leave them out."""
        return set()

    def _calls_for(self, request: SummaryRequest) -> ModelCalls:
        """Return the `ModelCalls` that make the calls for a request."""
        return ModelCalls(
            self._model,
            self.name,
            request.count,
            self._timeout,
            kind=self._request_kind,
            refused=self._refused,
        )

    async def summarize_flow(self, request: SummaryRequest) -> Summary:
        """Summarise. Without entries, the summary so far is returned.

        Raises:
            SummaryError: no summary could be made. It has the cost of the calls.
        """
        calls = self._calls_for(request)
        if not request.entries:
            return Summary(request.summary_so_far, read=())
        try:
            text = await self._write(request, calls)
        except SummaryError as failure:
            failure.cost = sum(calls.costs, Cost())
            raise
        return Summary(
            text,
            read=tuple(entry.key for entry in request.entries),
            cost=sum(calls.costs, Cost()),
            request_kind=calls.kind,
            cut=sum(calls.cuts),
            checked=True,
        )

    def summarize(self, request: SummaryRequest) -> Summary:
        """Summarise, as `summarize_flow` does."""
        return run(self.summarize_flow(request))

    async def asummarize(self, request: SummaryRequest) -> Summary:
        """Summarise on an event loop, as `summarize_flow` does. A cancellation ends the calls."""
        return await arun(self.summarize_flow(request))


def _with_complaint(prompt: Prompt, complaint: str) -> Prompt:
    """Return a prompt whose last message also says why an earlier answer was not used."""
    *beginning, last = prompt
    text = f"{last.content}\n\n{_AGAIN.format(complaint)}"
    return [*beginning, last.model_copy(update={"content": text})]


def _invoke(call: Callable[..., Any], prompt: Prompt) -> Any:
    """Call a model. The method of a caller's own class may take only the messages."""
    takes_messages_alone = False
    with suppress(ValueError, TypeError):  # it is not written in Python
        parameters = signature(call).parameters.values()
        positional = [parameter for parameter in parameters if parameter.kind in POSITIONAL]
        takes_messages_alone = (
            len(positional) == 1 and positional[0].kind is not Parameter.VAR_POSITIONAL
        )
    return call(prompt) if takes_messages_alone else call(prompt, call_config())


def cost_reported(usage: Mapping[str, Any]) -> Cost:
    """Return the cost of a call, as LangChain's `usage_metadata` reports it."""

    def total(name: str) -> int:
        return max(0, int(usage.get(name) or 0))

    def detail(group: str, name: str) -> int:
        count = (usage.get(group) or {}).get(name)
        return count if isinstance(count, int) and count > 0 else 0

    # LangChain reports writes to Anthropic's cache by lifetime or in total, never both.
    hour = detail("input_token_details", "ephemeral_1h_input_tokens")
    by_lifetime = hour + detail("input_token_details", "ephemeral_5m_input_tokens")
    return Cost(
        calls=1,
        input_tokens=total("input_tokens"),
        output_tokens=total("output_tokens"),
        cached_tokens=detail("input_token_details", "cache_read"),
        reasoning_tokens=detail("output_token_details", "reasoning"),
        written_tokens=by_lifetime or detail("input_token_details", "cache_creation"),
        hour_tokens=hour,
    )


def model_and_provider(model: object, name: str) -> tuple[str, str]:
    """Return the names of a model and of its provider.

    `name` is the name of the summariser. A provider in it, as in `openai:gpt-5-mini`, is used.
    """
    inner = innermost(model)
    model_name = named(model)
    prefix, colon, suffix = name.partition(":")
    names_provider = bool(colon) and prefix != type(inner).__name__
    if names_provider:
        return model_name or suffix, prefix
    try:
        provider = inner._get_ls_params().get("ls_provider") if is_chat_model(inner) else ""
    except Exception:  # of a caller's own model; the name is only for reports
        provider = ""
    return model_name, provider or ""


def answers_in_sync(model: object) -> bool:
    """Tell whether a chat model has no async form of its own.

    LangChain would call it in a thread of the loop's pool, and the end of the loop would wait for
    that thread.
    """
    inner = innermost(model)
    if not is_chat_model(inner):
        return False
    methods = (getattr(type(inner), name) for name in ("ainvoke", "_agenerate", "_astream"))
    return all(method.__module__ == CHAT_MODELS for method in methods)


def profile_window(model: object) -> int | None:
    """Return the input limit in a model's profile, in tokens, or None."""
    profile = getattr(innermost(model), "profile", None)
    limit = profile.get("max_input_tokens") if isinstance(profile, Mapping) else None
    return limit if isinstance(limit, int) and limit > 1 else None


def call_config() -> RunnableConfig:
    """Mark a call as a summariser's own, in addition to the marks of the run around it.

    So the streams of that run do not show its tokens and events.
    """
    from langchain.agents.middleware.internal_call_transformer import internal_call_metadata
    from langchain_core.runnables.config import ensure_config

    run_config = ensure_config()
    marks = {"lc_source": "summarization", **internal_call_metadata()}
    tags = dict.fromkeys([*(run_config.get("tags") or []), *CALL_TAGS])
    config: RunnableConfig = {
        "metadata": {**(run_config.get("metadata") or {}), **marks},
        "tags": list(tags),
    }
    callbacks = run_config.get("callbacks")
    if callbacks is not None:
        config["callbacks"] = without_streams(callbacks)
    return config
