"""Redact texts and events, beside messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conspectus.errors import RedactionError
from conspectus.redaction import Redaction


async def redacted_summary_flow(redaction: Redaction | None, text: str) -> str:
    """Redact the text of a summary; raise `RedactionError` if nothing is left of it."""
    if redaction is None:
        return text
    [clean] = await redaction.texts([text])
    if text.strip() and not clean.strip():
        raise RedactionError(
            f"the redactor {redaction.name} left nothing of the summary; let it answer with the "
            "text that may be kept"
        )
    return clean


async def redacted_texts_flow(redaction: Redaction | None, texts: Sequence[str]) -> list[str]:
    """Redact texts for logs and listeners: errors may quote messages and keys.

    If that fails, the failure stands in their place.
    """
    if redaction is None or not texts:
        return list(texts)
    try:
        clean = await redaction.texts(texts)
        nothing = f"the redactor {redaction.name} left nothing of what was to be told here"
        return [
            new if new.strip() or not old.strip() else nothing
            for new, old in zip(clean, texts, strict=True)
        ]
    except RedactionError as error:
        return [str(error)] * len(texts)


async def redacted_event_flow(
    redaction: Redaction | None, data: Mapping[str, Any]
) -> dict[str, Any]:
    words = {key: value for key, value in data.items() if isinstance(value, str)}
    clean = await redacted_texts_flow(redaction, list(words.values()))
    return {**data, **dict(zip(words, clean, strict=True))}
