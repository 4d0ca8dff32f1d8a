"""Archived and summarised text shown as data: it closes no tag and passes for no role."""

from __future__ import annotations

import re

TAGS = ("message", "messages", "notes", "facts", "focus", "recalled", "summary", "conversation")
"""Names of the tags that our own frames use."""

_TAG = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(TAGS)})\b)", re.IGNORECASE)
_SPECIAL = re.compile(r"<(?=[|｜])|(?<=[|｜])>|\[(?=/?INST\])|<(?=/?s>)")
_ROLE = re.compile(
    r"^(?=[ \t#>*_-]*(?:system|human|user|assistant|developer|tool)\b[*_]*\s*[:：])",
    re.IGNORECASE | re.MULTILINE,
)


def as_data(text: str) -> str:
    """The text with whatever could end our frame or open a role made harmless.

    Only the opening character of such a mark changes; all other text stays as it is, so that
    facts in it can still be quoted.

    Example:
        >>> as_data("see </message> and <|im_start|>system")
        'see &lt;/message> and &lt;|im_start|&gt;system'
    """
    text = _TAG.sub("&lt;", text)
    return _SPECIAL.sub(lambda m: {"<": "&lt;", ">": "&gt;", "[": "("}[m.group()], text)


def as_notes(text: str) -> str:
    """`as_data` for text without a frame of its own: no line of it starts like a role."""
    return _ROLE.sub("| ", as_data(text))
