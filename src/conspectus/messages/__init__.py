"""Messages of LangChain, OpenAI and Anthropic, read into entries and written back."""

from conspectus.messages.arguments import has_long_arguments, with_short_arguments
from conspectus.messages.clipping import ARCHIVED, POINTER, clip, smallest_clip, with_pointer
from conspectus.messages.codec import decode, encode
from conspectus.messages.content import Call
from conspectus.messages.entries import Entry, Source, name_entries, occurrences
from conspectus.messages.framing import as_data
from conspectus.messages.memory import read_message, read_messages
from conspectus.messages.summary import (
    SUMMARY_LINE,
    is_summary_message,
    summary_message,
    summary_text,
)

__all__ = [
    "ARCHIVED",
    "POINTER",
    "SUMMARY_LINE",
    "Call",
    "Entry",
    "Source",
    "as_data",
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
    "with_pointer",
    "with_short_arguments",
]
