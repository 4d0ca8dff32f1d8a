"""Summarisation switched on by an operator: the `summarization:` section of a YAML file.

`load_config` reads and checks it, `create_summarization_middleware` makes middleware of it, which
takes an edited file into account at the next turn.
"""

from conspectus.config.building import ModelRegistry
from conspectus.config.live import (
    ConfiguredGuard,
    ConfiguredSummarization,
    create_middleware,
    create_summarization_middleware,
)
from conspectus.config.loading import load_config
from conspectus.config.schema import AllOf, Size, SubagentSettings, SummarizationConfig
from conspectus.errors import ConfigError

__all__ = [
    "AllOf",
    "ConfigError",
    "ConfiguredGuard",
    "ConfiguredSummarization",
    "ModelRegistry",
    "Size",
    "SubagentSettings",
    "SummarizationConfig",
    "create_middleware",
    "create_summarization_middleware",
    "load_config",
]
