"""What a provider asks for holds across calls: until then its summariser is not asked again."""

from typing import Any

import pytest

from conspectus import SummaryError, SummaryRequest
from engine import Scripted, engine, short
from histories import talk


class Clock:
    """The time, as what is remembered goes by."""

    now = 1_000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("conspectus.engine.memory.monotonic", lambda: made.now)
    return made


class Busy(Scripted):
    """Answers each request with a rate limit, until it is told not to."""

    def __init__(self, seconds: float) -> None:
        super().__init__(short)
        self.seconds, self.busy = seconds, True

    def summarize(self, request: SummaryRequest) -> Any:
        if not self.busy:
            return super().summarize(request)
        self.requests.append(request)
        error = SummaryError("429: too many requests")
        error.transient, error.retry_after = True, self.seconds
        raise error


def test_a_summariser_whose_provider_asked_for_a_pause_is_not_asked_at_the_next_turns(clock):
    busy = Busy(60)
    compactor = engine(busy, trigger=("messages", 4), keep=("messages", 2))
    turns = [compactor.compact(talk(n), thread_id="t") for n in range(6, 15)]
    assert {one.outcome for one in turns} == {"kept"}
    failed = [one.reason for one in turns if one.failed == "summary"]
    assert len(failed) > 3
    assert all("left alone for another 60 s" in reason for reason in failed[1:])
    compactor.compact(talk(20), thread_id="other")
    assert len(busy.requests) == 1
    clock.now, busy.busy = clock.now + 61, False
    assert compactor.compact(talk(20), thread_id="t").outcome == "compacted"
    assert len(busy.requests) == 2
