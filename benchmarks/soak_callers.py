"""Agents of a soak that call us themselves: `Compactor`, and a node of the short-term memory."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.messages.utils import count_tokens_approximately
from soak_agents import MODEL, WINDOW, Soaked, mark_of
from soak_faults import TIMEOUT, Cancelled, astopped, stoppable

from conspectus import Compactor
from conspectus._drive import Flow, Io
from conspectus.archive import Archive, Scope
from conspectus.compactor.engine import LOCAL
from conspectus.errors import ConspectusError
from conspectus.short_term import SummarizationNode

SHORT = 900
"""Tokens of what the short-term memory may give back."""


def name_of(text: str) -> str:
    """What names a message that has no id."""
    return mark_of(text).hex()


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
        self.ever.update((name_of(one["content"]), mark_of(one["content"])) for one in new)
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
                raise Cancelled from None

        try:
            result = yield Io(
                stoppable(lambda: self.compactor.compact(sent, thread_id=self.thread)),
                lambda: astopped(acall),
            )
        except Cancelled:
            self.fail("a step was cancelled")
            return
        except ConspectusError as error:
            self.fail(f"step failed: {type(error).__name__}")
            return
        finally:
            self.writer.interrupt = False
        self.counts.add(steps=1)
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
        return {name_of(text): {text} for text in texts}


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
                raise Cancelled from None

        try:
            update = yield Io(
                stoppable(lambda: self.node.invoke(given, config)), lambda: astopped(acall)
            )
        except Cancelled:
            self.fail("a step was cancelled")
            return
        except ConspectusError as error:
            self.fail(f"step failed: {type(error).__name__}")
            return
        finally:
            self.writer.interrupt = False
        self.counts.add(steps=1)
        self.timed("short_term", start, waited, failed)
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
