"""Scripts of the world, signs, and emoji."""

from __future__ import annotations

import string
import unicodedata
from functools import cache, partial
from random import Random

from babel import Locale

from token_kinds.kind import Registry, repeated, sentence, word

KINDS = Registry()

BLOCKS = {
    "Latin-1": (0xA1, 0xFF), "Latin extended A": (0x100, 0x17F), "Latin extended B": (0x180, 0x24F),
    "phonetic": (0x250, 0x2AF), "modifiers": (0x2B0, 0x2FF), "Greek": (0x370, 0x3FF),
    "Cyrillic": (0x400, 0x45F), "Cyrillic extended": (0x460, 0x52F), "Armenian": (0x531, 0x58A),
    "Hebrew": (0x5D0, 0x5EA), "Arabic": (0x620, 0x64A), "Arabic extended": (0x671, 0x6D3),
    "Syriac": (0x710, 0x74F), "Thaana": (0x780, 0x7B1), "N'Ko": (0x7C0, 0x7FA),
    "Devanagari": (0x904, 0x97F), "Bengali": (0x985, 0x9FB), "Gurmukhi": (0xA05, 0xA76),
    "Gujarati": (0xA85, 0xAF1), "Oriya": (0xB05, 0xB77), "Tamil": (0xB83, 0xBFA),
    "Telugu": (0xC05, 0xC7F), "Kannada": (0xC85, 0xCF2), "Malayalam": (0xD05, 0xD7F),
    "Sinhala": (0xD85, 0xDF4), "Thai": (0xE01, 0xE5B), "Lao": (0xE81, 0xEDF),
    "Tibetan": (0xF00, 0xFBC), "Myanmar": (0x1000, 0x109F), "Georgian": (0x10D0, 0x10FF),
    "Georgian capitals": (0x10A0, 0x10C5), "Jamo": (0x1100, 0x11FF), "Ethiopic": (0x1200, 0x1357),
    "Cherokee": (0x13A0, 0x13F5), "Canadian syllables": (0x1400, 0x167F), "Ogham": (0x1680, 0x169C),
    "Runic": (0x16A0, 0x16F0), "Tagalog": (0x1700, 0x1714), "Khmer": (0x1780, 0x17DD),
    "Mongolian": (0x1820, 0x18AA), "Limbu": (0x1900, 0x194F), "Balinese": (0x1B05, 0x1B6A),
    "Tifinagh": (0x2D30, 0x2D67), "Glagolitic": (0x2C00, 0x2C5F), "Coptic": (0x2C80, 0x2CE3),
    "Latin extended additional": (0x1E00, 0x1EFF), "Greek extended": (0x1F00, 0x1FFC),
    "punctuation": (0x2010, 0x205E), "superscripts": (0x2070, 0x209C), "currency": (0x20A0, 0x20BF),
    "letter-like": (0x2100, 0x214F), "number forms": (0x2150, 0x218B), "arrows": (0x2190, 0x21FF),
    "mathematical signs": (0x2200, 0x22FF), "technical signs": (0x2300, 0x23FF),
    "circled": (0x2460, 0x24FF), "box drawing": (0x2500, 0x257F), "blocks": (0x2580, 0x259F),
    "geometric": (0x25A0, 0x25FF), "miscellaneous signs": (0x2600, 0x26FF),
    "dingbats": (0x2700, 0x27BF), "more arrows": (0x27F0, 0x27FF), "Braille": (0x2800, 0x28FF),
    "more mathematical signs": (0x2A00, 0x2AFF), "radicals": (0x2E80, 0x2EF3),
    "CJK punctuation": (0x3001, 0x303F), "Hiragana": (0x3041, 0x3096), "Katakana": (0x30A1, 0x30FC),
    "Bopomofo": (0x3105, 0x312F), "enclosed CJK": (0x3200, 0x32FE), "CJK extension A": (0x3400, 0x4DBF),
    "hexagrams": (0x4DC0, 0x4DFF), "CJK": (0x4E00, 0x9FFF), "Yi": (0xA000, 0xA48C),
    "Vai": (0xA500, 0xA62B), "Javanese": (0xA984, 0xA9D9), "Hangul": (0xAC00, 0xD7A3),
    "Arabic forms": (0xFE70, 0xFEFC), "full width": (0xFF01, 0xFF5E), "half width": (0xFF61, 0xFF9F),
    "private": (0xE000, 0xF8FF), "Gothic": (0x10330, 0x1034A), "cuneiform": (0x12000, 0x12399),
    "hieroglyphs": (0x13000, 0x1342E), "mathematical letters": (0x1D400, 0x1D7FF),
    "pictures": (0x1F300, 0x1F5FF), "faces": (0x1F600, 0x1F64F), "vehicles": (0x1F680, 0x1F6C5),
    "more pictures": (0x1F900, 0x1F9FF), "regions": (0x1F1E6, 0x1F1FF),
    "music": (0x1D100, 0x1D1E8), "tiles and cards": (0x1F000, 0x1F0F5), "CJK extension B": (0x20000, 0x2A6DF),
}  # fmt: skip
"""Blocks of Unicode by their first and last letters."""

