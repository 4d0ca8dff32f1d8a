"""Observe a run from outside: compare each request with the one before.

No policy is asked about its work. Messages that left the view are found by the ids in two
requests, pairs are matched as a provider matches them, and one meter counts tokens for all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from conspectus.core.records import Cost
from conspectus.errors import InputError
from conspectus.messages import Entry, is_summary_message, read_messages
from conspectus.model import Summarizer
from conspectus.tokens import TokenMeter
from conspectus.tokens.tally import remembered
from conspectus_lab.billing import Block, Till, block_of
from conspectus_lab.billing.session import TOOLS
from conspectus_lab.pairs import broken_pairs
from conspectus_lab.recording import Recording
from conspectus_lab.replay.results import Compaction, Original, Step

OnEvent = Callable[[str, Mapping[str, Any]], None]

STEP_SECONDS, TURN_SECONDS = 15.0, 60.0
"""Assumed time from one request to the next, and what a user takes longer, for caches."""


class Sizes:
    """Count tokens of messages, each version of a message once."""

    def __init__(self, meter: TokenMeter) -> None:
        self.meter, self.message = meter, remembered(meter.message)
        self._tools: dict[tuple[int, ...], int] = {}

    def messages(self, messages: Iterable[Any]) -> int:
        """Count tokens of messages: the form of LangChain's `token_counter`."""
        return sum(map(self.message, messages))

    def tools(self, tools: Sequence[Any]) -> int:
        """Count tokens of the tools of a request."""
        key = tuple(map(id, tools))
        if key not in self._tools:
            self._tools[key] = self.meter.tools(tools)
        return self._tools[key]


@dataclass(frozen=True, slots=True)
class Plan:
    """Settings that are the same for every policy of a replay.

    Attributes:
        sizes: counts tokens, for all policies alike.
        window: input limit of the model that answers, in tokens.
        trigger, keep: as LangChain's users write them.
        in_words: the trigger.
        summary_tokens: maximum tokens of a summary's text.
        chat_model: the model behind the summariser, for a policy that asks it in its own way.
        notify: called with each event of a replay.
        tills: makes those that add up the cost of one run.
    """

    recording: Recording
    sizes: Sizes
    window: int
    trigger: Any
    keep: Any
    in_words: str
    summary_tokens: int
    summarizer: Summarizer
    chat_model: BaseChatModel | None
    notify: OnEvent
    tills: Callable[[], list[Till]]


@dataclass(slots=True)
class Reading:
    """What the summariser of a run was given, and what it cost.

    Attributes:
        characters: that were read of each message, by its id.
        costs: of its calls.
    """

    characters: dict[str, int] = field(default_factory=dict)
    costs: list[Cost] = field(default_factory=list)


class Session:
    """Bill requests at their assumed times."""

    def __init__(self, plan: Plan) -> None:
        self._recording, self._sizes, self.tills = plan.recording, plan.sizes, plan.tills()
        self._known: dict[int, tuple[BaseMessage, Block]] = {}
        self._at, self._position = 0.0, -1

    def pay(
        self,
        messages: Sequence[BaseMessage],
        tools: Sequence[Any],
        position: int,
        waited: float = 0.0,
    ) -> None:
        """Bill one request.

        Args:
            messages: with the system prompt.
            tools: of the request.
            position: of the newest recorded message in it.
            waited: seconds that the agent waited for it.
        """
        if not self.tills:
            return
        new = self._recording.messages[self._position + 1 : position + 1]
        if self._position >= 0:
            spoke = any(isinstance(message, HumanMessage) for message in new)
            self._at += STEP_SECONDS + (TURN_SECONDS if spoke else 0.0)
        self._position = position
        answer = self._recording.answer(position)
        output = 0 if answer is None else self._sizes.message(answer)
        blocks = [self._block(message) for message in messages]
        if tools:
            names = " ".join(str(getattr(tool, "name", tool)) for tool in tools)
            blocks.insert(0, Block(names, self._sizes.tools(tools), run=TOOLS))
        for till in self.tills:
            till.request(blocks, output, self._at, waited)

    def _block(self, message: BaseMessage) -> Block:
        known = self._known.get(id(message))
        if known is None:  # the message is held, so no other takes its place in memory
            known = (message, block_of(message, self._sizes.message(message)))
            self._known[id(message)] = known
        return known[1]


