"""Keep an agent's conversation inside its model's window, and lose nothing.

Example:
    >>> from conspectus import Compactor
    >>> compactor = Compactor(window=8000, archive="memory:")
    >>> compactor.compact([{"role": "user", "content": "hi"}], thread_id="t").outcome
    'kept'
"""

from typing import TYPE_CHECKING, Any

from conspectus.archive import Archive as Archive
from conspectus.core.records import Record as Record
from conspectus.engine import CompactionResult as CompactionResult
from conspectus.engine import Compactor as Compactor
from conspectus.errors import ArchiveError as ArchiveError
from conspectus.errors import ArchiveOvertaken as ArchiveOvertaken
from conspectus.errors import ArchiveTimeout as ArchiveTimeout
from conspectus.errors import ArchiveUnconfirmed as ArchiveUnconfirmed
from conspectus.errors import ConspectusError as ConspectusError
from conspectus.errors import InputError as InputError
from conspectus.errors import MessageError as MessageError
from conspectus.errors import NotFoundError as NotFoundError
from conspectus.errors import PolicyError as PolicyError
from conspectus.errors import RedactionError as RedactionError
from conspectus.errors import StuckError as StuckError
from conspectus.errors import SummarizerOverflow as SummarizerOverflow
from conspectus.errors import SummarizerTimeout as SummarizerTimeout
from conspectus.errors import SummaryError as SummaryError
from conspectus.errors import SummaryRejected as SummaryRejected
from conspectus.messages import SUMMARY_LINE as SUMMARY_LINE
from conspectus.messages import HostMessages as HostMessages
from conspectus.messages import add_host as add_host
from conspectus.messages import is_summary_message as is_summary_message
from conspectus.model import CallableSummarizer as CallableSummarizer
from conspectus.model import ChatModelSummarizer as ChatModelSummarizer
from conspectus.model import EmbeddedSummarizer as EmbeddedSummarizer
from conspectus.model import Summarizer as Summarizer
from conspectus.model import Summary as Summary
from conspectus.model import SummaryRequest as SummaryRequest
from conspectus.notes import Tool as Tool
from conspectus.recall import RecallResult as RecallResult
from conspectus.redaction import Redacted as Redacted
from conspectus.redaction import Redactor as Redactor

if TYPE_CHECKING:
    from conspectus.langchain import ContextGuard as ContextGuard
    from conspectus.langchain import SummarizationMiddleware as SummarizationMiddleware
else:
    __all__ = ["ContextGuard", "SummarizationMiddleware", "add_host", "is_summary_message"]
    __all__ += [
        name for name in globals() if name[0].isupper() and name not in ("Any", "TYPE_CHECKING")
    ]

__version__ = "0.1.0"


def __dir__() -> list[str]:
    return [*globals(), "ContextGuard", "SummarizationMiddleware"]


def __getattr__(name: str) -> Any:
    if name not in ("ContextGuard", "SummarizationMiddleware"):
        raise AttributeError(f"module 'conspectus' has no attribute {name!r}")
    import conspectus.langchain  # only now, as LangChain takes two seconds

    return getattr(conspectus.langchain, name)
