"""Serve three protocols on loopback, and fail on request.

`FaultServer` answers the real clients of OpenAI (Chat Completions, Responses) and Anthropic from a
script of answers and faults, streamed or whole. The functions of `faults` make the faults.

Example:
    >>> from fault_server import FaultServer, faults
    >>> from langchain_openai import ChatOpenAI
    >>> with FaultServer([faults.rate_limited(retry_after=7), "hello"]) as server:
    ...     model = ChatOpenAI(
    ...         model="gpt-5", base_url=server.openai_url, api_key="none", max_retries=0
    ...     )
    ...     try:
    ...         model.invoke("hi")
    ...     except Exception as error:
    ...         error.status_code, error.response.headers["retry-after"]
    ...     model.invoke("hi").text, len(server.requests)
    (429, '7')
    ('hello', 2)
"""

from fault_server import faults
from fault_server.faults import (
    Answer,
    Broken,
    Fault,
    HttpError,
    Reply,
    ToolCall,
    Usage,
)
from fault_server.request import Request
from fault_server.server import FaultServer

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
