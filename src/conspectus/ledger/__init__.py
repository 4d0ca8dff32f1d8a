"""Exact facts out of messages, carried word for word.

`Ledger` holds facts in force, `Fact` is one of them, `facts_of` reads one message. No model is
involved: the same messages give the same facts. What the words of a language state is told by lists
in `wording`, one file a language, made to be checked and extended by whoever speaks it.
"""

from conspectus.ledger.book import Ledger
from conspectus.ledger.facts import Fact, facts_of, identifiers

__all__ = ["Fact", "Ledger", "facts_of", "identifiers"]
