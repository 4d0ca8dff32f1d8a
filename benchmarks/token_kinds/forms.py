"""Kinds without a name: random layouts of random parts, of which any number can be drawn.

A form fixes how its texts look: which signs stand around and between its parts, how deep it
indents, what the parts are, whether they are padded, and how often they are the same. Fitted to
many forms, an estimate cannot lean on what a few known kinds have in common.
"""

from __future__ import annotations

import string
from random import Random

from token_kinds import kind
from token_kinds.kind import LineWriter, Writer
from token_kinds.scripts import BLOCKS, LOCALES, letters_of, names_in

SIGNS = string.punctuation
PARTS: tuple[LineWriter, ...] = (
    kind.word, kind.word, kind.snake, kind.camel, kind.pascal, kind.number, kind.decimal, kind.date,
    kind.clock, kind.address, kind.path, kind.sentence, kind.value, kind.uuid,
)  # fmt: skip


def form(number: int) -> Writer:
    """Return the writer of a form."""
    draw = Random(f"form {number}")
    makers = (_layout, _layout, _layout, _alphabet, _runs, _script, _spelling, _mixture)
    return draw.choice(makers)(draw)


def _signs(draw: Random, most: int) -> str:
    """Draw a few signs, some with spaces around."""
    signs = "".join(draw.choices(SIGNS, k=draw.randint(0, most)))
    if draw.random() < 0.3:
        signs = draw.choice(SIGNS) * draw.randint(1, 6)
    if draw.random() < 0.15:
        signs = draw.choice("─│├└┬═║╔█░→•✓…–—“”×°§") * draw.randint(1, 3)
    return " " * draw.choice((0, 0, 1, 1, 4)) + signs + " " * draw.choice((0, 0, 1, 1, 2))


def _part(draw: Random) -> LineWriter:
    """Draw what makes a part: a word, a number, random letters, or a name of some language."""
    choice = draw.random()
    if choice < 0.55:
        return draw.choice(PARTS)
    if choice < 0.8:
        signs = "".join(draw.sample(string.ascii_letters + string.digits, draw.randint(2, 20)))
        least, most = draw.choice(((1, 2), (1, 5), (4, 12), (8, 40)))
        return lambda draw: "".join(draw.choices(signs, k=draw.randint(least, most)))
    if choice < 0.9:
        locale = draw.choice(list(LOCALES.values()))
        return lambda draw: draw.choice(names_in(locale))
    shape = draw.choice((str.upper, str.title, str.capitalize))
    return lambda draw: shape(draw.choice((kind.word, kind.snake))(draw))


def _layout(draw: Random) -> Writer:
    """Lines of parts with signs around and between, perhaps indented, padded, and ruled."""
    parts = [_part(draw) for _ in range(draw.choice((1, 2, 3, 5)))]
    before, between, after = _signs(draw, 3), _signs(draw, 3) or " ", _signs(draw, 3)
    unit = draw.choice(("", "", " ", "  ", "    ", "\t", "  " * 4))
    ending = draw.choice(("\n", "\n", "\n", "\n\n", "\r\n", " ", "", ", ", ";"))
    width = draw.choice((0, 0, 6, 12, 20))
    rule = draw.choice(SIGNS + "─═") * draw.randint(3, 60) if draw.random() < 0.3 else ""
    deepest = draw.choice((0, 1, 3, 8))
    many = draw.choice((1, 2, 4, 7))

    def line(draw: Random) -> str:
        made = [draw.choice(parts)(draw) for _ in range(draw.randint(1, many))]
        padded = [part.ljust(width) if draw.random() < 0.7 else part.rjust(width) for part in made]
        text = unit * draw.randint(0, deepest) + before + between.join(padded) + after
        return f"{text}\n{rule}" if rule and draw.random() < 0.4 else text

    return lambda draw, size: kind.repeated(draw, size, line, ending)


def _alphabet(draw: Random) -> Writer:
    """Random characters of a small random alphabet."""
    letters = "".join(draw.choices(string.printable[:95] + "\n\t", k=draw.randint(2, 40)))
    return lambda draw, size: "".join(draw.choices(letters, k=size))


def _runs(draw: Random) -> Writer:
    """Runs of the same character, of random lengths."""
    letters = draw.choices(string.printable[:95] + "\n\t   ─═█·…", k=draw.randint(2, 12))
    longest = draw.choice((2, 4, 9, 30, 90))

    def write(draw: Random, size: int) -> str:
        return kind.repeated(
            draw, size, lambda draw: draw.choice(letters) * draw.randint(1, longest), ""
        )

    return write