SPOKEN = frozenset((
    "Latin-1", "Latin extended A", "Latin extended additional", "Greek", "Cyrillic", "Hebrew", "Arabic",
    "Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Tamil", "Telugu", "Kannada", "Malayalam", "Thai",
    "Hiragana", "Katakana", "Armenian", "Georgian", "Oriya", "Sinhala", "Lao", "Tibetan", "Myanmar",
    "Khmer",
))  # fmt: skip
"""Scripts of languages that tokenizers know well. Random letters of them are no text that anybody
writes, so that they stand here by names and catalogues in those languages alone."""

LOCALES = {
    "Amharic": "am", "Armenian": "hy", "Assamese": "as", "Basque": "eu", "Belarusian": "be", "Bengali": "bn", "Bulgarian": "bg", "Burmese": "my", "Cherokee": "chr", "Estonian": "et", "Georgian": "ka", "Gujarati": "gu", "Icelandic": "is", "Irish": "ga", "Kannada": "kn", "Kazakh": "kk", "Khmer": "km", "Lao": "lo", "Latvian": "lv", "Lithuanian": "lt", "Malayalam": "ml", "Marathi": "mr", "Mongolian": "mn", "Nepali": "ne", "Odia": "or", "Pashto": "ps", "Persian": "fa", "Punjabi": "pa", "Sinhala": "si", "Swahili": "sw", "Tamil": "ta", "Telugu": "te", "Tibetan": "bo", "Tigrinya": "ti", "Urdu": "ur", "Uyghur": "ug", "Uzbek": "uz", "Welsh": "cy", "Yiddish": "yi", "Yoruba": "yo", "Zulu": "zu",
}  # fmt: skip
"""Languages that tokenizers know less well, by the names of countries, months and units. Those that
they know well are measured by prose."""

WITHOUT_SPACES = {
    "Korean": "ko", "Khmer": "km", "Lao": "lo", "Burmese": "my", "Amharic": "am", "Tibetan": "bo",
}  # fmt: skip


@cache
def letters_of(first: int, last: int) -> list[str]:
    """Return the assigned characters of a range."""
    made = map(chr, range(first, last + 1))
    return [letter for letter in made if unicodedata.category(letter) not in ("Cn", "Cc", "Cs")]


