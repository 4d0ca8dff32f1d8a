"""The words of a query, as the index of passages is asked for them."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from conspectus.archive.passages import HUMP, LONGEST, PIECE

MOST_WORDS = 48  # Different words of a query that count
MOST_PARTS = 6  # Last sentences of a long query that are searched for apart: questions stand there
READ = 8_000  # Characters read at each end of a query, where a question stands
SHARED = 0.75  # Each of `n` words made from one name or run of a query weighs `n ** -SHARED`

_SENTENCE = re.compile(r"(?<![.?!;])[.?!;]++(?=\s|$)|[。？！；…\n]+")
_EDGES = ".,;:!?()[]{}<>\"'`*“”‘’、。，；：？！「」"

ENGLISH = frozenset(
    """
    a an the and or but nor so yet of to in on at for with by from into onto about over under
    between through during is was were are be been being am do does did done doing has have had
    having will would shall should can could might must i me my mine we us our ours you your yours
    he him his she her hers it its they them their theirs this that these those there here what when
    where which who whom whose why how if then than as not no yes any some all both each such other
    s t re ve ll d m don didn doesn isn wasn kind type many much long please
    """.split()
)
"""Words that only say how it is asked; one in capitals (`IT`, `WHO`) is a name and stays."""

DENSE = re.compile(
    "为什么|什么样|什么|怎么样|怎么|怎样|如何|哪里|哪儿|哪个|哪些|哪家|哪|多少|几个|是不是|有没有|"
    "能不能|能否|请问|一下|何时|谁|吗|呢|啊|的|是|了|"
    "為什麼|什麼|怎麼樣|怎麼|哪裡|哪個|多少|嗎|誰|請問|"
    "でしたか|でした|ですか|です|ましたか|ました|ますか|ます|ください|どうして|どんな|どこ|どの|いつ|"
    "だれ|なぜ|何|誰|무엇|무슨|어디|언제|누구|어떻게|얼마"
)
"""Such words of Chinese, Japanese and Korean, which put no space around them."""


class Query(NamedTuple):
    """What is asked for.

    `words` are those to look for, with their weights; `names` all of them, of which one may name a
    speaker; `exact` its identifiers as they stand in texts, in small letters; `parts` its
    sentences, if it has several.
    """

    words: dict[str, float]
    names: frozenset[str]
    exact: tuple[str, ...]
    parts: tuple[Query, ...] = ()


def query_of(text: str) -> Query:
    """Return the words of a query; none if it holds no word.

    Example:
        >>> query_of("where is 数据库?").words
        {'数据': 0.5946035575013605, '据库': 0.5946035575013605}
    """
    if len(text) > 2 * READ:
        text = f"{text[:READ]}\n{text[-READ:]}"
    sentences = (_query(sentence) for sentence in _SENTENCE.split(text)[-MOST_PARTS:])
    parts = tuple(part for part in sentences if len(part.words) > 1)
    return _query(text)._replace(parts=parts if len(parts) > 1 else ())


def words_of(text: str) -> frozenset[str]:
    """Return all words of a text, function words too."""
    chunks = unicodedata.normalize("NFKC", text).split()
    return frozenset(word for one in chunks for group in _groups(one, False) for word in group)


def stem(word: str) -> str:
    """Return what the forms of a word have in common, roughly."""
    return word.removesuffix("*")[: max(4, len(word) - 3)]


def _query(text: str) -> Query:
    """Return what a text asks for, without function words unless there is nothing else."""
    chunks = unicodedata.normalize("NFKC", text).split()
    exact = dict.fromkeys(one for chunk in chunks if (one := _exact(chunk)))
    names = frozenset(one[0].casefold() for chunk in chunks for one in PIECE.finditer(chunk))
    words: dict[str, float] = {}
    for strict in (True, False):
        for group in (group for chunk in chunks for group in _groups(chunk, strict) if group):
            weight = len(group) ** -SHARED
            words |= {word: max(words.get(word, 0.0), weight) for word in group}
        if words:
            break
    return Query(dict(list(words.items())[:MOST_WORDS]), names, tuple(exact)[:MOST_WORDS])


def _groups(chunk: str, strict: bool) -> list[list[str]]:
    """Return the words of a chunk between spaces, those together that share one weight."""
    name: list[str] = []
    groups = [name]
    for match in PIECE.finditer(chunk):
        piece = match[0]
        if match.lastgroup == "word":
            if not (strict and piece.lower() in ENGLISH and not (piece.isupper() and piece[1:])):
                humps = parts if len(parts := HUMP.split(piece)) > 1 else []
                name += [one.casefold()[:LONGEST] for one in (piece, *humps)]
            continue
        runs = [piece]
        if strict:  # a lone character left over says nothing
            runs = [run for run in DENSE.split(piece) if len(run) > 1 or (run and run == piece)]
        for run in runs:
            pairs = [run[at : at + 2] for at in range(len(run) - 1)]
            groups.append(list(dict.fromkeys(pairs)) or [f"{run}*"])
    name[:] = dict.fromkeys(name)
    return groups


def _exact(chunk: str) -> str:
    """Return an identifier in a chunk, in small letters; empty for a plain word."""
    bare = chunk.strip(_EDGES)
    plain = bare.isalpha() and (bare.islower() or bare.istitle() or bare.isupper())
    dense = any(one.lastgroup == "dense" for one in PIECE.finditer(bare[:LONGEST]))
    return "" if plain or dense or len(bare) < 3 else bare[:LONGEST].casefold()
