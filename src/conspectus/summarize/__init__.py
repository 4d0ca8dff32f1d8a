"""Summarisers: the embedded one, chat models, and the checks that all of them must pass."""

from conspectus.summarize.base import Summarizer, Summary, SummaryRequest
from conspectus.summarize.callables import CallableSummarizer
from conspectus.summarize.chat_model import ChatModelSummarizer
from conspectus.summarize.checks import FLOOR, problems, with_missing_facts
from conspectus.summarize.extractive import ExtractiveSummarizer

__all__ = [
    "FLOOR",
    "CallableSummarizer",
    "ChatModelSummarizer",
    "ExtractiveSummarizer",
    "Summarizer",
    "Summary",
    "SummaryRequest",
    "problems",
    "with_missing_facts",
]
