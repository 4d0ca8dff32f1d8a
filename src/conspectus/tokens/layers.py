"""Code the characters of a text and their neighbours, as bytes that index tables of weights.

Each character becomes one byte of a *row*: itself in Latin-1, and a byte that stands for its script
otherwise. A *layer* is a row of codes, one for each character; a code says what the character is
and what comes before it. All characters are coded at once, and in all layers: `bytes.translate`
turns bytes into classes, the rows of all layers are joined to one large integer, and a shift of
that by eight bits moves each class to the next character.

The layers of every text are:

- **runs**: the kind of a character, and how many equal ones stand before it;
- **pieces**: whether three characters in a row are whitespace, letters, digits or signs. Tokenizers
  divide a text by these before they join characters;
- **neighbours**: classes of two to four characters in a row, which were learned from the places
  where the tokens of real tokenizers begin (`benchmarks/learn_layers.py`).

A text with characters beyond Latin-1 has further layers, of their scripts and blocks of Unicode.

The bits of a code, the lowest first ("low byte" is that of the code point):

- runs: 4 for the kind; 3 for the number of the lengths 2, 3, 5, 9 and 17 that the run of equal
  characters has reached.
- pieces: 3 for the class of the character, 3 for that of the one before it, 2 for the one before
  that, of which less is told.
- neighbours: for each of two to four characters as many as `weights.json` says.
- beyond Latin-1, in the order of `wide_layers`:
    1. the highest bit of the low byte; 7 for the number of the block;
    2. 4 for the script; the 4 high bits of the low byte;
    3. 4 for the script; the 4 low bits of the low byte;
    4. 4 for the script; 4 for the script of the character before it;
    5. 4 for the script; 2 for equal characters before it; 2 for those of its script;
    6. 8 for the low byte, moved by a number that depends on the high byte.
"""

from __future__ import annotations

import base64
import json
import string
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

Table = bytes
"""A class or a code for each of the 256 bytes, for `bytes.translate`."""

LOWER = string.ascii_lowercase
UPPER = string.ascii_uppercase
DIGITS = string.digits
ACCENTED = "ªµº" + "".join(map(chr, range(0xC0, 0x100)))
LATIN_SIGNS = "".join(chr(code) for code in range(0xA0, 0xC0) if chr(code) not in ACCENTED)
CONTROLS = "".join(map(chr, (*range(9), 11, 12, *range(14, 32), *range(127, 0xA0))))

STAND_IN = 0x80
"""This byte and fifteen more stand for the scripts beyond Latin-1."""

UNUSED = b"\x9f"
"""A control character that marks others; where a text has it, another one counts."""

COMMON_LAYERS = 12
"""Layers of every text: of runs, of pieces, and ten of neighbours."""

MOST_CHARACTERS = 4_000
"""Characters that are coded at once, so that memory stays bounded."""

SPARE_BYTES = 4
"""Bytes after a row, at least, into which shifts move its last classes."""


class CodedText(NamedTuple):
    """A text as codes.

    The layers of pieces and of neighbours have no code for a character that comes after four equal
    ones: it must not count there, as tokens of one repeated character are long.
    """

    layers: list[bytes]
    scripts: bytes  # of its characters; none for a text in Latin-1


class Neighbours(NamedTuple):
    """Classes of bytes, and which of their bits a character has in the codes of which others.

    The bits of the first mask are in its own code, those of the second in the code of the character
    after it, and so on. A code has eight bits: no two masks share any.
    """

    classes: Table
    masks: list[int]


def _classes(*groups: str) -> Table:
    """Return the number of the group that has a byte's character; 0 for the others."""
    table = bytearray(256)
    for number, group in enumerate(groups, 1):
        for letter in group:
            table[ord(letter)] = number
    return bytes(table)


_KIND = _classes(
    "aeiou", "lnrst", "cdghmp", "bfkvwy", "jqxz", ACCENTED + LATIN_SIGNS + CONTROLS, UPPER, DIGITS,
    "\n\r", "\t", ",.", "\"'`", "():;<>[]{}", "#*+-=_~", "!$%&/?@\\^|",
)  # fmt: skip
_STAND_INS = "".join(map(chr, range(STAND_IN, STAND_IN + 16)))
_PIECE = _classes(
    " ", "\n", "\t\r", LOWER + UPPER + ACCENTED, DIGITS, string.punctuation + LATIN_SIGNS,
    _STAND_INS,
)  # fmt: skip
_PIECE_BEFORE = _classes(" ", "\n\t\r", LOWER + UPPER + ACCENTED + DIGITS)
_PIECES = bytes(
    piece | piece << 3 | two_before << 6
    for piece, two_before in zip(_PIECE, _PIECE_BEFORE, strict=True)
)


class _Block(NamedTuple):
    """High bytes of code points in the first plane of Unicode, and the class of their scripts."""

    first: int
    last: int
    script: int


