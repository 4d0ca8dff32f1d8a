"""Histories of each provider, their requests as its own package writes them, and its rules."""
