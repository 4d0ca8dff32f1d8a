"""Make the record of a compaction and the view that will be sent, so that the view fits."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from conspectus.core.records import Draft, Record
from conspectus.engine.leaving import Leaving
from conspectus.engine.measuring import evicted_since_model
from conspectus.engine.summary_notes import shorten_draft
from conspectus.engine.truncated import RECENT
from conspectus.engine.view import View
from conspectus.engine.viewing import describe_users_after_summary, must_join, view_after
from conspectus.errors import SummaryError
from conspectus.observe import price_of

SHORTENINGS = 4
"""How often a summary is shortened if the id of its record makes the view too large."""

STILL_TOO_LARGE = (
    "with messages clipped the history takes {:,} tokens of {:,}; use a model with a larger "
    "window, or a token_counter that counts a message always alike"
)


def fit_record(leaving: Leaving, draft: Draft) -> tuple[Record, View]:
    """Make the record, and the view that will be sent once it is in force, and measure both.

    The id of the record is in the view, and a counter may count it. If that makes the view too
    large, the summary is shortened, in up to `SHORTENINGS` steps, unless a person has approved it.
    """
    plan = leaving.plan
    is_new = plan.makes_summary
    may_be_shorter = is_new and leaving.engine.preview is None and plan.stuck is None
    record, after = _make_record_and_view(leaving, draft)
    for _ in range(SHORTENINGS):
        excess = 0 if plan.budget is None else after.size.tokens - plan.budget
        if excess <= 0 or not may_be_shorter:
            break
        draft = shorten_draft(leaving, draft, draft.tokens - excess)
        record, after = _make_record_and_view(leaving, draft)
    return record, after


def check_budget(leaving: Leaving, after: View) -> None:
    """Raise `SummaryError` if a view does not fit, unless no smaller view is legal."""
    plan = leaving.plan
    if not plan.fits:
        return  # it is the smallest view that is legal, and the result says that it does not fit
    if plan.budget is not None and after.size.tokens > plan.budget:
        raise SummaryError(STILL_TOO_LARGE.format(after.size.tokens, plan.budget))


def _make_record_and_view(leaving: Leaving, draft: Draft) -> tuple[Record, View]:
    record = _record(leaving, draft)
    after = view_after(leaving.view, leaving.remaining_items, record)
    return replace(record, tokens_after=after.size.tokens), after


def _bill(leaving: Leaving, draft: Draft) -> dict[str, Any]:
    """Return what a compaction has cost in addition to tokens; see `Record.bill`."""
    seconds = round(time.monotonic() - leaving.started, 3)
    decision = leaving.decision
    prepared_in = 0.0 if decision.draft is None else decision.draft.seconds
    bill: dict[str, Any] = {
        "seconds": round(seconds + prepared_in, 3),
        "waited": round(seconds + decision.waited, 3),
    }
    money = price_of(draft.cost) if draft.cost.calls else None
    if money is not None:
        bill["money"] = money
    return bill


def _record(leaving: Leaving, draft: Draft) -> Record:
    """Make the record, without the size of the view after it: that view has the record's id."""
    view = leaving.view
    evicted = evicted_since_model(view.head)
    return Record.make(
        parent=view.head_id or None,
        covers=leaving.leaving_keys,
        clips=tuple(item.recorded_clip for item in leaving.clips.values() if item.recorded_clip),
        summary=draft.body,
        notes=draft.notes,
        cause=str(leaving.plan.cause),
        tokens_before=leaving.plan.tokens,
        tokens_after=0,
        messages_after=len(leaving.remaining_items) + bool(draft.body),
        archived=view.history.store.keeps_originals,
        by=draft.by,
        cost=draft.cost,
        cut=draft.cut,
        request_kind=draft.request_kind,
        redacted=dict(leaving.texts.secrets_removed),
        order=_order(leaving),
        stayed=_stayed(leaving),
        clients_own=tuple(key for key in leaving.leaving_keys if key in view.clients_own),
        foreign=bool(leaving.texts.foreign_summaries),
        may_need_joining=view.may_need_joining,
        joined=_joined(leaving),
        corrections=leaving.engine.meter.ratios_by_family,
        tokens_since_model=evicted.tokens,
        messages_since_model=evicted.messages,
        bill=_bill(leaving, draft),
    )


def _joined(leaving: Leaving) -> tuple[dict[str, Any], ...]:
    """Describe the messages that are joined with the summary, if any are."""
    view = leaving.view
    if not leaving.plan.makes_summary:
        return ()
    if not must_join(leaving.engine, view.may_need_joining, compacted=True):
        return ()
    fields = leaving.redaction is None  # other fields of a message may hold secrets
    evicted = set(leaving.plan.evicted_places)
    return tuple(describe_users_after_summary(view, evicted, leaving.clips, fields=fields))


def _order(leaving: Leaving) -> tuple[str, ...]:
    """Return the keys of what leaves, and of what stays before the last message that leaves.

    What stays will leave later, so its place is noted now. Empty if nothing stays there.
    """
    items = leaving.view.items
    leaving_keys = set(leaving.leaving_keys)
    placed = {key for record in leaving.view.chain for key in record.order}
    order: list[str] = []
    for item in items[: _last_leaving(leaving) + 1]:
        is_talk = not item.is_summary and item.role != "system"
        if item.key in leaving_keys or (is_talk and item.key not in placed):
            order.append(item.key)
    return () if leaving_keys.issuperset(order) else tuple(order)


def _stayed(leaving: Leaving) -> tuple[str, ...]:
    """Return the keys of what stays after the last message that leaves.

    Of very many these are the first, so that none is missing between them and what leaves.
    """
    view = leaving.view
    after = view.items[_last_leaving(leaving) + 1 :]
    messages = (item for item in after if not item.is_summary and item.role != "system")
    return tuple(item.key for item in messages if item.key not in view.clients_own)[:RECENT]


def _last_leaving(leaving: Leaving) -> int:
    """Return the place of the last message that leaves; -1 for none."""
    leaving_keys = set(leaving.leaving_keys)
    items = leaving.view.items
    return max((place for place, item in enumerate(items) if item.key in leaving_keys), default=-1)
