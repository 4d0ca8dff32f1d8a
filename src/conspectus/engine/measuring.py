"""Correct sizes to what a request really takes: by reports of models, or by a caller's counter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conspectus.core.items import Size
from conspectus.core.policy import EMBEDDED
from conspectus.core.records import Record
from conspectus.engine.history import HistoryContext
from conspectus.engine.view import View
from conspectus.messages import Source
from conspectus.tokens import TokenMeter, UsageReport, correction

MOST_SUM_FACTOR = 2.0
"""The sum of single counts may be so many times the count of the list, or that fraction of it."""


def correct_sizes(view: View) -> View:
    """Return a view whose estimate is corrected by the usage that models have reported."""
    history = correct_meter(view.history, view.reports, view.head)
    return view if history is view.history else view.with_meter_of(history)


def correct_meter(
    history: HistoryContext, reports: Sequence[UsageReport], head: Record | None
) -> HistoryContext:
    """Return a history whose meter is corrected by reports of usage.

    If there are no reports since the record in force, the ratio of that record is used.
    Another ratio would give the same view another size, so that it would be compacted again.
    """
    meter = history.engine.meter
    ratios_by_family = head.corrections if head else {}
    if meter.exact:
        return history
    if history.ratio is not None:
        ratio = history.ratio
    elif reports or ratios_by_family:
        reserved = 0 if history.window is None else history.window.reserved
        known_ratio = meter.known_ratio(ratios_by_family)
        ratio = correction(reports, reserved, history.limit, known=known_ratio)
    else:
        return history
    scaled = meter.scaled(ratio)
    if scaled is meter:
        return history
    return replace(history, engine=history.engine.measuring_by(scaled))


def share_out_count(view: View) -> View:
    """Return a view with the total of a caller's counter divided among its messages.

    Each message gets a part of the total in proportion to its own count. If the sum of the single
    counts is far from the total (`MOST_SUM_FACTOR`), the shares come from the estimate, and nothing
    is clipped.
    """
    history = view.history
    engine = history.engine
    meter = engine.meter
    if not meter.counts_lists:
        return view
    total = view.size.tokens - meter.base
    sizes = [item.tokens for item in view.items]
    if total <= 0 or total == sum(sizes):
        return view
    if not sum(sizes) / MOST_SUM_FACTOR <= total <= sum(sizes) * MOST_SUM_FACTOR:
        meter = meter.estimating()
        sizes = [meter.count_message(item.source) for item in view.items]
        engine = replace(engine, clip_pointer=None)
    engine = engine.measuring_by(meter.scaled(total / sum(sizes)))
    return view.with_sizes(replace(history, engine=engine), sizes, total)


def size_known_by_answer(
    size: Size, meter: TokenMeter, messages_to_answer: Sequence[Source]
) -> Size:
    """Return the size that a compaction reached, after the model's first answer to it.

    A caller's counter that reads the usage of answers knows this size only from that answer on.

    Args:
        size: what was counted when the compaction was put in force.
        meter: of the caller's counter.
        messages_to_answer: the view, from its first message to that answer.
    """
    return replace(size, tokens=min(size.tokens, meter.count_list(messages_to_answer)))


def evicted_since_model(head: Record | None) -> Size:
    """Return what has left the view since a model last wrote a summary, up to this record.

    Only the newest record is read: a state without an archive has no other one.
    """
    if head is None or head.by not in ("", EMBEDDED):
        return Size(0, 0)
    evicted_tokens = max(0, head.tokens_before - head.tokens_after)
    return Size(
        head.tokens_since_model + evicted_tokens, head.messages_since_model + len(head.covers)
    )
