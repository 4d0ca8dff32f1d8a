"""The words of a query, as the index of passages is asked for them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from conspectus.archive.passages import CAMEL_CASE, MAX_WORD, WORD, plain

MOST_WORDS = 48  # Different words of a query that count
MOST_NAMES = 8  # Names of several words that count
READ = 2_000  # Characters read at each end of a query, where a question stands
QUOTED = re.compile(r"[\"“`]([^\"“”`]{3,200})[\"”`]")
SHARED = 0.75  # Each of `n` words made from one name or run of a query weighs `n ** -SHARED`

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


def query_of(text: str) -> dict[str, float]:
    """Return the words to look for, with their weights; empty if a query holds no word.

    Function words are left out unless there is nothing else.

    Example:
        >>> query_of("where is 数据库?")
        {'数据': 0.5946035575013605, '据库': 0.5946035575013605}
    """
    if len(text) > 2 * READ:
        text = f"{text[:READ]}\n{text[-READ:]}"
    chunks = plain(text).split()
    words: dict[str, float] = {}
    for strict in (True, False):
        for group in (group for chunk in chunks for group in _groups(chunk, strict)):
            weight = len(group) ** -SHARED
            words |= {word: max(words.get(word, 0.0), weight) for word in group}
        if words:
            break
    return dict(list(words.items())[:MOST_WORDS])


def names_of(text: str) -> dict[str, str]:
    """Return what must stand in a message as the query has it, with the words to look it up by.

    That is what stands in quotes, and a name of several words: `10.0.3.17` of `10 0 3 17`.
    """
    folded, names = plain(text[: 2 * READ]).casefold(), dict[str, str]()
    quoted = [one[1] for one in QUOTED.finditer(folded)]
    for at, chunk in enumerate([*quoted, *folded.split()]):
        pieces = [piece for piece in WORD.finditer(chunk) if piece.lastgroup == "word"]
        words = [piece[0][:MAX_WORD] for piece in pieces]
        if at >= len(quoted):
            words = [word for word in words if word not in ENGLISH]
        if len(words) > 1:
            whole = chunk[pieces[0].start() : pieces[-1].end()]
            names[" ".join(whole.split())] = " ".join(words)
    return dict(list(names.items())[:MOST_NAMES])


def words_of(text: str) -> frozenset[str]:
    """Return all words of a text, function words too."""
    chunks = plain(text).split()
    return frozenset(word for one in chunks for group in _groups(one, False) for word in group)


def stem(word: str) -> str:
    """Return what the forms of a word have in common, roughly; a name with digits has one form."""
    word = word.removesuffix("*")
    return word if any(map(str.isdigit, word)) else word[: max(4, len(word) - 3)]


def _groups(chunk: str, strict: bool) -> Iterator[list[str]]:
    """Yield the words of a chunk between spaces, those together that share one weight."""
    names: list[str] = []
    for match in WORD.finditer(chunk):
        piece = match[0]
        if match.lastgroup == "word":
            if not (strict and piece.lower() in ENGLISH and not (piece.isupper() and piece[1:])):
                names += [one.casefold()[:MAX_WORD] for one in (piece, *CAMEL_CASE.split(piece))]
            continue
        runs = [piece]
        if strict:  # a lone character left over says nothing
            runs = [run for run in DENSE.split(piece) if len(run) > 1 or (run and run == piece)]
        for run in runs:
            pairs = [run[at : at + 2] for at in range(len(run) - 1)]
            yield list(dict.fromkeys(pairs)) or [f"{run}*"]
    if names:
        yield list(dict.fromkeys(names))
