"""Redact messages for compactions: part by part, within a time, checked.

A redacted entry keeps the id and the key of the message as it was sent, so that a returning history
is recognised; all else in it is redacted.
"""

from __future__ import annotations

import inspect
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conspectus._langchain import is_message
from conspectus.bridge import StepTimeout, io
from conspectus.errors import MessageError, PolicyError, RedactionError
from conspectus.messages import Entry, read_messages
from conspectus.redaction.message_texts import Leaf, leaves, walk
from conspectus.redaction.redactor import Redact, Redacted, Redactor, default_redactor
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


@dataclass(frozen=True, slots=True)
class Redaction:
    """A redactor at work, with a limit of seconds for one step.

    `values` are secrets found in the same compaction, which are removed everywhere.
    """

    redactor: Redactor
    timeout: float | None = None
    values: Values = field(default_factory=dict, repr=False)
    _known: OrderedDict[str, Known] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, given: Redact, timeout: float | None) -> Redaction | None:
        """Return the redaction of a user's setting, or None if nothing is redacted."""
        redactor = redactor_of(given)
        return None if redactor is None else cls(redactor, timeout)

    @property
    def identity(self) -> str:
        """The redactor's part of the hash of a plan."""
        return str(self.redactor.identity)

    @property
    def name(self) -> str:
        """The redactor's name in messages: of a function, its own name."""
        if isinstance(self.redactor, _Function):
            return self.redactor.identity
        return type(self.redactor).__name__

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
        names = [_name(entry) for entry in entries]
        with self._lock:
            known = {name: self._known[name] for name in names if name in self._known}
        new = {n: entry for n, entry in zip(names, entries, strict=True) if n not in known}
        spread = not apart and any(one.values for one in known.values())
        if not new and not any(texts) and not spread:
            found = [known[name] for name in names]
            return self._done(entries, found, list(texts), self.values)

        def work() -> tuple[list[Known], Together]:
            made = [self._entry(one) for one in new.values()]
            known.update(zip(new, made, strict=True))
            answers = [self._text(text) for text in texts]
            found = [known[name] for name in names]
            values = dict(self.values)
            told = [*(one.values for one in found), *(one.values for one in answers)]
            for more in told if not apart else ():
                values.update(more)
            clean = [
                _everywhere(entry, one, values) for entry, one in zip(entries, found, strict=True)
            ]
            words = [without_values(one.text, values)[0] for one in answers]
            return made, self._done(entries, clean, words, values)

        made: list[Known]
        together: Together
        made, together = await self._timed(work)
        self._remember(dict(zip(new, made, strict=True)))
        return together

    @staticmethod
    def _done(
        entries: Sequence[Entry], found: Sequence[Known], texts: list[str], values: Values
    ) -> Together:
        clean = [one.entry or entry for one, entry in zip(found, entries, strict=True)]
        return Together(clean, [one.counts for one in found], texts, values)

    async def _timed(self, work: Callable[[], Any]) -> Any:
        name, seconds = self.name, self.timeout
        try:
            return await io(work, timeout=seconds)
        except RedactionError:
            raise
        except StepTimeout as error:
            raise RedactionError(
                f"the redactor {name} did not answer within {seconds:g} seconds; nothing was "
                "archived or summarised"
            ) from error
        except Exception as error:
            # The error may quote the text, so the message has only its type.
            raise RedactionError(
                f"the redactor {name} failed with {type(error).__name__}; nothing was archived or "
                "summarised; mend it, or leave redact= out"
            ) from error

    def _remember(self, new: Mapping[str, Known]) -> None:
        with self._lock:
            self._known.update(new)
            size = sum(_size(one.entry) for one in self._known.values())
            while len(self._known) > REMEMBERED or size > CHARACTERS:
                size -= _size(self._known.popitem(last=False)[1].entry)

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
        if first.text != text:
            if len(first.text) > GROWTH * len(text) + MORE:
                raise RedactionError(
                    f"the redactor {self.name} made {len(first.text):,} "
                    f"characters of {len(text):,}; nothing was archived or summarised"
                )
            if self._answer(first.text, key).text != first.text:
                raise RedactionError(
                    f"the redactor {self.name} changes what it has redacted "
                    "when it sees it again; let it leave its own marks alone"
                )
        return first

    def _answer(self, text: str, key: str | None) -> Redacted:
        answer: Any = self.redactor.redact(text, key)
        if isinstance(answer, str):  # as functions answer
            return Redacted(answer, {"redacted": 1} if answer != text else {})
        counts = getattr(answer, "counts", None)
        if not isinstance(getattr(answer, "text", None), str) or not isinstance(counts, Mapping):
            raise RedactionError(
                f"the redactor {self.name} must answer with Redacted(text, counts) or a text, and "
                f"answered with {type(answer).__name__}; nothing was archived or summarised"
            )
        if not all(isinstance(k, str) and isinstance(n, int) for k, n in counts.items()):
            raise RedactionError(
                f'the redactor {self.name} must count by kind, as in {{"password": 1}}'
            )
        values = getattr(answer, "values", {})
        if not isinstance(values, Mapping) or not all(
            isinstance(word, str) for pair in values.items() for word in pair
        ):
            raise RedactionError(
                f"the redactor {self.name} must name values with their kinds, texts both"
            )
        return Redacted(answer.text, counts, values)


