"""Promise 7: no recall, read or cached value crosses a tenant, a thread, a session, a branch."""

import itertools

import pytest

from conspectus import NotFoundError
from conspectus.archive import Archive, Scope
from engine import Scripted, engine
from histories import talk, user

LABELS = [
    "a",
    "A",
    "a.b",
    "a/b",
    "..",
    "a\x00b",
    "а",
    "a'; DROP TABLE store;--",
    "*",
    " a",
    "\ud800",
]


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["in a store", "in a file"])
def test_nothing_crosses_tenants_threads_or_sessions_however_they_are_named(tmp_path, kept):
    file = Archive.open(tmp_path / "a.db") if kept == "in a file" else None
    compactor = engine(archive=file) if file else engine()
    places = [{"tenant": "t", "thread_id": name, "session": "s"} for name in LABELS] + [
        {"tenant": name, "thread_id": "x", "session": "s"} for name in LABELS
    ]
    places += [{"tenant": "t", "thread_id": "x2", "session": name} for name in LABELS]
    for n, place in enumerate(places):
        messages = [user(f"the secret word is zebra{n:03}", id=f"m{n}"), *talk(30)]
        assert compactor.compact(messages, force=True, **place).evicted
    for (n, one), (m, other) in itertools.product(enumerate(places), repeat=2):
        found = compactor.recall(f"zebra{m:03}", tokens=2_000, **one).text
        assert (f"zebra{m:03}" in found) == (n == m), (one, other)
        if n != m:
            with pytest.raises(NotFoundError):
                compactor.recall(id=f"m{m}", **one)


def test_what_an_abandoned_branch_archived_is_out_of_reach():
    compactor = engine()
    common = talk(20)
    left = [*common, user("the left branch found a walrus", id="left"), *talk(30)]
    right = [*common, user("the right branch found a heron", id="right"), *talk(30)]
    compactor.compact(left, thread_id="t", force=True)
    assert "walrus" in compactor.recall("walrus", thread_id="t").text
    compactor.compact(right, thread_id="t", force=True)
    with pytest.raises(NotFoundError):  # before there is an index of this branch
        compactor.recall(id="left", thread_id="t")
    assert "heron" in compactor.recall("heron", thread_id="t").text
    assert "walrus" not in compactor.recall("walrus", thread_id="t").text
    with pytest.raises(NotFoundError):
        compactor.recall(id="left", thread_id="t")


def test_forgetting_a_thread_takes_everything_and_only_it():
    compactor = engine()
    for thread in ("one", "two"):
        compactor.compact([user(f"in {thread}"), *talk(30)], thread_id=thread, force=True)
    assert compactor.archive.forget("local", "one") > 30
    with pytest.raises(NotFoundError, match="keeps no thread 'one'"):
        compactor.recall("in one", thread_id="one")
    assert "in two" in compactor.recall("in two", thread_id="two").text
    assert compactor.archive.threads("local") == ("two",)


def test_two_branches_whose_summaries_say_the_same_are_kept_apart():
    compactor = engine(
        Scripted(lambda _: "- the same words [x]"), keep=("messages", 4), notes=False
    )

    def branch(fruit: str) -> list[dict[str, str]]:
        return [user("start"), user(f"a {fruit}", id=f"x-{fruit}"), *talk(10)]

    apple = compactor.compact(branch("apple"), thread_id="t", force=True)
    pear = compactor.compact(branch("pear"), thread_id="t", force=True)
    assert apple.summary == pear.summary
    compactor.compact([*apple.messages, user("go on")], thread_id="t")
    assert compactor.recall(id="x-apple", thread_id="t").hits
    with pytest.raises(NotFoundError):
        compactor.recall(id="x-pear", thread_id="t")


def test_a_record_that_was_read_in_one_thread_is_not_there_in_another():
    compactor = engine(Scripted(lambda _: "- the same words [x]"), keep=("messages", 4))
    first = compactor.compact(talk(10), thread_id="one", force=True)
    compactor.compact([*first.messages, *talk(10, 5)], thread_id="one", force=True)
    archive = compactor.archive
    one, two = Scope("local", "one"), Scope("local", "two")
    chain = archive.chain(one)
    assert len(chain) == 2
    archive.commit(two, chain[-1])  # without the record that it stands on
    assert archive.chain(two) == ()
