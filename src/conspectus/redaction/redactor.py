"""What a redactor is: the hook that removes secrets from kept text."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from conspectus import _imports
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


class FunctionRedactor:
    """A function from text to text as a redactor; each changed text counts once."""

    def __init__(self, function: Callable[[str], str]) -> None:
        self._function = function
        name = getattr(function, "__qualname__", type(function).__qualname__)
        self.identity = f"{getattr(function, '__module__', '')}.{name}"

    def redact(self, text: str, key: str | None = None) -> Any:
        """Call the function."""
        return self._function(text)


def redactor_of(setting: Redact) -> Redactor | None:
    """Return the redactor of a user's setting, or None; an invalid one is a `PolicyError`."""
    if setting is None or setting is False:
        return None
    if setting is True or setting == "secrets":
        kind = _imports.plugged(_imports.REDACTORS, "default")
        if kind is None:
            raise PolicyError(
                "redact=True needs a default redactor, and none is installed; install the package "
                "conspectus_secrets, or give redact= a function from text to text or a Redactor"
            )
        default: Redactor = kind()
        return default
    if not isinstance(setting, type) and isinstance(setting, Redactor):
        if not isinstance(setting.identity, str) or not setting.identity:
            raise PolicyError("the identity of a redactor must be a text")
        _check_call(
            setting.redact,
            "the redact of a redactor must take a text and the name that it stands under, as in "
            "redact(text, key=None)",
            "a text",
            None,
        )
        return setting
    if callable(setting) and not isinstance(setting, type):
        wrong = "a function that redacts must take a text, as in redact(text)"
        _check_call(setting, wrong, "a text")
        return FunctionRedactor(setting)
    raise PolicyError(
        'redact must be True or "secrets" for the default redactor, a function from text to text, '
        f"or an object with identity and redact(text, key), not {setting!r:.200}"
    )


def _check_call(function: Callable[..., Any], wrong: str, *arguments: object) -> None:
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        raise PolicyError(wrong) from None
    except ValueError:  # it does not say what it takes
        pass
    if inspect.iscoroutinefunction(function):
        raise PolicyError("what redacts must not be async: it is called wherever texts are read")
