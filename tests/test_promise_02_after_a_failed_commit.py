"""Promise 2, at the call after one in which the archive failed: at whichever operation that was,
whether or not its record is in force, nothing is lost, doubled, or paid for twice."""

from collections import Counter

import pytest

from conspectus import Compactor
from conspectus.archive import Archive
from conspectus.errors import ArchiveError
from engine import SCOPE, Scripted, originals_in, short
from histories import talk
from stateful.oracle import plain
from stateful.stores import TroubledStore

OPERATIONS = 12
"""More than one compaction needs."""


def compactor(store: TroubledStore, summarizer: Scripted) -> Compactor:
    return Compactor(
        summarizer,
        archive=Archive(store),
        trigger=("messages", 8),
        keep=("messages", 2),
        on_failure="keep",
    )


@pytest.mark.slow
@pytest.mark.parametrize("second", [False, True], ids=["first compaction", "a later one"])
@pytest.mark.parametrize("restarts", [False, True], ids=["same process", "restarted"])
def test_the_next_call_is_right_wherever_the_archive_failed(second, restarts):
    in_force = failed = 0
    for after in range(OPERATIONS):
        store, summarizer = TroubledStore(), Scripted(short)
        one = compactor(store, summarizer)
        said = talk(20)
        sent = list(said)
        if second:
            more = [{**m, "content": f"and then {m['content']}"} for m in talk(14)]
            sent = [*one.compact(said, thread_id="t").messages, *more]
            said += more
        paid = len(summarizer.requests)
        before = [plain(message) for message in sent]
        drafts, records = store.held("drafts"), store.held("records")
        store.fails(after, 1)
        view, done = sent, False
        try:
            result = one.compact(sent, thread_id="t", force=True)
        except ArchiveError:  # it could not be read at all
            failed += 1
        else:
            view, done = result.messages, result.record is not None
            failed += not done
        store.recovers()
        if not done:
            assert view == sent
            in_force += store.held("records") != records
        kept = store.held("drafts") != drafts
        assert before == [plain(message) for message in sent]
        if restarts:
            one = compactor(store, summarizer)
        spent = len(summarizer.requests)
        again = one.compact(view, thread_id="t", force=not done)
        assert again.failed is None
        assert len(summarizer.requests) - spent == (0 if kept else 1), f"after {after} operations"
        assert len(summarizer.requests) - paid <= 2
        shown = Counter(plain(m) for m in again.messages if m in said)
        reach = Counter(map(plain, originals_in(one)))
        assert shown + reach == Counter(map(plain, said)), f"after {after} operations"
        keys = [key for record in one.archive.chain(SCOPE) for key in record.covers]
        assert len(keys) == len(set(keys))
        whole = one.compact(said, thread_id="t")
        assert whole.messages == again.messages
        assert len(summarizer.requests) - spent == (0 if kept else 1)
    assert failed
    assert in_force, "no record was written by a call that failed, so this showed nothing"
