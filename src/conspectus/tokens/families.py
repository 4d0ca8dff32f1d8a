"""Models by name: the family of their tokenizers, and the maker whose rules count media."""

from __future__ import annotations

import re
from typing import Any, Literal, get_args

from conspectus.observe import log

Family = Literal["o200k", "cl100k", "deepseek", "claude", "unknown"]
Maker = Literal["openai", "anthropic", "google", "unknown"]

FAMILIES: tuple[Family, ...] = get_args(Family)
KNOWN: tuple[Family, ...] = FAMILIES[:-1]

_OPENAI = r"o200k|gpt-?4o|gpt-?4[.-]1|gpt-?4\.5|gpt-?5|gpt-oss|chatgpt|\bo[1-9](?![0-9a-z])"
MODELS: tuple[tuple[str, Family, Maker], ...] = (
    (r"deepseek", "deepseek", "unknown"),
    (r"claude|anthropic", "claude", "anthropic"),
    (_OPENAI, "o200k", "openai"),
    (r"cl100k|gpt-?4|gpt-?3\.?5|text-embedding-(?:3|ada)", "cl100k", "openai"),
    (r"gemini|gemma|google|vertex", "unknown", "google"),
    (r"", "unknown", "unknown"),
)
"""Patterns of names, tried in turn; those of OpenAI follow its list of models and encodings."""

UNKNOWN = (
    "the tokenizer of the model {name!r} is not known, so its tokens are estimated a little high; "
    "give a token_counter for exact sizes"
)

_FIELDS = ("model_name", "model", "model_id", "azure_deployment", "deployment_name")
_warned: list[str] = []


def family_of(model: Any) -> Family:
    """Return the family of a model: a name, a family or a LangChain model.

    Example:
        >>> family_of("openai:gpt-4.1-mini"), family_of("gpt-4-turbo"), family_of("llama3")
        ('o200k', 'cl100k', 'unknown')
    """
    return family_and_maker(model)[0]


def family_and_maker(model: Any) -> tuple[Family, Maker]:
    """Return the family of a model, and the maker whose rules count the tokens of media."""
    name = _named(model)[1].lower()
    return next((family, maker) for pattern, family, maker in MODELS if re.search(pattern, name))


def warn_unknown(model: Any) -> None:
    """Log once in this process that a model's tokenizer is not known; never for a fake model."""
    model, name = _named(model)
    kinds = " ".join(one.__name__ for one in type(model).__mro__)
    fake = re.search("fake|scripted|mock", f"{name} {kinds}".lower())
    if name and name != "unknown" and not fake and not _warned:
        _warned.append(name)
        log("tokenizer_unknown", "%s", UNKNOWN.format(name=name))


def _named(model: Any) -> tuple[Any, str]:
    """Return the model inside bound tools, and its name or an empty text."""
    for _ in range(8):
        model = getattr(model, "bound", None) or model
    names = (getattr(model, field, None) for field in _FIELDS)
    name = model if isinstance(model, str) else next((n for n in names if n), "")
    return model, name if isinstance(name, str) else ""
