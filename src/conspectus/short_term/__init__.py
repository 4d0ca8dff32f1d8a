"""LangMem's short-term memory on our engine, with the same functions and the same node.

Example:
    >>> from conspectus.short_term import RunningSummary  # instead of langmem.short_term
    >>> RunningSummary("So far so good.", {"m1"}, "m1").summary
    'So far so good.'
"""

from conspectus.short_term.api import (
    SummarizationNode,
    asummarize_messages,
    summarize_messages,
)
from conspectus.short_term.prompts import (
    DEFAULT_EXISTING_SUMMARY_PROMPT,
    DEFAULT_FINAL_SUMMARY_PROMPT,
    DEFAULT_INITIAL_SUMMARY_PROMPT,
)
from conspectus.short_term.running_summary import RunningSummary, SummarizationResult
from conspectus.short_term.settings import TokenCounter

__all__ = [
    "DEFAULT_EXISTING_SUMMARY_PROMPT",
    "DEFAULT_FINAL_SUMMARY_PROMPT",
    "DEFAULT_INITIAL_SUMMARY_PROMPT",
    "RunningSummary",
    "SummarizationNode",
    "SummarizationResult",
    "TokenCounter",
    "asummarize_messages",
    "summarize_messages",
]
