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

NAMED_SESSIONS = 5
"""Sessions that an error names at most."""


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
    """Find originals of a chain, never those of an abandoned branch.

    Pass `query`, `id` or `range`. A query together with an id or a range searches only there.

    Args:
        archive: where the originals are.
        scope: the history they belong to.
        chain: the records whose originals may be found.
        query: words in any language; the best match comes first.
        id: the id of a message; `id/2` is the second call in it. A call is shown with its results.
        range: the ids of a first and a last message.
        at: characters of the message to skip; only with an id.
        tokens: the most tokens of the text.
        max_messages: the most messages that a query shows; None for any number. The results of the
            last one may be added.
        without: keys and ids of messages that a query does not show.
        cited: whether each message is named; if not, only those that are shown in part.
        count: counts the tokens of a text.

    Raises:
        InputError: the arguments exclude each other, or one is invalid.
        NotFoundError: no message of the chain has that id, or the message has none of the words.
        ArchiveError: the archive cannot be read.
    """
    ways = {"id": id, "range": range}
    ways_used = [way for way, value in ways.items() if value is not None]
    if not ways_used and query is not None:
        ways_used = ["query"]
    with observing("recall", scope, name=ways_used[0] if ways_used else "") as observation:
        if len(ways_used) != 1 or (query is not None and at is not None):
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
    """Return the error for an unknown thread or session: it must not look like an empty one."""
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
