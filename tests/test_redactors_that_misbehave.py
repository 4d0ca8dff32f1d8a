"""A redactor that fails, hangs or answers nonsense leaves everything as it was, and says why."""

import asyncio
import time
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.store.memory import InMemoryStore

from conspectus import (
    Archive,
    Compactor,
    ContextGuard,
    PolicyError,
    Redacted,
    RedactionError,
    StuckError,
)
from conspectus_secrets import SecretRedactor
from engine import Scripted, compacted, engine, short
from redaction_support import TOKEN, history, in_the_store, no_secret
from scripted_models import ScriptedChatModel

# Redactors that misbehave


def raises(text: str) -> str:
    raise ValueError(f"I saw {text}")


def hangs(text: str) -> str:
    time.sleep(0.4)
    return text


def no_text(text: str) -> Any:
    return None


async def redact_later(text: str) -> str:
    return text


def asynchronous(text: str) -> Any:
    return redact_later(text)


def grows(text: str) -> str:
    return text * 400


def never_done(text: str) -> str:
    return text + "!"


class Miscounts:
    identity = "miscounts"

    def redact(self, text: str, key: str | None = None) -> Any:
        return Redacted(text.replace(TOKEN, "gone"), {"x": "many"})  # type: ignore[dict-item]


class Misnamed:
    identity = "misnamed"

    def redact(self, text: str, key: str | None = None) -> Any:
        return 5


def empties(text: str) -> str:
    return ""


@pytest.mark.parametrize(
    ("redactor", "why"),
    [
        (raises, f"the redactor {__name__}.raises failed with ValueError"),
        (hangs, f"the redactor {__name__}.hangs did not answer within 0.05 seconds"),
        (no_text, "and answered with NoneType"),
        (asynchronous, "and answered with coroutine"),
        (grows, "characters of"),
        (never_done, "changes what it has redacted"),
        (Miscounts(), "and answered with Redacted"),
        (Misnamed(), "and answered with int"),
    ],
)
@pytest.mark.parametrize("archived", [True, False])
def test_a_redactor_that_misbehaves_leaves_everything_as_it_was(redactor, why, archived):
    store, asked = InMemoryStore(), []
    scripted = Scripted(lambda request: asked.append(request) or short(request))  # type: ignore[func-returns-value]
    compactor = Compactor(
        scripted,
        archive=Archive(store) if archived else None,
        redact=redactor,
        summarizer_timeout=0.05,
    )
    messages = history()
    result = compacted(messages, compactor, force=True)
    assert result.outcome == "kept"
    assert result.failed == "redaction"
    assert why in result.reason
    no_secret(result.reason)
    assert all(a is b for a, b in zip(result.messages, messages, strict=True))
    assert in_the_store(store) == ""
    assert not asked
    later = asyncio.run(compactor.acompact(messages, thread_id="u", force=True))
    assert (later.outcome, later.failed) == ("kept", "redaction")
    with pytest.raises(RedactionError, match=why):
        compacted(
            messages,
            Compactor(scripted, redact=redactor, summarizer_timeout=0.05, on_failure="raise"),
            force=True,
        )


def test_a_redactor_that_leaves_nothing_is_told_as_what_failed():
    for scripted in (Scripted(short), Scripted(lambda request: "")):
        result = compacted(history(), engine(scripted, redact=empties), force=True)
        assert result.outcome == "kept"
        assert f"the redactor {__name__}.empties left nothing of" in result.reason


@pytest.mark.parametrize("archive", ["memory:", None])
def test_a_guard_that_is_stuck_says_that_redaction_failed(archive):
    from langchain.agents import create_agent

    guard = ContextGuard(window=1_000, archive=archive, redact=raises)
    agent = create_agent(ScriptedChatModel(answers=["Yes."] * 3), middleware=[guard])
    long = [
        one
        for n in range(20)
        for one in (HumanMessage(f"Part {n} " * 60), AIMessage(f"Part {n} is read."))
    ]
    for _ in range(2):  # the second one tries nothing, and says why
        with pytest.raises(StuckError, match=r"redact.*raises failed with ValueError"):
            agent.invoke({"messages": [*long, HumanMessage("And now?")]})


class TakesNoName:
    identity = "no name 1"

    def redact(self, text: str) -> Redacted:
        return Redacted(text)


class Awaited:
    identity = "awaited 1"

    async def redact(self, text: str, key: str | None = None) -> Redacted:
        return Redacted(text)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (TakesNoName(), r"as in redact\(text, key=None\)"),
        (Awaited(), "must not be async"),
        (redact_later, "must not be async"),
    ],
)
def test_a_redactor_that_could_never_be_called_is_refused_at_once(wrong, said):
    with pytest.raises(PolicyError, match=said):
        Compactor(redact=wrong)


def test_a_redactor_that_fails_once_does_no_lasting_harm():
    calls: list[str] = []

    def flaky(text: str) -> str:
        calls.append(text)
        if len(calls) == 3:
            raise OSError
        return text.replace(TOKEN, "[gone]")

    compactor = engine(Scripted(short), keep=("messages", 4), redact=flaky)
    assert compacted(history(), compactor, force=True).failed == "redaction"
    result = compacted(history(), compactor, force=True)
    assert result.outcome == "compacted", result.reason
    assert result.redacted["redacted"] > 3
    assert TOKEN not in compactor.recall(id="a1", thread_id="t").text


@pytest.mark.parametrize("wrong", ["passwords", 5, object(), SecretRedactor, ["x"]])
def test_what_cannot_redact_is_refused(wrong):
    with pytest.raises(PolicyError, match="redact must be True"):
        Compactor(redact=wrong)
