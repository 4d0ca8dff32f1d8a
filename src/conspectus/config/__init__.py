"""Configure summarisation by the `summarization:` section of a YAML file.

`load_config` reads and checks it; `create_middleware` makes the middleware of an agent, which
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
    from conspectus.config.schema import Size, SubagentSettings, SummarizationConfig, json_schema
    from conspectus.errors import ConfigError

_MODULES = {
    "conspectus.config.building": "ModelRegistry",
    "conspectus.config.live": (
        "ConfiguredGuard ConfiguredSummarization create_middleware create_summarization_middleware"
    ),
    "conspectus.config.loading": "load_config",
    "conspectus.config.schema": "Size SubagentSettings SummarizationConfig json_schema",
    "conspectus.errors": "ConfigError",
}
__all__ = [
    "ConfigError",
    "ConfiguredGuard",
    "ConfiguredSummarization",
    "ModelRegistry",
    "Size",
    "SubagentSettings",
    "SummarizationConfig",
    "create_middleware",
    "create_summarization_middleware",
    "json_schema",
    "load_config",
]
__getattr__ = lazily(__name__, places_of(_MODULES))
