"""Whether recall has anything to say to a turn that did not ask for it.

A query always finds its best messages, however little they fit. Who asks can judge that; a model
that is shown them unasked should not have to.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from conspectus.recall.flow import Hit
from conspectus.recall.words import Terms, query_of, terms_of

COMMON = 2
"""Words that a message shares with a turn if it is about the same; fewer if the turn has fewer."""

_COURTESIES = """
thanks thank okay ok yep yeah sure right go going on ahead continue proceed next more again now
well good great nice fine perfect excellent cool awesome hello hi hey bye morning sorry let lets
just keep try like want need help could
danke gut weiter bitte ja nein genau super prima hallo tschüss mach weiter
gracias vale sí bien perfecto hola adiós sigue continúa adelante por favor
merci oui non bien parfait bonjour salut continue vas-y d'accord s'il te vous plaît
谢谢 好的 继续 可以 对的 你好 再见 麻烦 不错
ありがとう ございます はい いいえ 続けて お願いします こんにちは
네 예 고마워요 감사합니다 계속 해주세요 좋아요 안녕하세요
"""
"""Words that go on with a conversation and say nothing of what it is about."""


def asks_for_something(turn: str) -> bool:
    """Whether there is anything in a turn to look for.

    Example:
        >>> asks_for_something("Thanks, go on!"), asks_for_something("Which port was it?")
        (False, True)
    """
    words, wholes = _asked(turn)
    return bool(words or wholes)


def fits(turn: str, hits: Sequence[Hit]) -> bool:
    """Whether one of the messages found is about what the turn is about: an identifier of it
    stands there, or two of its words, or all there are if it has only one.

    Args:
        turn: what the user says.
        hits: what was found for it.
    """
    words, wholes = _asked(turn)
    least = min(COMMON, len(words))
    for hit in hits:
        said = terms_of(f"{hit.name or ''} {hit.text} {hit.date or ''}")
        if wholes & set(said.wholes) or (words and len(words & set(said.words)) >= least):
            return True
    return False


def _asked(turn: str) -> tuple[frozenset[str], frozenset[str]]:
    whole = query_of(turn).whole
    return frozenset(whole.words) - frozenset(_courtesies().words), frozenset(whole.wholes)


@lru_cache(1)
def _courtesies() -> Terms:
    return terms_of(_COURTESIES)
