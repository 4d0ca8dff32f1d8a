"""The words of a query, as the index of passages is asked for them."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from conspectus.archive.passages import LONGEST, PIECE

MOST_WORDS = 48  # Different words of a query that count
MOST_PARTS = 6  # Last sentences of a long query that are searched for apart: questions stand there
READ = 8_000  # Characters read at each end of a query, where a question stands
SHARED = 0.75  # Each of `n` words made from one name or run of a query weighs `n ** -SHARED`

_SENTENCE = re.compile(r"[.?!;]+(?=\s|$)|[。？！；…\n]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
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


@dataclass(frozen=True, slots=True)
class Ask:
    """The words of one sentence with their weights, and its identifiers as they stand in texts."""

    words: dict[str, float]
    exact: tuple[str, ...]
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Query:
    """A query as a whole and by sentences, if it has several.

    `loose` is for when nothing else is found: characters of scripts without spaces, and beginnings
    of words.
    """

    whole: Ask
    parts: tuple[Ask, ...]
    loose: tuple[str, ...]


def query_of(text: str) -> Query:
    """Return the words of a query; none if it holds no word.

    Example:
        >>> query_of("where is 数据库?").whole.words
        {'数据': 0.5946035575013605, '据库': 0.5946035575013605}
    """
    if len(text) > 2 * READ:
        text = f"{text[:READ]}\n{text[-READ:]}"
    whole = _ask(text)
    asks = (_ask(sentence) for sentence in _SENTENCE.split(text)[-MOST_PARTS:])
    parts = tuple(part for part in asks if len(part.words) > 1)
    pieces = PIECE.finditer(unicodedata.normalize("NFKC", text))
    loose = dict.fromkeys(f"{c}*" for one in pieces if one.lastgroup == "dense" for c in one[0])
    loose |= dict.fromkeys(f"{word}*" for word in whole.words if word.isascii() and len(word) > 2)
    return Query(whole, parts if len(parts) > 1 else (), tuple(loose)[:MOST_WORDS])


def words_of(text: str) -> frozenset[str]:
    """Return all words of a text, function words too."""
    return frozenset(
        word
        for chunk in unicodedata.normalize("NFKC", text).split()
        for group in _groups(chunk, False)
        for word in group
    )


def _ask(text: str) -> Ask:
    """Return the words of one sentence, without function words unless there is nothing else."""
    chunks = unicodedata.normalize("NFKC", text).split()
    exact = {_exact(chunk): None for chunk in chunks}
    names = frozenset(one[0].casefold() for chunk in chunks for one in PIECE.finditer(chunk))
    words: dict[str, float] = {}
    for strict in (True, False):
        for chunk in chunks:
            for group in _groups(chunk, strict):
                weight = len(group) ** -SHARED if group else 0.0
                for word in group:
                    words[word] = max(words.get(word, 0.0), weight)
        if words:
            break
    most = dict(list(words.items())[:MOST_WORDS])
    return Ask(most, tuple(one for one in exact if one)[:MOST_WORDS], names)


def _groups(chunk: str, strict: bool) -> list[list[str]]:
    """Return the words of a chunk between spaces, those together that share one weight."""
    name: list[str] = []
    groups = [name]
    for match in PIECE.finditer(chunk):
        piece = match[0]
        if match.lastgroup == "word":
            if not (strict and piece.lower() in ENGLISH and not (piece.isupper() and piece[1:])):
                humps = parts if len(parts := _HUMP.split(piece)) > 1 else []
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
