"""Redact messages for compactions: part by part, within a time, checked.

A redacted message keeps the id and the key of the message that was sent, so that a returning
history is recognised. All else in it is redacted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from conspectus import _imports
from conspectus._bounded_cache import BoundedCache
from conspectus.bridge import StepTimeout, call_either_way
from conspectus.errors import PolicyError, RedactionError
from conspectus.messages import Message, read_messages
from conspectus.redaction.values import without_values
from conspectus.redaction.walk import walk

MAX_GROWTH = 4
"""A redacted text may have so many times the characters of the text."""

MAX_ADDED_CHARACTERS = 1_000
"""It may have so many more, as a short text may become a long mark."""

CLEAN_TEXTS = 20_000
"""The most texts without a secret that are remembered, so that they are not scanned again."""

CLEAN_CHARACTERS = 16_000_000
"""The most characters of these texts."""

Values = Mapping[str, str]
"""Secrets with their kinds. They never leave the process."""


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets.

    Attributes:
        text: the text to keep; redacting it again does not change it.
        counts: replacements by kind.
        values: secrets with their kinds. `[redacted: kind]` replaces them in all other texts of the
            compaction, too. A value stays in other texts if it is a word without a digit, a sign or
            capitals inside, or has less than 6 or more than 512 characters. Default: none.
    """

    text: str
    counts: Mapping[str, int] = field(default_factory=dict)
    values: Values = field(default_factory=dict, repr=False)


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
        """Return a text without its secrets; it may be called from other threads.

        The same text must give the same answer, and redacting an answer again must not change it.
        `key` is the name of the text, such as that of a tool's argument; None if there is none.
        """


Redact = bool | Literal["secrets"] | Callable[[str], str] | Redactor | None
"""A user's setting: True or `"secrets"` for the default redactor, a function from text to text, or
a `Redactor`; None or False for none."""


class RedactedParts(NamedTuple):
    """The messages and texts of one compaction without their secrets."""

    parts: list[Any]
    """In the given order. A part without a secret is the same object."""

    counts: list[Counter[str]]
    """For each part: replacements by kind."""

    values: Values


