"""Suites and helpers for those who build on Conspectus; nothing in the library imports them."""