def dense(draw: Random, size: int, first: int, last: int) -> str:
    """Draw characters of a block without spaces."""
    return "".join(draw.choices(letters_of(first, last), k=size // 2))


def spaced(draw: Random, size: int, first: int, last: int) -> str:
    """Draw words of random characters of a block."""
    letters = letters_of(first, last)
    return repeated(
        draw, size // 2, lambda draw: "".join(draw.choices(letters, k=draw.randint(1, 9))), " "
    )


def few(draw: Random, size: int, first: int, last: int) -> str:
    """Draw words of a few characters of a block, in runs, among English words."""
    letters = draw.sample(letters_of(first, last), min(12, len(letters_of(first, last))))

    def part(draw: Random) -> str:
        if draw.random() < 0.4:
            return word(draw)
        return draw.choice(letters) * draw.choice((1, 1, 2, 5)) + draw.choice(letters)

    return repeated(draw, size, part, draw.choice((" ", "", "\n", ", ")))


for name, (first, last) in BLOCKS.items():
    if name in SPOKEN:
        continue
    KINDS.text(f"script, {name}, dense")(partial(dense, first=first, last=last))
    KINDS.text(f"script, {name}, words")(partial(spaced, first=first, last=last))
    KINDS.text(f"script, {name}, among English")(partial(few, first=first, last=last))


@cache
def names_in(locale: str) -> list[str]:
    """Return names of countries, languages, months and units in a language."""
    found = Locale.parse(locale)
    tables = (
        found.territories,
        found.languages,
        found.months["format"]["wide"],
        found.days["format"]["wide"],
        found.currencies,
    )
    return [str(name) for table in tables for name in table.values() if len(str(name)) > 1]


def listed(draw: Random, size: int, locale: str) -> str:
    """Draw names in a language, with words of sentences between."""
    return repeated(
        draw, size, lambda draw: draw.choice(names_in(locale)), draw.choice((", ", " ", "\n"))
    )


def unspaced(draw: Random, size: int, locale: str) -> str:
    """Draw names in a language without a space."""
    return "".join(listed(draw, size, locale).split())


def keyed(draw: Random, size: int, locale: str) -> str:
    """Draw a list of keys with names in a language."""
    return repeated(
        draw,
        size,
        lambda draw: f'  "{word(draw)}_{draw.randint(1, 99)}": "{draw.choice(names_in(locale))}",',
    )


for name, locale in LOCALES.items():
    KINDS.text(f"names in {name}")(partial(listed, locale=locale))
    KINDS.text(f"catalogue in {name}")(partial(keyed, locale=locale))
for name, locale in WITHOUT_SPACES.items():
    KINDS.text(f"names in {name} without spaces")(partial(unspaced, locale=locale))


@KINDS.lines("emoji", "")
def emoji(draw: Random) -> str:
    return chr(
        draw.choice(
            (
                draw.randint(0x1F300, 0x1F5FF),
                draw.randint(0x1F600, 0x1F64F),
                draw.randint(0x1F680, 0x1F6C5),
                draw.randint(0x1F900, 0x1F9FF),
            )
        )
    )


@KINDS.lines("emoji of faces", " ")
def faces(draw: Random) -> str:
    return chr(draw.randint(0x1F600, 0x1F64F))


@KINDS.lines("emoji with joiners", "")
def joined(draw: Random) -> str:
    parts = ("👨", "👩", "👧", "👦", "❤️", "💻", "🚀", "🏽", "🔬", "🎨", "✈️", "⚕️")
    return "\u200d".join(draw.choices(parts, k=draw.randint(2, 4)))


@KINDS.lines("emoji with skins", "")
def skins(draw: Random) -> str:
    return draw.choice("👍👋🙏👏💪🤝👌✋🤞👊") + chr(draw.randint(0x1F3FB, 0x1F3FF))


@KINDS.lines("emoji of flags", "")
def flags(draw: Random) -> str:
    return "".join(chr(0x1F1E6 + draw.randint(0, 25)) for _ in range(2))


@KINDS.lines("emoji of keys", " ")
def keycaps(draw: Random) -> str:
    return draw.choice(string.digits + "#*") + "\ufe0f\u20e3"


@KINDS.lines("emoji among English", " ")
def among(draw: Random) -> str:
    return f"{word(draw)} {word(draw)} {draw.choice('😀😂🔥✅❌⚠️🚀🎉👍💡📦🐛✨🔧📝')}"


@KINDS.lines("emoji before log lines")
def before_lines(draw: Random) -> str:
    return f"{draw.choice('✅❌⚠🚀🔥📦🐛✨🔧📝⏳🔍')} {sentence(draw)}"


@KINDS.lines("combining marks", "")
def combining(draw: Random) -> str:
    return draw.choice(string.ascii_letters) + "".join(
        chr(draw.randint(0x300, 0x36F)) for _ in range(draw.randint(1, 5))
    )


@KINDS.lines("letters and marks apart", " ")
def decomposed(draw: Random) -> str:
    return "".join(
        letter + draw.choice(("", "", "\u0301", "\u0308", "\u0303")) for letter in word(draw)
    )


@KINDS.lines("typographic English", " ")
def typographic(draw: Random) -> str:
    return draw.choice(
        ("“{}”", "‘{}’", "{} — ", "{}…", "{}’s", "«{}»", "{}–", "• {}", "{}®", "§ {}")
    ).format(word(draw))


@KINDS.lines("letters in full width", " ")
def full_width(draw: Random) -> str:
    return "".join(chr(ord(letter) + 0xFEE0) for letter in word(draw))


@KINDS.lines("letters of mathematics", " ")
def mathematical(draw: Random) -> str:
    start = draw.choice((0x1D41A, 0x1D44E, 0x1D5BA, 0x1D68A))
    return "".join(chr(start + ord(letter) - 97) for letter in word(draw) if letter != "h")


@KINDS.lines("letters like others", " ")
def alike(draw: Random) -> str:
    return word(draw).translate(str.maketrans("aeopcxy", "аеорсху"))


@KINDS.lines("zero widths", "")
def zero_widths(draw: Random) -> str:
    return draw.choice(word(draw)) + draw.choice("\u200b\u200c\u200d\u2060\ufeff\u00ad")


@KINDS.lines("spaces of Unicode", "")
def spaces(draw: Random) -> str:
    return word(draw) + draw.choice("\u00a0\u2003\u2009\u202f\u3000\u2028\u0085")


@KINDS.lines("directions", " ")
def directions(draw: Random) -> str:
    return f"\u202b{draw.choice(names_in('ar'))}\u202c {word(draw)} \u2067{draw.choice(names_in('he'))}\u2069"


@KINDS.lines("formulas of Unicode", " ")
def formulas(draw: Random) -> str:
    return f"{draw.choice('∀∃∑∏∫∂∇√')}{draw.choice('xyznαβγλμσ')} {draw.choice('∈∉⊂⊆≤≥≠≈→⇒∧∨∩∪')} {draw.choice('ℝℕℤℂ∅∞ΩΔΓ')}{draw.choice('²³ⁿ₀₁₂ᵢ')}"


@KINDS.lines("logic", "")
def logic(draw: Random) -> str:
    return "".join(draw.choices("¬∧∨→↔⊢⊨∀∃()pqrst ", k=20))


@KINDS.lines("pinyin", " ")
def pinyin(draw: Random) -> str:
    return (
        draw.choice("b p m f d t n l g k h j q x zh ch sh r z c s".split())
        + draw.choice("ā á ǎ à ē é ě è ī í ǐ ì ō ó ǒ ò ū ú ǔ ù ǘ ǚ".split())
        + draw.choice(("", "n", "ng", "o", "i"))
    )


@KINDS.lines("phonetic words", " ")
def phonetic(draw: Random) -> str:
    return (
        "/"
        + "".join(draw.choices("pbtdkgfvszʃʒθðhmnŋlrjwiɪeɛæəʌɑɔʊuːˈˌ", k=draw.randint(3, 9)))
        + "/"
    )


@KINDS.lines("Korean, dense", "")
def korean(draw: Random) -> str:
    return "".join(
        draw.choices(
            "가나다라마바사아자차카타파하고노도로모보소오조코토포호기니디리미비시이지키티피히은는이을를에의와과도만",
            k=20,
        )
    )


@KINDS.lines("bars of dominoes", "")
def dominoes(draw: Random) -> str:
    return draw.choice("░▒▓█▀▄▌▐■□▪▫◆◇○●◎") * draw.randint(1, 6)


@KINDS.lines("arrows among words", " ")
def arrow_words(draw: Random) -> str:
    return f"{word(draw)} {draw.choice('→←↑↓⇒⟶↔⇄➜»')} {word(draw)}"


@KINDS.lines("many scripts by turns", " ")
def many_scripts(draw: Random) -> str:
    return draw.choice(names_in(draw.choice(list(LOCALES.values()))))


@KINDS.lines("lone surrogates and replacements", "")
def broken(draw: Random) -> str:
    return draw.choice(("\ufffd", "\ufffd\ufffd", "Ã©", "â€™", "Ð¿", "ï»¿")) + draw.choice(
        ("", word(draw))
    )
