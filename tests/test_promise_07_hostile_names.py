"""Promise 7, with crafted names and queries: nothing crosses, whatever they are made of."""

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from conspectus import Archive, Compactor, ConspectusError, NotFoundError
from conspectus.archive import Scope
from conspectus.recall.words import MOST_WORDS, query_of
from engine import Scripted, engine, short
from hostile_names import LABELS, QUERIES, look_alike_pairs
from postgres_support import postgres_schema
from stateful.budgets import few

LONG = os.environ.get("CONSPECTUS_PROFILE") == "long"
COUNT = itertools.count()
FEW = settings() if LONG else settings(max_examples=few(12))
PAIRS = look_alike_pairs()
SOME_PAIRS = PAIRS if LONG else PAIRS[::9]
LABEL = st.sampled_from(LABELS) | st.text(min_size=1, max_size=30) | st.text(
    st.characters(categories=["Cs", "Cf", "Mn", "Po"]), min_size=1, max_size=4
)  # fmt: skip


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


@FEW
@given(st.tuples(LABEL, LABEL, LABEL), st.tuples(LABEL, LABEL, LABEL))
@example(("a", "\U00010000", "a"), ("a", "\ud800\udc00", "a"))  # the same in JSON
def test_different_names_share_nothing(compactor, one, other):
    if one != other:
        check_apart(compactor, place(*one), place(*other))


@pytest.mark.sampled(1)
@given(
    st.text(max_size=6), st.text(max_size=6), st.sampled_from([*"./:|\x00\n,\\-_ ", "", "\ud800"])
)
def test_names_cannot_be_divided_in_another_way(compactor, left, right, sign):
    """`a/b` and `c` are not `a` and `b/c`."""
    one = place(f"x{left}{sign}{right}", "c", "s")
    other = place(f"x{left}", f"{right}{sign}c", "s")
    if one != other:
        check_apart(compactor, one, other)


def test_forgetting_one_name_forgets_no_other_that_looks_like_it(compactor):
    archive = compactor.archive
    for one, other in SOME_PAIRS:
        word, kept = (
            tell(compactor, place(one, one, "s")),
            tell(compactor, place(other, other, "s")),
        )
        assert archive.forget(one, one) > 0
        assert word not in repr(archive.export(Scope(one, one, "s")))
        assert kept in compactor.recall(kept, **place(other, other, "s")).text


def test_drafts_and_what_a_compactor_remembers_are_kept_apart():
    """A failure, or a summary that was made in one place, is none in another."""
    asked: list[Any] = []
    compactor = Compactor(
        Scripted(lambda request: asked.append(request) or short(request)),  # type: ignore[func-returns-value]
        keep=("messages", 1),
    )
    said = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
    said += [{"role": "user", "content": "three"}]
    for count, (one, other) in enumerate(SOME_PAIRS, 1):
        for label in (one, other):
            where = place(f"{count}", label, "s")
            before = len(asked)
            assert compactor.compact(said, force=True, **where).outcome == "compacted"
            assert len(asked) == before + 1
            assert compactor.compact(said, **where).dropped == 2  # its own is found again


def test_folders_and_files_are_named_after_hashes_only(tmp_path):
    with Archive.open(tmp_path / "a.db") as archive:
        compactor = engine(Scripted(short), archive=archive, keep=("messages", 1))
        for label in LABELS[:: 1 if LONG else 6]:
            where = place(label, label, label)
            compactor.recall(tell(compactor, where), **where)
    for file in tmp_path.rglob("*"):
        assert file.resolve().is_relative_to(tmp_path.resolve())
        rest = file.relative_to(tmp_path).as_posix()
        assert set(rest) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-_/"), rest


def test_the_readable_files_of_two_names_lie_in_two_folders():
    pytest.importorskip("deepagents")
    from deepagents.backends import StateBackend

    from conspectus.deep_agents.middleware import folder_of

    backend = StateBackend()
    scopes = [Scope(*names) for label in LABELS for names in
              ((label, "x", "s"), ("t", label, "s"), ("t", "x", label))]  # fmt: skip
    folders = {folder_of(backend, scope) for scope in scopes}
    assert len(folders) == len(set(scopes))
    for folder in folders:
        assert set(folder.removeprefix("/conversation_history/")) <= set("0123456789abcdef")


def test_a_semantic_index_answers_for_one_session_only():
    def embed(texts: Any) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]  # all mean the same

    store = InMemoryStore(index={"dims": 2, "embed": embed})
    compactor = engine(Scripted(short), archive=Archive(store), keep=("messages", 1))
    for one, other in SOME_PAIRS:
        check_apart(compactor, place(one, "x", "s"), place(other, "x", "s"))


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


SYNTAX = [*"\"'*^():+-{}[]¤=%_\\\x00\ud800\n", *"zebra number NEAR AND OR NOT 3".split()]


@given(
    st.lists(st.sampled_from(SYNTAX) | st.text(max_size=3), max_size=12),
    st.integers(1, 3_000),
    st.sampled_from(["query", "id", "range"]),
)  # fmt: skip
def test_whatever_is_asked_the_answer_is_ones_own_and_bounded(told, parts, tokens, how):
    text = " ".join(parts)
    ask(told, tokens, **{how: ("z2", text) if how == "range" else text})


@pytest.mark.parametrize(
    "piece", ["zebra", "斑", "a.b/c_d", "x ", "﷽", "? ", "1 May 2024. ", "\ud800"]
)
def test_a_megabyte_of_a_query_is_a_few_terms(piece):
    query = query_of(piece * (1_000_000 // len(piece)))
    for part in (query, *query.parts):
        assert len(part.words) <= MOST_WORDS
        assert len(part.exact) <= MOST_WORDS
    assert len(query.parts) <= 8
