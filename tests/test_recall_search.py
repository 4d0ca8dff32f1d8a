"""Search over archived originals: languages, identifiers, walls, and a cache that can be lost."""

import base64
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from conspectus._core.records import Record
from conspectus._drive import Flow, run
from conspectus.archive import Archive, Scope
from conspectus.archive.operations import Op, PutOp
from conspectus.archive.wire import unpack
from conspectus.errors import ArchiveError, InputError
from conspectus.messages import Entry
from conspectus.recall import index_of, recall_flow
from conspectus.recall.index import TOGETHER
from conspectus.recall.postings import Part
from conspectus.recall.words import _apart, query_of, stem, terms_of
from conspectus_lab.testing.archive_conformance import record_of, talk
from recall_support import SCOPE, ask, keep
from stored_values import store_of

ENDINGS = ("", "s", "ed", "ing", "ings", "able", "ation", "ational", "fulness", "iveness")

TALK = {
    "english": "Deployments are failing because the cache was purged at 5 pm.",
    "path": "I changed src/billing/tax_rules.py and its getUserName(), v2.10.3 on port 5433.",
    "chinese": "订单数据库的密码在保险柜里。",
    "japanese": "昨日、東京でロシア語の本を食べた。",
    "korean": "데이터베이스를 절대 삭제하지 마세요.",
    "thai": "ฉันชอบกินข้าวผัด",
    "german": "Der Schlüssel liegt in der Straße.",
    "russian": "Пароль лежит в сейфе.",
}


def archived(archive: Archive, scope: Scope, *texts: str) -> tuple[list[Entry], Record]:
    index_of(archive)  # as the engine does
    entries = talk(*texts)
    return entries, keep(archive, entries, scope)


def found(archive: Archive, query: str, scope: Scope = SCOPE) -> set[str]:
    return {hit.text for hit in ask(archive, query, scope).hits if not hit.neighbour}


@pytest.fixture
def archive(tmp_path: Path):
    with Archive.open(tmp_path / "archive.db") as archive:
        index_of(archive)  # as the engine does
        yield archive


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("failed deployment", "english"),
        ("CACHES", "english"),
        ("5", "english"),
        ("pm", "english"),
        ("src/billing/tax_rules.py", "path"),
        ("tax_rules.py", "path"),
        ("tax rules", "path"),
        ("getUserName", "path"),
        ("username user", "path"),
        ("2.10.3", "path"),
        ("5433", "path"),
        ("密", "chinese"),
        ("密码", "chinese"),
        ("数据库密码是什么", "chinese"),
        ("本", "japanese"),
        ("東京", "japanese"),
        ("ロシ", "japanese"),
        ("食べ", "japanese"),
        ("삭", "korean"),
        ("삭제", "korean"),
        ("데이터베이스", "korean"),
        ("ข้าว", "thai"),
        ("schlüssel STRASSE", "german"),
        ("пароль", "russian"),
        ("ｃａｃｈｅ", "english"),
    ],
)
def test_a_message_is_found(archive, query, expected):
    archived(archive, SCOPE, *TALK.values())
    assert found(archive, query) == {TALK[expected]}


def test_the_identifier_asked_for_counts_more_than_its_parts(archive):
    texts = ["get the user; the user name; name the user", "call getUserName now", "get user name"]
    archived(archive, SCOPE, *texts, *(f"filler {n}" for n in range(20)))
    hits = [hit for hit in ask(archive, "getUserName").hits if not hit.neighbour]
    assert max(hits, key=lambda hit: hit.score).text == texts[1]
    assert {hit.text for hit in hits} == set(texts)


@pytest.mark.parametrize(
    "query",
    [
        '" OR "',
        "cache AND NOT",
        "cache*",
        "NEAR(cache purged, 2)",
        "words : cache",
        "^cache",
        "{words wholes} : cache",
        "'; DROP TABLE docs; -- cache",
        'cache"',
        "cache\x00purged",
        "cache \udc00",
        "-cache",
    ],
)
def test_search_syntax_in_a_query_is_only_words(archive, query):
    archived(archive, SCOPE, "The cache was purged.", "Nothing else.")
    expected = {"The cache was purged."} if "cache" in query else set()
    assert found(archive, query) == expected
    assert found(archive, "purged") == {"The cache was purged."}


