"""Decide when a short-term history is summarised, and when that is prepared."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass

from conspectus._core.items import Compact, Plan, Size
from conspectus._core.oldest_first import Limits, oldest_first
from conspectus._core.policy import Policy
from conspectus._core.sizes import TriggerClause
from conspectus.compactor.background import Background
from conspectus.compactor.engine import SLACK
from conspectus.compactor.session import SUMMARY_FLOOR, Session
from conspectus.compactor.view import SMALL, History, with_floors
from conspectus.short_term.settings import ShortTermSettings
from conspectus.tokens import TokenMeter


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn(Session):
    """One history, summarised in LangMem's order."""

    settings: ShortTermSettings

    def nears(self, size: Size, setting: Background) -> bool:
        return size.tokens >= self.settings.reach * setting.prepare

    def foresees(self, history: History, share: float) -> tuple[History, Plan]:
        """Plan as if a share of the trigger had to gather."""
        sooner = copy(self.settings)
        sooner.max_tokens_before_summary = math.ceil(self.settings.reach * share)
        return decide(sooner, history, clip=False)

    def message_size(self, body: str) -> int:
        return self.settings.summary_size(body)


def swaps_below(given: ShortTermSettings) -> Policy:
    """Return the policy by which prepared notes free enough: with them, less has gathered."""
    reach = min(given.reach + given.max_summary_tokens, given.max_tokens)
    return Policy(trigger=(TriggerClause(tokens=max(1, reach)),))


def decide(given: ShortTermSettings, history: History, clip: bool) -> tuple[History, Plan]:
    """Plan without clips; with them only if that is not enough."""
    frame = given.summary_size("")
    limits = Limits(
        most=given.max_tokens,
        reach=given.reach,
        share=given.max_summary_tokens,
        frame=frame,
        floor=frame + SUMMARY_FLOOR,
        slack=SLACK,
    )
    decided = oldest_first(history.items, limits, clip=False)
    fits = isinstance(decided, Compact) and decided.at_most <= given.max_tokens
    if not clip or fits or history.size.tokens <= given.max_tokens:
        return history, decided
    history = with_floors(history, TokenMeter(given.count), SMALL)
    return history, oldest_first(history.items, limits, clip=True)