_BLOCKS = (
    _Block(0x01, 0x02, 1), _Block(0x1E, 0x1E, 1),  # Latin
    _Block(0x03, 0x03, 2), _Block(0x1F, 0x1F, 2),  # Greek
    _Block(0x04, 0x04, 3),  # Cyrillic
    _Block(0x05, 0x05, 4),  # Armenian and Hebrew
    _Block(0x06, 0x07, 5),  # Arabic and Syriac
    _Block(0x09, 0x0D, 6),  # Devanagari to Sinhala
    _Block(0x0E, 0x0F, 7),  # Thai, Lao, Tibetan
    _Block(0x20, 0x24, 9), _Block(0x26, 0x2B, 9),  # punctuation and signs
    _Block(0x25, 0x25, 10),  # boxes, blocks and geometric signs
    _Block(0x30, 0x30, 11),  # kana
    _Block(0x31, 0x9F, 12),  # Han
    _Block(0xAC, 0xD7, 13),  # Hangul
    _Block(0xD8, 0xDB, 14),  # first halves of characters beyond the first plane, alone
    _Block(0xDC, 0xDF, 0),  # their second halves
    _Block(0xE0, 0xFF, 15),  # private, compatible and full width
)  # fmt: skip
OTHER, HAN, HANGUL, ASTRAL = 8, 12, 13, 14
"""Scripts: any other, two with rare characters, and all beyond the first plane, such as emoji."""


def _scripts() -> Table:
    table = bytearray([0] + [OTHER] * 255)
    for block in _BLOCKS:
        for high in range(block.first, block.last + 1):
            table[high] = block.script
    return bytes(table)


def _block_numbers() -> Table:
    """Number the high bytes of the first plane below 84: those of Han, and of Hangul, share one."""
    numbers: list[int] = []
    for high in range(256):
        new = not (0x35 <= high <= 0x4C or 0x4F <= high <= 0x9F or 0xAD <= high <= 0xD7)
        new = new and not 0xE1 <= high <= 0xF8
        numbers.append(numbers[-1] + new if numbers else 0)
    return bytes(numbers)


def _astral_block_numbers() -> Table:
    """Number the high bytes of the second plane from 84 to 113."""
    numbers = bytearray([84] * 256)
    numbers[0x00], numbers[0x01], numbers[0x12] = 88, 89, 87
    numbers[0x13:0x20] = bytes([86] * 13)  # hieroglyphs
    numbers[0x20:0xD0] = bytes([85] * 176)
    numbers[0xD0:0xD8] = range(106, 114)  # music, letters of mathematics
    numbers[0xD8:0xF0] = bytes([85] * 24)
    numbers[0xF0:] = range(90, 106)  # emoji
    return bytes(numbers)


_SCRIPT = _scripts()
_BLOCK = _block_numbers()
_ASTRAL_BLOCK = _astral_block_numbers()
_IS_LATIN = bytes([0xFF] + [0] * 255)
_IS_ASTRAL = bytes([0] + [0xFF] * 255)
_BEYOND_SECOND_PLANE = bytes([0, 0] + [0x7F] * 254)  # The last number of a block
# Moves equal low bytes of different high bytes apart, in the layer of single characters.
_SALT = bytes(high * 37 & 0xFF for high in range(256))


def _number(row: bytes) -> int:
    """Return a row as one number, its first byte the lowest."""
    return int.from_bytes(row, "little")


_ONES = _number(b"\x01" * MOST_CHARACTERS)
_LOW_4, _HIGH_4 = _ONES * 0x0F, _ONES * 0xF0


@cache
def tables() -> dict[str, Any]:
    """Return the file of what was learned and fitted."""
    file = resources.files("conspectus.tokens").joinpath("weights.json")
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content


@cache
def _layers_of_neighbours() -> list[Neighbours]:
    """Return the layer of pieces and those that were learned."""
    layers = [Neighbours(_PIECES, [0x07, 0x38, 0xC0])]
    for stored in tables()["neighbours"]:
        masks: list[int] = []
        first_bit = 0
        for bits in stored["bits"]:
            masks.append(((1 << bits) - 1) << first_bit)
            first_bit += bits
        layers.append(Neighbours(base64.b64decode(stored["classes"]), masks))
    return layers


class _Layout(NamedTuple):
    """How the rows of pieces and of neighbours follow each other in one integer."""

    stride: int  # Bytes from the beginning of a row to that of the next
    masks: list[int]  # The masks of all layers: for a character itself, for the one after it, ...


@cache
def _layout(stride: int) -> _Layout:
    layers = _layers_of_neighbours()
    masks: list[int] = []
    for distance in range(max(len(layer.masks) for layer in layers)):
        bits = [layer.masks[distance] if distance < len(layer.masks) else 0 for layer in layers]
        masks.append(_number(b"".join(bytes([bits_of_layer]) * stride for bits_of_layer in bits)))
    return _Layout(stride, masks)


