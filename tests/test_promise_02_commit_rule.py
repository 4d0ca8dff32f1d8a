"""Promise 2: a history changes only after the archive has confirmed the originals."""

import re
from typing import Any

import pytest

from compactor_support import SCOPE, FaultyStore, Scripted, compacted, new_compactor, short_summary
from conspectus import ChatModelSummarizer, CompactionResult, SummaryError
from conspectus.archive import Archive
from histories import talk
from scripted_models import ScriptedChatModel
from stateful.agent_world import AgentWorld
from stateful.budgets import budgeted
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look, counted
from stateful.oracle import POINTER, plain, text_of

MESSAGES = talk(40)


FAULTS = [
    (fault, values) for fault in ("fail", "forget") for values in ("messages", "records", "head")
]


@pytest.mark.parametrize(("fault", "kind_of_values"), FAULTS)
def test_a_failing_store_leaves_the_history_unchanged(fault, kind_of_values):
    store = FaultyStore(**{fault: [kind_of_values]})
    compactor = new_compactor("embedded", archive=Archive(store))
    check_archive_failed(compacted(MESSAGES, compactor, force=True))


def test_a_draft_that_cannot_be_stored_leaves_the_history_unchanged():
    # Only the draft of a summariser that costs something is stored.
    compactor = new_compactor(
        Scripted(short_summary), archive=Archive(FaultyStore(fail=["drafts"]))
    )
    check_archive_failed(compacted(MESSAGES, compactor, force=True))


def check_archive_failed(result: CompactionResult) -> None:
    """The history is as it was sent, and the result says that the archive failed."""
    assert result.outcome == "kept"
    assert result.messages == MESSAGES
    assert result.record is None
    assert result.failed == "archive"
    assert result.reason


def test_an_unwritten_record_leaves_the_last_in_force():
    store = FaultyStore()
    compactor = new_compactor(archive=Archive(store))
    first = compacted(MESSAGES, compactor, force=True)
    store.fail.add("records")
    longer = [*first.messages, *talk(20, 30)]
    assert compacted(longer, compactor, force=True).messages == longer
    assert [record.id for record in compactor.archive.chain(SCOPE)] == [first.record_id]


UNUSABLE_TEXTS = {
    "empty": "",
    "blank": " \n\t ",
    "a dash": "- ",
    "too long": "word " * 5_000,
}
NO_SUMMARIES = {
    "prompt": '<message id="m1" role="user">question</message>',
    "refusal": "I'm sorry, but I can't help with that.",
    "refusal in Chinese": "抱歉，我无法完成。",
    "reply": "Sure! Let me know what you would like to do next.",
    "error": "Error generating summary: connection reset",
    "gateway": "502 Bad Gateway",
    "page": f"<!DOCTYPE html><html><body>{'<p>502 Bad Gateway</p>' * 90}</body></html>",
    "json": '{"error": {"message": "Rate limit exceeded, try again in 20 s"}}',
    "null": "null",
    "object": "[object Object]",
    "question": "The conversation is empty. Please paste the messages.",
}
"""What gateways and models say instead of a summary."""


@pytest.mark.parametrize("text", UNUSABLE_TEXTS.values(), ids=UNUSABLE_TEXTS.keys())
def test_a_bad_summary_never_reaches_the_history(text):
    compactor = new_compactor(Scripted(lambda _: text), on_failure="keep")
    result = compacted(MESSAGES, compactor, force=True)
    assert (result.outcome, result.messages) == ("kept", MESSAGES)
    with pytest.raises(SummaryError):
        compacted(MESSAGES, new_compactor(Scripted(lambda _: text), on_failure="raise"), force=True)


def model(text: str) -> ChatModelSummarizer:
    return ChatModelSummarizer(ScriptedChatModel(answers=lambda _: text, cites=False))


@pytest.mark.parametrize(
    "make_summarizer", [model, lambda text: lambda messages: text], ids=["model", "function"]
)
@pytest.mark.parametrize("text", NO_SUMMARIES.values(), ids=NO_SUMMARIES.keys())
def test_an_answer_that_is_no_summary_is_rejected(text, make_summarizer):
    compactor = new_compactor(make_summarizer(text), on_failure="keep")
    result = compacted(MESSAGES, compactor, force=True)
    assert (result.outcome, result.messages) == ("kept", MESSAGES)
    assert result.failed == "summary"
    assert "is no summary" in result.reason
    with pytest.raises(SummaryError):
        compacted(MESSAGES, new_compactor(make_summarizer(text), on_failure="raise"), force=True)