@pytest.mark.parametrize("query", ["", "   ", "?!", "...", "。、", "\x00", "()"])
def test_a_query_without_a_word_is_refused(archive, query):
    archived(archive, SCOPE, "hello")
    with pytest.raises(InputError, match="no word"):
        ask(archive, query)


def test_a_very_long_query_and_a_very_long_word_are_harmless(archive):
    archived(archive, SCOPE, "needle " + "A1b" * 50_000, "hay")
    assert len(found(archive, "needle " + " ".join(f"word{n}" for n in range(5000)))) == 1
    assert len(found(archive, "A1b" * 50_000)) == 1


def test_an_abandoned_branch_is_not_recalled(archive):
    root, left, right = talk("we start", "the left secret", "the right secret")
    archive.put(SCOPE, [root, left, right])
    first = record_of([root])
    archive.commit(SCOPE, first)
    archive.commit(SCOPE, record_of([left], first))
    assert found(archive, "secret") == {"the left secret"}
    archive.commit(SCOPE, record_of([right], first))
    assert found(archive, "secret") == {"the right secret"}
    assert found(archive, "start") == {"we start"}


def test_messages_shown_short_can_be_recalled(archive):
    covered, clipped = talk("an old question", "a very long answer about zebras")
    archive.put(SCOPE, [covered, clipped])
    archive.commit(SCOPE, record_of([covered], clips=[clipped]))
    assert found(archive, "zebras") == {"a very long answer about zebras"}


def test_an_index_does_not_know_other_histories(archive):
    scopes = [Scope("ann", "a"), Scope("ann", "b"), Scope("bob", "a"), Scope("ann", "a", "sub")]
    archived(archive, scopes[0], "alpha beta", "gamma")
    alone = ask(archive, "alpha", scopes[0])
    for scope in scopes[1:]:
        archived(archive, scope, *["alpha of another"] * 30)
        assert found(archive, "beta", scope) == set()
    assert ask(archive, "alpha", scopes[0]) == alone


def parts(archive: Archive, scope: Scope = SCOPE) -> dict[str, dict[str, Any]]:
    """The parts of an index, as they lie in the store."""
    found = store_of(archive).search(scope.namespace("index"), limit=1000)
    return {item.key: item.value for item in found}


def test_the_index_lies_in_the_archive_and_is_forgotten_with_its_thread(archive, tmp_path):
    for thread in ("one", "two"):
        archived(archive, Scope("ann", thread), "hello")
        assert len(parts(archive, Scope("ann", thread))) == 1
    assert sorted(path.name.split("-")[0] for path in tmp_path.iterdir()) == ["archive.db"] * 3
    archive.forget("ann", "one")
    assert parts(archive, Scope("ann", "one")) == {}
    assert found(archive, "hello", Scope("ann", "one")) == set()
    assert found(archive, "hello", Scope("ann", "two")) == {"hello"}


def test_an_index_holds_no_text(archive):
    archived(archive, SCOPE, "The heron nests near Wexford harbour.")
    [part] = map(unpack, store_of(archive).search(SCOPE.namespace("index")))
    raws = [zlib.decompress(base64.b64decode(one)) for one in (part["data"], *part["blocks"])]
    assert any(b"heron" in raw for raw in raws)
    assert not any(b"heron nest" in raw.lower() for raw in raws)


def test_the_search_folder_of_an_earlier_version_goes(tmp_path):
    folder = tmp_path / "archive.db.search"
    folder.mkdir()
    (folder / "a.db").write_bytes(b"words")
    Archive.open(tmp_path / "archive.db").close()
    assert not folder.exists()


def test_a_new_process_reads_no_original_that_is_indexed(tmp_path, monkeypatch):
    with Archive.open(tmp_path / "archive.db") as archive:
        archived(archive, SCOPE, *(f"message {n} about apples" for n in range(40)))
    monkeypatch.setattr("conspectus.recall.index.terms_of", None)
    with Archive.open(tmp_path / "archive.db") as archive:
        assert "message 17 about apples" in found(archive, "apples 17")


