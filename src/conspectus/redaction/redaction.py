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
from conspectus.bridge import StepTimeout, io
from conspectus.errors import PolicyError, RedactionError
from conspectus.messages import Message, Source, read_messages
from conspectus.redaction.values import without_values
from conspectus.redaction.walk import walk

GROWTH, MORE = 4, 1_000
"""A redacted text has at most this multiple of the text's characters, plus this number."""

NOTHING_DONE = "nothing was archived or summarised"

Counts = Mapping[str, int]
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
    counts: Counts = field(default_factory=dict)
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


class Together(NamedTuple):
    """The redacted messages and texts of one compaction.

    A message without a secret is the same object. `counts` has replacements by message and kind,
    `values` the secrets found.
    """

    entries: list[Message]
    counts: list[Counter[str]]
    texts: list[str]
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
            kind = _imports.plugged(_imports.REDACTORS, "default")
            if kind is None:
                raise PolicyError(
                    "redact=True needs a default redactor, and none is installed; install the "
                    "package conspectus_secrets, or give redact= a function from text to text or "
                    "a Redactor"
                )
            redactor = kind()
        if not isinstance(redactor, type):
            if isinstance(redactor, Redactor):
                return cls(redactor.redact, str(redactor.identity), timeout)
            if callable(redactor):
                name = getattr(redactor, "__qualname__", type(redactor).__qualname__)
                name = f"{getattr(redactor, '__module__', '')}.{name}"
                return cls(lambda text, key: redactor(text), name, timeout)
        raise PolicyError(
            'redact must be True or "secrets" for the default redactor, a function from text to '
            "text, or an object with identity and redact(text, key=None), not "
            f"{redactor!r:.200}"
        )

    async def texts(self, texts: Sequence[str]) -> list[str]:
        """Redact texts; a failing redactor is a `RedactionError`."""
        return (await self.together((), texts)).texts

    async def together(self, entries: Sequence[Message], texts: Sequence[str]) -> Together:
        """Redact messages and texts, each secret in all of them; errors as above."""
        try:
            work = partial(self._together, entries, texts)
            together: Together = await io(work, timeout=self.timeout)
        except RedactionError:
            raise
        except StepTimeout as error:
            late = f"did not answer within {self.timeout:g} seconds; {NOTHING_DONE}"
            raise self._error(late) from error
        except Exception as error:
            # The error may quote the text, so the message has only its type.
            what = f"failed with {type(error).__name__}; {NOTHING_DONE}"
            raise self._error(f"{what}; mend it, or leave redact= out") from error
        return together

    def _together(self, entries: Sequence[Message], texts: Sequence[str]) -> Together:
        values, counts = dict(self.values), [Counter[str]() for _ in entries]

        def alone(text: str, key: str | None = None) -> Redacted:
            answer = self._text(text, key)
            values.update(answer.values)
            return answer

        def spread(text: str, _: str | None = None) -> Redacted:
            return Redacted(*without_values(text, values))

        sources, made = [entry.source for entry in entries], list(texts)
        for redact in (alone, spread):  # the secrets of each, then those found in others
            sources = [_walked(*one, redact) for one in zip(sources, counts, strict=True)]
            made = [redact(text).text for text in made]
        return Together(list(map(_read, sources, entries)), counts, made, values)

    def _text(self, text: str, key: str | None = None) -> Redacted:
        if not text:
            return Redacted(text)
        first = self._answer(text, key)
        if len(first.text) > GROWTH * len(text) + MORE:
            what = f"made {len(first.text):,} characters of {len(text):,}; {NOTHING_DONE}"
            raise self._error(what)
        if first.text != text and self._answer(first.text, key).text != first.text:
            raise self._error(
                "changes what it has redacted when it sees it again; let it leave its own marks "
                "alone"
            )
        return first

    def _answer(self, text: str, key: str | None) -> Redacted:
        answer: Any = self.redact(text, key)
        if isinstance(answer, str):  # as functions answer
            return Redacted(answer, {"redacted": 1} if answer != text else {})
        if isinstance(answer, Coroutine):
            answer.close()  # it is never awaited
        if (
            isinstance(answer, Redacted)
            and isinstance(answer.text, str)
            and all(isinstance(number, int) for number in answer.counts.values())
            and all(isinstance(word, str) for pair in answer.values.items() for word in pair)
        ):
            return answer
        raise self._error(
            "must answer with a text, or with Redacted(text, counts, values) as in Redacted("
            '"[redacted: name]", {"name": 1}, {"Ann Lee": "name"}), and answered with '
            f"{type(answer).__name__}; {NOTHING_DONE}"
        )

    def _error(self, what: str) -> RedactionError:
        return RedactionError(f"the redactor {self.identity} {what}")


def _walked(
    source: Source, counts: Counter[str], redact: Callable[[str, str | None], Redacted]
) -> Source:
    """Redact each text of a message, and count what was replaced."""

    def put(text: str, key: str | None) -> str:
        answer = redact(text, key)
        counts.update(answer.counts)
        return answer.text

    made: Source = walk(source, put)
    return made


def _read(source: Any, original: Message) -> Message:
    """Read a redacted message, with the key of the original, which it is if nothing changed."""
    if source is original.source:
        return original
    [redacted] = read_messages([source])
    named = replace(redacted, key=original.key, id=original.id, given_id=original.given_id)
    return replace(named, joined=original.joined, redacted=True)
