"""Keep an agent's conversation inside its model's window, and lose nothing.

Example:
    >>> from conspectus import Compactor
    >>> compactor = Compactor(window=8000, archive="memory:")
    >>> compactor.compact([{"role": "user", "content": "hi"}], thread_id="t").outcome
    'kept'
"""

import sys
from opcode import opmap
from typing import TYPE_CHECKING, Any

from conspectus.archive import Archive as Archive
from conspectus.core.records import Record as Record
from conspectus.engine import CompactionResult as CompactionResult
from conspectus.engine import Compactor as Compactor
from conspectus.engine import UndoResult as UndoResult
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

IMPORT_FROM = opmap["IMPORT_FROM"]  # what Python runs for `from conspectus import ...`

__version__ = "0.1.0"


def __dir__() -> list[str]:
    return [*globals(), "ContextGuard", "SummarizationMiddleware"]


ELSEWHERE = {
    "Fitter": "conspectus_sdk",
    "FittedSession": "conspectus_sdk.openai_agents",
    "FittingLogger": "conspectus_sdk.litellm_proxy",
    "create_deep_agent": "conspectus.deep_agents",
    "summarization_middleware": "conspectus.deep_agents",
    "load_config": "conspectus.config",
    "create_middleware": "conspectus.config",
    "create_summarization_middleware": "conspectus.config",
    "SummarizationConfig": "conspectus.config",
    "SummarizationNode": "conspectus.short_term",
    "RunningSummary": "conspectus.short_term",
    "summarize_messages": "conspectus.short_term",
    "asummarize_messages": "conspectus.short_term",
    "PreservedState": "conspectus.langchain",
    "Skills": "conspectus.langchain",
    "SummarizationEvent": "conspectus.langchain",
    "DEFAULT_SUMMARY_PROMPT": "conspectus.langchain",
    "ContextSize": "conspectus.langchain",
    "TokenCounter": "conspectus.langchain",
    "TokenMeter": "conspectus.tokens",
    "Scope": "conspectus.archive",
    "OpenTelemetry": "conspectus.observe",
}
"""Public names of other packages, which their users may have to install."""


def __getattr__(name: str) -> Any:
    if name in ELSEWHERE:
        text = f"it stands elsewhere: from {ELSEWHERE[name]} import {name}"
        caller = sys._getframe(1)
        # Python turns an AttributeError into an ImportError without its text.
        if caller.f_code.co_code[caller.f_lasti] == IMPORT_FROM:
            raise ImportError(f"cannot import name {name!r} from 'conspectus': {text}")
        raise AttributeError(f"module 'conspectus' has no attribute {name!r}; {text}")
    if name not in ("ContextGuard", "SummarizationMiddleware"):
        raise AttributeError(f"module 'conspectus' has no attribute {name!r}")
    import conspectus.langchain  # imported here, because LangChain takes two seconds

    return getattr(conspectus.langchain, name)
