"""Redact messages for compactions: part by part, within a time, checked.

A redacted entry keeps the id and the key of the message as it was sent, so that a returning history
is recognised; all else in it is redacted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from conspectus._langchain import is_message
from conspectus._newest import Newest
from conspectus.bridge import StepTimeout, io
from conspectus.errors import MessageError, RedactionError
from conspectus.messages import Entry, read_messages
from conspectus.redaction.message_texts import Leaf, leaves, walk
from conspectus.redaction.redactor import (
    FunctionRedactor,
    Redact,
    Redacted,
    Redactor,
    redactor_of,
)
from conspectus.redaction.values import without_values

GROWTH, MORE = 4, 1_000
"""A redacted text has at most this multiple of the text's characters, plus this number."""

REMEMBERED, CHARACTERS = 256, 4_000_000
"""Redacted messages cached, and their characters: messages in view are redacted at each step."""

Counts = Mapping[str, int]
Values = Mapping[str, str]  # Secrets with their kinds; kept in the process only


@dataclass(frozen=True, slots=True)
class Known:
    """A redacted message, or None if it is unchanged, with the secrets found."""

    entry: Entry | None = None
    counts: Counts = field(default_factory=dict)
    values: Values = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.entry.text) + 1 if self.entry is not None else 1


@dataclass(frozen=True, slots=True)
class Together:
    """The redacted messages and texts of one compaction.

    A message without a secret is the same object. `counts` has replacements by message and kind,
    `values` the secrets found.
    """

    entries: list[Entry]
    counts: list[Counts]
    texts: list[str]
    values: Values = field(repr=False)


def _cache() -> Newest[str, Known]:
    return Newest(REMEMBERED, CHARACTERS, len)


@dataclass(frozen=True, slots=True)
class Redaction:
    """A redactor at work, with a limit of seconds for one step.

    `values` are secrets found in the same compaction, which are removed everywhere.
    """

    redactor: Redactor
    timeout: float | None = None
    values: Values = field(default_factory=dict, repr=False)
    _known: Newest[str, Known] = field(default_factory=_cache, repr=False)

    @classmethod
    def of(cls, setting: Redact, timeout: float | None) -> Redaction | None:
        """Return the redaction of a user's setting, or None if nothing is redacted."""
        redactor = redactor_of(setting)
        return None if redactor is None else cls(redactor, timeout)

    @property
    def identity(self) -> str:
        """The redactor's part of the hash of a plan."""
        return str(self.redactor.identity)

    @property
    def name(self) -> str:
        """The redactor's name in messages: of a function, its own name."""
        own = isinstance(self.redactor, FunctionRedactor)
        return self.identity if own else type(self.redactor).__name__

    async def entries(self, entries: Sequence[Entry]) -> list[Entry]:
        """Redact messages, each by itself: the result for one does not depend on others.

        A failing redactor is a `RedactionError`.
        """
        return (await self.together(entries, (), apart=True)).entries

    async def texts(self, texts: Sequence[str]) -> list[str]:
        """Redact texts; errors as above."""
        return (await self.together((), texts)).texts

    async def together(
        self, entries: Sequence[Entry], texts: Sequence[str], apart: bool = False
    ) -> Together:
        """Redact messages and texts, each secret in all of them.

        `apart` removes from each message only its own secrets. Errors as above.
        """
        names = [f"{entry.key} {entry.digest}" for entry in entries]
        known = [self._known.get(name) for name in names]
        work = partial(self._work, entries, names, known, texts, apart)
        if not any(texts) and all(one is not None and (apart or not one.values) for one in known):
            return work()
        try:
            together: Together = await io(work, timeout=self.timeout)
        except RedactionError:
            raise
        except StepTimeout as error:
            raise RedactionError(
                f"the redactor {self.name} did not answer within {self.timeout:g} seconds; nothing "
                "was archived or summarised"
            ) from error
        except Exception as error:
            # The error may quote the text, so the message has only its type.
            raise RedactionError(
                f"the redactor {self.name} failed with {type(error).__name__}; nothing was "
                "archived or summarised; mend it, or leave redact= out"
            ) from error
        return together

    def _work(
        self,
        entries: Sequence[Entry],
        names: Sequence[str],
        known: Sequence[Known | None],
        texts: Sequence[str],
        apart: bool,
    ) -> Together:
        made = [old or self._entry(entry) for entry, old in zip(entries, known, strict=True)]
        answers = [self._text(text) for text in texts]
        values = dict(self.values)
        both: list[Known | Redacted] = [] if apart else [*made, *answers]
        for found in both:
            values.update(found.values)
        clean = [_everywhere(entry, one, values) for entry, one in zip(entries, made, strict=True)]
        for name, one in zip(names, made, strict=True):
            self._known.put(name, one)
        return Together(
            [one.entry or entry for one, entry in zip(clean, entries, strict=True)],
            [one.counts for one in clean],
            [without_values(one.text, values)[0] for one in answers],
            values,
        )

    def _entry(self, entry: Entry) -> Known:
        counts: Counter[str] = Counter()
        values: dict[str, str] = {}
        answers: dict[Leaf, Redacted] = {}
        for leaf in leaves(entry.source):
            if leaf not in answers:
                answers[leaf] = self._text(*leaf)
            counts.update(answers[leaf].counts)
            values.update(answers[leaf].values)
        made = walk(entry.source, lambda text, key: answers[text, key].text)
        if made is entry.source:
            return Known()
        return Known(_read(made, entry), dict(counts), values)

    def _text(self, text: str, key: str | None = None) -> Redacted:
        if not text:
            return Redacted(text)
        first = self._answer(text, key)
        if len(first.text) > GROWTH * len(text) + MORE:
            raise self._error(
                f"made {len(first.text):,} characters of {len(text):,}; nothing was archived or "
                "summarised"
            )
        if first.text != text and self._answer(first.text, key).text != first.text:
            raise self._error(
                "changes what it has redacted when it sees it again; let it leave its own marks "
                "alone"
            )
        return first

    def _answer(self, text: str, key: str | None) -> Redacted:
        answer: Any = self.redactor.redact(text, key)
        if isinstance(answer, str):  # as functions answer
            return Redacted(answer, {"redacted": 1} if answer != text else {})
        counts, values = getattr(answer, "counts", None), getattr(answer, "values", {})
        if not isinstance(getattr(answer, "text", None), str) or not isinstance(counts, Mapping):
            raise self._error(
                "must answer with Redacted(text, counts) or a text, and answered with "
                f"{type(answer).__name__}; nothing was archived or summarised"
            )
        if not all(isinstance(k, str) and isinstance(n, int) for k, n in counts.items()):
            raise self._error('must count by kind, as in {"password": 1}')
        if not isinstance(values, Mapping) or not all(
            isinstance(word, str) for pair in values.items() for word in pair
        ):
            raise self._error("must name values with their kinds, texts both")
        return Redacted(answer.text, counts, values)

    def _error(self, what: str) -> RedactionError:
        return RedactionError(f"the redactor {self.name} {what}")


