"""Measure whether later needs survive a compaction, on any transcripts."""

from conspectus_lab.evaluate.api import beside, evaluate
from conspectus_lab.evaluate.compare import Change, Comparison, compare
from conspectus_lab.evaluate.config import read_config
from conspectus_lab.evaluate.conspectus_system import ConspectusSystem
from conspectus_lab.evaluate.exams import Asked, Planted, asked_of, planted_of
from conspectus_lab.evaluate.identifiers import identifiers
from conspectus_lab.evaluate.intervals import Mean
from conspectus_lab.evaluate.langchain_system import LangChainSystem, TailSystem
from conspectus_lab.evaluate.results import (
    Answers,
    Contexts,
    Difference,
    Evaluation,
    FutureUse,
    GoingOn,
    Lost,
    Noted,
    Rounds,
    Settings,
    Share,
    SystemResult,
)
from conspectus_lab.evaluate.systems import Compacted, Recalling, System, Thread
from conspectus_lab.evaluate.transcripts import Question, Transcript, questions_of

__all__ = [
    "Answers",
    "Asked",
    "Change",
    "Compacted",
    "Comparison",
    "ConspectusSystem",
    "Contexts",
    "Difference",
    "Evaluation",
    "FutureUse",
    "GoingOn",
    "LangChainSystem",
    "Lost",
    "Mean",
    "Noted",
    "Planted",
    "Question",
    "Recalling",
    "Rounds",
    "Settings",
    "Share",
    "System",
    "SystemResult",
    "TailSystem",
    "Thread",
    "Transcript",
    "asked_of",
    "beside",
    "compare",
    "evaluate",
    "identifiers",
    "planted_of",
    "questions_of",
    "read_config",
]
