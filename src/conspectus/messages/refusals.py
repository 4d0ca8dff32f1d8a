"""Features of a request that a provider refuses, recognised by the words of its error.

A model may refuse messages of one role in a row, a system message, or thoughts whose earlier
messages have changed. It accepts the same request without them.
"""

from __future__ import annotations

import re
from typing import Literal

from conspectus.observe.logs import safe_text

RefusedFeature = Literal["thoughts", "roles", "system"]
"""What a provider has refused: thoughts, messages of one role in a row, or a system message."""

SEARCHED_OF_ERROR = 4_000  # characters of an error's text that are searched

ROLES_REFUSED = re.compile(
    r"(?:roles?|messages?)\b.{0,80}?\balternat|multiple .{0,20}?roles? in a row"
    r"|consecutive .{0,30}?(?:messages|roles?)|successive user|unexpected role|after role\b",
    re.IGNORECASE | re.DOTALL,
)
"""Words with which templates of Mistral, Gemma and others, and strict gateways, refuse."""

SYSTEM_REFUSED = re.compile(
    r"system (?:role|messages?) (?:is |are )?not supported|only user and assistant roles are"
    r"|does not support (?:the )?(?:system|developer)|developer instruction is not enabled"
    r"|unsupported role:? .?(?:system|developer)",
    re.IGNORECASE,
)
"""Words with which a system message is refused, for example by old templates of Gemma and
Mistral."""

THOUGHTS_REFUSED = re.compile(
    r"prefix_mismatch_behavior|bound to a different conversation|"
    r"(?:signature|thinking|redacted_thinking)\W.{0,60}?\b(?:invalid|cannot be modified|mismatch)|"
    r"invalid .{0,10}?signature",
    re.IGNORECASE | re.DOTALL,
)
"""Words with which thoughts are refused after a change before them (Anthropic's preserved
thinking)."""


def refuses_roles(error: BaseException | str) -> bool:
    """Tell whether a provider has refused messages of one role in a row."""
    return bool(ROLES_REFUSED.search(safe_text(error)[:SEARCHED_OF_ERROR]))


def refuses_system(error: BaseException | str) -> bool:
    """Tell whether a provider has refused a system message."""
    return bool(SYSTEM_REFUSED.search(safe_text(error)[:SEARCHED_OF_ERROR]))


def refused_by_template(error: BaseException | str) -> RefusedFeature | None:
    """Return what a model's chat template has refused; None for another error."""
    if refuses_system(error):
        return "system"
    return "roles" if refuses_roles(error) else None


def refuses_thoughts(error: BaseException) -> bool:
    """Tell whether a provider has refused thoughts because of a change before them."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    is_bad_request = status in (400, None)
    return is_bad_request and bool(THOUGHTS_REFUSED.search(safe_text(error)[:SEARCHED_OF_ERROR]))
