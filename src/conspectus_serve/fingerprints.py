"""Fingerprint histories, so that they are recognised whatever their clients change in them.

A message is recognised by the parts that clients do not change: the user's words, the model's
words, the ids of its calls. Results of tools, thoughts, reminders and cache marks do not count,
because clients clear them. A message with words or calls is called *talk* here.
"""

from __future__ import annotations

import hashlib
import json
import marshal
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any

from conspectus._bounded_cache import BoundedCache
from conspectus.errors import MessageError
from conspectus.messages import Message, read_message
from conspectus.messages.blocks import blocks_of, first_id, kind_of, without_cache_marks
from conspectus.tokens import TokenMeter
from conspectus_serve.cleared import THOUGHTS, has_notice

_to_json = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode

_TAGS_OF_PASSING_TEXT = ("system-reminder", "think", "thinking", "thought", "reasoning")
"""Tags around parts of texts that clients add or remove from request to request."""

_ID_PART = re.compile(r"[A-Za-z0-9]{8,}+")
_LETTER_BESIDE_DIGIT = re.compile(r"(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")

CACHED_FINGERPRINTS = 16_384
"""Messages whose fingerprints are cached; clients send most of theirs with each request."""

NEWEST_ANSWERS = 32
"""This number of newest answers is looked up one by one. Before them, one answer is looked up at
each doubled distance, so that a few look-ups find a thread from far back."""

_DISTANCES = (*range(1, NEWEST_ANSWERS), *(NEWEST_ANSWERS << doubling for doubling in range(24)))
ANSWER_NAME_LENGTH = 4
"""The names of so many talk messages, up to an answer, name it."""


class UnknownMessage(dict[str, Any]):
    """A system message that replaces a message that the engine does not understand.

    So that message stays in view.
    """


@dataclass(frozen=True, slots=True, eq=False)
class Fingerprint:
    """The fingerprint of one message."""

    name: str  # hash of the parts that clients do not change; empty without such
    characters: int  # of the message as JSON
    is_talk: bool  # it has more than results of tools, and is no system message
    by_model: bool
    has_unique_ids: bool  # its ids are random, so no other message has its name
    is_unchanged: bool  # the engine reads the message as the client sent it
    has_notice: bool  # a notice replaces a result that the client has cleared
    tokens: int
    id_uses: tuple[str, ...] = ()  # ids of its calls, and of calls that it answers
    part_names: tuple[str, ...] = ()  # its names if the client keeps only one call or result


class _Numbering:
    """Gives messages with equal names different ones, in the order of the history.

    Repeated talk gets a number. A result whose id is not unique gets its name from the talk before
    it: a count of equal ids would change when a client deletes a turn.
    """

    def __init__(self, earlier: _Numbering | None = None) -> None:
        """Start a numbering, or continue a copy of another one."""
        self._name_counts: dict[str, int] = dict(earlier._name_counts) if earlier else {}
        self._id_counts: dict[str, int] = dict(earlier._id_counts) if earlier else {}
        self._hash_of_talk: str = earlier._hash_of_talk if earlier else ""

    def distinguish(self, fingerprint: Fingerprint) -> Fingerprint:
        """Return the fingerprint of the next message, with a unique name."""
        name = fingerprint.name
        if not name:
            return fingerprint
        comes_again = self._has_come_before(fingerprint.id_uses)
        if not fingerprint.is_talk and (comes_again or not fingerprint.has_unique_ids):
            name = _hash_of([name, self._hash_of_talk])
        number = self._name_counts.get(name, 0) + 1
        self._name_counts[name] = number
        if number > 1:
            name = f"{name}-{number}"
        if fingerprint.is_talk:
            self._hash_of_talk = _hash_of([self._hash_of_talk, name])
        return fingerprint if name == fingerprint.name else replace(fingerprint, name=name)

    def repeated_ids(self) -> set[str]:
        """Return the ids that were used more than once."""
        return {id_use for id_use, count in self._id_counts.items() if count > 1}

    def _has_come_before(self, id_uses: Sequence[str]) -> bool:
        """Count uses of ids; return whether one of them was used before."""
        comes_again = False
        for id_use in id_uses:
            count = self._id_counts.get(id_use, 0) + 1
            self._id_counts[id_use] = count
            comes_again |= count > 1
        return comes_again


