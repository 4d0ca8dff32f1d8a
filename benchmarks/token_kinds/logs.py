"""What programs print: logs, traces, listings, dumps, and codes for terminals."""

from __future__ import annotations

from random import Random

from token_kinds.kind import (
    HEX,
    PEOPLE,
    Registry,
    address,
    alphanumeric,
    camel,
    clock,
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
    word,
    words,
)  # fmt: skip

KINDS = Registry()
LEVELS = ("INFO", "WARN", "ERROR", "DEBUG", "TRACE", "FATAL")
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


@KINDS.lines("log, application")
def application(draw: Random) -> str:
    moment = f"{date(draw)} {clock(draw)},{draw.randint(0, 999):03}"
    return f"{moment} {draw.choice(LEVELS):<5} [{snake(draw)}] {sentence(draw)} {snake(draw)}={number(draw)}"


@KINDS.lines("log, syslog")
def syslog(draw: Random) -> str:
    moment = f"{draw.choice(MONTHS)} {draw.randint(1, 28):>2} {clock(draw)}"
    return f"{moment} {word(draw)}-{draw.randint(1, 9)} {snake(draw)}[{draw.randint(1, 32000)}]: {words(draw, 4, 10)}"


@KINDS.lines("log, web server")
def access(draw: Random) -> str:
    moment = f"{draw.randint(1, 28):02}/{draw.choice(MONTHS)}/2026:{clock(draw)} +0000"
    return (
        f'{address(draw)} - - [{moment}] "{draw.choice(("GET", "POST", "PUT"))} /{path(draw)} HTTP/1.1" '
        f'{draw.choice((200, 301, 404, 500))} {draw.randint(0, 99999)} "-" "Mozilla/5.0 (X11; Linux x86_64)"'
    )


@KINDS.lines("log, keys and values")
def logfmt(draw: Random) -> str:
    pairs = " ".join(
        f"{snake(draw)}={draw.choice((number, word, decimal))(draw)}" for _ in range(4)
    )
    return f'time="{date(draw)}T{clock(draw)}Z" level={draw.choice(LEVELS).lower()} msg="{words(draw, 3, 8)}" {pairs}'


@KINDS.lines("log, short codes")
def short_codes(draw: Random) -> str:
    return f"{draw.choice('EWID')}{draw.randint(0, 9999):04} {clock(draw)}.{draw.randint(0, 999999):06} {draw.randint(1, 9999):>7} {snake(draw)}.go:{draw.randint(1, 900)}] {words(draw, 2, 7)}"


@KINDS.lines("log, kernel")
def kernel(draw: Random) -> str:
    return f"[{draw.randint(0, 99999):>5}.{draw.randint(0, 999999):06}] {word(draw)} {draw.randint(0, 9)}-{draw.randint(0, 9)}: {words(draw, 2, 7)} [0x{hexadecimal(draw, 8)}-0x{hexadecimal(draw, 8)}]"


@KINDS.lines("log, training")
def training(draw: Random) -> str:
    return f"epoch {draw.randint(1, 90)} step {draw.randint(1, 9999)} loss {draw.random():.4f} acc {draw.random():.4f} lr {draw.random() / 1e4:.2e}"


@KINDS.lines("log, dashes")
def dashed(draw: Random) -> str:
    return f"{clock(draw)} - {snake(draw)} - {draw.choice(LEVELS)} - {words(draw, 2, 8)}"


@KINDS.text("trace, Python")
def python_trace(draw: Random, size: int) -> str:
    def frame(draw: Random) -> str:
        return f'  File "/{path(draw)}", line {draw.randint(1, 999)}, in {snake(draw)}\n    {snake(draw)}({snake(draw)})\n    ~~~~~~^^^^^^^^'

    body = repeated(draw, size, frame)
    return f"Traceback (most recent call last):\n{body}\n{pascal(draw)}Error: {words(draw, 3, 9)}"


@KINDS.lines("trace, Java")
def java_trace(draw: Random) -> str:
    return f"\tat com.{word(draw)}.{snake(draw)}.{pascal(draw)}.{camel(draw)}({pascal(draw)}.java:{draw.randint(1, 900)})"


@KINDS.lines("trace, JavaScript")
def javascript_trace(draw: Random) -> str:
    return f"    at {pascal(draw)}.{camel(draw)} (/{path(draw)}:{draw.randint(1, 900)}:{draw.randint(1, 90)})"


@KINDS.lines("trace, Go")
def go_trace(draw: Random) -> str:
    return f"main.(*{pascal(draw)}).{pascal(draw)}(0x{hexadecimal(draw, 10)}, 0x{hexadecimal(draw, 2)})\n\t/{path(draw)}:{draw.randint(1, 900)} +0x{hexadecimal(draw, 3)}"


