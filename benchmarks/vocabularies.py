"""The real tokenizers that estimates are compared with: of four families, and of open models.

Four come with the package `litellm`. Claude's is not public: the reference is the last published
one, scaled to the 3.3 characters a token of English prose that are known of today's. Those of open
models are files in the form of the package `tokenizers`, in a folder that you name.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

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


def open_models(folder: Path) -> dict[str, Counter]:
    """Load a counter for each `NAME.json` of a folder."""
    return {file.stem: vocabulary(f"tokenizers:{file}") for file in sorted(folder.glob("*.json"))}
