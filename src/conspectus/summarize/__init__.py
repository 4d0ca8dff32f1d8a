"""Summarisers: the embedded one, chat models, and the checks that all of them must pass."""

from conspectus.summarize.answers import composed, for_model
from conspectus.summarize.base import Form, Summarizer, Summary, SummaryRequest
from conspectus.summarize.callables import CallableSummarizer
from conspectus.summarize.chat_model import ChatModelSummarizer
from conspectus.summarize.checks import FLOOR, cut_short, problems, wrong_with
from conspectus.summarize.embedded import EmbeddedSummarizer
from conspectus.summarize.shares import NotesSetting, Shares

ExtractiveSummarizer = EmbeddedSummarizer
"""The name that it had before."""

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