def for_view(redacted: Entry, original: Entry) -> Entry:
    """Return a redacted message whose clip may be shown to a provider.

    It has the original names of tools and speakers, and signed thoughts, which providers check.
    """
    made, source = redacted.source, original.source
    if made is source:
        return redacted
    new, old = (vars(one) if is_message(one) else one for one in (made, source))
    update: dict[str, Any] = {}
    for field_name in ("content", "tool_calls"):
        parts, before = new.get(field_name), old.get(field_name)
        if isinstance(parts, list) and isinstance(before, list) and len(parts) == len(before):
            update[field_name] = [_renamed(*pair) for pair in zip(parts, before, strict=True)]
    if old.get("name") is not None:
        update["name"] = old["name"]
    shown = made.model_copy(update=update) if is_message(made) else {**made, **update}
    return _read(shown, original)


_SIGNED = ("thinking", "redacted_thinking", "reasoning")


def _renamed(new: Any, old: Any) -> Any:
    """Return a call with the original name of its tool, and a signed thought as it was."""
    if not isinstance(new, Mapping) or not isinstance(old, Mapping):
        return new
    if old.get("type") in _SIGNED:
        return old
    if isinstance(new.get("function"), Mapping) and isinstance(old.get("function"), Mapping):
        return {**new, "function": {**new["function"], "name": old["function"].get("name")}}
    return {**new, "name": old["name"]} if "name" in old else new


def _read(made: Any, entry: Entry) -> Entry:
    """Read a redacted message, with the key of the original."""
    try:
        [redacted] = read_messages([made])
    except MessageError as error:
        raise RedactionError(
            f"a message cannot be read once it is redacted ({type(error).__name__})"
        ) from error
    named = replace(redacted, key=entry.key, id=entry.id, given_id=entry.given_id)
    return replace(named, joined=entry.joined, redacted=True)


def _everywhere(entry: Entry, known: Known, values: Values) -> Known:
    """Remove from a message the secrets found in others."""
    if not values:
        return known
    counts: Counter[str] = Counter(known.counts)

    def put(text: str, key: str | None) -> str:
        clean, more = without_values(text, values)
        counts.update(more)
        return clean

    source = (known.entry or entry).source
    made = walk(source, put)
    return known if made is source else Known(_read(made, entry), dict(counts), known.values)
