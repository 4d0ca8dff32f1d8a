"""The operations of a store: LangGraph's fields, without an import of LangGraph.

`FileStore` takes these; LangGraph's stores get LangGraph's own classes at the last moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from langgraph.store.base import Item as LangGraphItem
    from langgraph.store.base import Op as LangGraphOp


class GetOp(NamedTuple):
    """Read the value of one key."""

    namespace: tuple[str, ...]
    key: str
    refresh_ttl: bool = False


class PutOp(NamedTuple):
    """Write a value, or delete it if the value is None; `ttl` is in minutes."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any] | None
    index: Literal[False] | list[str] | None = None  # type: ignore[assignment]
    ttl: float | None = None


class SearchOp(NamedTuple):
    """Find values under a namespace: any of them, or the nearest in meaning to a query."""

    namespace_prefix: tuple[str, ...]
    limit: int = 10
    offset: int = 0
    query: str | None = None
    refresh_ttl: bool = False


class NamespacesOp(NamedTuple):
    """List the namespaces that begin with certain labels."""

    beginning: tuple[str, ...]
    limit: int = 100


Op = GetOp | PutOp | SearchOp | NamespacesOp


class FileItem(NamedTuple):
    """A value as `FileStore` returns it."""

    namespace: tuple[str, ...]
    key: str
    value: Any


Item: TypeAlias = "FileItem | LangGraphItem"  # A value as a store returns it


def for_langgraph(ops: Iterable[Op]) -> list[LangGraphOp]:
    """Turn operations into LangGraph's own."""
    from langgraph.store import base

    def made(op: Op) -> LangGraphOp:
        if isinstance(op, NamespacesOp):
            begins = (base.MatchCondition("prefix", op.beginning),)
            return base.ListNamespacesOp(begins, limit=op.limit)
        theirs: LangGraphOp = getattr(base, type(op).__name__)(**op._asdict())
        return theirs

    return [made(op) for op in ops]
