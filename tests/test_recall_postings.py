"""A part of a search index finds each of its terms, and no other, wherever it stands."""

import pytest

from conspectus.recall.postings import BLOCK, Doc, Part, Passage, digest
from conspectus.recall.steps import Act


def part(terms: list[str]) -> Part:
    """One message with a passage for each term, which holds it twice."""
    passages = [Passage(n, n + 1, {term: 2}, 2) for n, term in enumerate(terms)]
    doc = Doc(digest("m"), Act.SAYS, False, "", ())
    return Part.of([("key", doc, passages)])


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 7])
def test_each_term_is_found_where_it_stands_and_no_other_one(count):
    terms = [f"term{n * 7919 % 100_003}" for n in range(count)] + ["größe", "数据库"]
    found = Part.unpack(part(terms).pack())
    for number, term in enumerate(terms):
        assert found.holding(term) == [(number, 2)]
    for other in ("", "a", "term", "term1x", "zzz", "数据", "\U0010ffff"):
        assert found.holding(other) == []
