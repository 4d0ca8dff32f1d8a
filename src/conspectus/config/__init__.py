"""Configure summarisation with the section `summarization:` of a YAML file.

`load_config` reads and checks it; `create_middleware` makes the middleware of an agent.
"""

from conspectus.config.building import ModelRegistry as ModelRegistry
from conspectus.config.building import create_middleware as create_middleware
from conspectus.config.building import (
    create_summarization_middleware as create_summarization_middleware,
)
from conspectus.config.schema import SizeSetting as SizeSetting
from conspectus.config.schema import SummarizationConfig as SummarizationConfig
from conspectus.config.schema import json_schema as json_schema
from conspectus.config.schema import load_config as load_config
from conspectus.errors import ConfigError as ConfigError
