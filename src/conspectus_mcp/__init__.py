"""Serve an archive to any agent: a Model Context Protocol server, and hooks for Claude Code.

The engine, `conspectus`, imports nothing of this package. The server needs the extra `mcp`; the
hooks need nothing.
"""

from conspectus_mcp.grants import Grant, read_grants

__all__ = ["Grant", "read_grants"]