@pytest.mark.parametrize("damage", ["deleted", "garbage", "half", "older", "block"])
def test_a_lost_part_is_built_again(tmp_path, damage):
    place = SCOPE.namespace("index")
    with Archive.open(tmp_path / "archive.db") as archive:
        archived(archive, SCOPE, *(f"message {n} about apples" for n in range(40)))
        before = ask(archive, "apples 17")
        [(name, value)] = parts(archive).items()
        store = store_of(archive)
        if damage == "deleted":
            store.delete(place, name)
        else:
            [item] = store.search(place)
            data = unpack(item)
            if damage == "older":
                data["version"] -= 1
            elif damage == "block":
                data["blocks"] = ["no block" for _ in data["blocks"]]
            else:
                data["data"] = "no part" if damage == "garbage" else data["data"][:200]
            store.batch([archive.wire.put_op(place, name, data)])
    with Archive.open(tmp_path / "archive.db") as archive:
        assert ask(archive, "apples 17") == before
        assert parts(archive).keys() == {name}
        assert parts(archive)[name] == value


def test_an_index_that_stands_on_other_stems_is_built_again(tmp_path, monkeypatch):
    with monkeypatch.context() as other:
        other.setattr("conspectus.recall.words.stem", lambda word: word)
        other.setattr("conspectus.recall.words._taken", _apart)
        other.setattr("conspectus.recall.postings.rules", lambda: "1.9.1")
        with Archive.open(tmp_path / "archive.db") as archive:
            archived(archive, SCOPE, "The deployments are failing.", "Nothing else.")
            old = parts(archive)
    with Archive.open(tmp_path / "archive.db") as archive:
        assert found(archive, "deployed") == {"The deployments are failing."}
        new = parts(archive)
    assert new.keys() == old.keys()
    assert new != old


def test_threads_that_look_for_stems_at_once_find_the_same():
    words = [f"{start}{end}" for start in ("paint", "adopt", "relat") for end in ENDINGS]
    alone = [stem.__wrapped__(word) for word in words]
    with ThreadPoolExecutor(4) as threads:
        made = threads.map(lambda _: [stem.__wrapped__(word) for word in words], range(40))
        assert all(one == alone for one in made)


def test_many_parts_become_few(archive):
    entries = talk(*(f"apple {n}x" for n in range(2 * TOGETHER + 3)))
    archive.put(SCOPE, entries)
    parent = None
    for entry in entries:
        parent = record_of([entry], parent)
        archive.commit(SCOPE, parent)
    assert len(parts(archive)) == 2 + 3
    assert {text.split()[1] for text in found(archive, "apple 5x")} >= {"5x"}
    abandoned = archive.chain(SCOPE)[: TOGETHER + 1]
    flow = recall_flow(archive, SCOPE, abandoned, query="apple 20x", tokens=100_000, count=len)
    assert "20x" not in run(flow).text


def test_a_damaged_block_is_read_anew_where_nothing_can_be_written(tmp_path, monkeypatch):
    place = SCOPE.namespace("index")
    with Archive.open(tmp_path / "archive.db") as archive:
        archived(archive, SCOPE, *(f"message {n} about apples" for n in range(40)))
        [item] = store_of(archive).search(place)
        data = unpack(item)
        data["blocks"] = ["no block"]
        store_of(archive).batch([archive.wire.put_op(place, item.key, data)])
    with Archive.open(tmp_path / "archive.db") as archive:
        batch = archive.wire.batch

        def reads_only(ops: Sequence[Op]) -> Flow[Any]:
            if any(isinstance(op, PutOp) for op in ops):
                raise ArchiveError("the disk is read-only")
            return (yield from batch(ops))

        monkeypatch.setattr(archive.wire, "batch", reads_only)
        assert "message 17 about apples" in found(archive, "apples 17")
        assert "message 18 about apples" in found(archive, "apples 18")


def test_damaged_parts_become_one_that_is_read_anew(archive):
    entries = talk(*(f"apple {n}x" for n in range(TOGETHER)))
    archive.put(SCOPE, entries)
    parent = None
    for number, entry in enumerate(entries):
        if number == TOGETHER - 1:
            for item in store_of(archive).search(SCOPE.namespace("index"), limit=100):
                data = unpack(item)
                data["blocks"] = ["no block"]
                put = archive.wire.put_op(SCOPE.namespace("index"), item.key, data)
                store_of(archive).batch([put])
        parent = record_of([entry], parent)
        archive.commit(SCOPE, parent)
    assert len(parts(archive)) == 1
    assert {text.split()[1] for text in found(archive, "apple 5x")} >= {"5x"}


