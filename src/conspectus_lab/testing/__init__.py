"""Test what builds on Conspectus."""
