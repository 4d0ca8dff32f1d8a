"""Run recorded conversations again through a real agent, once under each policy."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.base import BaseStore
from langgraph.store.sqlite import SqliteStore

from conspectus.core.policy import check_size, names_embedded, parse_trigger, whole
from conspectus.errors import PolicyError
from conspectus.messages import Source
from conspectus.model import ChatModelSummarizer, EmbeddedSummarizer, Summarizer
from conspectus.observe import Price
from conspectus_lab.agent import RecordedModel, TurnEnds, recorded_tools
from conspectus_lab.billing import Bill, Till, is_priced
from conspectus_lab.measure import Account, Measure, Sizes
from conspectus_lab.needs import Memory
from conspectus_lab.policies import POLICIES, SCOPE, Policy, Setting, ours
from conspectus_lab.questions import Question, read_questions
from conspectus_lab.recording import Recording
from conspectus_lab.results import Compaction, Lost, Original, PolicyRun, Replay, Step, worse

__all__ = [
    "Compaction",
    "Lost",
    "Original",
    "Policy",
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
LEAST_SUMMARY, MOST_SUMMARY = 256, 4_096
"""Default size of a summary: an eighth of the window, between these, in tokens."""

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
    policies: str | Sequence[str | Policy] = tuple(POLICIES),
    questions: Sequence[Question] = (),
    recall_tokens: int = 512,
    on_compaction: Callable[[str, Compaction], object] | None = None,
    priced_as: str | None = None,
    prices: Mapping[str, Price] | None = None,
) -> Replay:
    """Run a transcript again through a real agent under each policy, and measure.

    The agent is LangChain's `create_agent` with a SQLite checkpointer and a store. Its model and
    its tools answer as recorded, so that nothing costs money, unless `summarizer` is a chat model.
    The input of users is one turn of the graph after the other, on one thread. All policies get the
    same input, trigger, `keep`, token counter, summariser and size of summary.

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
        policies: one or several of `"none"`, `"langchain"` and `"conspectus"`, or a `Policy`.
            Default: these three.
        questions: about the end; their evidence is looked for in the last request.
        recall_tokens: of what a question may recall.
        on_compaction: called with the title of a policy and each compaction, as it happens.
        priced_as: the model whose prices and cache count for the bill. Default: `PRICED_AS`; no
            bill where its price is not known.
        prices: your own, by model, by default those of `set_prices`; others are looked up in
            `genai-prices`, where it is installed. A summariser whose model has one is paid at that,
            another at the agent's.

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
    kind, amount = check_size(keep, "keep")
    usual = max(LEAST_SUMMARY, min(MOST_SUMMARY, whole(window, "window") // SUMMARY_SHARE))
    limit = usual if summary_tokens is None else whole(summary_tokens, "summary_tokens")
    if not clauses:
        raise PolicyError('a replay needs a trigger; write ("fraction", 0.85), say')
    in_words = " or ".join(map(str, clauses))
    chosen = _policies([policies] if isinstance(policies, str) else policies)
    writer = _summarizer(summarizer)
    if priced_as is None and is_priced(PRICED_AS, prices):
        priced_as = PRICED_AS
    recall = whole(recall_tokens, "recall_tokens")
    recording, sizes = Recording.of(messages, name), Sizes()
    memory = Memory(recording.messages)

    def account() -> Account:
        return Account(recording, sizes, None if priced_as is None else Till(priced_as, prices))

    def run(policy: Policy) -> PolicyRun:
        paid = account()
        notify = partial(on_compaction, policy.title) if on_compaction else None
        measure = Measure(recording, sizes, paid, memory, in_words, notify)
        answering = RecordedModel(
            recording=recording,
            on_request=measure.request,
            count=sizes.message,
            profile={"max_input_tokens": window},
        )
        with _storage() as (saver, store):
            setting = measure.setting = Setting(
                answering, store, window, trigger, keep, writer, limit, sizes.messages
            )
            graph = create_agent(
                answering,
                tools=recorded_tools(recording),
                system_prompt=recording.system,
                middleware=[TurnEnds(recording, measure.ready), *policy.middleware(setting)],
                checkpointer=saver,
                store=store,
            )
            state, stopped = _play(graph, recording)
            missing = measure.missing(state, policy.archived(setting))
            lost = measure.answers(policy, questions, recall)
        return PolicyRun(
            policy=policy.name,
            title=policy.title,
            steps=tuple(measure.steps),
            compactions=measure.with_reading(),
            missing=missing,
            stopped=stopped,
            bill=paid.bill(setting.costs),
            summarizer_calls=sum(cost.calls for cost in setting.costs),
            summarizer_tokens=sum(cost.tokens for cost in setting.costs),
            asked=len(questions),
            lost=lost,
            ours=policy.ours,
        )

    return Replay(
        name=name,
        digest=_digest(recording, questions),
        messages=len(messages),
        tokens=sizes.messages([*recording.prompt, *recording.messages]),
        window=window,
        trigger=in_words,
        keep=f"{amount:g} of the window" if kind == "fraction" else f"{amount:,} {kind}",
        summarizer=writer.name,
        without=_without(recording, account()),
        runs=tuple(map(run, chosen)),
    )


def _digest(recording: Recording, questions: Sequence[Question]) -> str:
    rows = [f"{one.type} {one.id} {one.text}" for one in [*recording.prompt, *recording.messages]]
    text = "\0".join([*rows, *map(repr, questions)])
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _policies(names: Sequence[str | Policy]) -> list[Policy]:
    own = {one.name: one for one in names if isinstance(one, Policy)}
    wanted = list(dict.fromkeys(one.name if isinstance(one, Policy) else one for one in names))
    unknown = [name for name in wanted if name not in own and name not in POLICIES]
    if unknown or not wanted:
        raise PolicyError(
            f"there is no policy {', '.join(map(repr, unknown)) or 'named'}; known are "
            f"{', '.join(POLICIES)}"
        )
    return [own.get(name) or POLICIES[name] for name in wanted]


def _summarizer(given: Summarizer | BaseChatModel | str | None) -> Summarizer:
    if given is None or names_embedded(given):
        return EmbeddedSummarizer()
    return ChatModelSummarizer(given) if isinstance(given, (str, BaseChatModel)) else given


@contextmanager
def _storage() -> Iterator[tuple[Any, BaseStore]]:
    """Open a checkpointer and a store in a temporary folder."""
    with (
        tempfile.TemporaryDirectory(prefix="conspectus-replay-") as folder,
        SqliteSaver.from_conn_string(str(Path(folder) / "checkpoints.db")) as saver,
        SqliteStore.from_conn_string(str(Path(folder) / "store.db")) as store,
    ):
        store.setup()
        yield saver, store


def _without(recording: Recording, account: Account) -> Bill | None:
    """Bill the same requests with the whole history in each."""
    tools = recorded_tools(recording)
    for place, message in enumerate(recording.messages):
        if isinstance(message, AIMessage):
            history = [*recording.prompt, *recording.messages[:place]]
            account.pay(history, tools, place - 1)
    return account.bill()


def _play(graph: Any, recording: Recording) -> tuple[list[Any], str]:
    """Play turn after turn; return the messages at the end, and the reason for an early end."""
    stopped = ""
    config: RunnableConfig = {
        "configurable": {"thread_id": SCOPE.thread},
        "recursion_limit": 8 * len(recording.messages) + 100,
    }
    for turn in recording.turns:
        try:
            said = {"messages": [message.model_copy() for message in turn]}
            # Each turn is saved at its end: no run resumes within one, and writing a thread that is
            # never compacted after every step would take most of the time.
            graph.invoke(said, config, durability="exit")
        except Exception as error:  # an error of a policy's code is a finding
            stopped = f"{type(error).__name__}: {error}"
            break
    return graph.get_state(config).values.get("messages", []), stopped