@KINDS.lines("trace, addresses")
def backtrace(draw: Random) -> str:
    return f"#{draw.randint(0, 30):<3} 0x{hexadecimal(draw, 16)} in {snake(draw)} ({snake(draw)}=0x{hexadecimal(draw, 12)}) at {path(draw)}:{draw.randint(1, 900)}"


@KINDS.lines("listing, ls -l")
def listing(draw: Random) -> str:
    mode = "".join(draw.choice((letter, "-")) for letter in "rwxrwxrwx")
    return f"{draw.choice('d-l')}{mode} {draw.randint(1, 30):>2} {word(draw)} {word(draw)} {draw.randint(0, 9999999):>8} {draw.choice(MONTHS)} {draw.randint(1, 28):>2} {clock(draw)[:5]} {snake(draw)}"


@KINDS.lines("listing, processes")
def processes(draw: Random) -> str:
    return f"{word(draw):<10}{draw.randint(1, 99999):>7} {draw.random() * 9:>4.1f} {draw.random() * 9:>4.1f} {draw.randint(0, 9999999):>8} {draw.randint(0, 999999):>6} ?        Ss   {clock(draw)[:5]}   {draw.randint(0, 9)}:{draw.randint(0, 59):02} /{path(draw)} --{word(draw)}"


@KINDS.lines("listing, disks")
def disks(draw: Random) -> str:
    return f"/dev/{draw.choice('sv')}d{draw.choice('abc')}{draw.randint(1, 9)} {draw.randint(0, 99999999):>11} {draw.randint(0, 99999999):>10} {draw.randint(0, 99999999):>10}  {draw.randint(0, 100):>3}% /{word(draw)}"


@KINDS.lines("listing, pods")
def pods(draw: Random) -> str:
    return f"{draw.choice(('default', 'kube-system'))}   {word(draw)}-{word(draw)}-{alphanumeric(draw, 9).lower()}-{alphanumeric(draw, 5).lower()}   {draw.randint(0, 2)}/2     Running   {draw.randint(0, 9)}          {draw.randint(1, 99)}d"


@KINDS.lines("listing, files with sizes")
def sizes(draw: Random) -> str:
    return f"{draw.randint(1, 999)}{draw.choice('KMG')}\t./{path(draw)}"


@KINDS.lines("listing, sums")
def sums(draw: Random) -> str:
    return f"{hexadecimal(draw, draw.choice((32, 40, 64)))}  {path(draw)}"


@KINDS.lines("listing, archive")
def archive(draw: Random) -> str:
    return f"{draw.randint(0, 999999):>9}  {date(draw)} {clock(draw)[:5]}   {path(draw)}"


@KINDS.lines("listing, sockets")
def sockets(draw: Random) -> str:
    return f"tcp        {draw.randint(0, 9)}      {draw.randint(0, 9)} {address(draw)}:{draw.randint(1, 65535):<6} {address(draw)}:{draw.randint(1, 65535):<6} {draw.choice(('ESTABLISHED', 'LISTEN', 'TIME_WAIT'))}"


@KINDS.lines("listing, packages")
def package_list(draw: Random) -> str:
    return f"{snake(draw).replace('_', '-')}=={draw.randint(0, 30)}.{draw.randint(0, 30)}.{draw.randint(0, 30)}"


@KINDS.lines("install of packages")
def install(draw: Random) -> str:
    name = snake(draw)
    return f"Collecting {name}>={draw.randint(0, 9)}.{draw.randint(0, 9)}\n  Downloading {name}-{draw.randint(0, 9)}.{draw.randint(0, 9)}-py3-none-any.whl ({draw.randint(1, 900)} kB)"


@KINDS.lines("build of a project")
def build(draw: Random) -> str:
    return f"[{draw.randint(1, 400)}/{400}] gcc -O2 -Wall -I{path(draw)} -c {path(draw)} -o build/{snake(draw)}.o"


@KINDS.lines("warnings of a compiler")
def warnings(draw: Random) -> str:
    name = snake(draw)
    return f"{path(draw)}:{draw.randint(1, 900)}:{draw.randint(1, 90)}: warning: unused variable '{name}' [-Wunused-variable]\n  {draw.randint(1, 900)} |     int {name} = 0;\n      |         ^{'~' * (len(name) - 1)}"


@KINDS.lines("findings of a linter")
def linter(draw: Random) -> str:
    return f"{path(draw)}:{draw.randint(1, 900)}:{draw.randint(1, 90)}: {draw.choice('EFWBN')}{draw.randint(100, 999)} {words(draw, 3, 8)}"


@KINDS.lines("results of tests")
def tests(draw: Random) -> str:
    return (
        f"{path(draw)}::test_{snake(draw)} {draw.choice(('PASSED', 'FAILED', 'SKIPPED'))}".ljust(70)
        + f"[{draw.randint(1, 100):>3}%]"
    )


