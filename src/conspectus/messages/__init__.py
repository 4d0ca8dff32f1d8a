"""Messages of LangChain, OpenAI and Anthropic, read into one form and written back."""

from conspectus.messages.framing import (
    SUMMARY_LINE,
    as_data,
    is_summary_message,
    summary_message,
    summary_text,
)
from conspectus.messages.message import (
    Call,
    Message,
    Source,
    characters,
    decode,
    encode,
    name_entries,
    occurrences,
)
from conspectus.messages.reading import read_message, read_messages
from conspectus.messages.shortening import (
    ARCHIVED,
    POINTER,
    clip,
    has_long_arguments,
    smallest_clip,
    with_short_arguments,
)

__all__ = [
    "ARCHIVED",
    "POINTER",
    "SUMMARY_LINE",
    "Call",
    "Message",
    "Source",
    "as_data",
    "characters",
    "clip",
    "decode",
    "encode",
    "has_long_arguments",
    "is_summary_message",
    "name_entries",
    "occurrences",
    "read_message",
    "read_messages",
    "smallest_clip",
    "summary_message",
    "summary_text",
    "with_short_arguments",
]
