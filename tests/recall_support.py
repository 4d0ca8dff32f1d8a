"""Messages kept in an archive, and what a search among them finds."""

from collections.abc import Sequence

from conspectus.archive import Archive, Scope
from conspectus.bridge import run
from conspectus.core.records import Record
from conspectus.messages import Message
from conspectus.recall import RecallResult, recall_flow
from conspectus_lab.archive_conformance import record_of

SCOPE = Scope("ann", "thread")


def keep(archive: Archive, entries: Sequence[Message], scope: Scope = SCOPE) -> Record:
    """Messages that have left the view of a thread."""
    archive.put(scope, entries)
    record = record_of(entries)
    archive.commit(scope, record)
    return record


def ask(archive: Archive, query: str, scope: Scope = SCOPE, tokens: int = 100_000) -> RecallResult:
    chain = archive.chain(scope)
    return run(recall_flow(archive, scope, chain, query=query, tokens=tokens, count=len))
