"""Keep an agent's conversation inside its model's window, and lose nothing.

Example:
    >>> from conspectus import Compactor
    >>> compactor = Compactor(window=8000, archive="memory:")
    >>> compactor.compact([{"role": "user", "content": "hi"}], thread_id="t").outcome
    'kept'
"""

from typing import TYPE_CHECKING

from conspectus._lazy import lazily, places_of

if TYPE_CHECKING:
    from conspectus._core.items import Window
    from conspectus._core.policy import Policy
    from conspectus._core.records import Cost, Record
    from conspectus._core.sizes import ContextSize, TriggerClause
    from conspectus.archive import Archive
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
    from conspectus.guard import ContextGuard
    from conspectus.ledger import Fact, Ledger
    from conspectus.messages import SUMMARY_LINE, is_summary_message
    from conspectus.middleware import SummarizationMiddleware
    from conspectus.recall import RecallResult
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


_MODULES = {
    "conspectus._core.items": "Window",
    "conspectus._core.policy": "Policy",
    "conspectus._core.sizes": "ContextSize TriggerClause",
    "conspectus._core.records": "Cost Record",
    "conspectus.archive": "Archive",
    "conspectus.compactor": "CompactionResult Compactor",
    "conspectus.errors": (
        "ArchiveError ArchiveOvertaken ArchiveTimeout ArchiveUnconfirmed ConspectusError "
        "InputError MessageError NotFoundError PolicyError RedactionError "
        "StuckError SummarizerOverflow SummarizerTimeout SummaryError SummaryRejected"
    ),
    "conspectus.ledger": "Fact Ledger",
    "conspectus.messages": "SUMMARY_LINE is_summary_message",
    "conspectus.recall": "RecallResult",
    "conspectus.redaction": "Redacted Redactor",
    "conspectus.summarize": (
        "ChatModelSummarizer EmbeddedSummarizer ExtractiveSummarizer Summarizer Summary "
        "SummaryRequest"
    ),
    "conspectus.tokens": "TokenMeter",
    "conspectus.guard": "ContextGuard",
    "conspectus.middleware": "SummarizationMiddleware",
}
_PLACES = places_of(_MODULES)


__getattr__ = lazily(__name__, _PLACES)
"""All names together take two seconds to import."""


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
