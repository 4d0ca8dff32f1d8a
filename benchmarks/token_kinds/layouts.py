"""Tables of every border, trees, diffs, bars, boxes, and whitespace in every form."""

from __future__ import annotations

from random import Random

from token_kinds.kind import (
    FOLDERS,
    Registry,
    Writer,
    date,
    decimal,
    hexadecimal,
    number,
    pascal,
    path,
    repeated,
    sentence,
    snake,
    value,
    word,
    words,
)  # fmt: skip

KINDS = Registry()


def grid(draw: Random, size: int, columns: int | None = None) -> tuple[list[list[str]], list[int]]:
    """Draw cells of a table of about so many characters, and the widths of its columns."""
    many = columns or draw.randint(2, 6)
    makers = [draw.choice((word, snake, number, decimal, date, value)) for _ in range(many)]
    rows = [[snake(draw) for _ in range(many)]]
    rows += [[make(draw) for make in makers] for _ in range(max(1, size // (many * 14)))]
    widths = [max(len(row[place]) for row in rows) for place in range(many)]
    return rows, widths


def ruled(corners: str, across: str, down: str, every: bool, pad: int = 1) -> Writer:
    """Return a writer of tables with rules: nine corners, the line across and the one down."""

    def write(draw: Random, size: int) -> str:
        rows, widths = grid(draw, size)

        def rule(left: str, middle: str, right: str) -> str:
            return left + middle.join(across * (width + 2 * pad) for width in widths) + right

        def cells(row: list[str]) -> str:
            gap = " " * pad
            fitted = (
                cell.rjust(width) if cell[:1].isdigit() else cell.ljust(width)
                for cell, width in zip(row, widths, strict=True)
            )
            return down + down.join(f"{gap}{cell}{gap}" for cell in fitted) + down

        lines = [rule(*corners[:3]), cells(rows[0]), rule(*corners[3:6])]
        for place, row in enumerate(rows[1:]):
            if every and place:
                lines.append(rule(*corners[3:6]))
            lines.append(cells(row))
        return "\n".join([*lines, rule(*corners[6:])])

    return write


for name, writer in {
    "table, MySQL": ruled("+++++++++", "-", "|", False),
    "table, grid of plus signs": ruled("+++++++++", "-", "|", True),
    "table, tight grid": ruled("+++++++++", "-", "|", True, 0),
    "table, grid of equal signs": ruled("+++++++++", "=", "|", True),
    "table, Unicode box": ruled("┌┬┐├┼┤└┴┘", "─", "│", False),
    "table, Unicode box ruled": ruled("┌┬┐├┼┤└┴┘", "─", "│", True),
    "table, double box": ruled("╔╦╗╠╬╣╚╩╝", "═", "║", False),
    "table, rounded box": ruled("╭┬╮├┼┤╰┴╯", "─", "│", False),
    "table, heavy box": ruled("┏┳┓┣╋┫┗┻┛", "━", "┃", False),
    "table, stars": ruled("*********", "*", "*", True),
    "table, dots": ruled(".........", ".", ":", False),
}.items():
    KINDS.text(name)(writer)


@KINDS.text("table, small numbers in a grid")
def small_grid(draw: Random, size: int) -> str:
    columns, width = draw.randint(2, 9), draw.randint(1, 5)
    rule = "+" + "+".join("-" * (width + 2) for _ in range(columns)) + "+"
    lines = [rule]
    while len(lines) * len(rule) < size:
        cells = (str(draw.randint(0, 10**width - 1)).rjust(width) for _ in range(columns))
        lines += ["| " + " | ".join(cells) + " |", rule]
    return "\n".join(lines)


@KINDS.text("table, Markdown")
def markdown_table(draw: Random, size: int) -> str:
    rows, _ = grid(draw, size)
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "|".join(draw.choice(("---", ":--", "--:")) for _ in rows[0]) + "|")
    return "\n".join(lines)


@KINDS.text("table, Markdown aligned")
def aligned_markdown(draw: Random, size: int) -> str:
    rows, widths = grid(draw, size)
    lines = []
    for row in rows:
        lines.append("| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |")
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


@KINDS.text("table, tight Markdown")
def tight_markdown(draw: Random, size: int) -> str:
    rows, _ = grid(draw, size)
    lines = ["|" + "|".join(row) + "|" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines)


@KINDS.text("table, psql")
def psql(draw: Random, size: int) -> str:
    rows, widths = grid(draw, size)
    lines = [" " + " | ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in rows]
    lines.insert(1, "+".join("-" * (width + 2) for width in widths))
    return "\n".join([*lines, f"({len(rows) - 1} rows)"])


@KINDS.text("table, psql expanded")
def psql_expanded(draw: Random, size: int) -> str:
    names = [snake(draw) for _ in range(draw.randint(2, 6))]
    lines: list[str] = []
    while sum(map(len, lines)) < size:
        lines.append(f"-[ RECORD {len(lines) // len(names) + 1} ]".ljust(30, "-"))
        lines += [f"{name.ljust(14)} | {value(draw)}" for name in names]
    return "\n".join(lines)


@KINDS.text("table, reStructuredText simple")
def simple_rst(draw: Random, size: int) -> str:
    rows, widths = grid(draw, size)
    rule = "  ".join("=" * width for width in widths)
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule])


@KINDS.text("table, columns by spaces")
def spaced(draw: Random, size: int) -> str:
    rows, widths = grid(draw, size)
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in rows)


