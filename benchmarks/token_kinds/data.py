"""Data: JSON, CSV, markup, encodings, numbers, formulas, and other notations."""

from __future__ import annotations

import base64
import json
import string
from random import Random
from typing import Any
from urllib.parse import quote

from token_kinds.kind import (
    PEOPLE,
    Registry,
    address,
    alphanumeric,
    camel,
    date,
    decimal,
    hexadecimal,
    number,
    pascal,
    path,
    repeated,
    sentence,
    snake,
    uuid,
    value,
    word,
    words,
)  # fmt: skip

KINDS = Registry()


def record(draw: Random, depth: int = 0) -> Any:
    """Draw a JSON value."""
    makers = (word, number, decimal, date, uuid, sentence, snake, path)
    if depth < 3 and draw.random() < 0.3:
        many = draw.randint(1, 5)
        if draw.random() < 0.5:
            return [record(draw, depth + 1) for _ in range(many)]
        return {draw.choice((snake, camel))(draw): record(draw, depth + 1) for _ in range(many)}
    simple = draw.choice(makers)(draw)
    return draw.choice((simple, simple, draw.randint(0, 9999), True, None, draw.random()))


def objects(draw: Random, size: int) -> list[Any]:
    """Draw objects with the same keys, of about so many characters."""
    keys = [draw.choice((snake, camel))(draw) for _ in range(draw.randint(3, 7))]
    made = []
    while sum(len(str(item)) for item in made) < size:
        made.append({key: record(draw, 1) for key in keys})
    return made


@KINDS.text("JSON, compact")
def compact(draw: Random, size: int) -> str:
    return json.dumps(objects(draw, size), separators=(",", ":"))


@KINDS.text("JSON, spaced")
def spaced(draw: Random, size: int) -> str:
    return json.dumps(objects(draw, size))


