"""What users and systems state, word for word, and which of it stands where not all fits.

`statements` says what each sentence of a message states, `choose` which of the users' words stand
in a room, `Ledger` holds the statements in force. No model is involved: the same messages give the
same answers. What the words of a language state is in `words`, made to be checked and extended by
whoever speaks it.
"""

from conspectus.ledger.book import Ledger, facts_of
from conspectus.ledger.choosing import Kept, Said, choose
from conspectus.ledger.fact import Fact, quoted
from conspectus.ledger.reading import Statement, statements

__all__ = [
    "Fact",
    "Kept",
    "Ledger",
    "Said",
    "Statement",
    "choose",
    "facts_of",
    "quoted",
    "statements",
]
