"""Serve OpenAI's and Anthropic's protocols on loopback from a script, and fail on request.

`FaultServer` answers real clients of Chat Completions, Responses and Messages, streamed or whole.
The functions of `faults` make the faults.
"""

from fault_server import faults
from fault_server.faults import Answer, Reply, ToolCall
from fault_server.server import FaultServer, Request

__all__ = ["Answer", "FaultServer", "Reply", "Request", "ToolCall", "faults"]
