"""The pure core: standard library only; no clock, I/O, randomness or logging."""
