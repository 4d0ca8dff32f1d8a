"""Observe a run from outside: compare each request with the one before.

No policy reports on its own work. Evicted messages are found by comparing the ids of two requests,
pairs are matched as a provider matches them, and one meter counts tokens for all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from conspectus.core.records import Cost
from conspectus.errors import InputError
from conspectus.messages import Message, is_summary_message, read_messages
from conspectus.tokens import TokenMeter
from conspectus_lab.billing import TOOLS, Bill, BillBuilder, Block, block_of
from conspectus_lab.needs import IdentifierIndex, text_of
from conspectus_lab.policies import ComparedPolicy, Setting
from conspectus_lab.questions import Question, plain
from conspectus_lab.recording import Recording, broken_pairs
from conspectus_lab.results import Compaction, Lost, Original, Step

STEP_SECONDS = 15.0
"""Assumed time from one request to the next, for caches."""

TURN_SECONDS = 60.0
"""The additional time of a user."""


class Sizes:
    """Counts tokens of messages and tools, each version of a message once."""

    def __init__(self) -> None:
        self._meter = TokenMeter()
        self._blocks: dict[int, tuple[BaseMessage, Block]] = {}
        self._tokens: dict[str, int] = {}
        self._tools: dict[str, Block] = {}

    def block(self, message: BaseMessage) -> Block:
        """Return a message as a piece of a request, with its tokens."""
        if id(message) not in self._blocks:
            text = block_of(message, 0).text
            if text not in self._tokens:
                self._tokens[text] = self._meter.count_message(message)
            # The message is stored with the count, so that no other object gets its id.
            self._blocks[id(message)] = (message, block_of(message, self._tokens[text]))
        _, block = self._blocks[id(message)]
        return block

    def message(self, message: BaseMessage) -> int:
        """Count tokens of one message."""
        return self.block(message).tokens

    def messages(self, messages: Iterable[Any]) -> int:
        """Count tokens of messages: the form of LangChain's `token_counter`."""
        return sum(map(self.message, messages))

    def tools(self, tools: Sequence[Any]) -> Block:
        """Return the tools of a request as one piece of it."""
        names = " ".join(str(getattr(tool, "name", tool)) for tool in tools)
        if names not in self._tools:
            tokens = self._meter.count_tools(tools) if tools else 0
            self._tools[names] = Block(names, tokens, run=TOOLS)
        return self._tools[names]


class Account:
    """Bills requests at their assumed times."""

    def __init__(
        self, recording: Recording, sizes: Sizes, bill_builder: BillBuilder | None
    ) -> None:
        self._recording = recording
        self._sizes = sizes
        self._bill_builder = bill_builder  # None if no price is known
        self._seconds = 0.0  # seconds since the session began
        self._position = -1

    def pay(
        self,
        messages: Sequence[BaseMessage],
        tools: Sequence[Any],
        position: int,
        waited: float = 0.0,
    ) -> None:
        """Bill one request."""
        if self._bill_builder is None:
            return
        new = self._recording.messages[self._position + 1 : position + 1]
        if self._position >= 0:
            spoke = any(isinstance(message, HumanMessage) for message in new)
            self._seconds += STEP_SECONDS + (TURN_SECONDS if spoke else 0.0)
        self._position = position
        answer = self._recording.answer(position)
        output = 0 if answer is None else self._sizes.message(answer)
        blocks = [self._sizes.tools(tools)] if tools else []
        blocks += map(self._sizes.block, messages)
        self._bill_builder.request(blocks, output, self._seconds, waited)

    def bill(self, costs: Sequence[Cost] = ()) -> Bill | None:
        """Return the bill, with costs of a summariser; None without a price."""
        if self._bill_builder is None:
            return None
        for cost in costs:
            self._bill_builder.summarizer(cost)
        return self._bill_builder.bill()


