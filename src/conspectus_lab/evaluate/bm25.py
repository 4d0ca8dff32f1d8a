"""Search messages and their neighbours by plain BM25, as a baseline of recall."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from conspectus_lab.evaluate.texts import text_of
from conspectus_lab.evaluate.words import tokens_of

K1, B = 1.2, 0.75
"""The usual constants of Okapi BM25 (Robertson and Zaragoza, 2009)."""

CHARACTERS = 4
"""Characters that count as a token here."""

ENOUGH = 30
"""Tokens left below which the search ends."""


class Bm25:
    """The baseline search.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> Bm25([HumanMessage("a red fox"), HumanMessage("a dog")]).recall("fox", 100)
        'a red fox\\na dog'
    """

    def __init__(self, messages: Sequence[BaseMessage]) -> None:
        self._texts = [text_of(message) for message in messages]
        near = [" ".join(self._texts[max(0, i - 1) : i + 2]) for i in range(len(messages))]
        self._counts = [Counter(tokens_of(text)) for text in near]
        self._spread = Counter(term for counts in self._counts for term in counts)
        self._sizes = [sum(counts.values()) for counts in self._counts]
        self._mean = sum(self._sizes) / max(1, len(near))

    def recall(self, query: str, tokens: int) -> str:
        """Return the best messages with their neighbours, in at most so many tokens."""
        asked = tokens_of(query)
        order = sorted(
            range(len(self._texts)), key=lambda place: (-self._score(asked, place), place)
        )
        chosen: list[int] = []
        used = 4.0  # tokens of a chat format for the message itself
        for best in order:
            for place in range(max(0, best - 1), min(len(order), best + 2)):
                cost = (len(self._texts[place]) + 1) / CHARACTERS
                if place not in chosen and used + cost <= tokens:
                    chosen.append(place)
                    used += cost
            if used > tokens - ENOUGH:
                break
        return "\n".join(self._texts[place] for place in chosen)

    def _score(self, asked: Sequence[str], place: int) -> float:
        counts, total = self._counts[place], len(self._counts)
        length = K1 * (1 - B + B * self._sizes[place] / self._mean) if self._mean else K1
        score = 0.0
        for term in asked:
            if times := counts.get(term, 0):
                spread = self._spread[term]
                rarity = math.log(1 + (total - spread + 0.5) / (spread + 0.5))
                score += rarity * times * (K1 + 1) / (times + length)
        return score
