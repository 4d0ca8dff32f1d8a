"""The real tokenizers that estimates are compared with: of four families, and of open models.

Four come with the package `litellm`. Claude's is not public: the reference is the last published
one, scaled to the 3.3 characters a token of English prose that are known of today's. Those of open
models are files in the form of the package `tokenizers`, in a folder that you name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from conspectus.tokens.meter import vocabulary

CLAUDE = 15 / 11  # Tokens of today's Claude for one of its last published tokenizer

Counter = Callable[[str], float]


def families() -> dict[str, Counter]:
    """Load a counter for each family."""
    package = find_spec("litellm")
    if package is None or package.origin is None:
        raise SystemExit("the vocabularies are files of the package litellm: make setup")
    folder = Path(package.origin).parent / "litellm_core_utils" / "tokenizers"
    # The package has the files under the names by which tiktoken's own cache looks for them.
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    claude = vocabulary(f"tokenizers:{folder / 'anthropic_tokenizer.json'}")
    return {
        "o200k": vocabulary("tiktoken:o200k_base"),
        "cl100k": vocabulary("tiktoken:cl100k_base"),
        "deepseek": vocabulary(f"tokenizers:{folder / 'deepseek_tokenizer.json'}"),
        "claude": lambda text: claude(text) * CLAUDE,
    }


def token_starts() -> list[Callable[[str], list[int]]]:
    """Load, for each family, what counts the tokens that begin at each character of a text."""
    import tiktoken
    from tokenizers import Tokenizer

    families()  # names the folder for tiktoken
    folder = Path(os.environ["TIKTOKEN_CACHE_DIR"])
    starts = [_starts_of_encoding(tiktoken.get_encoding(f"{name}_base")) for name in BYTE_PAIRS]
    for name in ("deepseek", "anthropic"):
        starts.append(_starts_of_file(Tokenizer.from_file(str(folder / f"{name}_tokenizer.json"))))
    return starts


BYTE_PAIRS = ("o200k", "cl100k")


def _starts_of_encoding(encoding: Any) -> Callable[[str], list[int]]:
    def starts(text: str) -> list[int]:
        characters = [number for number, letter in enumerate(text) for _ in letter.encode()]
        places: list[int] = []
        at = 0
        for token in encoding.encode_ordinary(text):
            places.append(characters[at])
            at += len(encoding.decode_single_token_bytes(token))
        return _times(places, len(text))

    return starts


def _starts_of_file(tokenizer: Any) -> Callable[[str], list[int]]:
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def starts(text: str) -> list[int]:
        encoded = tokenizer.encode(text, add_special_tokens=False)
        return _times((first for first, _ in encoded.offsets), len(text))

    return starts


def _times(places: Iterable[int], size: int) -> list[int]:
    """Count how often each place occurs."""
    counts = [0] * size
    for place in places:
        counts[min(place, size - 1)] += 1
    return counts


def open_models(folder: Path) -> dict[str, Counter]:
    """Load a counter for each `NAME.json` of a folder."""
    return {file.stem: vocabulary(f"tokenizers:{file}") for file in sorted(folder.glob("*.json"))}