@dataclass(frozen=True, slots=True)
class FingerprintedHistory:
    """A history with the fingerprints of its messages.

    The next request may send the same history and more. Then only the new messages are read, with
    `numbering` and `meter_hash`.
    """

    meter_hash: int  # of the protocol and of the way to estimate tokens
    sent: Sequence[Any] = ()  # the history as the client sent it
    messages: list[Any] = field(default_factory=list)  # as the engine reads them
    fingerprints: list[Fingerprint] = field(default_factory=list)
    tokens: int = 0
    numbering: _Numbering = field(default_factory=_Numbering)
    talk_names: list[str] = field(default_factory=list)
    answer_ends: list[int] = field(default_factory=list)
    """For each answer of the model, the number of talk messages up to it."""

    compared_names: Sequence[str] = ()
    """The names by which histories are compared: those of talk, or one name of the whole history if
    it has no talk."""

    answered_names: Sequence[str] = ()
    """The compared names up to the model's last answer; without an answer, all of them."""

    answer_names: Sequence[str] = ()
    """Names of answers with which a thread is looked up, the newest first."""

    def is_beginning_of(self, history: Sequence[Any], meter_hash: int) -> bool:
        """Tell whether a history begins with these messages."""
        return (
            meter_hash == self.meter_hash
            and len(self.sent) <= len(history)
            and all(map(is_, self.sent, history))
        )


_CACHE = BoundedCache[int, Fingerprint](CACHED_FINGERPRINTS)


def fingerprint_history(
    history: Sequence[Any],
    protocol: str,
    meter: TokenMeter,
    previous: FingerprintedHistory | None = None,
    read: Callable[[list[Any]], list[Fingerprint]] | None = None,
) -> FingerprintedHistory:
    """Fingerprint the messages of a history.

    Args:
        history: the messages as the client sends them.
        protocol: the name of their protocol. No two protocols have names in common.
        meter: counts their tokens.
        previous: an earlier history. If this one begins with its messages, they are not read again.
        read: does what `fingerprints_of` does. Default: `fingerprints_of` itself.

    System messages are no talk, because they may have the time in them.

    Raises:
        ValueError, TypeError, RecursionError: a message is no JSON object.
    """
    meter_hash = hash((protocol, meter.family, meter.maker))
    beginning = FingerprintedHistory(meter_hash)
    if previous is not None and previous.is_beginning_of(history, meter_hash):
        beginning = previous
    new_messages = history[len(beginning.sent) :]
    unnumbered = _cached_fingerprints(new_messages, protocol, meter, meter_hash, read)

    messages = list(beginning.messages)
    for message, fingerprint in zip(new_messages, unnumbered, strict=True):
        messages.append(message if fingerprint.is_unchanged else _understood(message)[0])
    numbering = _Numbering(beginning.numbering)
    numbered = beginning.fingerprints + [
        numbering.distinguish(fingerprint) for fingerprint in unnumbered
    ]
    fingerprints = _without_false_uniqueness(numbered, numbering.repeated_ids())
    new_fingerprints = fingerprints[len(beginning.fingerprints) :]

    talk_names = list(beginning.talk_names)
    answer_ends = list(beginning.answer_ends)
    for fingerprint in new_fingerprints:
        if fingerprint.is_talk:
            talk_names.append(fingerprint.name)
            if fingerprint.by_model:
                answer_ends.append(len(talk_names))
    compared_names = talk_names or [_hash_of([protocol, *messages])]
    ends = _possible_ends(answer_ends, len(talk_names))
    return FingerprintedHistory(
        meter_hash=meter_hash,
        sent=history,
        messages=messages,
        fingerprints=fingerprints,
        tokens=beginning.tokens + sum(fingerprint.tokens for fingerprint in new_fingerprints),
        numbering=numbering,
        talk_names=talk_names,
        answer_ends=answer_ends,
        compared_names=compared_names,
        answered_names=compared_names[: ends[-1]],
        answer_names=_answer_names(compared_names, ends),
    )


