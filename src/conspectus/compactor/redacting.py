"""Redact what stands beside messages: facts, texts, events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from conspectus._drive import Flow
from conspectus.errors import RedactionError
from conspectus.ledger import Ledger
from conspectus.redaction import Redaction


def texts_of(ledger: Ledger) -> list[str]:
    """Return all texts of a ledger."""
    parts = [part for fact in ledger.facts for part in (fact.value, fact.quote, fact.result)]
    return [*parts, *ledger.gone]


def with_texts(ledger: Ledger, texts: Sequence[str]) -> Ledger:
    """Replace the texts of a ledger, in the order of `texts_of`."""
    clean = iter(texts)
    facts = tuple(
        replace(fact, value=next(clean), quote=next(clean), result=next(clean))
        for fact in ledger.facts
    )
    return replace(ledger, facts=facts, gone=tuple(clean))


def written_flow(redaction: Redaction | None, text: str) -> Flow[str]:
    """Redact what a summariser or a person wrote: they may know more than was read."""
    if redaction is None:
        return text
    [clean] = yield from redaction.texts([text])
    if text.strip() and not clean.strip():
        raise RedactionError(
            f"the redactor {redaction.name} left nothing of the summary; let it answer with the "
            "text that may be kept"
        )
    return clean


def told_flow(redaction: Redaction | None, texts: Sequence[str]) -> Flow[list[str]]:
    """Redact texts for logs and listeners: an error may quote a message, or a key.

    Where that fails, the failure stands in their place.
    """
    if redaction is None or not texts:
        return list(texts)
    try:
        clean = yield from redaction.texts(texts)
        nothing = f"the redactor {redaction.name} left nothing of what was to be told here"
        return [
            new if new.strip() or not old.strip() else nothing
            for new, old in zip(clean, texts, strict=True)
        ]
    except RedactionError as error:
        return [str(error)] * len(texts)


def event_flow(redaction: Redaction | None, data: Mapping[str, Any]) -> Flow[dict[str, Any]]:
    """Redact the texts of an event."""
    words = {key: value for key, value in data.items() if isinstance(value, str)}
    clean = yield from told_flow(redaction, list(words.values()))
    return {**data, **dict(zip(words, clean, strict=True))}
