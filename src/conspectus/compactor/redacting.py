"""What a compaction has a redactor look at beside messages: facts, texts, and what is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from conspectus._drive import Flow
from conspectus.errors import RedactionError
from conspectus.ledger import Ledger
from conspectus.redaction import Redaction


def texts_of(ledger: Ledger) -> list[str]:
    """All texts of a ledger, such as one that was written when there was no redactor."""
    parts = [part for fact in ledger.facts for part in (fact.value, fact.quote, fact.result)]
    return [*parts, *ledger.gone]


def with_texts(ledger: Ledger, texts: Sequence[str]) -> Ledger:
    """A ledger with other texts, in the order of `texts_of`."""
    clean = iter(texts)
    facts = tuple(
        replace(fact, value=next(clean), quote=next(clean), result=next(clean))
        for fact in ledger.facts
    )
    return replace(ledger, facts=facts, gone=tuple(clean))


def written_flow(redaction: Redaction | None, text: str) -> Flow[str]:
    """What a summariser or a person wrote, who may know more than what was read.

    Raises:
        RedactionError: it could not be redacted.
    """
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
    """Texts as they may be told: an error may quote what was read, or a key.

    Where they cannot be redacted, that is told in their place.
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
    """What an event tells, as it may be told."""
    words = {key: value for key, value in data.items() if isinstance(value, str)}
    clean = yield from told_flow(redaction, list(words.values()))
    return {**data, **dict(zip(words, clean, strict=True))}
