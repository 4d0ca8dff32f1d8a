"""The terms of a query, for the index of passages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from conspectus.archive.passages import CAMEL_CASE, MAX_WORD, WORD, plain

MAX_TERMS = 48
"""Different terms of a query that count."""

MAX_PHRASES = 8
"""Phrases that count."""

END_CHARACTERS = 2_000
"""Characters that are read at each end of a query, where a question is."""

QUOTED = re.compile(r"[\"“`]([^\"“”`]{3,200})[\"”`]")
GROUP_EXPONENT = -0.75
"""Each of `n` terms that are made from one name or run has the weight `n ** GROUP_EXPONENT`:
together they weigh a little more than one word, and far less than `n` words."""

FUNCTION_WORDS = frozenset(
    """
    a an the and or but nor so yet of to in on at for with by from into onto about over under
    between through during is was were are be been being am do does did done doing has have had
    having will would shall should can could might must i me my mine we us our ours you your yours
    he him his she her hers it its they them their theirs this that these those there here what when
    where which who whom whose why how if then than as not no yes any some all both each such other
    s t re ve ll d m don didn doesn isn wasn kind type many much long please
    """.split()
)
"""English function words of questions. A word in capitals (`IT`, `WHO`) is a name, and counts."""

UNSPACED_FUNCTION_WORDS = re.compile(
    "为什么|什么样|什么|怎么样|怎么|怎样|如何|哪里|哪儿|哪个|哪些|哪家|哪|多少|几个|是不是|有没有|"
    "能不能|能否|请问|一下|何时|谁|吗|呢|啊|的|是|了|"
    "為什麼|什麼|怎麼樣|怎麼|哪裡|哪個|多少|嗎|誰|請問|"
    "でしたか|でした|ですか|です|ましたか|ました|ますか|ます|ください|どうして|どんな|どこ|どの|いつ|"
    "だれ|なぜ|何|誰|무엇|무슨|어디|언제|누구|어떻게|얼마"
)
"""Function words of Chinese, Japanese and Korean, which have no spaces around them."""


def weighted_terms(query: str) -> dict[str, float]:
    """Return the terms to look for, with their weights; empty if a query has no word.

    Function words are left out unless there is nothing else. A term that ends in `*` stands for
    all words that begin so.

    Example:
        >>> weighted_terms("where is 数据库?")
        {'数据': 0.5946035575013605, '据库': 0.5946035575013605}
    """
    if len(query) > 2 * END_CHARACTERS:
        query = f"{query[:END_CHARACTERS]}\n{query[-END_CHARACTERS:]}"
    chunks = plain(query).split()
    weights = _weights_of(chunks, without_function_words=True)
    weights = weights or _weights_of(chunks, without_function_words=False)
    return dict(list(weights.items())[:MAX_TERMS])


def _weights_of(chunks: list[str], without_function_words: bool) -> dict[str, float]:
    """Return the terms of chunks in order; one in several groups has the largest of its weights."""
    weights: dict[str, float] = {}
    for chunk in chunks:
        for group in _term_groups(chunk, without_function_words):
            weight = len(group) ** GROUP_EXPONENT
            for term in group:
                weights[term] = max(weights.get(term, 0.0), weight)
    return weights


def exact_phrases(query: str) -> dict[str, str]:
    """Return the phrases that a message must have literally, with the term to look each up.

    Phrases are texts in quotes, and names of several words: `10.0.3.17` is looked up as `10 0 3
    17`, four words in a row.
    """
    folded = plain(query[: 2 * END_CHARACTERS]).casefold()
    quotations = [match[1] for match in QUOTED.finditer(folded)]
    phrases: dict[str, str] = {}
    for quotation in quotations:
        _add_phrase(phrases, quotation, ignored=frozenset())
    for chunk in folded.split():
        _add_phrase(phrases, chunk, ignored=FUNCTION_WORDS)
    return dict(list(phrases.items())[:MAX_PHRASES])


def _add_phrase(phrases: dict[str, str], chunk: str, ignored: frozenset[str]) -> None:
    """Add a chunk that has several words, not counting those that are ignored."""
    matches = [match for match in WORD.finditer(chunk) if match.lastgroup == "word"]
    words = [match[0][:MAX_WORD] for match in matches]
    words = [word for word in words if word not in ignored]
    if len(words) > 1:
        phrase = chunk[matches[0].start() : matches[-1].end()]
        phrases[" ".join(phrase.split())] = " ".join(words)


def all_terms(text: str) -> frozenset[str]:
    """Return all terms of a text, including function words."""
    groups = (
        group
        for chunk in plain(text).split()
        for group in _term_groups(chunk, without_function_words=False)
    )
    return frozenset(term for group in groups for term in group)


def stem(term: str) -> str:
    """Return roughly what the forms of a word have in common; a name with digits has one form."""
    word = term.removesuffix("*")
    if any(map(str.isdigit, word)):
        return word
    return word[: max(4, len(word) - 3)]


def _term_groups(chunk: str, without_function_words: bool) -> Iterator[list[str]]:
    """Yield the terms of a chunk without blanks; those of a group share one weight.

    All words of a chunk, and the words inside of them, are one group; so are the pairs of
    characters of each run of a script without spaces.
    """
    words: list[str] = []
    for match in WORD.finditer(chunk):
        piece = match[0]
        if match.lastgroup == "unspaced":
            for run in _runs_of(piece, without_function_words):
                pairs = [run[start : start + 2] for start in range(len(run) - 1)]
                yield list(dict.fromkeys(pairs)) or [f"{run}*"]
        elif not (without_function_words and _is_function_word(piece)):
            inner_words = CAMEL_CASE.split(piece)
            words += [word.casefold()[:MAX_WORD] for word in (piece, *inner_words)]
    if words:
        yield list(dict.fromkeys(words))


def _runs_of(piece: str, without_function_words: bool) -> list[str]:
    """Return a piece of an unspaced script, or the parts between the function words in it."""
    if not without_function_words:
        return [piece]
    runs = UNSPACED_FUNCTION_WORDS.split(piece)
    # A single remaining character says nothing.
    return [run for run in runs if len(run) > 1 or (run and run == piece)]


def _is_function_word(word: str) -> bool:
    is_name_in_capitals = word.isupper() and len(word) > 1
    return word.lower() in FUNCTION_WORDS and not is_name_in_capitals
