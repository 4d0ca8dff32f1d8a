"""Run recorded conversations again through a real agent, once under each policy."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from conspectus.core.policy import check_size, check_whole_number, names_embedded, parse_trigger
from conspectus.errors import PolicyError
from conspectus.messages import Source
from conspectus.model import ChatModelSummarizer, EmbeddedSummarizer, Summarizer
from conspectus.observe import Price
from conspectus_lab.agent import RecordedModel, TurnEnds, recorded_tools
from conspectus_lab.billing import Bill, BillBuilder, is_priced
from conspectus_lab.measure import Account, Measure, Sizes
from conspectus_lab.needs import IdentifierIndex
from conspectus_lab.policies import POLICIES, SCOPE, ComparedPolicy, Setting, ours
from conspectus_lab.questions import Question, read_questions
from conspectus_lab.recording import Recording
from conspectus_lab.results import Compaction, Lost, Original, PolicyRun, Replay, Step, worse

__all__ = [
    "Compaction",
    "ComparedPolicy",
    "Lost",
    "Original",
    "PolicyRun",
    "Question",
    "Replay",
    "Step",
    "ours",
    "read_questions",
    "replay",
    "worse",
]

WINDOW = 8_000
TRIGGER = ("fraction", 0.85)
KEEP = ("messages", 20)

SUMMARY_SHARE = 8
LEAST_SUMMARY = 256
MOST_SUMMARY = 4_096
"""Limits of the default size of a summary, an eighth of the window, in tokens."""

PRICED_AS = "claude-sonnet-5-5"
"""Default model of prices."""


def replay(
    messages: Sequence[Source],
    *,
    name: str = "transcript",
    window: int = WINDOW,
    trigger: object = TRIGGER,
    keep: object = KEEP,
    summarizer: Summarizer | BaseChatModel | str | None = None,
    summary_tokens: int | None = None,
    policies: str | Sequence[str | ComparedPolicy] = tuple(POLICIES),
    questions: Sequence[Question] = (),
    recall_tokens: int = 512,
    on_compaction: Callable[[str, Compaction], object] | None = None,
    priced_as: str | None = None,
    prices: Mapping[str, Price] | None = None,
) -> Replay:
    """Run a transcript again through a real agent under each policy, and measure.

    The agent is LangChain's `create_agent` with a checkpointer and a store. Its model and
    its tools answer as recorded, so that nothing costs money, unless `summarizer` is a chat model.
    The users' input is passed turn by turn, on one thread. All policies get the same input,
    trigger, `keep`, token counter, summariser and size of summary.

    Args:
        messages: LangChain messages, or dicts in OpenAI's or Anthropic's form. Never changed.
        name: name of the transcript in results.
        window: input limit of the model that answers, in tokens.
        trigger: when to compact, as for `Compactor`. Default: at 0.85 of the window.
        keep: the newest history that stays, likewise. Default: 20 messages.
        summarizer: a `Summarizer`, a LangChain chat model, or a `provider:model` string. Default:
            `"embedded"`, the `EmbeddedSummarizer`.
        summary_tokens: maximum of a summary's text. Default: an eighth of the window, between 256
            and 4,096.
        policies: one or several of `"none"`, `"langchain"` and `"conspectus"`, or a
            `ComparedPolicy`. Default: these three.
        questions: about the end; their evidence is looked for in the last request.
        recall_tokens: the most tokens that a question may recall.
        on_compaction: called with the title of a policy and each compaction, as it happens.
        priced_as: the model whose prices and cache count for the bill. Default: `PRICED_AS`; no
            bill if its price is not known.
        prices: your own prices by model. Default: those of `set_prices`. Other models are looked up
            in `genai-prices`, if it is installed. A summariser whose model has no price costs as
            much as the agent's model.

    Returns:
        Figures and compactions of each run. `stopped` has the reason of a run that cannot go on.

    Raises:
        MessageError: a message cannot be understood.
        InputError: no assistant speaks in the transcript.
        PolicyError: a setting is invalid, or a model has no price.

    Example:
        >>> said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}]
        >>> replay(said, policies=["none"]).runs[0].steps[0].messages
        1
    """
    clauses = parse_trigger(trigger)
    if not clauses:
        raise PolicyError('a replay needs a trigger; write ("fraction", 0.85), say')
    trigger_words = " or ".join(map(str, clauses))
    unit, amount = check_size(keep, "keep")
    eighth_of_window = check_whole_number(window, "window") // SUMMARY_SHARE
    if summary_tokens is None:
        summary_tokens = max(LEAST_SUMMARY, min(MOST_SUMMARY, eighth_of_window))
    if priced_as is None and is_priced(PRICED_AS, prices):
        priced_as = PRICED_AS
    runner = _Runner(
        recording=Recording.of(messages, name),
        window=window,
        trigger=trigger,
        trigger_words=trigger_words,
        keep=keep,
        summarizer=_summarizer(summarizer),
        summary_tokens=check_whole_number(summary_tokens, "summary_tokens"),
        questions=questions,
        recall_tokens=check_whole_number(recall_tokens, "recall_tokens"),
        on_compaction=on_compaction,
        priced_as=priced_as,
        prices=prices,
    )
    compared = _compared_policies([policies] if isinstance(policies, str) else policies)
    recording = runner.recording
    return Replay(
        name=name,
        digest=_digest(recording, questions),
        messages=len(messages),
        tokens=runner.sizes.messages([*recording.prompt, *recording.messages]),
        window=window,
        trigger=trigger_words,
        keep=f"{amount:g} of the window" if unit == "fraction" else f"{amount:,} {unit}",
        summarizer=runner.summarizer.name,
        without=runner.bill_without_compaction(),
        runs=tuple(map(runner.run, compared)),
    )


@dataclass(frozen=True, kw_only=True)
class _Runner:
    """Runs one recording under one policy after the other, with the same settings."""

    recording: Recording
    window: int
    trigger: object
    trigger_words: str
    keep: object
    summarizer: Summarizer
    summary_tokens: int
    questions: Sequence[Question]
    recall_tokens: int
    on_compaction: Callable[[str, Compaction], object] | None
    priced_as: str | None
    prices: Mapping[str, Price] | None
    sizes: Sizes = field(default_factory=Sizes)

    @cached_property
    def identifiers(self) -> IdentifierIndex:
        return IdentifierIndex(self.recording.messages)

    def run(self, policy: ComparedPolicy) -> PolicyRun:
        """Run the recording through an agent with the middleware of a policy, and measure."""
        account = self._account()
        notify = partial(self.on_compaction, policy.title) if self.on_compaction else None
        measure = Measure(
            self.recording, self.sizes, account, self.identifiers, self.trigger_words, notify
        )
        model = RecordedModel(
            recording=self.recording,
            on_request=measure.request,
            count=self.sizes.message,
            profile={"max_input_tokens": self.window},
        )
        store = InMemoryStore()
        setting = self._setting(model, store)
        measure.setting = setting
        graph = create_agent(
            model,
            tools=recorded_tools(self.recording),
            system_prompt=self.recording.system,
            middleware=[
                TurnEnds(self.recording, measure.ready),
                *policy.middleware(setting),
            ],
            checkpointer=InMemorySaver(),
            store=store,
        )
        state, stopped = _play(graph, self.recording)
        missing = measure.missing(state, policy.archived(setting))
        lost = measure.answers(policy, self.questions, self.recall_tokens)
        return PolicyRun(
            policy=policy.name,
            title=policy.title,
            steps=tuple(measure.steps),
            compactions=measure.with_reading(),
            missing=missing,
            stopped=stopped,
            bill=account.bill(setting.costs),
            summarizer_calls=sum(cost.calls for cost in setting.costs),
            summarizer_tokens=sum(cost.tokens for cost in setting.costs),
            asked=len(self.questions),
            lost=lost,
            ours=policy.ours,
        )

    def bill_without_compaction(self) -> Bill | None:
        """Bill the same requests with the whole history in each."""
        account = self._account()
        tools = recorded_tools(self.recording)
        for index, message in enumerate(self.recording.messages):
            if isinstance(message, AIMessage):
                history = [*self.recording.prompt, *self.recording.messages[:index]]
                account.pay(history, tools, index - 1)
        return account.bill()

    def _account(self) -> Account:
        builder = None
        if self.priced_as is not None:
            builder = BillBuilder(self.priced_as, self.prices)
        return Account(self.recording, self.sizes, builder)

    def _setting(self, model: BaseChatModel, store: BaseStore) -> Setting:
        return Setting(
            model=model,
            store=store,
            window=self.window,
            trigger=self.trigger,
            keep=self.keep,
            summarizer=self.summarizer,
            summary_tokens=self.summary_tokens,
            count=self.sizes.messages,
        )


def _digest(recording: Recording, questions: Sequence[Question]) -> str:
    messages = [*recording.prompt, *recording.messages]
    rows = [f"{message.type} {message.id} {message.text}" for message in messages]
    text = "\0".join([*rows, *map(repr, questions)])
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _compared_policies(policies: Sequence[str | ComparedPolicy]) -> list[ComparedPolicy]:
    by_name: dict[str, ComparedPolicy | None] = {}
    for policy in policies:
        if isinstance(policy, ComparedPolicy):
            by_name[policy.name] = policy
        else:
            by_name.setdefault(policy, POLICIES.get(policy))
    unknown = [name for name, policy in by_name.items() if policy is None]
    if unknown or not by_name:
        raise PolicyError(
            f"there is no policy {', '.join(map(repr, unknown)) or 'named'}; known are "
            f"{', '.join(POLICIES)}"
        )
    return [policy for policy in by_name.values() if policy is not None]


def _summarizer(setting: Summarizer | BaseChatModel | str | None) -> Summarizer:
    if setting is None or names_embedded(setting):
        return EmbeddedSummarizer()
    if isinstance(setting, (str, BaseChatModel)):
        return ChatModelSummarizer(setting)
    return setting


def _play(graph: Any, recording: Recording) -> tuple[list[Any], str]:
    """Play turn after turn; return the messages at the end, and the reason for an early end."""
    stopped = ""
    config: RunnableConfig = {
        "configurable": {"thread_id": SCOPE.thread},
        "recursion_limit": 8 * len(recording.messages) + 100,
    }
    for turn in recording.turns:
        try:
            new_messages = {"messages": [message.model_copy() for message in turn]}
            # Each turn is saved only at its end: no run resumes within a turn, and to write an
            # uncompacted thread after every step would take most of the time.
            graph.invoke(new_messages, config, durability="exit")
        except Exception as error:  # an error of a policy's code is a finding
            stopped = f"{type(error).__name__}: {error}"
            break
    return graph.get_state(config).values.get("messages", []), stopped
