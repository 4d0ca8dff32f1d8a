"""The words of each language that tell what a sentence states: one file a language.

A speaker can check and extend a list without reading any code. How a phrase is written is said in
`phrases.py`; what each list is for, in `Wording`.
"""

from __future__ import annotations

from conspectus.ledger.wording import de, en, es, fr, ja, ko, zh
from conspectus.ledger.wording.lists import Wording

LANGUAGES: tuple[Wording, ...] = (
    en.WORDING,
    zh.WORDING,
    ja.WORDING,
    ko.WORDING,
    es.WORDING,
    de.WORDING,
    fr.WORDING,
)
"""Every language whose wording is known; all are looked for in every text, as people mix them."""

__all__ = ["LANGUAGES", "Wording"]