@KINDS.lines("coverage")
def coverage(draw: Random) -> str:
    return f"{path(draw):<50}{draw.randint(1, 900):>6}{draw.randint(0, 99):>6}{draw.randint(0, 100):>6}%   {draw.randint(1, 99)}-{draw.randint(100, 200)}, {draw.randint(200, 900)}"


@KINDS.lines("history of commits")
def history(draw: Random) -> str:
    return f"commit {hexadecimal(draw, 40)}\nAuthor: {draw.choice(PEOPLE)} <{word(draw)}@example.org>\nDate:   {date(draw)} {clock(draw)} +0200\n\n    {sentence(draw)}\n"


@KINDS.lines("history, one line each")
def short_history(draw: Random) -> str:
    return f"{hexadecimal(draw, 7)} {words(draw, 3, 9)} (#{draw.randint(1, 9999)})"


@KINDS.lines("state of a working tree")
def status(draw: Random) -> str:
    return f"{draw.choice((' M', '??', 'A ', 'D ', 'R ', 'MM'))} {path(draw)}"


@KINDS.lines("blame")
def blame(draw: Random) -> str:
    return f"^{hexadecimal(draw, 7)} ({draw.choice(PEOPLE):<8} {date(draw)} {clock(draw)} +0100 {draw.randint(1, 999):>4}) {snake(draw)} = {snake(draw)}()"


@KINDS.text("dump, hexdump -C")
def hexdump(draw: Random, size: int) -> str:
    place = draw.randrange(0, 1 << 20, 16)

    def line(draw: Random) -> str:
        nonlocal place
        place += 16
        row = draw.choice((draw.randbytes(16), bytes(16), sentence(draw).encode()[:16].ljust(16)))
        pairs = " ".join(f"{byte:02x}" for byte in row)
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        return f"{place:08x}  {pairs[:23]}  {pairs[24:]}  |{shown}|"

    return repeated(draw, size, line)


@KINDS.text("dump, xxd")
def xxd(draw: Random, size: int) -> str:
    place = draw.randrange(0, 1 << 20, 16)

    def line(draw: Random) -> str:
        nonlocal place
        place += 16
        row = draw.randbytes(16)
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        groups = " ".join(row[at : at + 2].hex() for at in range(0, 16, 2))
        return f"{place:08x}: {groups}  {shown}"

    return repeated(draw, size, line)


@KINDS.lines("dump, bytes in pairs", " ")
def pairs(draw: Random) -> str:
    return hexadecimal(draw, 2)


@KINDS.lines("dump, upper-case pairs", ":")
def upper_pairs(draw: Random) -> str:
    return hexadecimal(draw, 2).upper()


@KINDS.lines("dump, C bytes", ", ")
def c_bytes(draw: Random) -> str:
    return f"0x{hexadecimal(draw, 2)}"


@KINDS.lines("dump, escaped bytes", "")
def escaped_bytes(draw: Random) -> str:
    return f"\\x{hexadecimal(draw, 2)}"


@KINDS.lines("dump, Python bytes", "")
def python_bytes(draw: Random) -> str:
    return repr(draw.randbytes(30))[2:-1]


@KINDS.lines("dump, octal")
def octal(draw: Random) -> str:
    return f"{draw.randrange(0, 8**7):07o} " + " ".join(
        f"{draw.randrange(0, 8**6):06o}" for _ in range(8)
    )


@KINDS.lines("dump, bits", " ")
def bit_groups(draw: Random) -> str:
    return f"{draw.getrandbits(8):08b}"


@KINDS.lines("dump, long bits", "")
def long_bits(draw: Random) -> str:
    return f"{draw.getrandbits(64):064b}"


@KINDS.lines("disassembly")
def disassembly(draw: Random) -> str:
    return f"  {hexadecimal(draw, 6)}:\t{' '.join(hexadecimal(draw, 2) for _ in range(draw.randint(1, 6))):<20}\t{draw.choice(('mov', 'lea', 'call', 'push', 'pop', 'xor', 'jne'))}    %r{draw.choice(('ax', 'bx', 'cx', 'dx', 'sp', '12'))},0x{hexadecimal(draw, 2)}(%rip)"


@KINDS.lines("assembly")
def assembly(draw: Random) -> str:
    name = draw.choice(("mov", "add", "sub", "cmp", "ldr", "str", "movaps", "vpxor", "jmp"))
    return f"\t{name}\t{draw.choice(('eax', 'rbx', 'r12d', 'xmm0', 'x19'))}, {draw.choice(('[rsp+8]', 'DWORD PTR [rbp-4]', '#16', '0x1f', '.L3'))}"


