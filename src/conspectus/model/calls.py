"""Calls of one model or function: what they cost, what they answered, and one more where needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

from conspectus._langchain import innermost, is_chat_model, named, without_streams
from conspectus.bridge import arun, io, run
from conspectus.core.records import Cost
from conspectus.errors import SummarizerTimeout, SummaryError, SummaryRejected
from conspectus.messages.alternation import Form, asked_form, in_forms
from conspectus.model import prompts
from conspectus.model.answers import LONGEST_ANSWER, SHORT
from conspectus.model.base import Summary, SummaryRequest
from conspectus.model.lengths import answer_limit, ends_at_limit, limits_of, whole_sentences
from conspectus.model.provider_errors import explained, is_cut_off, text_of
from conspectus.observe import observing
from conspectus.tokens.meter import PER_MESSAGE

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable, RunnableConfig

    Prompt = list[BaseMessage]

Check = Callable[..., str]  # says why a text cannot be used; empty if it can

_AGAIN = "An earlier answer to this request was not used: {}. Answer it as asked."
PLACED = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL)
BEGINS = 60  # characters of a refused answer that an error shows


@dataclass(frozen=True, slots=True)
class Answered:
    """What one call has brought."""

    text: str
    wrong: str = ""  # why it cannot be used; empty if it can
    cut: int = 0  # as for `Summary`


@dataclass(slots=True)
class Caller:
    """Calls one model, which errors call `name`, and keeps what each call cost."""

    model: Runnable[Any, Any]
    name: str
    count: Callable[[str], int]
    timeout: float | None
    kind: str = "smallest"  # see `Summary.request`; empty for a user's function
    costs: list[Cost] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)  # of the answers that are used
    # forms that the model has asked for by refusing another one, as long as its summariser lives
    forms: set[Form] = field(default_factory=set)

    def size(self, prompt: Prompt) -> int:
        """Tokens of a prompt."""
        each = PER_MESSAGE if self.kind else 0
        # Several short texts cost several times as much to count as one.
        return self.count("\n".join(str(one.content) for one in prompt)) + each * len(prompt)

    async def ask(
        self, prompt: Prompt, check: Check, *, most: int = 0, size: int = 0, once: bool = False
    ) -> str:
        """Return an answer in which `check` finds nothing wrong, asked for twice at most.

        A wrong answer is asked for again with what is wrong. One of more than `most` tokens is sent
        back to be shortened, and then the shorter one of both is returned. With `once` nothing is
        asked for again. Raises `SummaryRejected` where no answer passes.
        """
        first = await self._answer(prompt, check, size or self.size(prompt))
        if once or not (first.wrong or (most and self.count(first.text) > most)):
            return self._used(first)
        if not self.kind:  # a function takes messages, and no words about its answer
            return self._used(await self._answer(prompt, check, size or self.size(prompt)))
        if first.wrong:
            words = f"{prompt[-1].content}\n\n{_AGAIN.format(first.wrong)}"
            again = [*prompt[:-1], prompt[-1].model_copy(update={"content": words})]
            return self._used(await self._answer(again, check, self.size(again)))
        return self._used(await self._shorter(first, check, most))

    async def _shorter(self, answer: Answered, check: Check, most: int) -> Answered:
        """Have an answer shortened; return it as it is if that fails or makes it no shorter."""
        again = prompts.shorter(answer.text, self.count(answer.text), most)
        try:
            shorter = await self._answer(again, check, self.size(again))
        except SummaryError:
            return answer  # it is paid for and whole; whoever asked makes it fit
        is_shorter = self.count(shorter.text) < self.count(answer.text)
        return shorter if is_shorter and not shorter.wrong else answer

    def _used(self, answer: Answered) -> str:
        """Return the text of the answer that is used; raise `SummaryRejected` for a wrong one."""
        if not answer.wrong:
            self.cuts.append(answer.cut)
            return answer.text
        begins = answer.text[: 4 * BEGINS].strip()[:BEGINS]
        remedy = "; take another summariser, or add one to fallbacks"
        if SHORT in answer.wrong:
            kind = "ChatModelSummarizer" if self.kind else "CallableSummarizer"
            remedy += f", or take short texts, too: summarizer={kind}(..., min_tokens=0)"
        raise SummaryRejected(
            f"what {self.name} wrote is no summary: {answer.wrong}; it begins with {begins!r}"
            f"{remedy}"
        )

    async def _answer(self, prompt: Prompt, check: Check, sent: int) -> Answered:
        model, kind = self.model, self.kind
        name, provider = model_and_provider(model, self.name) if kind else ("", "")
        name = name or self.name
        facts = {"summarizer": self.name, "provider": provider, "request": kind}
        with observing("model_call", name=name, **facts) as seen:
            # A call that is cancelled or comes too late has been read all the same, and is charged.
            spent = late = Cost(1, sent, 0, estimated_calls=1)
            try:
                answer = await self._sent(prompt, name)
                text = str(getattr(answer, "text", answer))
                usage = getattr(answer, "usage_metadata", None)
                estimate = Cost(1, sent, self.count(text[:LONGEST_ANSWER]), estimated_calls=1)
                spent = reported(usage) if usage else estimate
                made = self._text_of(answer)
                wrong = check(made.text, cut=bool(made.cut))
                if wrong:
                    seen.add(outcome="rejected")
                return replace(made, wrong=wrong)
            except Exception as error:
                failure = explained(error, self.name, self.timeout, is_model=bool(kind))
                if spent is late and not isinstance(failure, SummarizerTimeout):
                    spent = Cost(1)  # providers charge nothing for what they turn down
                seen.add(outcome={"summary": "error"}.get(failure.failure, failure.failure))
                raise failure from (error if failure is not error else error.__cause__)
            finally:
                self.costs.append(spent.asked_of(name))
                seen.add(cost=self.costs[-1])

    async def _sent(self, prompt: Prompt, name: str) -> Any:
        """Send a prompt; once more in another form where the model's template refuses this one."""
        model = self.model
        while True:
            sent = in_forms(prompt, self.forms)
            try:
                return await io(
                    partial(_asked, model.invoke, sent),
                    None if answers_in_sync(model) else partial(_asked, model.ainvoke, sent),
                    self.timeout,
                )
            except Exception as error:
                form = asked_form(error)
                if not self.kind or form is None or form in self.forms:
                    raise
                if in_forms(prompt, {*self.forms, form}) == sent:
                    raise
                self.forms.add(form)
                self.costs.append(Cost(1).asked_of(name))

    def _text_of(self, answer: Any) -> Answered:
        """Take the text out of an answer.

        One that ends at a limit that the caller has set is used up to its last whole sentence.
        """
        if not self.kind:
            if isinstance(answer, str):
                return Answered(answer.strip())
            got = f"{type(answer).__name__}, and not a text"
            form = "return the text of the answer, such as answer.text"
            raise SummaryError(f"{self.name} returned {got}; {form}")
        is_cut = is_cut_off(answer) and ends_at_limit(answer, limits_of(self.model), self.count)
        text = text_of(answer, self.name, may_be_cut=is_cut).strip()
        if not is_cut:
            return Answered(text)
        if not text:
            limit = answer_limit(self.model) or 0
            raise SummaryRejected(
                f"the answer of {self.name} has no text: its thoughts took all of its limit of "
                f"{limit:,} tokens; raise the model's max_tokens, or let it think less"
            )
        whole = whole_sentences(text)
        return Answered(whole, cut=max(1, self.count(text) - self.count(whole)))


