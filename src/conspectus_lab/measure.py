"""Observe a run from outside: compare each request with the one before.

No policy is asked about its work. Messages that left the view are found by the ids in two
requests, pairs are matched as a provider matches them, and one meter counts tokens for all.
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
from conspectus_lab.billing import TOOLS, Bill, Block, Till, block_of
from conspectus_lab.needs import Memory, text_of
from conspectus_lab.policies import Policy, Setting
from conspectus_lab.questions import Question, plain
from conspectus_lab.recording import Recording, broken_pairs
from conspectus_lab.results import Compaction, Lost, Original, Step

STEP_SECONDS, TURN_SECONDS = 15.0, 60.0
"""Assumed time from one request to the next, and what a user takes longer, for caches."""


class Sizes:
    """Count tokens of messages and tools, each version of a message once."""

    def __init__(self) -> None:
        self._meter = TokenMeter()
        self._blocks: dict[int, tuple[BaseMessage, Block]] = {}
        self._tokens: dict[str, int] = {}
        self._tools: dict[str, Block] = {}

    def block(self, message: BaseMessage) -> Block:
        """Return a message as a piece of a request, with its tokens."""
        known = self._blocks.get(id(message))
        if known is None:  # the message is held, so no other takes its place in memory
            text = block_of(message, 0).text
            if text not in self._tokens:
                self._tokens[text] = self._meter.message(message)
            known = (message, block_of(message, self._tokens[text]))
            self._blocks[id(message)] = known
        return known[1]

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
            tokens = self._meter.tools(tools) if tools else 0
            self._tools[names] = Block(names, tokens, run=TOOLS)
        return self._tools[names]


class Account:
    """Bill requests at their assumed times."""

    def __init__(self, recording: Recording, sizes: Sizes, till: Till | None) -> None:
        self._recording, self._sizes, self._till = recording, sizes, till
        self._at, self._position = 0.0, -1

    def pay(
        self,
        messages: Sequence[BaseMessage],
        tools: Sequence[Any],
        position: int,
        waited: float = 0.0,
    ) -> None:
        """Bill one request."""
        if self._till is None:
            return
        new = self._recording.messages[self._position + 1 : position + 1]
        if self._position >= 0:
            spoke = any(isinstance(message, HumanMessage) for message in new)
            self._at += STEP_SECONDS + (TURN_SECONDS if spoke else 0.0)
        self._position = position
        answer = self._recording.answer(position)
        output = 0 if answer is None else self._sizes.message(answer)
        blocks = [self._sizes.tools(tools)] if tools else []
        blocks += map(self._sizes.block, messages)
        self._till.request(blocks, output, self._at, waited)

    def bill(self, costs: Sequence[Cost] = ()) -> Bill | None:
        """Return the bill, with costs of a summariser; None without a price."""
        if self._till is None:
            return None
        for cost in costs:
            self._till.summarizer(cost)
        return self._till.bill()


class Measure:
    """Measure one run, request by request."""

    def __init__(
        self,
        recording: Recording,
        sizes: Sizes,
        account: Account,
        memory: Memory,
        trigger: str,
        on_compaction: Callable[[Compaction], object] | None = None,
    ) -> None:
        self._recording, self._sizes, self._account = recording, sizes, account
        self._memory, self._trigger, self._on_compaction = memory, trigger, on_compaction
        self.setting: Setting
        self.steps: list[Step] = []
        self.compactions: list[Compaction] = []
        self.last: Sequence[BaseMessage] = ()
        self._since: float | None = None
        self._view: dict[str, BaseMessage] = {}
        self._whole: dict[str, BaseMessage] = {}
        self._short: frozenset[str] = frozenset()
        self._summary = ""
        self._position = -2

    def ready(self) -> None:
        """Note that the agent begins to prepare a request."""
        self._since = time.perf_counter()

    def request(self, messages: Sequence[BaseMessage], tools: Sequence[Any]) -> int:
        """Record a request before it is answered, and return its tokens.

        Raises:
            InputError: the newest messages are not in it, so its answer was given before.
        """
        waited = 0.0 if self._since is None else time.perf_counter() - self._since
        self._since = None
        position = self._recording.position(messages)
        if position <= self._position:
            raise InputError(
                "the newest messages have left the request, so the recording cannot go on; keep "
                "more of them"
            )
        self._account.pay(messages, tools, position, waited)
        compaction = self._compared(messages, position)
        sent = self._sizes.messages(messages) + self._sizes.tools(tools).tokens
        recorded = self._recording.messages[: position + 1]
        needed, quoted = self._needed(messages, position)
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
        self.last = messages
        return sent

    def _compared(self, messages: Sequence[BaseMessage], position: int) -> Compaction | None:
        """Find the changes since the request before, apart from new messages."""
        place, recorded = self._recording.place, self._recording.messages
        seen = {str(m.id): m for m in messages}
        new = recorded[max(self._position, -1) + 1 : position + 1]
        before = self._view | {str(message.id): message for message in new}
        left = [name for name in before if name in place and name not in seen]
        known = {name: m for name, m in seen.items() if name in place}
        whole = {name: m for name, m in known.items() if same(m, recorded[place[name]])}
        short = frozenset(known.keys() - whole.keys())
        self._whole |= whole
        summary = "\n\n".join(
            str(m.text) for m in messages if is_summary_message(m) and str(m.id) not in place
        )
        changed = left or short - self._short or summary != self._summary
        self._view = {name: m for name, m in seen.items() if m.type != "system" or name in place}
        self._short, self._position, self._summary = short, position, summary
        if not changed:
            return None
        # The originals as the graph held them, also of messages that were clipped: all that they
        # hold determines how they are cited.
        causes = self.setting.causes
        entries = read_messages([self._whole.get(n) or recorded[place[n]] for n in left])
        return Compaction(
            step=len(self.steps) + 1,
            cause=causes.pop() if causes else f"trigger: {self._trigger}",
            before=self._sizes.messages(before.values()),
            after=self._sizes.messages(self._view.values()),
            left=tuple(map(self._original, entries)),
            summary=summary,
            shortened=len(short),
        )

    def _needed(self, messages: Sequence[BaseMessage], position: int) -> tuple[int, int]:
        """Count identifiers of the answer that no whole message shows, and those quoted."""
        place = self._recording.place
        whole = {place[n] for m in messages if (n := str(m.id)) in place and n not in self._short}
        if len(whole) == position + 1:
            return 0, 0
        answer = self._recording.answer(position)
        others = [m for m in messages if place.get(str(m.id)) not in whole]
        return self._memory.needed(place[str(answer and answer.id)], whole, others)

    def answers(
        self, policy: Policy, questions: Sequence[Question], tokens: int
    ) -> tuple[Lost, ...]:
        """Return the questions that the last request does not answer."""
        view, lost = plain("\n".join(map(text_of, self.last))), []
        for one in questions:
            if missing := one.missing(view):
                more = plain(policy.recall(self.setting, one.question, tokens))
                lost.append(Lost(one.question, missing, not one.missing(f"{view}\n{more}")))
        return tuple(lost)

    def _original(self, entry: Message) -> Original:
        assert isinstance(entry.source, BaseMessage)
        tokens = self._sizes.message(entry.source)
        return Original(entry.id, entry.cite, entry.role, entry.name or "", entry.reading, tokens)

    def with_reading(self) -> tuple[Compaction, ...]:
        """Return the compactions with the characters that were read of each message."""
        read = self.setting.characters

        def marked(one: Original) -> Original:
            return replace(one, read=min(read.get(one.id, 0), len(one.text)))

        return tuple(replace(done, left=tuple(map(marked, done.left))) for done in self.compactions)

    def missing(
        self, state: Sequence[BaseMessage], archived: Mapping[str, Sequence[BaseMessage]]
    ) -> int:
        """Count originals that are in neither the state nor the archive, unchanged."""
        there = {str(m.id): [m] for m in state}
        end = max(self._position, self._recording.position(state))
        return sum(
            not any(same(m, one) for m in (*archived.get(name, ()), *there.get(name, ())))
            for one in self._recording.messages[: end + 1]
            for name in (str(one.id),)
        )


def same(message: BaseMessage, original: BaseMessage) -> bool:
    """Return whether a message equals its original."""
    parts = ("type", "content", "tool_calls", "tool_call_id")
    return message is original or all(
        getattr(message, part, None) == getattr(original, part, None) for part in parts
    )
