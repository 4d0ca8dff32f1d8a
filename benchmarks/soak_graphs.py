"""Agents of a soak that are graphs: `create_agent` and Deep Agents' own."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from deepagents.backends import FilesystemBackend
from fault_cases import ProviderError
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import tool
from soak_agents import DEEP_WINDOW, MODEL, WINDOW, Soaked, mark_of
from soak_faults import TIMEOUT, Cancelled, Player, astopped, stoppable

from conspectus import StuckError, is_summary_message
from conspectus.agents.state import HELD
from conspectus.archive import Archive, Scope
from conspectus.bridge import io
from conspectus.compactor.settings import LOCAL
from conspectus.deep_agents import create_deep_agent, summarization_middleware
from conspectus.errors import ConspectusError
from conspectus.guard import ContextGuard
from conspectus.messages import read_messages
from conspectus.middleware import PreservedState, SummarizationMiddleware

TRIES = 6
"""How often a step that failed is tried again before the turn is given up."""


class Spent:
    """Seconds inside its blocks, added up."""

    def __init__(self) -> None:
        self._sum = self._began = 0.0

    def seconds(self) -> float:
        """Give the sum so far."""
        return self._sum

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *error: object) -> None:
        self._sum += time.perf_counter() - self._began


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
        """Take the time of the hooks, without that of the handlers that they call."""

        @contextmanager
        def clock(kind: str, inside: Callable[[], float] = lambda: 0.0) -> Iterator[None]:
            start, waited, failed = self._now()
            try:
                yield
            finally:
                self.timed(kind, start + inside(), waited, failed)

        before, abefore = middle.before_model, middle.abefore_model
        wrap, awrap = guard.wrap_model_call, guard.awrap_model_call

        def before_model(state: Any, runtime: Any) -> Any:
            with clock("middleware"):
                return before(state, runtime)

        async def abefore_model(state: Any, runtime: Any) -> Any:
            with clock("middleware"):
                return await abefore(state, runtime)

        def wrap_model_call(request: Any, handler: Any) -> Any:
            spent = Spent()

            def timed(given: Any) -> Any:
                with spent:
                    return handler(given)

            with clock("guard", spent.seconds):
                return wrap(request, timed)

        async def awrap_model_call(request: Any, handler: Any) -> Any:
            spent = Spent()

            async def timed(given: Any) -> Any:
                with spent:
                    return await handler(given)

            with clock("guard", spent.seconds):
                return await awrap(request, timed)

        middle.before_model, middle.abefore_model = before_model, abefore_model
        guard.wrap_model_call, guard.awrap_model_call = wrap_model_call, awrap_model_call

    def _now(self) -> tuple[float, float, int]:
        return time.perf_counter(), self.writer.spent, self.faults

    @property
    def config(self) -> dict[str, Any]:
        """Give the configuration of the conversation."""
        return {"configurable": {"thread_id": self.thread}, "recursion_limit": 60}

    def _requested(self, messages: list[BaseMessage], tools: Sequence[Any]) -> None:
        """Note the messages of a request as it is sent, and whether it fits."""
        size = self.meter.messages(messages) + self.meter.tools(tools)
        over = size > self.window
        self.counts.add(steps=1, over=over)
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

    async def say(self) -> None:
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
        before, known = (await self._state()).config, len(self.ever)
        for attempt in range(TRIES):
            outcome = await self._invoked(given, stop and not attempt)
            if outcome == "done":
                return
            self.fail(outcome)
            if attempt == TRIES // 2:
                self.weather.fault = ""
            state = await self._state()
            ids = [str(message.id)[-6:] for message in state.values.get("messages", ())][-3:]
            self.diary.append(f"{said.id}: {state.config == before} {state.next} {ids}")
            if state.config == before:  # not even what the user said was kept: it was not said
                self.ever = dict(list(self.ever.items())[:known])
            elif not state.next:
                return
            else:
                given = None
        self.fail("a turn given up")

    async def _invoked(self, given: Any, stop: bool) -> str:
        """Run the graph; give `done`, or the failure instead."""
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
                raise Cancelled from None

        try:
            await io(stoppable(call), lambda: astopped(acall))
        except StuckError:
            return "stuck: nothing makes it fit"
        except Cancelled:
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

    async def _state(self) -> Any:
        """Read the newest checkpoint.

        Without its name LangGraph also shows what tasks have written since, whose step was stopped
        before it was checkpointed; new input discards that, so nobody may count on it.
        """
        found = await self._state_at(self.config)
        if "checkpoint_id" in found.config["configurable"]:
            found = await self._state_at(found.config)
        return found

    async def _state_at(self, config: Any) -> Any:
        return await io(lambda: self.graph.get_state(config), lambda: self.graph.aget_state(config))

    async def place(self) -> Any:
        state = await self._state()
        self._note(state.values.get("messages", ()))
        return state.config

    async def back(self, mark: Any) -> None:
        # As LangGraph's own time travel: an update on top of an earlier checkpoint is a new branch.
        await io(
            lambda: self.graph.update_state(mark, {"messages": []}, as_node="model"),
            lambda: self.graph.aupdate_state(mark, {"messages": []}, as_node="model"),
        )

    async def there(self) -> dict[str, set[str]]:
        state = await self._state()
        messages = state.values.get("messages", ())
        self._note(messages)
        found: dict[str, set[str]] = {}
        held, keys = state.values.get(HELD), set[str]()
        if held and held["head"]:
            archive, scope = Archive(self.store), Scope(LOCAL, held["thread"], held["session"])
            chain = await archive.flow(archive.chain_at, scope, held["head"])
            keys = {key for one in chain for key in one.covers}
            keys |= {mark.key for one in chain for mark in one.clips}
            for one in (await archive.flow(archive.find, scope, sorted(keys))).values():
                found.setdefault(str(one.message.id), set()).add(str(one.message.text))
        # A channel that keeps every message also holds those that the model is not shown any more:
        # these must come from the archive.
        for entry, message in zip(read_messages(messages), messages, strict=True):
            if entry.key not in keys:
                found.setdefault(str(message.id), set()).add(str(message.text))
        return found
