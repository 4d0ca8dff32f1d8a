"""Kinds of text that were written without a look at the fit, or at what the weights get wrong.

One half of them only ever checks the estimate: whoever changes the weights must not look at these
for what to change. The other half belongs to the fit (`FOR_CORRECTION`). Most kinds are templates:
each line (or each block between lines of `%%`) is one part of a text, in which a field such as
`«n5»` stands for something random. Languages are lists of words, scripts are ranges of letters.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import string
import unicodedata
import urllib.parse
from collections.abc import Callable, Sequence
from random import Random

from token_kinds.kind import Registry, alphanumeric, hexadecimal, repeated, uuid

KINDS = Registry()

ENGLISH = """although harbour whispered quarterly ambiguous kettle throughput negotiate blue seventeen
because reviewer forgot the deadline yesterday again whether it might rain during lunch nobody asked
Margaret, however refused politely and walked towards Vienna instead carrying groceries umbrellas
receipts analysis shows reliable improvement of latency across regions after migration but memory stays
flat we should probably investigate leaks first then ship small fixes gradually watching dashboards
carefully please remember that customers hate surprises especially invoices doubled without explanation
thanks sincerely Oliver mathematics teachers' strike continues despite government's offer rejected
unanimously snow mountains glacier retreat measured annually satellites orbit silently above oceans
don't can't won't isn't they'll I've you're e.g. i.e. etc. approximately 42 3.5 2024 high-quality
state-of-the-art re-run co-founder""".split()
TECHNICAL = """kubelet ingress sidecar mutex semaphore tokenizer embeddings checkpoint shard replica quorum
wal vacuum tombstone bloom gossip raft paxos leader follower epoch offset partition consumer ack nack
idempotent retryable backpressure debounce memoize hydrate render reconcile diff vdom jsx tsx webpack
rollup vite eslint prettier pytest fixture mock stub assert coverage lint mypy pydantic fastapi uvicorn
gunicorn celery redis postgres sqlite alembic sqlalchemy numpy pandas torch cuda tensor gradient softmax
relu dropout batchnorm optimizer scheduler warmup logits argmax tflops vram numa cgroup namespace seccomp
apparmor selinux systemd journald dbus udev initramfs grub efi tpm luks lvm raid zfs btrfs xfs ext4 inode
dentry""".split()
SURNAMES = """Okonkwo Schmidt Nguyen García Fernández O'Brien Kowalczyk Haddad Petrov Yamamoto Lindqvist Rossi
Müller Dubois Silva Kim Patel Johansson Novák Andersson McAllister van-der-Berg Ivanova Tanaka Ng""".split()
HOSTS = """api.example.com db-03.internal cdn.acme.io web01 ip-10-0-3-17.ec2.internal mail.contoso.net
localhost edge-fra2.prod.example.org registry.npmjs.org gitlab.corp.lan""".split()
PARTS = """src lib pkg internal cmd components hooks utils __tests__ node_modules dist vendor migrations
2024 config include drivers net usr share local opt site-packages templates public img""".split()
SUFFIXES = """py tsx jsx rs go java kt cs rb php cpp h hpp m swift vue svelte scss less yml json5 proto tf ipynb csv
parquet png svg woff2 lock min.js d.ts test.ts spec.rb tar.gz""".split()
PACKAGES = """requests urllib3 charset-normalizer certifi idna typing-extensions lodash react-dom @types/node
@babel/core left-pad chalk serde tokio anyhow clap github.com/spf13/cobra golang.org/x/sys libssl3 libc6
python3-dev zlib1g nghttp2 org.springframework:spring-core com.google.guava:guava log4j-core""".split()


# --- Fields of templates ---------------------------------------------------------------------------


def _word(draw: Random) -> str:
    return draw.choice(ENGLISH)


def _words(draw: Random, count: int) -> str:
    return " ".join(draw.choices(ENGLISH, k=count))


def _technical(draw: Random) -> str:
    return draw.choice(TECHNICAL)


def _snake(draw: Random) -> str:
    return "_".join(draw.choices(TECHNICAL, k=draw.randint(1, 3)))


def _pascal(draw: Random) -> str:
    return "".join(part.capitalize() for part in draw.choices(TECHNICAL, k=draw.randint(1, 3)))


def _camel(draw: Random) -> str:
    return draw.choice(TECHNICAL) + _pascal(draw)


def _path(draw: Random) -> str:
    folders = draw.choices(PARTS, k=draw.randint(1, 5))
    return "/".join([*folders, f"{_snake(draw)}.{draw.choice(SUFFIXES)}"])


def _version(draw: Random) -> str:
    return f"{draw.randint(0, 24)}.{draw.randint(0, 30)}.{draw.randint(0, 19)}"


def _ip(draw: Random) -> str:
    return ".".join(str(draw.randint(1, 254)) for _ in range(4))


def _date(draw: Random) -> str:
    return f"20{draw.randint(10, 29)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"


def _clock(draw: Random) -> str:
    return f"{draw.randint(0, 23):02}:{draw.randint(0, 59):02}:{draw.randint(0, 59):02}"


def _digits(draw: Random, count: int) -> str:
    return "".join(draw.choices(string.digits, k=count))


FIELDS: dict[str, Callable[[Random], str]] = {
    "w": _word,
    "W": lambda draw: _word(draw).capitalize(),
    "t": _technical,
    "T": lambda draw: _technical(draw).upper(),
    "s": _snake,
    "S": lambda draw: _snake(draw).upper(),
    "k": lambda draw: _snake(draw).replace("_", "-"),
    "c": _camel,
    "P": _pascal,
    "p": _path,
    "v": _version,
    "ip": _ip,
    "ip6": lambda draw: ":".join(f"{draw.randint(0, 65535):x}" for _ in range(8)),
    "mac": lambda draw: ":".join(hexadecimal(draw, 2) for _ in range(6)),
    "d": _date,
    "dn": lambda draw: _date(draw).replace("-", ""),
    "clock": _clock,
    "ms": lambda draw: f"{_clock(draw)}.{_digits(draw, 3)}",
    "cn": lambda draw: _clock(draw).replace(":", ""),
    "host": lambda draw: draw.choice(HOSTS),
    "name": lambda draw: draw.choice(SURNAMES),
    "pack": lambda draw: draw.choice(PACKAGES),
    "uuid": uuid,
    "n": lambda draw: str(draw.randint(0, 10 ** draw.randint(1, 6))),
    "day": lambda draw: draw.choice("Mon Tue Wed Thu Fri Sat Sun".split()),
    "mon": lambda draw: draw.choice("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()),
    "letter": lambda draw: draw.choice(string.ascii_lowercase),
    "LETTER": lambda draw: draw.choice(string.ascii_uppercase),
    "status": lambda draw: draw.choice(["200", "204", "301", "304", "400", "403", "404", "500", "503"]),
    "level": lambda draw: draw.choice("DEBUG INFO WARN ERROR INFO INFO".split()),
    "method": lambda draw: draw.choice("GET POST PUT DELETE PATCH".split()),
}  # fmt: skip
COUNTED: dict[str, Callable[[Random, int], str]] = {
    "n": _digits,
    "h": hexadecimal,
    "H": lambda draw, size: hexadecimal(draw, size).upper(),
    "a": alphanumeric,
    "A": lambda draw, size: "".join(draw.choices(string.ascii_uppercase + string.digits, k=size)),
    "b": lambda draw, size: "".join(draw.choices("01", k=size)),
    "f": lambda draw, size: f"{draw.uniform(0, 10 ** draw.randint(0, 3)):.{size}f}",
    "g": lambda draw, size: f"{draw.uniform(-10, 10):.{size}f}",
    "e": lambda draw, size: f"{draw.uniform(-1, 1) * 10 ** draw.randint(-12, 12):.{size}e}",
    "r": lambda draw, size: str(draw.randint(0, size)),
    "ws": _words,
    "sp": lambda draw, size: " " * draw.randint(1, size),
}
FIELD = re.compile(r"«(ip6|[A-Za-z]+)(\d*)(?:,(-?\d+))?»")


def _filled(draw: Random, template: str) -> str:
    """Fill the fields of a template; `,8` pads to the right, `,-8` to the left."""

    def replacement(found: re.Match[str]) -> str:
        name, count, width = found.groups()
        text = COUNTED[name](draw, int(count)) if count else FIELDS[name](draw)
        size = int(width or 0)
        return text.rjust(-size) if size < 0 else text.ljust(size)

    return FIELD.sub(replacement, template)


def _template(name: str, template: str) -> None:
    """Add a kind whose parts are lines, or blocks between `%%`, of a template, in any order."""
    blocks = template.strip("\n").split("\n%%\n")
    parts = blocks if len(blocks) > 1 else blocks[0].split("\n")

    @KINDS.lines(name)
    def _write(draw: Random) -> str:
        return _filled(draw, draw.choice(parts))


def _block(name: str, head: str, line: str, foot: str = "") -> None:
    """Add a kind that has a head, lines by templates, and a foot."""
    lines = line.strip("\n").split("\n")

    @KINDS.text(name)
    def _write(draw: Random, size: int) -> str:
        start = _filled(draw, head)
        body = repeated(draw, size - len(start), lambda draw: _filled(draw, draw.choice(lines)))
        return "\n".join(part for part in (start, body, _filled(draw, foot)) if part)


# --- Tables ----------------------------------------------------------------------------------------

Border = tuple[str, str, str, str]
"""Left end, line, crossing and right end of a border."""


COLUMNS = (
    "«t»",
    "«ws2»",
    "«ws4»",
    "«n»",
    "«f2»",
    "«d»",
    "«name»",
    "«h8»",
    "«ip»",
    "«v»",
    "«r9»",
    "-",
)


def _bordered(
    name: str,
    above: Border,
    below_head: Border,
    below: Border,
    bars: str,
    each: Border | None = None,
) -> None:
    """Add a kind of tables with borders; `each` is a border below each row."""

    @KINDS.text(name)
    def _write(draw: Random, size: int) -> str:
        columns = draw.choices(COLUMNS, k=draw.randint(2, 7))
        rows = [[_technical(draw) for _ in columns]]
        while sum(len(cell) + 3 for row in rows for cell in row) < size:
            rows.append([_filled(draw, column) for column in columns])
        widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]

        def border(parts: Border) -> str:
            left, dash, crossing, right = parts
            return left + crossing.join(dash * width for width in widths) + right

        def line(row: Sequence[str]) -> str:
            cells = [f" {cell}".ljust(width) for cell, width in zip(row, widths, strict=True)]
            return bars[0].strip() + bars[1].join(cells) + bars[2].strip()

        lines = [line(row) for row in rows]
        lines = [
            border(above), lines[0], border(below_head),
            *(f"{text}\n{border(each)}" for text in lines[1:-1] if each),
            *(text for text in lines[1:-1] if not each),
            lines[-1], border(below),
        ]  # fmt: skip
        return "\n".join(text for text in lines if text.strip())


NO_BORDER = (" ", " ", " ", " ")
PLAIN = ("+", "-", "+", "+")
EQUALS = ("+", "=", "+", "+")
_bordered("a table of psql", NO_BORDER, ("", "-", "+", ""), NO_BORDER, " | ")
_bordered("a table of psql with border two", PLAIN, PLAIN, PLAIN, "|||")
_bordered("a grid of reST", PLAIN, EQUALS, PLAIN, "|||", PLAIN)
_bordered(
    "a simple table of reST", ("", "=", "  ", ""), ("", "=", "  ", ""), ("", "=", "  ", ""), "   "
)
_bordered(
    "a table of org mode", ("|", "-", "+", "|"), ("|", "-", "+", "|"), ("|", "-", "+", "|"), "|||"
)
_bordered(
    "a heavy table of rich", ("┏", "━", "┳", "┓"), ("┡", "━", "╇", "┩"), ("└", "─", "┴", "┘"), "│││"
)
_bordered(
    "a rounded table of rich",
    ("╭", "─", "┬", "╮"),
    ("├", "─", "┼", "┤"),
    ("╰", "─", "┴", "╯"),
    "│││",
)
_bordered(
    "a table of double lines",
    ("╔", "═", "╦", "╗"),
    ("╠", "═", "╬", "╣"),
    ("╚", "═", "╩", "╝"),
    "║║║",
)
_bordered(
    "a table of cli-table",
    ("┌", "─", "┬", "┐"),
    ("├", "─", "┼", "┤"),
    ("└", "─", "┴", "┘"),
    "│││",
    ("├", "─", "┼", "┤"),
)
_bordered("a table of asciidoc", ("|", "=", "=", "="), NO_BORDER, ("|", "=", "=", "="), "||   ")
_bordered("a padded table of markdown", NO_BORDER, ("|", "-", "|", "|"), NO_BORDER, "|||")
_bordered(
    "a table of dots", (":", ".", ":", ":"), (":", ".", ":", ":"), (":", ".", ":", ":"), ":::"
)
_bordered(
    "a table of nushell",
    ("╭", "─", "┬", "╮"),
    ("├", "─", "┼", "┤"),
    ("╰", "─", "┴", "╯"),
    "│││",
    ("│", " ", "│", "│"),
)
_bordered(
    "a heavy grid",
    ("┏", "━", "┳", "┓"),
    ("┣", "━", "╋", "┫"),
    ("┗", "━", "┻", "┛"),
    "┃┃┃",
    ("┣", "━", "╋", "┫"),
)
_bordered("a dashed table", ("┌", "┄", "┬", "┐"), ("├", "┄", "┼", "┤"), ("└", "┄", "┴", "┘"), "┊┊┊")
_bordered(
    "a table of duckdb", ("┌", "─", "┬", "┐"), ("│", " ", "│", "│"), ("└", "─", "┴", "┘"), "│││"
)
_bordered(
    "a table of stars", ("*", "*", "*", "*"), ("*", "*", "*", "*"), ("*", "*", "*", "*"), "***"
)

_template(
    "psql expanded rows",
    """
-[ RECORD «n1» ]-----+--------------------------
«s,18» | «n»
«s,18» | «ws3»
«s,18» | «d» «clock».«n6»+00
«s,18» | t
""",
)
_template(
    "mysql vertical rows",
    """
*************************** «n1». row ***************************
«s,-20»: «n»
«s,-20»: «ws2»
«s,-20»: «d» «clock»
«s,-20»: NULL
""",
)
_template(
    "a data frame as printed",
    """
