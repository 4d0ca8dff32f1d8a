"""One compaction, step by step: the commit rule, and the ladder of what follows a failure."""

import inspect
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conspectus import CompactionResult, Compactor, Summary, SummaryRequest
from conspectus.archive import Archive
from conspectus.core.records import Cost, Draft
from conspectus.engine import compaction
from conspectus.observe import Event
from engine import SCOPE, Faulty, compacted
from histories import talk

MESSAGES = talk(40)
STEPS = ["write", "read_back", "find_draft", "summarize", "check", "save_draft", "commit"]
COST = Cost(1, 100, 10)


@dataclass
class Writer:
    """A summariser that writes, or fails as it is told to, each time."""

    name: str
    fails: Exception | None = None
    text: str = "- {n} messages about the task, by {by} [x]"
    tries: int = 0
    identity: str = "scripted"
    min_tokens: int = 0

    def summarize(self, request: SummaryRequest) -> Summary:
        self.tries += 1
        if self.fails is not None:
            raise self.fails
        text = self.text.format(n=len(request.entries), by=self.name)
        return Summary(text, tuple(entry.key for entry in request.entries), COST)

    async def asummarize(self, request: SummaryRequest) -> Summary:
        return self.summarize(request)


@dataclass
class Bench:
    """A compactor with two summarisers, and what is heard of it."""

    store: Faulty = field(default_factory=Faulty)
    model: Writer = field(default_factory=lambda: Writer("model"))
    second: Writer = field(default_factory=lambda: Writer("second"))
    heard: list[Event] = field(default_factory=list)
    compactor: Compactor = field(init=False)

    def __post_init__(self) -> None:
        self.compactor = Compactor(
            self.model,
            archive=Archive(self.store),
            fallbacks=[self.second],
            notes=False,
            telemetry=self.heard.append,
        )

    def compact(self, messages: Any = MESSAGES, **more: Any) -> CompactionResult:
        self.heard.clear()
        return compacted(messages, self.compactor, **{"force": True, **more})

    @property
    def steps(self) -> list[str]:
        """What was done, in order; of what was done in the archive, what belongs to the rule."""
        done = [one.name for one in self.heard if (one.kind, one.name) != ("step", "commit")]
        return [one for one in done if one in STEPS]

    @property
    def asked(self) -> list[str]:
        """The summarisers, as they were asked."""
        tries = [one for one in self.heard if (one.kind, one.name) == ("step", "summarize")]
        return [one.extra["by"] for one in tries]


def test_originals_are_confirmed_before_a_summary_and_the_draft_stored_before_the_commit():
    bench = Bench()
    result = bench.compact()
    assert result.outcome == "compacted"
    assert bench.steps == STEPS
    assert len(result.record.covers) == result.evicted > 0
    assert result.record.tokens_after == result.tokens_after
    assert result.record.archived


def test_a_draft_that_no_longer_passes_is_made_anew():
    bench = Bench()
    bench.store.fail.add("records")
    bench.compact()
    bench.store.fail.clear()
    (plan,) = bench.store.drafts
    bench.compactor.archive.save_draft(SCOPE, plan, Draft("", "model", ()))
    result = bench.compact()
    assert result.summary == "- 60 messages about the task, by model [x]"
    assert bench.asked == ["model"]


def test_a_refused_summary_goes_to_the_next_summariser_without_a_retry():
    bench = Bench(model=Writer("model", text=""))
    result = bench.compact()
    assert result.record.by == "second"
    assert bench.asked == ["model", "second"]
    assert result.failures[0].startswith("the summary by model was refused: it is empty")
    assert result.cost == COST + COST


def test_the_story_on_the_page_is_the_code():
    page = Path(__file__).parents[1].joinpath("docs", "architecture.md").read_text("utf-8")
    for part in (compaction._compact, compaction._put_in_force):
        assert inspect.getsource(part).rstrip() in page
