"""Summarisers that go wrong, each in one way that has been seen in the field."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from made_thread import RULE

from conspectus import TokenMeter
from conspectus_lab.testing.scripted_models import ScriptedChatModel

Script = Callable[[list[BaseMessage]], Any]
"""Answers a prompt with a text, a message or an error."""

GOOD = f"""## Goal
- Find out why the nightly job fails, and fix it [m1]
## Standing rules
- {RULE} [m1]
## Done
- Read the logs of the worker and the module that rounds the totals [m1]
## Next
- Report what was found [m1]"""
LOSSY = GOOD.replace(f"- {RULE} [m1]\n", "- Some rules apply [m1]\n")
"""Good answers; `[m1]` stands for the id of a message in the prompt."""

_ID = re.compile(r'<message id="([^"]+)"|\[([^\[\],\s]+)\]')

ECHO = 600
"""Characters of the prompt that come back as an answer: well within every limit."""

MARK = "zebra"
"""A word in every bad answer, by which it would be known in a history."""

SMALL_WINDOW = 3_000
"""Tokens above which the overflowing model refuses a request."""


class ProviderError(Exception):
    """An error of a provider's client: a status and an explanation."""

    def __init__(self, status_code: int, message: str) -> None:
        super().__init__(f"Error code: {status_code} - {message}")
        self.status_code = status_code


@dataclass(frozen=True, slots=True)
class Case:
    """One way to answer.

    Attributes:
        name: of the fault.
        script: makes the model's answers, anew for each run.
        passes: whether the model's summary may come into force.
        delay: seconds that the model takes.
        timeout: seconds that it gets.
    """

    name: str
    script: Callable[[], Script]
    passes: bool = False
    delay: float = 0.0
    timeout: float = 60.0

    def model(self) -> ScriptedChatModel:
        """Make a model that goes wrong in this way."""
        script = self.script()
        return ScriptedChatModel(answers=script, delay=self.delay, usage=(900, 90), cites=False)


def _always(answer: Any) -> Callable[[], Script]:
    return lambda: lambda prompt: answer


def _citing(text: str, prompt: list[BaseMessage]) -> str:
    found = _ID.search(_material(prompt[1:]))
    return text.replace("[m1]", f"[{found[1] or found[2]}]") if found else text


def _material(prompt: list[BaseMessage]) -> str:
    return "\n".join(str(message.content) for message in prompt)


def _sized(share: float) -> Callable[[], Script]:
    """Make a text of a share of the first request's tokens."""

    def script() -> Script:
        first: list[int] = []

        def answer(prompt: list[BaseMessage]) -> str:
            if not first:
                first.append(TokenMeter().text(_material(prompt)))
            lines = int(first[0] * share) // 12
            step = _citing(f"- {MARK} looked at the log of the worker [m1]", prompt)
            return "## Done\n" + "\n".join(f"{step[:2]}step {n}: {step[2:]}" for n in range(lines))

        return answer

    return script


def _overflowing() -> Script:
    def answer(prompt: list[BaseMessage]) -> Any:
        tokens = TokenMeter().text(_material(prompt))
        if tokens <= SMALL_WINDOW:
            return _citing(GOOD, prompt)
        return ProviderError(
            400,
            f"This model's maximum context length is {SMALL_WINDOW} tokens, however you requested "
            f"{tokens} tokens. Please reduce the length of the messages. context_length_exceeded",
        )

    return answer


def _busy_twice() -> Script:
    lock, count = threading.Lock(), [0]

    def answer(prompt: list[BaseMessage]) -> Any:
        with lock:
            count[0] += 1
            if count[0] > 2:
                return _citing(GOOD, prompt)
            return ProviderError(429, f"Rate limit reached, {MARK}")

    return answer


CASES = (
    Case("a good summary", lambda: lambda prompt: _citing(GOOD, prompt), passes=True),
    Case(
        "lossy: a standing rule is gone", lambda: lambda prompt: _citing(LOSSY, prompt), passes=True
    ),
    Case("busy twice (429), then good", _busy_twice, passes=True),
    Case("request too long (400)", _overflowing, passes=True),
    Case("empty", _always("")),
    Case("blank", _always(" \n\t\n ")),
    Case("refuses", _always(f"I'm sorry, but I cannot help with that. {MARK}")),
    Case("replies to the user", _always(f"Sure! I'll help you with the job. {MARK}")),
    Case("error text as summary", _always(f"Error generating summary: HTTP 503 {MARK}")),
    Case("repeats the messages", lambda: lambda prompt: f"{MARK}\n{prompt[-1].text[:ECHO]}"),
    Case("repeats its instructions", lambda: lambda prompt: f"{prompt[0].text[:ECHO]} {MARK}"),
    Case("repeats the prompt's end", lambda: lambda prompt: f"{prompt[-1].text[-ECHO:]} {MARK}"),
    Case("larger than its source", _sized(1.5)),
    Case("over the limit", _sized(0.6)),
    Case(
        "cut off (finish_reason=length)",
        _always(AIMessage(f"{GOOD}\n- {MARK} and", response_metadata={"finish_reason": "length"})),
    ),
    Case("hangs", _always(f"{GOOD}\n- {MARK}"), delay=1.5, timeout=0.2),
    # Made anew each time: an error that is raised again keeps the frames of all times before.
    Case(
        "fails always (500)", lambda: lambda prompt: ProviderError(500, f"Internal error, {MARK}")
    ),
)
