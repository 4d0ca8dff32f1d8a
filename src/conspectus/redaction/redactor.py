"""The protocol of a redactor: the hook that removes secrets from kept text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from conspectus import _plugins
from conspectus.errors import PolicyError


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets.

    Attributes:
        text: the text to keep; redacting it again does not change it.
        counts: replacements by kind.
        values: secrets with their kinds, to be replaced by `[redacted: kind]` in the rest of the
            compaction too. There, words without a digit, a sign or capitals inside, and those of
            less than 6 or more than 512 characters, stay. Default: none.
    """

    text: str
    counts: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict, repr=False)


@runtime_checkable
class Redactor(Protocol):
    """Removes secrets from texts and counts them.

    Example:
        >>> class Staff:
        ...     identity = "staff 1"
        ...     def redact(self, text, key=None):
        ...         count = text.count("Ann Lee")
        ...         return Redacted(text.replace("Ann Lee", "[redacted: name]"), {"name": count})
        >>> Staff().redact("ask Ann Lee").text
        'ask [redacted: name]'
    """

    @property
    def identity(self) -> str:
        """A text that changes with the redactor's rules, so that older drafts are not used."""

    def redact(self, text: str, key: str | None = None) -> Redacted:
        """Return a text without its secrets.

        The same text must give the same answer, and redacting an answer again must not change it.
        It may be called from other threads.

        Args:
            text: part of a message, a summary or the like.
            key: the name of the text, such as that of a tool's argument; None for none.
        """


Redact = bool | Literal["secrets"] | Callable[[str], str] | Redactor | None
"""A user's setting: True or `"secrets"` for the default redactor, a function from text to text, or
a `Redactor`; None or False for none."""


def default_redactor() -> Redactor:
    """Make the redactor of the entry point `default` of `conspectus.redactors`."""
    kind = _plugins.plugged(_plugins.REDACTORS, "default")
    if kind is None:
        raise PolicyError(
            "redact=True needs a default redactor, and none is installed; install the package "
            "conspectus_secrets, or give redact= a function from text to text or a Redactor"
        )
    made: Redactor = kind()
    return made