@KINDS.text("JSON, indented by two")
def indented(draw: Random, size: int) -> str:
    return json.dumps(objects(draw, size * 2 // 3), indent=2)


@KINDS.text("JSON, indented by four")
def wide(draw: Random, size: int) -> str:
    return json.dumps(objects(draw, size // 2), indent=4)


@KINDS.text("JSON, indented by tabs")
def tabbed(draw: Random, size: int) -> str:
    return json.dumps(objects(draw, size * 2 // 3), indent="\t")


@KINDS.text("JSON lines")
def lines(draw: Random, size: int) -> str:
    return "\n".join(json.dumps(item) for item in objects(draw, size))


@KINDS.text("JSON in JSON")
def twice(draw: Random, size: int) -> str:
    return json.dumps({"text": json.dumps(objects(draw, size // 2))})


@KINDS.text("JSON in JSON in JSON")
def thrice(draw: Random, size: int) -> str:
    return json.dumps(json.dumps(json.dumps(objects(draw, size // 3), indent=1)))


@KINDS.text("JSON of numbers")
def numbers(draw: Random, size: int) -> str:
    return json.dumps(
        [[round(draw.uniform(-180, 180), 6), draw.randint(0, 99)] for _ in range(size // 18)]
    )


@KINDS.text("JSON of numbers, indented")
def indented_numbers(draw: Random, size: int) -> str:
    return json.dumps(
        [[draw.randint(0, 99) for _ in range(4)] for _ in range(size // 50 + 1)], indent=2
    )


@KINDS.text("JSON of short values, indented")
def short_values(draw: Random, size: int) -> str:
    made = [
        {"id": draw.randint(1, 99), "ok": draw.random() < 0.5, "x": None}
        for _ in range(size // 60 + 1)
    ]
    return json.dumps(made, indent=draw.choice((1, 2, 4)))


@KINDS.text("Python literals")
def literals(draw: Random, size: int) -> str:
    return repr(objects(draw, size))


@KINDS.text("escaped text")
def escaped(draw: Random, size: int) -> str:
    body = repeated(draw, size, lambda draw: f'\t"{word(draw)}": {sentence(draw)}', "\n")
    return json.dumps(body)


@KINDS.lines("escaped Unicode", "")
def unicode_escapes(draw: Random) -> str:
    return json.dumps("".join(chr(draw.randint(0x400, 0x9FFF)) for _ in range(8)))[1:-1]


@KINDS.lines("escaped backslashes", " ")
def backslashes(draw: Random) -> str:
    return "C:\\\\" + path(draw).replace("/", "\\\\")


@KINDS.lines("percent escapes", "&")
def percents(draw: Random) -> str:
    return quote(f"{snake(draw)}={sentence(draw)} é{{{word(draw)}}}")


@KINDS.lines("entities of HTML", " ")
def entities(draw: Random) -> str:
    return f"&lt;{word(draw)}&gt; &amp;{word(draw)}; &#{draw.randint(33, 9999)};&nbsp;"


@KINDS.lines("CSV")
def csv(draw: Random) -> str:
    return ",".join(value(draw) for _ in range(6))


@KINDS.lines("CSV of numbers")
def csv_numbers(draw: Random) -> str:
    return ",".join(draw.choice((number, decimal))(draw) for _ in range(8))


@KINDS.lines("CSV, quoted")
def csv_quoted(draw: Random) -> str:
    return ",".join(f'"{value(draw)}"' for _ in range(5))


@KINDS.lines("CSV, semicolons and empty")
def csv_empty(draw: Random) -> str:
    return ";".join(draw.choice((value(draw), "", "")) for _ in range(9))


@KINDS.lines("CSV of flags")
def csv_flags(draw: Random) -> str:
    return ",".join(draw.choice(("0", "1", "Y", "N", "", "NA")) for _ in range(14))


@KINDS.lines("coordinates", ", ")
def coordinates(draw: Random) -> str:
    return f"({draw.uniform(-90, 90):.6f}, {draw.uniform(-180, 180):.6f})"


@KINDS.lines("coordinates in degrees")
def degrees(draw: Random) -> str:
    return f"{draw.randint(0, 89)}°{draw.randint(0, 59):02}′{draw.uniform(0, 60):05.2f}″{draw.choice('NS')} {draw.randint(0, 179)}°{draw.randint(0, 59):02}′{draw.choice('EW')}"


@KINDS.lines("path of SVG", " ")
def svg_path(draw: Random) -> str:
    return draw.choice("MLCQHVZmlcq") + ",".join(
        f"{draw.uniform(-99, 99):.2f}" for _ in range(draw.choice((2, 4, 6)))
    )


@KINDS.lines("vertices of a mesh")
def vertices(draw: Random) -> str:
    return "v " + " ".join(f"{draw.uniform(-9, 9):.6f}" for _ in range(3))


@KINDS.lines("numbers in scientific form", " ")
def scientific(draw: Random) -> str:
    return f"{draw.uniform(-9, 9):.{draw.randint(2, 16)}e}"


@KINDS.lines("embedding", ", ")
def embedding(draw: Random) -> str:
    return f"{draw.gauss(0, 0.05):.18f}"[: draw.randint(8, 21)]


@KINDS.lines("prices")
def prices(draw: Random) -> str:
    return f"{word(draw).title():<16}{draw.choice('$€£¥')}{draw.randint(0, 999):,}.{draw.randint(0, 99):02}"


@KINDS.lines("phone numbers")
def phones(draw: Random) -> str:
    return f"+{draw.randint(1, 99)} ({draw.randint(100, 999)}) {draw.randint(100, 999)}-{draw.randint(1000, 9999)}"


@KINDS.lines("long digits", " ")
def long_digits(draw: Random) -> str:
    return "".join(draw.choices(string.digits, k=draw.randint(9, 60)))


@KINDS.lines("numbers with separators", "  ")
def separated(draw: Random) -> str:
    return f"{draw.randint(0, 10**9):{draw.choice(',_')}}"


@KINDS.lines("numbers of one digit", ",")
def single_digits(draw: Random) -> str:
    return draw.choice(string.digits)


@KINDS.lines("Roman numerals", " ")
def romans(draw: Random) -> str:
    return "".join(draw.choices("IVXLCDM", k=draw.randint(1, 7)))


@KINDS.lines("base64, lines")
def base64_lines(draw: Random) -> str:
    return base64.b64encode(draw.randbytes(57)).decode()


@KINDS.text("base64, one line")
def base64_long(draw: Random, size: int) -> str:
    return base64.b64encode(draw.randbytes(size * 3 // 4)).decode()


@KINDS.text("base64 of text")
def base64_text(draw: Random, size: int) -> str:
    return base64.b64encode(repeated(draw, size * 3 // 4, sentence).encode()).decode()


@KINDS.lines("base64 of an address", ".")
def tokens(draw: Random) -> str:
    return (
        base64.urlsafe_b64encode(json.dumps({snake(draw): uuid(draw)}).encode())
        .decode()
        .rstrip("=")
    )


@KINDS.lines("base32", " ")
def base32(draw: Random) -> str:
    return base64.b32encode(draw.randbytes(20)).decode()


@KINDS.lines("base85", "")
def base85(draw: Random) -> str:
    return base64.b85encode(draw.randbytes(40)).decode()


@KINDS.lines("base58", " ")
def base58(draw: Random) -> str:
    return "".join(draw.choices("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", k=34))


@KINDS.lines("uuencoded")
def uuencoded(draw: Random) -> str:
    return "M" + "".join(chr(32 + draw.randint(0, 63)) for _ in range(60))


@KINDS.lines("keys in PEM")
def pem(draw: Random) -> str:
    body = "\n".join(base64.b64encode(draw.randbytes(48)).decode() for _ in range(6))
    return f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----"


@KINDS.lines("DNA", "")
def dna(draw: Random) -> str:
    return "".join(draw.choices("ACGT", k=60))


@KINDS.lines("DNA, lower case", "\n")
def lower_dna(draw: Random) -> str:
    return "".join(draw.choices("acgt", k=70))


@KINDS.lines("DNA in groups", " ")
def grouped_dna(draw: Random) -> str:
    return "".join(draw.choices("ACGTN", k=10))


@KINDS.lines("protein")
def protein(draw: Random) -> str:
    return "".join(draw.choices("ACDEFGHIKLMNPQRSTVWY", k=60))


@KINDS.lines("quality of reads")
def quality(draw: Random) -> str:
    return "".join(chr(draw.randint(33, 74)) for _ in range(60))


@KINDS.lines("molecules", " ")
def molecules(draw: Random) -> str:
    parts = (
        "C",
        "c1ccccc1",
        "N",
        "O",
        "=O",
        "(C)",
        "[nH]",
        "CC",
        "F",
        "Cl",
        "C(=O)",
        "[C@@H]",
        "n1",
        "#N",
    )
    return "".join(draw.choices(parts, k=draw.randint(4, 14)))


@KINDS.lines("chemical formulas", " ")
def formulas(draw: Random) -> str:
    return "".join(
        draw.choice(("C", "H", "O", "N", "Na", "Cl", "Fe", "SO"))
        + draw.choice(("", "2", "3", "6", "12"))
        for _ in range(4)
    )


@KINDS.lines("chess games", " ")
def chess(draw: Random) -> str:
    def move() -> str:
        return (
            draw.choice(("", "N", "B", "R", "Q", "K"))
            + draw.choice(("", "x"))
            + draw.choice("abcdefgh")
            + draw.choice("12345678")
            + draw.choice(("", "", "+"))
        )

    return f"{draw.randint(1, 60)}. {move()} {move()}"


@KINDS.lines("chess positions")
def positions(draw: Random) -> str:
    ranks = "/".join("".join(draw.choices("rnbqkpRNBQKP1234", k=6)) for _ in range(8))
    return f"{ranks} {draw.choice('wb')} KQkq - {draw.randint(0, 9)} {draw.randint(1, 60)}"


@KINDS.lines("chords", " | ")
def chords(draw: Random) -> str:
    return " ".join(
        draw.choice("ABCDEFG") + draw.choice(("", "m", "7", "maj7", "sus4", "#m", "b"))
        for _ in range(4)
    )


@KINDS.lines("tablature")
def tablature(draw: Random) -> str:
    return (
        draw.choice("eBGDAE")
        + "|"
        + "".join(draw.choice(("-", "-", "-", str(draw.randint(0, 12)))) for _ in range(32))
        + "|"
    )


@KINDS.lines("Morse code", " ")
def morse(draw: Random) -> str:
    return "".join(draw.choices(".-", k=draw.randint(1, 5)))


@KINDS.lines("brain-teasing code", "")
def brain(draw: Random) -> str:
    return "".join(draw.choices("+-<>[].,", k=40))


@KINDS.lines("regular expressions", " ")
def expressions(draw: Random) -> str:
    parts = (
        r"\d+",
        r"[a-z]*",
        r"(?:",
        ")",
        r"\s",
        "^",
        "$",
        "|",
        r"\w{2,}",
        "[^/]+",
        r"\.",
        ".*?",
        r"(?P<name>",
    )
    return "".join(draw.choices(parts, k=8))


@KINDS.lines("random punctuation", "")
def punctuation(draw: Random) -> str:
    return "".join(draw.choices(string.punctuation, k=40))


@KINDS.lines("random printable characters", "")
def printable(draw: Random) -> str:
    return "".join(draw.choices(string.printable[:95], k=40))


@KINDS.lines("random letters", "")
def letters(draw: Random) -> str:
    return "".join(draw.choices(string.ascii_letters, k=40))


@KINDS.lines("random small letters", " ")
def small_letters(draw: Random) -> str:
    return "".join(draw.choices(string.ascii_lowercase, k=draw.randint(2, 16)))


@KINDS.lines("random capitals", " ")
def capitals(draw: Random) -> str:
    return "".join(draw.choices(string.ascii_uppercase, k=draw.randint(2, 12)))


@KINDS.lines("passwords")
def passwords(draw: Random) -> str:
    return "".join(draw.choices(string.ascii_letters + string.digits + "!@#$%^&*", k=16))


@KINDS.lines("license plates and codes", ", ")
def plates(draw: Random) -> str:
    return (
        "".join(draw.choices(string.ascii_uppercase, k=3))
        + "-"
        + "".join(draw.choices(string.digits, k=draw.randint(2, 4)))
    )


@KINDS.lines("XML")
def xml(draw: Random) -> str:
    name = camel(draw)
    return (
        "  " * draw.randint(0, 4) + f'<{name} {snake(draw)}="{value(draw)}">{value(draw)}</{name}>'
    )


@KINDS.lines("XML, dense", "")
def dense_xml(draw: Random) -> str:
    name = draw.choice("abcdprstuvwx")
    return f'<{name} i="{draw.randint(0, 99)}"/><{name}:{name}>{draw.randint(0, 9)}</{name}:{name}>'


@KINDS.lines("HTML")
def html(draw: Random) -> str:
    name = draw.choice(("div", "span", "p", "li", "td", "h2", "section"))
    return (
        "    " * draw.randint(0, 4)
        + f'<{name} class="{word(draw)}-{word(draw)} {word(draw)}" id="{snake(draw)}">{words(draw, 1, 8)}</{name}>'
    )


@KINDS.lines("HTML, minified", "")
def minified_html(draw: Random) -> str:
    return f'<tr><td>{value(draw)}<td class={word(draw)}>{number(draw)}<a href="/{path(draw)}">{word(draw)}</a></tr>'


@KINDS.lines("LaTeX")
def latex(draw: Random) -> str:
    letter = draw.choice("abcnxyz")
    return draw.choice((
        f"\\begin{{equation}}\\label{{eq:{word(draw)}}} \\frac{{\\partial {letter}}}{{\\partial t}} = \\alpha_{{{letter}}}^{{2}} + \\sum_{{i=1}}^{{n}} {letter}_i \\end{{equation}}",
        f"\\section{{{words(draw, 1, 4).title()}}}\n{sentence(draw)} $\\mathcal{{O}}(n \\log n)$ \\cite{{{word(draw)}{draw.randint(1990, 2026)}}}.",
        f"\\item \\textbf{{{word(draw)}}}: ${letter}_{{{draw.randint(1, 9)}}} \\leq \\sqrt{{{draw.randint(2, 99)}}}$",
    ))  # fmt: skip


@KINDS.lines("YAML")
def yaml(draw: Random) -> str:
    return "  " * draw.randint(0, 4) + draw.choice(("- ", "")) + f"{snake(draw)}: {value(draw)}"


@KINDS.lines("TOML and INI")
def toml(draw: Random) -> str:
    return draw.choice(
        (
            f"[{snake(draw)}.{word(draw)}]",
            f'{snake(draw)} = "{value(draw)}"',
            f"{snake(draw)} = {number(draw)}",
            f"; {words(draw, 2, 6)}",
        )
    )


@KINDS.lines("environment variables")
def environment(draw: Random) -> str:
    return f"{snake(draw).upper()}={draw.choice((path, alphanumeric_20, number))(draw)}"


def alphanumeric_20(draw: Random) -> str:
    """Draw a token of 20 characters."""
    return alphanumeric(draw, 20)


@KINDS.lines("GraphQL")
def graphql(draw: Random) -> str:
    return f"query {pascal(draw)}($id: ID!) {{ {camel(draw)}(id: $id) {{ id {camel(draw)} {{ edges {{ node {{ {camel(draw)} }} }} }} }} }}"


@KINDS.lines("protocol buffers")
def protocol(draw: Random) -> str:
    return f"message {pascal(draw)} {{\n  repeated {draw.choice(('string', 'int64', 'bytes'))} {snake(draw)} = {draw.randint(1, 40)};\n}}"


@KINDS.lines("RDF triples")
def triples(draw: Random) -> str:
    return f'<http://example.org/{word(draw)}/{draw.randint(1, 999)}> <http://www.w3.org/ns#{camel(draw)}> "{word(draw)}"@en .'


@KINDS.lines("addresses of the web")
def urls(draw: Random) -> str:
    return f"https://{word(draw)}.example.com/{path(draw)}?{snake(draw)}={number(draw)}&{word(draw)}={alphanumeric(draw, 12)}#{word(draw)}"


@KINDS.lines("addresses of mail", ", ")
def mails(draw: Random) -> str:
    return (
        f"{draw.choice(PEOPLE).lower()}.{word(draw)}{draw.randint(1, 99)}@{word(draw)}.example.org"
    )


@KINDS.lines("paths")
def paths(draw: Random) -> str:
    return f"/{path(draw)}"


@KINDS.lines("paths of Windows")
def windows_paths(draw: Random) -> str:
    return f"C:\\Users\\{draw.choice(PEOPLE)}\\" + path(draw).replace("/", "\\")


@KINDS.lines("names in snake case")
def snakes(draw: Random) -> str:
    return "_".join((snake(draw), snake(draw), word(draw)))


@KINDS.lines("names in capitals", " ")
def screaming(draw: Random) -> str:
    return "_".join((snake(draw), word(draw))).upper()


@KINDS.lines("names in camel case", " ")
def camels(draw: Random) -> str:
    return camel(draw) + pascal(draw)


@KINDS.lines("names in kebab case", " ")
def kebabs(draw: Random) -> str:
    return "-".join(word(draw) for _ in range(draw.randint(2, 5)))


@KINDS.lines("names without borders", " ")
def joined(draw: Random) -> str:
    return "".join(word(draw) for _ in range(draw.randint(2, 6)))


@KINDS.lines("hash tags", " ")
def tags(draw: Random) -> str:
    return (
        "#"
        + "".join(word(draw).capitalize() for _ in range(draw.randint(1, 3)))
        + f" @{word(draw)}{draw.randint(1, 99)}"
    )


@KINDS.lines("calendar entries")
def calendar(draw: Random) -> str:
    return f"BEGIN:VEVENT\nUID:{uuid(draw)}\nDTSTART:{date(draw).replace('-', '')}T{draw.randint(0, 235959):06}Z\nSUMMARY:{words(draw, 1, 5)}\nEND:VEVENT"


@KINDS.lines("bibliography")
def bibliography(draw: Random) -> str:
    return f"@article{{{word(draw)}{draw.randint(1990, 2026)},\n  author = {{{draw.choice(PEOPLE)} {word(draw).title()} and {draw.choice(PEOPLE)} {word(draw).title()}}},\n  title = {{{words(draw, 3, 9).title()}}},\n  pages = {{{draw.randint(1, 99)}--{draw.randint(100, 200)}}}\n}}"


@KINDS.lines("citations", "; ")
def citations(draw: Random) -> str:
    return f"{word(draw).title()}, {draw.choice('ABCDEFGH')}. {draw.choice('JKLM')}. ({draw.randint(1950, 2026)}), {draw.randint(1, 60)}({draw.randint(1, 9)}), pp. {draw.randint(1, 99)}–{draw.randint(100, 400)}"


@KINDS.lines("measures", "; ")
def measures(draw: Random) -> str:
    return f"{decimal(draw)} {draw.choice(('kg', 'µm', '°C', 'km/h', 'Ω', 'm²', 'kWh', '%', 'mmol/L', 'dB'))} ± {draw.random():.2f}"


@KINDS.lines("zone file")
def zone(draw: Random) -> str:
    return f"{word(draw)}.example.\t{draw.randint(60, 86400)}\tIN\t{draw.choice(('A', 'MX', 'TXT', 'CNAME'))}\t{address(draw)}"


@KINDS.lines("rules of a firewall")
def firewall(draw: Random) -> str:
    return f"-A INPUT -s {address(draw)}/{draw.randint(8, 32)} -p tcp -m tcp --dport {draw.randint(1, 65535)} -j {draw.choice(('ACCEPT', 'DROP'))}"


@KINDS.lines("times of jobs")
def cron(draw: Random) -> str:
    return f"{draw.choice(('*/5', '0', '*', '15'))} {draw.choice(('*', '3', '0-6'))} * * {draw.choice(('*', '1-5', '0'))} /{path(draw)} >/dev/null 2>&1"


@KINDS.lines("subtitles")
def subtitles(draw: Random) -> str:
    return f"{draw.randint(1, 900)}\n00:{draw.randint(0, 59):02}:{draw.randint(0, 59):02},{draw.randint(0, 999):03} --> 00:{draw.randint(0, 59):02}:{draw.randint(0, 59):02},{draw.randint(0, 999):03}\n{sentence(draw)}\n"


@KINDS.lines("G-code")
def machine(draw: Random) -> str:
    return f"G1 X{draw.uniform(0, 200):.3f} Y{draw.uniform(0, 200):.3f} E{draw.uniform(0, 9):.5f} F{draw.randint(300, 9000)}"


@KINDS.lines("colours", " ")
def colours(draw: Random) -> str:
    return draw.choice(
        (
            f"#{hexadecimal(draw, 6)}",
            f"rgb({draw.randint(0, 255)},{draw.randint(0, 255)},{draw.randint(0, 255)})",
        )
    )
