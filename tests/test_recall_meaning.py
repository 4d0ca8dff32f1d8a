"""A store with a semantic index: found by meaning too, behind the same walls."""

import asyncio
import logging

import pytest
from langchain_core.messages import HumanMessage
from langgraph.store.memory import InMemoryStore

import recall_support
from conspectus import Compactor
from conspectus._drive import arun, run
from conspectus.archive import Archive, Scope
from conspectus.messages import Entry, read_messages
from conspectus.recall import RecallResult, recall_flow
from conspectus_lab.testing.archive_conformance import record_of
from recall_support import SCOPE, ask

CONCEPTS = (
    {"car", "automobile", "vehicle", "garage"},
    {"doctor", "physician", "clinic", "nurse"},
    {"money", "salary", "wage", "invoice"},
    {"boat", "ship", "sail", "harbour"},
)


def embed(texts: list[str]) -> list[list[float]]:
    """How many words of each concept a text holds, and a little of everything."""
    words = [{word.strip(".,?!").lower() for word in text.split()} for text in texts]
    return [[0.01, *(float(len(one & concept)) for concept in CONCEPTS)] for one in words]


def semantic_store() -> InMemoryStore:
    return InMemoryStore(index={"embed": embed, "dims": len(CONCEPTS) + 1})


TEXTS = ["The automobile stands behind the house.", "The physician was kind.", "It rained a lot."]


def keep(archive: Archive, texts: list[str], scope: Scope = SCOPE) -> list[Entry]:
    entries = read_messages([HumanMessage(text) for text in texts])
    recall_support.keep(archive, entries, scope)
    return entries


def test_a_paraphrase_without_a_common_word_is_found():
    archive = Archive(semantic_store())
    keep(archive, TEXTS)
    found = ask(archive, "Which vehicle?")
    assert [hit.text for hit in found.hits] == TEXTS[:1]
    assert not found.hits[0].neighbour
    assert ask(Archive(_filled(InMemoryStore())), "Which vehicle?").hits == ()


def _filled(store: InMemoryStore) -> InMemoryStore:
    keep(Archive(store), TEXTS)
    return store


def test_both_rankings_count():
    archive = Archive(semantic_store())
    texts = ["A vehicle came.", "The automobile, a vehicle, was sold.", "An automobile left."]
    keep(archive, [*texts, "Nothing of that."])
    hits = sorted(ask(archive, "automobile vehicle").hits, key=lambda hit: -hit.score)
    assert hits[0].text == texts[1]
    assert {hit.text for hit in hits[:3]} == set(texts)


def test_the_async_way_finds_the_same():
    archive = Archive(semantic_store())
    keep(archive, TEXTS)

    async def found() -> RecallResult:
        chain = await archive.achain(SCOPE)
        return await arun(
            recall_flow(archive, SCOPE, chain, query="vehicle", tokens=10_000, count=len)
        )

    assert asyncio.run(found()) == ask(archive, "vehicle")


@pytest.mark.parametrize(
    "other", [Scope("bob", "thread"), Scope("ann", "other"), Scope("ann", "thread", "sub")]
)
def test_meaning_does_not_cross_a_wall(other):
    archive = Archive(semantic_store())
    keep(archive, ["My automobile is mine alone."], other)
    keep(archive, ["It rained a lot."])
    assert "automobile" not in ask(archive, "vehicle").text
    assert "automobile" in ask(archive, "vehicle", other).text


def test_meaning_finds_only_what_the_chain_answers_for():
    archive = Archive(semantic_store())
    entries = keep(archive, TEXTS)
    chain = (record_of(entries[1:]),)
    flow = recall_flow(archive, SCOPE, chain, query="vehicle", tokens=10_000, count=len)
    assert "automobile" not in run(flow).text


def test_only_messages_are_embedded_and_come_back_equal():
    seen: list[str] = []

    def watched(texts: list[str]) -> list[list[float]]:
        seen.extend(texts)
        return embed(texts)

    store = InMemoryStore(index={"embed": watched, "dims": len(CONCEPTS) + 1})
    archive = Archive(store)
    odd = "The ship\x00 \udc00 sails. " + "Very long. " * 5_000
    entries = keep(archive, [*TEXTS, odd, ""])
    assert sorted(text[:20] for text in seen) == sorted(
        text.replace("\x00", "\ufffd").replace("\udc00", "\ufffd")[:20] for text in [*TEXTS, odd]
    )
    assert max(map(len, seen)) <= 8_000
    assert archive.missing(SCOPE, entries) == ()
    assert [one.message for one in archive.get(SCOPE, [entry.key for entry in entries])] == [
        entry.source for entry in entries
    ]


def test_an_embedding_that_fails_loses_nothing(caplog):
    working = [False]

    def moody(texts: list[str]) -> list[list[float]]:
        if not working[0]:
            raise ConnectionError("the model is out of reach")
        return embed(texts)

    archive = Archive(InMemoryStore(index={"embed": moody, "dims": len(CONCEPTS) + 1}))
    with caplog.at_level(logging.WARNING, "conspectus"):
        entries = keep(archive, TEXTS)
        assert archive.missing(SCOPE, entries) == ()
        assert ask(archive, "automobile").hits[0].text == TEXTS[0]
    assert len(caplog.records) == 2
    working[0] = True
    keep(archive, [*TEXTS, "A boat lies in the harbour."])
    assert ask(archive, "sail").hits[0].text == "A boat lies in the harbour."


def test_a_compactor_uses_the_index_of_the_store_that_it_is_given():
    compactor = Compactor(archive=semantic_store(), keep=("messages", 2))
    messages = [HumanMessage(text, id=f"m{n}") for n, text in enumerate([*TEXTS * 1, "So?", "Go."])]
    assert compactor.compact(messages, thread_id="t", force=True).outcome == "compacted"
    assert "automobile" in compactor.recall("vehicle", thread_id="t").text
