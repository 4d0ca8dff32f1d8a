"""Common Han and Hangul characters and signs of tokenizers before 2024.

Those tokenizers spend one token on a common character and two or three on any other.
"""

from __future__ import annotations

import json
from importlib import resources

_FILE = resources.files("conspectus.tokens").joinpath("characters.json")
_SETS: dict[str, str] = json.loads(_FILE.read_text(encoding="utf-8"))

COMMON_HAN = frozenset(_SETS["common_han"])  # One token everywhere
KNOWN_HAN = frozenset(_SETS["known_han"])  # One token for some older tokenizers and two for others
COMMON_HANGUL = frozenset(_SETS["common_hangul"])  # One token for older tokenizers too
KNOWN_HANGUL = frozenset(_SETS["known_hangul"])  # One token since o200k, two or three before

COMMON_SIGNS = frozenset(_SETS["common_signs"])
"""Signs, and letters that stand alone, that are one token almost everywhere."""
