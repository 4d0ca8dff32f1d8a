"""Compactions as plain data: what one did, and what it cost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache
from itertools import takewhile
from types import UnionType
from typing import Any, Literal, NamedTuple, TypeVar, cast, get_args, get_origin, get_type_hints

from conspectus.core.items import Size

T = TypeVar("T")
FORMAT = 2
"""The version of the plain form. A reader refuses any other version."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of summarising: calls of models, and their tokens.

    Attributes:
        calls: number of calls of a model. The embedded summariser makes none.
        input_tokens: tokens that were sent, as the model reports them, or an estimate.
        output_tokens: tokens that were received, likewise.
        cached_tokens: input tokens that the provider read from its cache, as reported.
        reasoning_tokens: output tokens of reasoning, as reported.
        estimated_calls: number of successful calls whose tokens are an estimate.
        written_tokens: input tokens that the provider wrote to its cache, as reported.
        hour_tokens: the part of `written_tokens` that the cache keeps for an hour.
        models: the costs by the name of the model, or of the summariser if its model has no name;
            empty if unknown. It is ignored when costs are compared.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    estimated_calls: int = 0
    written_tokens: int = 0
    hour_tokens: int = 0
    models: Mapping[str, Cost] = field(default_factory=dict, compare=False)

    @property
    def tokens(self) -> int:
        """The sum of input and output tokens."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Cost) -> Cost:
        models = dict(self.models)
        for name, cost in other.models.items():
            models[name] = models[name] + cost if name in models else cost
        sums = {name: getattr(self, name) + getattr(other, name) for name in COUNTS}
        return Cost(**sums, models=models)

    def __repr__(self) -> str:
        counts = {name: getattr(self, name) for name in COUNTS if getattr(self, name)}
        parts = counts | ({"models": [*self.models]} if self.models else {})
        return f"Cost({', '.join(f'{name}={value}' for name, value in parts.items())})"

    def asked_of(self, model: str) -> Cost:
        """Return the same cost, of calls of one model.

        Example:
            >>> spent = Cost(1, 90, 10).asked_of("small") + Cost(1, 5, 5).asked_of("large")
            >>> spent.models["small"].tokens, spent.tokens
            (100, 110)
        """
        return replace(self, models={model: replace(self, models={})})

    def to_json(self) -> dict[str, Any]:
        """Return the cost as plain data, without numbers that are 0."""
        return dict(to_plain(self))


# Names of the counts of a cost.
COUNTS = tuple(part.name for part in fields(Cost) if part.name != "models")


@dataclass(frozen=True, slots=True)
class Draft:
    """A finished summary that is not committed yet."""

    body: str  # the text of the summary message, without its first line and its note
    by: str  # name of the summariser
    read: tuple[str, ...]  # keys of the originals that the summariser read whole
    cost: Cost = field(default_factory=Cost)
    tokens: int = 0  # tokens of the whole summary message; 0 until it is measured
    cut: int = 0  # as in `Record`
    notes: Mapping[str, Any] = field(default_factory=dict)  # the notes so far, as plain data
    request_kind: str = ""  # as in `Record`
    seconds: float = field(default=0.0, compare=False)  # how long writing took

    def to_json(self) -> dict[str, Any]:
        """Return the draft as plain JSON data."""
        return {"v": FORMAT, **to_plain(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Draft:
        """Read a draft that `to_json` wrote; a `TypeError` if a part of it is missing."""
        return from_plain(cls, data)


@dataclass(frozen=True, slots=True)
class RecordedClip:
    """One clipped message, as a record describes it."""

    key: str  # of the original
    # Hash of the clipped text. It identifies the clip when it comes back, even with another id. It
    # is empty if the original is in no archive, because then no clip comes back.
    text_hash: str
    limit: int  # the most tokens that the clip takes, by the estimate without a correction
    # The words in the clip that say where its original is; empty if it is in the archive.
    pointer: str = ""


_LEFT_OUT: dict[str, Any] = {"notes": {}, "bill": {}, "tokens_after": 0}
"""What stands in a record, while its id is made, for the parts that do not change it."""


def _id_of(text: str) -> str:
    """Return the id of a record that is this text as JSON."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Record:
    """One finished compaction.

    Attributes:
        id: a hash of all other attributes except `notes`, `bill` and `tokens_after`. Equal
            compactions have equal ids.
        parent: the id of the record before it; None for the first record of a thread.
        covers: keys of the originals that it evicted, in the order of the conversation.
        clips: the messages that are clipped from this compaction on.
        summary: the text of the summary of all messages that were evicted so far, also if this
            compaction only clips; empty if no message was evicted so far.
        notes: all notes so far, as plain data; empty if this compaction only clips.
        cause: what caused the compaction, such as the trigger.
        tokens_before: tokens of the view before the compaction.
        tokens_after: tokens of the view after it.
        messages_after: number of messages in the view after it.
        archived: whether the archive has confirmed the originals.
        by: the name of the summariser; empty if this compaction only clips.
        cost: calls and tokens of the summarisers, those of failed attempts included.
        redacted: number of secrets that were removed from its originals, by kind.
        cut: tokens that are known to be missing at the end of the summary, because it was too long
            or ended at a limit of its model (then at least 1); 0 if it is complete.
        order: keys in the order of the conversation: of the evicted messages, and of messages that
            stay although they come before the last evicted one, unless an earlier record names
            them; empty if there is no such message.
        stayed: keys of the messages that stay after the last evicted one, in order. They identify
            a history whose client no longer sends its beginning.
        clients_own: keys of the evicted messages that the client had sent in place of others, such
            as its own summary. The new summary replaces these messages.
        request_kind: `"cached"` if the request for the summary was an instruction after the agent's
            last request; `"smallest"` if it was a separate request; empty if there was no request.
        foreign: whether it covers a summary whose originals are not in the archive: of another
            library, or of a time without an archive.
        may_need_joining: True if no model has yet answered two user messages in a row in this
            history. Some models refuse two user messages in a row. So, with
            `alternate_roles="auto"`, views join such messages.
        joined: if such messages are joined: the user messages that became one message with the
            summary. It has the size of each and, if there are several, what else they contained.
        corrections: the ratios by which its estimates were corrected, by family of tokenizers;
            empty if there were none.
        tokens_since_model: tokens that were evicted since the last compaction for which a model
            wrote the summary, and before this one.
        messages_since_model: number of messages that were evicted in that time.
        bill: other costs: `seconds` in total, the seconds that the caller `waited`, and `money` in
            US dollars if all prices are known. It is ignored when records are compared.
    """

    id: str
    parent: str | None
    covers: tuple[str, ...]
    clips: tuple[RecordedClip, ...]
    summary: str
    notes: Mapping[str, Any]
    cause: str
    tokens_before: int
    tokens_after: int
    messages_after: int
    archived: bool
    by: str
    cost: Cost
    redacted: Mapping[str, int] = field(default_factory=dict)
    cut: int = 0
    order: tuple[str, ...] = ()
    stayed: tuple[str, ...] = ()
    clients_own: tuple[str, ...] = ()
    request_kind: str = ""
    foreign: bool = False
    may_need_joining: bool = False
    joined: tuple[Mapping[str, Any], ...] = ()
    corrections: Mapping[str, float] = field(default_factory=dict)
    tokens_since_model: int = 0
    messages_since_model: int = 0
    bill: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        sizes = f"{self.tokens_before:,} → {self.tokens_after:,} tokens"
        parts = f"{len(self.covers):,} messages evicted, {len(self.clips):,} clipped"
        return f"<Record {self.id}: {sizes}, {parts}{f', by {self.by}' if self.by else ''}>"

    @property
    def notes_number(self) -> str:
        """Six digits in the summary message, by which branches are distinguished.

        They are made from the covered keys, so they are known before the summary is written.
        """
        return notes_number_of(self.parent or "", self.covers, [clip.key for clip in self.clips])

    @property
    def signature(self) -> str:
        """Its number and its summary, by which it is recognised if its summary comes back."""
        return f"{self.notes_number}\n{self.summary}"

    @property
    def size_after(self) -> Size:
        """The size of the view after the compaction."""
        return Size(self.tokens_after, self.messages_after)

    @classmethod
    def make(cls, **parts: Any) -> Record:
        """Make a record, with the id that is the hash of its parts.

        The hash leaves out the notes, because the summary is made of them, and the size after the
        compaction, because the summary message that is measured has the id in it.
        """
        bare = cls(id="", **(parts | _LEFT_OUT))
        text = json.dumps(bare.to_json(), sort_keys=True, ensure_ascii=True)
        return cls(id=_id_of(text), **parts)

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain JSON data."""
        return {"v": FORMAT, **to_plain(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Record:
        """Read a record that `to_json` wrote. Parts that a newer version added are ignored.

        So workers of two versions can serve one thread.

        Raises:
            ValueError: it was written in a newer format, or is not a record.
            TypeError: a part is missing, or has the wrong type.
        """
        if data.get("v") != FORMAT:
            raise ValueError(f"record format {data.get('v')!r} is not {FORMAT}")
        return from_plain(cls, data)


def notes_number_of(parent: str, covers: Sequence[str], clips: Sequence[str]) -> str:
    """Make the number of a record's notes from the keys that it covers, and of what it clips.

    `parent` is the id of the record before it; empty for the first one.
    """
    parts = [parent or None, [*covers], [*clips]]
    return f"{int(hashlib.sha256(json.dumps(parts).encode()).hexdigest(), 16) % 10**6:06}"


Chain = tuple[Record, ...]
"""Records from the first of a history to its head.

