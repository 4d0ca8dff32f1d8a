"""The agents of a soak: each drives a conversation of its own, through faults, and checks it.

An agent keeps its own list of everything that was ever said on its branch: what users said as they
said it, what tools gave as they gave it, and what the model said. Each of these must be in view, or
come back whole from the archive. One body for agents with and without an event loop: steps are
flows, as in `conspectus._drive`.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deepagents.backends import FilesystemBackend
from fault_cases import ProviderError
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.tools import tool
from soak_faults import STORE_FAULTS, TIMEOUT, Interrupted, Player, UncertainStore, Weather, Writer
from soak_measures import Counts, Gate

from conspectus import Compactor, StuckError, TokenMeter, is_summary_message
from conspectus._drive import Flow, Io, pause
from conspectus.archive import Archive, Scope
from conspectus.compactor.agent_state import HELD, LOCAL
from conspectus.deep_agents import create_deep_agent, summarization_middleware
from conspectus.errors import ConspectusError
from conspectus.guard import ContextGuard
from conspectus.middleware import PreservedState, SummarizationMiddleware
from conspectus.short_term import SummarizationNode

MODEL = "gpt-4o"
WINDOW, DEEP_WINDOW = 4_000, 9_000
"""Input limits in tokens; the tools of a deep agent take some 4,000."""

SHORT = 900
"""Tokens of what the short-term memory may give back."""

ENGLISH = "The page lists invoices of a customer, with their numbers and dates. "
CHINESE = "这一页列出了客户的发票、编号和日期，请逐项核对后再继续下一步。"
TRIES = 6
"""How often a step that failed is tried again before the conversation is given up."""

MARKS = 12
"""Places that an agent may go back to."""


@dataclass
class Settings:
    """What all agents of a soak share.

    Attributes:
        counts: where they count.
        folder: for files.
        renew: turns after which a conversation ends and another begins.
        check: turns between two looks at whether everything is there.
        faults: how often something goes wrong, as a factor; 1 is as documented.
        gate: where they wait while memory is looked at.
    """

    counts: Counts
    folder: Path
    renew: int = 30
    check: int = 10
    faults: float = 1.0
    gate: Gate = field(default_factory=Gate)


@dataclass(repr=False)  # LangChain keeps what a model looks like in text, with whom it calls back
class Soaked:
    """One agent.

    Attributes:
        kind: what it is.
        number: which.
        settings: shared by all.
        saver, store: where it is kept.
        ever: marks of the texts of all that was ever said on its branch, by id, in order.
        marks: places to go back to: what names the place, and how much had been said.
    """

    kind: str
    number: int
    settings: Settings
    saver: Any
    store: Any
    seed: int
    weather: Weather = field(default_factory=Weather)
    ever: dict[str, bytes] = field(default_factory=dict)
    marks: list[tuple[Any, int]] = field(default_factory=list)
    turn: int = 0
    life: int = 0
    faults: int = 0
    diary: deque[str] = field(default_factory=lambda: deque(maxlen=20))

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.counts = self.settings.counts
        self.uncertain = UncertainStore(self.store, self.weather, self.random)
        self.writer = Writer(answers=[], seed=self.seed, failed=self.fail)
        # Not all at once: the first conversation of each is of another length.
        self.ends = self.random.randint(2, max(2, self.settings.renew))
        self._new_meter()
        self.begin()

    def _new_meter(self) -> None:
        # Counts requests as they are sent; one of each conversation, as it remembers messages.
        self.meter = TokenMeter(model=MODEL)

    @property
    def thread(self) -> str:
        """The conversation."""
        return f"agent-{self.number}-{self.life}"

    def chance(self, share: float) -> bool:
        """Whether something that goes wrong so often goes wrong now."""
        return self.random.random() < share * self.settings.faults

    def fail(self, kind: str) -> None:
        """Something has gone wrong here."""
        self.faults += 1
        self.diary.append(f"{self.turn}: {kind}")
        self.counts.failed(kind)

    def words(self, giant: bool = False) -> str:
        """Something said, in English or Chinese, small or larger than any window."""
        text = CHINESE if self.random.random() < 0.2 else ENGLISH
        if giant:
            return text * (self.random.randint(25_000, 60_000) // len(text))
        return text * self.random.randint(1, 6)

    def heard(self, event: str, data: Any) -> None:
        """Listen to compactions."""
        if event == "end":
            self.counts.add(compactions=1)
        elif event == "attempt_failed":
            self.fail("a summary failed or was refused")
        elif event == "failed":
            self.fail("no summary in the end: history kept")

    def timed(self, kind: str, started: float, waited: float, failed: int) -> None:
        """Note what a step of ours took, without the summariser."""
        took = max(0.0, time.perf_counter() - started - (self.writer.spent - waited))
        calm = not self.weather.fault and self.faults == failed
        self.counts.took(kind if calm else f"{kind}, with a fault", took)

    # What kinds do in their own way

    def begin(self) -> None:
        """Begin a conversation."""
        raise NotImplementedError

    def restart(self) -> None:
        """Go on as another process would: nothing is remembered."""
        raise NotImplementedError

    def say(self) -> Flow[None]:
        """One turn."""
        raise NotImplementedError

    def back(self, mark: Any) -> Flow[None]:
        """Go back to a place."""
        raise NotImplementedError

    def place(self) -> Flow[Any]:
        """What names the place where it is now."""
        raise NotImplementedError

    @property
    def held(self) -> int:
        """Bytes that the agent holds to know what is missing: the soak's, not ours."""
        kept = [self.ever, *vars(self).get("known", ())]
        return sum(
            sys.getsizeof(one) + sum(map(sys.getsizeof, (*one, *one.values()))) for one in kept
        )

    def there(self) -> Flow[dict[str, set[str]]]:
        """The texts that are in view or in the archive, by what names them in `ever`."""
        raise NotImplementedError

    # One turn, and what is around it

    def step(self) -> Flow[None]:
        """One turn with its faults, and a look at whether all is there."""
        self.turn += 1
        if self.chance(0.12):
            self.weather.fault = self.random.choice(STORE_FAULTS)
            self.fail(f"store {self.weather.fault}")
        try:
            yield from self.say()
        finally:
            self.weather.fault = ""
        self.counts.add(turns=1)
        if self.turn % self.settings.check == 0 or self.turn >= self.ends:
            yield from self.verify()
        self.marks.append(((yield from self.place()), len(self.ever)))
        del self.marks[:-MARKS]
        if self.chance(0.04):
            self.restart()
            self.fail("restarted from its checkpoint")
        if self.chance(0.04) and len(self.marks) > 2:
            at = self.random.randrange(len(self.marks) - 1)
            mark, said = self.marks[at]
            del self.marks[at:]
            yield from self.back(mark)
            self.ever = dict(list(self.ever.items())[:said])
            self.fail("went back to an earlier place")
            yield from self.verify()
        if self.turn >= self.ends:
            yield from self.renew()

    def renew(self) -> Flow[None]:
        """End this conversation, forget it, and begin another."""
        yield from Archive(self.store).forget_flow(LOCAL, self.thread)
        if self.saver is not None:
            thread = self.thread
            yield Io(
                lambda: self.saver.delete_thread(thread), lambda: self.saver.adelete_thread(thread)
            )
        self.turn, self.life = 0, self.life + 1
        self.ends = self.settings.renew
        self.ever, self.marks = {}, []
        self._new_meter()
        self.begin()

    def verify(self) -> Flow[None]:
        """Everything that was ever said is in view, or comes back whole."""
        there = yield from self.there()
        shown = {name: {*map(mark_of, texts)} for name, texts in there.items()}
        gone = [name for name, mark in self.ever.items() if mark not in shown.get(name, ())]
        self.counts.add(verified=len(self.ever), missing=len(gone))
        for name in gone[:2]:
            texts = [text[:60] for text in there.get(name, ())]
            self.counts.say(
                f"{self.kind} {self.thread}, turn {self.turn}: {name} {texts}; {[*self.diary]}"
            )


