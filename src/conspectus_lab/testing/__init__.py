"""Suites and helpers for those who build on Conspectus."""
