"""Recall originals by id, range or query, as text without authority."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from conspectus.archive.archive import Archive
from conspectus.archive.values import Scope
from conspectus.core.records import Chain
from conspectus.errors import InputError, NotFoundError
from conspectus.observe import observing
from conspectus.recall.by_id import quoted_id, recall_by_id, recall_by_range
from conspectus.recall.by_query import recall_by_query, recall_within
from conspectus.recall.chain_index import ChainIndex
from conspectus.recall.originals import ChainOriginals
from conspectus.recall.packing import Packing, RecallResult

NAMED_SESSIONS = 5  # that an error names at most


async def recall_flow(
    archive: Archive,
    scope: Scope,
    chain: Chain,
    *,
    query: str | None = None,
    id: str | None = None,
    range: tuple[str, str] | None = None,
    at: int | None = None,
    tokens: int = 1024,
    max_messages: int | None = None,
    without: Collection[str] = (),
    cited: bool = True,
    count: Callable[[str], int],
) -> RecallResult:
    """Find originals of a chain, which never are those of an abandoned branch.

    Ask by `query`, by `id` or by `range`. A query beside an id or a range looks there alone.

    Args:
        archive: where the originals are.
        scope: whose they are.
        chain: the records whose originals may be found.
        query: words in any language; what fits best comes first.
        id: of a message; `id/2` is the second of the calls that it makes. A call comes with its
            results.
        range: the ids of a first and a last message.
        at: characters of the message to skip; only with an id.
        tokens: that the text takes at most.
        max_messages: that a query shows at most; None for any number. The last may bring its
            results.
        without: keys and ids of messages that a query does not show.
        cited: whether each message is named; otherwise those that are shown in part, alone.
        count: counts the tokens of a text.

    Raises:
        InputError: another way of asking, or an invalid one.
        NotFoundError: no message of the chain has that id, or it holds none of the words.
        ArchiveError: the archive cannot be read.
    """
    ways = {"id": id, "range": range}
    ways_asked = [way for way, value in ways.items() if value is not None]
    if not ways_asked and query is not None:
        ways_asked = ["query"]
    with observing("recall", scope, name=ways_asked[0] if ways_asked else "") as observation:
        if len(ways_asked) != 1 or (query is not None and at is not None):
            raise InputError(
                "ask by a query, by an id, or by a range; a query may also look in one id or in "
                "one range alone, and a place to read on from goes with an id"
            )
        if type(tokens) is not int or tokens < 1:
            raise InputError(f"tokens must be a whole number of at least 1, got {tokens!r}")
        if at is not None and (type(at) is not int or at < 0 or not id):
            raise InputError(f"at is a whole number of characters, and goes with id; got {at!r}")

        def search() -> RecallResult:
            packing = Packing(tokens, count, cited, max_messages)
            originals = ChainOriginals(archive, ChainIndex(archive, scope, chain, without))
            if id is not None and query is not None:
                recall_within(originals, packing, id, query)
            elif id is not None:
                recall_by_id(originals, packing, id, at or 0)
            elif query is not None:
                recall_by_query(originals, packing, query, range)
            elif range is not None:
                recall_by_range(originals, packing, range)
            return packing.result()

        try:
            result = await archive.call_either_way(search)
        except NotFoundError:
            observation.add(outcome="not_found")
            raise
        observation.add(
            messages=len(result.hits), tokens_after=result.tokens, truncated=result.truncated
        )
        return result


def unknown_thread(scope: Scope, sessions: Sequence[str]) -> NotFoundError:
    """Return the error for a thread without this session: it must not look like an empty one."""
    thread = f"thread {quoted_id(scope.thread)} of {quoted_id(scope.tenant)}"
    if sessions:
        return NotFoundError(
            f"the archive keeps no session {quoted_id(scope.session)} of {thread}; pass a session "
            f"that it has: {', '.join(map(quoted_id, sessions[:NAMED_SESSIONS]))}"
        )
    return NotFoundError(
        f"the archive keeps no {thread}: nothing is archived before its first compaction, and what "
        "has expired or was forgotten is gone; check the archive and the tenant; 'conspectus "
        "archive list', or Archive.threads in Python, names the threads that it keeps"
    )
