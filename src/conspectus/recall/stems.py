"""Strip English words of their endings, so that question and answer share a term."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

REMEMBERED = 50_000  # Stems cached: finding one takes some 40 microseconds


@lru_cache(REMEMBERED)
def stem(word: str) -> str:
    """Return the Snowball stem of an English word in small letters; others stay."""
    if not word.isascii() or not word.isalpha():
        return word
    # One holds the word that it works on, so threads must not share it. The class itself, as the
    # package gives PyStemmer where that is installed, whose stems may be those of another version.
    return str(_english()().stemWord(word))


@lru_cache(1)
def rules() -> str:
    """Return the version of the stemming rules: the installed `snowballstemmer`."""
    try:
        return version("snowballstemmer")
    except PackageNotFoundError:  # a bundle without the papers of its packages
        return ""


@lru_cache(1)
def _english() -> Any:
    """Import the stemmer when it is first needed: the package imports all its languages."""
    from snowballstemmer.english_stemmer import EnglishStemmer  # type: ignore[import-untyped]

    return EnglishStemmer