class _Function:
    """A function from text to text as a redactor; each changed text counts once."""

    def __init__(self, function: Callable[[str], str]) -> None:
        self._function = function
        named = getattr(function, "__qualname__", type(function).__qualname__)
        self.identity = f"{getattr(function, '__module__', '')}.{named}"

    def redact(self, text: str, key: str | None = None) -> Redacted:
        """Call the function and check its result."""
        made: object = self._function(text)
        if not isinstance(made, str):
            if isinstance(made, Coroutine):
                made.close()  # it is never awaited
            raise RedactionError(
                f"the redactor {self.identity} must return text, and returned "
                f"{type(made).__name__}; nothing was archived or summarised"
            )
        return Redacted(made, {"redacted": 1} if made != text else {})


def redactor_of(given: Redact) -> Redactor | None:
    """Return the redactor of a user's setting, or None; an invalid one is a `PolicyError`."""
    if given is None or given is False:
        return None
    if given is True or given == "secrets":
        given = default_redactor()
    if not isinstance(given, type) and isinstance(given, Redactor):
        if not isinstance(given.identity, str) or not given.identity:
            raise PolicyError("the identity of a redactor must be a text")
        if not _takes(given.redact, "a text", None):
            raise PolicyError(
                "the redact of a redactor must take a text and the name that it stands under, as "
                "in redact(text, key=None)"
            )
        _refuse_async(given.redact)
        return given
    if callable(given) and not isinstance(given, type):
        if not _takes(given, "a text"):
            raise PolicyError("a function that redacts must take a text, as in redact(text)")
        _refuse_async(given)
        return _Function(given)
    raise PolicyError(
        'redact must be True or "secrets" for the default redactor, a function from text to text, '
        f"or an object with identity and redact(text, key), not {given!r:.200}"
    )


def _refuse_async(function: Callable[..., Any]) -> None:
    if inspect.iscoroutinefunction(function):
        raise PolicyError("what redacts must not be async: it is called wherever texts are read")


def _takes(function: Callable[..., Any], *given: object) -> bool:
    try:
        inspect.signature(function).bind(*given)
    except TypeError:
        return False
    except ValueError:  # one that does not say what it takes
        return True
    return True


def for_view(redacted: Entry, original: Entry) -> Entry:
    """Return a redacted message whose clip may be shown to a provider.

    It has the original names of tools and speakers, and signed thoughts, which providers check.
    """
    made, source = redacted.source, original.source
    if made is source:
        return redacted
    content = made.content if is_message(made) else made.get("content")
    before = source.content if is_message(source) else source.get("content")
    update: dict[str, Any] = {}
    if isinstance(content, list) and isinstance(before, list) and len(content) == len(before):
        update["content"] = [
            old if isinstance(old, Mapping) and old.get("type") in _SIGNED else _renamed(new, old)
            for new, old in zip(content, before, strict=True)
        ]
    for name in ("name", "tool_calls"):
        old = getattr(source, name, None) if is_message(source) else source.get(name)
        new = getattr(made, name, None) if is_message(made) else made.get(name)
        if name == "name" and old is not None:
            update[name] = old
        elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            update[name] = [_renamed(n, o) for n, o in zip(new, old, strict=True)]
    shown = made.model_copy(update=update) if is_message(made) else {**made, **update}
    return _read(shown, original)


_SIGNED = ("thinking", "redacted_thinking", "reasoning")


def _renamed(new: Any, old: Any) -> Any:
    """Return a call with the original name of its tool."""
    if not isinstance(new, Mapping) or not isinstance(old, Mapping):
        return new
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
    redacted.key, redacted.id, redacted.given_id = entry.key, entry.id, entry.given_id
    redacted.redacted = True
    return redacted


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


def _name(entry: Entry) -> str:
    return f"{entry.key} {entry.digest}"


def _size(entry: Entry | None) -> int:
    return 0 if entry is None else len(entry.encoded.text)