def test_two_processes_that_index_the_same_write_the_same(tmp_path):
    with Archive.open(tmp_path / "archive.db") as one, Archive.open(tmp_path / "archive.db") as two:
        archived(one, SCOPE, "an apple", "a pear")
        before = parts(one)
        store_of(one).delete(SCOPE.namespace("index"), next(iter(before)))
        assert found(two, "pear") == found(one, "pear") == {"a pear"}
        assert parts(two) == before


def test_a_part_lives_no_longer_than_its_first_message(tmp_path):
    with Archive.open(tmp_path / "archive.db", ttl=1000) as archive:
        archived(archive, SCOPE, "an apple")
        [part] = map(unpack, store_of(archive).search(SCOPE.namespace("index")))
        [original] = map(unpack, store_of(archive).search(SCOPE.namespace("messages")))
        assert part["expires"] == original["expires"]


def test_a_part_written_while_its_thread_is_forgotten_does_not_stay(archive, monkeypatch):
    archived(archive, SCOPE, "an apple")
    chain = archive.chain(SCOPE)
    [name] = parts(archive)
    store_of(archive).delete(SCOPE.namespace("index"), name)
    pack = Part.pack

    def late(part: Part, manifest: Sequence[str]) -> dict[str, Any]:
        archive.forget("ann")
        return pack(part, manifest)

    monkeypatch.setattr(Part, "pack", late)
    run(index_of(archive).corpus_flow(SCOPE, chain))
    assert parts(archive) == {}


def test_equal_histories_of_two_tenants_have_an_index_each(archive):
    for tenant in ("ann", "bob"):
        archived(archive, Scope(tenant, "thread"), "an apple", "a pear")
        assert len(found(archive, "apple", Scope(tenant, "thread"))) == 1
    assert len(index_of(archive)._corpora) == 2
    archive.forget("ann")
    assert [scope.tenant for scope, _ in index_of(archive)._corpora] == ["bob"]


def test_the_index_grows_with_the_chain(archive):
    entries = talk("one apple", "two apples", "three apples")
    archive.put(SCOPE, entries)
    parent = None
    for number, entry in enumerate(entries, 1):
        parent = record_of([entry], parent)
        archive.commit(SCOPE, parent)
        assert len(found(archive, "apple")) == number


def test_a_message_that_is_gone_is_not_found_and_may_come_back(archive):
    entries, _ = archived(archive, SCOPE, "the secret word", "another secret")
    assert len(found(archive, "secret")) == 2
    place = SCOPE.namespace("messages")
    store = store_of(archive)
    kept = store.get(place, entries[0].key)
    store.delete(place, entries[0].key)
    assert found(archive, "secret") == {"another secret"}
    store.put(place, entries[0].key, kept.value)
    assert len(found(archive, "secret")) == 2


def test_many_histories_are_searched_in_turn():
    with Archive.open("memory:") as archive:
        scopes = [Scope("ann", f"thread {n}") for n in range(40)]
        for number, scope in enumerate(scopes):
            archived(archive, scope, f"apple number {number}")
        for _ in range(2):
            for number, scope in enumerate(scopes):
                assert found(archive, "apple", scope) == {f"apple number {number}"}


def test_terms_and_queries_are_read_by_the_same_rules():
    for text in TALK.values():
        words, query = set(terms_of(text).words), query_of(text)
        assert set(query.whole.words) <= words
        assert set(query.whole.wholes) <= set(terms_of(text).wholes)


def test_a_very_long_query_is_read_at_its_ends_only(monkeypatch):
    read: list[str] = []

    def counted(word: str) -> str:
        read.append(word)
        return stem(word)

    monkeypatch.setattr("conspectus.recall.words.stem", counted)
    filler = [f"w{number}x " * 40 for number in range(5_000)]
    query = query_of(f"Who painted the lighthouse? {' '.join(filler)}. Where is the blue teapot?")
    assert {stem("painted"), stem("lighthouse")} <= query.whole.words.keys()
    assert stem("teapot") in {word for part in query.parts for word in part.words}
    assert len(read) < 50_000
