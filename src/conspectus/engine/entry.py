"""Where every caller enters: the short path if nothing is due, else the story of `compaction`.

Work that computes for long runs in a worker thread, so that it never holds an event loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from conspectus.bridge import run_in_worker
from conspectus.engine.attempts import Attempts
from conspectus.engine.background import compact_with_drafts
from conspectus.engine.compaction import carry_out, compact
from conspectus.engine.decision import CompactionDecision, CompactionRequest, Decision
from conspectus.engine.history import HistoryContext
from conspectus.engine.quiet import reuse_result
from conspectus.engine.reporting import report_overtaken, report_unchanged
from conspectus.engine.result import CompactionResult
from conspectus.errors import ArchiveOvertaken
from conspectus.messages import Source, read_messages


async def compact_messages(
    history: HistoryContext, messages: Sequence[Source], *, force: bool = False, focus: str = ""
) -> CompactionResult:
    """Bring the messages of a caller inside the window, if the trigger or the window asks for it.

    Args:
        history: whose messages they are.
        messages: the whole history, or the last result with new messages after it.
        force: compact although nothing asks for it.
        focus: the subject to keep above all, in plain words.

    Raises:
        MessageError: a message cannot be understood.
        ArchiveError: the archive cannot be read.
        ConspectusError: the compaction failed, and `on_failure` is `"raise"`.
    """
    if not (force or focus):
        result = await reuse_result(history, messages)
        if result is not None:
            return result
    request = CompactionRequest(force, focus)
    prepares_drafts = history.engine.preparations is not None

    async def read_and_compact() -> CompactionResult:
        entries = read_messages(messages, thread=history.scope)
        if prepares_drafts:
            return await compact_with_drafts(history, entries, request)
        return await compact(history, entries, request)

    return await run_in_worker(read_and_compact())


async def carry_out_decision(decision: Decision) -> CompactionResult:
    """Carry out what a caller has decided; where another worker was first, nothing changes."""

    async def carry_out_once() -> CompactionResult:
        if not isinstance(decision, CompactionDecision):
            return report_unchanged(decision)
        attempts = Attempts()
        try:
            return await carry_out(decision, attempts)
        except ArchiveOvertaken as error:
            return await report_overtaken(decision.view, error, attempts.spent)

    return await run_in_worker(carry_out_once())
