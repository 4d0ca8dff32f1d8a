"""Deep Agents with a history that is kept whole: `pip install "conspectus[deepagents]"`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    """What stands on LangChain's agents, and on the extra, imported when it is asked for."""
    if name == "summarization_middleware":
        from conspectus.deep_agents.middleware import summarization_middleware

        return summarization_middleware
    if name == "create_deep_agent":
        from conspectus.deep_agents.wiring import create_deep_agent

        return create_deep_agent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