def _cached_fingerprints(
    messages: Sequence[Any],
    protocol: str,
    meter: TokenMeter,
    meter_hash: int,
    read: Callable[[list[Any]], list[Fingerprint]] | None,
) -> list[Fingerprint]:
    """Return the fingerprint of each message, without numbers; read those that are not cached."""
    keys = [_cache_key(message) ^ meter_hash for message in messages]
    fingerprints: dict[int, Fingerprint] = {}
    unread: dict[int, Any] = {}
    for key, message in zip(keys, messages, strict=True):
        cached = _CACHE.get(key)
        if cached is None:
            unread[key] = message
        else:
            fingerprints[key] = cached
    if unread:
        to_read = list(unread.values())
        fresh = read(to_read) if read else fingerprints_of(to_read, protocol, meter)
        for key, fingerprint in zip(unread, fresh, strict=True):
            fingerprints[key] = fingerprint
            _CACHE.put(key, fingerprint)
    return [fingerprints[key] for key in keys]


def _without_false_uniqueness(
    fingerprints: list[Fingerprint], repeated_ids: set[str]
) -> list[Fingerprint]:
    """Return fingerprints in which repeated ids no longer count as unique."""
    if not repeated_ids:
        return fingerprints
    return [
        replace(fingerprint, has_unique_ids=False)
        if fingerprint.has_unique_ids and not repeated_ids.isdisjoint(fingerprint.id_uses)
        else fingerprint
        for fingerprint in fingerprints
    ]


def _possible_ends(answer_ends: Sequence[int], talk_count: int) -> Sequence[int]:
    """Return the numbers of talk messages that an earlier request may have had, sorted.

    These are all numbers up to the first answer, and then the number up to each answer.
    """
    before_first = answer_ends[0] - 1 if answer_ends else talk_count
    return [*range(1, before_first + 1), *answer_ends] or [1]


def _answer_names(compared_names: Sequence[str], ends: Sequence[int]) -> list[str]:
    """Return the names of the answers that are looked up, the newest first.

    A name is made from the names of the last messages up to the answer. Their numbers are left out,
    because they change when a client drops its oldest messages.
    """
    names = []
    for distance in _DISTANCES:
        if distance > len(ends):
            break
        end = ends[-distance]
        last_names = compared_names[max(0, end - ANSWER_NAME_LENGTH) : end]
        names.append("-".join(map(without_number, last_names)))
    return names


def without_number(name: str) -> str:
    """Return a message's name without its number among equal messages."""
    return name.partition("-")[0]


def _cache_key(message: Any) -> int:
    """Return a hash of a message, with a secret key that lasts as long as this process."""
    try:
        return hash(marshal.dumps(message, 2))  # the fastest way to write a message
    except ValueError:  # a number of our own class, which keeps its text
        return hash(_to_json(message))


def _understood(message: Any) -> tuple[Any, Message]:
    """Return a message in the engine's form, without cache marks; and the message as read.

    An `UnknownMessage` replaces a message that the engine does not understand.
    """
    unmarked = without_cache_marks(message)
    with suppress(MessageError):
        entry = read_message(unmarked)
        if "role" in unmarked or "call_id" not in unmarked or entry.calls or entry.answers:
            return unmarked, entry
    unknown = UnknownMessage(role="system", content=json.dumps(unmarked, sort_keys=True))
    return unknown, read_message(unknown)


def fingerprints_of(messages: Sequence[Any], protocol: str, meter: TokenMeter) -> list[Fingerprint]:
    """Return the fingerprints of messages, without numbers among equal messages."""
    return [_fingerprint_of(message, protocol, meter) for message in messages]


