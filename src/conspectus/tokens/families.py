"""Name the family of tokenizers and the maker of a model."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Literal, get_args

from conspectus.events.notes import log

Family = Literal["o200k", "cl100k", "deepseek", "claude", "unknown"]
"""Families of tokenizers. With `unknown` each piece of a text costs the most of them all."""

FAMILIES: tuple[Family, ...] = get_args(Family)

KNOWN: tuple[Family, ...] = FAMILIES[:-1]
"""The families with weights of their own, in the order of the weights."""

Maker = Literal["openai", "anthropic", "google", "unknown"]
"""Makers of models, whose rules count media; with `unknown`, the most."""

_MAKERS: tuple[tuple[Maker, str], ...] = (
    ("anthropic", r"claude|anthropic"),
    ("google", r"gemini|gemma|google|vertex"),
)

_NAMES: tuple[tuple[Family, str], ...] = (
    ("deepseek", r"deepseek"),
    ("claude", r"claude|anthropic"),
    ("o200k", r"o200k|gpt-?4o|gpt-?4[.-]1|gpt-?4\.5|gpt-?5|gpt-oss|chatgpt|\bo[1-9](?![0-9a-z])"),
    ("cl100k", r"cl100k|gpt-?4|gpt-?3\.?5|text-embedding-(?:3|ada)"),
)
"""Patterns by family, tried in turn; those of OpenAI follow its list of models and encodings."""

UNKNOWN = (
    "model {name!r} tells no tokenizer: each piece of a text is counted for the family that takes "
    "most of it; known are models of OpenAI, Anthropic and DeepSeek, and the families "
    + ", ".join(KNOWN)
    + "; name one of them, or give a token_counter"
)
"""The warning for a model whose name does not match a family."""

_FIELDS = ("model_name", "model", "model_id", "azure_deployment", "deployment_name")


def family_of(model: Any) -> Family:
    """Return the tokenizers of a model: a name, a family or a LangChain model.

    Example:
        >>> family_of("openai:gpt-4.1-mini"), family_of("gpt-4-turbo"), family_of("llama3")
        ('o200k', 'cl100k', 'unknown')
    """
    name = _name_of(model).lower()
    return next((family for family, pattern in _NAMES if re.search(pattern, name)), "unknown")


def maker_of(model: Any) -> Maker:
    """Return the maker whose rules count the tokens of media."""
    name = _name_of(model).lower()
    usual: Maker = "openai" if family_of(model) in ("o200k", "cl100k") else "unknown"
    return next((maker for maker, pattern in _MAKERS if re.search(pattern, name)), usual)


@lru_cache(256)
def say_unknown(name: str) -> None:
    """Log that a model's name names no tokenizer, once for each recent name."""
    log("tokenizer_unknown", "%s", UNKNOWN.format(name=name))


def named(model: Any) -> str:
    """Return the name of a model, or else its class."""
    return _name_of(model) or type(model).__name__


def _name_of(model: Any) -> str:
    if isinstance(model, str):
        return model
    for _ in range(8):  # bound tools wrap the model
        inner = getattr(model, "bound", None)
        if inner is None:
            break
        model = inner
    for field in _FIELDS:
        value = getattr(model, field, None)
        if isinstance(value, str) and value:
            return value
    return ""
