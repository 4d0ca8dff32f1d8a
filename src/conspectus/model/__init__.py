"""Summarisers, and the checks that their texts must pass."""

from conspectus.model.base import EmbeddedSummarizer as EmbeddedSummarizer
from conspectus.model.base import Summarizer as Summarizer
from conspectus.model.base import Summary as Summary
from conspectus.model.base import SummaryRequest as SummaryRequest
from conspectus.model.callables import CallableSummarizer as CallableSummarizer
from conspectus.model.chat_model import ChatModelSummarizer as ChatModelSummarizer
