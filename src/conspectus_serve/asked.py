"""Read a client's requests for compaction and for edits of the context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conspectus.errors import InputError

TRIGGER = {"type": "compaction_trigger"}
"""The item with which Codex asks for a compaction, as the last of its input."""

COMPACT = "responses/compact"
COMPACT_EDIT = "compact_20260112"
CLEAR_EDIT = "clear_tool_uses_20250919"
COMPACT_FROM = 150_000
"""Default input tokens from which Anthropic's compaction edit acts
(`BetaCompact20260112EditParam`).
"""


@dataclass(frozen=True, slots=True)
class EditRequest:
    """What a request asks for beside an answer.

    Attributes:
        body: the rest of the request, for the upstream.
        compact: tokens from which to compact; 0 for now, None for never.
        alone: the compaction is all of the answer.
        focus: instructions for the compaction.
        clear: Anthropic's edit that clears tool results.
    """

    body: dict[str, Any]
    compact: int | None = None
    alone: bool = False
    focus: str = ""
    clear: Mapping[str, Any] | None = None


def asked_of(name: str, body: dict[str, Any]) -> EditRequest:
    """Read the compaction and edits that a request asks for.

    Args:
        name: of its route.
        body: as it came.

    Raises:
        InputError: a trigger is misplaced, or a compaction is asked for without a model.
    """
    asked = _asked(name, body)
    if asked.alone and not (isinstance(body.get("model"), str) and body["model"]):
        raise InputError("model is missing; name the model for which the history is compacted")
    return asked


def _asked(name: str, body: dict[str, Any]) -> EditRequest:
    if name == COMPACT:
        return EditRequest(body, 0, True)
    if name == "responses":
        given = body.get("input")
        at = [i for i, one in enumerate(given) if one == TRIGGER] if isinstance(given, list) else []
        if not at:
            return EditRequest(body)
        assert isinstance(given, list)
        if at != [len(given) - 1]:
            raise InputError("a compaction_trigger must be the last item of the input, once")
        return EditRequest({**body, "input": given[:-1]}, 0, True)
    if name not in ("messages", "messages/count_tokens"):
        return EditRequest(body)
    wanted = body.get("compaction")
    if isinstance(wanted, Mapping) and wanted.get("type") == "summarize":
        rest = {key: value for key, value in body.items() if key != "compaction"}
        return EditRequest(rest, 0, True, str(wanted.get("instructions") or ""))
    return _edits(body)


def _edits(body: dict[str, Any]) -> EditRequest:
    management = body.get("context_management")
    edits = management.get("edits") if isinstance(management, Mapping) else None
    if not isinstance(management, Mapping) or not isinstance(edits, list):
        return EditRequest(body)
    known = {str(one.get("type")): one for one in edits if isinstance(one, Mapping)}
    compact, clear = known.get(COMPACT_EDIT), known.get(CLEAR_EDIT)
    if compact is None and clear is None:
        return EditRequest(body)
    left = [one for one in edits if one is not compact and one is not clear]
    rest = {key: value for key, value in body.items() if key != "context_management"}
    if left:
        rest["context_management"] = {**management, "edits": left}
    if compact is None:
        return EditRequest(rest, clear=clear)
    return EditRequest(
        rest,
        value_of(compact.get("trigger"), COMPACT_FROM),
        compact.get("pause_after_compaction") is True,
        str(compact.get("instructions") or ""),
        clear,
    )


def value_of(given: Any, usual: int) -> int:
    """Return the number in `{"type": ..., "value": ...}`, or the default."""
    value = given.get("value") if isinstance(given, Mapping) else None
    known = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if isinstance(value, int) and known else usual
