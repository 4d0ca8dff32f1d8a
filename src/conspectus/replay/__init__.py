"""Recorded conversations, run again through a real agent: what each policy would have done."""

from conspectus.replay.results import Compaction, Fact, Original, PolicyRun, Replay, Step

__all__ = ["Compaction", "Fact", "Original", "PolicyRun", "Replay", "Step"]
