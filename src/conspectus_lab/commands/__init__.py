"""Commands of the lab, found by their entry points."""