class Measure:
    """Measure one run, request by request.

    Args:
        notify: called with each `step` and each `compaction`.

    Attributes:
        reading: of the run's summariser, filled by its policy.
        causes: of compactions, filled by policies that know them.
    """

    def __init__(self, plan: Plan, notify: OnEvent) -> None:
        self._plan, self._notify = plan, notify
        self._recording, self._sizes = plan.recording, plan.sizes
        self.session, self.reading = Session(plan), Reading()
        self.causes: list[str] = []
        self.steps: list[Step] = []
        self.compactions: list[Compaction] = []
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
        self.session.pay(messages, tools, position, waited)
        compaction = self._compared(messages, position)
        sent = self._sizes.messages(messages) + self._sizes.tools(tools)
        spoken = self._recording.messages[: position + 1]
        step = Step(
            number=len(self.steps) + 1,
            tokens=sent,
            messages=len(messages),
            compacted=compaction is not None,
            broken=len({*broken_pairs(messages)} - {*broken_pairs(spoken)}),
            over=max(0, sent - self._plan.window),
            waited=waited,
        )
        if compaction is not None:
            self.compactions.append(compaction)
            self._notify("compaction", {"compaction": compaction})
        self.steps.append(step)
        self._notify("step", {"step": step})
        return sent

    def finish(self) -> tuple[Compaction, ...]:
        """Bill the summariser, and return the compactions with what was read of each."""
        for till in self.session.tills:
            for cost in self.reading.costs:
                till.summarizer(cost)
        known = self.reading.characters

        def marked(one: Original) -> Original:
            return replace(one, read=min(known.get(one.id, 0), len(one.text)))

        return tuple(
            replace(compaction, left=tuple(map(marked, compaction.left)))
            for compaction in self.compactions
        )

    def _compared(self, messages: Sequence[BaseMessage], position: int) -> Compaction | None:
        """Find the changes since the request before, apart from new messages."""
        place, recorded = self._recording.place, self._recording.messages
        seen = {str(m.id): m for m in messages}
        before = dict(self._view)
        for message in recorded[max(self._position, -1) + 1 : position + 1]:
            before[str(message.id)] = message
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
        return self._compaction(before.values(), left, len(short)) if changed else None

    def _compaction(
        self, before: Iterable[BaseMessage], left: Sequence[str], short: int
    ) -> Compaction:
        # The originals as the graph held them, also of messages that were clipped: all that they
        # hold determines how they are cited.
        places, recorded = self._recording.place, self._recording.messages
        entries = read_messages([self._whole.get(n) or recorded[places[n]] for n in left])
        return Compaction(
            step=len(self.steps) + 1,
            cause=self.causes.pop() if self.causes else f"trigger: {self._plan.in_words}",
            before=self._sizes.messages(before),
            after=self._sizes.messages(self._view.values()),
            left=tuple(map(self._original, entries)),
            summary=self._summary,
            shortened=short,
        )

    def _original(self, entry: Entry) -> Original:
        assert isinstance(entry.source, BaseMessage)
        tokens = self._sizes.message(entry.source)
        return Original(entry.id, entry.cite, entry.role, entry.name or "", entry.reading, tokens)

    def missing(
        self, state: Sequence[BaseMessage], archived: Mapping[str, Sequence[BaseMessage]]
    ) -> list[str]:
        """List ids of originals that are in neither the state nor the archive, unchanged."""
        there = {str(m.id): m for m in state}
        end = max(self._position, self._recording.position(state))
        lost = []
        for original in self._recording.messages[: end + 1]:
            name = str(original.id)
            kept = [*archived.get(name, ()), *([there[name]] if name in there else ())]
            if not any(same(one, original) for one in kept):
                lost.append(name)
        return lost


def same(message: BaseMessage, original: BaseMessage) -> bool:
    """Return whether a message equals its original."""
    if message is original:
        return True
    if message.type != original.type or message.content != original.content:
        return False
    if isinstance(message, AIMessage) and isinstance(original, AIMessage):
        return message.tool_calls == original.tool_calls
    if isinstance(message, ToolMessage) and isinstance(original, ToolMessage):
        return message.tool_call_id == original.tool_call_id
    return True
