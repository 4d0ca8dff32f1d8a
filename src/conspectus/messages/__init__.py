"""Messages of LangChain, OpenAI and Anthropic, read into one form and written back."""

from conspectus.messages.framing import (
    SUMMARY_LINE,
    is_summary_message,
    summary_message,
    summary_text,
)
from conspectus.messages.harmless import as_data
from conspectus.messages.hosts import HostMessages, add_host
from conspectus.messages.message import Call, Message, Source
from conspectus.messages.reading import read_message, read_messages

__all__ = [
    "SUMMARY_LINE",
    "Call",
    "HostMessages",
    "Message",
    "Source",
    "add_host",
    "as_data",
    "is_summary_message",
    "read_message",
    "read_messages",
    "summary_message",
    "summary_text",
]
