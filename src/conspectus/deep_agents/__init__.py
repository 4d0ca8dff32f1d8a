"""Deep Agents with whole histories; needs the extra `deepagents`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conspectus._lazy import lazily
from conspectus.deep_agents.defaults import SummarizationDefaults, summarization_defaults

if TYPE_CHECKING:
    from conspectus.deep_agents.middleware import summarization_middleware
    from conspectus.deep_agents.wiring import create_deep_agent

__all__ = [
    "SummarizationDefaults",
    "create_deep_agent",
    "summarization_defaults",
    "summarization_middleware",
]


# They stand on LangChain's agents, and on the extra.
__getattr__ = lazily(
    __name__,
    {
        "create_deep_agent": "conspectus.deep_agents.wiring",
        "summarization_middleware": "conspectus.deep_agents.middleware",
    },
)
