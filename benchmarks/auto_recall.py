"""Answers before an agent's model when a question is asked: recall at each turn.

    make bench-auto-recall        or: python benchmarks/auto_recall.py --json

Each conversation goes through a real agent (`create_agent` with `SummarizationMiddleware` and
`ContextGuard`), is compacted there, and is then asked each of its questions on a branch of its own.
What counts is the request that the model was sent. Folders and measures are those of
`make bench-retention`. A script that takes `module:factory` is given `auto_recall:make`, run from
this folder. The exit code is 1 if a target is missed, and 0 where there is no data.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import printed
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from retention_targets import KEEP, Check, end, none_of

from conspectus import ContextGuard, SummarizationMiddleware
from conspectus.messages.recalled import without_recalled
from conspectus.tokens import TokenCounter
from conspectus_lab.commands.eval import read_transcripts
from conspectus_lab.evaluate import Transcript, evaluate
from conspectus_lab.evaluate.systems import Compacted, Family, gone
from conspectus_lab.testing.scripted_models import ScriptedChatModel

LEAST = {"locomo": 0.82}
"""The least share of answers, by folder."""

RECALL, SUMMARY = 512, 512
"""Tokens that are recalled at a turn, and that the text of the summary takes at most."""

KNOWN = "gpt-4o"
"""A model whose tokens the middleware estimates by its own family."""

SHORTEST = 60
"""Messages from which on a conversation is compacted; questions asked after that do so no more."""


def counted(messages: Any) -> int:
    """Count by LangChain's approximation, as the measure does.

    Given as a counter of one's own it says what fits as well, where the middleware would otherwise
    go by its own, more careful estimate: sizes must mean the same on both sides.
    """
    return count_tokens_approximately(messages)


class Talk:
    """One conversation with one agent.

    Args:
        keep: the newest history that stays.
        summary_tokens: the most that the text of its summary takes.
        counter: counts the tokens that must fit.
        name: of the model whose window is managed; the middleware's estimate goes by it.
    """

    def __init__(
        self,
        keep: tuple[str, int],
        summary_tokens: int,
        counter: TokenCounter = counted,
        name: str = "",
    ) -> None:
        middle = SummarizationMiddleware(
            ScriptedChatModel(answers=[], model_name=name) if name else None,
            summarizer="embedded",
            trigger=("messages", SHORTEST),
            keep=keep,
            token_counter=counter,
            max_summary_tokens=summary_tokens,
            recall="auto",
            recall_tokens=RECALL,
        )
        self._model = ScriptedChatModel(answers=lambda messages: "Noted.")
        self._agent = create_agent(
            self._model,
            [],
            middleware=[middle, ContextGuard(middle)],
            checkpointer=InMemorySaver(),
            store=InMemoryStore(),
        )
        self._thread: Any = {"configurable": {"thread_id": "measured"}}

    def compact(self, messages: Sequence[BaseMessage]) -> Compacted:
        """Send a whole conversation, and give the model's view of it."""
        started = time.perf_counter()
        history, _ = self._sent(list(messages))
        seconds = time.perf_counter() - started
        self._thread = self._agent.get_state(self._thread).config
        left = gone(messages, history)
        return Compacted(history, done=bool(left), evicted=len(left), seconds=seconds)

    def recall(self, query: str, tokens: int) -> str:
        """Ask a question, and give the originals recalled beside the conversation."""
        _, recalled = self._sent([HumanMessage(query)])
        return "" if recalled is None else str(recalled.text)

    def close(self) -> None:
        """Do nothing: it keeps nothing open."""

    def _sent(self, said: list[BaseMessage]) -> tuple[list[BaseMessage], BaseMessage | None]:
        self._model.calls.clear()
        state = self._agent.invoke({"messages": said}, self._thread)
        [call] = self._model.calls
        return without_recalled(call.messages, state["messages"])


@dataclass(frozen=True, slots=True)
class InAnAgent:
    """Recall at each turn, as `conspectus_lab.evaluate` compares systems."""

    counter: TokenCounter = counted
    model: str = ""
    name: str = "recall at each turn"
    keep: tuple[str, int] = KEEP
    sizes: tuple[int, ...] | None = (SUMMARY,)
    family: Family = "conspectus"

    def open(self, summary_tokens: int) -> Talk:
        """Open a conversation without a compaction."""
        return Talk(self.keep, summary_tokens, self.counter, self.model)


class Policy:
    """The adapter that an outside script asks for."""

    def __init__(self, keep: tuple[str, int], summary_tokens: int) -> None:
        self._settings = keep, summary_tokens

    def compact(self, messages: list[BaseMessage]) -> list[BaseMessage]:
        """Give the model's view of a history."""
        self._talk = Talk(*self._settings)
        return self._talk.compact(messages).messages

    def recall(self, query: str, tokens: int) -> str:
        """Give the originals recalled with a question."""
        return self._talk.recall(query, tokens)


def make(keep: tuple[str, int], summary_tokens: int) -> Policy:
    """Make the adapter, as such a script asks for it."""
    return Policy(keep, summary_tokens)


def checks(data: Path) -> Iterator[Check]:
    """Check all figures that there is data for."""
    for folder, least in LEAST.items():
        if not (data / folder).is_dir():
            continue
        transcripts, _ = read_transcripts([str(data / folder)])
        name = f"{folder}, {RECALL:,} tokens at each turn: "
        kept = _answers(transcripts, counted)
        value = kept.answers.value
        target = f"at least {least}"
        yield Check(f"{name}answers", value, target, value >= least, kept.bm25.value)
        yield none_of(f"{name}recalled more than allowed", kept.recall_over)
        yield none_of(f"{name}contexts over", kept.contexts.over)
        # By the middleware's own estimate: of a model that it knows, and of one that it does not,
        # whose text it takes for half as much again.
        for model in (KNOWN, ""):
            kept = _answers(transcripts, count_tokens_approximately, model)
            what = f"{folder}, the same estimated, {model or 'unknown model'}: answers"
            value = kept.answers.value
            yield Check(what, value, target, value >= least, kept.bm25.value)


def _answers(transcripts: Sequence[Transcript], counter: TokenCounter, model: str = "") -> Any:
    found = evaluate(
        transcripts,
        [InAnAgent(counter, model)],
        summary_tokens=[SUMMARY],
        keep=KEEP,
        recall_tokens=RECALL,
    )
    return found.systems[0].answers


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give the exit code."""
    given = printed.options(__doc__).parse_args(arguments)
    return end(given.json, list(checks(printed.transcripts_folder())), "locomo")


if __name__ == "__main__":
    sys.exit(main())
