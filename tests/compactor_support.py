"""What the promise tests share: summarisers that behave in one given way, and what must hold."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from conspectus import CompactionResult, Compactor, Summary, SummaryRequest
from conspectus.archive import Archive, Scope
from conspectus.messages import is_summary_message, read_messages
from histories import orphans
from stateful.oracle import unanswered

SCOPE = Scope("local", "t", "main")


@dataclass
class Scripted:
    """A real summariser whose text is given, however short; it remembers what it was asked to
    read."""

    write: Callable[[SummaryRequest], str]
    name: str = "scripted"
    identity: str = "scripted"
    requests: list[SummaryRequest] = field(default_factory=list)
    check_summaries: bool = False

    def summarize(self, request: SummaryRequest) -> Summary:
        self.requests.append(request)
        return Summary(self.write(request), tuple(e.key for e in request.entries))

    async def asummarize(self, request: SummaryRequest) -> Summary:
        return self.summarize(request)


class FaultyStore(InMemoryStore):
    """A store that fails, or confirms and forgets, for the kinds of values named.

    Attributes:
        drafts: the names under which drafts were put.
        error: what it fails with.
    """

    def __init__(self, *, fail: Iterable[str] = (), forget: Iterable[str] = ()) -> None:
        super().__init__()
        self.fail = set(fail)
        self.forget = set(forget)
        self.drafts = list[str]()
        self.error: Exception = sqlite3.OperationalError("database or disk is full")

    def batch(self, ops: Any) -> Any:
        ops = list(ops)
        puts = {id(op): set(op.namespace) for op in ops if isinstance(op, PutOp)}
        if any(self.fail & kinds for kinds in puts.values()):
            raise self.error
        self.drafts += [op.key for op in ops if "drafts" in puts.get(id(op), ())]
        confirmed = [op for op in ops if not self.forget & puts.get(id(op), set())]
        answers = iter(super().batch(confirmed))
        return [next(answers) if op in confirmed else None for op in ops]


def short_summary(request: SummaryRequest) -> str:
    return f"- {len(request.entries)} messages about the task [x]"


def new_compactor(summarizer: Any = None, **settings: Any) -> Compactor:
    settings.setdefault("archive", Archive(InMemoryStore()))
    settings.setdefault("alternate_roles", "off")  # each message stays the caller's own object
    return Compactor(summarizer, **settings)


def compacted(messages: Sequence[Any], compactor: Compactor, **options: Any) -> CompactionResult:
    return compactor.compact(list(messages), thread_id="t", **options)


def check_nothing_missing(messages: Sequence[Any], result: Any, compactor: Compactor) -> None:
    """Each message is kept as it is, or archived equal to the original."""
    kept_ids = [id(m) for m in result.messages]
    missing = [m for m in messages if id(m) not in kept_ids]
    if not missing:
        return
    chain = compactor.archive.chain(SCOPE)
    keys = {key for r in chain for key in (*r.covers, *(c.key for c in r.clips))}
    entries = [e for e in read_messages(list(messages)) if id(e.source) not in kept_ids]
    assert {e.key for e in entries} <= keys
    archived = compactor.archive.get(SCOPE, [e.key for e in entries])
    assert [f.message for f in archived] == [e.source for e in entries]


def check_sequence(messages: Sequence[Any], result: Any) -> None:
    """No orphan that was none before, no call that lost its result, the user's last word there."""
    shown = [m for m in result.messages if not is_summary_message(m)]
    assert orphans(shown) <= orphans(list(messages))
    assert len(unanswered(shown)) == len(unanswered(list(messages)))
    if result.outcome == "compacted" and result.evicted:
        assert orphans(shown) == 0
