"""Failed summaries: how they are remembered, and when the next one is tried.

A summary that failed, or that a person declined, would fail again at the next step, and be paid
again. So the next try waits until the history has grown by a tenth, and by a tenth more after each
further failure in a row (`FailedSummary.next_try_from`). It does not wait if the history no longer
fits the window (`SessionMemory.failure_of`). `decision.plan_for` keeps to this.

A process remembers the latest failure of each session. The archive has it, too, for other
processes. Failed preparations are noted there alone.
"""

from __future__ import annotations

from conspectus.core.growth import size_has_grown
from conspectus.core.items import Size
from conspectus.core.plan_types import Compact, Plan
from conspectus.engine.history import HistoryContext
from conspectus.engine.history_store import PREPARATION_FAILED, SUMMARY_FAILED
from conspectus.engine.memory import FailedSummary
from conspectus.engine.result import Failure
from conspectus.engine.view import View
from conspectus.errors import ConspectusError, SummaryError


class SummaryDeclined(SummaryError):
    """A person has declined the summary. The caller gets a result, not this error."""


def failed_step_of(error: ConspectusError) -> Failure:
    """Return what has failed, as a result names it."""
    if error.failure == "archive":
        return "archive"
    return "redaction" if error.failure == "redaction" else "summary"


async def remember_failure(view: View, error: ConspectusError) -> None:
    """Remember a summary that failed or was declined, here and for other processes.

    A failure of the archive is not remembered: the next step tries again.
    """
    if failed_step_of(error) == "archive":
        return
    history = view.history
    size = view.size
    exceeds_window = history.exceeds_window(size)
    trigger_size = history.size_for_trigger(size)
    before = history.memory.failure_of(view.head_id, size.messages, exceeds_window)
    # Without a window, and if a person has declined, each try waits for one tenth.
    counts_failures = history.window is not None and not isinstance(error, SummaryDeclined)
    times = 1
    if before is not None and counts_failures:
        has_grown = size_has_grown(trigger_size, before.trigger_size)
        times = before.times + 1 if has_grown else before.times
    failure = FailedSummary(view.head_id, trigger_size, size, exceeds_window, times)
    history.memory.latest_failure = failure
    await history.store.write_failure(SUMMARY_FAILED, failure)


async def forget_failure(history: HistoryContext) -> None:
    """Forget an earlier failure, here and for other processes: a compaction has succeeded."""
    if history.memory.latest_failure is not None:
        await history.store.write_failure(SUMMARY_FAILED, None)
    history.memory.latest_failure = None


async def take_over_failure(view: View, plan: Plan) -> bool:
    """Remember a failure of this history that another process has noted; tell whether it is new.

    The store is asked only if a plan makes a summary.
    """
    if not (isinstance(plan, Compact) and plan.makes_summary):
        return False
    memory = view.history.memory
    noted = await view.history.store.read_failure(SUMMARY_FAILED)
    remembered = memory.latest_failure
    if noted is None or noted == remembered or noted.head_id != view.head_id:
        return False
    is_of_same_record = remembered is not None and remembered.head_id == noted.head_id
    if remembered is not None and is_of_same_record and remembered.times > noted.times:
        return False
    memory.latest_failure = noted
    return True


async def note_failed_preparation(history: HistoryContext, head_id: str, size: Size) -> None:
    """Note in the store that notes could not be prepared for a history of this size."""
    failed = FailedSummary(head_id, trigger_size=size, size=size, over=False)
    await history.store.write_failure(PREPARATION_FAILED, failed)


async def check_prepared_in_vain(view: View) -> bool:
    """Tell whether a preparation has failed for this history, and it has hardly grown since."""
    noted = await view.history.store.read_failure(PREPARATION_FAILED)
    if noted is None or noted.head_id != view.head_id:
        return False
    size = view.history.size_for_trigger(view.size)
    has_gone_back = size.messages < noted.trigger_size.messages
    return not has_gone_back and not size_has_grown(size, noted.trigger_size)
