"""Configure summarisation by the `summarization:` section of a YAML file.

`load_config` reads and checks it; `create_summarization_middleware` makes middleware of it, which
follows edits of the file from the next turn on.
"""

from typing import TYPE_CHECKING

from conspectus._lazy import lazily, places_of

if TYPE_CHECKING:
    from conspectus.config.building import ModelRegistry
    from conspectus.config.live import (
        ConfiguredGuard,
        ConfiguredSummarization,
        create_middleware,
        create_summarization_middleware,
    )
    from conspectus.config.loading import load_config
    from conspectus.config.schema import SubagentSettings, SummarizationConfig
    from conspectus.config.values import AllOf, Size
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

_MODULES = {
    "conspectus.config.building": "ModelRegistry",
    "conspectus.config.live": (
        "ConfiguredGuard ConfiguredSummarization create_middleware create_summarization_middleware"
    ),
    "conspectus.config.loading": "load_config",
    "conspectus.config.schema": "SubagentSettings SummarizationConfig",
    "conspectus.config.values": "AllOf Size",
    "conspectus.errors": "ConfigError",
}
__getattr__ = lazily(__name__, places_of(_MODULES))
