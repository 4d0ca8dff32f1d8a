"""Exact facts out of messages, carried word for word."""

from conspectus.ledger.book import Ledger
from conspectus.ledger.facts import Fact, facts_of, identifiers

__all__ = ["Fact", "Ledger", "facts_of", "identifiers"]