@dataclass(frozen=True, slots=True)
class Redaction:
    """A redactor at work.

    Attributes:
        redact: returns a text, under a name or None, without its secrets.
        identity: a text that changes with its rules, and its name in messages.
        timeout: seconds for one step; None for no limit.
        values: secrets that were found in the same compaction, which are removed everywhere.
        clean: texts without a secret that were scanned, with their names and sizes.
    """

    redact: Callable[[str, str | None], Any]
    identity: str
    timeout: float | None = None
    values: Values = field(default_factory=dict, repr=False)
    clean: BoundedCache[tuple[str | None, str], int] = field(
        default_factory=lambda: BoundedCache(CLEAN_TEXTS, CLEAN_CHARACTERS, int), compare=False
    )

    @classmethod
    def of(cls, setting: Redact, timeout: float | None = None) -> Redaction | None:
        """Return the redaction of a user's setting, or None if nothing is redacted.

        Raises:
            PolicyError: the setting is invalid, or the default redactor is not installed.
        """
        if setting is None or setting is False:
            return None
        redactor: Any = setting
        if setting is True or setting == "secrets":
            redactor = _default_redactor()
        if isinstance(redactor, Redactor) and not isinstance(redactor, type):
            return cls(redactor.redact, str(redactor.identity), timeout)
        if callable(redactor) and not isinstance(redactor, type):
            name = getattr(redactor, "__qualname__", type(redactor).__qualname__)
            name = f"{getattr(redactor, '__module__', '')}.{name}"
            return cls(lambda text, key: redactor(text), name, timeout)
        raise PolicyError(
            'redact must be True or "secrets" for the default redactor, a function from text to '
            f"text, or an object with identity and redact(text, key=None), not {redactor!r:.200}"
        )

    async def redact_together(self, parts: Sequence[Message | str]) -> RedactedParts:
        """Redact the messages and texts of one compaction; each secret is removed from all of them.

        Raises:
            RedactionError: the redactor failed, took too long, or answered wrongly.
        """
        try:
            redacted: RedactedParts = await call_either_way(
                partial(self._redact_together, parts), timeout=self.timeout
            )
            return redacted
        except RedactionError:
            raise
        except StepTimeout as error:
            raise self._error(f"did not answer within {self.timeout:g} seconds") from error
        except Exception as error:  # its text may quote a secret, so only its type is shown
            reason = f"failed with {type(error).__name__}"
            raise self._error(reason, "mend it, or leave redact= out") from error

    def _redact_together(self, parts: Sequence[Message | str]) -> RedactedParts:
        counts = [Counter[str]() for _ in parts]
        values = dict(self.values)

        def redact_alone(count: Counter[str], text: str, key: str | None) -> str:
            if not text:
                return text
            redacted = self._redact_text(text, key)
            values.update(redacted.values)
            for kind, number in redacted.counts.items():
                count[kind] += number
            return redacted.text

        def replace_values(count: Counter[str], text: str, _: str | None) -> str:
            clean, replaced = without_values(text, values)
            count.update(replaced)
            return clean

        redacted: list[Any] = [part if isinstance(part, str) else part.source for part in parts]
        # First remove the secrets of each part, then those that were found in other parts.
        for replace_text in (redact_alone, replace_values):
            redacted = [
                walk(part, partial(replace_text, count))
                for part, count in zip(redacted, counts, strict=True)
            ]
        return RedactedParts(list(map(_as_given, redacted, parts)), counts, values)

    def _redact_text(self, text: str, key: str | None) -> Redacted:
        """Redact one text, and check the answer."""
        if self.clean.get((key, text)):
            return Redacted(text)
        redacted = self._call_redactor(text, key)
        if len(redacted.text) > MAX_GROWTH * len(text) + MAX_ADDED_CHARACTERS:
            raise self._error(f"made {len(redacted.text):,} characters of {len(text):,}")
        if redacted.text != text:
            again = self._call_redactor(redacted.text, key)
            if again.text != redacted.text:
                reason = "changes its own marks when it sees them again"
                raise self._error(reason, "let it leave them")
        elif not redacted.values and not any(redacted.counts.values()):
            self.clean.put((key, text), len(text))
        return redacted

    def _call_redactor(self, text: str, key: str | None) -> Redacted:
        answer: Any = self.redact(text, key)
        if isinstance(answer, Redacted):
            return answer
        if isinstance(answer, str):  # a function returns a text
            return Redacted(answer, {"redacted": 1} if answer != text else {})
        if isinstance(answer, Coroutine):
            answer.close()  # it is never awaited
        raise self._error(
            'must answer with a text, or with Redacted("[redacted: name]", {"name": 1}, {"Ann '
            f'Lee": "name"}}), and answered with {type(answer).__name__}'
        )

    def _error(self, reason: str, *remedies: str) -> RedactionError:
        problem = f"the redactor {self.identity} {reason}; nothing was archived or summarised"
        return RedactionError("; ".join((problem, *remedies)))


def _default_redactor() -> Redactor:
    redactor_class = _imports.plugged("conspectus.redactors", "default")
    if redactor_class is None:
        raise PolicyError(
            "redact=True needs the package conspectus_secrets, which is not installed; install "
            "it, or give redact= a function from text to text or a Redactor"
        )
    redactor: Redactor = redactor_class()
    return redactor


def _as_given(redacted: Any, part: Message | str) -> Message | str:
    """Read a redacted message, with the key of the original; the original if nothing changed."""
    if isinstance(part, str):
        text: str = redacted
        return text
    if redacted is part.source:
        return part
    [message] = read_messages([redacted])
    return replace(
        message,
        key=part.key,
        id=part.id,
        given_id=part.given_id,
        continues_reply=part.continues_reply,
        redacted=True,
    )
