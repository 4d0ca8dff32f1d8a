"""Agents of a soak that call `Compactor`, or a node of the short-term memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.messages.utils import count_tokens_approximately
from soak_agents import MODEL, WINDOW, Soaked, mark_of
from soak_faults import TIMEOUT, Cancelled, astopped, stoppable

from conspectus import Compactor
from conspectus.archive import Archive, Scope
from conspectus.bridge import io
from conspectus.compactor.settings import LOCAL
from conspectus.errors import ConspectusError
from conspectus.short_term import SummarizationNode

SHORT = 900
"""Tokens of what the short-term memory may give back."""


def name_of(text: str) -> str:
    """Name a message that has no id."""
    return mark_of(text).hex()


class Called(Soaked):
    """An agent each of whose turns is one call of ours, which may be stopped."""

    async def called(
        self, kind: str, stops: float, call: Callable[[], Any], acall: Callable[[], Any]
    ) -> Any:
        """Call, on an event loop or not, and take the time; None where it failed."""
        start, waited, failed = time.perf_counter(), self.writer.spent, self.faults
        self.writer.interrupt = self.chance(stops)
        after = self.random.random() * 0.1 if self.chance(0.03) else None

        async def awaited() -> Any:
            try:
                return await asyncio.wait_for(acall(), after)
            except TimeoutError:
                raise Cancelled from None

        try:
            found = await io(stoppable(call), lambda: astopped(awaited))
        except Cancelled:
            self.fail("a step was cancelled")
            return None
        except ConspectusError as error:
            self.fail(f"step failed: {type(error).__name__}")
            return None
        finally:
            self.writer.interrupt = False
        self.counts.add(steps=1)
        self.timed(kind, start, waited, failed)
        return found

    async def originals(self, scope: Scope) -> list[Any]:
        """Find all originals of records, those of abandoned branches too.

        A caller that went back finds its own by the summary.
        """
        archive, found = Archive(self.store), list[Any]()
        for record in await archive.flow(archive.records, scope):
            keys = [*record.covers, *(mark.key for mark in record.clips)]
            found += (await archive.flow(archive.find, scope, keys)).values()
        return [one.message for one in found]


class SoakedCaller(Called):
    """A caller of `Compactor`, who sends back its answer, and new messages."""

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

    async def say(self) -> None:
        new = []
        for n in range(self.random.randint(2, 8)):
            giant = self.chance(0.01)
            if giant:
                self.fail("giant message of a user")
            text = f"{self.thread} turn {self.turn} says {n} ({self.random.random()}). "
            new.append({"role": ("user", "assistant")[n % 2], "content": text + self.words(giant)})
        # What was said stands in the caller's list, whatever becomes of the compaction.
        self.view = [*self.view, *new]
        self.ever.update((name_of(one["content"]), mark_of(one["content"])) for one in new)
        sent, where = self.view, {"thread_id": self.thread}
        result = await self.called(
            "Compactor",
            0.02,
            lambda: self.compactor.compact(sent, **where),
            lambda: self.compactor.acompact(sent, **where),
        )
        if result is None:
            return
        self.view = result.messages
        if result.outcome == "stuck":
            self.fail("stuck: nothing makes it fit, or the archive fails")
        elif (size := self.meter.messages(self.view)) > WINDOW:
            self.counts.add(over=1)
            self.counts.say(f"{self.kind} {self.thread}: {size} tokens, {result.reason}")

    async def place(self) -> Any:
        await ()
        return list(self.view)

    async def back(self, mark: Any) -> None:
        await ()
        self.view = mark

    async def there(self) -> dict[str, set[str]]:
        kept = await self.originals(Scope(LOCAL, self.thread))
        texts = {str(one["content"]) for one in [*self.view, *kept]}
        return {name_of(text): {text} for text in texts}


class SoakedNode(Called):
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

    async def say(self) -> None:
        new: list[BaseMessage] = []
        for n in range(self.random.randint(2, 6)):
            name = f"{self.thread}-{self.turn}-{n}-{self.random.random()}"
            text = f"Turn {self.turn} says {n}. {self.words()}"
            new.append((HumanMessage, AIMessage)[n % 2](text, id=name))
            self.ever[name] = mark_of(text)
        messages = [*self.state["messages"], *new]
        self.state = {**self.state, "messages": messages}
        given, config = self.state, {"configurable": {"thread_id": self.thread}}
        update = await self.called(
            "short_term",
            0.03,
            lambda: self.node.invoke(given, config),
            lambda: self.node.ainvoke(given, config),
        )
        if update is None:
            return
        shown = [m for m in update["messages"] if not isinstance(m, RemoveMessage)]
        # While the archive fails nothing is summarised, and the history stays as long as it is.
        if update.get("context", {}).get("running_summary") != given["context"].get(
            "running_summary"
        ):
            size = count_tokens_approximately(shown)
            self.counts.compacted_by(self.kind)
            self.counts.add(over=size > SHORT)
            if size > SHORT:
                self.counts.say(f"{self.kind} {self.thread}: {size} tokens; {[*self.diary]}")
        self.state = {"messages": shown, "context": update.get("context", self.state["context"])}

    async def place(self) -> Any:
        await ()
        return dict(self.state)

    async def back(self, mark: Any) -> None:
        await ()
        self.state = dict(mark)

    async def there(self) -> dict[str, set[str]]:
        kept = await self.originals(Scope(LOCAL, self.thread))
        found: dict[str, set[str]] = {}
        for message in [*self.state["messages"], *kept]:
            found.setdefault(str(message.id), set()).add(str(message.text))
        return found
