"""Search over archived originals: languages, identifiers, walls, what stands around a message."""

from pathlib import Path
from typing import Any

import pytest

import recall_support
from conspectus.archive import Archive, Scope
from conspectus.bridge import run
from conspectus.core.records import Record
from conspectus.errors import NotFoundError
from conspectus.messages import Message, read_messages
from conspectus.recall import RecallResult, recall_flow
from conspectus_lab.archive_conformance import record_of, talk
from recall_support import SCOPE, ask, keep
from stored_values import words_in

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
FILLER = [
    f"{what} number {n}, as it happens to be on that day."
    for n in range(12)
    for what in ("A walk", "Some tea", "The garden", "Bad weather", "An old song")
]


def archived(archive: Archive, scope: Scope, *texts: str) -> tuple[list[Message], Record]:
    entries = talk(*texts)
    return entries, keep(archive, entries, scope)


def found(archive: Archive, query: str, scope: Scope = SCOPE) -> set[str]:
    return {hit.text for hit in ask(archive, query, scope).hits if not hit.neighbour}


def said(role: str, text: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **more}


def keep_all(archive: Archive, messages: list[Any]) -> None:
    made = [said("user", m) if isinstance(m, str) else m for m in messages]
    recall_support.keep(archive, read_messages(made))


def by_id(archive: Archive, name: str, **more: Any) -> RecallResult:
    chain = archive.chain(SCOPE)
    return run(recall_flow(archive, SCOPE, chain, id=name, count=len, **more))


@pytest.fixture
def archive(tmp_path: Path):
    with Archive.open(tmp_path / "archive.db") as archive:
        yield archive


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("failed deployment", "english"),
        ("CACHES", "english"),
        ("5", "english"),
        ("purge caches", "english"),
        ("src/billing/tax_rules.py", "path"),
        ("tax rules", "path"),
        ("getUserName", "path"),
        ("2.10.3", "path"),
        ("密", "chinese"),
        ("数据库密码是什么", "chinese"),
        ("東京", "japanese"),
        ("食べ", "japanese"),
        ("삭제", "korean"),
        ("ข้าว", "thai"),
        ("schlüssel", "german"),
        ("пароль", "russian"),
        ("ｃａｃｈｅ", "english"),
    ],
)
def test_a_message_is_found(archive, query, expected):
    archived(archive, SCOPE, *TALK.values())
    assert found(archive, query) == {TALK[expected]}


@pytest.mark.parametrize(
    "query",
    ['" OR "', "cache AND NOT", "cache*", "NEAR(cache purged, 2)", "'; DROP TABLE docs; -- cache",
     'cache"', "cache\x00purged", "cache \udc00", "--cache"],
)  # fmt: skip
def test_search_syntax_in_a_query_is_only_words(archive, query):
    archived(archive, SCOPE, "The cache was purged.", "Nothing else.")
    expected = {"The cache was purged."} if "cache" in query else set()
    assert found(archive, query) == expected
    assert found(archive, "purged") == {"The cache was purged."}


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


def test_what_others_say_changes_nothing(archive):
    scopes = [Scope("ann", "a"), Scope("ann", "b"), Scope("bob", "a"), Scope("ann", "a", "sub")]
    archived(archive, scopes[0], "alpha beta", "gamma")
    alone = ask(archive, "alpha", scopes[0])
    for scope in scopes[1:]:
        archived(archive, scope, *["alpha of another"] * 30)
        assert found(archive, "beta", scope) == set()
    assert ask(archive, "alpha", scopes[0]) == alone


def test_the_words_are_forgotten_with_their_thread(archive):
    for thread in ("one", "two"):
        archived(archive, Scope("ann", thread), f"hello {thread}")
    archive.forget("ann", "one")
    assert found(archive, "hello", Scope("ann", "one")) == set()
    assert found(archive, "hello", Scope("ann", "two")) == {"hello two"}
    with archive.backend.transaction(writes=False) as run_:  # type: ignore[attr-defined]
        assert words_in(run_) == ["hello", "two"]


def test_an_answer_without_a_word_of_the_question_is_found(archive):
    turn = [
        "Let us set up the staging database.",
        said("assistant", "Good. Which port does it use?"),
        "5433.",
    ]
    keep_all(archive, [*FILLER[:30], *turn, *FILLER[30:]])
    result = ask(archive, "staging database port", tokens=140)
    assert "5433." in result.text
    assert next(hit for hit in result.hits if hit.text == "5433.").neighbour


def test_a_users_statement_is_found_beside_long_answers_about_the_same(archive):
    advice = "A subscription has a cost that depends on many things. " * 12
    answers = [said("assistant", f"{advice} Point {n}.") for n in range(12)]
    keep_all(archive, [*answers[:6], "My subscription costs $12.99/month.", *answers[6:]])
    assert "$12.99/month" in ask(archive, "What does the subscription cost?", tokens=300).text


def test_a_result_is_found_by_its_own_call_and_not_by_those_beside_it(archive):
    cities = ["Lisbon", "Oslo", "Quito"]
    calls = [
        {"id": city, "function": {"name": "weather", "arguments": f'{{"city": "{city}"}}'}}
        for city in cities
    ]
    results = [said("tool", f"{n + 11} degrees", tool_call_id=c) for n, c in enumerate(cities)]
    turn = ["Compare them.", said("assistant", "", tool_calls=calls), *results]
    keep_all(archive, [*FILLER[:30], *turn, said("assistant", "Fine."), *FILLER[30:]])
    for n, city in enumerate(cities):
        hits = ask(archive, f"weather in {city}").hits
        ranked = {hit.text: hit.score for hit in hits if hit.text.endswith("degrees")}
        assert max(ranked, key=lambda text: ranked[text]) == f"{n + 11} degrees"


def test_in_one_message_words_find_their_place_and_the_end_can_be_reached(archive):
    lines = [f"row {n}: nothing to see here" for n in range(400)]
    lines[333] = "row 333: the vault is blue"
    keep_all(archive, [said("user", "\n".join(lines), id="log"), "Go on."])
    place = by_id(archive, "log", query="blue vault", tokens=600)
    assert "row 333: the vault is blue" in place.text
    assert "row 5:" not in place.text
    begin = by_id(archive, "log", tokens=600)
    at = int(begin.text.split("next: at=")[1].split(")")[0])
    assert begin.hits[0].text == "\n".join(lines)[:at]
    assert "\n".join(lines)[at:].startswith(by_id(archive, "log", at=at, tokens=600).hits[0].text)
    with pytest.raises(NotFoundError, match="none of these words"):
        by_id(archive, "log", query="zebra", tokens=600)


def test_a_call_of_several_in_one_message_has_a_name(archive):
    calls = [
        {"id": f"c{n}", "function": {"name": "write", "arguments": f'{{"path": "{n}.py"}}'}}
        for n in range(3)
    ]
    keep_all(archive, [said("assistant", "Three files.", tool_calls=calls, id="m1"), "Go on."])
    assert by_id(archive, "m1/2").hits[0].text == "write 1.py"
    with pytest.raises(NotFoundError, match="3 calls"):
        by_id(archive, "m1/4")


def test_rows_of_a_table_come_with_the_names_of_its_columns(archive):
    rows = [f"{n}\tuser{n}\t{'idle' if n != 280 else 'haunted'}" for n in range(400)]
    keep_all(archive, [said("tool", "\n".join(["id\tname\tstate", *rows]), tool_call_id="c")])
    result = ask(archive, "haunted", tokens=700)
    assert "user280\thaunted" in result.text
    assert "columns: id name state" in result.text
