"""Middleware that stands last: what is really sent is measured, fitted and rescued."""