class Measure:
    """Measures one run, request by request."""

    def __init__(
        self,
        recording: Recording,
        sizes: Sizes,
        account: Account,
        identifiers: IdentifierIndex,
        trigger: str,
        on_compaction: Callable[[Compaction], object] | None = None,
    ) -> None:
        self._recording = recording
        self._sizes = sizes
        self._account = account
        self._identifiers = identifiers
        self._trigger = trigger
        self._on_compaction = on_compaction
        self.setting: Setting
        self.steps: list[Step] = []
        self.compactions: list[Compaction] = []
        self.last_request: Sequence[BaseMessage] = ()
        self._preparing_since: float | None = None
        # From the previous request: its messages by id, all whole messages so far, the ids of
        # clipped ones, its summary, and the position of its newest message.
        self._view: dict[str, BaseMessage] = {}
        self._whole: dict[str, BaseMessage] = {}
        self._shortened: frozenset[str] = frozenset()
        self._summary = ""
        self._position = -2

    def ready(self) -> None:
        """Note that the agent begins to prepare a request."""
        self._preparing_since = time.perf_counter()

    def request(self, messages: Sequence[BaseMessage], tools: Sequence[Any]) -> int:
        """Record a request before it is answered, and return its tokens.

        Raises:
            InputError: the newest messages are missing, so the request was answered before.
        """
        waited = 0.0
        if self._preparing_since is not None:
            waited = time.perf_counter() - self._preparing_since
        self._preparing_since = None
        position = self._recording.position(messages)
        if position <= self._position:
            raise InputError(
                "the newest messages have left the request, so the recording cannot go on; keep "
                "more of them"
            )
        self._account.pay(messages, tools, position, waited)
        compaction = self._compare_with_last_request(messages, position)
        sent = self._sizes.messages(messages) + self._sizes.tools(tools).tokens
        recorded = self._recording.messages[: position + 1]
        needed, quoted = self._needed_identifiers(messages, position)
        step = Step(
            number=len(self.steps) + 1,
            tokens=sent,
            messages=len(messages),
            compacted=compaction is not None,
            broken=len({*broken_pairs(messages)} - {*broken_pairs(recorded)}),
            over=max(0, sent - self.setting.window),
            needed=needed,
            quoted=quoted,
            waited=waited,
        )
        if compaction is not None:
            self.compactions.append(compaction)
            if self._on_compaction is not None:
                self._on_compaction(compaction)
        self.steps.append(step)
        self.last_request = messages
        return sent

    def _compare_with_last_request(
        self, messages: Sequence[BaseMessage], position: int
    ) -> Compaction | None:
        """Return the compaction between the last request and this one, and remember this one.

        None if only new messages were added.
        """
        recorded = self._recording.messages
        index_of = self._recording.index_of
        view = {str(message.id): message for message in messages}
        new_messages = recorded[max(self._position, -1) + 1 : position + 1]
        view_before = self._view | {str(message.id): message for message in new_messages}
        left = [name for name in view_before if name in index_of and name not in view]
        whole: dict[str, BaseMessage] = {}
        shortened: set[str] = set()
        for name, message in view.items():
            if name in index_of and same(message, recorded[index_of[name]]):
                whole[name] = message
            elif name in index_of:
                shortened.add(name)
        summary = "\n\n".join(
            str(message.text)
            for message in messages
            if is_summary_message(message) and str(message.id) not in index_of
        )
        changed = left or shortened - self._shortened or summary != self._summary
        self._whole |= whole
        # The graph's own system prompt is no part of the history.
        self._view = {
            name: message
            for name, message in view.items()
            if message.type != "system" or name in index_of
        }
        self._shortened = frozenset(shortened)
        self._position = position
        self._summary = summary
        if not changed:
            return None
        # The originals in the graph, also of clipped messages: their whole content determines how
        # they are cited.
        originals = [self._whole.get(name) or recorded[index_of[name]] for name in left]
        causes = self.setting.causes
        return Compaction(
            step=len(self.steps) + 1,
            cause=causes.pop() if causes else f"trigger: {self._trigger}",
            before=self._sizes.messages(view_before.values()),
            after=self._sizes.messages(self._view.values()),
            left=tuple(map(self._original, read_messages(originals))),
            summary=summary,
            shortened=len(shortened),
        )

    def _needed_identifiers(
        self, messages: Sequence[BaseMessage], position: int
    ) -> tuple[int, int]:
        """Count identifiers of the answer that no whole message shows, and quoted ones."""
        index_of = self._recording.index_of
        whole: set[int] = set()
        not_whole: list[BaseMessage] = []
        for message in messages:
            name = str(message.id)
            if name in index_of and name not in self._shortened:
                whole.add(index_of[name])
            else:
                not_whole.append(message)
        if len(whole) == position + 1:
            return 0, 0
        answer = self._recording.answer(position)
        return self._identifiers.needed(index_of[str(answer and answer.id)], whole, not_whole)

    def answers(
        self, policy: ComparedPolicy, questions: Sequence[Question], tokens: int
    ) -> tuple[Lost, ...]:
        """Return the questions that the last request does not answer."""
        view = plain("\n".join(map(text_of, self.last_request)))
        lost: list[Lost] = []
        for question in questions:
            missing = question.missing(view)
            if missing:
                recalled = plain(policy.recall(self.setting, question.question, tokens))
                is_recalled = not question.missing(f"{view}\n{recalled}")
                lost.append(Lost(question.question, missing, is_recalled))
        return tuple(lost)

    def _original(self, entry: Message) -> Original:
        assert isinstance(entry.source, BaseMessage)
        tokens = self._sizes.message(entry.source)
        return Original(entry.id, entry.cite, entry.role, entry.name or "", entry.reading, tokens)

    def with_reading(self) -> tuple[Compaction, ...]:
        """Return the compactions with the characters that were read of each message."""
        characters_read = self.setting.characters

        def with_read(original: Original) -> Original:
            read = min(characters_read.get(original.id, 0), len(original.text))
            return replace(original, read=read)

        return tuple(
            replace(compaction, left=tuple(map(with_read, compaction.left)))
            for compaction in self.compactions
        )

    def missing(
        self, state: Sequence[BaseMessage], archived: Mapping[str, Sequence[BaseMessage]]
    ) -> int:
        """Count originals that are in neither the state nor the archive, unchanged."""
        in_state = {str(message.id): message for message in state}
        last_position = max(self._position, self._recording.position(state))
        missing = 0
        for original in self._recording.messages[: last_position + 1]:
            name = str(original.id)
            candidates = [*archived.get(name, ())]
            if name in in_state:
                candidates.append(in_state[name])
            missing += not any(same(message, original) for message in candidates)
        return missing


def same(message: BaseMessage, original: BaseMessage) -> bool:
    """Tell whether a message equals its original."""
    parts = ("type", "content", "tool_calls", "tool_call_id")
    return message is original or all(
        getattr(message, part, None) == getattr(original, part, None) for part in parts
    )
