"""Name the text of a summary, and read its body and its facts."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from conspectus._core.records import Cost, Draft
from conspectus.errors import SummaryError
from conspectus.ledger import Fact, Ledger
from conspectus.messages import SUMMARY_LINE
from conspectus.messages.framing import as_notes
from conspectus.summarize import Summary


def draft_name(
    parent: str | None,
    keys: Sequence[str],
    limit: int,
    identity: str,
    standing: str,
    ledger: Mapping[str, Any],
) -> str:
    """Name the draft of a plan, so that any process finds it again.

    `limit` is the size that the summary is asked to have, in tokens; `identity` says all else that
    would change it, such as prompts, focus and model.
    """
    parts = [parent, keys, limit, identity, standing, dict(ledger)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def draft_of(answer: object, by: str) -> Draft:
    """Make a draft of a summariser's answer; raise `SummaryError` if that is no `Summary`."""
    fits = (
        isinstance(answer, Summary)
        and isinstance(answer.text, str)
        and isinstance(answer.cost, Cost)
        and isinstance(answer.read, tuple)
        and isinstance(answer.embedded, tuple)
        and isinstance(answer.request, str)
    )
    if not fits:
        raise SummaryError(
            f"{by} must answer with a Summary(text, read: tuple of keys, cost, embedded), and "
            f"answered with {answer!r:.200}"
        )
    assert isinstance(answer, Summary)
    embedded, request = answer.embedded, answer.request
    return Draft(answer.text, by, answer.read, answer.cost, 0, embedded, request=request)


def body_of(text: str) -> str:
    """Frame the text of a summary as data, without the line that marks it."""
    return as_notes(text.strip().removeprefix(SUMMARY_LINE).strip())


def uncited(text: str, cites: set[str]) -> str:
    """Remove the ids that a summary cites: without an archive they lead nowhere."""

    def known(match: re.Match[str]) -> str:
        named = {name.strip() for name in match[1].split(",")}
        return "" if named <= cites else match[0]

    return re.sub(r"[ \t]*\[([^\[\]\n]{1,200})\]", known, text)


def shown_in(body: str, ledger: Mapping[str, Any]) -> tuple[Fact, ...]:
    """Return the facts of a ledger that stand in a summary, word for word."""
    folded = " ".join(body.split())
    facts = Ledger.recovered(ledger)[0].facts
    return tuple(fact for fact in facts if " ".join(fact.value.split()) in folded)