def _fingerprint_of(message: Any, protocol: str, meter: TokenMeter) -> Fingerprint:
    if not isinstance(message, dict):
        raise TypeError("a message is no object")
    understood, whole = _understood(message)
    lasting = _without_passing_parts(understood)
    entry = whole if lasting == understood else read_message(lasting)
    call_ids = [call.id for call in entry.calls]
    ids = [*call_ids, *entry.answers]
    repeated_calls = _repeated_calls(understood)
    has_unique_ids = bool(ids) and all(map(is_random, ids)) and not repeated_calls
    words = [_lasting_text(entry.own)]
    if not has_unique_ids:  # then only the arguments distinguish calls
        words += [f"{call.name} {call.args}" for call in entry.calls]
    if repeated_calls:  # the engine reads only the first of them
        words.append(_to_json(repeated_calls))
    words = [] if _is_passing(message) else list(filter(None, words))
    named = [protocol, entry.role, *words]
    # Claude Code leaves out the other calls when it continues a long session. In other protocols
    # each result is a message, and missing results could not be put back.
    has_parts = has_unique_ids and len(ids) > 1 and protocol == "messages"
    id_uses = [f"call {call_id}" for call_id in call_ids]
    id_uses += [f"of {call_id}" for call_id in entry.answers]
    return Fingerprint(
        name=_hash_of([*named, *ids]) if words or ids else "",
        characters=len(_to_json(understood)),
        is_talk=bool(entry.calls or words) and entry.role != "system",
        by_model=entry.role == "assistant",
        has_unique_ids=has_unique_ids,
        is_unchanged=understood is message,
        has_notice=has_notice(whole),
        tokens=meter.count_entry(whole),
        id_uses=tuple(id_uses),
        part_names=tuple(_hash_of([*named, part_id]) for part_id in ids) if has_parts else (),
    )


def _repeated_calls(message: Mapping[str, Any]) -> list[Any]:
    """Return the calls of a message if two of them have the same id; else none."""
    listed_calls = [call for call in message.get("tool_calls") or () if isinstance(call, Mapping)]
    listed_ids = [call.get("id") for call in listed_calls]
    blocks = blocks_of(message)
    block_ids = list(
        filter(None, (first_id(block, kind_of(block).call_id_paths) for block in blocks))
    )
    if len(set(listed_ids)) == len(listed_ids) and len(set(block_ids)) == len(block_ids):
        return []
    return [*listed_calls, *blocks]


def _without_passing_parts(message: Any) -> dict[str, Any]:
    """Return a message without thoughts and pictures, which clients clear."""
    lasting = {name: part for name, part in message.items() if name not in THOUGHTS}
    content = message.get("content")
    if isinstance(content, list):
        lasting["content"] = [block for block in content if not _is_passing(block)]
    return lasting


def _is_passing(part: Any) -> bool:
    """Tell whether a block or an item is a thought or a picture, which clients clear."""
    is_part = isinstance(part, Mapping) and "role" not in part
    return is_part and (part.get("type") in THOUGHTS or bool(kind_of(part).media))


def _hash_of(values: Sequence[Any]) -> str:
    return hashlib.sha256(_to_json(values).encode()).hexdigest()[:24]


def is_random(name: str) -> bool:
    """Tell whether a name is random, and not a word or a count, such as `function12`."""
    return any(len(_LETTER_BESIDE_DIGIT.findall(part)) > 1 for part in _ID_PART.findall(name))


def _lasting_text(text: str) -> str:
    """Return a text without temporary parts; each run of white space becomes one space."""
    for tag in _TAGS_OF_PASSING_TEXT if "<" in text else ():
        text = _without_tag(text, f"<{tag}>", f"</{tag}>")
    return " ".join(text.split())


def _without_tag(text: str, opening: str, closing: str) -> str:
    """Return a text without two tags and all between them."""
    beginning, *pieces = text.split(opening)
    lasting = [beginning]
    for piece in pieces:
        _, closed, behind = piece.partition(closing)
        lasting.append(behind if closed else opening + piece)
    return "".join(lasting)
