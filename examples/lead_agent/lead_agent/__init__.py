"""A lead agent from one `config.yaml`; `main.py` beside this folder runs it."""

from lead_agent.agent import LeadAgent
from lead_agent.errors import LeadAgentError

__all__ = ["LeadAgent", "LeadAgentError"]