def test_a_compaction_that_failed_names_each_try():
    writers = [Scripted(lambda _: ""), Scripted(lambda _: "")]
    compactor = new_compactor(writers[0], fallbacks=writers[1:], on_failure="keep")
    result = compacted(MESSAGES, compactor, force=True)
    assert (result.outcome, result.failed) == ("kept", "summary")
    assert len(result.failures) == 2
    assert all("it is empty" in failure for failure in result.failures)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", UNUSABLE_TEXTS.values(), ids=UNUSABLE_TEXTS.keys())
def test_without_room_the_embedded_summariser_takes_over(text):
    compactor = new_compactor(Scripted(lambda _: text), window=2_000)
    result = compacted(MESSAGES, compactor)
    assert result.outcome == "compacted"
    assert result.record.by == "embedded"
    assert result.tokens_after <= 2_000
    assert len(text.strip()) < 2 or text not in str(result.messages)
    assert result.failures


def test_without_an_archive_nothing_is_claimed_and_nothing_points_anywhere():
    result = compacted(MESSAGES, new_compactor(archive=None), force=True)
    assert result.outcome == "compacted"
    assert result.archived is False
    assert result.record.archived is False
    assert "archived" not in result.messages[0]["content"]
    assert not re.search(r"\[\w{8}\]", result.messages[0]["content"])


def test_without_an_archive_cited_ids_are_left_out():
    scripted = Scripted(lambda request: f"- The user asked why. [{request.entries[0].cite}]")
    result = compacted(MESSAGES, new_compactor(scripted, archive=None, notes=False), force=True)
    assert result.messages[0]["content"].splitlines()[3] == "- The user asked why."
    with_archive = compacted(MESSAGES, new_compactor(scripted, notes=False), force=True)
    assert scripted.requests[-1].entries[0].cite in with_archive.messages[0]["content"]


class CommitRule:
    """A compaction that fails leaves records, head and view as they were.

    What is not shown is in the archive, and the archive holds nothing else.
    """

    def judge(self, look: Look) -> None:
        if look.error is not None or (look.failed and not look.committed):
            self.check_records_are_as_before(look)
            self.check_head_is_as_before(look)
        if look.error is None and not look.committed:
            self.check_view_is_as_before(look)
        if look.reach is None:
            self.check_nothing_claims_an_archive(look)
        else:
            self.check_what_is_not_shown_is_archived(look, look.reach)
            self.check_archive_holds_nothing_else(look, look.reach)

    def check_records_are_as_before(self, look: Look) -> None:
        assert look.records_before.items() <= look.records_after.items(), (
            "a record was changed although it failed"
        )

    def check_head_is_as_before(self, look: Look) -> None:
        new_places = look.records_after.keys() - look.records_before.keys()
        new_ids = [str(place[-1]) for place in new_places]
        names_new_record = any(record_id in str(look.head_after) for record_id in new_ids)
        if look.archive_failed and names_new_record:
            # The store failed right after the head was written. The record is in force, with all
            # that it covers, and nothing has left the view.
            return
        assert not names_new_record, "in force although it failed"
        if look.unedited:
            assert look.head_before == look.head_after, "the head moved although it failed"

    def check_view_is_as_before(self, look: Look) -> None:
        if look.unchanged is not None:
            assert [plain(message) for message in look.shown] == look.unchanged

    def check_nothing_claims_an_archive(self, look: Look) -> None:
        assert not look.archived
        assert not any(POINTER.search(text_of(clip)) for clip in look.parts.clips)

    def check_what_is_not_shown_is_archived(self, look: Look, archived: list[Any]) -> None:
        if look.error is None:
            missing = counted(look.not_shown) - counted(archived)
            assert not missing, "not shown, and not in the archive"

    def check_archive_holds_nothing_else(self, look: Look, archived: list[Any]) -> None:
        # While the archive fails, the head cannot follow an edit yet.
        if look.error is None or not look.archive_failed:
            foreign = counted(archived) - counted(look.whole)
            assert not foreign, "the archive holds what was never said here"


TestFailuresChangeNothingThroughCompactor = budgeted(CommitRule, CompactorWorld, short=7, long=600)


class CommitRuleAgent(AgentWorld):
    """What is sent without a message has it in the archive, or in the state of the agent."""

    def judge(self, look: Look) -> None:
        missing = counted(look.not_shown)
        archived = counted(look.archived_originals or [])
        state = self.graph.get_state(self.config).values.get("messages", [])
        assert not missing - archived - counted(state), (
            "sent without it, and it is not in the archive"
        )

    def judge_end(self, channel: list[Any], reach: list[Any]) -> None:
        said = counted(self.current.whole)
        in_state = counted(channel)
        archived = counted(reach)
        assert not said - in_state - archived, "not in the state, and not behind its record"
        assert not archived - said, "the record answers for what was never said here"
        if self.settings["history"] == "preserve":
            assert in_state == said


TestFailuresChangeNothingThroughAgents = budgeted(CommitRuleAgent, short=2, long=100)
