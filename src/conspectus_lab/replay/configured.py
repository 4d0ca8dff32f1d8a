"""Make a policy of a replay from a configuration."""

from __future__ import annotations

from conspectus.config import SummarizationConfig
from conspectus.config.building import sizes_of, skills_of
from conspectus.config.named import counter_of, pin_of
from conspectus_lab.replay.policies import Policy, ours

PASSED_ON = (
    "history max_summary_tokens max_summarizer_tokens trim_tokens_to_summarize reserved_tokens "
    "file_tokens least_gain notes"
).split()
"""Settings that the middleware takes under the same name."""


def configured(config: SummarizationConfig, window: int | None) -> Policy:
    """Make the middleware of a configuration, with a replay's summariser and store.

    Recall is left out, as the agent of a transcript repeats its recorded words; so are the
    background, redaction and the provider's cache.

    Args:
        config: enabled.
        window: of the model that answers, in tokens; None if unknown, and then nothing is ever too
            large for it.

    Raises:
        ConfigError: a counter or a function cannot be loaded, or the trigger is a fraction of an
            unknown window.
    """
    return ours(
        "configured",
        "this configuration",
        model=None,  # that of a recording has no tokenizer and no window of its own
        window=window,
        token_counter=counter_of(config),
        pin=pin_of(config),
        skills=skills_of(config),
        stale_results=config.stale,
        **sizes_of(config, window),
        **{name: getattr(config, name) for name in PASSED_ON},
    )