class Steps:
    """A summariser by its steps alone, for any driver: whoever stops driving stops the calls."""

    name: str
    _model: Runnable[Any, Any]
    _timeout: float | None
    _kind = "smallest"
    _write: Callable[[SummaryRequest, Caller], Awaitable[str]]

    async def summarize_flow(self, request: SummaryRequest) -> Summary:
        """Summarise, step by step; without entries, what was written before stands."""
        own = self._model, self.name, request.count, self._timeout, self._kind
        caller = Caller(*own, forms=vars(self).setdefault("_forms", set()))
        try:
            text = (await self._write(request, caller)) if request.entries else request.notes
        except SummaryError as failure:
            failure.cost = sum(caller.costs, Cost())
            raise
        read, kind = tuple(e.key for e in request.entries), caller.kind if request.entries else ""
        return Summary(text, read, sum(caller.costs, Cost()), kind, cut=sum(caller.cuts))

    def summarize(self, request: SummaryRequest) -> Summary:
        """Summarise; raises a `SummaryError` that says why where it cannot."""
        return run(self.summarize_flow(request))

    async def asummarize(self, request: SummaryRequest) -> Summary:
        """Summarise on an event loop; a cancellation passes and leaves no call behind."""
        return await arun(self.summarize_flow(request))


def _asked(call: Callable[..., Any], prompt: Prompt) -> Any:
    """Call a model; a method of a caller's own class may take the messages alone."""
    alone = False
    with suppress(ValueError, TypeError):  # of what is not written in Python
        taken = [one for one in signature(call).parameters.values() if one.kind in PLACED]
        alone = len(taken) == 1 and taken[0].kind is not Parameter.VAR_POSITIONAL
    return call(prompt) if alone else call(prompt, call_config())