@KINDS.text("table, columns right")
def right(draw: Random, size: int) -> str:
    rows, widths = grid(draw, size)
    return "\n".join("  ".join(c.rjust(w) for c, w in zip(r, widths, strict=True)) for r in rows)


@KINDS.text("table, wide columns")
def wide_columns(draw: Random, size: int) -> str:
    rows, widths = grid(draw, size // 3)
    extra = draw.randint(5, 30)
    return "\n".join(
        "".join(c.ljust(w + extra) for c, w in zip(row, widths, strict=True)) for row in rows
    )


@KINDS.text("table, data frame")
def data_frame(draw: Random, size: int) -> str:
    names = [draw.choice("abcdefgxyz") + draw.choice("0123_") for _ in range(draw.randint(3, 8))]
    lines = ["    " + " ".join(name.rjust(10) for name in names)]
    for row in range(max(2, size // (len(names) * 11))):
        cells = " ".join(f"{draw.gauss(0, 3):10.6f}" for _ in names)
        lines.append(f"{row:<4}{cells}")
    return "\n".join([*lines, f"[{len(lines) - 1} rows x {len(names)} columns]"])


@KINDS.lines("matrix of numbers")
def matrix(draw: Random) -> str:
    return "[" + " ".join(f"{draw.gauss(0, 9):8.4f}" for _ in range(6)) + "]"


@KINDS.lines("matrix of whole numbers")
def whole_matrix(draw: Random) -> str:
    return " ".join(f"{draw.randint(0, 999):>4}" for _ in range(12))


@KINDS.lines(
    "matrix of bits",
)
def bits(draw: Random) -> str:
    return " ".join(draw.choices("01", k=16))


@KINDS.lines("board of signs")
def board(draw: Random) -> str:
    return "".join(draw.choices(".#@O+ ", weights=(9, 4, 1, 2, 1, 3), k=24))


@KINDS.lines("crossword")
def crossword(draw: Random) -> str:
    return "|".join(draw.choices("ABCDEFGHIKLMNOPRSTU ", k=12)) + "|"


def tree(branch: str, last: str, bar: str, blank: str, folder: str = "/") -> Writer:
    """Return a writer of trees of folders."""

    def write(draw: Random, size: int) -> str:
        lines = ["."]

        def grow(prefix: str, depth: int) -> None:
            many = draw.randint(1, 6)
            for place in range(many):
                if sum(map(len, lines)) > size:
                    return
                end = place == many - 1
                name = draw.choice(FOLDERS) if depth < 5 and draw.random() < 0.4 else ""
                shown = (
                    f"{name}{folder}"
                    if name
                    else f"{snake(draw)}.{draw.choice(['py', 'md', 'ts', 'json'])}"
                )
                lines.append(prefix + (last if end else branch) + shown)
                if name:
                    grow(prefix + (blank if end else bar), depth + 1)

        while sum(map(len, lines)) < size:
            grow("", 0)
        return "\n".join(lines)

    return write


KINDS.text("tree")(tree("├── ", "└── ", "│   ", "    ", ""))
KINDS.text("tree, ASCII")(tree("|-- ", "`-- ", "|   ", "    "))
KINDS.text("tree, plus and backslash")(tree("+---", "\\---", "|   ", "    "))
KINDS.text("tree, narrow")(tree("├─ ", "╰─ ", "│  ", "   "))
KINDS.text("tree, indented by two")(tree("  ", "  ", "  ", "  "))
KINDS.text("tree, indented by tabs")(tree("", "", "\t", "\t"))
KINDS.text("tree, bullets")(tree("- ", "- ", "  ", "  "))


@KINDS.text("tree of packages")
def packages(draw: Random, size: int) -> str:
    def line(draw: Random) -> str:
        depth = "│ " * draw.randint(0, 3)
        turn = draw.choice(("├─┬ ", "├── ", "└── "))
        return f"{depth}{turn}{snake(draw)}@{draw.randint(0, 9)}.{draw.randint(0, 30)}.{draw.randint(0, 9)}"

    return repeated(draw, size, line)


def code_line(draw: Random) -> str:
    """Draw a short line of code."""
    name = snake(draw)
    return draw.choice((
        "}", "{", "", "return", "pass", "else:", "end", "});", "break", ")", "];", "/>", "fi", "done",
        f"return {name}", f"{name} = {snake(draw)}", f"if {name}:", f"{name}({snake(draw)})",
        f"self.{name} = {name}", f"import {name}", f"for {word(draw)} in {name}:", f"# {sentence(draw)}",
    ))  # fmt: skip


@KINDS.lines("diff of short lines")
def short_diff(draw: Random) -> str:
    return draw.choice("+- ") + " " * draw.randint(0, 8) + code_line(draw)


@KINDS.lines("diff of one letter")
def letter_diff(draw: Random) -> str:
    return draw.choice("+-") + draw.choice("abcxyz{}();,0123 ")


@KINDS.text("diff, unified")
def unified(draw: Random, size: int) -> str:
    def hunk(draw: Random) -> str:
        file, first = path(draw), draw.randint(1, 900)
        head = [
            f"diff --git a/{file} b/{file}",
            f"index {hexadecimal(draw, 7)}..{hexadecimal(draw, 7)} 100644",
            f"--- a/{file}", f"+++ b/{file}",
            f"@@ -{first},{draw.randint(3, 9)} +{first},{draw.randint(3, 12)} @@ def {snake(draw)}(self):",
        ]  # fmt: skip
        body = [
            draw.choice(("+", "-", " ", " ")) + " " * 4 * draw.randint(0, 3) + code_line(draw)
            for _ in range(draw.randint(4, 12))
        ]
        return "\n".join(head + body)

    return repeated(draw, size, hunk)


@KINDS.lines("diff of prose")
def prose_diff(draw: Random) -> str:
    return draw.choice(("+ ", "- ", "  ", "+", "-")) + sentence(draw)


@KINDS.lines("diff, side by side")
def side_diff(draw: Random) -> str:
    left = code_line(draw)[:38]
    return f"{left:<40}{draw.choice('|<> ')} {code_line(draw)}"


@KINDS.lines("diff, ed and normal")
def normal_diff(draw: Random) -> str:
    place = f"{draw.randint(1, 400)}"
    return f"{place}{draw.choice('acd')}{place}\n< {code_line(draw)}\n---\n> {code_line(draw)}"


@KINDS.lines("diff, numbered lines")
def numbered_diff(draw: Random) -> str:
    return f"{draw.randint(1, 999):>5} {draw.randint(1, 999):>5} {draw.choice('+- ')} {code_line(draw)}"


@KINDS.lines("diff statistics")
def diff_statistics(draw: Random) -> str:
    many = draw.randint(1, 40)
    plus = draw.randint(0, many)
    return f" {path(draw):<40} | {many:>4} {'+' * plus}{'-' * (many - plus)}"


@KINDS.lines("cat with numbers")
def numbered(draw: Random) -> str:
    return f"{draw.randint(1, 2000):>6}\t{' ' * 4 * draw.randint(0, 3)}{code_line(draw)}"


@KINDS.lines("grep with places")
def grep(draw: Random) -> str:
    return f"{path(draw)}:{draw.randint(1, 999)}:{' ' * draw.randint(0, 8)}{code_line(draw)}"


# Whitespace


def indented(unit: str, deepest: int, line=code_line) -> Writer:  # type: ignore[no-untyped-def]
    """Return a writer of lines that are indented at random."""

    def write(draw: Random, size: int) -> str:
        return repeated(draw, size, lambda draw: unit * draw.randint(0, deepest) + line(draw))

    return write


def short_word(draw: Random) -> str:
    """Draw one short word or sign."""
    return draw.choice(
        ("pass", "}", "{", "x", "end", "[", "]", "ok", "a,", "1,", "-", "null", "else")
    )


KINDS.text("indented by two")(indented("  ", 8))
KINDS.text("indented by four")(indented("    ", 5))
KINDS.text("indented by eight")(indented(" " * 8, 4))
KINDS.text("indented by tabs")(indented("\t", 6))
KINDS.text("indented by one")(indented(" ", 20))
KINDS.text("indented short words")(indented("    ", 4, short_word))
KINDS.text("indented short words by two")(indented("  ", 9, short_word))
KINDS.text("indented short words by tabs")(indented("\t", 5, short_word))
KINDS.text("indented prose")(indented("    ", 2, sentence))


@KINDS.text("one line again and again")
def same_line(draw: Random, size: int) -> str:
    line = " " * draw.choice((0, 2, 4, 8)) + draw.choice((code_line, short_word, sentence))(draw)
    return f"{line}\n" * (size // (len(line) + 1) + 1)


@KINDS.lines("blank lines between")
def blank_lines(draw: Random) -> str:
    return draw.choice((word(draw), sentence(draw), code_line(draw))) + "\n" * draw.randint(0, 5)


@KINDS.lines("trailing spaces")
def trailing(draw: Random) -> str:
    return draw.choice((word, code_line, short_word))(draw) + " " * draw.randint(0, 30)


@KINDS.lines("carriage returns", "\r\n")
def windows_lines(draw: Random) -> str:
    return draw.choice((word, code_line, short_word, sentence))(draw)


@KINDS.lines("one word a line")
def word_lines(draw: Random) -> str:
    return word(draw)


@KINDS.lines("one letter a line")
def letter_lines(draw: Random) -> str:
    return draw.choice("abcdefghijklmnopqrstuvwxyz0123456789-*")


@KINDS.lines("one number a line")
def number_lines(draw: Random) -> str:
    return number(draw)


@KINDS.lines("letters with spaces", " ")
def spaced_letters(draw: Random) -> str:
    return draw.choice("abcdefghijklmnopqrstuvwxyz")


@KINDS.lines("capitals with spaces", " ")
def spaced_capitals(draw: Random) -> str:
    return draw.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


@KINDS.lines("words far apart", "")
def far_apart(draw: Random) -> str:
    return word(draw) + " " * draw.randint(2, 20)


@KINDS.lines("mixed whitespace", "")
def mixed_whitespace(draw: Random) -> str:
    gap = "".join(draw.choices(" \t\n", weights=(5, 2, 2), k=draw.randint(1, 6)))
    return draw.choice((word, short_word))(draw) + gap


@KINDS.lines("tabs and newlines", "")
def tabs_and_newlines(draw: Random) -> str:
    return draw.choice("\t\n \r") * draw.randint(1, 4) + draw.choice(("", "", "x"))


@KINDS.lines("separated by tabs")
def tabs(draw: Random) -> str:
    return "\t".join(value(draw) for _ in range(5))


@KINDS.lines("separated by many tabs")
def many_tabs(draw: Random) -> str:
    return "\t\t".join(draw.choice((word, number))(draw) for _ in range(4)) + "\t"


@KINDS.lines("aligned comments")
def aligned_comments(draw: Random) -> str:
    return f"{code_line(draw):<44}# {words(draw, 2, 6)}"


@KINDS.lines("centred")
def centred(draw: Random) -> str:
    return words(draw, 1, 6).center(72)


# Boxes, bars, rules


@KINDS.lines("progress bars")
def progress(draw: Random) -> str:
    done = draw.randint(0, 30)
    style = draw.choice(("#.", "=>", "█░", "━╸", "▓▒", "#-", "= ", "■□"))
    bar = style[0] * done + style[1] * (30 - done)
    return f"\r{done * 100 // 30:>3}%|{bar}| {done}/{30} [{clock_of(draw)}<{clock_of(draw)}, {draw.uniform(0, 90):.2f}it/s]"


def clock_of(draw: Random) -> str:
    """Draw minutes and seconds."""
    return f"{draw.randint(0, 59):02}:{draw.randint(0, 59):02}"


@KINDS.lines("bars of blocks")
def block_bars(draw: Random) -> str:
    return (
        f"{word(draw):<12}{'█' * draw.randint(1, 30)}{draw.choice('▏▎▍▌▋▊▉')} {draw.randint(0, 99)}"
    )


@KINDS.lines("sparklines", " ")
def sparklines(draw: Random) -> str:
    return "".join(draw.choices("▁▂▃▄▅▆▇█", k=draw.randint(5, 20)))


@KINDS.lines("bars of stars")
def star_bars(draw: Random) -> str:
    return f"{draw.randint(0, 99):>3}: {draw.choice('*#=ox') * draw.randint(0, 50)}"


@KINDS.lines("rules and headings")
def headings(draw: Random) -> str:
    title = words(draw, 1, 5).title()
    return f"{title}\n{draw.choice('=-~^*#') * len(title)}\n{sentence(draw)}\n"


@KINDS.lines("banners")
def banners(draw: Random) -> str:
    sign = draw.choice("=#*-+~")
    return f"{sign * draw.randint(3, 30)} {words(draw, 1, 4)} {sign * draw.randint(3, 70)}"


@KINDS.lines("rules of any length")
def rules(draw: Random) -> str:
    return draw.choice("-=_*#~.+<>/\\|^:") * draw.randint(1, 90)


@KINDS.lines("repeated letters", " ")
def repeated_letters(draw: Random) -> str:
    return draw.choice("aeioxzAZhmn019") * draw.randint(1, 40)


@KINDS.lines("repeated pairs", " ")
def repeated_pairs(draw: Random) -> str:
    return draw.choice(
        ("ab", "ha", "01", "-=", "<>", "xo", "/\\", "., ", "()", "- ", "* ")
    ) * draw.randint(1, 30)


@KINDS.lines("box of comments")
def comment_box(draw: Random) -> str:
    lines = [f"# {words(draw, 2, 8):<66} #" for _ in range(3)]
    return "\n".join(["#" * 70, *lines, "#" * 70])


@KINDS.lines("box of panels")
def panels(draw: Random) -> str:
    title = words(draw, 1, 3).title()
    lines = [f"│ {words(draw, 2, 8):<56} │" for _ in range(draw.randint(1, 5))]
    return "\n".join([f"╭─ {title} ".ljust(59, "─") + "╮", *lines, "╰" + "─" * 58 + "╯"])


@KINDS.text("drawing of boxes and arrows")
def boxes(draw: Random, size: int) -> str:
    def box(draw: Random) -> str:
        name = pascal(draw)
        rule = "+" + "-" * (len(name) + 2) + "+"
        space = " " * draw.randint(0, 20)
        return "\n".join(
            space + line for line in (rule, f"| {name} |---->", rule, "    |", "    v")
        )

    return repeated(draw, size, box)


@KINDS.lines("drawing of signs")
def drawing(draw: Random) -> str:
    return "".join(draw.choices("  /\\_|-.'`(),;:oO*^~<>=", k=draw.randint(10, 60)))


@KINDS.lines("graph of commits")
def commits(draw: Random) -> str:
    rails = draw.choice(("*", "| *", "* |", "|\\", "|/", "| |\\", "| | *", "* | |", "|/ /"))
    told = f" {hexadecimal(draw, 7)} {sentence(draw)}" if "*" in rails else "  "
    return rails + told


@KINDS.lines("graph of commits, Unicode")
def unicode_commits(draw: Random) -> str:
    rails = draw.choice(("●", "│ ●", "● │", "├─╮", "├─╯", "│ ◌", "◎─┤"))
    return f"{rails} {hexadecimal(draw, 7)} {words(draw, 2, 6)}"


@KINDS.lines("checklist")
def checklist(draw: Random) -> str:
    return "  " * draw.randint(0, 2) + f"- [{draw.choice('x ')}] {words(draw, 2, 8)}"


@KINDS.lines("marks of a test run")
def marks(draw: Random) -> str:
    return (
        "  " * draw.randint(0, 3)
        + f"{draw.choice('✓✗✔✘×•○')} {words(draw, 2, 7)} ({draw.randint(1, 900)} ms)"
    )


@KINDS.lines("dots of a test run", "")
def dots(draw: Random) -> str:
    run = "".join(draw.choices(".sFxE", weights=(40, 2, 1, 1, 1), k=draw.randint(20, 72)))
    return f"{path(draw)} {run} [{draw.randint(1, 100):>3}%]\n"


@KINDS.lines("table of contents")
def contents(draw: Random) -> str:
    title = words(draw, 2, 5).capitalize()
    return f"{draw.randint(1, 9)}.{draw.randint(1, 9)} {title} {'.' * draw.randint(3, 50)} {draw.randint(1, 400)}"


@KINDS.lines("man page")
def man_page(draw: Random) -> str:
    return f"       -{draw.choice('abcdef')}, --{word(draw)}-{word(draw)}\n              {sentence(draw)} {sentence(draw)}\n"


@KINDS.lines("help of a command")
def help_text(draw: Random) -> str:
    flags = f"-{draw.choice('abcdefg')}, --{draw.choice(FOLDERS)}-{word(draw)} {word(draw).upper()}"
    return f"  {flags:<30}{words(draw, 3, 9)} (default: {draw.choice((number, word))(draw)})"
