"""Two recorded sessions, with the tools that were called in them, and a replay of every call."""
