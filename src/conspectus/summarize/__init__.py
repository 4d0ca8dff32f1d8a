"""Summarisers: the embedded one, chat models, and the checks that all of them must pass."""

from typing import TYPE_CHECKING

from conspectus._lazy import lazily, places_of

if TYPE_CHECKING:
    from conspectus.summarize.answers import composed, for_model
    from conspectus.summarize.base import Form, Summarizer, Summary, SummaryRequest
    from conspectus.summarize.callables import CallableSummarizer
    from conspectus.summarize.chat_model import ChatModelSummarizer
    from conspectus.summarize.checks import FLOOR, cut_short, problems, wrong_with
    from conspectus.summarize.embedded import EmbeddedSummarizer, ExtractiveSummarizer
    from conspectus.summarize.shares import NotesSetting, Shares

__all__ = [
    "FLOOR",
    "CallableSummarizer",
    "ChatModelSummarizer",
    "EmbeddedSummarizer",
    "ExtractiveSummarizer",
    "Form",
    "NotesSetting",
    "Shares",
    "Summarizer",
    "Summary",
    "SummaryRequest",
    "composed",
    "cut_short",
    "for_model",
    "problems",
    "wrong_with",
]

_MODULES = {
    "conspectus.summarize.answers": "composed for_model",
    "conspectus.summarize.base": "Form Summarizer Summary SummaryRequest",
    "conspectus.summarize.callables": "CallableSummarizer",
    "conspectus.summarize.chat_model": "ChatModelSummarizer",
    "conspectus.summarize.checks": "FLOOR cut_short problems wrong_with",
    "conspectus.summarize.embedded": "EmbeddedSummarizer ExtractiveSummarizer",
    "conspectus.summarize.shares": "NotesSetting Shares",
}
__getattr__ = lazily(__name__, places_of(_MODULES))
