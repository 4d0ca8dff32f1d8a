"""Make a policy of a replay from a configuration."""

from __future__ import annotations

from typing import Any

from conspectus.config import SummarizationConfig
from conspectus.config.building import sizes_of, skills_of
from conspectus.config.named import counter_of, pin_of
from conspectus_lab.replay.policies import Policy, ours

NAME = "configured"


def configured(config: SummarizationConfig, window: int | None) -> Policy:
    """Make the middleware of a configuration, with a replay's summariser and store.

    Recall is left out: the agent of a transcript repeats its recorded words.

    Args:
        config: enabled.
        window: of the model that answers, in tokens; None if unknown, and then nothing is ever too
            large for it.

    Raises:
        ConfigError: a counter or a function cannot be loaded, or the trigger is a fraction of an
            unknown window.
    """
    given: dict[str, Any] = {
        **sizes_of(config, window),
        "token_counter": counter_of(config),
        "pin": pin_of(config),
        "skills": skills_of(config),
        "history": config.history,
        "max_summary_tokens": config.max_summary_tokens,
        "max_summarizer_tokens": config.max_summarizer_tokens,
        "trim_tokens_to_summarize": config.trim_tokens_to_summarize,
        "reserved_tokens": config.reserved_tokens,
        "file_tokens": config.file_tokens,
        "least_gain": config.least_gain,
        "stale_results": config.stale,
        "window": window,
    }

    # The model of a recording has no tokenizer and no window of its own.
    return ours(NAME, "this configuration", model=None, **given)
