"""Summarisers, and the checks that their texts must pass."""

from typing import TYPE_CHECKING

from conspectus._lazy import lazily, places_of

if TYPE_CHECKING:
    from conspectus.model.base import EmbeddedSummarizer as EmbeddedSummarizer
    from conspectus.model.base import Summarizer as Summarizer
    from conspectus.model.base import Summary as Summary
    from conspectus.model.base import SummaryRequest as SummaryRequest
    from conspectus.model.callables import CallableSummarizer as CallableSummarizer
    from conspectus.model.chat_model import ChatModelSummarizer as ChatModelSummarizer

_MODULES = {
    "conspectus.model.base": "EmbeddedSummarizer Summarizer Summary SummaryRequest",
    "conspectus.model.callables": "CallableSummarizer",
    "conspectus.model.chat_model": "ChatModelSummarizer",
}
__getattr__ = lazily(__name__, places_of(_MODULES))
