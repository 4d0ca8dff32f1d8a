"""Promise 7, with crafted names and queries: nothing crosses, whatever they are made of."""

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest

from conspectus import Archive, Compactor, ConspectusError, NotFoundError
from conspectus.archive import Scope
from engine import Scripted, engine, short
from hostile_names import QUERIES, look_alike_pairs
from postgres_support import postgres_schema

LONG = os.environ.get("CONSPECTUS_PROFILE") == "long"
COUNT = itertools.count()
PAIRS = look_alike_pairs()
SOME_PAIRS = PAIRS if LONG else PAIRS[::9]


@pytest.fixture(scope="module", params=["memory", "sqlite", "postgres"])
def compactor(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Compactor]:
    if request.param == "memory":
        yield engine(Scripted(short), keep=("messages", 1))
    elif request.param == "sqlite":
        with Archive.open(tmp_path_factory.mktemp("walls") / "archive.db") as archive:
            yield engine(Scripted(short), archive=archive, keep=("messages", 1))
    else:
        with postgres_schema() as address, Archive.open(address) as archive:
            yield engine(Scripted(short), archive=archive, keep=("messages", 1))


def place(tenant: str, thread: str, session: str) -> dict[str, str]:
    return {"tenant": tenant, "thread_id": thread, "session": session}


def tell(compactor: Compactor, where: dict[str, str]) -> str:
    """Archive a word there that nobody else has said, and give it."""
    word = f"zebra{next(COUNT)}"
    said = [{"role": "user", "content": f"the {word} is here", "id": word}]
    said += [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "go on"}]
    assert compactor.compact(said, force=True, **where).outcome == "compacted"
    return word


def check_apart(compactor: Compactor, one: dict[str, str], other: dict[str, str]) -> None:
    word, foreign = tell(compactor, one), tell(compactor, other)
    for here, own, theirs in ((one, word, foreign), (other, foreign, word)):
        assert own in compactor.recall(own, **here).text
        assert theirs not in compactor.recall(f"{theirs} here", **here).text
        assert own in compactor.recall(id=own, **here).text
        with pytest.raises(NotFoundError):
            compactor.recall(id=theirs, **here)
        archive = compactor.archive
        scope = Scope(here["tenant"], here["thread_id"], here["session"])
        assert own in repr(archive.export(scope))
        assert theirs not in repr(archive.export(scope))
        assert theirs not in repr(archive.chain(scope))
        assert here["thread_id"] in archive.threads(here["tenant"])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_names_that_look_alike_share_nothing(compactor, at):
    assert len(PAIRS) > 20
    for one, other in SOME_PAIRS:
        names = ["t", "x", "s"]
        check_apart(
            compactor,
            place(*[one if n == at else name for n, name in enumerate(names)]),
            place(*[other if n == at else name for n, name in enumerate(names)]),
        )


# Queries


@pytest.fixture(scope="module")
def told() -> tuple[Compactor, dict[str, str], list[str]]:
    """A thread with something in it, and what others have said. Words are looked for in an index of
    our own, whatever the store is."""
    compactor = engine(Scripted(short), keep=("messages", 1))
    mine = place("query", "mine", "s")
    foreign = [tell(compactor, place("query", f"other{n}", "s")) for n in range(3)]
    said = [
        {"role": "user", "content": f"zebra number {n}, \"quoted\" 'too'", "id": f"z{n}"}
        for n in range(40)
    ]
    said += [
        {"role": "user", "content": "zebra " * 4_000, "id": "long"},
        {"role": "user", "content": "go"},
    ]
    assert compactor.compact(said, force=True, **mine).outcome == "compacted"
    return compactor, mine, foreign


def ask(told: tuple[Compactor, dict[str, str], list[str]], tokens: int, **what: Any) -> None:
    compactor, mine, foreign = told
    found, refused = None, ""
    try:
        found = compactor.recall(**mine, tokens=tokens, **what)
    except ConspectusError as error:
        refused = str(error)
    assert len(refused) < 1_000
    assert not any(word in refused for word in foreign)
    if found is None:
        return
    assert found.tokens <= tokens
    assert compactor._engine.meter.text(found.text) <= tokens
    assert len(found.hits) <= 45
    assert not any(word in found.text for word in foreign)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: repr(query)[:30])
@pytest.mark.parametrize("tokens", [1, 40, 1_024] if LONG else [40])
def test_no_query_breaks_or_reaches_over_or_gets_more_than_its_tokens(told, query, tokens):
    ask(told, tokens, query=query)
    ask(told, tokens, id=query)
    ask(told, tokens, range=("z1", query))
