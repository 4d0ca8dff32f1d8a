"""Serve an archive to any agent: a Model Context Protocol server, and hooks for Claude Code.

The engine imports nothing of this package. The server needs the extra `mcp`; hooks need nothing.
"""

from conspectus_mcp.grants import read_grants

__all__ = ["read_grants"]
