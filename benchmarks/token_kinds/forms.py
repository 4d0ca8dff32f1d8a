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
UNSEEN = "".join(
    map(chr, (*range(9), *range(11, 32), *range(127, 161), 0xAD, *range(0x2000, 0x2010)))
)
UNSEEN += "\u0300\u0301\u0308\u1680\u2028\u2029\u202f\u205f\u2060\u3000\ufe0f\ufeff\ufffd"
"""Control characters, spaces, joiners and marks: none is seen alone."""

SPACES = "\x85\u00a0\u1680\u200b\u2028\u2029\u202f\u205f\u3000\ufeff"
SPACES += "".join(map(chr, range(0x2000, 0x200B)))
"""Spaces and ends of lines of Unicode."""

USUAL_ACCENTED = "ąćęłńóśźżáčďéěíňřšťúůýžőűöüğışçßäëïîâêôûùàèœæñãõåøăđơưșțşţ"
"""Letters of languages that tokenizers know well."""

SIGN_BLOCKS = [
    (first, last)
    for first, last in BLOCKS.values()
    if 0x2000 <= first < 0x2C00 or first == 0x3001 or 0x1D000 <= first < 0x20000
]

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
    usual = string.printable[:95] + "\n\t"
    letters = "".join(draw.choices(usual, k=draw.randint(2, 40)))
    if draw.random() < 0.2:
        letters += "".join(draw.choices(UNSEEN, k=draw.randint(1, 12)))
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
    sign = draw.choice(draw.choice((SIGNS, " ", UNSEEN)))

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


def pictures(number: int) -> Writer:
    """Return the writer of emoji with what follows them: skins, joiners, and variants."""
    draw = Random(f"pictures {number}")
    first = draw.choice((0x1F300, 0x1F400, 0x1F440, 0x1F600, 0x1F680, 0x1F900, 0x2600, 0x2700))
    bases = letters_of(first, first + draw.choice((30, 80)))
    bases = draw.sample(bases, min(len(bases), draw.choice((4, 12, 80))))
    endings = draw.choice(
        (
            [""],
            ["\ufe0f"],
            ["\U0001f3fb", "\U0001f3fc", "\U0001f3fd", "\U0001f3fe", "\U0001f3ff"],
            ["\u200d" + base for base in bases],
        )
    )
    share = draw.choice((0.3, 1.0))
    between = draw.choice(("", "", " ", "\n", " a "))
    return lambda draw, size: kind.repeated(
        draw,
        size // 2,
        lambda draw: draw.choice(bases) + (draw.choice(endings) if draw.random() < share else ""),
        between,
    )


def garbled(number: int) -> Writer:
    """Return the writer of text whose bytes were read in the wrong encoding, among words."""
    draw = Random(f"garbled {number}")
    first, last = BLOCKS[draw.choice(("Latin-1", "Cyrillic", "Greek", "punctuation", "Hiragana"))]
    wrong = draw.choice(("latin-1", "cp1252", "ascii", "koi8-r"))
    letters = draw.sample(letters_of(first, last), 8)
    share = draw.choice((0.2, 0.6, 1.0))
    between = draw.choice((" ", " ", "", "\n"))

    def part(draw: Random) -> str:
        if draw.random() > share:
            return kind.word(draw)
        text = "".join(draw.choices(letters, k=draw.randint(1, 8)))
        return text.encode("utf-8").decode(wrong, "replace")

    return lambda draw, size: kind.repeated(draw, size, part, between)


def rare_letters(number: int) -> Writer:
    """Return the writer of words in which some letters are Latin ones that few languages have."""
    draw = Random(f"rare letters {number}")
    block = draw.choice(
        ("Latin extended A", "Latin extended A", "Latin extended B", "Latin extended additional")
    )
    rare = [
        letter
        for letter in letters_of(*BLOCKS[block])
        if letter.islower() and letter not in USUAL_ACCENTED
    ]
    some = draw.sample(rare, draw.choice((3, 6, 12, 25)))
    share = draw.choice((0.3, 0.6, 0.9))  # Syllables with such a letter
    consonants = draw.choice(("bcdfghjklmnpqrstvwxyz", "klmnprstv", "zhngcshjqx"))
    longest = draw.choice((1, 2, 4))
    capitals = draw.choice((0.0, 0.0, 0.3, 1.0))
    between = draw.choice((" ", " ", " ", ", ", "\n", "-"))

    def syllable(draw: Random) -> str:
        text = draw.choice(consonants) + draw.choice("aeiou") + draw.choice(("", "", "n", "s", "r"))
        if draw.random() > share:
            return text
        place = draw.randrange(len(text))
        return text[:place] + draw.choice(some) + text[place + 1 :]

    def part(draw: Random) -> str:
        text = "".join(syllable(draw) for _ in range(draw.randint(1, longest)))
        return text.capitalize() if draw.random() < capitals else text

    return lambda draw, size: kind.repeated(draw, size, part, between)


def odd_spaces(number: int) -> Writer:
    """Return the writer of words with spaces of Unicode between."""
    draw = Random(f"odd spaces {number}")
    some = draw.sample(SPACES, draw.choice((1, 2, 4, 8)))
    make = draw.choice((kind.word, kind.word, kind.word, kind.number, kind.sentence, kind.snake))
    most = draw.choice((1, 1, 1, 3))
    share = draw.choice((0.5, 1.0, 1.0))

    def part(draw: Random) -> str:
        if draw.random() > share:
            return f"{make(draw)} "
        return make(draw) + "".join(draw.choices(some, k=draw.randint(1, most)))

    return lambda draw, size: kind.repeated(draw, size, part, "")