def _layout_for(size: int) -> _Layout:
    """Return the layout for rows of so many bytes; there are few, as each takes memory."""
    step = 1 << max(4, size.bit_length() - 3)
    return _layout((size + SPARE_BYTES + step - 1) // step * step)


def coded(text: str) -> CodedText:
    """Code the characters of a text of at most `MOST_CHARACTERS`: a byte for each, in each layer.

    A text in Latin-1 has the layers of every text alone, and no scripts.
    """
    try:
        row = text.encode("latin-1")
    except UnicodeEncodeError:
        return _coded_beyond_latin(text)
    size = len(row)
    characters = _number(row)
    ones = _ONES >> 8 * (MOST_CHARACTERS - size)
    equal = _ones_where_zero(characters ^ characters << 8, ones)
    return CodedText(_common_layers(row, characters, equal), b"")


def _coded_beyond_latin(text: str) -> CodedText:
    wide = text.encode("utf-32-le", "surrogatepass")
    low, high, planes = _number(wide[::4]), wide[1::4], wide[2::4]
    size = len(high)
    ones = _ONES >> 8 * (MOST_CHARACTERS - size)
    scripts = high.translate(_SCRIPT)
    script, block = _number(scripts), _number(high.translate(_BLOCK))
    if planes.count(0) < size:
        is_astral = _number(planes.translate(_IS_ASTRAL))
        script = script & ~is_astral | ones * ASTRAL & is_astral
        scripts = script.to_bytes(size, "little")
        block = block & ~is_astral | _number(high.translate(_ASTRAL_BLOCK)) & is_astral
        block |= _number(planes.translate(_BEYOND_SECOND_PLANE))
    is_latin = _number(scripts.translate(_IS_LATIN))
    beyond = is_latin & ones ^ ones  # A one for each character beyond Latin-1
    is_beyond = beyond * 0xFF
    characters = is_latin & low | script | beyond * STAND_IN
    equal = _ones_where_zero(characters ^ characters << 8 | low ^ low << 8, ones)
    layers = _common_layers(characters.to_bytes(size, "little"), characters, equal)
    same_script = _ones_where_zero(script ^ script << 8, ones) & beyond
    wide_layers = [
        (block << 1) | ((low >> 7) & beyond),
        script | (low & _HIGH_4 & is_beyond),
        script | (low & _LOW_4 & is_beyond) << 4,
        script | (script << 12),  # four bits up, and one character on
        script | (_up_to_three(equal) << 4) | (_up_to_three(same_script) << 6),
        (low ^ _number(high.translate(_SALT))) & is_beyond,
    ]
    # Shifts may move the last character beyond the row.
    layers += [layer.to_bytes(size + SPARE_BYTES, "little")[:size] for layer in wide_layers]
    return CodedText(layers, scripts)


def _common_layers(row: bytes, characters: int, equal: int) -> list[bytes]:
    """Return the layers of every text for a row of characters, which is given as a number, too.

    `equal` has a one for each character that the one before it is, too.
    """
    size = len(row)
    runs = _number(row.translate(_KIND))
    once = row
    if equal:
        three = equal & equal << 8
        five = three & three << 16
        nine = five & five << 32
        seventeen = nine & nine << 64
        runs |= (equal + three + five + nine + seventeen) << 4
        if five:
            once = _without(row, characters, five)
    return [runs.to_bytes(size + SPARE_BYTES, "little")[:size], *_neighbour_layers(once)]


def _without(row: bytes, characters: int, repeated: int) -> bytes:
    """Return a row without the characters that have a one in `repeated`."""
    if UNUSED in row:
        row = row.replace(UNUSED, b"\0")
        characters = _number(row)
    marked = characters & ~(repeated * 0xFF) | repeated * UNUSED[0]
    return marked.to_bytes(len(row) + SPARE_BYTES, "little")[: len(row)].translate(None, UNUSED)


def _neighbour_layers(row: bytes) -> list[bytes]:
    size = len(row)
    stride, masks = _layout_for(size)
    spare = bytes(stride - size)
    layers = _layers_of_neighbours()
    classes = _number(spare.join([row.translate(layer.classes) for layer in layers]))
    codes = classes & masks[0]
    for distance, mask in enumerate(masks[1:], 1):
        codes |= (classes & mask) << 8 * distance
    joined = codes.to_bytes(len(layers) * stride, "little")
    return [joined[at : at + size] for at in range(0, len(joined), stride)]


def _up_to_three(goes_on: int) -> int:
    """Return how many in a row have a one up to each character: 0, 1, 2 or 3; 3 from four on."""
    two = goes_on & goes_on << 8
    return goes_on + two + (two & two << 16)


def _ones_where_zero(row: int, ones: int) -> int:
    """Return a one in each byte that is zero in a row."""
    some = row | row >> 4
    some |= some >> 2
    some |= some >> 1
    return some & ones ^ ones
