"""Decide for one history: keep it, make it smaller, or give up.

Below the trigger nothing is done. If it is enough to clip stale results, only that is done. Else
the older part is summarised, up to the legal cut that `keep` asks for, and things give way in the
order of `ladder.LADDER`. If nothing helps, the plan is `Stuck`, with the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from conspectus.core.exchanges import leading_system_items, match_calls, must_stay
from conspectus.core.growth import REARM, has_grown
from conspectus.core.items import Item, Size, Window
from conspectus.core.ladder import (
    CLIP_TO,
    FREE_AFTERWARDS,
    LADDER,
    LADDER_BY_KEEP,
    NO_NEW_SUMMARY,
    OLDEST_FIRST,
    Ladder,
    SummaryBounds,
)
from conspectus.core.plan_types import FORCED, Cause, Compact, Keep, Plan, PlannedClip, Stuck
from conspectus.core.policy import (
    Clause,
    Policy,
    first_kept_by,
)
from conspectus.core.summary_room import (
    BOUNDLESS,
    LARGEST_SUMMARY,
    SMALLEST_SUMMARY,
    SummaryRoom,
)

BELOW = "below the trigger"
"""Why nothing is done if no compaction is due."""

GAIN_DIVISOR = 10
"""If only a trigger in tokens asks for a compaction, it must free one part in so many of the
history, unless that is less than the smallest useful summary. (Less would cost a summary and hardly
delay the next one.)"""

FULL_RATIO_BY_MESSAGES = 1 / 16
"""With triggers in messages alone, a summary of up to this share of the window may exceed half of
what it replaces."""

MOST_AT_FULL_RATIO = 4 * LARGEST_SUMMARY
"""The most tokens of such a summary."""

SUMMARY_SHARE_WITH_KEEP = 0.2
"""If a caller has set `keep`, the summary takes this share of the room that kept messages leave. So
the summariser is asked hardly more often than by a middleware that writes a short summary."""

NEAR_WINDOW = 0.8
"""A trigger at or above this share of the window counts as the window, so that the summary may be
longer; not if the caller has set `keep`. (A summary of half the size loses more answers than a
later compaction saves.)"""

LEAST_TEXT = 24
"""Tokens of text below which a summary says nothing."""

RELIEF = 1 / 2
"""It is enough to clip messages if that brings a history to this share of its trigger."""

STUCK = (
    "what must stay in view takes at least {needed:,} tokens and there are {budget:,}: use a model "
    "with a larger window (without one, a higher trigger), reserve less of it, pin less, or "
    "shorten the system prompt or the newest message, its images and files included"
)
TIGHT = (
    "two fifths of the window, or of the trigger's size, are to be free after a compaction: {}; "
    "{}, or raise the window or the trigger"
)
HELD_BACK = (
    "the history takes {needed:,} tokens of {budget:,}, and its latest summary failed or was "
    "refused; another one is made once it has grown by a tenth, or when it is asked for: by "
    "force=True, or in an agent by update_state(config, request_compaction())"
)
TOO_LARGE = (
    "what must stay in view, with its summary, takes up to {needed:,} tokens and max_tokens is "
    "{budget:,}: raise max_tokens, shorten the system prompt or the newest message, or pass "
    "archive=, so that large messages can be clipped"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastSizes:
    """What earlier compactions of a history came to; None for each that has not happened.

    Attributes:
        rearm_from: the size after the latest one, or the size at which the latest one failed. A
            trigger that this size met already fires again when the history has grown from it.
        failed_at: tokens of the history when its latest summary failed over the window. The history
            must grow before another summary is made.
        stuck_at: tokens after the latest one, if they did not fit. The history must grow before
            another compaction makes it as small as is legal.
    """

    rearm_from: Size | None = None
    failed_at: int | None = None
    stuck_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What a plan may do, and what it must leave room for.

    Attributes:
        force: whether to compact although no trigger and no window asks for it.
        clip: whether messages may be clipped, which needs a place for their originals.
        clip_users: whether messages of the user may be clipped, too. If not, only results of tools
            and messages of the agent are clipped.
        floor: the smallest useful summary message, in tokens, its frame included.
        never_larger: whether the summary must always be smaller than what it replaces.
        growth: the share of the trigger's size that will be added before the plan takes effect.
    """

    force: bool = False
    clip: bool = True
    clip_users: bool = True
    floor: int = SMALLEST_SUMMARY
    never_larger: bool = False
    growth: float = 0


