"""The promises, where notes are prepared beside the agent: what holds at the trigger holds here."""

import asyncio
import json
import random
from typing import Any

import pytest

from background_support import LIMIT, Stopped, compactor, told
from conspectus import Compactor
from conspectus.archive import Archive, Scope
from engine import check_nothing_missing, check_sequence

SCOPE = Scope("local", "t", "main")


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def called(number: int, name: str, result: str, **given: str) -> list[dict[str, Any]]:
    function = {"name": name, "arguments": json.dumps(given)}
    call = {"id": f"call-{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": result, "tool_call_id": f"call-{number}", "name": name},
    ]


# What came after the snapshot


def quotes(record: Any) -> list[str]:
    """Statements of the user that a record holds as binding."""
    return [said for line in record.segment["lines"] for said in line.get("quotes", ())]


@pytest.mark.slow
def test_what_the_user_has_demanded_stands_after_ten_rounds():
    rule = "Always write dates as 2031-12-24 in the report."
    own, sent, rounds = compactor(Stopped.at_once()), [user(rule)], 0
    while rounds < 10:
        sent = [*sent, *told(1, len(sent))]
        result = own.compact(sent, thread_id="t")
        rounds += result.record is not None
        assert rule in result.summary or sent[0] in result.messages
        if result.record is None and not result.preparing:
            own.prepare(sent, thread_id="t").wait(LIMIT)
    assert rule in result.summary


# The window


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_no_request_is_over_the_window_whenever_the_model_answers(seed):
    draw, model = random.Random(seed), Stopped.at_once()
    window = draw.choice([1_500, 3_000, 8_000])
    own = Compactor(
        model,
        window=window,
        trigger=("fraction", draw.choice([0.6, 0.85])),
        keep=("messages", draw.choice([2, 6])),
        archive=Archive.open("memory:"),
        background={"prepare": draw.choice([0.5, 0.7, 1.0])},
        summarizer_timeout=0.02,
    )
    sent: list[dict[str, Any]] = []
    for step in range(60):
        size = draw.choice([5, 20, 60, window // 40])
        sent.append(user(f"Step {step}: " + "look " * size))
        if draw.random() < 0.3:
            sent += called(step, "look", f"row {step} " * draw.choice([5, 50, window // 12]))
        sent.append({"role": "assistant", "content": f"part_{step}.py: " + "fine " * size})
        if draw.random() < 0.3:
            model.going.clear() if model.going.is_set() else model.going.set()
        sent.append(user("Go on."))
        result = own.compact(sent, thread_id="t")
        assert result.outcome == "stuck" or result.tokens_after <= window
        check_nothing_missing(sent, result, own)
        check_sequence(sent, result)
    assert own.archive.chain(SCOPE)
    model.going.set()
    own.close()


# With and without an event loop


IN_TURN = [told(count) for count in range(20, 130, 6)]


@pytest.mark.slow
def test_a_session_goes_the_same_way_with_and_without_a_loop():
    plain, looped = compactor(Stopped.at_once()), compactor(Stopped.at_once())
    results: list[list[Any]] = [[], []]
    for sent in IN_TURN:
        results[0].append(plain.compact(sent, thread_id="t"))
        plain.prepare(sent, thread_id="t").wait(LIMIT)

    async def app() -> None:
        for sent in IN_TURN:
            results[1].append(await looped.acompact(sent, thread_id="t"))
            await (await looped.aprepare(sent, thread_id="t")).await_end(LIMIT)

    asyncio.run(app())
    seen = [
        [(r.outcome, r.preparing, r.summary, [str(m) for m in r.messages]) for r in half]
        for half in results
    ]
    assert seen[0] == seen[1]
    assert sum(one[0] == "compacted" for one in seen[0]) > 2