def random_words(number: int) -> Writer:
    """Return the writer of words of random letters, of which there are a few."""
    draw = Random(f"random words {number}")
    letters = draw.choice((string.ascii_lowercase, string.ascii_uppercase, string.ascii_uppercase))
    some = draw.sample(letters, draw.choice((3, 4, 5, 7, 10)))
    if draw.random() < 0.25:
        some += draw.sample(string.digits + "#/", 2)
    least, most = draw.choice(((1, 3), (1, 6), (2, 5), (3, 10), (10, 60), (300, 600)))
    between = draw.choice((" ", " ", "\n", ", ", ". ", ") ", " | "))

    def part(draw: Random) -> str:
        return "".join(draw.choices(some, k=draw.randint(least, most)))

    return lambda draw, size: kind.repeated(draw, size, part, between)


def signs_among_words(number: int) -> Writer:
    """Return the writer of a few signs beyond Latin-1, alone and in runs, among words."""
    draw = Random(f"signs among words {number}")
    letters: list[str] = []
    while not letters:
        first = draw.randrange(0x2000, 0x2C00, 32)
        first, last = draw.choice([(first, first + 31), *SIGN_BLOCKS, *SIGN_BLOCKS])
        letters = letters_of(first, last)
    some = draw.sample(letters, min(len(letters), draw.choice((2, 4, 12))))
    share = draw.choice((0.3, 0.5, 0.7))
    longest = draw.choice((1, 1, 2, 5))
    make = draw.choice((kind.word, kind.word, kind.number, kind.snake))
    between = draw.choice((" ", " ", "\n", "", ", "))

    def part(draw: Random) -> str:
        if draw.random() > share:
            return make(draw)
        return draw.choice(some) * draw.randint(1, longest) + draw.choice(("", *some))

    return lambda draw, size: kind.repeated(draw, size, part, between)


def escapes(number: int) -> Writer:
    """Return the writer of words with sequences between that steer a terminal."""
    draw = Random(f"escapes {number}")
    make = draw.choice((kind.word, kind.word, kind.path, kind.number, kind.sentence, kind.snake))
    before = draw.choice(("\x1b[", "\x1b[", "\x1b[0;", "\\x1b[", "\\u001b[", "\\033["))
    sequence = draw.choice(
        ("{a}m", "1;{a}m", "{a};{b}m", "38;5;{c}m", "48;2;{c};{d};{c}m", "{b}A", "{b};{d}H", "2K")
    )
    after = draw.choice(("\x1b[0m", "\x1b[0m ", "\x1b[m", "", "\x1b[39m", "\x1b[0m\n"))

    def part(draw: Random) -> str:
        numbers = sequence.format(
            a=draw.randint(30, 37), b=draw.randint(1, 9), c=draw.randint(0, 255),
            d=draw.randint(0, 99),
        )  # fmt: skip
        return before + numbers + make(draw) + after

    return lambda draw, size: kind.repeated(draw, size, part, "")


def diagrams(number: int) -> Writer:
    """Return the writer of boxes with words inside, and of arrows from one to the next."""
    draw = Random(f"diagrams {number}")
    corner, across, down = draw.choice(("+-|", "+-|", "+=|", ".-:", "***", "┌─│", "╔═║", "###"))
    deepest = draw.choice((0, 4, 12, 30))
    arrow = draw.choice(("", "-->", "--->", " => ", "----+", "<--", " -> ", "──▶"))
    below = draw.choice(((), ("|",), ("|", "v"), ("|", "|"), ("^", "|"), ("│", "▼")))
    place_below = " " * draw.choice((1, 4, 8))
    make = draw.choice((kind.pascal, kind.word, kind.snake, kind.value))
    most = draw.choice((1, 1, 2, 3))

    def boxes(draw: Random) -> str:
        names = [make(draw) for _ in range(draw.randint(1, most))]
        space = " " * draw.randint(0, deepest)
        rule = "     ".join(corner + across * (len(name) + 2) + corner for name in names)
        inside = "".join(f"{down} {name} {down}{arrow}" for name in names)
        lines = (rule, inside, rule, *(place_below + sign for sign in below))
        return "\n".join(space + line for line in lines)

    return lambda draw, size: kind.repeated(draw, size, boxes)


def grids(number: int) -> Writer:
    """Return the writer of rows of signs, digits or letters of a small alphabet."""
    draw = Random(f"grids {number}")
    alphabet = draw.choice((
        string.punctuation, string.punctuation, string.digits, string.digits, "01", ")]};,", "()[]{}",
        string.ascii_lowercase, string.ascii_letters, string.ascii_letters + string.digits,
    ))  # fmt: skip
    if len(alphabet) > 6 and draw.random() < 0.7:
        alphabet = "".join(draw.sample(alphabet, draw.randint(2, len(alphabet))))
    longest = draw.choice((1, 1, 1, 2, 3, 40))
    between = draw.choice((" ", " ", "", ",", ", ", "\t", "  ", ";"))
    width = draw.choice((1, 4, 8, 16, 40))
    deepest = draw.choice((0, 0, 4))
    ending = draw.choice(("\n", "\n", "", "\n\n", " "))

    def line(draw: Random) -> str:
        parts = ("".join(draw.choices(alphabet, k=draw.randint(1, longest))) for _ in range(width))
        return "    " * draw.randint(0, deepest) + between.join(parts)

    return lambda draw, size: kind.repeated(draw, size, line, ending)