def mark_of(text: object) -> bytes:
    """What a text is known by, as the soak itself must not hold all that was ever said."""
    return hashlib.blake2b(str(text).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _name(text: str) -> str:
    return mark_of(text).hex()


class SoakedAgent(Soaked):
    """`create_agent`, or Deep Agents' own, with the middleware and its guard."""

    def begin(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.given: dict[str, bytes] = {}
        self.known = (self.pages, self.given)
        self.deep = self.kind.startswith("deep")
        self.window = DEEP_WINDOW if self.deep else WINDOW
        self.model = Player(
            answers=[],
            on_request=self._requested,
            model_name=MODEL,
            profile={"max_input_tokens": self.window},
        )
        self.restart()

    def restart(self) -> None:
        own: dict[str, Any] = {
            "summarizer": self.writer,
            "summarizer_timeout": TIMEOUT,
            "on_event": self.heard,
            "recall": "tool",
        }
        fetch = self._tool()
        kept: dict[str, Any] = {"checkpointer": self.saver, "store": self.uncertain}
        if self.deep:
            folder = self.settings.folder / f"deep-{self.number}"
            folder.mkdir(exist_ok=True)
            backend = FilesystemBackend(root_dir=folder, virtual_mode=True)
            middle: Any = summarization_middleware(self.model, backend, **own)
            self.graph: Any = create_deep_agent(
                self.model, [fetch], backend=backend, middleware=[middle], **kept
            )
            return
        if "preserve" in self.kind:
            own["history"] = "preserve"
            kept["state_schema"] = PreservedState
        middle = SummarizationMiddleware(
            self.model, trigger=("fraction", 0.7), keep=("messages", 8), **own
        )
        guard = ContextGuard(middle)
        self._time(middle, guard)
        self.graph = create_agent(self.model, [fetch], middleware=[middle, guard], **kept)

    def _tool(self) -> Any:
        @tool
        def fetch(page: int) -> str:
            """Fetch a page."""
            giant = not self.deep and self.chance(0.02)
            text = f"Page {page}. {self.words(giant)}"
            self.pages[f"c{page}"] = mark_of(text)
            if giant:
                self.fail("giant result of a tool")
            return text

        return fetch

    def _time(self, middle: Any, guard: Any) -> None:
        """Take the time of the hooks, without what they call in turn."""
        before, abefore, wrap, awrap = (
            middle.before_model,
            middle.abefore_model,
            guard.wrap_model_call,
            guard.awrap_model_call,
        )
        note = self.timed

        def before_model(state: Any, runtime: Any) -> Any:
            start, waited, failed = self._now()
            try:
                return before(state, runtime)
            finally:
                note("middleware", start, waited, failed)

        async def abefore_model(state: Any, runtime: Any) -> Any:
            start, waited, failed = self._now()
            try:
                return await abefore(state, runtime)
            finally:
                note("middleware", start, waited, failed)

        def wrap_model_call(request: Any, handler: Any) -> Any:
            start, waited, failed = self._now()
            inside = [0.0]

            def timed(given: Any) -> Any:
                began = time.perf_counter()
                try:
                    return handler(given)
                finally:
                    inside[0] += time.perf_counter() - began

            try:
                return wrap(request, timed)
            finally:
                note("guard", start + inside[0], waited, failed)

        async def awrap_model_call(request: Any, handler: Any) -> Any:
            start, waited, failed = self._now()
            inside = [0.0]

            async def timed(given: Any) -> Any:
                began = time.perf_counter()
                try:
                    return await handler(given)
                finally:
                    inside[0] += time.perf_counter() - began

            try:
                return await awrap(request, timed)
            finally:
                note("guard", start + inside[0], waited, failed)

        middle.before_model, middle.abefore_model = before_model, abefore_model
        guard.wrap_model_call, guard.awrap_model_call = wrap_model_call, awrap_model_call

    def _now(self) -> tuple[float, float, int]:
        return time.perf_counter(), self.writer.spent, self.faults

    @property
    def config(self) -> dict[str, Any]:
        """The conversation, where it goes on from."""
        return {"configurable": {"thread_id": self.thread}, "recursion_limit": 60}

    def _requested(self, messages: list[BaseMessage], tools: Sequence[Any]) -> None:
        """A request as it is sent: what is said in it, and whether it fits."""
        size = self.meter.messages(messages) + self.meter.tools(tools)
        over = size > self.window
        self.counts.add(requests=1, steps=1, over=over)
        if over:
            self.counts.say(f"{self.kind} {self.thread}: a request of {size} tokens")
        self._note(messages)

    def _note(self, messages: Sequence[BaseMessage]) -> None:
        for message in messages:
            name = str(message.id)
            if name in self.ever or message.type == "system" or is_summary_message(message):
                continue
            if message.type == "human":
                mark = self.given.get(name)
                if mark is None:
                    continue  # nobody said it: shown for this request only
            elif message.type == "tool" and not self.deep:
                call = str(message.tool_call_id)  # type: ignore[attr-defined]
                mark = self.pages.get(call) or mark_of(message.text)
            else:
                mark = mark_of(message.text)
            self.ever[name] = mark

    def say(self) -> Flow[None]:
        giant = self.chance(0.02)
        text = f"Turn {self.turn}: go on. {self.words(giant)}"
        said = HumanMessage(text, id=f"{self.thread}-u{self.turn}-{self.random.random()}")
        self.given[str(said.id)] = mark_of(text)
        if giant:
            self.fail("giant message of a user")
        self.model.turn, self.model.words = self.turn, self.words()
        self.model.plan = [
            self.random.choice((1, 1, 2, 3)) for _ in range(self.random.randint(0, 3))
        ]
        self.model.fail = self.chance(0.04)
        stop = self.chance(0.04)
        given: Any = {"messages": [said]}
        before, known = (yield from self._state()).config, len(self.ever)
        for attempt in range(TRIES):
            outcome = yield from self._invoked(given, stop and not attempt)
            if outcome == "done":
                return
            self.fail(outcome)
            if attempt == TRIES // 2:
                self.weather.fault = ""
            state = yield from self._state()
            ids = [str(message.id)[-6:] for message in state.values.get("messages", ())][-3:]
            self.diary.append(f"{said.id}: {state.config == before} {state.next} {ids}")
            if state.config == before:  # not even what the user said was kept: it was not said
                self.ever = dict(list(self.ever.items())[:known])
            elif not state.next:
                return
            else:
                given = None
        self.fail("a turn given up")

    def _invoked(self, given: Any, stop: bool) -> Flow[str]:
        """Run the graph; `done`, or what happened instead."""
        config = self.config
        if stop:
            which = self.model if self.random.random() < 0.6 else self.writer
            which.interrupt = True
        after = self.random.random() * 0.1

        def call() -> Any:
            return self.graph.invoke(given, config, durability="sync")

        async def acall() -> Any:
            task = asyncio.ensure_future(self.graph.ainvoke(given, config, durability="sync"))
            if not stop:
                return await task
            await asyncio.wait({task}, timeout=after)
            task.cancel()
            try:
                return await task
            except asyncio.CancelledError as error:
                for left in error.args:  # LangGraph is still at its last checkpoint
                    if isinstance(left, asyncio.Task):
                        await asyncio.wait({left})
                raise _Cancelled from None

        try:
            yield Io(_told(call), lambda: _atold(acall))
        except StuckError:
            return "stuck: nothing makes it fit"
        except _Cancelled:
            return "a step was cancelled"
        except ConspectusError as error:
            return f"step failed: {type(error).__name__}"
        except ProviderError as error:  # of the model that answers, on purpose
            return f"step failed: {type(error).__name__}"
        except Exception as error:
            self.counts.say(f"{self.kind} {self.thread}: {traceback.format_exc()[-900:]}")
            return f"step failed: {type(error).__name__}"
        finally:
            self.model.interrupt = self.writer.interrupt = False
        return "done"

    def _state(self) -> Flow[Any]:
        """What the newest checkpoint holds.

        Without its name LangGraph also shows what tasks have written since, whose step was stopped
        before it was checkpointed; new input discards that, so nobody may count on it.
        """
        found = yield from self._state_at(self.config)
        if "checkpoint_id" in found.config["configurable"]:
            found = yield from self._state_at(found.config)
        return found

    def _state_at(self, config: Any) -> Flow[Any]:
        found = yield Io(
            lambda: self.graph.get_state(config), lambda: self.graph.aget_state(config)
        )
        return found

    def place(self) -> Flow[Any]:
        state = yield from self._state()
        self._note(state.values.get("messages", ()))
        return state.config

    def back(self, mark: Any) -> Flow[None]:
        # As LangGraph's own time travel: an update on top of an earlier checkpoint is a new branch.
        yield Io(
            lambda: self.graph.update_state(mark, {"messages": []}, as_node="model"),
            lambda: self.graph.aupdate_state(mark, {"messages": []}, as_node="model"),
        )

    def there(self) -> Flow[dict[str, set[str]]]:
        state = yield from self._state()
        messages = state.values.get("messages", ())
        self._note(messages)
        found: dict[str, set[str]] = {}
        for message in messages:
            found.setdefault(str(message.id), set()).add(str(message.text))
        held = state.values.get(HELD)
        if held and held["head"]:
            archive, scope = Archive(self.store), Scope(LOCAL, held["thread"], held["session"])
            chain = yield from archive.chain_at_flow(scope, held["head"])
            keys = [key for one in chain for key in one.covers]
            keys += [mark.key for one in chain for mark in one.clips]
            for one in (yield from archive.find_flow(scope, keys)).values():
                found.setdefault(str(one.message.id), set()).add(str(one.message.text))
        return found


class _Cancelled(Exception):
    """A step was stopped from outside."""


def _told(call: Callable[[], Any]) -> Callable[[], Any]:
    def told() -> Any:
        try:
            return call()
        except Interrupted:
            raise _Cancelled from None

    return told


async def _atold(acall: Callable[[], Any]) -> Any:
    try:
        return await acall()
    except Interrupted:
        raise _Cancelled from None


class SoakedCaller(Soaked):
    """A caller of `Compactor`, who sends back what it got, and what is new."""

    def begin(self) -> None:
        self.view: list[Any] = []
        self.restart()

    def restart(self) -> None:
        self.compactor = Compactor(
            self.writer,
            trigger=("fraction", 0.7),
            keep=("messages", 8),
            window=WINDOW,
            model=MODEL,
            archive=Archive(self.uncertain),
            summarizer_timeout=TIMEOUT,
            on_event=self.heard,
        )

    def say(self) -> Flow[None]:
        new = []
        for n in range(self.random.randint(2, 8)):
            giant = self.chance(0.01)
            if giant:
                self.fail("giant message of a user")
            text = f"{self.thread} turn {self.turn} says {n} ({self.random.random()}). "
            new.append({"role": ("user", "assistant")[n % 2], "content": text + self.words(giant)})
        # What was said stands in the caller's list, whatever becomes of the compaction.
        self.view = [*self.view, *new]
        self.ever.update((_name(one["content"]), mark_of(one["content"])) for one in new)
        start, waited, failed = (
            time.perf_counter(),
            self.writer.spent,
            self.faults,
        )
        self.writer.interrupt = self.chance(0.02)
        sent, after = self.view, self.random.random() * 0.1 if self.chance(0.03) else None

        async def acall() -> Any:
            work = self.compactor.acompact(sent, thread_id=self.thread)
            try:
                return await asyncio.wait_for(work, after)
            except TimeoutError:
                raise _Cancelled from None

        try:
            result = yield Io(
                _told(lambda: self.compactor.compact(sent, thread_id=self.thread)),
                lambda: _atold(acall),
            )
        except _Cancelled:
            self.fail("a step was cancelled")
            return
        except ConspectusError as error:
            self.fail(f"step failed: {type(error).__name__}")
            return
        finally:
            self.writer.interrupt = False
        self.counts.add(steps=1, requests=1)
        self.timed("Compactor", start, waited, failed)
        self.view = result.messages
        if result.outcome == "stuck":
            self.fail("stuck: nothing makes it fit, or the archive fails")
        elif (size := self.meter.messages(self.view)) > WINDOW:
            self.counts.add(over=1)
            self.counts.say(f"{self.kind} {self.thread}: {size} tokens, {result.reason}")

    def place(self) -> Flow[Any]:
        yield from ()
        return list(self.view)

    def back(self, mark: Any) -> Flow[None]:
        yield from ()
        self.view = mark

    def there(self) -> Flow[dict[str, set[str]]]:
        archive, scope = Archive(self.store), Scope(LOCAL, self.thread)
        texts = {str(one["content"]) for one in self.view}
        # Records of abandoned branches too: a caller that went back finds its own by the summary.
        for record in (yield from archive.records_flow(scope)):
            keys = [*record.covers, *(mark.key for mark in record.clips)]
            found = yield from archive.find_flow(scope, keys)
            texts.update(str(one.message["content"]) for one in found.values())
        return {_name(text): {text} for text in texts}


class SoakedNode(Soaked):
    """A graph's node of the short-term memory; its state is kept here."""

    def begin(self) -> None:
        self.state: dict[str, Any] = {"messages": [], "context": {}}
        self.restart()

    def restart(self) -> None:
        self.node = SummarizationNode(
            model=self.writer,
            max_tokens=SHORT,
            max_tokens_before_summary=SHORT - 200,
            max_summary_tokens=200,
            input_messages_key="messages",
            output_messages_key="messages",
            archive=Archive(self.uncertain),
        )

    def say(self) -> Flow[None]:
        new: list[BaseMessage] = []
        for n in range(self.random.randint(2, 6)):
            name = f"{self.thread}-{self.turn}-{n}-{self.random.random()}"
            text = f"Turn {self.turn} says {n}. {self.words()}"
            new.append((HumanMessage, AIMessage)[n % 2](text, id=name))
            self.ever[name] = mark_of(text)
        messages = [*self.state["messages"], *new]
        self.state = {**self.state, "messages": messages}
        given, config = self.state, {"configurable": {"thread_id": self.thread}}
        start, waited, failed = (
            time.perf_counter(),
            self.writer.spent,
            self.faults,
        )
        self.writer.interrupt = self.chance(0.03)
        after = self.random.random() * 0.1 if self.chance(0.03) else None

        async def acall() -> Any:
            try:
                return await asyncio.wait_for(self.node.ainvoke(given, config), after)
            except TimeoutError:
                raise _Cancelled from None

        try:
            update = yield Io(_told(lambda: self.node.invoke(given, config)), lambda: _atold(acall))
        except _Cancelled:
            self.fail("a step was cancelled")
            return
        except ConspectusError as error:
            self.fail(f"step failed: {type(error).__name__}")
            return
        finally:
            self.writer.interrupt = False
        self.counts.add(steps=1, requests=1)
        self.timed("short_term", start, waited, failed)
        shown = [m for m in update["messages"] if not isinstance(m, RemoveMessage)]
        # While the archive fails nothing is summarised, and the history stays as long as it is.
        if update.get("context", {}).get("running_summary") != given["context"].get(
            "running_summary"
        ):
            size = count_tokens_approximately(shown)
            self.counts.add(compactions=1, over=size > SHORT)
            if size > SHORT:
                self.counts.say(f"{self.kind} {self.thread}: {size} tokens; {[*self.diary]}")
        self.state = {"messages": shown, "context": update.get("context", self.state["context"])}

    def place(self) -> Flow[Any]:
        yield from ()
        return dict(self.state)

    def back(self, mark: Any) -> Flow[None]:
        yield from ()
        self.state = dict(mark)

    def there(self) -> Flow[dict[str, set[str]]]:
        archive, scope = Archive(self.store), Scope(LOCAL, self.thread)
        found: dict[str, set[str]] = {}
        for message in self.state["messages"]:
            found.setdefault(str(message.id), set()).add(str(message.text))
        for record in (yield from archive.records_flow(scope)):
            keys = [*record.covers, *(mark.key for mark in record.clips)]
            for one in (yield from archive.find_flow(scope, keys)).values():
                found.setdefault(str(one.message.id), set()).add(str(one.message.text))
        return found


KINDS: tuple[tuple[str, type[Soaked]], ...] = (
    ("agent, replace", SoakedAgent),
    ("agent, preserve", SoakedAgent),
    ("Compactor", SoakedCaller),
    ("short_term", SoakedNode),
    ("deep agent", SoakedAgent),
)


def living(agent: Soaked, until: float, wait: float, patience: Callable[[], bool]) -> Flow[None]:
    """Drive one agent until the time is over.

    Args:
        agent: which.
        until: on the monotonic clock, in seconds.
        wait: seconds between two turns, on average.
        patience: says whether to go on.
    """
    yield pause(agent.random.random() * wait)
    gate = agent.settings.gate
    while time.monotonic() < until and patience():
        if not gate.enter():
            yield pause(0.1)
            continue
        try:
            yield from agent.step()
        finally:
            gate.leave()
        left = max(0.0, until - time.monotonic())
        yield pause(min(left, wait * (0.5 + agent.random.random())))
    with suppress(GeneratorExit):
        yield from agent.verify()
