"""Redact messages for compactions: part by part, within a time, checked.

A redacted message keeps the id and the key of the message as it was sent, so that a returning
history is recognised; all else in it is redacted.
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

GROWTH, MORE = 4, 1_000  # Most characters of a redacted text: a multiple of the text's, and more
CLEAN = 20_000, 16_000_000  # Texts without a secret, and their characters, that are not read again

Values = Mapping[str, str]  # Secrets with their kinds; kept in the process only


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
        `key` is the name of the text, such as that of a tool's argument; None for none.
        """


Redact = bool | Literal["secrets"] | Callable[[str], str] | Redactor | None
"""A user's setting: True or `"secrets"` for the default redactor, a function from text to text, or
a `Redactor`; None or False for none."""


class Together(NamedTuple):
    """The redacted messages and texts of one compaction; what has no secret is the same object."""

    made: list[Any]
    counts: list[Counter[str]]  # of the replacements in each, by kind
    values: Values


@dataclass(frozen=True, slots=True)
class Redaction:
    """A redactor at work, with a limit of seconds for one step.

    `identity` is its part of the hash of a plan, and its name in messages. `values` are secrets
    found in the same compaction, which are removed everywhere.
    """

    redact: Callable[[str, str | None], Any]
    identity: str
    timeout: float | None = None
    values: Values = field(default_factory=dict, repr=False)
    clean: BoundedCache[tuple[str | None, str], int] = field(
        default_factory=lambda: BoundedCache(*CLEAN, int), compare=False
    )

    @classmethod
    def of(cls, setting: Redact, timeout: float | None = None) -> Redaction | None:
        """Return the redaction of a user's setting, or None if nothing is redacted.

        Raises:
            PolicyError: the setting is invalid, or the default redactor is not installed.
        """
        redactor: Any = setting
        if redactor is None or redactor is False:
            return None
        if redactor is True or redactor == "secrets":
            kind = _imports.plugged("conspectus.redactors", "default")
            if kind is None:
                raise PolicyError(
                    "redact=True needs the package conspectus_secrets, which is not installed; "
                    "install it, or give redact= a function from text to text or a Redactor"
                )
            redactor = kind()
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

    async def together(self, given: Sequence[Message | str]) -> Together:
        """Redact messages and texts, each secret in all; raise `RedactionError` if that fails."""
        try:
            done: Together = await call_either_way(
                partial(self._together, given), timeout=self.timeout
            )
            return done
        except RedactionError:
            raise
        except StepTimeout as error:
            raise self._error(f"did not answer within {self.timeout:g} seconds") from error
        except Exception as error:  # it may quote the text, so the message has only its type
            why, remedy = f"failed with {type(error).__name__}", "mend it, or leave redact= out"
            raise self._error(why, remedy) from error

    def _together(self, given: Sequence[Message | str]) -> Together:
        values, counts = dict(self.values), [Counter[str]() for _ in given]

        def alone(count: Counter[str], text: str, key: str | None) -> str:
            answer = self._text(text, key) if text else Redacted(text)
            values.update(answer.values)
            for kind, number in answer.counts.items():
                count[kind] += number
            return answer.text

        def spread(count: Counter[str], text: str, _: str | None) -> str:
            text, more = without_values(text, values)
            count.update(more)
            return text

        made: list[Any] = [one if isinstance(one, str) else one.source for one in given]
        for put in (alone, spread):  # the secrets of each, then those found in others
            made = [walk(one, partial(put, count)) for one, count in zip(made, counts, strict=True)]
        return Together(list(map(_read, made, given)), counts, values)

    def _text(self, text: str, key: str | None) -> Redacted:
        if self.clean.get((key, text)):
            return Redacted(text)
        first = self._answer(text, key)
        if len(first.text) > GROWTH * len(text) + MORE:
            raise self._error(f"made {len(first.text):,} characters of {len(text):,}")
        if first.text != text and self._answer(first.text, key).text != first.text:
            raise self._error("changes its own marks when it sees them again", "let it leave them")
        if first.text == text and not (first.values or any(first.counts.values())):
            self.clean.put((key, text), len(text))
        return first

    def _answer(self, text: str, key: str | None) -> Redacted:
        answer: Any = self.redact(text, key)
        if isinstance(answer, Redacted):
            return answer
        if isinstance(answer, str):  # as functions answer
            return Redacted(answer, {"redacted": 1} if answer != text else {})
        if isinstance(answer, Coroutine):
            answer.close()  # it is never awaited
        raise self._error(
            'must answer with a text, or with Redacted("[redacted: name]", {"name": 1}, {"Ann '
            f'Lee": "name"}}), and answered with {type(answer).__name__}'
        )

    def _error(self, what: str, *remedy: str) -> RedactionError:
        done = f"the redactor {self.identity} {what}; nothing was archived or summarised"
        return RedactionError("; ".join((done, *remedy)))


def _read(made: Any, given: Message | str) -> Message | str:
    """Read a redacted message, with the key of the original, which it is if nothing changed."""
    if isinstance(given, str) or made is given.source:
        return made if isinstance(given, str) else given
    [redacted] = read_messages([made])
    named = replace(redacted, key=given.key, id=given.id, given_id=given.given_id)
    return replace(named, continues_answer=given.continues_answer, redacted=True)
