"""Measure how much of what is needed later survives a compaction, on any transcripts."""

from conspectus_lab.evaluate.inputs import read_config, read_questions
from conspectus_lab.evaluate.results import Evaluation, Lost, Measured, Result, Settings, worse
from conspectus_lab.evaluate.run import Question, Transcript, evaluate
from conspectus_lab.evaluate.systems import Compacted, ConspectusSystem, LangChainSystem, System

__all__ = [
    "Compacted",
    "ConspectusSystem",
    "Evaluation",
    "LangChainSystem",
    "Lost",
    "Measured",
    "Question",
    "Result",
    "Settings",
    "System",
    "Transcript",
    "evaluate",
    "read_config",
    "read_questions",
    "worse",
]
