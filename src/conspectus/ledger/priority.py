"""Which facts stay when there is no room for all."""

from __future__ import annotations

from collections.abc import Collection

from conspectus.ledger.fact import Fact

LIMIT = 300
"""Facts that a ledger holds at most."""

STATEMENTS = 200
"""Statements among them at most, so that there is room for values however much is stated."""

_STATED = frozenset({"rule", "preference", "decision", "task", "delegation", "skill"})
_WEIGHT = {"rule": 4, "skill": 4, "preference": 3, "decision": 2}


def priority(fact: Fact) -> tuple[int, int, int, int]:
    """What stays when there is no room: the greater, the longer.

    In this order: what it is and who said it (rules, preferences, open work, decisions and what
    came back from others; users and systems before the agent, the agent before tools); how often
    the agent has used it itself; how recent it is; how rare.
    """
    said = {"user": 3, "system": 3, "assistant": 1}.get(fact.role, 0)
    weight = _WEIGHT.get(fact.kind, 0) or (3 if fact.state == "open" else 0)
    # What came back is as good as a decision: without it the work would be done again.
    weight = weight or (2 if fact.kind == "delegation" else 0)
    return (said + weight, min(fact.used, 5), fact.order, -fact.told)


def best(facts: Collection[Fact], limit: int = LIMIT) -> list[Fact]:
    """The facts that stay, in the order of their messages.

    Args:
        facts: all there are.
        limit: how many may stay; of statements, two thirds of that.
    """
    if len(facts) > limit:
        stated = sorted((f for f in facts if f.kind in _STATED), key=priority, reverse=True)
        stated = stated[: max(limit * STATEMENTS // LIMIT, 1)]
        rest = sorted((f for f in facts if f.kind not in _STATED), key=priority, reverse=True)
        facts = stated + rest[: limit - len(stated)]
    return sorted(facts, key=lambda fact: fact.order)