«n4»  «d» «clock»  «t,-12»  «f3,-9»       NaN   «f1,-8»
«n4»  «d» «clock»  «name,-12»  «f3,-9»  «f4,-8»   «f1,-8»
...         ...       ...        ...      ...      ...
""",
)
_template(
    "arrays of numpy",
    """
 [ «g8», «g8», «g8», «g8»],
 [ «e8»  «e8» -«e8»  «e8»]
 [«r255,-3» «r255,-3» «r255,-3» ... «r255,-3» «r255,-3» «r255,-3»]
       [[0.        , «f8», 0.        ],
""",
)
_template(
    "a summary of R",
    """
(Intercept)        «g4,-10»   «f4,-9»  «g3,-7»  «e2» ***
«t,-12»            «g4,-10»   «f4,-9»  «g3,-7»   «f3»  .
 Min.   :«f2»   1st Qu.:«f2»   Median :«f2»   Mean   :«f2»   Max.   :«f2»
Signif. codes:  0 '***' 0.001 '**' 0.01 '*' 0.05 '.' 0.1 ' ' 1
""",
)
_template(
    "a table of jira",
    """
||«W»||«W»||«t»||
|«t»|«n»|(/)|{color:red}«w»{color}|
|[PROJ-«n4»|https://«host»/browse/PROJ-«n4»]|«ws4»|(x)|
""",
)
_template(
    "a table of mediawiki",
    """
|-
! scope="row" | «W»
| «n» || «f2» || [[«W»]] || style="text-align:right" | «n»
| {{flagicon|«LETTER»«LETTER»}} «name» || «d»
""",
)
_template(
    "a tabular of LaTeX",
    r"""
«W» & «f2» & «f2» $\pm$ «f2» & \textbf{«f2»} \\
\hline \multicolumn{2}{c|}{«w»} & «n» & -- \\ \cmidrule(lr){2-4}
«W»~\cite{«name»«n4»} & \checkmark & & «f1»\% \\
""",
)
_template(
    "rows of an HTML table",
    """
<tr><td>«n»</td><td>«ws2»</td><td class="num">«f2»</td></tr>
<tr class="odd"><th scope="row">«t»</th><td align=right>«n»&nbsp;</td><td></td><td>-</td></tr>
""",
)
_template(
    "pods of kubectl",
    """
«k,44»-«h9»-«a5»   «r3»/«r3»     Running            «r40»          «r99»d
«k,44»-«n1»                    0/1     CrashLoopBackOff   «r400» (5m«r59»s ago)   «r9»d«r23»h
kube-system   «k,40»   ClusterIP   «ip»   <none>   «n4»/TCP,«n5»/UDP   «r400»d
""",
)
_template(
    "containers of docker ps",
    """
«h12»   «t»:«v»-alpine        "docker-entrypoint.s…"   «r9» weeks ago   Up «r23» hours (healthy)   0.0.0.0:«n4»->«n4»/tcp, :::«n4»->«n4»/tcp   «s»
«h12»   registry.«host»/«k»:«h7»   "/bin/sh -c 'python …"   «r9» days ago    Exited (137) «r9» days ago             «t»_«name»
""",
)
_template(
    "quoted CSV",
    '"«n»","«name», «W»","«ws5»","«d»T«clock»Z","«f2»",""\n"«n»","«w» ""«w»"" «w»","","","-«f2»","TRUE"',
)
_template(
    "CSV with decimal commas",
    "«n»;«r999»,«n2»;«r31».«r12».20«n2»;«name»;-«r99»,«n3»;;€ «r9».«n3»,«n2»",
)
_template("TSV of numbers", "«f4»\t«g2»\t«n»\t«e3»\t0\t«n3»\tNA\n«n5»\t«n5»\t«f1»\t«f1»\t\t\t«n2»")
_template(
    "a matrix of small numbers",
    " «r9» «r9» «r9» «r9» «r9» «r9» «r9» «r9» «r9»\n «r9» 0 0 0 1 0 «r9» 0 0",
)
_template(
    "a matrix of MATLAB",
    "   «g4,-9»   «g4,-9»   «g4,-9»   «g4,-9»\nA = [«g2» «g2» «g2»; «n1» «n1» «n1»];\n1.0e+0«n1» *",
)
_template(
    "columns in scientific notation",
    " «e6»  «e6»  «e6»\n«e3»,«e3»,«e3»,«e3»\n«g4»E+«n2» -«f6»D-0«n1»",
)
_template(
    "records of fixed width",
    "«n6»«A3»«name,20»«n10»«dn»«n9»C«A2,10»0000\n«A8,12»«W,25»0000«n8»+ «dn»«cn»",
)
_template(
    "a bill",
    """
«ws3,40» «n1,3» x «f2,-9»    «f2,-10»
------------------------------------------------------------------
SUBTOTAL                                             $ «f2,-10»
VAT 19.00 %                                          $ «f2,-10»
""",
)
_template(
    "a table of contents with dots",
    "«n1».«n1» «ws3» ........................................ «n2»\n«ws2» . . . . . . . . . . . . . . . . . . . . . . . «n3»\nChapter «n1»: «W» ____________ «n2»",
)

# --- Trees -----------------------------------------------------------------------------------------

_template(
    "a tree in light lines",
    """
├── «s».«t»
│   ├── «k».py
│   │   └── __init__.py
│   └── «P».tsx
└── «t»/
""",
)
_template(
    "a tree in ASCII",
    """
|-- «s».«t»
|   |-- «k».c
|   |   `-- «n3».log
|   `-- «P».java
`-- «t»
    `-- «w».txt
""",
)
_template(
    "a tree of DOS",
    """
├───«T»
│   │   «s».DLL
│   └───«w»
+---«W»
|   \\---«t»
""",
)
_template(
    "pstree",
    """
systemd-+-«t»---«n1»*[{«t»}]
        |-sshd---sshd---bash---pstree
        |-«t»(«n4»)-+-«t»(«n5»)
        |           `-«t»(«n5»)---{«t»}(«n4»)
""",
)
_template(
    "a tree of cargo",
    """
├── «t» v«v»
│   ├── «k» v«v» (*)
│   │   [build-dependencies]
│   │   └── «t» v«v» (proc-macro)
""",
)
_template(
    "a tree of npm",
    """
├─┬ «pack»@«v»
│ ├── «k»@«v» deduped
│ └─┬ UNMET DEPENDENCY «t»@^«v»
└── «k»@«v» -> ./packages/«t»
""",
)
_template(
    "a tree of maven",
    r"""
[INFO] +- org.«t»:«k»:jar:«v»:compile
[INFO] |  +- com.«w».«t»:«k»:jar:«v»:runtime (optional)
[INFO] |  \- «t»:«t»:jar:tests:«v»:test
[INFO] \- io.«t»:«k»-«t»:jar:linux-x86_64:«v».Final:provided
""",
)
_template(
    "block devices",
    """
NAME          MAJ:MIN RM   SIZE RO TYPE  MOUNTPOINTS
nvme0n«n1»       259:«n1»    0 «f1»G  0 disk
├─nvme0n1p«n1»   259:«n1»    0   «n3»M  0 part  /boot/efi
└─«t»-«t» 253:«n1»    0 «f1»T  0 crypt /
loop«n2»          7:«n2»   0  «f1»M  1 loop  /snap/«t»/«n4»
""",
)
_template(
    "a graph of git",
    """
* «h7» («name») «ws4»
|\\
| * «h7» «ws3» (HEAD -> «k», origin/«k»)
| | * «h7» WIP on «w»
| |/
|/|
* |   «h8» Merge branch '«k»' into main
|\\ \\
""",
)
_template(
    "a syntax tree",
    """
Module(body=[FunctionDef(name='«s»', args=arguments(posonlyargs=[], args=[arg(arg='«letter»')], kwonlyargs=[], kw_defaults=[], defaults=[]),
    Assign(targets=[Name(id='«s»', ctx=Store())], value=Call(func=Attribute(value=Name(id='«t»', ctx=Load()), attr='«s»', ctx=Load()), args=[Constant(value=«n»)], keywords=[])),
(module (function_definition name: (identifier) parameters: (parameters) body: (block (return_statement (integer)))))
  |-CXXMethodDecl 0x«h12» <line:«n2»:«n1», col:«n2»> col:«n2» used «c» 'void (int)'
""",
)
_template(
    "numbered paragraphs",
    "«n1».«n1».«n1» «W» «ws9».\n  («letter») «ws6»;\n    (iv) «ws3»; and\n§ «n2»(«n1») «W» «ws8».\n- [ ] «ws5»\n- [x] «ws3»\n    * «ws2»\n        + «w»",
)

# --- Differences -----------------------------------------------------------------------------------

_template(
    "a diff of short lines",
    """
@@ -«n2»,«n1» +«n2»,«n1» @@
-«n2»
+«n2»
-«w»
+«w»,
 }
-
+  «letter»
 «t»:
""",
)
_template(
    "a diff of code",
    """
diff --git a/«p» b/«p»
index «h7»..«h7» 100644
--- a/«p»
+++ b/«p»
@@ -«n3»,«n1» +«n3»,«n2» @@ def «s»(self, «t»):
-        return self.«s»(«s»)
+        return await self.«s»(«s», «t»=«n1»)
         if not «s»:
\\ No newline at end of file
""",
)
_template(
    "a diff side by side",
    """
«ws3,50» | «ws3»
«s» = «n4»;                                                    «s» = «n4»;
                                                        > «ws4»
«ws2,40»                <
}                                                               }
""",
)
_template(
    "a diff of words", "«ws3» [-«w»-]{+«w»+} «ws2»\n[-«s»(«n1»)-]{+«s»(«n2», «t»)+}\n{+«ws4»+}"
)
_template(
    "a stat of git",
    """
 «p» | «n3» +++++++++++++-------
 .../«t»/«s».rs | «r20,-4» ++--
 «p» => «p» | 0
 «r99» files changed, «n3» insertions(+), «n2» deletions(-)
 create mode 100644 «p»
 rename «t»/{«t» => «w»}/«s».go («n2»%)
""",
)
_template("a numstat of git", "«n3»\t«n2»\t«p»\n-\t-\t«t».png\n0\t«n1»\t{«t» => «t»}/«s».h")
_template(
    "a combined diff",
    """
@@@ -«n3»,«n1» -«n3»,«n1» +«n3»,«n2» @@@ class «P»
++<<<<<<< HEAD
 +  «s» = «n1»
++=======
+   «s» = «w»
++>>>>>>> «h7» («ws3»)
- -«t»
""",
)
_template(
    "a normal diff",
    "«n2»,«n2»c«n2»\n< «ws4»\n---\n> «ws4»\n«n3»a«n3»,«n3»\n> «s»: «n»\n«n2»d«n1»\n< ",
)
_template(
    "a context diff",
    "***************\n*** «n2»,«n2» ****\n! «ws3»\n  «s»\n--- «n2»,«n2» ----\n+ «t»\n! «ws3»",
)
_template("status letters of git", " M «p»\n?? «p»\nA  «p»\nR  «p» -> «p»\nUU «t».lock\n!! .venv/")
_template(
    "git blame",
    """
«h8» («name,-12» «d» «clock» +0200 «r999,-4»)     «s» = «s»(«t»)
^«h7» («name,-12» «d» «clock» -0700 «r999,-4»)
00000000 (Not Committed Yet «d» «clock» +0000 «r99,-3»)         }
""",
)

# --- Encodings and identifiers ---------------------------------------------------------------------


def _bytes(draw: Random, size: int) -> bytes:
    """Draw bytes, half of them words."""
    if draw.random() < 0.5:
        return _words(draw, size // 6 + 1).encode()[:size]
    return draw.randbytes(size)


def _printable(content: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in content)


@KINDS.lines("a dump of xxd")
def _xxd(draw: Random) -> str:
    content = _bytes(draw, 16)
    pairs = " ".join(content[at : at + 2].hex() for at in range(0, len(content), 2))
    return f"{draw.randrange(0, 65536, 16):08x}: {pairs}  {_printable(content)}"


@KINDS.lines("a dump of hexdump")
def _hexdump(draw: Random) -> str:
    content = _bytes(draw, 16)
    return f"{draw.randrange(0, 65536, 16):08x}  {content.hex(' ')}  |{_printable(content)}|"


@KINDS.lines("a dump of od")
def _od(draw: Random) -> str:
    return f"{draw.randrange(0, 32768, 16):07o} " + " ".join(
        f"{byte:03o}" for byte in _bytes(draw, 16)
    )


@KINDS.lines("a dump of zeros")
def _zeros(draw: Random) -> str:
    return (
        f"{draw.randrange(0, 65536, 16):08x}: "
        + "0000 " * 7
        + "00"
        + hexadecimal(draw, 2)
        + "  "
        + "." * 16
    )


@KINDS.lines("an upper-case dump")
def _upper_dump(draw: Random) -> str:
    return f"{draw.randrange(0, 65536, 16):04X}  " + _bytes(draw, 16).hex(" ").upper()


ENCODERS: dict[str, Callable[[bytes], str]] = {
    "base16 in capitals": lambda content: base64.b16encode(content).decode(),
    "base32": lambda content: base64.b32encode(content).decode(),
    "base32 in small letters": lambda content: (
        base64.b32encode(content).decode().lower().rstrip("=")
    ),
    "base64 in lines": lambda content: base64.encodebytes(content).decode().rstrip(),
    "base64 for addresses": lambda content: base64.urlsafe_b64encode(content).decode().rstrip("="),
    "base85": lambda content: base64.b85encode(content).decode(),
    "ascii85": lambda content: base64.a85encode(content, wrapcol=70).decode(),
    "a data address": lambda content: "data:image/png;base64," + base64.b64encode(content).decode(),
    "quoted-printable": lambda content: binascii.b2a_qp(content).decode(),
    "bytes of Python": repr,
    "octal escapes": lambda content: "".join(f"\\{byte:03o}" for byte in content),
    "hexadecimal escapes": lambda content: "".join(f"\\x{byte:02x}" for byte in content),
    "an array of C": lambda content: ", ".join(f"0x{byte:02X}" for byte in content) + ",",
    "an array of bytes": lambda content: str(list(content)),
    "bytes in binary": lambda content: " ".join(f"{byte:08b}" for byte in content),
    "bits without spaces": lambda content: "".join(f"{byte:08b}" for byte in content),
    "bytes with colons": lambda content: content.hex(":").upper(),
    "percent encoding": lambda content: urllib.parse.quote_from_bytes(content, safe=""),
    "uuencode": lambda content: binascii.b2a_uu(content[:45]).decode().rstrip("\n"),
}


def _encoded(name: str, encoder: Callable[[bytes], str]) -> None:
    KINDS.lines(name)(lambda draw: encoder(draw.randbytes(draw.randint(16, 200))))


for _name, _encoder in ENCODERS.items():
    _encoded(_name, _encoder)
KINDS.lines("base64 of words")(lambda draw: base64.b64encode(_words(draw, 30).encode()).decode())
KINDS.lines("percent encoding of words")(
    lambda draw: "&".join(
        f"{_snake(draw)}={urllib.parse.quote_plus(_words(draw, 4))}" for _ in range(4)
    )
)
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
KINDS.lines("base58")(lambda draw: "".join(draw.choices(BASE58, k=draw.randint(30, 90))))
KINDS.lines("addresses of bitcoin")(
    lambda draw: draw.choice(["1", "3", "bc1q"]) + "".join(draw.choices(BASE58, k=33))
)


@KINDS.lines("web tokens")
def _jwt(draw: Random) -> str:
    claims = json.dumps(
        {"sub": _digits(draw, 10), "name": draw.choice(SURNAMES), "iat": 1_700_000_000}
    )
    parts = [b'{"alg":"HS256","typ":"JWT"}', claims.encode(), draw.randbytes(32)]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


@KINDS.lines("certificates")
def _pem(draw: Random) -> str:
    label = draw.choice(["CERTIFICATE", "RSA PRIVATE KEY", "PUBLIC KEY"])
    body = base64.b64encode(b"0\x82" + draw.randbytes(300)).decode()
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----"])


_template(
    "keys of ssh",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC«a200»== «name»@«host»\nssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI«a43» «w»@«t»\n|1|«a27»=|«a27»= ecdsa-sha2-nistp256 AAAAE2Vj«a80»=",
)
_template("uuids", "«uuid»")
_template("uuids in JSON", '["«uuid»","«uuid»","«uuid»"],')
_template("hashes of commits", "«h40»")
_template("sums of sha256", "«h64»  «k»-«v».tar.gz\n«h64» *./«p»")
_template("sums of md5", "«h32»  «p»\nMD5 («s».iso) = «h32»")
_template("addresses of ethereum", "0x«h40»\n0x«h64» «n8» 0x«h40» «f18» ETH")
_template(
    "unique ids of many sorts",
    "01«A24»\n«h24»\nsk-«a48»\nAKIA«A16»\nghp_«a36»\nxoxb-«n12»-«n12»-«a24»\nARN:aws:iam::«n12»:role/«P»\narn:aws:s3:::«k»/*\n«n18»\npi_3«a23»\n$2b$12$«a53»",
)
_template(
    "words in hexadecimal",
    "0x«h8» 0x«h8» 0x«h8» 0x«h8»\n«H4» «H4» «H4» «H4» «H4» «H4»\n«h2»«h2» «h2»«h2» ff00 0000 «h4»",
)
_template("intel hex", ":10«H4»00«H32»«H2»\n:020000040000FA\nS113«H4»«H32»«H2»")
_template(
    "bank and book numbers",
    "DE«n20»\nGB«n2»NWBK«n14»\n978-«n1»-«n3»-«n5»-«n1»\n4«n3» «n4» «n4» «n4»\nUS«n9»\n«n13»\nAB «n2» «n2» «n2» C",
)
_template(
    "phone numbers",
    "+49 «n3» «n7»\n(«n3») «n3»-«n4»\n+1-«n3»-«n3»-«n4» ext. «n3»\n0«n3»/«n5»-«n2»\n+33 6 «n2» «n2» «n2» «n2»\n00«n12»",
)
_template(
    "dates in many forms",
    "«d»T«ms»Z\n«day», «r28» «mon» 20«n2» «clock» GMT\n«r12»/«r31»/«n2» «r12»:«n2» PM\n«r31».«r12».20«n2»\n20«n2»W«n2»-«n1»\n17«n8»\n17«n8».«n6»\nP«n1»Y«n1»M«n2»DT«n1»H«n2»M\n«d» «clock».«n6»+02:00",
)
_template(
    "number formats",
    "«n3»,«n3»,«n3».«n2»\n«n1»'«n3»'«n3»\n-«f3»e-«n2»\n0b«b12»\n0o«r7»«r7»7\n1_«n3»_«n3»\n«f1»%\n«n2»/«n2»\n($«n3».«n2»)\n∞\n½ ¾\n«n2»° «n2»′ «n2»″ N\n«f2» kB/s\n±«f2»",
)
_template("digits in groups", "«n5» «n5» «n5» «n5» «n5»\n«n2»-«n2»-«n2»-«n2»-«n2»\n«n3» «n3» «n3»")
_template("long digits", "«n120»")
_template("MAC addresses", "«mac»\n«H2»-«H2»-«H2»-«H2»-«H2»-«H2»\n«h4».«h4».«h4»")
_template(
    "addresses of IPv6",
    "«ip6»\nfe80::«h4»:«h4»:«h4»:«h4»%eth«n1»/64\n2001:db8:«h4»::«n1»\n::ffff:«ip»",
)
_template("networks", "«ip»/«r32»\n«ip» - «ip»\n«ip»:«n4»\nallow «ip»/24;")
_template(
    "morse",
    "... --- ... / .- -... -.-. / -.. . ..-.\n-. --- .-- / .. - / .-. .- .. -. ...\n.-- .... --- / ..... ----. -....",
)
_template(
    "punycode",
    "xn--«a8»-«a4».com\nxn--bcher-kva.example\nxn--«letter»«n1»«letter»«a5».«t».xn--p1ai",
)
_template(
    "references of entities",
    "&lt;div class=&quot;«t»&quot;&gt;«w»&lt;/div&gt;\n&#«n4»;&#x«h4»;&nbsp;&amp;&copy;&eacute;&#39;«w»&#39;\n&#«n3»;&#«n3»;&#«n3»;&#«n3»;",
)
_template(
    "escapes of unicode",
    r"\u«h4»\u«h4»\u«h4»\u«h4»\u«h4»"
    + "\n"
    + r"\U000«h5» \u00e9\u00df \N{GREEK SMALL LETTER ALPHA}"
    + "\n"
    + r"\uD83D\uDE«h2»«w»\n\t\"«w»\"",
)
_template(
    "words with umlauts as escapes",
    r'{"«t»": "\u00fcber«w» stra\u00dfe «w» caf\u00e9 \u2013 \u201e«w»\u201c"},',
)

# --- Logs and what programs print ------------------------------------------------------------------

_template(
    "access log of nginx",
    '«ip» - - [«r28»/«mon»/20«n2»:«clock» +0000] "«method» /«p»?«t»=«n3» HTTP/1.1" «status» «n5» "https://«host»/«w»" "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/«n3».0.0.0 Safari/537.36"\n«ip» - «name» [«r28»/«mon»/20«n2»:«clock» +0200] "«method» /api/v«n1»/«k»/«n» HTTP/2.0" «status» «n3» "-" "curl/«v»"',
)
_template(
    "error log of nginx",
    '«d» «clock» [error] «n5»#«n5»: *«n6» open() "/usr/share/nginx/html/«p»" failed (2: No such file or directory), client: «ip», server: «host», request: "GET /«p» HTTP/1.1", host: "«host»"\n«d» «clock» [warn] «n2»#0: *«n5» upstream server temporarily disabled while connecting to upstream',
)
_template(
    "syslog",
    "«mon» «r28,-2» «clock» «k» sshd[«n5»]: Failed password for invalid user «w» from «ip» port «n5» ssh2\n«mon» «r28,-2» «clock» «k» CRON[«n5»]: (root) CMD (   cd / && run-parts --report /etc/cron.hourly)\n«mon» «r28,-2» «clock» «k» «t»[«n4»]: «ws6»",
)
_template(
    "journal of systemd",
    "«day» «d» «clock» «k» systemd[1]: Started «P» Service.\n«mon» «r28» «clock» «k» systemd[1]: «k».service: Main process exited, code=exited, status=«n1»/FAILURE\n     Active: active (running) since «day» «d» «clock» UTC; «n1»h «n2»min ago\n     CGroup: /system.slice/«t».service\n             └─«n5» /usr/bin/«t» --«k»=«n1»",
)
_template(
    "messages of the kernel",
    "[«n5».«n6»] usb «n1»-«n1»: new high-speed USB device number «n2» using xhci_hcd\n[    «n1».«n6»] pci 0000:00:«h2».0: [8086:«h4»] type 00 class 0x0«h5»\n[«n7».«n6»] Out of memory: Killed process «n5» («t») total-vm:«n7»kB, anon-rss:«n6»kB, file-rss:0kB\n[    0.«n6»] BIOS-e820: [mem 0x«h16»-0x«h16»] usable",
)
_template(
    "klog of Kubernetes",
    '«LETTER»«n4» «clock».«n6»       «n1» «s».go:«n3»] "«ws4»" pod="kube-system/«k»-«a5»" err="«ws3»"\nI«n4» «clock».«n6»   «n5» reflector.go:«n3»] Listing and watching *v1.«P» from k8s.io/client-go/informers/factory.go:«n3»',
)
_template(
    "log of PostgreSQL",
    '«d» «ms» UTC [«n5»] «name»@«t» LOG:  duration: «f3» ms  statement: SELECT "«s»"."«s»" FROM "«s»" WHERE "«s»"."id" = $1\n«d» «ms» UTC [«n5»] ERROR:  duplicate key value violates unique constraint "«s»_pkey"\n«d» «ms» UTC [«n5»] DETAIL:  Key («s»)=(«n») already exists.\n«d» «ms» UTC [«n2»] LOG:  checkpoint complete: wrote «n4» buffers («f1»%); 0 WAL file(s) added',
)
_template(
    "slow queries of MySQL",
    "# Time: «d»T«ms»Z\n# User@Host: «name»[«t»] @ «host» [«ip»]  Id: «n5»\n# Query_time: «f6»  Lock_time: 0.0000«n2» Rows_sent: «n3»  Rows_examined: «n6»\nSET timestamp=17«n8»;\nSELECT * FROM «s» ORDER BY «s» DESC LIMIT «n2»;",
)
_template(
    "log of redis",
    '«n5»:M «r28» «mon» 20«n2» «ms» * Background saving terminated with success\n«n5»:C «r28» «mon» 20«n2» «ms» # oO0OoO0OoO0Oo Redis is starting oO0OoO0OoO0Oo\n«n2») "«s»:«n4»"\n127.0.0.1:6379> HGETALL «s»:«n3»\n(integer) «n2»',
)
_template(
    "build of docker",
    "#«n2» [«t» «n1»/«n1»] RUN apt-get update && apt-get install -y «t» «k»\n#«n2» sha256:«h64» «f2»MB / «f2»MB «f1»s done\n#«n2» CACHED\n#«n2» DONE «f1»s\n ---> Running in «h12»\n => [internal] load build context      «f1»s\n => => transferring context: «f2»kB",
)
_template(
    "build of maven",
    "[INFO] --- maven-«t»-plugin:«v»:«w» (default-«w») @ «k» ---\n[INFO] Tests run: «n2», Failures: 0, Errors: 0, Skipped: «n1», Time elapsed: «f3» s - in com.«w».«P»Test\n[INFO] ------------------------------------------------------------------------\n[ERROR] /«p»:[«n2»,«n2»] cannot find symbol\n[WARNING] «ws7»\n[INFO] BUILD SUCCESS",
)
_template(
    "installation by npm",
    'npm WARN deprecated «pack»@«v»: «ws8»\nnpm ERR! code ERESOLVE\nnpm ERR! peer «k»@"^«v»" from «pack»@«v»\nadded «n3» packages, and audited «n4» packages in «n2»s\n«n1» moderate severity vulnerabilities\nnpm http fetch GET 200 https://registry.npmjs.org/«pack» «n3»ms (cache hit)',
)
_template(
    "installation by pip",
    "Collecting «pack»<«n1»,>=«v» (from -r requirements.txt (line «n2»))\n  Downloading «s»-«v»-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl.metadata («f1» kB)\n     ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ «f1»/«f1» MB «f1» MB/s eta 0:00:00\nRequirement already satisfied: «pack»>=«v» in ./.venv/lib/python3.11/site-packages («v»)\nSuccessfully installed «k»-«v» «t»-«v» «pack»-«v»",
)
_template(
    "installation by apt",
    "Get:«n2» http://deb.debian.org/debian bookworm/main amd64 «k» amd64 «v»-«n1»+deb12u«n1» [«n3» kB]\nUnpacking «k»:amd64 («v»-«n1»ubuntu«n1».«n1») ...\nSetting up «t» («n1»:«v»+dfsg-«n1») ...\nSelecting previously unselected package «k».\n(Reading database ... «n5» files and directories currently installed.)\n«k»/stable,now «v»-«n1» amd64 [installed,automatic]",
)
_template(
    "build of cargo",
    "   Compiling «k» v«v» (/home/«w»/«t»)\n    Finished `release` profile [optimized] target(s) in «f2»s\n  Downloaded «t» v«v»\nwarning: unused variable: `«s»`\nerror[E0«n3»]: cannot borrow `*«s»` as mutable because it is also borrowed as immutable\n  --> src/«s».rs:«n3»:«n2»\n   |\n«n3» |     let «s» = &mut self.«s»;\n   |             ^^^^^^^^^ «ws3»\n   = help: consider borrowing here: `&«s»`",
)
_template(
    "bundles of webpack",
    "asset «t».«h20».js «n3» KiB [emitted] [immutable] [minimized] (name: «w») 1 related asset\n./src/«p» «f2» KiB [built] [code generated]\ndist/assets/«P»-«a8».js   «f2» kB │ gzip: «f2» kB │ map: «f2» kB\n✓ «n4» modules transformed.\nModule not found: Error: Can't resolve './«t»' in '/app/«p»'",
)
_template(
    "plan of terraform",
    '  # aws_«s».«s»[«n1»] will be created\n  + resource "aws_«s»" "«s»" {\n      + «s,24» = (known after apply)\n      ~ «s,24» = "«k»" -> "«k»"\n      - «s,24» = «n3» -> null\nPlan: «n1» to add, «n1» to change, 0 to destroy.\naws_«s».«s»: Refreshing state... [id=sg-0«h16»]',
)
_template(
    "play of ansible",
    "TASK [«t» : «ws4»] ***********************************************************\nok: [«host»]\nchanged: [«host»] => (item={'name': '«t»', 'state': 'present'})\nfatal: [«host»]: FAILED! => {\"changed\": false, \"msg\": \"«ws5»\", \"rc\": «n1»}\nPLAY RECAP *********************************************************************\n«host,30» : ok=«n2»   changed=«n1»    unreachable=0    failed=«n1»    skipped=«n1»    rescued=0    ignored=0",
)
_template(
    "jobs of GitHub",
    "«d»T«clock».«n7»Z ##[group]Run «t»/«k»@v«n1»\n«d»T«clock».«n7»Z   with:\n«d»T«clock».«n7»Z     «k»: «w»\n«d»T«clock».«n7»Z ##[error]Process completed with exit code «n1».\n«d»T«clock».«n7»Z [command]/usr/bin/git checkout --progress --force refs/remotes/pull/«n3»/merge",
)
_template(
    "log of kafka",
    "[«d» «clock»,«n3»] INFO [GroupCoordinator «n1»]: Preparing to rebalance group «k» in state PreparingRebalance with old generation «n2» (__consumer_offsets-«n2») (reason: «ws4») (kafka.coordinator.group.GroupCoordinator)\n[«d» «clock»,«n3»] WARN [Consumer clientId=«k»-«n1», groupId=«w»] Offset commit failed on partition «k»-«n1» at offset «n6»",
)
_template(
    "log4j",
    "«d» «clock»,«n3» «level,-5» [http-nio-8080-exec-«n1»] c.e.«t».«P»Service - «ws6»\n«d» «ms»  «level,-5» «n5» --- [           main] o.s.b.w.embedded.tomcat.TomcatWebServer  : Tomcat started on port(s): «n4» (http)\n«level» | «clock» | «P»$«P» | «s»=«n4», «s»=null",
)
_template(
    "logfmt",
    'ts=«d»T«ms»Z level=info caller=«s».go:«n3» component=«t» msg="«ws4»" duration=«f6»s\nat=info method=«method» path="/«p»" host=«host» request_id=«uuid» fwd="«ip»" dyno=web.«n1» connect=«n1»ms service=«n2»ms status=«status» bytes=«n4»',
)
_template(
    "lines of JSON",
    '{"level":«n2»,"time":17«n11»,"pid":«n5»,"hostname":"«k»","reqId":"req-«a4»","msg":"«ws4»"}\n{"@timestamp":"«d»T«ms»Z","log.level":"«level»","message":"«ws5»","ecs.version":"1.2.0","trace.id":"«h32»","labels":{"«s»":«n3»,"ok":true}}',
)
_template(
    "logcat of Android",
    "«n2»-«n2» «ms»  «n4»  «n5» E AndroidRuntime: \tat com.«w».«t».«P»$«n1».«c»(«P».java:«n3»)\n«n2»-«n2» «ms»  «n4»  «n4» D «P»: «c»() «w»=«n3»\nW/ActivityManager( «n4»): «ws5»\nI/chatty  («n5»): uid=«n5»(u0_a«n3») identical «n2» lines",
)
_template(
    "log of haproxy",
    '«mon» «r28» «clock» «k» haproxy[«n5»]: «ip»:«n5» [«r28»/«mon»/20«n2»:«ms»] «t»-in~ «s»/«k»-«n1» 0/0/«n1»/«n2»/«n2» «status» «n4» - - ---- «n2»/«n2»/«n1»/«n1»/0 0/0 "«method» /«p» HTTP/1.1"',
)
_template(
    "a push by git",
    "remote: Resolving deltas: «n2»% («n3»/«n4»)\nremote: Counting objects: 100% («n3»/«n3»), done.\nTo github.com:«t»/«k».git\n   «h7»..«h7»  «k» -> «k»\n ! [rejected]        main -> main (non-fast-forward)\n * [new branch]      «k»/«w» -> origin/«k»/«w»\nReceiving objects:  «n2»% («n4»/«n5»), «f2» MiB | «f2» MiB/s",
)
_template(
    "a copy by rsync",
    ">f+++++++++ «p»\n.d..t...... «t»/\n      «n3»,«n3» 100%  «f2»MB/s    0:00:«n2» (xfr#«n2», to-chk=«n3»/«n4»)\nsent «n4» bytes  received «n5» bytes  «n5».00 bytes/sec\n*deleting   «p»",
)
_template(
    "progress of wget",
    " «n5»K .......... .......... .......... .......... .......... «n2»% «f2»M «n2»s\n--«d» «clock»--  https://«host»/«p»\n«k».gz        «n2»%[=======>            ] «f2»M  «f2»MB/s    eta «n2»s\nHTTP request sent, awaiting response... 200 OK",
)
_template(
    "bars of tqdm",
    "Epoch «n1»:  «n2»%|███████▍  | «n3»/«n4» [«n2»:«n2»<«n2»:«n2», «f2»it/s, loss=«f3»]\n «n2»%|█▏        | «n3»/«n4» [00:«n2»<01:«n2»,  «f2»s/it]\n100%|██████████| «n3»/«n3» [00:00<00:00, «f2»it/s]\nMap:   0%|          | 0/«n4» [00:00<?, ? examples/s]",
)
_template(
    "bars of several sorts",
    "[####################--------------------] «n2»%\n[=====>                    ] «n2»/«n3»\n⠙ «ws3»...\n▓▓▓▓▓▓▓▓▒▒▒▒▒▒░░░░░░ «n2»%\n◐ «w» ━━━━━━━━━━╸━━━━━━━ «n2»% 0:00:«n2»\n(●●●○○○○○) step «n1»\n|████████▌         | «n2».«n1»%",
)
_template(
    "ffmpeg",
    "frame= «n4» fps= «n2» q=«n2».0 size=    «n4»kB time=«clock».«n2» bitrate= «f1»kbits/s speed=«f2»x\n  Stream #0:«n1»[0x«n1»](und): Video: h264 (High) (avc1 / 0x31637661), yuv420p(tv, bt709), 1920x1080 [SAR 1:1 DAR 16:9], «n4» kb/s, 25 fps, 25 tbr, 12800 tbn (default)\n[libx264 @ 0x«h12»] frame I:«n2»    Avg QP:«f2»  size: «n5»",
)
_template(
    "training of a model",
    "step «n5»/«n6» | loss «f6» (+«f2»z)| norm «f4» | lr «e2» | «f2» ms | «f1»% bf16 MFU | «n6» tok/s\n{'loss': «f4», 'grad_norm': «f15», 'learning_rate': «e16», 'epoch': «f2»}\nEpoch «n1»/«n2» - «n2»s «n1»ms/step - loss: «f4» - accuracy: 0.«n4» - val_loss: «f4» - val_accuracy: 0.«n4»",
)
_template(
    "strace",
    'openat(AT_FDCWD, "/«p»", O_RDONLY|O_CLOEXEC) = «n1»\nmmap(NULL, «n5», PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f«h10»\nread(«n1», "\\177ELF\\2\\1\\1\\0\\0\\0\\0\\0\\0\\0\\0\\0\\3\\0>\\0\\1\\0\\0\\0"..., 832) = 832\n[pid «n5»] futex(0x55«h10», FUTEX_WAIT_PRIVATE, «n1», NULL) = -1 EAGAIN (Resource temporarily unavailable)\nclose(«n1»)                                = 0',
)
_template(
    "gdb",
    '#«n1»  0x0000«h12» in «s» («s»=0x«h12», «t»=<optimized out>) at ../«p»:«n3»\nThread «n1» (Thread 0x7f«h10» (LWP «n5»)):\n(gdb) p *«s»->«s»\nrax            0x«h16»  «n15»\n   0x«h16» <+«n3»>:\tmov    %rax,-0x«h2»(%rbp)\n$«n1» = {«s» = 0x«h12» "«w»", «t» = «n1», next = 0x0}',
)
_template(
    "valgrind",
    "==«n5»== Invalid read of size «n1»\n==«n5»==    at 0x«H6»: «s» («s».c:«n3»)\n==«n5»==    by 0x«H6»: main («t».c:«n2»)\n==«n5»==  Address 0x«h7» is 0 bytes after a block of size «n2» alloc'd\n==«n5»== HEAP SUMMARY:\n==«n5»== LEAK SUMMARY:   definitely lost: «n1»,«n3» bytes in «n2» blocks",
)
_template(
    "perf",
    "    «f2»%  «t,-14»  [kernel.kallsyms]   [k] «s»\n     «f2»%  «t»  libc-2.31.so        [.] __«s»\n  «n3»,«n3»,«n3»      cycles                    #    «f3» GHz                      ( +-  «f2»% )\n            |--«f2»%--«s»",
)
_template(
    "ping and traceroute",
    "64 bytes from «ip»: icmp_seq=«n2» ttl=«n2» time=«f2» ms\nrtt min/avg/max/mdev = «f3»/«f3»/«f3»/«f3» ms\n «n1»  «host» («ip»)  «f3» ms  «f3» ms  «f3» ms\n«n2»  * * *\nRequest timeout for icmp_seq «n2»",
)
_template(
    "tcpdump",
    "«clock».«n6» IP «ip».«n5» > «ip».443: Flags [P.], seq «n5»:«n5», ack «n6», win «n4», options [nop,nop,TS val «n9» ecr «n9»], length «n4»\n«clock».«n6» ARP, Request who-has «ip» tell «ip», length 28\n\t0x00«h2»:  «h4» «h4» «h4» «h4» «h4» «h4» «h4» «h4»  E..<..@.@.......",
)
_template(
    "dig",
    ';; ANSWER SECTION:\n«host».\t\t«n4»\tIN\tA\t«ip»\n«host».\t«n5»\tIN\tMX\t10 mx«n1».«host».\n;; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: «n5»\n«t».com. 300 IN TXT "v=spf1 include:_spf.google.com ip4:«ip»/24 ~all"\n«h8»._domainkey IN TXT ( "v=DKIM1; k=rsa; p=MIGfMA0G«a60»" )',
)
_template(
    "curl with headers",
    '> «method» /«p» HTTP/2\n> Host: «host»\n> accept: */*\n< HTTP/2 «status»\n< content-type: application/json; charset=utf-8\n< x-request-id: «uuid»\n< cf-ray: «h16»-FRA\n* TLSv1.3 (IN), TLS handshake, Encrypted Extensions (8):\n* Connected to «host» («ip») port 443 (#0)\n{ [«n4» bytes data]\n< set-cookie: «t»=«a32»; Path=/; HttpOnly; SameSite=Lax\n< etag: W/"«h2»-«a27»"',
)
_template(
    "iptables list",
    "Chain «T» (policy ACCEPT «n4» packets, «n5» bytes)\n«n5,-8» «n3»K ACCEPT     tcp  --  «t»   *       «ip»/24       0.0.0.0/0            tcp dpt:«n4» ctstate NEW,ESTABLISHED\n    0     0 DROP       all  --  *      eth0    0.0.0.0/0            0.0.0.0/0\n  «n3» «n5» RETURN     udp  --  any    any     anywhere             anywhere",
)
_template(
    "iptables rules",
    '-A «T» -s «ip»/32 -p tcp -m tcp --dport «n4» -m comment --comment "«ws3»" -j ACCEPT\n-A KUBE-SVC-«A16» -m statistic --mode random --probability 0.«n10» -j KUBE-SEP-«A16»\n:«T» ACCEPT [«n5»:«n7»]\nCOMMIT',
)
_template(
    "routes and sockets",
    'default via «ip» dev eth«n1» proto dhcp metric «n3»\n«ip»     0.0.0.0         255.255.255.0   U     «n3»    0        0 br-«h12»\ntcp   LISTEN 0      «n3»          0.0.0.0:«n4»       0.0.0.0:*    users:(("«t»",pid=«n4»,fd=«n1»))\ntcp6       0      0 :::«n4»                 :::*                    LISTEN      «n5»/«t»\nudp   UNCONN 0      0                 [::]:«n5»          [::]:*\n«n1»: eth«n1»: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP group default qlen 1000\n    link/ether «mac» brd ff:ff:ff:ff:ff:ff',
)
_template(
    "nmap",
    "«n5»/tcp  open     «t,14» «P» «v» (Ubuntu Linux; protocol 2.0)\n«n4»/udp  filtered «t»\n|_http-title: «ws3»\n| ssl-cert: Subject: commonName=«host»\n|   «n4» «h2»:«h2»:«h2»:«h2»:«h2»:«h2»:«h2»:«h2» (RSA)\nNot shown: «n3» closed ports",
)
_template(
    "ls -l",
    "-rw-r--r--   1 «w,-8» staff   «n6,-9» «mon» «r28,-2» «n2»:«n2» «s».«t»\ndrwxr-xr-x  «n2» root     root     4096 «mon» «r28,-2»  20«n2» .«t»\nlrwxrwxrwx   1 root root       «n2» «mon» «r28» «n2»:«n2» «s» -> ../«p»\n-rwsr-xr-x 1 «n4» «n4» «f1»K «d» «n2»:«n2» «k»\ntotal «n3»",
)
_template(
    "dir of Windows",
    "«n2»/«n2»/20«n2»  «n2»:«n2» PM    <DIR>          «P»\n«n2».«n2».20«n2»  «n2»:«n2»         «n3»,«n3»,«n3» «P».exe\n              «n2» File(s)    «n3»,«n3» bytes\nd-----         «n1»/«n2»/20«n2»   «n1»:«n2» AM                «w»\n-a----        «d»     «n2»:«n2»        «n7» «s».ps1",
)
_template(
    "ps aux",
    "root      «n6,-7»  «f1»  0.«n1» «n7» «n5» ?        Ssl  «mon»«n2»   «n1»:«n2» /usr/bin/«t» --config /etc/«p»\n«w,8» «n6,-7»  0.0  0.«n1»      0     0 ?        I<   «n2»:«n2»   0:00 [kworker/«n1»:«n1»H-«t»]\n«n5»  «n5» pts/«n1»    00:00:«n2» python -m «t».«s» --port «n4»\nUSER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND",
)
_template(
    "df and du",
    "/dev/sd«letter»«n1»        «n9»  «n8»  «n9»  «n2»% /«t»\ntmpfs           «f1»G     0  «f1»G   0% /dev/shm\noverlay         «n3»G  «n2»G   «n2»G  «n2»% /var/lib/docker/overlay2/«h64»/merged\n«f1»M\t./«p»\n«n8»\t/«p»\n4.0K\t.",
)
_template(
    "top",
    "top - «clock» up «n2» days, «n1»:«n2»,  «n1» users,  load average: «f2», «f2», «f2»\n%Cpu(s): «f1» us,  «f1» sy,  0.0 ni, «f1» id,  «f1» wa,  0.0 hi,  0.«n1» si,  0.0 st\n  «n6» «w,-8»  20   0   «f1»g «n6»  «n5» S  «f1»   «f1»   «n2»:«n2».«n2» «t»\nKiB Mem : «n8» total,  «n7» free,  «n7» used, «n7» buff/cache",
)
_template(
    "vmstat",
    " «n1»  «n1»      0 «n6,-6» «n6,-6» «n7,-7»    0    0    «n2,-3»    «n2,-3» «n4,-5» «n5,-5» «n2,-2» «n1,-2» «n2,-2»  0  0\n«clock»     all     «f2»      0.00      «f2»      0.«n2»      0.00     «f2»\nsda              «f2»      «f2»      «f2»       «n6»     «n7»",
)
_template(
    "a coverage report",
    "src/«p,52»    «n3,-4»    «n2,-4»    «n2»%   «n2»-«n2», «n3», «n3»->«n3»\nsrc/«p,52»    «n3,-4»       0   100%\n-----------------------------------------------------------------\nTOTAL                       «n5»   «n4»    «n2»%\n  «P».tsx      |   «f2» |    «n2».«n1» |      50 |   «f2» | «n2»-«n2»,«n3»\ngithub.com/«t»/«t»/«s».go:«n3»:\t«P»\t\t«f1»%",
)
_template(
    "pytest in short",
    "tests/test_«s».py «n1»%\ntests/test_«s».py ....F..s....x.........                                 [ «n2»%]\ntests/test_«s».py::Test«P»::test_«s»[«w»-«n2»] PASSED          [ «n2»%]\nFAILED tests/«s».py::test_«s» - AssertionError: assert «n2» == «n2»\n=================== «n1» failed, «n3» passed, «n1» skipped in «f2»s ===================\n>       assert «s»(«n1») == [«n1», «n1»]\nE       AssertionError: assert [«n1»] == [«n1», «n1»]\nE         Right contains one more item: «n1»\n_________________________________ test_«s» _________________________________",
)
_template(
    "jest",
    "PASS  src/«p» («f3» s)\n  ● «P» › «ws4» › «ws3»\n    ✓ «ws5» («n2» ms)\n    ✕ «ws5»\n    expect(received).toEqual(expected) // deep equality\n    - Expected  - «n1»\n    + Received  + «n1»\n      at Object.<anonymous> (src/«p»:«n2»:«n2»)\nTests:       «n1» failed, «n3» passed, «n3» total\n    > «n2» |   expect(«c»(«n1»)).toBe('«w»');\n         |                    ^",
)
_template(
    "go test",
    "=== RUN   Test«P»/«s»_#0«n1»\n--- FAIL: Test«P» («f2»s)\n    --- PASS: Test«P»/«s» (0.00s)\n    «s»_test.go:«n3»: got «n2», want «n2»\nok  \tgithub.com/«t»/«k»/«t»\t«f3»s\tcoverage: «f1»% of statements\nBenchmark«P»-8   \t «n7»\t       «f1» ns/op\t     «n3» B/op\t       «n1» allocs/op\n?   \tgitlab.com/«w»/«t»\t[no test files]",
)
_template(
    "cargo test",
    "test «s»::tests::«s» ... ok\ntest «s»::«s»::tests::«s» ... FAILED\n---- «s»::tests::«s» stdout ----\nthread '«s»' panicked at src/«s».rs:«n2»:«n1»:\nassertion `left == right` failed\n  left: Some(«n2»)\n right: None\ntest result: FAILED. «n2» passed; «n1» failed; 0 ignored; 0 measured; 0 filtered out; finished in «f2»s",
)
_template(
    "tap and dots",
    "ok «n2» - «ws5»\nnot ok «n2» - «ws4» # TODO\n  # Subtest: «s»\n..........................F.....S.......E...\n1..«n2»\n✔ «ws4» («f3»ms)\n✖ «ws3»\n»".replace(
        "\n»", ""
    ),
)
_template(
    "junit in XML",
    '<testcase classname="com.«w».«P»Test" name="«c»" time="«f3»"/>\n<testsuite name="«t»" tests="«n2»" failures="«n1»" errors="0" skipped="0" timestamp="«d»T«clock»">\n<failure message="«ws4»" type="org.opentest4j.AssertionFailedError"><![CDATA[expected: <«n1»> but was: <«n1»>]]></failure>',
)
_template(
    "errors of gcc",
    "«p»:«n3»:«n2»: error: ‘«s»’ undeclared (first use in this function); did you mean ‘«s»’?\n  «n3» |     «s»->«s» = «s»(«s», «n1»);\n      |     ^~~~~~~~~~\n      |     «s»\n«s».c: In function ‘«s»’:\n/usr/bin/ld: «s».o: in function `«s»':\n«s».cpp:(.text+0x«h2»): undefined reference to `std::«t»::«s»(int, char const*)'\nmake: *** [Makefile:«n2»: «s».o] Error 1",
)
_template(
    "errors of templates",
    "error: no matching function for call to ‘std::vector<std::pair<std::__cxx11::basic_string<char>, «P»<«t», std::allocator<«t»> > > >::push_back(const «P»&)’\n/usr/include/c++/«n2»/bits/stl_«t».h:«n4»:«n1»: note:   no known conversion for argument «n1» from ‘«P»*’ to ‘std::unique_ptr<«P»>&&’\n_ZNSt6vectorI«a12»E«n1»push_backERKS«n1»_",
)
_template(
    "errors of TypeScript",
    "src/«p»(«n2»,«n2»): error TS2«n3»: Property '«c»' does not exist on type '{ «c»: string; «c»?: number | undefined; }'.\n  Type 'Promise<«P»[]>' is not assignable to type 'readonly «P»[] & { [key: string]: unknown }'.\nFound «n2» errors in «n1» files.\n  «n3»:«n2»  warning  '«c»' is assigned a value but never used  @typescript-eslint/no-unused-vars",
)
_template(
    "lint in short",
    '«p»:«n3»:«n2»: E501 line too long («n3» > 79 characters)\n«p»:«n2»: error: Argument 1 to "«s»" has incompatible type "str | None"; expected "int"  [arg-type]\n«p»:«n3»:«n1»: F401 [*] `«t».«s»` imported but unused\n«p»:«n2»:«n2»: C0116: Missing function or method docstring (missing-function-docstring)\n«p»:«n2»:«n1»: SC2086 (info): Double quote to prevent globbing and word splitting.',
)

# --- Stack traces ----------------------------------------------------------------------------------

_template(
    "traces of Python",
    "  File \"/usr/lib/python3.11/site-packages/«p»\", line «n3», in «s»\n    return self._«s»(*args, **kwargs)\n           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nTraceback (most recent call last):\n«t».exceptions.«P»Error: «ws5»\nDuring handling of the above exception, another exception occurred:\nKeyError: '«s»'",
)
_template(
    "traces of Java",
    '\tat org.springframework.«t».«P».«c»(«P».java:«n3») ~[spring-«t»-«v».jar!/:«v»]\n\tat java.base/jdk.internal.reflect.DirectMethodHandleAccessor.invoke(DirectMethodHandleAccessor.java:«n3»)\nCaused by: java.lang.NullPointerException: Cannot invoke "com.«w».«P».«c»()" because "this.«c»" is null\n\t... «n2» common frames omitted\n\tat com.«w».«P»$$Lambda$«n3»/0x«h16».accept(Unknown Source)',
)
_template(
    "traces of JavaScript",
    "    at async «P».«c» (file:///app/«p»:«n3»:«n2»)\n    at process.processTicksAndRejections (node:internal/process/task_queues:«n2»:5)\nTypeError: Cannot read properties of undefined (reading '«c»')\n    at Object.<anonymous> (C:\\Users\\«name»\\«P»\\«s».js:«n2»:«n2»)\n    at eval (webpack-internal:///./src/«p»:«n3»:«n2»)",
)
_template(
    "traces of Go",
    "goroutine «n3» [chan receive, «n2» minutes]:\n«t»/internal/«t».(*«P»).«P»(0xc000«h6», {0x«h6», 0x«h1»})\n\t/go/pkg/mod/github.com/«t»/«k»@v«v»/«s».go:«n3» +0x«h3»\npanic: runtime error: index out of range [«n1»] with length «n1»\ncreated by «t».(*«P»).«P».func«n1»\nexit status 2",
)
_template(
    "traces of Rust",
    "  «n2»: «t»::«s»::«P»<T>::«s»::{{closure}}\n             at /rustc/«h40»/library/core/src/«s».rs:«n3»:«n2»\n  «n2»:     0x«h12» - <«t»::«P» as core::ops::function::FnOnce<Args>>::call_once::h«h16»\nthread 'main' panicked at 'called `Result::unwrap()` on an `Err` value: Os { code: «n1», kind: NotFound, message: \"«ws3»\" }', src/main.rs:«n2»:«n2»",
)
_template(
    "traces of C#",
    "   at Microsoft.«P».«P».<«P»Async>d__«n2».MoveNext() in C:\\src\\«P»\\«P».cs:line «n3»\n--- End of stack trace from previous location ---\nUnhandled exception. System.InvalidOperationException: «ws5»\n   at «P».«P»`1.get_Item(String key)\n ---> System.Net.Http.HttpRequestException: «ws3» («host»:«n3»)",
)
_template(
    "traces of Ruby",
    "\tfrom /usr/local/bundle/gems/«k»-«v»/lib/«p»:«n3»:in `block in «s»'\n«p»:«n2»:in `«s»': undefined method `«s»' for nil:NilClass (NoMethodError)\n        «n2»: from bin/rails:«n1»:in `<main>'",
)
_template(
    "traces of PHP",
    "#«n1» /var/www/html/vendor/«t»/src/«P».php(«n3»): «P»\\«P»->«c»('«w»', Array, Object(Closure))\nPHP Fatal error:  Uncaught Error: Call to a member function «c»() on null in /var/www/«p»:«n3»\n#«n1» {main}",
)
_template(
    "traces of Elixir and Erlang",
    '    («t» «v») lib/«t»/«s».ex:«n2»: «P».«P».«s»/«n1»\n    (elixir «v») lib/enum.ex:«n3»: Enum."-map/2-lists^map/1-1-"/2\n** (FunctionClauseError) no function clause matching in «P».«s»/«n1»\n[{«t»,«s»,«n1»,[{file,"«s».erl"},{line,«n2»}]},{gen_server,try_dispatch,4,[{file,"gen_server.erl"}]}]\n#PID<0.«n3».0>',
)
_template(
    "traces of Swift and C",
    "«n1»   «P»    0x0000«h12» -[«P» «c»:«c»:] + «n3»\n«n2»  libsystem_pthread.dylib  0x00000001«h8» _pthread_start + 148\n./«t»(+0x«h4») [0x«h12»]\n[0x«h12»] «s»+0x«h2»/0x«h3» [«t»]\nERROR: AddressSanitizer: heap-use-after-free on address 0x«h12» at pc 0x«h12» bp 0x«h12» sp 0x«h12»",
)

# --- Code ------------------------------------------------------------------------------------------

KINDS.lines("minified JavaScript", "")(
    lambda draw: _filled(draw, draw.choice([
        "function «letter»(«letter»,«letter»){return «letter».«c»?«letter»(«letter».«c»):void 0}",
        "var «letter»=«letter»(«n4»),«letter»=«letter».n(«letter»);", "!function(){\"use strict\";",
        "«letter».exports=«letter».p+\"static/«h8».«t»\";", "if(!(«letter» instanceof «letter»))throw new TypeError(\"«w»\");",
        "«letter».prototype.«c»=function(«letter»){this.«letter»=«letter»,this.«c»&&this.«c»()},", "}();", "«n4»:(e,t,n)=>{n.d(t,{Z:()=>«letter»})},",
        "for(var «letter»=0;«letter»<«letter».length;«letter»++)«letter»[«letter»]=«letter»<<«n1»|«letter»>>>«n2»;",
    ]))
)  # fmt: skip
_template(
    "minified styles",
    '.«k»{margin:0 «n2»px;color:#«h6»}.«k»>a:hover::before{content:"\\f«h3»";-webkit-transform:translate(-50%,-50%)}@media(min-width:«n3»px){.«t»{display:flex}}\n#«k» .«t»:not(:last-child){padding:.«n2»rem «f2»em;background:rgba(«r255»,«r255»,«r255»,.«n1»)}\n.sm\\:«t»-«n1»{--tw-«t»:«n1»;font:«n3»/«f1» Arial,sans-serif!important}',
)
_template(
    "classes of tailwind",
    '<div className="flex items-center justify-between px-«n1» py-«n1» text-gray-«n1»00 hover:bg-«w»-«n1»00 dark:border-slate-«n1»00/«n2» md:grid-cols-«n1» lg:w-[«n2»rem]">\n  <span className="-mt-0.5 rounded-lg sm:text-sm/6">{«c».«c»}</span>',
)
_template(
    "minified JSON",
    '{"«letter»":«n1»,"«t»":[«n2»,«n2»,«n3»],"«s»":{"id":"«a8»","«t»":null,"ok":true}},\n[["«w»",«f3»],["«w»",-«n2»]],"«c»":"",',
)
_template(
    "JSON in JSON",
    r"{\"«s»\":\"«ws3»\",\"«t»\":[{\"id\":«n3»,\"«c»\":null}]}"
    + "\n"
    + r'"{\\\"«s»\\\":\\\"«w»\\\",\\\"«t»\\\":«n2»}\n"'
    + "\n"
    + r"\"content\":\"«ws4»\\n\\n\\t- «ws2»\\n\",",
)
_template(
    "JSON with deep indentation",
    '                            "«s»": {\n                                "«t»": [\n                                    «n2»,\n                                    "«w»"\n                                ],\n                            },\n                        }\n                    ],',
)


def _nested(draw: Random, depth: int) -> object:
    """Draw lists in lists of small numbers."""
    if depth == 0:
        return draw.choice([draw.randint(0, 99), "", None, {}, []])
    return [_nested(draw, draw.randint(0, depth - 1)) for _ in range(draw.randint(1, 5))]


KINDS.lines("brackets of JSON")(lambda draw: json.dumps(_nested(draw, 6), indent=2))
KINDS.lines("brackets of JSON in one line", "")(lambda draw: json.dumps(_nested(draw, 6)))
_template(
    "tool calls in XML",
    '<function_calls>\n<invoke name="«s»">\n<parameter name="«t»">«ws4»</parameter>\n</invoke>\n{"type":"tool_use","id":"toolu_«a24»","name":"«s»","input":{"«t»":"«p»"}},\n<tool_response>\n[{"role": "tool", "tool_call_id": "call_«a24»", "content": "«ws3»"}]',
)
_template(
    "regular expressions",
    r"""
^(?:[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9]+)*)@(?:«w»|\d{«n1»,«n2»})$
(?<«t»>\w+)\s*[:=]\s*(?P<«s»>"(?:[^"\\]|\\.)*"|\S+)
/\b(\d{1,3}\.){3}\d{1,3}\b/gi
s/\(«w»\)\+/\1 \U&/g; s|^/«t»|\/«w»|
[^\x00-\x7F]+|\p{L}\p{M}*|(?!.*«w»)(?=.*\d)[A-Za-z\d@$!%*?&]{8,}
^\s*(//|#).*$|^$
""",
)
_template(
    "dumps of SQL",
    "INSERT INTO `«s»` VALUES («n4»,'«name»','«d» «clock»',NULL,'«w»\\'s «w»',«f2»,0x«H16»),(«n4»,'','0000-00-00 00:00:00',NULL,'«ws3»',-«f2»,NULL);\n  `«s»` varchar(«n3») COLLATE utf8mb4_unicode_ci DEFAULT NULL,\nCOPY public.«s» (id, «s», «s») FROM stdin;\n«n5»\t«w»\t\\N\t«d»\tf\n/*!40000 ALTER TABLE `«s»` ENABLE KEYS */;",
)
_template(
    "queries of SQL",
    "SELECT «letter».«s», COUNT(DISTINCT «letter».«s») FILTER (WHERE «letter».«t» > «n2») OVER (PARTITION BY «s» ORDER BY «t» DESC)\n  LEFT JOIN LATERAL «s» «letter» ON («letter».«s» = «letter».id AND «letter».«t» IS NOT NULL)\nWHERE «s» IN ('«w»', '«w»') AND «t» BETWEEN DATE '«d»' AND now() - INTERVAL '«n2» days'\n         ->  Index Scan using «s»_idx on «s»  (cost=0.«n2»..«f2» rows=«n3» width=«n2») (actual time=«f3»..«f3» rows=«n3» loops=«n1»)\n               Index Cond: («s» = $«n1»)",
)
_template(
    "assembly of x86",
    "«h8»:\t«h2» «h2» «h2» «h2»          \tmov    %rsp,0x«h2»(%rbp)\n  40«h4»:\te8 «h2» «h2» ff ff       \tcall   40«h4» <«s»@plt>\n\tmovl\t$«n2», -«n2»(%rbp)\n\tlea rax, [rip + .L«n2»]\n.LBB«n1»_«n1»:\n        vfmadd231ps     ymm«n1», ymm«n2», ymmword ptr [rdi + 4*rax + «n2»]\n\t.cfi_def_cfa_offset «n2»",
)
_template(
    "assembly of ARM",
    "«h16»: «h8»     \tldr\tx«n1», [sp, #«n2»]\n    stp x29, x30, [sp, #-«n2»]!\n\tadrp\tx«n1», :got:«s»\n  bl _objc_msgSend$«c»\n    cmp r«n1», #0x«h2»\n    bne.w loc_«h4»\n\tb.hs\t«h6» <«s»+0x«h2»>",
)
_template(
    "WASM as text",
    '  (func $«s» (param $«letter» i32) (result i64)\n    (local.set $«letter» (i32.add (local.get $«letter») (i32.const «n3»)))\n    i32.load offset=«n2» align=4\n    (br_if $«t» (i32.eqz (local.get «n1»))))\n  (data (i32.const «n4») "\\«h2»\\«h2»«w»\\00")',
)
_template(
    "LLVM IR",
    '  %«n2» = getelementptr inbounds %struct.«t», ptr %«n2», i64 0, i32 «n1»\ndefine dso_local noundef i32 @_Z«n1»«s»v(ptr noundef %0) local_unnamed_addr #«n1» {\n  br i1 %«n2», label %«n2», label %«n2», !dbg !«n3»\n!«n3» = !DILocalVariable(name: "«s»", scope: !«n2», file: !1, line: «n2», type: !«n2»)\n  store i32 «n2», ptr %«n1», align 4, !tbaa !«n1»',
)
_template(
    "bytecode of Python and Java",
    "   «n2,-3»           «n2» LOAD_GLOBAL              «n1» («s»)\n              «n3» POP_JUMP_FORWARD_IF_FALSE    «n2» (to «n3»)\n              «n2» CALL                     «n1»\n       «n2»: invokevirtual #«n2»                 // Method java/lang/«P».«c»:(Ljava/lang/String;I)V\n      «n2»: aload_«n1»\n      LineNumberTable:\n        line «n2»: «n1»",
)
_template(
    "brainfuck",
    "++++++++[>++++[>++>+++>+++>+<<<<-]>+>+>->>+[<]<-]>>.\n>---.+++++++..+++.>>.<-.<.+++.------.--------.>>+.>++.\n,[>,]<[.<]\n[->+>+<<]>>[-<<+>>]<[[-]>[-]<]",
)
_template(
    "APL",
    "life←{⊃1 ⍵∨.∧3 4=+/,¯1 0 1∘.⊖¯1 0 1∘.⌽⊂⍵}\n«letter»←⍳«n2» ⋄ (~«letter»∊«letter»∘.×«letter»)/«letter»\n{⍵[⍋⍵]}¨↓⍉↑«letter» «letter»\n+/÷≢ ⍝ «w»\n⎕IO←0 ◇ ⍴∘⍉⌿⍨1≠⍎⍕⍺",
)
_template(
    "K and J",
    "{x@<x}'!«n2» / +/'x*/:y\nmean=: +/ % #\n(#~ 1 = p:) i. «n2»\n+/ .* %. «letter»  NB. «w»\nselect «w» by «letter»:`date$«t» from «s» where «t»>«f1»\n&/|\\~^:_",
)
_template(
    "Haskell",
    "«s» :: (Monad m, Show a) => (a -> m b) -> [a] -> m [b]\n«s» xs = foldr (\\x acc -> x : acc) [] <$> mapM «c» xs\n  where «letter»' = «letter» >>= \\case { Just y -> pure y; Nothing -> «c» $ «letter» . «t» }\ninstance Functor («P» e) where fmap f (Right a) = Right (f a)\nimport qualified Data.Map.Strict as M\n{-# LANGUAGE LambdaCase, TupleSections #-}\nnewtype «P» s a = «P» { run«P» :: s -> (a, s) } deriving stock (Eq, Ord)",
)
_template(
    "Lisp",
    "(defun «k» (x &optional («letter» «n1»))\n  (cond ((null x) nil) ((eq (car x) '«w») `(,@«letter» . ,(cdr x)))\n    (t (mapcar #'(lambda («letter») (+ «letter» «n2»)) (cddr x)))))\n(let* ((«k» (make-hash-table :test #'equal)) («letter» 0))\n(define-syntax «k» (syntax-rules () ((_ e ...) (begin e ...))))\n(->> coll (map #(update % :«t» inc)) (filter (comp even? :«k»)) (into #{}))\n(ns «t».«t» (:require [clojure.string :as str] [«t».«k» :refer [«k»]]))",
)
_template(
    "COBOL",
    "000«n3»     MOVE WS-«T» TO WS-«T»-OUT.\n           05  WS-«T»-«T»        PIC S9(«n1»)V99 COMP-3 VALUE ZERO.\n       PROCEDURE DIVISION.\n           PERFORM «n4»-«T»-PARA THRU «n4»-EXIT UNTIL WS-EOF = 'Y'\n           IF «T»-CODE NOT = SPACES AND LOW-VALUES\n           END-IF.\n      *****************************************************************",
)
_template(
    "JCL",
    "//«A7» JOB («A4»),'«name»',CLASS=A,MSGCLASS=X,NOTIFY=&SYSUID\n//STEP«n3»  EXEC PGM=IKJEFT01,REGION=0M,COND=(4,LT)\n//SYSOUT   DD SYSOUT=*,DCB=(RECFM=FB,LRECL=«n3»,BLKSIZE=0)\n//*-------------------------------------------------------------------*\nIEF«n3»I «A8» «A6» - STEP WAS EXECUTED - COND CODE 00«n2»",
)
_template(
    "Perl in few characters",
    "perl -lne 'print for grep{!$s{$_}++}/\\b\\w+\\b/g' «p»\n$_=join$/,map{s/(.)/$1^$«letter»/gre}@{$h{$_}}{qw(«w» «w»)};\n@F=sort{$$a{n}<=>$$b{n}||$a cmp$b}values%$«letter»;print\"@F[0..$#F]\\n\"\nwhile(<>){chomp;$«letter»{$1}+=$2 if/^(\\S+)\\s+(\\d+)$/}\nmy ($«s», %«letter») = @_; local $| = 1; $«letter» =~ tr/a-zA-Z//cd;",
)
_template(
    "one-liners of shells",
    "find . -name '*.«t»' -mtime +«n2» -print0 | xargs -0 -P«n1» grep -lE '«w»|«w»' | sort | uniq -c | sort -rn | head -n «n2»\nfor f in *.{«t»,«w»}; do mv -- \"$f\" \"${f%.«t»}.«w»\"; done 2>/dev/null\nawk -F'\\t' 'NR>1{a[$«n1»]+=$«n1»}END{for(k in a)printf \"%s\\t%.2f\\n\",k,a[k]/NR}' «p»\ncurl -sSfL -H \"Authorization: Bearer $«T»\" https://«host»/«p» | jq -r '.«t»[] | select(.«s» > «n2») | [.id, .«t»] | @tsv'\nssh -NfL «n4»:localhost:«n4» «name»@«host» && tar czf - «p» | ssh «host» 'cat > /tmp/«t».tgz'\n[[ -z \"${«T»:-}\" ]] && { echo >&2 \"«ws3»\"; exit «n1»; }\nsed -i.bak -e '/^#/d;s/[[:space:]]*$//' -e \"«n2»,«n3»p\" $(git ls-files -m)",
)
_template(
    "sessions of shells",
    '«name»@«k»:~/«p»$ git commit -am "«ws4»" && git push\n(.venv) ➜  «t» git:(«k») ✗ make «t»\n┌──(root㉿kali)-[~/«t»]\n└─# nc -lvnp «n4»\nPS C:\\Users\\«name»> Get-ChildItem -Recurse | Where-Object { $_.Length -gt «n3»MB }\n[«n2»] + «n5» suspended  «t»\n>>> «s».«s»(«n2»)\nbash: «k»: command not found\nroot@«h12»:/# ',
)
_template(
    "Dockerfiles",
    'FROM --platform=$BUILDPLATFORM «t»:«v»-slim-bookworm AS «w»\nRUN --mount=type=cache,target=/root/.cache apt-get update && apt-get install -y --no-install-recommends \\\n        «k» «t»=«v»-* \\\n    && rm -rf /var/lib/apt/lists/*\nCOPY --from=«w» --chown=«n4»:«n4» /«p» ./\nENV «S»="«w»" \\\nHEALTHCHECK --interval=«n2»s CMD ["curl", "-f", "http://localhost:«n4»/«t»"]\nEXPOSE «n4»/tcp',
)
_template(
    "YAML of Kubernetes",
    '      - name: «k»\n        image: «host»/«t»/«k»:«v»\n        resources: {limits: {cpu: «n3»m, memory: «n2»Gi}}\n          - "--«k»=$(«T»)"\n    app.kubernetes.io/name: «k»\n        valueFrom:\n          secretKeyRef: &«w» {name: «k», key: «s»}\n---\napiVersion: apps/v«n1»\n        - {«t»: *«w», <<: *«w»}\n  description: >-\n    {{- if .Values.«c».enabled }}\n    {{ include "«k».labels" . | nindent «n1» }}',
)
_template(
    "TOML and INI",
    '[tool.«t».«k»]\n«k» = ["«pack» >=«v»,<«n1»", "«pack»[«t»]~=«v»"]\n«s» = { version = "^«v»", features = ["«t»"], optional = true }\n; «ws4»\n«S» = /«p»\n[[package]]\n"«k».«t»" = «d»T«clock»Z\n«t».«c»=«n3»\n# «k» = yes\n[HKEY_LOCAL_MACHINE\\SOFTWARE\\«P»\\«P»]\n"«P»"=dword:«h8»\n"«P»"=hex(7):«h2»,00,«h2»,00,«h2»,00,\\',
)
_template(
    "protobuf",
    'message «P» {\n  repeated «P».«P» «s» = «n2» [(«t».«s») = true, deprecated = true];\n«s» { «s»: "«w»" «t»: «n3» [type.googleapis.com/«t».«P»] { id: 0x«h4» } }\n  map<string, google.protobuf.Any> «s» = «n1»;\n    rpc «P»(stream «P»Request) returns («P»Response) {}\n  reserved «n1», «n2» to max;\n      «s»: TYPE_«T»',
)
_template(
    "GraphQL",
    'query «P»($«c»: ID!, $first: Int = «n2») @cached(ttl: «n2») {\n  ... on «P» { id «c» edges { node { __typename «c»(first: $first) { totalCount } } } }\n  «c»: [«P»!]! @deprecated(reason: "«ws3»")\ninput «P»Input { «c»: String = "", «c»: [Int!] }\nfragment «P»Fields on «P» { «c» «c» }\n}',
)
_template(
    "Forth and PostScript",
    ": «k» ( n1 n2 -- n3 ) swap dup * + . cr ;\n«n2» 0 DO I «n1» MOD 0= IF LEAVE THEN LOOP\n/«w» { «n2» «n3» moveto («ws2») show } bind def\n«n3».«n2» «n3».«n2» lineto 0.«n1» setgray stroke\n<< /Type /Page /Parent «n1» 0 R /MediaBox [0 0 612 792] /Resources «n2» 0 R >>\nBT /F«n1» «n2» Tf «f2» «f2» Td [(«w»)«n2»(«letter»)-«n3»(«w»)] TJ ET\n0000«n6» 00000 n ",
)
_template(
    "Fortran and Ada",
    "      DO «n2» I = 1, N\n  REAL(KIND=8), DIMENSION(:,:), ALLOCATABLE :: «s»\n   «n2» A(I,J) = A(I,J) + «f2»D0*B(I-«n1»,J)\n!$OMP PARALLEL DO PRIVATE(«letter») REDUCTION(+:«t»)\n   procedure «P» (Self : in out «P»_Type; «P» : access constant Integer := null) is\n      pragma Assert («P»'Length > «n1»);\n   end loop «P»;\nC     «ws4»\n      CALL DGEMM('N','T',M,N,K,1.0D0,A,LDA,B,LDB,0.0D0,C,LDC)",
)
_template(
    "Verilog and VHDL",
    "  assign «s»[«n2»:0] = {«n1»'b«b4», «t»[«n1»] ^ ~«t»} & «n2»'hFF«H2»;\nalways @(posedge clk or negedge rst_n) begin\n    if (!rst_n) «s» <= #1 «n2»'d0; else «s» <= «s» + 1'b1;\n  signal «s» : std_logic_vector(«n2» downto 0) := (others => '0');\n    wait until rising_edge(clk) and «s» = x\"«H4»\";\n#«n5»\nb«b16» «letter»%\n$var wire «n2» ! «s» [«n2»:0] $end",
)
_template(
    "R and Julia",
    '«s» <- df %>% group_by(«s») %>% summarise(n = n(), m = mean(«t», na.rm = TRUE), .groups = "drop")\nlm(«t» ~ poly(«t», «n1») * «s», data = «s»[«s»$«t» > «n2», ])\nfunction «s»(x::AbstractVector{T}, ::Val{N}) where {T<:Real, N}\n    @views «letter»[:, «n1»:end] .= «letter»\' * «letter» .+ «f1»im |> collect\nusing LinearAlgebra: ⋅, ×; α, β̂ = √2, x -> x^2 ∈ 1:∞\nggplot(«s», aes(x = «t», y = «t»)) + geom_point(alpha = 0.«n1») + theme_bw()',
)
_template(
    "MATLAB and Mathematica",
    "[«letter», ~] = cellfun(@(x) x.^2 .* «t»(:,end), «letter»', 'UniformOutput', false);\nfprintf('%d: %6.2f\\n', «n2», «f2»); % «ws3»\nPlot[Evaluate[Table[Sin[n x]/n, {n, 1, «n1»}]], {x, 0, 2 Pi}, PlotRange -> All]\nFullSimplify[«letter»[t] /. DSolve[{«letter»''[t] + k «letter»[t] == 0, «letter»[0] == «n1»}, «letter», t][[1]]]\n#1^2 + #2 & @@@ Partition[Range[«n2»], 2]",
)
_template(
    "functions of ML",
    "let rec «s» ?(«t» = «n1») = function | [] -> None | x :: _ when x > «n1» -> Some (x, `«P») | _ :: tl -> «s» tl\n  |> List.fold_left (fun acc («letter», _) -> acc +. float «letter») 0.0\nmodule «P» : sig type 'a t val «s» : 'a t -> ('a, [> `Msg of string]) result end\n  def «c»[F[_]: Monad](using ev: «P»[F]): F[Either[«P», Unit]] = for { «letter» <- «c» } yield ()\n  defp «s»(%{«t»: «letter»} = conn, [head | tail]) when is_binary(«letter»), do: conn |> put_in([:«t», \"«w»\"], ~w(a b)a)\nuse {«t»: «letter», ..}: &'a mut dyn Fn(&str) -> Option<Box<«P»<'_, T>>>,",
)
_template(
    "programs of Rust and Zig",
    "    let «s»: Vec<_> = «s».iter().filter_map(|&(ref k, v)| k.parse::<u«n2»>().ok().map(|n| n + v)).collect();\n#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]\nimpl<'a, T: ?Sized + AsRef<[u8]>> From<&'a T> for «P»<'a> {\n        Err(e) => return Err(anyhow!(\"«ws2» {e:?}\")),\nconst «s» = try allocator.alloc(u8, «n3»); defer allocator.free(«s»);\n    pub fn «c»(self: *Self, comptime T: type) !?*const T {\n    .«s» = @intCast(«s»[0..:0].len), // «ws2»",
)
_template(
    "Kotlin and Swift",
    "    suspend fun «c»(«c»: List<«P»?>): Flow<«P»> = flow { «c».forEachIndexed { i, it -> emit(it!!.copy(«t» = i)) } }\n    guard let «c» = try? JSONDecoder().decode([«P»].self, from: data) else { return .failure(.«c») }\n    @Published private(set) var «c»: [String: «P»] = [:]\n        .onChange(of: «c») { _, new in withAnimation(.spring(response: 0.«n1»)) { «c»?.«c» = new } }\nval «c» by lazy { mutableStateOf<«P»>(«P».«P») }\n#if canImport(UIKit) && !os(watchOS)",
)
_template(
    "PHP and Ruby",
    "    public function «c»(?«P» $«c» = null, string ...$«c»): ?array { return $this->«c»[$«c»->id] ?? []; }\n<?php foreach ($«s» as $k => &$v): ?><li><?= htmlspecialchars($v['«t»']) ?></li><?php endforeach; ?>\n  scope :«s», -> { where(«s»: «n1»..).order(«t»: :desc).limit(«n2») }\n  expect { «s».«s»! }.to change(«P», :count).by(«n1»)\n    @«s» ||= %w[«w» «w»].map(&:to_sym).each_with_object({}) { |k, h| h[k] = \"#{k}_«n1»\" }\nuse App\\Models\\«P»\\{«P», «P» as «P»Model};",
)
_template(
    "components of React",
    'export const «P»: React.FC<«P»Props> = ({ «c», on«P» = () => {}, ...rest }) => {\n  const [«c», set«P»] = useState<Record<string, «P»[]>>({});\n      {«c»?.map((«letter», i) => <«P» key={`${«letter».id}-${i}`} {...rest} onClick={() => on«P»(«letter»)} />)}\n  useEffect(() => { void «c»(); return () => clearTimeout(«c»); }, [«c»]);\n    </«P».«P»>\n  <template v-if="«c» && !«c»" #«t»="{ item }"><«k» :«k»="«c»" @update:model-value="«c» = $event" /></template>',
)
_template(
    "makefiles and cmake",
    '$(BUILD)/%.o: $(SRC)/%.c $(wildcard $(INC)/*.h) | $(BUILD)\n\t@$(CC) $(CFLAGS) -MMD -MP -c -o $@ $< $(if $(V),,> /dev/null)\n«T» ?= $(shell git describe --tags --always --dirty)\n.PHONY: all «w» «k»\ntarget_link_libraries(${PROJECT_NAME}_«s» PRIVATE $<$<CONFIG:Debug>:«P»::«t»> ${«T»_LIBRARIES})\nset(CMAKE_«T»_FLAGS "-O«n1» -march=native" CACHE STRING "" FORCE)\nifneq (,$(findstring «w»,$(«T»)))',
)
_template(
    "nix and terraform",
    '  buildInputs = with pkgs; [ «t» «k» (python3.withPackages (ps: [ ps.«t» ])) ] ++ lib.optionals stdenv.isDarwin [ «t» ];\n      sha256 = "sha256-«a43»=";\n{ config, lib, ... }: let inherit (lib) mkIf; in {\n  for_each = { for k, v in var.«s» : k => v if v.enabled }\n  policy = jsonencode({ Version = "2012-10-17", Statement = [{ Effect = "Allow", Action = ["s3:«P»*"], Resource = "*" }] })\n    value = "${aws_«s».«s»[count.index].arn}/*"\n/nix/store/«a32»-«k»-«v»',
)
_template(
    "SPARQL and Turtle",
    'PREFIX «t»: <http://«host»/ns/«w»#>\n«t»:«P» a owl:Class ; rdfs:label "«w»"@en , "«w»"^^xsd:string ; skos:broader [ «t»:«c» «n1» ] .\nOPTIONAL { ?«letter» wdt:P«n3»/wdt:P«n2»* wd:Q«n5» . FILTER(LANG(?«letter») = "de") }\n<http://«host»/«w»/«n5»> <http://purl.org/dc/terms/«w»> "«ws3»" .\nMATCH («letter»:«P» {«c»: $«t»})-[:«T»*1..«n1»]->(«letter») WHERE NOT («letter»)--() RETURN «letter».«c», collect(«letter»)[..«n1»]',
)
_template(
    "formulas of spreadsheets",
    '=IFERROR(VLOOKUP($A«n2»,\'«W» 20«n2»\'!$B$«n1»:$Z$«n3»,«n1»,FALSE),"")\n=SUMPRODUCT((«LETTER»«n1»:«LETTER»«n3»="«w»")*(«LETTER»«n1»:«LETTER»«n3»>«n2»))\n=LET(x,FILTER(Table1[«W»],Table1[«t»]<>0),TEXTJOIN(", ",TRUE,SORT(x,,-1)))\n«LETTER»«n2»: =\'[«W».xlsx]Sheet«n1»\'!R[-«n1»]C[«n1»]\n=INDEX(«LETTER»:«LETTER»,MATCH(1,(«LETTER»«n1»=«LETTER»:«LETTER»)*1,0))&CHAR(10)',
)
_template(
    "diagrams as text",
    '    «LETTER»[«ws2»] -->|«w»| «LETTER»{«W»?}\n    «P»->>+«P»: «c»(«w»)\n  «s» -> «s» [label="«w»", style=dashed, color="#«h6»"];\n@startuml\nclass «P» <<entity>> {\n  +«c»: «P»[0..*]\n«P» "1" *-- "0..n" «P» : «w»\n    section «W»\n    «ws2» :done, «s», «d», «n2»d\nstateDiagram-v2\n    [*] --> «P»\n  subgraph cluster_«n1» { rank=same; «t»; «t» }',
)
_template(
    "tests in Gherkin",
    '  Scenario Outline: «ws4»\n    Given a user "<«t»>" with «n2» «w»\n    When they POST "/«p»" with:\n      | «t» | «w» | «n3» |\n    Then the response status should be «status»\n    And «ws5»\n  @«t» @«k»\n    Examples:',
)
_template(
    "messages of gettext",
    '#: «p»:«n3» «p»:«n3»\n#, python-format, fuzzy\nmsgid "«ws4» %(«s»)s"\nmsgstr[«n1»] "«ws4» %(«s»)s\\n"\nmsgctxt "«w»"\nmsgid_plural "%d «w»"\n"Plural-Forms: nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : 2);\\n"',
)
_template(
    "references of BibTeX",
    '@article{«name»«n4»«w»,\n  author    = {«name», «LETTER». and {\\"O}zt{\\"u}rk, «LETTER».~«LETTER».},\n  title     = {{«W»} «ws6»},\n  doi       = {10.«n4»/«t».«n4».«n7»},\n  pages     = {«n3»--«n3»},\nTY  - JOUR\nAU  - «name», «LETTER».\n}',
)
_template(
    "LaTeX",
    r"""
\begin{equation}\label{eq:«w»}
\frac{\partial^2 u}{\partial t^2} = c^2 \nabla^2 u + \int_{-\infty}^{\infty} \hat{f}(\xi)\, e^{2\pi i \xi x}\,d\xi
\usepackage[utf8]{inputenc} \newcommand{\«t»}[«n1»]{\ensuremath{\mathbb{#1}}}
  \item[\textbf{«w»}] «ws5»~\cite{«w»}, see \S\ref{sec:«w»}.
\sum_{i=0}^{n-1} \binom{n}{i} x_{«letter»}^{«n1»} \le \left\| A_{«letter»«letter»} \right\|_2 \quad \forall \epsilon > 0
$\alpha_{«n1»} \otimes \beta \mapsto \mathcal{O}(n \log n)$ «ws4»
\begin{pmatrix} «n1» & «n1» \\ \vdots & \ddots \end{pmatrix}^{\top}
\draw[->,thick] («f1»,«f1») -- ++(«n2»:«f1»cm) node[midway,above] {$\theta$};
""",
)
_template(
    "mathematics in Unicode",
    "∀x ∈ ℝ: ∃y ∈ ℂ, |x − y| ≤ ε ⇒ f(x) ≈ f(y)\n∑ᵢ₌₀ⁿ xᵢ² = ½·n(n+1) ∴ α ⊗ β ↦ γ\n∫₀^∞ e^(−λt) dt = 1⁄λ, ∇·E = ρ⁄ε₀\n¬(p ∧ q) ⟺ ¬p ∨ ¬q   ⊢ Γ ⊨ φ\nA ∪ (B ∩ C) ⊆ 𝒫(X) ∖ ∅\n√«n2» ≠ ∛«n2» ± «n1»×10⁻⁶, ∂²u/∂x² ⋅ ⟨ψ|Ĥ|ψ⟩",
)
_template(
    "proofs of Lean and Coq",
    "theorem «s» {α : Type*} [CommRing α] (x y : α) : (x + y)^2 = x^2 + 2*x*y + y^2 := by ring_nf\n  rcases h with ⟨«letter», hx, rfl⟩ | ⟨-, hy⟩ <;> simp [«s», *] at *\n  exact ⟨fun h => by omega, λ ⟨a, b⟩ ↦ le_of_lt ‹_›⟩\nLemma «s» : forall n m : nat, n <= m -> exists k, m = n + k. Proof. intros n m H; induction H as [|? ? IH]; eauto. Qed.\n⊢ ∃ δ > 0, ∀ x, |x - a| < δ → |f x - f a| < ε\ncase succ\nn✝ : ℕ",
)

# --- Formats of data -------------------------------------------------------------------------------

_template(
    "chess in PGN",
    '«n2». e4 e5 «n1». Nf3 Nc6 «n1». Bb5 a6 «n1». O-O Nf6 {[%clk 0:0«n1»:«n2»]}\n«n2». Qxd5+ Kh8 «n2». Rfe1 $«n1» (Bxh7 hxg4) 1/2-1/2\n[Event "«W» Open 20«n2»"]\n[WhiteElo "«n4»"]\n«n2». cxd4 bxc3 «n2». Rab8!? Ng5 «n2». f4 exf3# 0-1',
)
_template(
    "chess in FEN",
    "r1bqkb1r/pp«n1»ppppp/2n2n2/8/3P4/5N2/PPP1PPPP/RNBQKB1R w KQkq - «n1» «n1»\n8/5k2/«n1»p4p1/P1P5/8/«n1»K3/6R1/8 b - - 0 «n2»\ninfo depth «n2» seldepth «n2» score cp «n2» nodes «n7» nps «n6» pv e2e4 c7c5 g1f3 d7d6 d2d4 c5d4\n♜♞♝♛♚♝♞♜\n♙ . . ♟ . . ♘ .",
)
_template(
    "music in ABC",
    'X:«n2»\nT:«W» «w»\n|:G2 GB A2 AB|d3 B A2 G2|(3ABc BA GABd|e2 dB A4:|\nK:Dmaj\n"Em"EBBA B2 EB|"D"B2 AB dBAG|^F/2G/2 z2 [CEG]|\nc\'4( d8 e) <c e g>2. \\times 2/3 { c8 d e } | bes,4\\f r2 \\bar "|."',
)
_template(
    "tablatures",
    "e|-----«n1»-------«n1»---|----------------|\nB|---«n1»---«n1»---«n1»-----|--«n2»h«n2»p«n2»-------|\nG|-0-------0-------|-----------/«n1»---|\n  Am   F     C/G   G7sus4   D#m7b5\nD|--x--x--«n1»~~-----| x4",
)
_template(
    "DNA",
    "".join(
        f"{line}\n"
        for line in (
            "ACGTTGCATGTCGCATGATGCATGAGAGCT«n1»",
            ">seq«n3» Homo sapiens chromosome «n2»",
            "GATTACAGGCCATTTAACGGTATCCGATGCAAGCTTACGATCGGCTAAATCG",
            "TTAGGGTTAGGGTTAGGGCCCTAACCCTAACCCTAANNNNNNNNATAT",
            "@A00«n3»:«n2»:«A9»:«n1»:«n4»:«n4»:«n4» 1:N:0:ACTGAT\nCAGTNGGCTA\n+\nFFFF:FFF#,F",
        )
    ).rstrip("\n"),
)
KINDS.lines("random DNA")(lambda draw: "".join(draw.choices("ACGT", k=60)))
KINDS.lines("RNA in small letters")(lambda draw: "".join(draw.choices("acgu", k=10)) + " ")
KINDS.lines("proteins")(lambda draw: "".join(draw.choices("ACDEFGHIKLMNPQRSTVWY", k=70)))
KINDS.lines("quality of reads")(lambda draw: "".join(chr(draw.randint(33, 74)) for _ in range(75)))
_template(
    "tables of genetics",
    "chr«n2»\t«n8»\trs«n7»\tA\tG,T\t«n2».«n1»\tPASS\tDP=«n2»;AF=0.«n3»;ANN=G|missense_variant|MODERATE|«A4»«n1»|ENSG00000«n6»\tGT:AD:DP\t0/1:«n2»,«n2»:«n2»\n«s».«n4»\t«n2»\tchr«n1»\t«n7»\t60\t76M\t=\t«n7»\t-«n3»\tGATTACA\tAAFFFKKK\tNM:i:0\nATOM   «n4»  CA  GLY «LETTER» «n3»      «g3»  «g3»  «g3»  1.00 «n2».«n2»           C\nNC_0000«n2».«n2»:g.«n6»del p.Arg«n3»Ter",
)
_template(
    "SMILES",
    "CC(=O)Oc1ccccc1C(=O)O\nC[C@H](N)C(=O)N[C@@H](Cc2ccc(O)cc2)C(O)=O\nCN1CCC[C@H]1c2cccnc2 «n2».«n1»\nInChI=1S/C«n2»H«n2»N«n1»O«n1»/c1-3(2)4/h3H,1-2H3,(H,4,5)/t«n1»-/m0/s1\nO=C(NC1CCN(CC1)c1ncnc(Cl)n1)c1cc(F)cc(Br)c1 |r|\n[Na+].[O-]S(=O)(=O)C(F)(F)F.[nH]1cc2",
)
_template(
    "chemistry",
    "2 KMnO₄ + 16 HCl → 2 KCl + 2 MnCl₂ + 5 Cl₂↑ + 8 H₂O\nNH4+ + OH- <=> NH3 + H2O   Kb = «f1»e-5\n(2R,3S)-2-amino-3-hydroxy-N-methyl«w»amide; m.p. «n3»–«n3» °C\n[Fe(CN)₆]³⁻, ΔH° = −«f1» kJ·mol⁻¹\n1H NMR (400 MHz, CDCl3) δ «f2» (d, J = «f1» Hz, 2H), «f2»–«f2» (m, 1H)",
)
_template(
    "EDI of X12",
    "ST*850*«n4»~\nN1*ST*«name» «W»*92*«n9»~\nPO1*«n1»*«n2»*EA*«f2»**UP*«n12»*VN*«A7»~\nISA*00*          *00*          *ZZ*«A9,15»*01*«n9,15»*«n6»*«n4»*U*00401*«n9»*0*P*>~\nDTM*002*«dn»~ CTT*«n1»~",
)
_template(
    "EDIFACT and SWIFT",
    "UNH+«n4»+ORDERS:D:96A:UN:EAN008'\nNAD+BY+«n13»::9++«name»+«W» «n2»+«W»++«n5»+DE'\nQTY+21:«n2»'PRI+AAA:«f2»:CT'\n:32A:«n6»EUR«n5»,«n2»\n{1:F01«A12»«n10»}{2:I103«A12»N}{4:\n8=FIX.4.4|9=«n3»|35=D|49=«A6»|56=«A6»|34=«n3»|52=«dn»-«ms»|55=«A4»|54=1|38=«n3»|40=2|44=«f2»|10=«n3»|\nMSH|^~\\&|«T»|«A4»|||20«n10»||ADT^A01|«n5»|P|2.5\nPID|1||«n6»^^^«A4»^MR||«name»^«W»^^^||19«n6»|F",
)
_template(
    "positions and weather",
    "$GPGGA,«n6».00,«n4».«n5»,N,«n5».«n5»,W,1,0«n1»,«f1»,«f1»,M,«f1»,M,,*«H2»\n!AIVDM,1,1,,A,«a28»,0*«H2»\nMETAR KJFK «n6»Z «n3»«n2»G«n2»KT 10SM FEW0«n2» BKN«n3» «n2»/M0«n1» A«n4» RMK AO2 SLP«n3»\nTAF EDDF «n6»Z «n4»/«n4» VRB03KT CAVOK BECMG\n«n2»°«n2»'«n2».«n1»\"N «n3»°«n2»'«n2»\"E",
)
_template(
    "vCard and iCal",
    "BEGIN:VCARD\nN:«name»;«W»;;Dr.;\nTEL;TYPE=WORK,VOICE:+«n11»\nEMAIL;PREF=1:«w».«w»@«host»\nDTSTART;TZID=Europe/Berlin:«dn»T«cn»\nRRULE:FREQ=WEEKLY;BYDAY=MO,WE;UNTIL=«dn»T235959Z\nATTENDEE;CN=«name»;PARTSTAT=NEEDS-ACTION;RSVP=TRUE:mailto:«w»@«host»\nUID:«uuid»@«host»\nEND:VEVENT\nADR;TYPE=HOME:;;«n2» «W» St.;«W»;;«n5»;",
)
_template(
    "mail with its headers",
    'Received: from «host» («host» [«ip»]) by mx.«host» with ESMTPS id «a14» for <«w»@«host»>; «day», «r28» «mon» 20«n2» «clock» +0200 (CEST)\nMessage-ID: <«a20».«n6»@«host»>\nSubject: =?UTF-8?B?«a36»=?=\nContent-Type: multipart/alternative; boundary="----=_Part_«n5»_«n9».«n13»"\nDKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=«host»; bh=«a43»=;\n> > «ws8»\n> «ws6»\nOn «day», «mon» «r28», 20«n2» at «r12»:«n2» AM «name» <«w»@«host»> wrote:\n--=20\n«name»',
)
_template(
    "paths of SVG",
    '<path d="M«f2» «f2»c-«f2»-«f2» «f2».«n2»-«f1» «f2»-«f2»z" fill="#«h6»"/>\nM«n2».«n3»,«n2».«n3»C«n2».«n3»,«n2».«n3» «n2».«n3»,«n2».«n3» «n2»,«n2»L«n1»,«n1»Z\nm«f1»-«f1»h-«f1»v«f2»l.«n3»-.«n2» 1.«n2».«n2»s-.«n2»-1.«n1»-«f1».«n2»a2 2 0 01«f1».«n1»',
)
_template(
    "G-code",
    "G1 X«f3» Y«f3» E«f5»\nN«n4» G02 X«g4» Y«g4» I-«f4» J«f4» F«n3».\nG0 F«n4» X«f3» Y«f3» Z«f2»\nM104 S«n3» T«n1» ; «ws2»\nG41D«n1»\nN«n3»G90G54S«n4»M3",
)
_template(
    "meshes and geometry",
    "v «g6» «g6» «g6»\nf «n3»/«n3»/«n2» «n3»/«n3»/«n2» «n3»/«n3»/«n2»\n  facet normal «g6» «g6» «g6»\n    vertex «e6» «e6» «e6»\nPOLYGON ((«g4» «g4», «g4» «g4», «g4» «g4»))\n#«n3» = CARTESIAN_POINT ( 'NONE',  ( «g10», «g10», 0.000000000000000000 ) ) ;\n[[«g6»,«g6»],[«g6»,«g6»]],\n0, LINE, 8, «W», 62, «n1», 10, «f4», 20, «f4»,",
)
_template(
    "pixels",
    '«r255» «r255» «r255» «r255» «r255» «r255» «r255» «r255»\n#«h6» #«H6» rgb(«r255», «r255», «r255») hsl(«n3»deg «n2»% «n2»%)\n"  c None", ". c #«H6»",\n«b32»\n.X..XX..X.XX....XX..X.\n0x«H2», 0x«H2», 0x«H2», 0x«H2»,',
)
_template(
    "subtitles",
    "«n3»\n00:«n2»:«n2»,«n3» --> 00:«n2»:«n2»,«n3»\n<i>«ws6»</i>\n- «W» «ws3»?\n- «W»!\n\n00:«n2».«n3» --> 00:«n2».«n3» align:start position:0%\n«w»<00:00:«n2».«n3»><c> «w»</c><00:00:«n2».«n3»><c> «w»</c>\n[MUSIC PLAYING]\n>> «ws5»",
)
_template(
    "chats",
    "[«r28».«r12».20«n2», «clock»] «name»: «ws6»\n«n1»/«n1»/«n2», «n2»:«n2» - «name»: <Media omitted>\n<«w»_> @«name»: lol «ws3» :D\n«clock» -!- «w» [~«t»@«host»] has joined #«t»\n**«name»** — Today at «r12»:«n2» PM\n«ws3»??? 😂😂\nUser: «ws7»\nAssistant: «ws9»\nokay... brb, gtg, thx!! <3",
)
_template(
    "posts with tags",
    "#«P» #«t»«n4» @«w»_«n2» «ws4» https://t.co/«a10»\nRT @«w»«w»: «ws5»… #«T»\n🔥 «W» «ws2»!!! 👉 link in bio 👈 #«w»life #«t»\nr/«P» · u/«w»«n3» · «n1»h ago · ▲ «n2».«n1»k ▼",
)
_template(
    "addresses of the web",
    "https://www.«host»/«p»?utm_source=«w»&utm_medium=«t»&fbclid=«a40»#«k»\nhttp://«ip»:«n4»/api/v«n1»/«s»/«n6»?«s»=«w»%20«w»&page=«n1»&sort[]=-«t»\ns3://«k»/«p»\nhttps://github.com/«t»/«k»/blob/«h40»/«p»#L«n3»-L«n3»\npostgresql+psycopg2://«name»:«a12»@«host»:5432/«s»?sslmode=require\nmailto:«w».«w»@«host»\nhttps://www.youtube.com/watch?v=«a11»&t=«n3»s\nmagnet:?xt=urn:btih:«h40»&dn=«P».«T»",
)
_template(
    "paths of Windows",
    "C:\\Users\\«name»\\AppData\\Local\\Programs\\«P»\\«s».exe\n\\\\«host»\\share$\\«W» 20«n2»\\«P».xlsx\nC:\\\\Program Files (x86)\\\\«P»\\\\«t».dll\n%APPDATA%\\«P»\\«h8»\nD:\\a\\«n1»\\s\\«P»\\bin\\Debug\\net«n1».0\\«P».pdb",
)
_template(
    "paths of Unix",
    "/«p»\n./«p»\n~/.config/«t»/«s».d/«n2»-«k».conf\n/proc/«n5»/fd/«n1»\n../../«p»:«n3»\n/usr/lib/x86_64-linux-gnu/lib«t».so.«n1»\n/nix/store/«a32»-«k»/bin/«t»\nfile:///home/«name»/«p»",
)
_template(
    "packages with versions",
    '«pack»==«v»\n«k»@«v»\n«t»-«v»-«n1».el9.x86_64\n«pack»~=«v»; python_version < "3.«n1»" and sys_platform != \'win32\'\nii  «k,24» «v»-«n1»ubuntu«n1» amd64  «ws4»\ngolang.org/x/«t» v0.0.0-20«n12»-«h12»/go.mod h1:«a43»=\n    --hash=sha256:«h64» \\\n  resolved "https://registry.yarnpkg.com/«t»/-/«t»-«v».tgz#«h40»"\n  integrity sha512-«a86»==',
)
_template(
    "crontabs and globs",
    "*/«n2» * * * «r6» /usr/bin/«k» >> /var/log/«t».log 2>&1\n0 «r23» 1,15 * 1-5 «p»\n**/*.{«t»,«w»}\n!«p»/**\n@reboot sleep «n2» && «k»\nu=rwx,g=rx,o= 0«n3»\n*~ .DS_Store *.py[cod]",
)
_template(
    "man pages",
    '       -«letter», --«k»=«T»\n              «ws9»  «ws4».  See «t»(«n1»).\n.TH «T» «n1» "«mon» 20«n2»" "«v»"\n.B \\-\\-«k» \\fI«w»\\fR \\(bu «ws3»\n\x1b[1m«T»\x1b[0m\nS\bSY\bYN\bNO\bOP\bPS\bSI\bIS\bS\n    «t» [-h] [--«k» «T»] [--«k» {«w»,«w»}] «w» [«w» ...]\n  -«letter» «T», --«k» «T»  «ws5» (default: «n2»)',
)
_template(
    "ANSI colours",
    "\x1b[32m✓\x1b[39m \x1b[90m«ws3»\x1b[0m\n\x1b[1;31merror\x1b[0m\x1b[1m: «ws3»\x1b[0m\n\x1b[38;5;«n3»m«w»\x1b[0m \x1b[48;2;«r255»;«r255»;«r255»m \x1b[m\n\x1b[2K\x1b[1G\x1b[?25l«n2»%\n\x1b[0;33m«h7»\x1b[m «ws3» \x1b[1;36m(HEAD\x1b[m)\n\x1b]8;;https://«host»/«w»\x1b\\«w»\x1b]8;;\x1b\\\n[0m[32m[«t»] «w»[0m ^[[31m«w»^[[0m \\u001b[33m«w»\\u001b[39m",
)
_template(
    "a terminal redrawn",
    "«n2»%\r«n2»%\r«n2»%\r\x1b[K\n\x1b[«n2»;«n2»H\x1b[J«w»\x1b[A\x1b[2K\n⠋ «w»\r⠙ «w»\r⠹ «w»\r\n[«n3»/«n4»] «p»\x08\x08\x08",
)
_template(
    "art of letters",
    "  _   _      _ _        \n | | | | ___| | | ___   \n | |_| |/ _ \\ | |/ _ \\  \n |  _  |  __/ | | (_) | \n |_| |_|\\___|_|_|\\___/  \n ___________________\n< «ws2» >\n        \\   ^__^\n         \\  (oo)\\_______\n            (__)\\       )\\/\\\n                ||----w |\n  /\\_/\\  ( o.o )  > ^ <\n ░▒▓█ «w» █▓▒░\n   *      .    +   .  *  «sp9»'",
)
_template(
    "plots in a terminal",
    "«f2,-8» ┤        ╭╮   ╭─╯\n         ┼──────╯╰───╯\n  ▁▂▃▅▇█▆▄▂▁ «n2»\n «n2»| ************#\n▏▎▍▌▋▊▉█ «t»\n⣀⣤⣶⣿⣷⣦⣄⡀⢀⣠⣴⣾⣿\n    ^                  x\n    |     o  o    x\n    +----|----|----|----> t",
)
_template(
    "boards and puzzles",
    "+-------+-------+-------+\n| «r9» . . | «r9» . «r9» | . . «r9» |\n#####.#..##.#....#.###\n#S..#...#.#E#\n5«n1»..7«n1».....«n1»«n1»5....98\n. . X O . X . .\n[ ][■][ ][2][1]\n~~~~^^^~~~",
)

# --- Whitespace ------------------------------------------------------------------------------------


def _indented(name: str, unit: str, least: int = 0, most: int = 9) -> None:
    """Add a kind of lines that are indented by several units."""

    @KINDS.lines(name)
    def _write(draw: Random) -> str:
        text = draw.choice(
            ["«s»(«n1»)", "}", "«ws3»", "return «s»", "", "«k»:", "<«t»>", "- «w»", "]);"]
        )
        return unit * draw.randint(least, most) + _filled(draw, text)


_indented("code indented by tabs", "\t")
_indented("code deeply indented by tabs", "\t", 8, 20)
_indented("code indented by two spaces", "  ")
_indented("code indented by three spaces", "   ")
_indented("code indented by four spaces", "    ")
_indented("code indented by eight spaces", " " * 8)
_indented("code deeply indented by spaces", " ", 30, 120)
_indented("lines after no-break spaces", "\u00a0")
_indented("lines after ideographic spaces", "\u3000")
_indented("lines after bars", "| ")
_indented("lines after angles", "> ")
_indented("lines after tabs and spaces", "\t ")
KINDS.lines("spaces at the ends of lines")(lambda draw: _words(draw, 4) + " " * draw.randint(1, 60))
KINDS.lines("carriage returns", "\r\n")(
    lambda draw: _filled(draw, draw.choice(["«ws5»", "", "«s» = «n»;", "\t«w»"]))
)
KINDS.lines("blank lines", "")(
    lambda draw: "\n" * draw.randint(1, 9) + draw.choice(["", "", "«", _word(draw)])
)
KINDS.lines("blank lines with spaces")(
    lambda draw: draw.choice([" ", "", "    ", "\t", "\t\t", _word(draw)])
)
KINDS.lines("spaces alone", "")(
    lambda draw: " " * draw.randint(1, 200) + draw.choice(["", "\n", "x"])
)
KINDS.lines("tabs between empty cells")(
    lambda draw: "\t".join(draw.choice(["", "", _digits(draw, 2)]) for _ in range(12))
)
KINDS.lines("commas between empty cells")(
    lambda draw: ",".join(draw.choice(["", "", _digits(draw, 1)]) for _ in range(15))
)
KINDS.lines("double spaces", "  ")(_word)
KINDS.lines("words in columns")(lambda draw: "".join(f"{_word(draw):<22}" for _ in range(4)))
KINDS.lines("no-break spaces", "\u00a0")(_word)
KINDS.lines("narrow spaces", "\u202f")(lambda draw: draw.choice([_digits(draw, 3), _word(draw)]))
KINDS.lines("zero-width spaces", "\u200b")(_word)
KINDS.lines("soft hyphens", " ")(lambda draw: "\u00ad".join(re.findall("..?.?", _word(draw))))
KINDS.lines("letters with zero-width joiners", "\u200d")(
    lambda draw: draw.choice(string.ascii_letters)
)
KINDS.lines("line separators", "\u2028")(lambda draw: _words(draw, 5))
KINDS.lines("form feeds and vertical tabs", "")(
    lambda draw: _words(draw, 5) + draw.choice("\f\v\x1c\x85")
)
KINDS.lines("byte order marks", "\n")(lambda draw: "\ufeff" + _words(draw, 3))
KINDS.lines("marks of direction", " ")(lambda draw: f"\u2067{_word(draw)}\u2069\u200e\u200f")
KINDS.lines("replacement characters", "")(lambda draw: _word(draw) + "\ufffd" * draw.randint(1, 5))
KINDS.lines("control characters", "")(
    lambda draw: chr(draw.randint(0, 31)) + draw.choice(["", _word(draw)])
)
KINDS.lines("bytes read as Latin", "")(lambda draw: draw.randbytes(50).decode("latin-1"))
KINDS.lines("UTF-8 read as Latin", " ")(
    lambda draw: (
        draw.choice("größe café naïve „Straße“ — €uro señor".split())
        .encode()
        .decode("cp1252", "replace")
    )
)
KINDS.lines("UTF-16 read as UTF-8", "")(
    lambda draw: (_word(draw) + " ").encode("utf-16-le").decode("utf-8", "replace")
)

# --- Words written in odd ways ---------------------------------------------------------------------


def _typo(draw: Random) -> str:
    text = _word(draw)
    at = draw.randrange(len(text))
    return draw.choice(
        [text[:at] + text[at + 1 :], text[:at] + text[at:][::-1], text + text[-1], text]
    )


LEET = str.maketrans("aeiostbgl", "4310578&1")
KINDS.lines("leet", " ")(lambda draw: _word(draw).translate(LEET))
KINDS.lines("typing errors", " ")(_typo)
KINDS.lines("capitals", " ")(lambda draw: _word(draw).upper())
KINDS.lines("capitals of technical words", " ")(lambda draw: _technical(draw).upper())
KINDS.lines("title case", " ")(lambda draw: _word(draw).title())
KINDS.lines("alternating case", " ")(
    lambda draw: "".join(draw.choice([c, c.upper()]) for c in _word(draw))
)
KINDS.lines("letters with spaces", "  ")(lambda draw: " ".join(_word(draw)))
KINDS.lines("letters with dots", " ")(lambda draw: ".".join(_word(draw).upper()))
KINDS.lines("words backwards", " ")(lambda draw: _word(draw)[::-1])
KINDS.lines("words without spaces", "")(_word)
KINDS.lines("stretched words", " ")(
    lambda draw: re.sub("[aeiou]", lambda found: found[0] * draw.randint(2, 7), _word(draw))
)
KINDS.lines("names in camel case")(_camel)
KINDS.lines("names in snake case")(_snake)
KINDS.lines("names in capitals with underscores")(lambda draw: _snake(draw).upper())
KINDS.lines("names with hyphens", ", ")(lambda draw: _snake(draw).replace("_", "-"))
KINDS.lines("names with dots", " ")(lambda draw: _snake(draw).replace("_", "."))
KINDS.lines("names with two colons", "\n")(lambda draw: "::".join(_pascal(draw) for _ in range(4)))
KINDS.lines("words of random letters", " ")(
    lambda draw: "".join(draw.choices(string.ascii_lowercase, k=draw.randint(2, 11)))
)
KINDS.lines("words of random capitals", " ")(
    lambda draw: "".join(draw.choices(string.ascii_uppercase, k=draw.randint(2, 11)))
)
KINDS.lines("random letters and digits", "")(lambda draw: alphanumeric(draw, 40))
KINDS.lines("random printable characters", "")(lambda draw: draw.choice(string.printable[:95]))
KINDS.lines("random punctuation", "")(lambda draw: draw.choice(string.punctuation))
KINDS.lines("punctuation with spaces", " ")(
    lambda draw: "".join(draw.choices(string.punctuation, k=draw.randint(1, 4)))
)
KINDS.lines("passwords")(
    lambda draw: "".join(
        draw.choices(string.ascii_letters + string.digits + "!@#$%^&*-_", k=draw.randint(12, 24))
    )
)
KINDS.lines("one character repeated")(
    lambda draw: draw.choice(string.printable[:94]) * draw.randint(3, 100)
)
KINDS.lines("two characters repeated")(
    lambda draw: "".join(draw.choices(string.printable[:94], k=2)) * draw.randint(3, 40)
)
KINDS.lines("one letter repeated")(
    lambda draw: draw.choice(string.ascii_letters) * draw.randint(3, 200)
)
KINDS.lines("one sign repeated")(lambda draw: draw.choice("-=*#_~.+!?/\\|<>") * draw.randint(3, 90))
KINDS.lines("one character of Unicode repeated")(
    lambda draw: draw.choice("─━═•█░…—·■▪★→。ー・～") * draw.randint(3, 90)
)
KINDS.lines("syllables repeated", " ")(
    lambda draw: draw.choice("ha he lo na xi ba wow no ".split()) * draw.randint(2, 15)
)
KINDS.lines("one word repeated", " ")(lambda draw: " ".join([_word(draw)] * draw.randint(2, 30)))
KINDS.lines("one line repeated")(
    lambda draw: "\n".join([_filled(draw, "«d» «level» «ws4»")] * draw.randint(2, 9))
)
KINDS.lines("a sequence of numbers", ", ")(
    lambda draw: ", ".join(map(str, range(draw.randint(0, 900), 990, 7)))
)
KINDS.lines("bare numbers", " ")(lambda draw: _filled(draw, "«n»"))
KINDS.lines("pairs of words and numbers", " ")(
    lambda draw: f"{_word(draw)}{_digits(draw, draw.randint(1, 4))}"
)
KINDS.lines("single letters", " ")(lambda draw: draw.choice(string.ascii_letters))
KINDS.lines("quotes and dashes", " ")(
    lambda draw: draw.choice(
        [
            "“{}”",
            "‘{}’ —",
            "«{}»",
            "„{}“",
            "{}…",
            "– {};",
            "({})¹",
            "{}†",
            "‹{}›",
            "{}®",
            "¿{}?",
            "{}™",
        ]
    ).format(_word(draw))
)
KINDS.lines("bullets of many sorts")(
    lambda draw: draw.choice("•◦▪‣⁃●○■□◆◇→➤✓✔✗✘★☆①②❶➀") + " " + _words(draw, 3)
)
KINDS.lines("notes of a physician", "; ")(
    lambda draw: _filled(
        draw,
        draw.choice(
            [
                "pt c/o SOB x«n1»d",
                "BP «n3»/«n2» HR «n2» SpO2 «n2»% RA",
                "PMHx: HTN, T2DM, CKD3b",
                "Rx: metformin 500mg PO BID ×«n2»d",
                "A/P: r/o ACS; trop <0.0«n1»",
                "WBC «f1» Hgb «f1» Plt «n3»K",
                "hydrochlorothiazide «n2».5 mg qd",
                "ICD-10 I«n2».«n1»",
            ]
        ),
    )
)
KINDS.lines("recipes")(
    lambda draw: _filled(
        draw,
        draw.choice(
            [
                "«n1»½ cups all-purpose flour, sifted",
                "¾ tsp kosher salt",
                "«n3» g / «n2» oz «w»",
                "Preheat to «n3»°F (gas mark «n1»).",
                "Whisk «w» until frothy, «n1»–«n2» min.",
            ]
        ),
    )
)
KINDS.lines("law")(
    lambda draw: _filled(
        draw,
        draw.choice(
            [
                "§ «n3»(a)(«n1»)(B)(ii)",
                "Smith v. «name», «n3» F.3d «n4», «n4» (9th Cir. 20«n2»)",
                "WHEREAS, the Party of the First Part hereinafter “«W»”,",
                "Art. «n2» Abs. «n1» S. «n1» BGB i.V.m. § «n3» ff. ZPO",
                "notwithstanding the foregoing, «ws6»;",
            ]
        ),
    )
)
KINDS.lines("menus of a page", "")(
    lambda draw: _filled(
        draw,
        draw.choice(
            [
                "Home»«W»»«W» ",
                "Skip to content",
                "[«W»](/«w») | ",
                "Sign in\n",
                "©20«n2» «W», Inc. ",
                '* [«W»](https://«host»/«t» "«w»")\n',
                "![](data:«w».png) ",
                "Cookies\n\n\n",
                "Page «n1» of «n2» ‹ › ",
                "4.«n1» (1«n2»,«n3») $«n2».99\n",
                "\n  \n  «W»\n",
            ]
        ),
    )
)
KINDS.lines("snapshots of a page")(
    lambda draw: _filled(
        draw,
        draw.choice(
            [
                '  - link "«W» «w»" [ref=e«n3»] [cursor=pointer]:',
                "      - /url: /«p»",
                '    - button "«W»" [disabled] [ref=s«n1»e«n3»]',
                "[«n3»]<a href='/«t»' aria-label='«W»' />",
                '  uid=«n1»_«n3» heading "«ws3»" level="«n1»"',
                "    - generic [active]: «ws2»",
                '- textbox "«W»": «w»',
            ]
        ),
    )
)
KINDS.lines("results with line numbers")(
    lambda draw: _filled(
        draw,
        draw.choice(
            [
                "«n4,-6»→    «s» = «s»(«n1»)",
                "«n3,-6»\t  «s»: «n2»",
                "«p»:«n3»:    return «s»",
                "«p»-«n3»-",
                "«p»:«n2»:«n2»: «ws3»",
                "--",
                "   «n3» | «ws3»",
            ]
        ),
    )
)
KINDS.lines("rows of a ledger")(
    lambda draw: _filled(
        draw,
        '«d» * "«W»" "«ws3»"\n  Assets:Bank:«W»    «f2,-12» EUR\n  Expenses:«W»:«W»  -«f2» USD @ «f4» EUR',
    )
)

# --- Signs of Unicode ------------------------------------------------------------------------------


def _assigned(first: int, last: int) -> str:
    """Return the characters of a range that have a meaning."""
    return "".join(
        chr(code)
        for code in range(first, last + 1)
        if unicodedata.category(chr(code)) not in ("Cn", "Cs")
    )


def _signs(name: str, signs: str, least: int = 1, most: int = 1, between: str = "") -> None:
    """Add a kind of groups of signs."""

    @KINDS.lines(name, between)
    def _write(draw: Random) -> str:
        return "".join(draw.choices(signs, k=draw.randint(least, most)))


FACES = _assigned(0x1F600, 0x1F64F)
_signs("faces", FACES)
_signs("faces with spaces", FACES, between=" ")
_signs("pictures", _assigned(0x1F300, 0x1F5FF))
_signs("vehicles", _assigned(0x1F680, 0x1F6FF), 1, 3, " ")
_signs("new pictures", _assigned(0x1F900, 0x1F9FF) + _assigned(0x1FA70, 0x1FAFF), 1, 2, " ")
_signs("flags", _assigned(0x1F1E6, 0x1F1FF), 2, 2, " ")
KINDS.lines("flags of countries", "")(
    lambda draw: "".join(
        chr(0x1F1A5 + ord(c)) for c in draw.choice("US DE FR JP BR IN CN GB NG KE UA".split())
    )
)
KINDS.lines("people with colours of skin", "")(
    lambda draw: draw.choice("👍👋🙏💪👩👨🤝✊") + chr(draw.randint(0x1F3FB, 0x1F3FF))
)
KINDS.lines("joined pictures", " ")(
    lambda draw: draw.choice("👨‍👩‍👧‍👦 👩🏽‍💻 🧑‍🚀 🏳️‍🌈 👩‍❤️‍👨 🐻‍❄️ 👁️‍🗨️ 🤷🏻‍♀️ 🧙‍♂️ 👨🏿‍🦱".split())
)
KINDS.lines("keycaps and variants", " ")(
    lambda draw: draw.choice("1️⃣ 2️⃣ ❤️ ☀️ ⚠️ ✅ ❌ ℹ️ ▶️ ✔️ 🅰️ #️⃣ ☎︎".split())
)
KINDS.lines("pictures between words", " ")(
    lambda draw: draw.choice(
        [_word(draw), _word(draw), draw.choice(FACES), draw.choice("🚀🎉🔥✨📦🐛⚡💡")]
    )
)
KINDS.lines("faces of signs", "  ")(
    lambda draw: draw.choice(
        [
            "(╯°□°)╯︵ ┻━┻",
            "¯\\_(ツ)_/¯",
            "ʕ•ᴥ•ʔ",
            "(づ｡◕‿‿◕｡)づ",
            "ಠ_ಠ",
            "(◕‿◕✿)",
            "( ͡° ͜ʖ ͡°)",
            "(；´д｀)ゞ",
            "ヽ(´▽`)/",
            "(^_^;)",
            ":-P",
            "(>_<)",
            "\\(^o^)/",
            "(=^・ω・^=)",
            "┬─┬ノ( º _ ºノ)",
        ]
    )
)
_signs("braille", _assigned(0x2800, 0x28FF))
KINDS.lines("words in braille", "⠀")(
    lambda draw: "".join(chr(0x2800 + 1 + ord(c) % 62) for c in _word(draw))
)
_signs("drawing of boxes", _assigned(0x2500, 0x257F))
_signs("blocks", _assigned(0x2580, 0x259F))
_signs("bars of spark lines", "▁▂▃▄▅▆▇█", 5, 30, " ")
_signs("shapes", _assigned(0x25A0, 0x25FF), 1, 2, " ")
_signs("arrows", _assigned(0x2190, 0x21FF), 1, 2, " ")
_signs("more arrows", _assigned(0x27F0, 0x27FF) + _assigned(0x2900, 0x297F), 1, 2, " ")
_signs("operators", _assigned(0x2200, 0x22FF), 1, 3, " ")
_signs("more operators", _assigned(0x2A00, 0x2AFF), 1, 3, " ")
_signs("technical signs", _assigned(0x2300, 0x23FF), 1, 2, " ")
_signs("miscellaneous signs", _assigned(0x2600, 0x26FF), 1, 2, " ")
_signs("dingbats", _assigned(0x2700, 0x27BF), 1, 2, " ")
_signs("letters in circles", _assigned(0x2460, 0x24FF), 1, 6, " ")
_signs("letters in squares", _assigned(0x1F130, 0x1F189), 1, 6, " ")
_signs("currencies", _assigned(0x20A0, 0x20C0), 1, 1, " 12 ")
_signs("like letters", _assigned(0x2100, 0x214F), 1, 3, " ")
_signs("fractions and Roman numbers", _assigned(0x2150, 0x218B), 1, 3, " ")
_signs("superscripts", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿ₀₁₂₃₄₅₆₇₈₉₊₋ₐₑₒₓ", 1, 3, " x")
_signs("punctuation of Unicode", _assigned(0x2010, 0x205E), 1, 2, " ")
_signs("bold mathematics", _assigned(0x1D400, 0x1D433), 2, 9, " ")
_signs("all mathematics", _assigned(0x1D400, 0x1D7FF), 2, 9, " ")
_signs("double-struck and monospaced digits", _assigned(0x1D7CE, 0x1D7FF), 2, 9, " ")
_signs("wide letters", _assigned(0xFF21, 0xFF3A) + _assigned(0xFF41, 0xFF5A), 2, 9, "　")
_signs("narrow katakana", _assigned(0xFF66, 0xFF9D), 2, 9, " ")
_signs("modifier letters", _assigned(0x02B0, 0x02FF), 1, 3, " ")
_signs("phonetic letters", _assigned(0x0250, 0x02AF), 2, 7, " ")
KINDS.lines("phonetic words", " ")(
    lambda draw: draw.choice(
        "/ˈwɔːtər/ [ˈʃtʁaːsə] /θɪŋk/ ˌɪntəˈnæʃənəl /ʒuʁ/ [t͡ɕʰi˥˩] /ˈbʌt.ə.flaɪ/ ɹɪˈsiːv ŋ̊ ɲaˈɲa ɢoʔ /ɬan/".split()
    )
)
KINDS.lines("letters with many marks", "")(
    lambda draw: (
        draw.choice(string.ascii_letters)
        + "".join(chr(draw.randint(0x300, 0x36F)) for _ in range(draw.randint(1, 8)))
    )
)
KINDS.lines("decomposed accents", " ")(
    lambda draw: unicodedata.normalize(
        "NFD",
        draw.choice("élève größer façade naïveté señorita žluťoučký Ångström tiếng Việt".split()),
    )
)
KINDS.lines("struck words", " ")(lambda draw: "".join(c + "\u0336" for c in _word(draw)))
_signs("small capitals", "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", 2, 9, " ")
KINDS.lines("letters upside down", " ")(
    lambda draw: "".join(draw.choices("ɐqɔpǝɟƃɥᴉɾʞlɯuodbɹsʇnʌʍxʎz", k=draw.randint(2, 9)))
)
_signs("private use", _assigned(0xE000, 0xE0FF), 1, 2, " ")
_signs(
    "symbols of powerline", "\ue0b0\ue0b1\ue0b2\uf015\uf07c\uf113\uf120\ue725\uf8ff", 1, 1, " main "
)
_signs("mahjong, dominoes and cards", _assigned(0x1F000, 0x1F0FF), 1, 4, " ")
_signs("signs of music", _assigned(0x1D100, 0x1D1FF), 1, 4, " ")
_signs("alchemy", _assigned(0x1F700, 0x1F77F), 1, 3, " ")
_signs("hexagrams", _assigned(0x4DC0, 0x4DFF), 1, 3, " ")
_signs("legacy computing", _assigned(0x1FB00, 0x1FBCA), 1, 6, " ")
_signs("tags", _assigned(0xE0020, 0xE007F), 1, 6, " ")
_signs("radicals", _assigned(0x2E80, 0x2FD5), 1, 6, " ")
_signs("marks of ideographs", _assigned(0x3001, 0x303F), 1, 2, "中")
_signs("squared katakana", _assigned(0x3300, 0x33FF), 1, 3, " ")
_signs("ideographs in circles", _assigned(0x3200, 0x32FF), 1, 3, " ")

# --- Scripts: words of random letters --------------------------------------------------------------

SCRIPTS: dict[str, tuple[int, int]] = {
    "Latin-1 letters": (0xC0, 0xFF), "extended Latin": (0x100, 0x17F), "more extended Latin": (0x180, 0x24F),
    "additional Latin": (0x1E00, 0x1EFF), "Latin D": (0xA720, 0xA7CA), "phonetic extensions": (0x1D00, 0x1DBF),
    "Greek": (0x386, 0x3CE), "extended Greek": (0x1F00, 0x1FFC), "Coptic": (0x2C80, 0x2CE3),
    "Cyrillic": (0x410, 0x44F), "all Cyrillic": (0x400, 0x4FF), "supplementary Cyrillic": (0x500, 0x52F),
    "old Cyrillic": (0xA640, 0xA69F), "Armenian": (0x531, 0x586), "Hebrew": (0x5D0, 0x5EA),
    "pointed Hebrew": (0x591, 0x5EA), "Arabic": (0x620, 0x64A), "pointed Arabic": (0x620, 0x655),
    "more Arabic": (0x66E, 0x6D3), "forms of Arabic": (0xFE70, 0xFEFC), "more forms of Arabic": (0xFB50, 0xFBB1),
    "Syriac": (0x710, 0x74A), "Thaana": (0x780, 0x7B1), "N'Ko": (0x7C0, 0x7F5), "Samaritan": (0x800, 0x82D),
    "Mandaic": (0x840, 0x85B), "Devanagari": (0x904, 0x97F), "Bengali": (0x981, 0x9F1), "Gurmukhi": (0xA01, 0xA74),
    "Gujarati": (0xA81, 0xAF1), "Oriya": (0xB01, 0xB71), "Tamil": (0xB82, 0xBFA), "Telugu": (0xC00, 0xC7F),
    "Kannada": (0xC80, 0xCF2), "Malayalam": (0xD00, 0xD7F), "Sinhala": (0xD82, 0xDF4), "Thai": (0xE01, 0xE4E),
    "Lao": (0xE81, 0xEDF), "Tibetan": (0xF40, 0xFBC), "Burmese": (0x1000, 0x104F), "more Burmese": (0x1050, 0x109F),
    "Georgian": (0x10D0, 0x10FF), "Georgian capitals": (0x1C90, 0x1CBF), "old Georgian": (0x10A0, 0x10C5),
    "jamo": (0x1100, 0x11FF), "compatible jamo": (0x3131, 0x318E), "Ethiopic": (0x1200, 0x135A),
    "Cherokee": (0x13A0, 0x13F5), "small Cherokee": (0xAB70, 0xABBF), "Canadian syllables": (0x1401, 0x166C),
    "ogham": (0x1681, 0x169A), "runes": (0x16A0, 0x16EA), "Tagalog and Buhid": (0x1700, 0x1753), "Khmer": (0x1780, 0x17D3),
    "Mongolian": (0x1820, 0x1878), "Limbu": (0x1900, 0x193B), "Tai Le": (0x1950, 0x1974), "new Tai Lue": (0x1980, 0x19C9),
    "Buginese": (0x1A00, 0x1A1B), "Tai Tham": (0x1A20, 0x1A7C), "Balinese": (0x1B05, 0x1B4B), "Sundanese": (0x1B80, 0x1BAF),
    "Batak": (0x1BC0, 0x1BF3), "Lepcha": (0x1C00, 0x1C37), "Ol Chiki": (0x1C50, 0x1C7D), "Glagolitic": (0x2C00, 0x2C5E),
    "Tifinagh": (0x2D30, 0x2D67), "hiragana": (0x3041, 0x3096), "katakana": (0x30A1, 0x30FA), "bopomofo": (0x3105, 0x312F),
    "common ideographs": (0x4E00, 0x5FFF), "all ideographs": (0x4E00, 0x9FFF), "rare ideographs": (0x3400, 0x4DBF),
    "very rare ideographs": (0x20000, 0x2A6DF), "compatible ideographs": (0xF900, 0xFAD9), "Hangul": (0xAC00, 0xD7A3),
    "Yi": (0xA000, 0xA48C), "Lisu": (0xA4D0, 0xA4FD), "Vai": (0xA500, 0xA62B), "Bamum": (0xA6A0, 0xA6F1),
    "Syloti Nagri": (0xA800, 0xA82B), "Phags-pa": (0xA840, 0xA873), "Saurashtra": (0xA882, 0xA8C5),
    "Javanese": (0xA984, 0xA9C0), "Cham": (0xAA00, 0xAA4D), "Tai Viet": (0xAA80, 0xAADF), "Meetei": (0xABC0, 0xABED),
    "Linear B": (0x10000, 0x100FA), "Gothic": (0x10330, 0x1034A), "old Persian": (0x103A0, 0x103CF),
    "Deseret": (0x10400, 0x1044F), "Osage": (0x104B0, 0x104FB), "Phoenician": (0x10900, 0x10915),
    "Brahmi": (0x11003, 0x11046), "Chakma": (0x11103, 0x11134), "Takri": (0x11680, 0x116B8), "Cuneiform": (0x12000, 0x12399),
    "hieroglyphs": (0x13000, 0x1342E), "Adlam": (0x1E900, 0x1E94B), "Bassa Vah": (0x16AD0, 0x16AED),
    "Pahawh Hmong": (0x16B00, 0x16B36), "Tangut": (0x17000, 0x187F7), "kana supplements": (0x1B000, 0x1B122),
    "Rohingya": (0x10D00, 0x10D27), "Wancho": (0x1E2C0, 0x1E2EB), "Warang Citi": (0x118A0, 0x118DF),
}  # fmt: skip


def _letters(name: str, first: int, last: int) -> None:
    letters = [c for c in _assigned(first, last) if unicodedata.category(c)[0] in "LM"]

    @KINDS.lines(f"random letters: {name}", " ")
    def _write(draw: Random) -> str:
        return "".join(draw.choices(letters, k=draw.randint(2, 9)))


for _name, (_first, _last) in SCRIPTS.items():
    _letters(_name, _first, _last)


def _mixed(name: str, first: int, last: int) -> None:
    """Add a kind of letters of a script between English words and numbers."""
    letters = [c for c in _assigned(first, last) if unicodedata.category(c)[0] in "LM"]

    @KINDS.lines(f"letters and English: {name}", "")
    def _write(draw: Random) -> str:
        ends = ["", " ", ", ", f" {_word(draw)} ", f" ({_digits(draw, 2)}) "]
        return "".join(draw.choices(letters, k=draw.randint(1, 5))) + draw.choice(ends)


for _name in (
    "Greek", "Cyrillic", "Hebrew", "Arabic", "Devanagari", "Thai", "hiragana", "common ideographs", "Hangul", "Ethiopic",
    "Georgian", "Khmer",
):  # fmt: skip
    _mixed(_name, *SCRIPTS[_name])
for _name, _zero in {"Arabic": 0x660, "Persian": 0x6F0, "Devanagari": 0x966, "Bengali": 0x9E6, "Thai": 0xE50, "Burmese": 0x1040, "Khmer": 0x17E0, "wide": 0xFF10, "Tibetan": 0xF20}.items():  # fmt: skip
    KINDS.lines(f"digits: {_name}", " ")(
        lambda draw, zero=_zero: "".join(
            chr(zero + draw.randint(0, 9)) for _ in range(draw.randint(1, 6))
        )
    )

# --- Languages: real words -------------------------------------------------------------------------

LANGUAGES = {
    "Vietnamese": "Chúng tôi đã nghiên cứu kỹ lưỡng những vấn đề này và quyết định thay đổi phương án trước khi trời mưa xuống đường phố Hà Nội người bán hàng rong vẫn đứng chờ khách dưới những mái hiên cũ kỹ",
    "Yoruba": "Ọmọdé náà ń ṣeré ní iwájú ilé wọn nígbà tí òjò bẹ̀rẹ̀ sí í rọ̀ ìyá rẹ̀ pè é wọlé kí ó má bàa ṣàìsàn ẹ̀kọ́ ṣe pàtàkì fún gbogbo ènìyàn ọ̀rẹ́",
    "Igbo": "Ụmụaka ahụ na-egwu egwu n'ihu ụlọ ha mgbe mmiri malitere izo nne ya kpọrọ ya ka ọ bata n'ime ọ dị mma ịmụta ihe ọhụrụ kwa ụbọchị",
    "Hausa": "Yara suna wasa a gaban gidansu lokacin da ruwan sama ya fara sauka ɗan kasuwa ƙasa mai kyau ya ce gwamnati za ta taimaka wa manoma",
    "Swahili": "Watoto walikuwa wakicheza mbele ya nyumba yao wakati mvua ilipoanza kunyesha serikali imetangaza kwamba wafanyakazi watalipwa mishahara yao mwishoni mwa mwezi huu",
    "Zulu": "Izingane bezidlala phambi kwendlu yazo ngenkathi kuqala ukuna imvula uhulumeni umemezele ukuthi abasebenzi bazokhokhelwa ngasekupheleni kwenyanga ngiyabonga kakhulu",
    "Somali": "Carruurtu waxay ku ciyaarayeen guriga hortiisa markii roobku bilaabay in uu da'o dawladdu waxay ku dhawaaqday in shaqaalaha la siin doono mushaharkooda",
    "Turkish": "Çocuklar evin önünde oynarken birdenbire yağmur başladı değerlendirilebilecek şüpheli durumları görüşmek üzere toplandık İstanbul'un sokaklarında güneş ışığı ağır ağır söndü",
    "Hungarian": "A gyerekek a ház előtt játszottak amikor hirtelen eleredt az eső megszentségteleníthetetlenségeskedéseitekért köszönöm szépen hűtőszekrény üdvözöllek győződjünk meg arról",
    "Finnish": "Lapset leikkivät talon edessä kun äkkiä alkoi sataa epäjärjestelmällisyydestään huolimatta työntekijöille maksetaan palkka kuukauden lopussa yhteistyössä hyvää päivää",
    "Estonian": "Lapsed mängisid maja ees kui äkki hakkas vihma sadama töötajatele makstakse palka kuu lõpus õhtuöö jäääär küsimustele vastamiseks võimalikult kiiresti",
    "Polish": "Dzieci bawiły się przed domem gdy nagle zaczęło padać chrząszcz brzmi w trzcinie źdźbło przedsiębiorstwo wynagrodzenie zostanie wypłacone pod koniec miesiąca żółw łódź",
    "Czech": "Děti si hrály před domem když najednou začalo pršet příliš žluťoučký kůň úpěl ďábelské ódy zaměstnanci dostanou výplatu koncem měsíce čtvrtek řeřicha",
    "Romanian": "Copiii se jucau în fața casei când deodată a început să plouă înțelegere și cunoștințe guvernul a anunțat că salariații vor fi plătiți",
    "Latvian": "Bērni spēlējās mājas priekšā kad pēkšņi sāka līt lietus darbiniekiem tiks izmaksāta alga mēneša beigās ļoti žēl ģimene ķirsis",
    "Lithuanian": "Vaikai žaidė prieš namą kai staiga pradėjo lyti darbuotojams bus išmokėtas atlyginimas mėnesio pabaigoje ąžuolas šeštadienį įžvalgų",
    "Croatian": "Djeca su se igrala ispred kuće kad je odjednom počela padati kiša zaposlenicima će biti isplaćena plaća krajem mjeseca đak čaša žlica",
    "Albanian": "Fëmijët po luanin para shtëpisë kur papritur filloi të binte shi punonjësve do t'u paguhet rroga në fund të muajit çdo gjë është",
    "Icelandic": "Börnin léku sér fyrir framan húsið þegar skyndilega fór að rigna ríkisstjórnin tilkynnti að starfsmenn fengju laun sín í lok mánaðarins æðislegt það",
    "Danish and Norwegian": "Børnene legede foran huset da det pludselig begyndte at regne arbejdstakerne får lønnen utbetalt mot slutten av måneden gjærbakst øvelse å være",
    "Dutch": "De kinderen speelden voor het huis toen het plotseling begon te regenen werknemersverzekering wordt aan het einde van de maand uitbetaald ijskoud geïnteresseerd",
    "German compounds": "Donaudampfschifffahrtsgesellschaft Rechtsschutzversicherungsvertrag Überprüfungsverfahren Straßenbahnhaltestelle Grundstücksverkehrsgenehmigungszuständigkeit unverhältnismäßig Kühlschränke größtenteils möglicherweise",
    "Catalan": "Els nens jugaven davant de casa quan de sobte va començar a ploure l'empresa pagarà els salaris a final de mes col·laboració això perquè",
    "Basque": "Haurrak etxe aurrean jolasten ari ziren bat-batean euria hasi zuenean langileei soldata hilaren amaieran ordainduko zaie gaurkotasunarekin elkarrizketa",
    "Welsh": "Roedd y plant yn chwarae o flaen y tŷ pan ddechreuodd hi fwrw glaw yn sydyn llywodraeth Cymru wedi cyhoeddi y bydd gweithwyr yn cael eu talu",
    "Irish": "Bhí na páistí ag súgradh os comhair an tí nuair a thosaigh sé ag cur báistí d'fhógair an rialtas go n-íocfar na hoibrithe ag deireadh na míosa",
    "Maltese": "It-tfal kienu qed jilagħbu quddiem id-dar meta f'daqqa waħda bdiet nieżla x-xita il-gvern ħabbar li l-ħaddiema se jitħallsu ġurnata għażiż",
    "Latin language": "Gallia est omnis divisa in partes tres quarum unam incolunt Belgae aliam Aquitani tertiam qui ipsorum lingua Celtae nostra Galli appellantur arma virumque cano quousque tandem abutere",
    "placeholder Latin": "Lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore et dolore magna aliqua ut enim ad minim veniam quis nostrud exercitation ullamco",
    "old English": "Hwæt we Gardena in geardagum þeodcyninga þrym gefrunon hu ða æþelingas ellen fremedon oft Scyld Scefing sceaþena þreatum monegum mægþum meodosetla ofteah",
    "Esperanto": "La infanoj ludis antaŭ la domo kiam subite ekpluvis ĉiuj homoj estas denaske liberaj kaj egalaj laŭ digno kaj rajtoj ĝis hodiaŭ ŝajnas ĵurnalo",
    "Tagalog": "Naglalaro ang mga bata sa harap ng bahay nang biglang umulan inihayag ng pamahalaan na babayaran ang mga manggagawa sa katapusan ng buwan nagpapasalamat pinakamaganda",
    "Indonesian": "Anak-anak sedang bermain di depan rumah ketika tiba-tiba hujan turun pemerintah mengumumkan bahwa para pekerja akan dibayar pada akhir bulan mempertanggungjawabkan",
    "Hawaiian and Maori": "Ua pāʻani nā keiki i mua o ka hale i ka wā i hoʻomaka ai ka ua he aha te mea nui o te ao he tangata whānau kaitiakitanga whakawhanaungatanga",
    "Navajo": "Diné bizaad yáʼátʼééh ashiiké tʼóó diigis léiʼ tółikaní łaʼ ádiilnííł dóó nihaa nahidoonih níigo yee hodeezʼą́ jiní shimá",
    "Quechua": "Wawakunaqa wasi ñawpaqpi pukllachkarqanku qunqayllamanta para chayamuptin llamk'aqkunataqa killa tukukuyta paganqaku rimanakusunchik ñuqanchik",
    "Azerbaijani": "Uşaqlar evin qabağında oynayırdılar ki birdən yağış başladı hökumət elan etdi ki işçilərə ayın sonunda əməkhaqqı ödəniləcək xoş gəlmisiniz",
    "Uzbek": "Bolalar uy oldida o'ynashayotgan edi to'satdan yomg'ir yog'a boshladi hukumat ishchilarga oy oxirida ish haqi to'lanishini e'lon qildi",
    "pinyin with tones": "Háizimen zhèngzài fángzi qiánmiàn wánshuǎ tūrán xià qǐ yǔ lái le wǒmen yīnggāi nǔlì xuéxí zhōngguó rénmín gònghéguó lǜsè nǚrén",
    "pinyin and romaji": "women jintian xiawu qu beijing daxue tushuguan watashi wa mainichi gakkou ni ikimasu arigatou gozaimasu sumimasen zhongguo shanghai",
    "Russian in Latin letters": "Zdravstvujte segodnja my pojdem v biblioteku chtoby prochitat' interesnuju knigu spasibo pozhalujsta privet shchastje objazatel'no",
    "Arabic in Latin letters": "salam 3alaykom ya 7abibi kif el 7al inshallah bokra nshoofak 5alas mafi moshkila 2ahlan wa sahlan 9aba7 el 5air",
    "Hindi in Latin letters": "kya haal hai bhai mujhe samajh nahi aa raha ki yeh kaise karna hai thoda jaldi kar do na please kal subah milte hain bahut accha",
    "Sanskrit in Latin letters": "dharmakṣetre kurukṣetre samavetā yuyutsavaḥ māmakāḥ pāṇḍavāś caiva kim akurvata sañjaya ātmanaḥ śāntiḥ jñānam",
    "German and English": "Der deployment-Prozess failt im staging weil der branch nicht gemerged wurde bitte reviewt den pull-request asap danke für das feedback Überprüfung der pipeline",
    "Ukrainian": "Діти гралися перед будинком коли раптом пішов дощ уряд оголосив що працівникам виплатять заробітну плату наприкінці місяця їжак ґанок п'ять єдність",
    "Bulgarian": "Децата си играеха пред къщата когато изведнъж заваля дъжд правителството обяви че на служителите ще бъде изплатена заплата в края на месеца",
    "Serbian": "Деца су се играла испред куће кад је одједном почела да пада киша запосленима ће бити исплаћена плата крајем месеца ђак џеп љубав њива ћирилица",
    "Macedonian": "Децата си играа пред куќата кога одеднаш почна да врне дожд владата објави дека на вработените ќе им биде исплатена плата ѓавол ѕвезда",
    "Kazakh": "Балалар үйдің алдында ойнап жүргенде кенеттен жаңбыр жауа бастады үкімет жұмысшыларға айдың соңында жалақы төленетінін хабарлады қазақ тілі әдемі һөкім",
    "Mongolian": "Хүүхдүүд байшингийн өмнө тоглож байтал гэнэт бороо орж эхлэв засгийн газар ажилчдад сарын сүүлээр цалин олгоно гэж зарлав өглөөний мэнд",
    "Chechen and Tatar": "Балалар өй алдында уйнаганда кинәт яңгыр ява башлады хөкүмәт җәмгыять нохчийн мотт дуьххьара хӀун ду хьуна хаза де шаьш",
    "Russian of officials": "Вышеуказанное постановление вступает в силу со дня его официального опубликования несоответствующих требованиям законодательства взаимодействия уполномоченного представителя налогоплательщика",
    "old Russian": "въ началѣ бѣ слово и слово бѣ къ Богу и Богъ бѣ слово сей бѣ искони къ Богу міръ тѣмъ быша и безъ него ничтоже бысть еже бысть",
    "modern Greek": "Τα παιδιά έπαιζαν μπροστά στο σπίτι όταν ξαφνικά άρχισε να βρέχει η κυβέρνηση ανακοίνωσε ότι οι εργαζόμενοι θα πληρωθούν στο τέλος του μήνα ευχαριστώ",
    "polytonic Greek": "Μῆνιν ἄειδε θεὰ Πηληϊάδεω Ἀχιλῆος οὐλομένην ἣ μυρί᾽ Ἀχαιοῖς ἄλγε᾽ ἔθηκε πολλὰς δ᾽ ἰφθίμους ψυχὰς Ἄϊδι προΐαψεν ἡρώων αὐτοὺς δὲ ἑλώρια τεῦχε κύνεσσιν",
    "Hebrew with points": "בְּרֵאשִׁית בָּרָא אֱלֹהִים אֵת הַשָּׁמַיִם וְאֵת הָאָרֶץ וְהָאָרֶץ הָיְתָה תֹהוּ וָבֹהוּ וְחֹשֶׁךְ עַל פְּנֵי תְהוֹם וְרוּחַ",
    "everyday Hebrew": "הילדים שיחקו לפני הבית כאשר פתאום התחיל לרדת גשם הממשלה הודיעה שהעובדים יקבלו את שכרם בסוף החודש תודה רבה בבקשה",
    "Yiddish": "די קינדער האָבן געשפּילט פֿאַרן הויז ווען עס האָט פּלוצעם אָנגעהויבן רעגענען ייִדיש איז אַ שפּראַך װאָס מע רעדט",
    "Arabic with points": "بِسْمِ اللَّهِ الرَّحْمَٰنِ الرَّحِيمِ الْحَمْدُ لِلَّهِ رَبِّ الْعَالَمِينَ إِيَّاكَ نَعْبُدُ وَإِيَّاكَ نَسْتَعِينُ اهْدِنَا الصِّرَاطَ",
    "everyday Arabic": "كان الأطفال يلعبون أمام المنزل عندما بدأ المطر فجأة أعلنت الحكومة أن العمال سيحصلون على رواتبهم في نهاية الشهر شكرا جزيلا والمسؤولية",
    "Egyptian Arabic": "ازيك عامل ايه النهاردة مش عارف اعمل كده ليه بقى يلا بينا نروح القهوة دلوقتي علشان نشوف الماتش كويس اوي",
    "Persian": "بچه‌ها جلوی خانه بازی می‌کردند که ناگهان باران گرفت دولت اعلام کرد که حقوق کارگران در پایان ماه پرداخت خواهد شد گفت‌وگو پژوهشگر",
    "Urdu": "بچے گھر کے سامنے کھیل رہے تھے کہ اچانک بارش شروع ہو گئی حکومت نے اعلان کیا کہ ملازمین کو مہینے کے آخر میں تنخواہ دی جائے گی ٹھیک ہے",
    "Pashto and Kurdish": "ماشومان د کور مخې ته لوبې کولې چې ناڅاپه باران پیل شو څنګه یې ښه ورځ منداڵەکان لەبەردەم ماڵەکەدا یارییان دەکرد کە لەناکاو باران باری",
    "Uyghur": "بالىلار ئۆينىڭ ئالدىدا ئوينىغاندا تۇيۇقسىز يامغۇر يېغىشقا باشلىدى ھۆكۈمەت ئىشچىلارغا ئاي ئاخىرىدا مائاش تۆلىنىدۇ",
    "Syriac language": "ܒܪܫܝܬ ܐܝܬܘܗܝ ܗܘܐ ܡܠܬܐ ܘܗܘ ܡܠܬܐ ܐܝܬܘܗܝ ܗܘܐ ܠܘܬ ܐܠܗܐ ܫܠܡܐ ܠܟܠܟܘܢ ܐܒܘܢ ܕܒܫܡܝܐ",
    "Dhivehi": "ކުޑަކުދިން ގޭގެ ކުރިމަތީގައި ކުޅެނިކޮށް ކުއްލިއަކަށް ވާރޭ ވެހެން ފެށި ދިވެހިރާއްޖެ ޝުކުރިއްޔާ",
    "Hindi": "बच्चे घर के सामने खेल रहे थे कि अचानक बारिश शुरू हो गई सरकार ने घोषणा की कि कर्मचारियों को महीने के अंत में वेतन मिलेगा धन्यवाद",
    "Marathi and Nepali": "मुले घरासमोर खेळत होती तेव्हा अचानक पाऊस सुरू झाला केटाकेटीहरू घरको अगाडि खेलिरहेका थिए जब अचानक पानी पर्न थाल्यो",
    "Sanskrit": "धर्मक्षेत्रे कुरुक्षेत्रे समवेता युयुत्सवः मामकाः पाण्डवाश्चैव किमकुर्वत सञ्जय यदा यदा हि धर्मस्य ग्लानिर्भवति भारत",
    "Bengali language": "শিশুরা বাড়ির সামনে খেলছিল হঠাৎ বৃষ্টি শুরু হল সরকার ঘোষণা করেছে যে কর্মচারীদের মাসের শেষে বেতন দেওয়া হবে ধন্যবাদ ক্ষুদ্র",
    "Punjabi": "ਬੱਚੇ ਘਰ ਦੇ ਸਾਹਮਣੇ ਖੇਡ ਰਹੇ ਸਨ ਜਦੋਂ ਅਚਾਨਕ ਮੀਂਹ ਪੈਣ ਲੱਗਾ ਸਰਕਾਰ ਨੇ ਐਲਾਨ ਕੀਤਾ ਕਿ ਮੁਲਾਜ਼ਮਾਂ ਨੂੰ ਤਨਖਾਹ ਮਿਲੇਗੀ",
    "Gujarati language": "બાળકો ઘરની સામે રમતા હતા ત્યારે અચાનક વરસાદ શરૂ થયો સરકારે જાહેરાત કરી કે કર્મચારીઓને મહિનાના અંતે પગાર મળશે આભાર",
    "Odia": "ପିଲାମାନେ ଘର ସାମ୍ନାରେ ଖେଳୁଥିଲେ ହଠାତ୍ ବର୍ଷା ଆରମ୍ଭ ହେଲା ସରକାର ଘୋଷଣା କଲେ ଯେ କର୍ମଚାରୀମାନଙ୍କୁ ଦରମା ମିଳିବ ଧନ୍ୟବାଦ",
    "Tamil language": "குழந்தைகள் வீட்டின் முன் விளையாடிக் கொண்டிருந்தபோது திடீரென மழை பெய்யத் தொடங்கியது அரசாங்கம் அறிவித்தது ஊழியர்களுக்கு நன்றி",
    "Telugu language": "పిల్లలు ఇంటి ముందు ఆడుకుంటుండగా అకస్మాత్తుగా వర్షం మొదలైంది ప్రభుత్వం ఉద్యోగులకు నెలాఖరున జీతం చెల్లిస్తామని ప్రకటించింది ధన్యవాదాలు",
    "Kannada language": "ಮಕ್ಕಳು ಮನೆಯ ಮುಂದೆ ಆಡುತ್ತಿದ್ದಾಗ ಇದ್ದಕ್ಕಿದ್ದಂತೆ ಮಳೆ ಪ್ರಾರಂಭವಾಯಿತು ಸರ್ಕಾರವು ನೌಕರರಿಗೆ ಸಂಬಳ ನೀಡಲಾಗುವುದು ಧನ್ಯವಾದಗಳು",
    "Malayalam language": "കുട്ടികൾ വീടിനു മുന്നിൽ കളിക്കുകയായിരുന്നപ്പോൾ പെട്ടെന്ന് മഴ പെയ്യാൻ തുടങ്ങി സർക്കാർ ജീവനക്കാർക്ക് ശമ്പളം നൽകുമെന്ന് നന്ദി",
    "Sinhala language": "ළමයි ගෙදර ඉදිරිපිට සෙල්ලම් කරමින් සිටියදී හදිසියේම වැස්ස පටන් ගත්තා රජය සේවකයින්ට වැටුප් ගෙවන බව නිවේදනය කළා ස්තූතියි",
    "Tibetan language": "བོད་ཀྱི་སྐད་ཡིག་ནི་ཧ་ཅང་གལ་ཆེན་པོ་ཞིག་ཡིན། བཀྲ་ཤིས་བདེ་ལེགས། ང་ཚོས་སློབ་སྦྱོང་བྱེད་དགོས། རང་བཞིན་གྱི་ཁོར་ཡུག",
    "Amharic": "ልጆቹ ከቤቱ ፊት ለፊት እየተጫወቱ ሳለ በድንገት ዝናብ መዝነብ ጀመረ መንግሥት ለሠራተኞች በወሩ መጨረሻ ደመወዝ እንደሚከፈል አስታወቀ፤ አመሰግናለሁ።",
    "Tigrinya": "ቆልዑ ኣብ ቅድሚ ገዛ እናተጻወቱ ከለዉ ብሃንደበት ዝናብ ክዘንብ ጀሚሩ መንግስቲ ንሰራሕተኛታት ደሞዝ ከም ዝኽፈል ኣፍሊጡ፡ የቐንየለይ",
    "Georgian language": "ბავშვები სახლის წინ თამაშობდნენ როცა უეცრად წვიმა დაიწყო მთავრობამ გამოაცხადა რომ თანამშრომლებს თვის ბოლოს ხელფასს გადაუხდიან გმადლობთ",
    "Armenian language": "Երեխաները խաղում էին տան առջև երբ հանկարծ սկսեց անձրևել կառավարությունը հայտարարեց որ աշխատակիցներին կվճարվի շնորհակալություն",
    "Cherokee language": "ᎣᏏᏲ ᏙᎯᏧ ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ᏩᏙ ᎤᏓᏅᏖᎵ ᏂᎦᏓ ᎠᏂᏴᏫ ᏂᎨᎫᏓᎸᎾ ᎠᎴ ᎤᏂᏠᏱ ᎤᎾᏕᎿ ᏚᏳᎧᏛ",
    "Inuktitut": "ᐃᓄᒃᑎᑐᑦ ᓄᓇᕗᑦ ᓱᕈᓰᑦ ᐱᙳᐊᓚᐅᖅᑐᑦ ᐃᒡᓗᐅᑉ ᓵᖓᓂ ᖁᔭᓐᓇᒦᒃ ᒐᕙᒪᒃᑯᑦ ᐃᖅᑲᓇᐃᔭᖅᑏᑦ ᑮᓇᐅᔭᓕᐅᕐᓂᖅ",
    "Tamazight": "ⵉⵎⴷⴰⵏⴻⵏ ⴰⴽⴽⵯ ⵜⵜⵍⴰⵍⵏ ⴷ ⵉⵍⴻⵍⵍⵉⵢⵏ ⵎⵙⴰⵡⴰⵏ ⴷⵉ ⵍⵃⵡⵕⵎⴰ ⵜⴰⵎⴰⵣⵉⵖⵜ ⵜⴰⵏⵎⵎⵉⵔⵜ ⴰⵣⵓⵍ",
    "Manding in N'Ko": "ߒߞߏ ߞߊ߲ߜߍ ߡߊ߲߬ߘߋ߲ ߟߎ߫ ߦߋ߫ ߕߟߏ߲߫ ߠߊ߫ ߓߏ߲ ߢߍ߫ ߛߊ߲ߖߌ ߘߊߡߌ߬ߣߊ߫ ߞߐߣߐ߲߫ ߌ ߣߌ߫ ߛߐ߰ߡߊ",
    "classical Mongolian": "ᠮᠣᠩᠭᠣᠯ ᠬᠡᠯᠡ ᠪᠢᠴᠢᠭ᠌ ᠬᠦᠮᠦᠨ ᠪᠦᠷ ᠲᠥᠷᠥᠵᠦ ᠮᠡᠨᠳᠡᠯᠡᠬᠦ ᠡᠷᠬᠡ ᠴᠢᠯᠥᠭᠡ ᠲᠡᠢ ᠠᠳᠠᠯᠢᠬᠠᠨ",
    "Korean": "아이들이 집 앞에서 놀고 있었는데 갑자기 비가 내리기 시작했다 정부는 근로자들에게 월말에 임금을 지급하겠다고 발표하였습니다 감사합니다 괜찮아요",
    "rare Korean": "뷁 쀍 꿻 똠방각하 펲시콜라 찦차 쑛다리 햏자 뙇 갏 둛 뾃 쬲 훑어보았다 넓적다리를 핥았던 읊조리며 값싼 앎",
    "Korean slang": "ㅋㅋㅋㅋ ㅇㅇ ㄴㄴ ㅠㅠ 헐ㅋㅋ 개꿀잼 ㄱㄱ ㅇㅋ 레알? 존맛탱 ㅎㅎ 오늘뭐함 ㄹㅇ",
}
UNSPACED = {
    "Chinese": "孩子们正在房子前面玩耍 突然下起了大雨 政府宣布将于月底向职工发放工资 我们应该认真研究这个问题 数据库连接超时 请检查网络配置 用户登录失败 人工智能技术的发展",
    "traditional Chinese": "孩子們正在房屋前面玩耍 突然下起了大雨 政府宣布將於月底發放薪資 臺灣的夜市聞名國際 請檢查網路設定 軟體開發與資訊安全 龍飛鳳舞",
    "classical Chinese": "學而時習之不亦說乎 有朋自遠方來不亦樂乎 人不知而不慍不亦君子乎 道可道非常道 名可名非常名 天地玄黃宇宙洪荒 孟子見梁惠王 曰叟不遠千里而來",
    "Cantonese": "佢哋喺屋企前面玩緊嘅時候 突然之間落起大雨嚟 你食咗飯未呀 唔該晒 點解會咁㗎 我哋聽日去邊度行街好呢 冇問題啦 畀錢",
    "rare Chinese": "饕餮魑魅魍魉 龘靐齉爨 踽踽独行 沆瀣一气 彳亍 囹圄 耄耋之年 罄竹难书 鳜鱼 皴裂 氤氲 觊觎 龃龉 蹀躞 薜荔",
    "names of elements and places": "氢氦锂铍硼碳氮氧氟氖 钇锆铌钼锝 亳州濮阳衢州 邯郸 呼和浩特 乌鲁木齐市天山区 北京市朝阳区建国路８８号",
    "Chinese with English": "请把 pull request 合并到 main 分支 使用 Python 3.11 的 asyncio 库 报错 TypeError: 参数类型不匹配 部署 Kubernetes 集群 API 接口 v2 返回 404",
    "Japanese": "子供たちは家の前で遊んでいた 突然雨が降り始めた 政府は月末に給与を支払うと発表しました ありがとうございます エラーが発生しました サーバーに接続できません",
    "Japanese with furigana": "漢字（かんじ）を読（よ）む 学校《がっこう》へ行（い）く 食|た|べ物 |私《わたくし》は東京《とうきょう》に住《す》んでいます 吾輩（わがはい）は猫（ねこ）である",
    "Japanese in hiragana": "むかしむかしあるところにおじいさんとおばあさんがすんでいました おじいさんはやまへしばかりに おばあさんはかわへせんたくにいきました",
    "Japanese in katakana": "プログラミングインターフェース コンピューターアーキテクチャ ダウンロードリンク ソフトウェアエンジニアリング ヴァイオリン フィッシング マクドナルド ギガバイト",
    "old Japanese": "いづれの御時にか女御更衣あまたさぶらひたまひけるなかに 祇園精舎の鐘の聲 諸行無常の響きあり 候ふ 給ふ 思ひ出づ 春は曙やうやう白くなりゆく",
    "Thai language": "เด็กๆกำลังเล่นอยู่หน้าบ้านเมื่อฝนตกลงมาอย่างกะทันหัน รัฐบาลประกาศว่าจะจ่ายเงินเดือนพนักงานในช่วงสิ้นเดือน ขอบคุณมากครับ ที่นี่ไม่มีอะไร",
    "Lao language": "ເດັກນ້ອຍກຳລັງຫຼິ້ນຢູ່ໜ້າເຮືອນເມື່ອຝົນຕົກລົງມາທັນທີ ລັດຖະບານປະກາດວ່າຈະຈ່າຍເງິນເດືອນໃຫ້ພະນັກງານ ຂອບໃຈຫຼາຍໆ",
    "Khmer language": "ក្មេងៗកំពុងលេងនៅមុខផ្ទះនៅពេលដែលភ្លៀងចាប់ផ្តើមធ្លាក់ភ្លាមៗ រដ្ឋាភិបាលបានប្រកាសថានឹងបើកប្រាក់ខែជូនបុគ្គលិក សូមអរគុណ",
    "Burmese language": "ကလေးတွေအိမ်ရှေ့မှာကစားနေတုန်း ရုတ်တရက်မိုးရွာလာတယ် အစိုးရကဝန်ထမ်းများအားလကုန်တွင်လစာပေးမည်ဟုကြေညာခဲ့သည် ကျေးဇူးတင်ပါတယ်",
    "Javanese language": "ꦧꦺꦴꦕꦃꦧꦺꦴꦕꦃꦥꦝꦢꦺꦴꦭꦤꦤ꧀ ꦲꦤꦕꦫꦏ ꦱꦸꦒꦼꦁꦫꦮꦸꦃ ꦩꦠꦸꦂꦤꦸꦮꦸꦤ꧀",
}


def _language(name: str, words: Sequence[str], between: str, ends: str) -> None:
    """Add a kind of sentences: words of a language in any order."""

    @KINDS.lines(f"language: {name}", " " if between else "")
    def _write(draw: Random) -> str:
        sentence = between.join(draw.choice(words) for _ in range(draw.randint(3, 14)))
        return sentence + draw.choice(ends)


for _name, _text in LANGUAGES.items():
    _language(_name, _text.split(), " ", ".,.?")
for _name, _text in UNSPACED.items():
    _language(_name, _text.split(), "", "。，、。" if ord(_text[0]) > 0x2E80 else " ")
