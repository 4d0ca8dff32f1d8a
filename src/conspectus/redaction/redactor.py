"""What a redactor is: the hook that takes secrets out of whatever is about to be kept."""

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
        text: what may be kept; redacted again, it is the same.
        counts: how much was replaced, by kind.
        values: secrets that are to be taken out wherever else they stand in the same compaction, as
            `[redacted: kind]`, and the kind of each. Words without a digit, a sign or capitals
            inside, and those of less than 6 or more than 512 characters, are left alone there.
            Default: none.
    """

    text: str
    counts: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict, repr=False)


@runtime_checkable
class Redactor(Protocol):
    """Anything that takes secrets out of texts and says how many.

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
        """Changes when it would redact otherwise, so that drafts made before are not used."""

    def redact(self, text: str, key: str | None = None) -> Redacted:
        """A text without its secrets.

        The same text must give the same answer, and an answer that is redacted again must stay as
        it is. It may be called from other threads.

        Args:
            text: part of a message, a summary or the like.
            key: the name that it stands under, such as that of a tool's argument; None for none.
        """


Redact = bool | Literal["secrets"] | Callable[[str], str] | Redactor | None
"""What a user writes: True or `"secrets"` for the default redactor, a function from text to text,
or a `Redactor`; None or False for none."""


def default_redactor() -> Redactor:
    """Make what `True` stands for: the entry point `default` of the group `conspectus.redactors`.

    Raises:
        PolicyError: no package brings one along.
    """
    kind = _plugins.plugged(_plugins.REDACTORS, "default")
    if kind is None:
        raise PolicyError(
            "redact=True needs a default redactor, and none is installed; install the package "
            "conspectus_secrets, or give redact= a function from text to text or a Redactor"
        )
    made: Redactor = kind()
    return made
