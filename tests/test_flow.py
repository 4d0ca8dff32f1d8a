"""One compaction as effects: the commit rule, and the ladder of what follows a failure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from conspectus._core import flow
from conspectus._core.items import Compact, Span
from conspectus._core.records import Cost, Draft
from conspectus.errors import ArchiveError, SummaryError, SummaryRejected

PLAN = Compact("trigger: 10 messages", (Span(0, 2),), (), 500, 5_000, 900, None)
ORDER = flow.Order(
    plan=PLAN,
    keys=("k0", "k1"),
    clips=(),
    parent=None,
    standing="",
    ledger={},
    summarisers=("model", "second"),
    identity="",
    archived=True,
    roomy=True,
    on_failure="degrade",
    messages_after=3,
    kept_tokens=400,
)

Handler = Callable[[Any], Any]


def good(effect: Any) -> Any:
    match effect:
        case flow.ReadBack():
            return ()
        case flow.Summarise(keys, by):
            return Draft(f"summary by {by}", by, keys, Cost(1, 100, 10))
        case flow.Check(draft, _):
            return flow.Checked(replace(draft, tokens=50), ())
    return None


def drive(order: flow.Order, handle: Handler = good) -> tuple[Any, list[Any]]:
    steps: list[Any] = []
    compaction = flow.compaction(order)
    answer, failure = None, None
    try:
        while True:
            effect = compaction.throw(failure) if failure else compaction.send(answer)
            steps.append(effect)
            answer, failure = None, None
            try:
                answer = handle(effect)
            except Exception as error:
                failure = error
    except StopIteration as end:
        return end.value, steps


def kinds(steps: list[Any]) -> list[str]:
    return [type(s).__name__ for s in steps if not isinstance(s, flow.Emit)]


def test_originals_are_confirmed_before_a_summary_and_the_draft_stored_before_the_commit() -> None:
    done, steps = drive(ORDER)
    assert isinstance(done, flow.Done)
    assert kinds(steps) == [
        "Archive", "ReadBack", "FindDraft", "Summarise", "Check", "SaveDraft", "Commit",
    ]  # fmt: skip
    assert done.record.covers == ("k0", "k1")
    assert done.record.tokens_after == 450
    assert done.record.archived


def test_the_same_order_gives_the_same_record_id_and_another_parent_another_one() -> None:
    first, again = drive(ORDER)[0], drive(ORDER)[0]
    assert first.record.id == again.record.id
    assert drive(replace(ORDER, parent="p"))[0].record.id != first.record.id


@pytest.mark.parametrize("when", [flow.Archive, flow.ReadBack])
def test_an_archive_that_fails_stops_everything_before_a_summary_is_paid(when: type) -> None:
    def handle(effect: Any) -> Any:
        if isinstance(effect, when):
            raise ArchiveError("disk full")
        return good(effect)

    failed, steps = drive(ORDER, handle)
    assert isinstance(failed, flow.Failed)
    assert "disk full" in failed.reason
    assert not {"Summarise", "Commit"} & set(kinds(steps))


def test_an_archive_that_confirms_and_forgets_is_found_out() -> None:
    failed, steps = drive(ORDER, lambda e: ("k1",) if isinstance(e, flow.ReadBack) else good(e))
    assert isinstance(failed, flow.Failed)
    assert "did not give 1 of them back" in failed.reason
    assert "Commit" not in kinds(steps)


def test_a_commit_that_fails_leaves_the_history_as_it_was() -> None:
    def handle(effect: Any) -> Any:
        if isinstance(effect, flow.Commit):
            raise ArchiveError("locked")
        return good(effect)

    failed, _ = drive(ORDER, handle)
    assert isinstance(failed, flow.Failed)
    assert failed.spent == Cost(1, 100, 10)


def test_a_draft_that_was_made_before_is_not_paid_for_again() -> None:
    draft = Draft("made before", "model", ("k0", "k1"), Cost(1, 100, 10))
    done, steps = drive(ORDER, lambda e: draft if isinstance(e, flow.FindDraft) else good(e))
    assert done.record.summary == "made before"
    assert done.spent == Cost()
    assert "Summarise" not in kinds(steps)


def test_a_draft_that_no_longer_passes_is_made_anew() -> None:
    old = Draft("too long now", "model", ("k0", "k1"))

    def handle(effect: Any) -> Any:
        if isinstance(effect, flow.FindDraft):
            return old
        if isinstance(effect, flow.Check) and effect.draft is old:
            return flow.Checked(old, ("it takes too much",))
        return good(effect)

    done, _ = drive(ORDER, handle)
    assert done.record.summary == "summary by model"


def test_a_refused_summary_goes_to_the_next_summariser_without_a_retry() -> None:
    def handle(effect: Any) -> Any:
        if isinstance(effect, flow.Check) and effect.draft.by == "model":
            return flow.Checked(effect.draft, ("it is empty",))
        return good(effect)

    done, steps = drive(ORDER, handle)
    assert done.record.by == "second"
    assert [s.by for s in steps if isinstance(s, flow.Summarise)] == ["model", "second"]
    assert done.failures[0].startswith("the summary by model was refused: it is empty")
    assert done.spent == Cost(2, 200, 20)


def test_a_passing_trouble_is_tried_three_times_with_waits_between() -> None:
    def handle(effect: Any) -> Any:
        if isinstance(effect, flow.Summarise) and effect.by == "model":
            error = SummaryError("429")
            error.transient = True
            raise error
        return good(effect)

    done, steps = drive(ORDER, handle)
    assert [s.by for s in steps if isinstance(s, flow.Summarise)] == ["model"] * 3 + ["second"]
    assert [s.seconds for s in steps if isinstance(s, flow.Wait)] == list(flow.RETRY_AFTER)
    assert done.record.by == "second"


@pytest.mark.parametrize(
    ("asked", "waits"),
    [(0.1, [0.5, 2.0]), (1.0, [1.0, 2.0]), (7.0, [7.0, 7.0]), (flow.LONGEST_WAIT + 1, [])]
    + [(wrong, [0.5, 2.0]) for wrong in (None, "7", [1], -3, float("nan"))],
)
def test_a_provider_that_asks_to_wait_is_given_the_time_or_not_asked_again(
    asked: Any, waits: list[float]
) -> None:
    def handle(effect: Any) -> Any:
        if isinstance(effect, flow.Summarise) and effect.by == "model":
            error = SummaryError("429")
            error.transient, error.retry_after = True, asked
            raise error
        return good(effect)

    done, steps = drive(ORDER, handle)
    assert [s.seconds for s in steps if isinstance(s, flow.Wait)] == waits
    assert [s.by for s in steps if isinstance(s, flow.Summarise)] == [
        *["model"] * (len(waits) + 1),
        "second",
    ]
    assert done.record.by == "second"


def failing(effect: Any) -> Any:
    if isinstance(effect, flow.Summarise) and effect.by != flow.EMBEDDED:
        raise SummaryError("no")
    return good(effect)


def test_with_room_a_failure_keeps_the_history() -> None:
    failed, steps = drive(ORDER, failing)
    assert isinstance(failed, flow.Failed)
    assert not {"SaveDraft", "Commit"} & set(kinds(steps))


def test_without_room_the_embedded_summariser_is_the_last_resort() -> None:
    done, _ = drive(replace(ORDER, roomy=False), failing)
    assert done.record.by == flow.EMBEDDED


def test_keep_never_takes_the_last_resort_and_raise_raises() -> None:
    failed, _ = drive(replace(ORDER, roomy=False, on_failure="keep"), failing)
    assert isinstance(failed, flow.Failed)
    with pytest.raises(SummaryError):
        drive(replace(ORDER, on_failure="raise"), failing)


def test_error_text_is_raised_as_what_it_is() -> None:
    order = replace(ORDER, on_failure="raise", summarisers=("model",))
    with pytest.raises(SummaryRejected) as caught:
        drive(
            order,
            lambda e: (
                flow.Checked(e.draft, ("it is a refusal",))
                if isinstance(e, flow.Check)
                else good(e)
            ),
        )
    assert caught.value.problems == ("it is a refusal",)


def test_clips_alone_need_no_summariser() -> None:
    order = replace(ORDER, plan=replace(PLAN, evict=(), summary_tokens=0), keys=(), standing="old")
    done, steps = drive(order)
    assert "Summarise" not in kinds(steps)
    assert done.record.summary == "old"


def test_without_an_archive_nothing_is_claimed() -> None:
    done, steps = drive(replace(ORDER, archived=False))
    assert not {"Archive", "ReadBack"} & set(kinds(steps))
    assert not done.record.archived


def test_events_say_start_and_end_or_failure() -> None:
    def names(order: flow.Order, handle: Handler) -> list[str]:
        return [s.event for s in drive(order, handle)[1] if isinstance(s, flow.Emit)]

    assert names(ORDER, good) == ["start", "end"]
    assert names(ORDER, failing) == ["start", "attempt_failed", "attempt_failed", "failed"]
