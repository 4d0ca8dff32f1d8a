"""Run recorded conversations again through a real agent, once under each policy."""

from __future__ import annotations
