"""Recorded conversations, run again through a real agent: what each policy would have done."""

from conspectus.replay.results import Compaction, Fact, Original, PolicyRun, Replay, Step
from conspectus.replay.run import replay

__all__ = ["Compaction", "Fact", "Original", "PolicyRun", "Replay", "Step", "replay"]
