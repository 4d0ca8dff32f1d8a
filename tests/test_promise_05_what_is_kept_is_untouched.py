"""Promise 5: kept messages are the caller's own objects; a clip is marked and reversible."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from conspectus import is_summary_message
from engine import check_nothing_missing, compacted, engine
from histories import agent, histories


@given(histories(broken=True), st.integers(300, 3_000))
def test_what_is_not_clipped_is_the_callers_own_object_unchanged(messages, window):
    before = copy.deepcopy(messages)
    compactor = engine(window=window, keep=("messages", 5))
    result = compacted(messages, compactor, force=True)
    assert messages == before
    own = {id(m) for m in messages}
    changed = [m for m in result.messages if id(m) not in own and not is_summary_message(m)]
    assert len(changed) == result.clipped
    assert all("original archived as" in str(m) or "archived as" in str(m) for m in changed)
    check_nothing_missing(messages, result, compactor)


def test_the_summary_stands_before_the_request_that_is_under_way():
    messages = agent(30)
    result = compacted(messages, engine(window=3_000, keep=("messages", 4)))
    assert result.outcome == "compacted"
    kept = [m for m in result.messages if not is_summary_message(m)]
    assert [id(m) for m in kept[:2]] == [id(m) for m in messages[:2]], "the rules and the request"
    assert is_summary_message(result.messages[1]), "the newest message of a user is the user's own"