def make_plan(
    items: Sequence[Item],
    policy: Policy,
    window: Window | None = None,
    *,
    trigger_size: Size | None = None,
    first_kept: int | None = None,
    base: int = 0,
    past: PastSizes = PastSizes(),
    options: PlanOptions = PlanOptions(),
) -> Plan:
    """Decide what to do with one history; deterministic.

    Args:
        items: the history as the model would see it now, with the summaries in view.
        policy: when to compact and what to keep.
        window: the window for a request; None if unknown, and then no budget holds.
        trigger_size: the size by the caller's own count; None for the sum of the items.
        first_kept: the place of the first message that `keep` keeps, if the caller counts; None to
            go by the items' sizes.
        base: tokens that a caller's counter adds to any list.
        past: what earlier compactions came to.
        options: what the plan may do.
    """
    tokens = base + sum(item.tokens for item in items)
    limit = None if window is None else window.limit
    size = trigger_size or Size(tokens, len(items))
    fired = policy.fired(size, limit, past.rearm_from)
    exceeds_window = window is not None and tokens > window.budget
    if not (options.force or fired or exceeds_window):
        return Keep(BELOW, tokens, due=False)
    if first_kept is None:
        first_kept = _first_kept_by_size(items, policy, limit)
    first_kept = max(0, min(first_kept, len(items) - 1))
    # The caller may count in its own way.
    scale = tokens / size.tokens if size.tokens else 1.0
    ladder = _ladder(
        items,
        policy,
        window,
        options,
        cause=_cause_of(fired, forced=options.force),
        scale=scale,
        kept=len(items) - first_kept,
        base=base,
        gain=0 if options.force or exceeds_window else _least_gain(tokens, fired, options.floor),
    )
    keeps_from = _cut_that_keeps(ladder, first_kept)
    trigger_tokens = _trigger_tokens(ladder, fired, limit, scale)
    plan = _fitting_plan(ladder, policy, keeps_from, trigger_tokens, past, options)
    if isinstance(plan, Compact):
        plan = replace(plan, tight=_why_tight(ladder, policy, keeps_from, plan))
    return _name_reserved(plan, window)


def _cause_of(fired: Clause | None, *, forced: bool) -> Cause:
    """Return why a history is compacted."""
    if forced:
        return FORCED
    return Cause("trigger", str(fired)) if fired else Cause("window")


def _fitting_plan(
    ladder: Ladder,
    policy: Policy,
    keeps_from: int,
    trigger_tokens: int | None,
    past: PastSizes,
    options: PlanOptions,
) -> Plan:
    """Return the plan for a history that is due: only clips, or else a rung of the ladder.

    If nothing fits, the plan makes the history as small as is legal. It is `Stuck` if the history
    has hardly grown since that was done, or since its last summary failed.
    """
    tokens = ladder.tokens
    exceeds_window = tokens > ladder.budget
    if options.clip and not options.force:
        clipped = _clip_stale(ladder, policy, keeps_from, trigger_tokens)
        if clipped is not None:
            return clipped
    has_just_failed = exceeds_window and _has_hardly_grown_since(past.failed_at, tokens)
    if has_just_failed and not options.force:
        reason = HELD_BACK.format(needed=tokens, budget=ladder.budget)
        return Stuck(reason, tokens, tokens, ladder.budget)
    plan = _first_rung_that_fits(ladder, policy, keeps_from, options.clip)
    if not isinstance(plan, Stuck):
        return plan
    if _has_hardly_grown_since(past.stuck_at, tokens) and not options.force:
        return plan
    return _make_smaller(ladder, plan, clip=options.clip)


def _first_kept_by_size(items: Sequence[Item], policy: Policy, limit: int | None) -> int:
    """Return the place of the first message that `keep` keeps."""
    sizes = [
        item.tokens if item.tokens_for_keep is None else item.tokens_for_keep for item in items
    ]
    return first_kept_by(policy.keep, sizes, limit)


def _cut_that_keeps(ladder: Ladder, place: int) -> int:
    """Return the latest legal cut that keeps the message at a place and all after it."""
    return max(cut for cut in ladder.legal_cuts if cut <= place)


def _has_hardly_grown_since(before: int | None, tokens: int) -> bool:
    """Tell whether a history was tried at a size before, and is hardly larger now."""
    return before is not None and not has_grown(tokens, before)


def _least_gain(tokens: int, fired: Clause | None, floor: int) -> int:
    """Return the tokens that a compaction must free if only a trigger asks for it."""
    gain = math.ceil(tokens / GAIN_DIVISOR)
    if gain < floor:  # a small history need not free anything
        return 0
    if fired and fired.tokens is None and fired.fraction is None:
        return 1  # it counts messages alone
    return gain


