"""Redact messages for compactions: part by part, within a time, checked.

A redacted message keeps the id and the key of the message as it was sent, so that a returning
history is recognised; all else in it is redacted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from conspectus._langchain import is_message
from conspectus.bridge import StepTimeout, io
from conspectus.errors import MessageError, RedactionError
from conspectus.messages import Message, read_messages
from conspectus.redaction.redactor import FunctionRedactor, Redact, Redacted, Redactor, redactor_of
from conspectus.redaction.values import without_values
from conspectus.redaction.walk import Leaf, walk

GROWTH, MORE = 4, 1_000
"""A redacted text has at most this multiple of the text's characters, plus this number."""

SIGNED = ("thinking", "redacted_thinking", "reasoning")  # Blocks that a provider checks

NOTHING_DONE = "nothing was archived or summarised"

Counts = Mapping[str, int]
Values = Mapping[str, str]  # Secrets with their kinds; kept in the process only


class Together(NamedTuple):
    """The redacted messages and texts of one compaction.

    A message without a secret is the same object. `counts` has replacements by message and kind,
    `values` the secrets found.
    """

    entries: list[Message]
    counts: list[Counts]
    texts: list[str]
    values: Values


@dataclass(frozen=True, slots=True)
class Redaction:
    """A redactor at work, with a limit of seconds for one step.

    `values` are secrets found in the same compaction, which are removed everywhere.
    """

    redactor: Redactor
    timeout: float | None = None
    values: Values = field(default_factory=dict, repr=False)

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
        plain = isinstance(self.redactor, FunctionRedactor)
        return self.identity if plain else type(self.redactor).__name__

    async def entries(self, entries: Sequence[Message]) -> list[Message]:
        """Redact messages, each by itself: the result for one does not depend on others.

        A failing redactor is a `RedactionError`.
        """
        return (await self.together(entries, (), apart=True)).entries

    async def texts(self, texts: Sequence[str]) -> list[str]:
        """Redact texts; errors as above."""
        return (await self.together((), texts)).texts

    async def together(
        self, entries: Sequence[Message], texts: Sequence[str], apart: bool = False
    ) -> Together:
        """Redact messages and texts, each secret in all of them.

        `apart` removes from each message only its own secrets. Errors as above.
        """
        work = partial(self._together, entries, texts, apart)
        known = [self._known(entry) for entry in entries]
        if not any(texts) and all(part and (apart or not part[2]) for part in known):
            return work()
        try:
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

    def _together(self, entries: Sequence[Message], texts: Sequence[str], apart: bool) -> Together:
        alone = [self._known(entry) or self._alone(entry) for entry in entries]
        answers = [self._text(text) for text in texts]
        values = dict(self.values)
        for part in (
            () if apart else (*(secrets for _, _, secrets in alone), *(a.values for a in answers))
        ):
            values.update(part)
        made, counts = list[Message](), list[Counts]()
        for original, (message, replaced, _) in zip(entries, alone, strict=True):
            more: Counter[str] = Counter()
            made.append(_without(message, original, values, more) if values else message)
            counts.append(more + Counter(replaced))
        clean = [without_values(answer.text, values)[0] for answer in answers]
        return Together(made, counts, clean, values)

    def _known(self, message: Message) -> tuple[Message, Counts, Values] | None:
        """Return what is remembered of a message: those in view are redacted at each step."""
        redactor, changed, counts, values = message.memo.get("redacted", (None, None, {}, {}))
        return (changed or message, counts, values) if redactor is self.redactor else None

    def _alone(self, message: Message) -> tuple[Message, Counts, Values]:
        """Redact a message by itself; return it, what was replaced by kind, and the secrets."""
        counts: Counter[str] = Counter()
        values: dict[str, str] = {}
        answers: dict[Leaf, Redacted] = {}

        def put(text: str, key: str | None) -> str:
            if (answer := answers.get((text, key))) is None:
                answer = answers[text, key] = self._text(text, key)
            counts.update(answer.counts)
            values.update(answer.values)
            return answer.text

        made = _read(walk(message.source, put), message)
        # A message that its own memo held would never be gone.
        changed = None if made is message else made
        message.memo["redacted"] = self.redactor, changed, dict(counts), values
        return made, dict(counts), values

    def _text(self, text: str, key: str | None = None) -> Redacted:
        if not text:
            return Redacted(text)
        first = self._answer(text, key)
        if len(first.text) > GROWTH * len(text) + MORE:
            raise self._error(
                f"made {len(first.text):,} characters of {len(text):,}; {NOTHING_DONE}"
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
        if isinstance(answer, Coroutine):
            answer.close()  # it is never awaited
        made, counts, values = (getattr(answer, name, {}) for name in ("text", "counts", "values"))
        if (
            isinstance(made, str)
            and isinstance(counts, Mapping)
            and all(isinstance(k, str) and isinstance(n, int) for k, n in counts.items())
            and isinstance(values, Mapping)
            and all(isinstance(word, str) for pair in values.items() for word in pair)
        ):
            return Redacted(made, counts, values)
        raise self._error(
            "must answer with a text, or with Redacted(text, counts, values) as in Redacted("
            '"[redacted: name]", {"name": 1}, {"Ann Lee": "name"}), and answered with '
            f"{type(answer).__name__}; {NOTHING_DONE}"
        )

    def _error(self, what: str) -> RedactionError:
        return RedactionError(f"the redactor {self.name} {what}")


def _without(message: Message, original: Message, values: Values, counts: Counter[str]) -> Message:
    """Remove from a message the secrets found in others, and count them."""

    def put(text: str, key: str | None) -> str:
        text, more = without_values(text, values)
        counts.update(more)
        return text

    source = walk(message.source, put)
    return message if source is message.source else _read(source, original)


def for_view(redacted: Message, original: Message) -> Message:
    """Return a redacted message whose clip may be shown to a provider.

    It has the original names of tools and speakers, and signed thoughts, which providers check.
    """
    made, source = redacted.source, original.source
    if made is source:
        return redacted
    new, old = (vars(m) if is_message(m) else m for m in (made, source))
    names = ("name", "content", "tool_calls")
    update = {name: _renamed(new[name], old[name], name) for name in names if old.get(name)}
    named = made.model_copy(update=update) if is_message(made) else {**made, **update}
    return _read(named, original)


def _renamed(new: Any, old: Any, key: str = "") -> Any:
    """Return a part with the names of the tools and the signed thoughts as they were."""
    if key == "name":
        return old
    if isinstance(new, list) and isinstance(old, list):
        return [_renamed(*pair) for pair in zip(new, old, strict=True)]
    if not isinstance(new, Mapping) or not isinstance(old, Mapping):
        return new
    if old.get("type") in SIGNED:
        return old
    inner = ("name", "function")
    return {k: _renamed(v, old.get(k), k) if k in inner else v for k, v in new.items()}


def _read(source: Any, original: Message) -> Message:
    """Read a redacted message, with the key of the original, which it is if nothing changed."""
    if source is original.source:
        return original
    try:
        [redacted] = read_messages([source])
    except MessageError as error:
        raise RedactionError(
            f"a message cannot be read once it is redacted ({type(error).__name__})"
        ) from error
    named = replace(redacted, key=original.key, id=original.id, given_id=original.given_id)
    return replace(named, joined=original.joined, redacted=True)
