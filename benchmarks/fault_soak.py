"""Callers and agents that live for as long as asked, with faults of every kind at random.

Each holds a list of its own of all that was said, against its view and the archive. Messages are
small, large, larger than the window, in English and Chinese; summarisers fail; processes of the
caller start anew; people go back and say something else.
"""

from __future__ import annotations

import ctypes
import gc
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.runtime import Runtime
from tables import Row

from conspectus import Compactor, ConspectusError, NotFoundError, SummarizationMiddleware

WINDOW = 4_000
LIVES = 8
"""Conversations at once."""

SETTINGS: dict[str, Any] = {
    "trigger": ("fraction", 0.8), "keep": ("messages", 6), "window": WINDOW,
    "token_counter": count_tokens_approximately,
}  # fmt: skip
WORDS = {
    "en": "the order of part {n} was checked twice and its total is right ".split(),
    "zh": ["订单", "的", "金额", "不对", "请", "检查", "日志", "{n}", "原因", "不明"],
}


class Life:
    """One conversation after another, until the time is over.

    Attributes:
        steps, checked: how many there were, and how many messages were held against the archive.
        wrong: what broke a promise.
    """

    def __init__(self, seed: int, path: Path, until: float) -> None:
        self.draw = random.Random(seed)
        self.steps = 0
        self.checked = 0
        self.wrong = list[str]()
        self._seed = seed
        self._path = path
        self._until = until

    def live(self) -> None:
        """Hold conversations until the time is over."""
        number = 0
        while time.monotonic() < self._until and len(self.wrong) < 5:
            number += 1
            try:
                self._conversation(f"{self._seed}-{number}")
            except Exception as error:
                self.wrong.append(f"{type(error).__name__}: {error}")

    def _summary(self, _: object) -> str:
        """Answer as a summariser that often fails."""
        chance = self.draw.random()
        if chance < 0.15:
            raise TimeoutError("the summariser does not answer")
        if chance < 0.25:
            return ""
        if chance < 0.3:
            return "I'm sorry, but I can't help with that."
        if chance < 0.35:
            return "The same again. " * 20_000
        return "The user and the agent look at orders, one after another; nothing is decided. " * 4

    def _opened(self) -> Compactor:
        summarizer = self._summary if self.draw.random() < 0.5 else None
        return Compactor(summarizer, archive=self._path, **SETTINGS)

    def _conversation(self, thread: str) -> None:
        """Hold one conversation of some sixty turns; check it now and then, and at its end."""
        said: list[BaseMessage] = []
        compactor = self._opened()
        view = list[Any]()
        for turn in range(self.draw.randint(20, 60)):
            if time.monotonic() > self._until:
                break
            if self.draw.random() < 0.05:  # the process of the caller starts anew
                compactor.close()
                compactor = self._opened()
                view = []
            if said and self.draw.random() < 0.05:  # somebody goes back
                users = [at for at, m in enumerate(said) if isinstance(m, HumanMessage)]
                said = said[: self.draw.choice(users)]
                view = []
            new = self._turn(f"{turn}-{len(said)}-{self.draw.randrange(10**6)}")
            said += new
            given = [*view, *new] if view and self.draw.random() < 0.8 else said
            self.steps += 1
            try:
                view = list(compactor.compact(given, thread_id=thread).messages)
            except ConspectusError:
                view = []
                continue
            self._judge(view)
            if self.draw.random() < 0.1:
                self._check(compactor, thread, said, view)
        if view:
            self._check(compactor, thread, said, view)
        compactor.close()

    def _turn(self, name: str) -> list[BaseMessage]:
        call = {"name": "look", "args": {"part": name}, "id": f"c{name}"}
        return [
            HumanMessage(self._text(40), id=f"u{name}"),
            AIMessage("I look.", tool_calls=[call], id=f"a{name}"),
            ToolMessage(self._text(400), tool_call_id=f"c{name}", id=f"t{name}"),
            AIMessage(self._text(60), id=f"d{name}"),
        ]

    def _text(self, most: int) -> str:
        words = WORDS[self.draw.choice(("en", "en", "zh"))]
        count = self.draw.randint(3, most) * (20 if self.draw.random() < 0.01 else 1)
        joined = " ".join(self.draw.choice(words) for _ in range(count))
        return joined.format(n=self.draw.randrange(10**6)) + f" {self.draw.randrange(10**9)}"

    def _judge(self, view: list[Any]) -> None:
        """Look at the pairs of calls and results."""
        open_calls = set[str]()
        for message in view:
            if isinstance(message, ToolMessage):
                if message.tool_call_id not in open_calls:
                    self.wrong.append("a result without its call")
                open_calls.discard(message.tool_call_id)
            elif open_calls:
                self.wrong.append("a call without its result")
                open_calls.clear()
            open_calls |= {call["id"] for call in getattr(message, "tool_calls", ())}

    def _check(
        self, compactor: Compactor, thread: str, said: list[BaseMessage], view: list[Any]
    ) -> None:
        """Hold all that was said against the view and the archive."""
        there = {message.id: str(message.text) for message in view}
        for message in said:
            text = str(message.text)
            if there.get(message.id) == text:
                continue
            self.checked += 1
            try:
                recalled = compactor.recall(id=message.id, thread_id=thread, tokens=50_000).text
            except NotFoundError:
                recalled = ""
            if " ".join(text.split()) not in " ".join(recalled.split()):
                self.wrong.append(f"{message.id} of {thread} is neither in view nor recalled")


class AgentLife(Life):
    """The same through the middleware, called as a graph would, with a preserved history."""

    def _conversation(self, thread: str) -> None:
        middleware = SummarizationMiddleware(
            None, summarizer=self._summary, archive=self._path, history="replace", **SETTINGS
        )
        state: dict[str, Any] = {"messages": []}
        for turn in range(self.draw.randint(20, 60)):
            if time.monotonic() > self._until:
                break
            name = f"{thread}-{turn}"
            state = {**state, "messages": [*state["messages"], *self._turn(name)]}
            self.steps += 1
            update = middleware.before_model(state, Runtime()) or {}
            messages = update.pop("messages", None)
            state |= update
            if messages:
                state["messages"] = [m for m in messages if m.type != "remove"]
            self._judge(state["messages"])
            size = count_tokens_approximately(state["messages"])
            if size > WINDOW:
                self.wrong.append(f"{size:,} tokens in a window of {WINDOW:,}")
        middleware.close()


def megabytes() -> float:
    """Return the memory of this process that is in use."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def rows(minutes: float) -> Iterator[Row]:
    """Live for so many minutes."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        until = began + 60 * minutes
        lives = [
            (AgentLife if at % 4 == 3 else Life)(at, Path(folder) / f"{at % 2}.db", until)
            for at in range(LIVES)
        ]
        threads = [threading.Thread(target=life.live) for life in lives]
        for thread in threads:
            thread.start()
        time.sleep(30 * minutes)
        half = megabytes()
        for thread in threads:
            thread.join()
        end = megabytes()
    wrong = [text for life in lives for text in life.wrong]
    detail = (
        f"{sum(life.steps for life in lives):,} steps, {sum(life.checked for life in lives):,} "
        f"originals recalled{'; ' * bool(wrong)}{'; '.join(wrong[:3])}"
    )
    yield Row(f"soak of {minutes:g} minutes: promises broken", len(wrong), 0, "", detail)
    asked = 1.1 if minutes >= 10 else None
    yield Row("soak: memory at the end, at half time = 1", end / half, asked,
              detail=f"{half:.0f} and {end:.0f} MB")  # fmt: skip
