"""Deep Agents with whole histories: `pip install "conspectus[deepagents]"`."""

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
    """Import what stands on LangChain's agents, and on the extra, when asked for it."""
    if name == "summarization_middleware":
        from conspectus.deep_agents.middleware import summarization_middleware

        return summarization_middleware
    if name == "create_deep_agent":
        from conspectus.deep_agents.wiring import create_deep_agent

        return create_deep_agent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
