"""The real tokenizers of four families, from files in a wheel of LiteLLM.

`make bench-tokens` puts them into `.venv/vocabularies`; `CONSPECTUS_VOCABULARIES` names another
folder. Claude's tokenizer is not public: the reference is the last published one, scaled to the
3.3 characters a token of English prose that are known of today's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from conspectus.tokens.vocabularies import vocabulary

ROOT = Path(__file__).resolve().parents[1]
CLAUDE = 15 / 11
"""The last published tokenizer of Claude takes a token for every 4.5 characters of English prose,
those of today one for about 3.3, as LangChain measured by Anthropic's counting API."""

INSIDE = "litellm/litellm_core_utils/tokenizers"

Counter = Callable[[str], float]


def folder() -> Path | None:
    """Find the folder of the vocabularies; None if there is none."""
    base = Path(os.environ.get("CONSPECTUS_VOCABULARIES") or ROOT / ".venv" / "vocabularies")
    found = base / INSIDE
    return found if (found / "anthropic_tokenizer.json").is_file() else None


def load(where: Path) -> Mapping[str, Counter]:
    """Load a counter for each family."""
    # The wheel has the files under the names by which tiktoken's own cache looks for them.
    os.environ["TIKTOKEN_CACHE_DIR"] = str(where)
    claude = vocabulary(f"tokenizers:{where / 'anthropic_tokenizer.json'}")
    return {
        "o200k": vocabulary("tiktoken:o200k_base"),
        "cl100k": vocabulary("tiktoken:cl100k_base"),
        "deepseek": vocabulary(f"tokenizers:{where / 'deepseek_tokenizer.json'}"),
        "claude": lambda text: claude(text) * CLAUDE,
    }
