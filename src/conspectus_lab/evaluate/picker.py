"""Summarise for LangChain's middleware by quoting lines full of identifiers.

LangChain has no summariser that works without a model. This one reads the input after the
middleware's trimming, and picks lines greedily by the weight of their new identifiers for each
token. That favours it in the measure of future use, which asks for identifiers in their old
surroundings.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Sequence

from langchain_core.messages import BaseMessage, ToolMessage

from conspectus_lab.evaluate.identifiers import identifiers
from conspectus_lab.evaluate.texts import lines_of, text_of

WIDTH = 240
"""Characters of a line that are picked together."""

CHARACTERS = 4
"""Characters that count as a token here."""

OWN = 3.0
"""Weight of an identifier in a message of the user or the agent; 1 in a tool's result."""

RARE, BASE = 0.6, 0.5
"""Weights are logarithms; identifiers seen hardly once weigh nothing."""

NOTHING = "nothing"


def pick(messages: Sequence[BaseMessage], tokens: int) -> str:
    """Pick lines of messages, in order, that fit into this number of tokens.

    Example:
        >>> from langchain_core.messages import AIMessage
        >>> pick([AIMessage("Well.\\nThe bug is in src/app/main.py")], 50)
        'The bug is in src/app/main.py'
    """
    weights = _weights(messages)
    pool = list(_pieces(messages))
    costs = [(len(piece) + 1) / CHARACTERS for piece in pool]
    covered: set[str] = set()

    def worth(place: int) -> float:
        new = (weights.get(v, 0.0) for v in identifiers(pool[place]) if v not in covered)
        return sum(new) / costs[place]

    # Worth only falls as lines are picked, so a piece that is still the best when looked at anew
    # is the next one.
    heap = [(-worth(place), place) for place in range(len(pool))]
    heapq.heapify(heap)
    picked, used = list[int](), 0.0
    while heap and used < tokens:
        _, place = heapq.heappop(heap)
        now = worth(place)
        if now <= 0:
            continue
        if heap and -now > heap[0][0] + 1e-12:
            heapq.heappush(heap, (-now, place))
        elif used + costs[place] <= tokens:
            used += costs[place]
            covered.update(identifiers(pool[place]))
            picked.append(place)
    return "\n".join(pool[place] for place in sorted(picked)) or NOTHING


def _weights(messages: Sequence[BaseMessage]) -> dict[str, float]:
    """Weigh identifiers by frequency, recency, and speaker."""
    said: defaultdict[str, float] = defaultdict(float)
    for place, message in enumerate(messages, 1):
        weight = 1.0 if isinstance(message, ToolMessage) else OWN
        for value in identifiers(text_of(message)):
            said[value] += weight * (0.5 + 0.5 * place / len(messages))
    logs = {value: math.log1p(weight) for value, weight in said.items()}
    return {value: log - BASE for value, log in logs.items() if log > RARE}


def _pieces(messages: Sequence[BaseMessage]) -> list[str]:
    pieces = (
        line[start : start + WIDTH].strip()
        for line in lines_of(messages)
        for start in range(0, len(line), WIDTH)
    )
    return [piece for piece in pieces if len(piece) > 3]
