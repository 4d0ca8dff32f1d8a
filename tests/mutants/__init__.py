"""The tests, tested: defects planted one at a time, each of which a named test must catch."""
