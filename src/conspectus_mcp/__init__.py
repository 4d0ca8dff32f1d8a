"""Serve an archive to any agent: a Model Context Protocol server, and hooks for Claude Code.

The engine, `conspectus`, imports nothing of this package. The server needs the extra `mcp`; the
hooks need nothing.

Example:
    >>> from conspectus_mcp import Grant
    >>> Grant.of(["ann"]).allows("ann", "session-1"), Grant.of(["ann"]).allows("bob", "session-1")
    (True, False)
"""

from conspectus_mcp.grants import Client, Grant, read_grants

__all__ = ["Client", "Grant", "read_grants"]