A chain from an archive may be *lean*: only its newest record is sure to have its summary, and only
the newest record with notes is sure to have them. Each record has all notes so far, so those of
earlier records are seldom needed. What a record covers and clips is always there. So records are
compared by their ids.
"""


def without_undone(chain: Chain, undone: Collection[str]) -> Chain:
    """Return a chain up to its first record that was taken back."""
    return tuple(takewhile(lambda record: record.id not in undone, chain)) if undone else chain


# Dataclasses as plain JSON data, and back, each part checked by its annotation


def to_plain(value: Any) -> Any:
    """Return a dataclass as plain data, without fields that have their default."""
    if value is None or isinstance(value, (str, int, float, list)):  # plain already
        return value
    if isinstance(value, tuple):
        if {*map(type, value)} <= {str}:  # often a hundred thousand keys
            return [*value]
        return [to_plain(part) for part in value]
    if isinstance(value, Mapping):
        return {name: to_plain(part) for name, part in value.items()}
    plain: dict[str, Any] = {}
    kind: Any = type(value)
    for name, form in _forms_of(kind).items():
        part = getattr(value, name)
        if part != form.default:
            plain[name] = to_plain(part)
    return plain


def from_plain(cls: type[T], data: Any) -> T:
    """Read what `to_plain` wrote; fields that a newer version added are left out.

    Raises:
        TypeError: a field is missing, or is not of its type.
    """
    if not isinstance(data, Mapping):
        raise TypeError(f"a {cls.__name__} is no {type(data).__name__}")
    kind: Any = cls
    forms = _forms_of(kind)
    known = (name for name in data if name in forms)
    return cls(**{name: _read(forms[name].hint, data[name]) for name in known})


class _FieldForm(NamedTuple):
    """What a field of a dataclass may hold."""

    hint: Any  # its annotation
    default: Any  # `MISSING` for none


@cache
def _forms_of(cls: Any) -> dict[str, _FieldForm]:
    """Return the form of each field that a constructor takes."""
    hints = get_type_hints(cls)
    forms: dict[str, _FieldForm] = {}
    for part in fields(cls):
        if not part.init:
            continue
        default: Any = part.default
        if part.default_factory is not MISSING:
            default = part.default_factory()
        forms[part.name] = _FieldForm(hints[part.name], default)
    return forms


def _read(hint: Any, value: Any) -> Any:
    """Return a value with this annotation, or raise `TypeError`."""
    if hint is Any or type(value) is hint or (hint is float and type(value) is int):
        return value
    if is_dataclass(hint):
        return from_plain(cast("type[Any]", hint), value)
    origin = get_origin(hint)
    args = get_args(hint)
    if origin is UnionType:  # each of these is `X | None`, with None last
        return None if value is None else _read(args[0], value)
    if origin is Literal and value in args:
        return value
    if origin is Mapping and isinstance(value, Mapping):
        return {str(name): _read(args[1], part) for name, part in value.items()}
    if origin is tuple and isinstance(value, (list, tuple)):
        if args == (str, ...) and {*map(type, value)} <= {str}:  # often a hundred thousand keys
            return tuple(value)
        kinds = args[:1] * len(value) if args[-1] is Ellipsis else args
        if len(kinds) == len(value):
            return tuple(map(_read, kinds, value))
    raise TypeError(f"{value!r} is no {hint}")