def _script(draw: Random) -> Writer:
    """Characters of some block, in words, dense, or among others; any block of the first plane."""
    letters: list[str] = []
    while not letters:
        start = draw.choice(
            (
                draw.randrange(0x80, 0x3400, 64),
                draw.randrange(0xA000, 0xAC00, 64),
                draw.randrange(0xF900, 0x1FB00, 64),
            )
        )
        first, last = draw.choice([*BLOCKS.values(), (start, start + 63), (start, start + 63)])
        letters = letters_of(first, last)
    usual = draw.sample(letters, min(len(letters), draw.choice((6, 20, 60))))
    chosen = draw.choice((letters, usual))
    between = draw.choice((" ", "", "\n", ", ", " | "))
    longest = draw.choice((1, 4, 9, 20))
    return lambda draw, size: kind.repeated(
        draw,
        size * 2 // 3,
        lambda draw: "".join(draw.choices(chosen, k=draw.randint(1, longest))),
        between,
    )


def _spelling(draw: Random) -> Writer:
    """Words that are spelt in one odd way, one after another: no vocabulary has them whole."""
    letters = draw.choice((string.ascii_lowercase, string.ascii_lowercase, string.ascii_uppercase))
    letters += draw.choice(("", "", string.digits))
    some = "".join(draw.sample(letters, draw.choice((4, 7, 12, 26))))
    sign = draw.choice(SIGNS + " \b\x00\x1b\x7f\x07\u0301\u200b\u00ad")

    def slip(text: str, draw: Random) -> str:
        place = draw.randrange(len(text))
        return text[:place] + draw.choice(letters + string.digits) + text[place + 1 :]

    def double(text: str, draw: Random) -> str:
        return "".join(letter * draw.choice((1, 1, 2, 3)) for letter in text)

    spellings = (
        lambda text, draw: text.upper(),
        lambda text, draw: "".join(draw.choices(some, k=draw.randint(1, 12))),
        lambda text, draw: "".join(draw.choices(letters, k=len(text))),
        lambda text, draw: draw.choice(some),
        lambda text, draw: text + draw.choice(letters) * draw.randint(1, 2),
        slip,
        double,
        lambda text, draw: sign.join(text),
        lambda text, draw: text[::-1],
        lambda text, draw: "".join(draw.sample(text, len(text))),
        lambda text, draw: text[:1] + text[1:].translate(str.maketrans("aeiou", "*****")),
        lambda text, draw: "".join(draw.choice((letter, letter.upper())) for letter in text),
        lambda text, draw: sign + text + sign,
    )
    chosen = draw.sample(spellings, draw.choice((1, 1, 2)))
    between = draw.choice((" ", " ", "\n", "", ", ", "_", "-", "/", ","))
    return lambda draw, size: kind.repeated(
        draw, size, lambda draw: draw.choice(chosen)(kind.word(draw), draw), between
    )


def _mixture(draw: Random) -> Writer:
    """Pieces of other forms by turns."""
    makers = [
        draw.choice((_layout, _alphabet, _runs, _script, _spelling))(draw)
        for _ in range(draw.randint(2, 4))
    ]
    return lambda draw, size: kind.repeated(
        draw,
        size,
        lambda draw: draw.choice(makers)(draw, draw.randint(20, 200)),
        draw.choice(("\n", " ", "")),
    )


def short_lines(number: int) -> Writer:
    """Return the writer of lines of a few characters: indented, marked, alike or all different."""
    draw = Random(f"short lines {number}")
    unit = draw.choice(("", " ", "  ", "    ", "        ", "\t"))
    deepest = draw.choice((1, 1, 2, 4))
    mark = draw.choice(("", "", "+", "-", "> ", "* ", "- ", "# ", "| "))
    after = draw.choice(("", "", "", ",", ";", ":", "()", " |", "  "))
    ending = draw.choice(("\n", "\n", "\n", "\n\n", "\r\n", ", ", " "))
    letters = draw.choice(
        (string.ascii_lowercase, string.ascii_uppercase, string.digits, "01", "IVXLC", "ABCDEFGm7")
    )
    longest = draw.choice((1, 2, 3, 5))
    words = (*kind.WORDS[:90], "pass", "break", "end", "else", "return", "done", "nil", "null")

    def part(draw: Random) -> str:
        return "".join(draw.choices(letters, k=draw.randint(1, longest)))

    makers = (part, part, lambda draw: draw.choice(words))
    make = draw.choice(makers)
    same = draw.random() < 0.4
    first = make(draw)

    def line(draw: Random) -> str:
        indent = unit * (deepest if same else draw.randint(0, deepest))
        return indent + mark + (first if same else make(draw)) + after

    return lambda draw, size: kind.repeated(draw, size, line, ending)


def phrases(number: int) -> Writer:
    """Return the writer of one short phrase again and again, or of a few by turns."""
    draw = Random(f"phrases {number}")

    def phrase() -> str:
        words = [
            draw.choice((kind.word, kind.word, kind.snake, kind.number))(draw)
            for _ in range(draw.randint(1, 4))
        ]
        if draw.random() < 0.6:
            words[0] = words[0].capitalize()
        mark = draw.choice((".", ".", ".", ",", "!", "?", ";", ":", "", "..."))
        return " ".join(words) + mark

    chosen = [phrase() for _ in range(draw.choice((1, 1, 2, 5)))]
    between = draw.choice((" ", " ", " ", "\n", "  "))
    return lambda draw, size: kind.repeated(draw, size, lambda draw: draw.choice(chosen), between)
