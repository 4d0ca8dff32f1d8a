"""Conspectus keeps an agent's conversation inside its model's window, and loses nothing.

Example:
    >>> from conspectus import Compactor
    >>> compactor = Compactor(window=8000, archive="memory:")
    >>> compactor.compact([{"role": "user", "content": "hi"}], thread_id="t").outcome
    'kept'
"""

from typing import TYPE_CHECKING, Any

from conspectus._core.items import Window
from conspectus._core.policy import ContextSize, Policy, TriggerClause
from conspectus._core.records import Cost, Record
from conspectus.archive import Archive, RecallResult
from conspectus.compactor import CompactionResult, Compactor
from conspectus.errors import (
    ArchiveError,
    ArchiveOvertaken,
    ArchiveTimeout,
    ArchiveUnconfirmed,
    ConspectusError,
    InputError,
    MessageError,
    NotFoundError,
    PolicyError,
    RedactionError,
    StuckError,
    SummarizerOverflow,
    SummarizerTimeout,
    SummaryError,
    SummaryRejected,
)
from conspectus.ledger import Fact, Ledger
from conspectus.messages import SUMMARY_LINE, is_summary_message
from conspectus.redaction import Redacted, Redactor
from conspectus.summarize import (
    ChatModelSummarizer,
    EmbeddedSummarizer,
    ExtractiveSummarizer,
    Summarizer,
    Summary,
    SummaryRequest,
)
from conspectus.tokens import TokenMeter

if TYPE_CHECKING:
    from conspectus.guard import ContextGuard
    from conspectus.middleware import SummarizationMiddleware

__version__ = "0.1.0"

__all__ = [
    "SUMMARY_LINE",
    "Archive",
    "ArchiveError",
    "ArchiveOvertaken",
    "ArchiveTimeout",
    "ArchiveUnconfirmed",
    "ChatModelSummarizer",
    "CompactionResult",
    "Compactor",
    "ConspectusError",
    "ContextGuard",
    "ContextSize",
    "Cost",
    "EmbeddedSummarizer",
    "ExtractiveSummarizer",
    "Fact",
    "InputError",
    "Ledger",
    "MessageError",
    "NotFoundError",
    "Policy",
    "PolicyError",
    "RecallResult",
    "Record",
    "Redacted",
    "RedactionError",
    "Redactor",
    "StuckError",
    "SummarizationMiddleware",
    "Summarizer",
    "SummarizerOverflow",
    "SummarizerTimeout",
    "Summary",
    "SummaryError",
    "SummaryRejected",
    "SummaryRequest",
    "TokenMeter",
    "TriggerClause",
    "Window",
    "__version__",
    "is_summary_message",
]


def __getattr__(name: str) -> Any:
    """What stands on LangChain's agents, imported when it is asked for: they take a second."""
    if name == "SummarizationMiddleware":
        from conspectus.middleware import SummarizationMiddleware

        return SummarizationMiddleware
    if name == "ContextGuard":
        from conspectus.guard import ContextGuard

        return ContextGuard
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