def _trigger_tokens(
    ladder: Ladder, fired: Clause | None, limit: int | None, scale: float
) -> int | None:
    """Return the size at which a compaction is due; None if only messages are counted."""
    if fired is None:
        return ladder.budget
    threshold = fired.threshold(limit)
    return None if threshold is None else int(threshold * scale)


def _name_reserved(plan: Plan, window: Window | None) -> Plan:
    """Name the reserved tokens first if they alone leave no room."""
    if window is None or window.budget > 0:
        return plan
    if isinstance(plan, Compact) and plan.stuck is not None:
        return replace(plan, stuck=_with_reserved(plan.stuck, window))
    return _with_reserved(plan, window) if isinstance(plan, Stuck) else plan


def _with_reserved(stuck: Stuck, window: Window) -> Stuck:
    reserved = f"{window.reserved:,} of the window's {window.limit:,} tokens are reserved"
    return replace(stuck, reason=f"{reserved}: {stuck.reason}")


def _ladder(
    items: Sequence[Item],
    policy: Policy,
    window: Window | None,
    options: PlanOptions,
    *,
    cause: Cause,
    scale: float,
    kept: int,
    base: int,
    gain: int,
) -> Ladder:
    """Return the ladder of a policy that keeps so many messages.

    `scale` turns the caller's tokens into those of the items.
    """
    budget = None if window is None else window.budget
    limit = None if window is None else window.limit
    # Of a history of so many messages, all but the free share are kept.
    messages = int(kept / (1 - FREE_AFTERWARDS))
    fires_at = policy.fires_at(limit, messages)
    if fires_at is not None:
        fires_at = max(1, int(fires_at * scale))
    growth = 0
    if options.growth:
        sizes = [size for size in (budget, fires_at) if size is not None]
        growth = int(options.growth * min(sizes, default=0))
    summary_may_be_long = not policy.keep_is_set or options.never_larger
    if summary_may_be_long and budget and fires_at and fires_at >= NEAR_WINDOW * budget:
        fires_at = None  # as if the window alone asked, so that the summary has more room
    instruction_tokens = base + sum(item.tokens for item in items[: leading_system_items(items)])
    return Ladder(
        items,
        budget,
        _summary_bounds(policy, window, instruction_tokens, options),
        gain=gain,
        clip_users=options.clip_users,
        base=base,
        fires_at=fires_at,
        growth=growth,
        cause=cause,
    )


def _summary_bounds(
    policy: Policy, window: Window | None, instruction_tokens: int, options: PlanOptions
) -> SummaryBounds:
    """Return what limits a summary in a window with leading system messages of so many tokens."""
    room = policy.summary_room(window, instruction_tokens)
    full_ratio_up_to = LARGEST_SUMMARY
    if window is not None and policy.counts_messages_alone:
        share = min(int(window.budget * FULL_RATIO_BY_MESSAGES), MOST_AT_FULL_RATIO)
        full_ratio_up_to = max(full_ratio_up_to, share)
    # The embedded summariser may write a long one, because it costs no call.
    must_be_short = policy.keep_is_set and not room.is_capped and not options.never_larger
    return SummaryBounds(
        room=room,
        floor=options.floor,
        says_something=policy.summary_frame + LEAST_TEXT,
        full_ratio_up_to=full_ratio_up_to,
        share_of_rest=SUMMARY_SHARE_WITH_KEEP if must_be_short else 1,
        never_larger=options.never_larger,
    )


def _why_tight(ladder: Ladder, policy: Policy, keeps_from: int, plan: Compact) -> str:
    """Say what leaves less than the free share, or which setting has given way to it; else ""."""
    basis = ladder.next_compaction_at
    if basis >= BOUNDLESS or basis <= 0 or plan.stuck is not None:
        return ""
    enough = int(basis * (1 - FREE_AFTERWARDS))
    if plan.at_most > enough:
        return _too_much_stays(ladder, plan)
    kept = ladder.kept_at[keeps_from]
    gave_way = keeps_from >= ladder.first_cut and kept + ladder.bounds.least > enough
    return _keep_gave_way(policy, kept, basis) if policy.keep_is_set and gave_way else ""


def _too_much_stays(ladder: Ladder, plan: Compact) -> str:
    least_kept = ladder.kept_at[ladder.legal_cuts[-1]]
    what = "what must stay (instructions, the newest request and exchange, open calls, pins)"
    takes = (
        f"{what} takes {least_kept:,} of {ladder.next_compaction_at:,} tokens, with the summary up "
        f"to {plan.at_most:,}"
    )
    return TIGHT.format(takes, "shorten or pin less")


