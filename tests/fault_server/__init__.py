"""Serve OpenAI's and Anthropic's protocols on loopback from a script, and fail on request.

`FaultServer` answers real clients of Chat Completions, Responses and Messages, streamed or whole.
The functions of `faults` make the faults.
"""

from fault_server import faults
from fault_server.faults import Answer, Broken, Fault, HttpError, Reply, ToolCall, Usage
from fault_server.server import FaultServer, Request

__all__ = [
    "Answer",
    "Broken",
    "Fault",
    "FaultServer",
    "HttpError",
    "Reply",
    "Request",
    "ToolCall",
    "Usage",
    "faults",
]
