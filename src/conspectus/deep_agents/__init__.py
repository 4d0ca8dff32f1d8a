"""Deep Agents with complete histories; needs the extra `deepagents`."""

from conspectus.errors import install_command

try:
    from conspectus.deep_agents.middleware import DeepAgentsSummarization, summarization_defaults
    from conspectus.deep_agents.wiring import create_deep_agent
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "deepagents":
        raise
    raise ImportError(f"Deep Agents is not installed: {install_command('deepagents')}") from error

summarization_middleware = DeepAgentsSummarization

__all__ = ["create_deep_agent", "summarization_defaults", "summarization_middleware"]
