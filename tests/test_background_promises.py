"""The promises, where notes are prepared beside the agent: what holds at the trigger holds here."""

import asyncio
import json
import random
import threading
from typing import Any

import pytest

from background_support import LIMIT, Heard, Stopped, compactor, preparing, told
from conspectus import CompactionResult, Compactor, Summary, SummaryRequest
from conspectus.archive import Archive, Scope
from engine import check_nothing_missing, check_sequence

SCOPE = Scope("local", "t", "main")
NEAR = told(31)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def called(number: int, name: str, result: str, **given: str) -> list[dict[str, Any]]:
    function = {"name": name, "arguments": json.dumps(given)}
    call = {"id": f"call-{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": result, "tool_call_id": f"call-{number}", "name": name},
    ]


def topped_up(later: list[dict[str, Any]], turns: int = 40) -> tuple[Compactor, CompactionResult]:
    """A draft of what stood there, topped up with what came later and leaves too."""
    own = compactor(Stopped.at_once())
    assert own.prepare(NEAR, thread_id="t").wait(LIMIT)
    with Heard() as heard:
        result = own.compact([*NEAR, *later, *told(turns, 31)], thread_id="t")
    assert [one.name for one in heard.all] == ["topped_up"]
    return own, result


# What came after the snapshot


def test_what_the_user_demands_after_the_snapshot_stands_in_notes_that_are_topped_up():
    rule = "Never delete a file below /srv/ledger without asking me."
    _, result = topped_up([user(rule)])
    assert rule in result.summary


BINDING = "use the blue template for all letters to the bank"
"""Nothing in its form says that it binds."""


class Names(Stopped):
    """A summariser that names a statement of the user as binding."""

    def summarize(self, request: SummaryRequest) -> Summary:
        made = super().summarize(request)
        said = next((e for e in request.entries if BINDING in e.text), None)
        binds = f"## Binding\n- {BINDING} [{said.cite}]" if said is not None else ""
        return Summary(f"## Found and decided\n- all is fine\n{binds}", made.read)


def quotes(record: Any) -> list[str]:
    """Statements of the user that a record holds as binding."""
    return [said for line in record.segment["lines"] for said in line.get("quotes", ())]


@pytest.mark.parametrize("background", [True, False], ids=["swapped in", "found after a restart"])
def test_what_the_summariser_has_named_as_binding_stays_in_force(background, tmp_path):
    model = Names()
    model.going.set()
    near = [user(f"Please {BINDING}, will you?"), *NEAR]
    plain = compactor(model, background=False)
    plain.compact(near, thread_id="t", force=True)
    first = compactor(model, archive=tmp_path / "a.db")
    assert first.prepare(near, thread_id="t").wait(LIMIT)
    first.close()
    later = told(11, 31) if background else []
    with compactor(model, archive=tmp_path / "a.db", background=background) as own:
        own.compact([*near, *later], thread_id="t", force=not background)
        [ahead], [made] = own.archive.chain(SCOPE), plain.archive.chain(SCOPE)  # type: ignore[union-attr]
        assert len(model.keys) == 2, "one call for each archive"
    assert quotes(ahead) == quotes(made) == [BINDING]


def test_a_deed_after_the_snapshot_stands_in_notes_that_are_topped_up():
    _, result = topped_up(
        [
            user("Send it."),
            *called(1, "send_email", "Sent as message 7731-QX.", to="ann@example.com"),
            *called(2, "send_email", "Error: mailbox full", to="bob@example.com"),
        ],
        turns=26,
    )
    assert "ann@example.com" in result.summary
    line = next(one for one in result.summary.splitlines() if "bob@example.com" in one)
    assert "rror" in line or "fail" in line, "it is not told as done"


def test_what_was_read_by_the_model_stands_beside_it():
    own, result = topped_up([user("And now the rest.")])
    read = own.archive.chain(SCOPE)[-1].covers  # type: ignore[union-attr]
    assert len(read) > 60
    assert "56 messages were looked at" in result.summary


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


def test_a_draft_that_frees_too_few_messages_is_topped_up():
    own = compactor(Stopped.at_once(), trigger=("messages", 60), window=50_000)
    assert own.prepare(NEAR, thread_id="t").wait(LIMIT)
    with Heard() as heard:
        result = own.compact(told(80), thread_id="t")
    assert [one.name for one in heard.all] == ["topped_up"]
    assert len(result.messages) < 60


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


def test_a_step_waits_rather_than_show_words_of_the_user_short():
    wishes = [user(f"Wish {n}: " + "a word of mine, " * 60) for n in range(4)]
    near = [*wishes, *told(10)]
    model, own = preparing(near)
    threading.Timer(0.2, model.going.set).start()
    result = own.compact([*near, *told(24, 10)], thread_id="t")
    assert (result.outcome, result.preparing) == ("compacted", False)
    assert result.evicted > 0
    own.close()


# With and without an event loop


def test_aprepare_comes_back_before_the_notes_are_there():
    model = Stopped()
    own = compactor(model)

    async def app() -> None:
        asyncio.get_running_loop().call_soon(model.going.set)
        ahead = await own.aprepare(NEAR, thread_id="t")
        assert ahead.under_way, "the loop has not gone on since"
        assert await ahead.await_end(LIMIT)

    asyncio.run(app())


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
