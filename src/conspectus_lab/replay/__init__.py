"""Run recorded conversations again through a real agent, under each policy."""

from conspectus_lab.replay.policies import Policy, ours
from conspectus_lab.replay.results import Compaction, Original, PolicyRun, Replay, Step
from conspectus_lab.replay.run import replay

__all__ = [
    "Compaction",
    "Original",
    "Policy",
    "PolicyRun",
    "Replay",
    "Step",
    "ours",
    "replay",
]
