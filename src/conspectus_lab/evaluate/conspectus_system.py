"""Observe our compactor, with its archive in memory, from outside."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, messages_from_dict
from langchain_core.messages.utils import count_tokens_approximately

from conspectus.archive import Archive, Scope
from conspectus.compactor import Compactor
from conspectus.errors import InputError, NotFoundError, SummaryError
from conspectus.messages import is_summary_message
from conspectus_lab.evaluate.systems import Compacted, Family, Thread, gone
from conspectus_lab.evaluate.texts import TokenCount

THREAD = "measured"
_BRACKETS = re.compile(r"\[([^\[\]\n]+)\]")


@dataclass(frozen=True, slots=True)
class ConspectusSystem:
    """A `Compactor` with some settings.

    Attributes:
        name: its name in results.
        keep: the newest history that stays.
        sizes: limits of its summary in tokens, each measured by itself. Default: those of the
            measurement.
        settings: other arguments of `Compactor`.
        count: the token counter.
    """

    name: str = "conspectus"
    keep: tuple[str, int] = ("messages", 20)
    sizes: tuple[int, ...] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    count: TokenCount = count_tokens_approximately
    family: Family = "conspectus"

    def open(self, summary_tokens: int) -> Thread:
        """Open a conversation with an archive of its own."""
        return ConspectusThread(self, summary_tokens)

    def compactor(self, summary_tokens: int, archive: Archive | None = None) -> Compactor:
        """Make a compactor with these settings and this limit of a summary.

        Raises:
            PolicyError: a setting is invalid.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return Compactor(
                keep=self.keep,
                max_summary_tokens=summary_tokens,
                token_counter=self.count,
                archive=archive,
                on_failure="raise",
                **self.settings,
            )


class ConspectusThread:
    """One conversation under our compactor."""

    def __init__(self, system: ConspectusSystem, summary_tokens: int) -> None:
        self._archive = Archive.open("memory:")
        self._compactor = system.compactor(summary_tokens, self._archive)
        self._count = system.count
        self._framed = system.count([HumanMessage("")])

    def compact(self, messages: Sequence[BaseMessage]) -> Compacted:
        """Compact the whole conversation so far.

        Raises:
            SummaryError: no summary could be made, so that a measurement would mislead.
        """
        started = time.perf_counter()
        result = self._compactor.compact(messages, thread_id=THREAD, force=True)
        seconds = time.perf_counter() - started
        if result.failed is not None:
            raise SummaryError(f"nothing can be measured: {result.reason}")
        left = gone(messages, result.messages)
        by_id: dict[str, list[Mapping[str, Any]]] = {}
        for row in self._archive.export(Scope("local", THREAD)):
            by_id.setdefault(row["id"], []).append(row)
        covered = set(result.record.covers) if result.record else set()
        named = {
            name.strip() for part in _BRACKETS.findall(result.summary) for name in part.split(",")
        }
        summary = next((m for m in result.messages if is_summary_message(m)), None)
        found = [(message, by_id.get(message.id or "", [])) for message in left]
        return Compacted(
            messages=list(result.messages),
            done=result.outcome == "compacted",
            evicted=len(left),
            read=sum(any(row["key"] in covered for row in rows) for _, rows in found),
            recoverable=sum(
                message in messages_from_dict([row["message"] for row in rows])
                for message, rows in found
            ),
            cited=sum(any(row["cite"] in named for row in rows) for _, rows in found),
            summary_tokens=0 if summary is None else self._count([summary]),
            calls=result.cost.calls,
            input_tokens=result.cost.input_tokens,
            output_tokens=result.cost.output_tokens,
            seconds=seconds,
        )

    def recall(self, query: str, tokens: int) -> str:
        """Recall originals in a message of at most so many tokens."""
        return recalled(self._compactor, query, max(1, tokens - self._framed))

    def close(self) -> None:
        """Close the archive."""
        self._archive.close()


def recalled(compactor: Compactor, query: str, tokens: int) -> str:
    """Recall originals for a query; empty if none is found."""
    try:
        return compactor.recall(query, thread_id=THREAD, tokens=tokens).text
    except (InputError, NotFoundError):
        return ""