@KINDS.lines("strace")
def strace(draw: Random) -> str:
    return f'{draw.choice(("openat", "read", "write", "mmap", "fstat"))}({draw.randint(0, 9)}, "{path(draw)}", {draw.randint(0, 9999)}) = {draw.randint(-1, 9999)} <0.{draw.randint(0, 999999):06}>'


@KINDS.lines("terminal colours")
def colours(draw: Random) -> str:
    return f"\x1b[{draw.randint(0, 1)};{draw.randint(30, 37)}m{draw.choice(LEVELS)}\x1b[0m \x1b[{draw.randint(90, 97)}m{words(draw, 1, 6)}\x1b[39m"


@KINDS.lines("terminal colours, 256", "")
def many_colours(draw: Random) -> str:
    return f"\x1b[38;5;{draw.randint(0, 255)}m{draw.choice((word(draw), '█', '.', '#'))}\x1b[m"


@KINDS.lines("terminal colours, 24 bits", "")
def true_colours(draw: Random) -> str:
    return (
        f"\x1b[48;2;{draw.randint(0, 255)};{draw.randint(0, 255)};{draw.randint(0, 255)}m  \x1b[0m"
    )


@KINDS.lines("terminal movement", "")
def movement(draw: Random) -> str:
    return f"\x1b[{draw.randint(1, 50)};{draw.randint(1, 80)}H{word(draw)}\x1b[K\x1b[{draw.randint(1, 9)}{draw.choice('ABCD')}\x1b[?25l"


@KINDS.lines("terminal colours, escaped", "")
def escaped_colours(draw: Random) -> str:
    return f"\\u001b[{draw.randint(30, 37)}m{word(draw)}\\u001b[0m "


@KINDS.lines("control characters", "")
def controls(draw: Random) -> str:
    return chr(draw.choice([*range(9), *range(14, 32), 127])) + draw.choice(
        ("", word(draw), number(draw))
    )


@KINDS.lines("backspaces of man", "")
def backspaces(draw: Random) -> str:
    return "".join(f"{letter}\b{letter}" for letter in word(draw)) + " "


@KINDS.lines("headers of a response")
def headers(draw: Random) -> str:
    name = "-".join(word(draw).capitalize() for _ in range(draw.randint(1, 3)))
    return f"< {name}: {draw.choice((number, alphanumeric_short, date, words_short))(draw)}"


def alphanumeric_short(draw: Random) -> str:
    """Draw a short token."""
    return alphanumeric(draw, draw.randint(8, 30))


def words_short(draw: Random) -> str:
    """Draw a few words."""
    return words(draw, 1, 3)


@KINDS.lines("identifiers, UUID")
def uuids(draw: Random) -> str:
    return uuid(draw)


@KINDS.lines("identifiers, upper-case UUID", ", ")
def upper_uuids(draw: Random) -> str:
    return "{" + uuid(draw).upper() + "}"


@KINDS.lines("identifiers, ULID", " ")
def ulids(draw: Random) -> str:
    return "01" + "".join(draw.choices("0123456789ABCDEFGHJKMNPQRSTVWXYZ", k=24))


@KINDS.lines("identifiers, with prefix")
def prefixed(draw: Random) -> str:
    return f"{draw.choice(('call', 'msg', 'toolu', 'req', 'usr'))}_{alphanumeric(draw, 24)}"


@KINDS.lines("identifiers, hexadecimal", "")
def long_hex(draw: Random) -> str:
    return hexadecimal(draw, 64)


@KINDS.lines("identifiers, upper-case hexadecimal", " ")
def upper_hex(draw: Random) -> str:
    return hexadecimal(draw, draw.choice((8, 16, 32))).upper()


@KINDS.lines("identifiers, pointers", " ")
def pointers(draw: Random) -> str:
    return f"0x{hexadecimal(draw, 12)}"


@KINDS.lines("addresses of hardware")
def hardware(draw: Random) -> str:
    return ":".join(hexadecimal(draw, 2) for _ in range(6))


@KINDS.lines("addresses, internet")
def addresses(draw: Random) -> str:
    return f"{address(draw)}/{draw.randint(8, 32)}"


@KINDS.lines("addresses, internet version 6")
def version_6(draw: Random) -> str:
    return ":".join("".join(draw.choices(HEX, k=draw.randint(1, 4))) for _ in range(8))


@KINDS.lines("dates and times")
def moments(draw: Random) -> str:
    return f"{date(draw)}T{clock(draw)}.{draw.randint(0, 999999):06}+00:00"


@KINDS.lines("dates, slashes", " ")
def slashed(draw: Random) -> str:
    return f"{draw.randint(1, 31)}/{draw.randint(1, 12)}/{draw.randint(1980, 2030)}"


@KINDS.lines("seconds since 1970", " ")
def epochs(draw: Random) -> str:
    return str(draw.randint(1_000_000_000, 1_900_000_000))
