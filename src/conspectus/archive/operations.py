"""What a store is asked to do: LangGraph's operations, without an import of LangGraph.

The fields are those of LangGraph's operations, as far as an archive uses them. A file's store is
given these; a store of LangGraph gets its own kind, at the last moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from langgraph.store.base import Op as LangGraphOp


class GetOp(NamedTuple):
    """Read the value of one key."""

    namespace: tuple[str, ...]
    key: str
    refresh_ttl: bool = False


class PutOp(NamedTuple):
    """Write a value, or delete it where the value is None; the time to live is in minutes."""

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


class Item(Protocol):
    """A value as a store gives it back."""

    @property
    def namespace(self) -> tuple[str, ...]: ...

    @property
    def key(self) -> str: ...

    @property
    def value(self) -> Any: ...


class FileItem(NamedTuple):
    """A value as a file's store gives it back."""

    namespace: tuple[str, ...]
    key: str
    value: Any


def for_langgraph(ops: Iterable[Op]) -> list[LangGraphOp]:
    """Turn operations into LangGraph's own."""
    from langgraph.store import base

    def made(op: Op) -> LangGraphOp:
        if isinstance(op, GetOp):
            return base.GetOp(**op._asdict())
        if isinstance(op, PutOp):
            return base.PutOp(**op._asdict())
        if isinstance(op, SearchOp):
            return base.SearchOp(**op._asdict())
        begins = (base.MatchCondition("prefix", op.beginning),)
        return base.ListNamespacesOp(begins, limit=op.limit)

    return [made(op) for op in ops]
