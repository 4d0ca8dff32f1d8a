"""The promises, where notes are prepared beside the agent: what holds at the trigger holds here."""

import asyncio
from typing import Any

import pytest

from background_support import LIMIT, Stopped, compactor, told

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
