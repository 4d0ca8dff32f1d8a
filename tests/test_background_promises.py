"""The promises, where notes are prepared beside the agent: what holds at the trigger holds here."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from background_support import LIMIT, Stopped
from conspectus import Compactor
from conspectus.archive import Archive
from engine import check_nothing_missing, check_sequence
from histories import histories

# Whatever was prepared, and whatever became of the history since


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(messages=histories(), more=histories(), cut=st.integers(0, 40), fate=st.sampled_from("+-~"))
def test_a_draft_never_harms_a_history(messages, more, cut, fate):
    model = Stopped.at_once()
    own = Compactor(
        model,
        window=600,
        trigger=("tokens", 400),
        keep=("messages", 4),
        archive=Archive.open("memory:"),
        background=True,
    )
    assert own.prepare(messages, thread_id="t").wait(LIMIT)
    sent = [*messages, *more]
    if fate == "-":
        sent = [*messages[:cut], *more]
    elif fate == "~" and messages:
        at = cut % len(messages)
        edited = {**messages[at], "content": f"{messages[at]['content']} edited"}
        sent = [*messages[:at], edited, *messages[at + 1 :], *more]
    result = own.compact(sent, thread_id="t")
    check_nothing_missing(sent, result, own)
    check_sequence(sent, result)
    if result.outcome == "compacted":
        assert result.tokens_after <= 600
    again = own.compact(sent, thread_id="t")
    check_nothing_missing(sent, again, own)
    check_sequence(sent, again)