def reported(usage: Mapping[str, Any]) -> Cost:
    """Return the cost of a call, as LangChain's `usage_metadata` reports it."""

    def detail(which: str, name: str) -> int:
        count = (usage.get(f"{which}_token_details") or {}).get(name)
        return count if isinstance(count, int) and count > 0 else 0

    # LangChain tells writes to Anthropic's cache by their lifetime, or as a whole, never both.
    hour = detail("input", "ephemeral_1h_input_tokens")
    written = hour + detail("input", "ephemeral_5m_input_tokens")
    sent, got = (max(0, int(usage.get(f"{which}_tokens") or 0)) for which in ("input", "output"))
    cached, thought = detail("input", "cache_read"), detail("output", "reasoning")
    written = written or detail("input", "cache_creation")
    return Cost(1, sent, got, cached, thought, written_tokens=written, hour_tokens=hour)


def model_and_provider(model: object, name: str) -> tuple[str, str]:
    """Return the names of a model and of its provider; those in `provider:model` go first."""
    inner, value = innermost(model), named(model)
    before, mark, after = name.partition(":")
    if mark and before != type(inner).__name__:
        return value or after, before
    try:
        provider = inner._get_ls_params().get("ls_provider") if is_chat_model(inner) else ""
    except Exception:  # somebody's own model; nothing of ours hangs on it
        provider = ""
    return value, provider or ""


def answers_in_sync(model: object) -> bool:
    """Return whether a chat model has no async form of its own.

    LangChain would ask it in a thread of the loop's pool, for which the end of the loop waits.
    """
    kind, base = type(innermost(model)), "langchain_core.language_models.chat_models"
    if not is_chat_model(innermost(model)):
        return False
    return all(
        getattr(kind, one).__module__ == base for one in ("ainvoke", "_agenerate", "_astream")
    )


def profile_window(model: object) -> int | None:
    """Return the input limit in a model's profile, in tokens, or None."""
    profile = getattr(innermost(model), "profile", None)
    limit = profile.get("max_input_tokens") if isinstance(profile, Mapping) else None
    return limit if isinstance(limit, int) and limit > 1 else None


CALL_TAGS = ("nostream", "middleware:summarize")
"""Tags of a summariser's calls: LangGraph shows none in its streams, and DeerFlow's journal books
their tokens to summaries."""


def call_config() -> RunnableConfig:
    """Mark a call as a summariser's own, on top of the marks of a run around it.

    Nothing of it stands in the streams of that run: neither tokens nor events.
    """
    from langchain.agents.middleware.internal_call_transformer import internal_call_metadata
    from langchain_core.runnables.config import ensure_config

    around, own = ensure_config(), {"lc_source": "summarization", **internal_call_metadata()}
    config: RunnableConfig = {
        "metadata": {**(around.get("metadata") or {}), **own},
        "tags": [*dict.fromkeys([*(around.get("tags") or []), *CALL_TAGS])],
    }
    if (callbacks := around.get("callbacks")) is not None:
        config["callbacks"] = without_streams(callbacks)
    return config
