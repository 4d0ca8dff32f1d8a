"""Loops of other SDKs kept inside their windows."""
