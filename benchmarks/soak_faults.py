"""Summarisers, stores and models of a soak, which fail at random."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fault_cases import CASES, Case, ProviderError
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.store.base import BaseStore, GetOp, Op, PutOp, Result
from pydantic import Field, PrivateAttr

from conspectus_lab.testing.scripted_models import ScriptedChatModel

TIMEOUT = 1.0
"""Seconds that a summariser gets."""

HANG = 1.5
"""Seconds that one takes that hangs."""

_SHOWN = re.compile(r'<message id="([^"\s<]{1,80})"|<notes[^>]*>[^<]*?\[([\w.:-]+)\]')
"""The id of a message, or of one that notes cite."""

SLOW = {"busy twice (429), then good", "fails always (500)"}
"""Failures after which it is tried again, with seconds between: so they come less often."""


class Interrupted(BaseException):
    """A stop from outside, which nothing of ours may catch.

    Not on an event loop: there LangChain takes what is no `Exception` for an answer of the model,
    and steps are stopped by cancelling their tasks.
    """


class Writer(ScriptedChatModel):
    """A summariser that goes wrong at random; it keeps no list of its calls.

    Attributes:
        share: of its calls that go wrong.
        spent: seconds that callers had to wait for it.
        interrupt: stops the step at the next call.
    """

    share: float = 0.3
    seed: int = 0
    failed: Callable[[str], None] = print
    spent: float = 0.0
    interrupt: bool = False
    _random: random.Random = PrivateAttr(default_factory=random.Random)

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._random = random.Random(self.seed)

    def _case(self) -> Case | None:
        if self.interrupt:
            self.interrupt = False
            raise Interrupted
        if self._random.random() >= self.share:
            return None
        found = self._random.choice(CASES)
        if found.name in SLOW and self._random.random() < 0.7:
            return None
        self.failed(f"summariser: {found.name}")
        return found

    def _written(self, case: Case | None, messages: list[BaseMessage]) -> ChatResult:
        answer: Any = _good(messages) if case is None else case.script()(messages)
        if isinstance(answer, BaseException):
            raise answer.with_traceback(None)
        if isinstance(answer, str):
            answer = AIMessage(answer)
        return ChatResult(generations=[ChatGeneration(message=answer.model_copy(deep=True))])

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        case = self._case()
        if case is not None and case.name == "hangs":
            self.spent += TIMEOUT
            time.sleep(HANG)
        return self._written(case, messages)

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        self.interrupt = False
        case = self._case()
        if case is not None and case.name == "hangs":
            self.spent += TIMEOUT
            await asyncio.sleep(HANG)
        return self._written(case, messages)


def _good(messages: Sequence[BaseMessage]) -> str:
    read = sum(len(str(message.text)) for message in messages)
    shown = _SHOWN.search("\n".join(str(message.text) for message in messages))
    cited = f" [{shown[1] or shown[2]}]" if shown else ""
    return f"## Done\n- {len(messages)} messages, {read} characters about pages were read{cited}"


class Weather:
    """The present fault of the store; empty for none."""

    def __init__(self) -> None:
        self.fault = ""


STORE_FAULTS = ("fails on write", "fails on read", "forgets", "fails at random")


class UncertainStore(BaseStore):
    """A store that fails, or takes and forgets, while the weather says so.

    Args:
        inner: the one that does the work.
        weather: of its agent.
        chance: for what is left to chance.
    """

    supports_ttl = False

    def __init__(self, inner: BaseStore, weather: Weather, chance: random.Random) -> None:
        self._inner, self._weather, self._chance = inner, weather, chance

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return self._forgotten([*ops]) or self._inner.batch(self._checked([*ops]))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        ops = [*ops]
        return self._forgotten(ops) or await self._inner.abatch(self._checked(ops))

    def _forgotten(self, ops: list[Op]) -> list[Result]:
        if self._weather.fault == "forgets" and ops and all(isinstance(op, PutOp) for op in ops):
            return [None] * len(ops)
        return []

    def _checked(self, ops: list[Op]) -> list[Op]:
        fault = self._weather.fault
        if fault == "fails on write" and any(isinstance(op, PutOp) for op in ops):
            raise OSError("no space left on device")
        if fault == "fails on read" and any(isinstance(op, GetOp) for op in ops):
            raise OSError("input/output error")
        if fault == "fails at random" and self._chance.random() < 0.4:
            raise ConnectionError("connection reset by peer")
        return ops


class Player(ScriptedChatModel):
    """The answering model of an agent; it keeps no list of its calls.

    Attributes:
        on_request: gets each request as it is sent, and the tools of it.
        plan: numbers of tools to call in the next answers.
        fail: the next call raises.
        interrupt: the next call stops the step.
    """

    on_request: Callable[[list[BaseMessage], Sequence[Any]], None]
    plan: list[int] = Field(default_factory=list)
    turn: int = 0
    pages: int = 0
    fail: bool = False
    interrupt: bool = False
    words: str = ""
    wait: float = 0.0

    def _next(self, messages: list[BaseMessage], options: dict[str, Any]) -> ChatResult:
        self.on_request(messages, options.get("tools", ()))
        if self.fail:
            self.fail = False
            raise ProviderError(503, "the model is down")
        if self.interrupt:
            self.interrupt = False
            raise Interrupted
        count = self.plan.pop(0) if self.plan else 0
        answer = AIMessage(f"Turn {self.turn} is done. {self.words}")
        if count:
            calls = []
            for _ in range(count):
                self.pages += 1
                args = {"page": self.pages}
                calls.append({"name": "fetch", "args": args, "id": f"c{self.pages}"})
            answer = AIMessage(f"Fetching {count}. {self.words}", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return self._next(messages, kwargs)

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        await asyncio.sleep(self.wait)
        self.interrupt = False
        return self._next(messages, kwargs)


class Cancelled(Exception):
    """A stop from outside, as the soak may catch it."""


def stoppable(call: Callable[[], Any]) -> Callable[[], Any]:
    """Make a call report a stop by an exception that the soak may catch."""

    def called() -> Any:
        try:
            return call()
        except Interrupted:
            raise Cancelled from None

    return called


async def astopped(acall: Callable[[], Any]) -> Any:
    """Await a call, and report a stop by the same exception."""
    try:
        return await acall()
    except Interrupted:
        raise Cancelled from None