def _keep_gave_way(policy: Policy, kept: int, basis: int) -> str:
    unit, amount = policy.keep
    holds = f'keep=("{unit}", {amount}) holds {kept:,} of {basis:,} tokens'
    return TIGHT.format(f"{holds}, so that less is kept", "lower keep")


def _clip_stale(
    ladder: Ladder, policy: Policy, keeps_from: int, trigger_tokens: int | None
) -> Compact | None:
    """Clip large old tool results and arguments; None if that is not enough."""
    settings = policy.stale
    if settings is None or trigger_tokens is None:
        return None
    clips: list[PlannedClip] = []
    for place in settings.places(ladder.items):
        item = ladder.items[place]
        short = max(item.least, 0 if item.expendable else CLIP_TO)
        stays = item.clipped or item.pinned or place in ladder.never_clipped
        if place < keeps_from and not stays and short < item.tokens // 2:
            clips.append(PlannedClip(place, short))
    messages = [place for place, item in enumerate(ladder.items) if not item.is_summary]
    plan = ladder.plan_for((), messages, tuple(clips), NO_NEW_SUMMARY)
    enough = int(trigger_tokens * RELIEF)
    if settings.least is not None:
        # Above this size, the same trigger would soon fire again.
        enough = int(trigger_tokens / REARM)
    is_enough = plan.at_most <= min(enough, int(ladder.budget * (1 - FREE_AFTERWARDS)))
    return plan if clips and is_enough and _frees_enough(plan, settings.least) else None


def _frees_enough(plan: Compact, least: int | None) -> bool:
    """Tell whether a plan frees the tokens that the caller has set as the least."""
    return plan.tokens - plan.at_most >= (least or 0)


def _first_rung_that_fits(ladder: Ladder, policy: Policy, keeps_from: int, clip: bool) -> Plan:
    """Return the plan of the first rung that fits, or why none is taken."""
    tokens = ladder.tokens
    enough = ladder.budgets["with_room_to_grow" if policy.keep_is_set else "with_free_share"]
    if keeps_from < ladder.first_cut and tokens <= enough:
        return Keep("everything is within keep, so lower keep to let more leave", tokens)
    replaced = tokens - ladder.kept_at[keeps_from]
    says_nothing = ladder.bounds.never_larger and replaced < ladder.bounds.says_something
    if says_nothing and tokens <= ladder.budgets["with_free_share"]:
        return Keep("a summary would not make it smaller", tokens)
    rungs = LADDER_BY_KEEP if policy.keep_is_set else LADDER
    plan = ladder.climb(rungs, keeps_from, clip=clip)
    if plan is not None:
        return plan
    if tokens <= ladder.budget:
        return Keep("a summary would not make it smaller", tokens)
    return _stuck(ladder, clip)


def _stuck(ladder: Ladder, clip: bool) -> Stuck:
    """Return why nothing fits, with the numbers."""
    evicted, kept = ladder.divide(ladder.legal_cuts[-1])
    needed = ladder.base + sum(ladder.size_at(place, 1 if clip else BOUNDLESS) for place in kept)
    if evicted or ladder.standing_tokens:
        needed += ladder.bounds.least
    reason = STUCK.format(needed=needed, budget=ladder.budget)
    if not (clip and ladder.clip_users):
        reason += "; with an archive, large messages can be clipped"
    return Stuck(reason, ladder.tokens, needed, ladder.budget)


def _make_smaller(ladder: Ladder, stuck: Stuck, *, clip: bool) -> Compact | Stuck:
    """Return the plan that evicts all that may leave, although what stays does not fit."""
    plan = ladder.smallest_plan(clip=clip)
    return replace(plan, stuck=stuck) if plan.at_most < plan.tokens else stuck


# LangMem's order


