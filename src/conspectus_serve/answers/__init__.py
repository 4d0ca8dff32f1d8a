"""Join the whole answers of several requests into the one that the client sees."""
