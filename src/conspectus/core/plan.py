"""Decide for one history: keep it, make it smaller, or give up.

Below the trigger nothing is done. Stale results are clipped first, where that alone is enough. Then
the older part is summarised, up to the legal cut that `keep` asks for, and things give way in the
order of `ladder.LADDER`. If nothing helps, the plan is `Stuck`, with the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from conspectus.core.items import (
    Clip,
    Compact,
    Item,
    Keep,
    Plan,
    Size,
    Stuck,
    Window,
    exchanges,
    leading,
    must_stay,
)
from conspectus.core.ladder import (
    BOUNDLESS,
    CLIP_TO,
    FREE,
    LADDER,
    LADDER_BY_KEEP,
    OLDEST_FIRST,
    Ladder,
)
from conspectus.core.policy import (
    LARGEST_SUMMARY,
    REARM,
    SMALLEST_SUMMARY,
    Policy,
    cut_for,
    grown,
)

BELOW = "below the trigger"  # Why nothing is done while nothing is due
# One part in this many of a history is freed by a compaction that neither the window nor force
# asks for: less would cost a summary without delaying the next one. In LangMem's order, it is
# the least that a plan saves which stays above the limit.
GAIN = 10
# Where messages alone are counted, tokens that stay ask for no compaction: the part of a window of
# which notes need not be less than half of what they replace, and the most tokens of that.
ROOMY, MOST_FREE = 16, 4 * LARGEST_SUMMARY
# Where a caller has set `keep`, the summary takes this share of the room beside what stays, so that
# the summariser is asked hardly more often than by a middleware that writes a short one.
NOTES_BESIDE_KEEP = 0.2
# A trigger from this share of the window on is taken for the window itself, unless a caller has set
# `keep`: notes that are half as long cost more answers than a later compaction saves.
NEAR_WINDOW = 0.8
LEAST_TEXT = 24  # Tokens of a summary below which it says nothing
# Clips alone are enough when they bring a history to one part in this many of its trigger.
RELIEF = 2
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


def plan(
    items: Sequence[Item],
    policy: Policy,
    window: Window | None = None,
    *,
    trigger_size: Size | None = None,
    last: Size | None = None,
    failed: int | None = None,
    stuck_at: int | None = None,
    cut: int | None = None,
    base: int = 0,
    force: bool = False,
    clip: bool = True,
    clip_users: bool = True,
    floor: int = SMALLEST_SUMMARY,
    never_larger: bool = False,
    coming: float = 0,
) -> Plan:
    """Decide what to do with one history; deterministic.

    Args:
        items: the history as the model would see it now, a standing summary included.
        policy: when to compact and what to keep.
        window: the room for a request; None if unknown, and then no budget holds.
        trigger_size: the size by the caller's own count; None for the sum of the items.
        last: the size that the latest compaction reached, or at which the latest one failed.
        failed: tokens of the history when its latest summary failed over the window; None if none
            did. It must grow before another is made.
        stuck_at: tokens that the latest compaction reached, if they did not fit. The history must
            grow before another one only makes it smaller.
        cut: the first message that `keep` keeps, if the caller counts; None for the items' sizes.
        base: tokens that a caller's counter adds to any list.
        force: compact although nothing asks for it.
        clip: whether messages may be clipped, which needs a place for their originals.
        clip_users: whether those of the user may be, too; else only results and the agent's own.
        floor: the smallest useful summary message, in tokens, its frame included.
        never_larger: whether the summary must be smaller than what it replaces, in any case.
        coming: the share of the trigger's size that will have come until the plan takes effect.
    """
    tokens = base + sum(item.tokens for item in items)
    limit = None if window is None else window.limit
    size = trigger_size or Size(tokens, len(items))
    fired = policy.fired(size, limit, last)
    over = window is not None and tokens > window.budget
    if not (force or fired or over):
        return Keep(BELOW, tokens, due=False)
    # The caller may count in its own way.
    scale = tokens / size.tokens if size.tokens else 1.0
    gain = math.ceil(tokens / GAIN)
    if force or over or gain < floor:  # sizes of small histories mean little
        gain = 0
    elif fired and fired.tokens is None and fired.fraction is None:
        gain = 1  # it counts messages alone
    sizes = [item.tokens if item.counted < 0 else item.counted for item in items]
    place = cut_for(policy.keep, sizes, limit) if cut is None else cut
    place = max(0, min(place, len(items) - 1))
    ladder = _ladder(
        items,
        policy,
        window,
        scale,
        kept=len(items) - place,
        base=base,
        floor=floor,
        gain=gain,
        clip_users=clip_users,
        never_larger=never_larger,
        coming=coming,
    )
    # The latest legal cut that keeps what `keep` asks for, and one message.
    wanted = max(legal for legal in ladder.legal if legal <= place)
    relief: Plan | None = None
    if clip and not force:
        waits_for = fired.threshold(limit) if fired else ladder.budget
        if waits_for is not None and fired:
            waits_for = int(waits_for * scale)
        relief = _clip_stale(ladder, policy, wanted, waits_for)
    if relief is None and over and not force and failed and not grown(tokens, failed):
        reason = HELD_BACK.format(needed=tokens, budget=ladder.budget)
        return Stuck(reason, tokens, tokens, ladder.budget)
    decided = relief or _climb(ladder, policy, wanted, clip)
    if isinstance(decided, Stuck):
        if window is not None and window.budget <= 0:
            reserved = f"{window.reserved:,} of the window's {window.limit:,} tokens"
            reason = f"{reserved} are reserved: {decided.reason}"
            decided = replace(decided, reason=reason)
        waits = stuck_at is not None and not grown(tokens, stuck_at) and not force
        decided = decided if waits else _made_smaller(ladder, decided, clip=clip)
    if isinstance(decided, Compact):
        cause = "forced" if force else "window" if over and not fired else f"trigger: {fired}"
        tight = too_tight(ladder, policy, wanted, decided)
        decided = replace(decided, cause=cause, tight=tight)
    return decided


def _ladder(
    items: Sequence[Item],
    policy: Policy,
    window: Window | None,
    scale: float,
    *,
    kept: int,
    base: int,
    coming: float,
    **how: Any,
) -> Ladder:
    """Return the ladder of a policy that keeps so many messages.

    `scale` turns the caller's tokens into those of the items.
    """
    budget = None if window is None else window.budget
    limit = None if window is None else window.limit
    instructions = base + sum(item.tokens for item in items[: leading(items)])
    longest, cap = policy.summary_limit(budget, instructions)
    free = LARGEST_SUMMARY
    counts_messages_alone = all(c.tokens is None and c.fraction is None for c in policy.trigger)
    if budget is not None and counts_messages_alone:
        free = max(free, min(budget // ROOMY, MOST_FREE))
    fires_at = policy.fires_at(limit, int(kept / (1 - FREE)))
    if fires_at is not None:
        fires_at = max(1, int(fires_at * scale))
    expected = 0
    if coming:
        sizes = [size for size in (budget, fires_at) if size is not None]
        expected = int(coming * min(sizes, default=0))
    wide = not policy.keep_is_set or how["never_larger"]
    if wide and budget and fires_at and fires_at >= NEAR_WINDOW * budget:
        fires_at = None  # two fifths of the window are free, of which notes are worth the more
    # What the embedded summariser writes costs no call, so that its notes may be long.
    short = policy.keep_is_set and cap is None and not how["never_larger"]
    return Ladder(
        items,
        budget,
        longest=longest,
        cap=cap,
        free=free,
        base=base,
        fires_at=fires_at,
        expected=expected,
        notes_share=NOTES_BESIDE_KEEP if short else 1,
        least_frame=policy.summary_frame + LEAST_TEXT,
        **how,
    )


def too_tight(ladder: Ladder, policy: Policy, wanted: int, made: Compact) -> str:
    """Say which setting leaves less than two fifths free, or gave way for them; empty if none."""
    basis = ladder.basis
    if basis >= BOUNDLESS or basis <= 0 or made.stuck is not None:
        return ""
    enough = int(basis * (1 - FREE))
    kind, amount = policy.keep
    kept = ladder.kept[wanted]
    asked = f'keep=("{kind}", {amount:g}) holds {kept:,} of {basis:,} tokens'
    if made.at_most > enough:
        fixed = ladder.base + sum(ladder.items[i].tokens for i in ladder.fixed)
        what = "what must stay (instructions, the newest request, open calls, what is pinned)"
        return TIGHT.format(f"{what} holds {fixed:,} of {basis:,} tokens", "shorten or pin less")
    if policy.keep_is_set and wanted >= ladder.first_cut and kept + ladder.floor > enough:
        return TIGHT.format(f"{asked}, so that less is kept", "lower keep")
    return ""


def _clip_stale(
    ladder: Ladder, policy: Policy, wanted: int, waits_for: int | None
) -> Compact | None:
    """Clip large old tool results and arguments: often that is enough."""
    how = policy.stale
    if how is None or waits_for is None:
        return None
    clips = []
    for i in how.stale(ladder.items):
        item = ladder.items[i]
        short = max(item.least, 0 if item.expendable else CLIP_TO)
        stays = item.clipped or item.pinned or i in ladder.whole
        if i < wanted and not stays and short < item.tokens // 2:
            clips.append(Clip(i, short))
    plan = ladder.plan_for((), range(len(ladder.items)), tuple(clips), 0)
    enough = waits_for // RELIEF
    if how.least is not None:
        enough = int(waits_for / REARM)  # else the same trigger would count again at once
    freed = plan.tokens - plan.at_most
    fits = plan.at_most <= min(enough, int(ladder.budget * (1 - FREE)))
    return plan if clips and fits and freed >= (how.least or 0) else None


def _climb(ladder: Ladder, policy: Policy, wanted: int, clip: bool) -> Plan:
    """Return the plan of the first step that fits."""
    by_keep, tokens = policy.keep_is_set, ladder.tokens
    if wanted < ladder.first_cut and tokens <= ladder.rooms["budget" if by_keep else "aim"]:
        return Keep("everything is within keep, so lower keep to let more leave", tokens)
    replaced = tokens - ladder.kept[wanted]
    if ladder.never_larger and replaced < ladder.least_frame and tokens <= ladder.rooms["aim"]:
        return Keep("a summary would not make it smaller", tokens)
    plan = ladder.climb(LADDER_BY_KEEP if by_keep else LADDER, wanted, clip=clip)
    if plan is not None:
        return plan
    if tokens <= ladder.budget:
        return Keep("a summary would not make it smaller", tokens)
    leave, stay = ladder.divide(ladder.legal[-1])
    needed = ladder.base + sum(ladder.size(i, 1) if clip else ladder.items[i].tokens for i in stay)
    needed += ladder.floor if leave or ladder.standing else 0
    reason = STUCK.format(needed=needed, budget=ladder.budget)
    clips = clip and ladder.clip_users
    reason += "" if clips else "; with an archive, large messages can be truncated"
    return Stuck(reason, tokens, needed, ladder.budget)


def _made_smaller(ladder: Ladder, stuck: Stuck, *, clip: bool) -> Compact | Stuck:
    """Return the plan by which what may leave leaves, although the rest does not fit."""
    plan = ladder.smallest(clip=clip)
    return replace(plan, stuck=stuck) if plan.at_most < plan.tokens else stuck


# LangMem's order


def oldest_first(
    items: Sequence[Item],
    most: int,
    reach: int,
    share: int,
    *,
    frame: int,
    floor: int,
    slack: int,
    clip: bool,
) -> Plan:
    """Decide in LangMem's order: once enough has gathered, the oldest part is summarised.

    The cut is the first one at which enough has gathered and the rest fits beside a summary, moved
    on to the next legal cut, and never past the last exchange. If no cut brings the history below
    the limit, it is clipped, or else as much leaves as may: `at_most` of a `Compact` is above its
    `budget` if even that is not enough.

    Args:
        items: leading system messages, a standing summary if any, and the rest.
        most: tokens of the result.
        reach: tokens that must have gathered.
        share: tokens of the text of the summary.
        frame: tokens of an empty summary message.
        floor: the least useful tokens of one, to which `share` gives way.
        slack: tokens by which a whole message may exceed its parts.
        clip: whether messages may be clipped, which needs an archive.
    """
    longest = share + frame + slack
    asked = max(1, share, frame)
    ladder = Ladder(items, most, longest=longest, floor=min(floor, asked), asked=asked)
    tokens, left = ladder.tokens, ladder.kept[1:]
    over, whole = tokens > most, tokens - ladder.standing
    first = items[0].tokens if items and items[0].role == "system" else 0
    enough = [i for i, kept in enumerate(left) if whole - kept >= reach]
    if not enough and not (whole - first >= reach and over):
        return Keep("less has gathered than is asked for", tokens)
    at = next((i for i in enough if left[i] <= most - share), None)
    if at is None and not over:
        return Keep("what would stay leaves no room for a summary", tokens)
    wanted = len(items) if at is None else at + 1
    plan = ladder.climb(OLDEST_FIRST, wanted, clip=clip and over)
    if not isinstance(plan, Compact):
        leave, stay = ladder.divide(ladder.legal[-1])
        plan = ladder.plan_for(leave, stay, (), asked) if leave else None
        needed = plan.at_most if plan else tokens
        if plan is None or tokens - needed < tokens // GAIN:
            reason = TOO_LARGE.format(needed=needed, budget=most)
            smaller = Keep("a summary would not make it smaller", tokens)
            return Stuck(reason, tokens, needed, most) if over else smaller
    # A share below what any summary takes is no length that anybody asks for.
    cap = longest if share >= SMALLEST_SUMMARY else None
    return replace(plan, cause=f"gathered: {reach:,} tokens", summary_cap=cap)


# What is looked at besides


def budget_of(policy: Policy, window: Window | None) -> Window | None:
    """Return the window; if it is unknown, the smallest token trigger."""
    tokens = policy.least_trigger
    return Window(tokens) if window is None and tokens is not None else window


def foreseen(size: Size, share: float) -> Size:
    """Scale a size so that a trigger fires at a share of itself."""
    return Size(math.ceil(size.tokens / share), math.ceil(size.messages / share))


def may_leave(items: Sequence[Item], leaving: Collection[int]) -> bool:
    """Tell whether these items may leave, and nothing else must leave with them.

    Orphaned results must leave: no provider takes them.
    """
    ex, gone = exchanges(items), set(leaving)
    homes = {ex.group[i] for i in gone}
    whole = all(i in gone for i, home in enumerate(ex.group) if home in homes)
    late = all(call not in gone or i in gone for i, call in ex.late.items())
    return whole and late and not (gone & must_stay(items, ex)) and gone >= ex.orphans


def plan_draft(
    items: Sequence[Item],
    window: Window | None,
    decided: Compact,
    leaving: Collection[int],
    summary: int,
    base: int = 0,
) -> Compact | None:
    """Plan that exactly these items leave, for a summary message that is written already.

    `decided` is the plan without the draft, `summary` the tokens of the message. None if no space
    is left to grow in the window.
    """
    stay = [i for i, item in enumerate(items) if i not in leaving and not item.summary]
    ladder = Ladder(items, None if window is None else window.budget, base=base)
    plan = ladder.plan_for(sorted(leaving), stay, (), summary)
    if plan.at_most > ladder.rooms["roomy"]:
        return None
    cause, cap = decided.cause, decided.summary_cap
    return replace(plan, cause=cause, tokens=decided.tokens, summary_cap=cap)