def oldest_first(
    items: Sequence[Item],
    budget: int,
    gathered: int,
    summary_tokens: int,
    *,
    frame: int,
    floor: int,
    slack: int,
    clip: bool,
) -> Plan:
    """Decide in LangMem's order: if enough has gathered, the oldest part is summarised.

    The cut is the first one before which enough has gathered and after which the rest fits next to
    a summary. It is moved to the next legal cut, but never past the last exchange. If no cut brings
    the history below the limit, messages are clipped. If that is not enough, all that may leave
    leaves: then `at_most` of the `Compact` is above its `budget`.

    Args:
        items: leading system messages, a summary in view if any, and the rest.
        budget: tokens of the result.
        gathered: tokens that must have gathered.
        summary_tokens: tokens of the text of the summary.
        frame: tokens of an empty summary message.
        floor: the least useful tokens of a summary; the summary gets no less than these.
        slack: tokens by which a whole message may exceed its parts.
        clip: whether messages may be clipped, which needs an archive.
    """
    longest = summary_tokens + frame + slack
    full = max(1, summary_tokens, frame)
    # A size below that of any summary is no limit that a text could keep.
    cap = longest if summary_tokens >= SMALLEST_SUMMARY else None
    sizes = SummaryBounds(room=SummaryRoom.capped(longest, cap), floor=min(floor, full), full=full)
    ladder = Ladder(items, budget, sizes, cause=Cause("gathered", f"{gathered:,} tokens"))
    tokens = ladder.tokens
    exceeds_budget = tokens > budget
    message_tokens = tokens - ladder.standing_tokens
    instruction_tokens = items[0].tokens if items and items[0].role == "system" else 0
    cuts = [
        cut for cut in range(1, len(items) + 1) if message_tokens - ladder.kept_at[cut] >= gathered
    ]
    has_gathered = message_tokens - instruction_tokens >= gathered
    if not cuts and not (has_gathered and exceeds_budget):
        return Keep("less has gathered than is asked for", tokens)
    cut = next((cut for cut in cuts if ladder.kept_at[cut] <= budget - summary_tokens), None)
    if cut is None and not exceeds_budget:
        return Keep("what would stay leaves no room for a summary", tokens)
    starts_at = len(items) if cut is None else cut
    plan = ladder.climb(OLDEST_FIRST, starts_at, clip=clip and exceeds_budget)
    if not isinstance(plan, Compact):
        smaller = _evict_all_that_may_leave(ladder, full)
        needed = tokens if smaller is None else smaller.at_most
        # A plan that stays above the budget must free as much as `GAIN_DIVISOR` says.
        if smaller is None or tokens - needed < tokens // GAIN_DIVISOR:
            if not exceeds_budget:
                return Keep("a summary would not make it smaller", tokens)
            return Stuck(TOO_LARGE.format(needed=needed, budget=budget), tokens, needed, budget)
        plan = smaller
    return plan


def _evict_all_that_may_leave(ladder: Ladder, summary_tokens: int) -> Compact | None:
    """Return the plan that evicts all that may leave, for a summary of so many tokens."""
    evicted, kept = ladder.divide(ladder.legal_cuts[-1])
    return ladder.plan_for(evicted, kept, (), summary_tokens) if evicted else None


# Questions about a history


def window_or_trigger(policy: Policy, window: Window | None) -> Window | None:
    """Return the window; if it is unknown, one as large as the smallest token trigger."""
    tokens = policy.smallest_token_trigger(None)
    return Window(tokens) if window is None and tokens is not None else window


def divide_size(size: Size, divisor: float) -> Size:
    """Return a size divided by a number, rounded up.

    A trigger that is given a size divided by 0.8 fires at 0.8 of its own size.
    """
    return Size(math.ceil(size.tokens / divisor), math.ceil(size.messages / divisor))


def may_leave(items: Sequence[Item], places: Collection[int]) -> bool:
    """Tell whether the items at these places may leave, and no other item must leave with them.

    Orphaned results must leave, because no provider accepts them.
    """
    exchanges = match_calls(items)
    evicted = set(places)
    begins = {exchanges.part_of[place] for place in evicted}
    parts_leave_whole = all(
        place in evicted for place, begin in enumerate(exchanges.part_of) if begin in begins
    )
    late_results_leave = all(
        call not in evicted or place in evicted for place, call in exchanges.late_results.items()
    )
    if not (parts_leave_whole and late_results_leave and evicted >= exchanges.orphans):
        return False
    return evicted.isdisjoint(must_stay(items, exchanges))


def plan_draft(
    items: Sequence[Item],
    window: Window | None,
    foreseen: Compact,
    evicted_places: Collection[int],
    summary_tokens: int,
    base: int = 0,
) -> Compact | None:
    """Plan that exactly these items leave, for a summary message that is written already.

    `foreseen` is the plan without the draft, `summary_tokens` the size of the message. None if the
    window would have no room to grow.
    """
    staying = [
        place
        for place, item in enumerate(items)
        if place not in evicted_places and not item.is_summary
    ]
    ladder = Ladder(
        items, None if window is None else window.budget, base=base, cause=foreseen.cause
    )
    plan = ladder.plan_for(sorted(evicted_places), staying, (), summary_tokens)
    if plan.at_most > ladder.budgets["with_room_to_grow"]:
        return None
    room = foreseen.summary_room.with_target(summary_tokens)
    return replace(plan, tokens=foreseen.tokens, summary_room=room)
