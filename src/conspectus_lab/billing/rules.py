"""Hold the rules of each provider's cache, from their pages as read on 2026-11-23."""

from __future__ import annotations

import re

from conspectus_lab.billing.prefix_cache import FIVE_MINUTES, HALF_HOUR, CacheRules

ANTHROPIC = "https://platform.claude.com/docs/en/build-with-claude/prompt-caching"
OPENAI = "https://developers.openai.com/api/docs/guides/prompt-caching"
GEMINI = "https://ai.google.dev/gemini-api/docs/caching"

LEAST_OF_ANTHROPIC = {
    r"claude-(fable|mythos)|claude-(opus|sonnet|haiku)-5-5|claude-opus-5": 512,
    r"claude-opus-4-7|claude-(3-5-haiku|haiku-3)|claude-3-haiku": 2_048,
    r"claude-opus-4-[56]|claude-haiku-4-5": 4_096,
    r"claude": 1_024,
}
"""Tokens of the shortest cached prefix by model; the first match holds."""

LEAST_OF_GEMINI = {r"gemini-2\.5": 2_048, r"gemini": 4_096}
BREAKPOINTS, LOOK_BACK = 4, 20
"""Anthropic's breakpoints of one request, and positions searched before each."""

LATEST = 80
"""OpenAI's breakpoints that are searched, from GPT-5.6 on: the latest ones."""


def rules_for(model: str) -> CacheRules:
    """Return the rules of the cache of a model's provider.

    Args:
        model: its name, with or without a provider before it (`anthropic:claude-sonnet-5-5`), or as
            Bedrock names it.

    Returns:
        Those of Anthropic for `claude`, of Google for `gemini`, and of OpenAI for all others: every
        prefix from 1,024 tokens, in steps of 128; from GPT-5.6 on at a breakpoint behind the last
        block. Google names no lifetime of its implicit cache; five minutes are assumed.

    Example:
        >>> rules_for("claude-haiku-4-5-20251001").least, rules_for("gpt-5.4").step
        (4096, 128)
    """
    # Bedrock writes `us.anthropic.claude-haiku-4-5-20251001-v1:0`.
    name = (re.findall(r"(?:claude|gemini|gpt)[^/]*", model.lower()) or [""])[-1]
    for pattern, least in LEAST_OF_ANTHROPIC.items():
        if re.match(pattern, name):
            return CacheRules(least, breakpoints=BREAKPOINTS, look_back=LOOK_BACK, source=ANTHROPIC)
    for pattern, least in LEAST_OF_GEMINI.items():
        if re.match(pattern, name):
            return CacheRules(least, lifetime=FIVE_MINUTES, source=GEMINI)
    gpt = re.match(r"gpt-(\d+)(?:\.(\d+))?", name)
    if gpt is not None and (int(gpt[1]), int(gpt[2] or 0)) >= (5, 6):
        return CacheRules(
            1_024, breakpoints=BREAKPOINTS, moving=HALF_HOUR, look_back=LATEST, source=OPENAI
        )
    return CacheRules(1_024, step=128, lifetime=FIVE_MINUTES, source=OPENAI)
