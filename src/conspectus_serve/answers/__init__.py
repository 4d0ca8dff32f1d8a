"""Answers of an upstream, read as they come, and what a client is to see of them."""
