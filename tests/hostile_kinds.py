"""Kinds of text that cost much, or that could: each a function from a size to a text.

Many were written to be slow to scan: beginnings without an end, runs of one sign, what looks nearly
like a secret, our own marks repeated. Others are only odd: scripts, data, invisible signs.
"""

import json
import random
import string
from collections.abc import Callable, Mapping

from conspectus.messages.framing import NOTE, NOTE_ARCHIVED, SUMMARY_LINE
from conspectus.messages.shortening import MARK, POINTER

Make = Callable[[int], str]

WORDS = (
    "the build failed because a test of the parser expects two lines and gets one so we look at "
    "module four again and write down what each step takes before the next release of the week"
).split()
BASE64 = string.ascii_letters + string.digits + "+/"
KEY = "-----BEGIN PRIVATE KEY-----\n"


def prose(size: int) -> str:
    """Return plain English sentences, to which the other kinds are compared."""
    draw = random.Random(1)
    parts: list[str] = []
    length = 0
    while length < size:
        words = [draw.choice(WORDS) for _ in range(draw.randint(6, 16))]
        end = ".\n" if draw.random() < 0.2 else ". "
        parts.append(" ".join(words).capitalize() + end)
        length += len(parts[-1])
    return "".join(parts)[:size]


def repeated(unit: str) -> Make:
    """Return a kind that repeats a text."""
    return lambda size: (unit * (size // len(unit) + 1))[:size]


def drawn(alphabet: str) -> Make:
    """Return a kind of characters at random."""
    return lambda size: "".join(random.Random(2).choices(alphabet, k=size))


def nested(begin: str, end: str, inner: str = "") -> Make:
    """Return a kind that is nested as deep as it can be."""

    def make(size: int) -> str:
        depth = size // len(begin + end)
        return begin * depth + inner + end * depth

    return make


def lines(text: str, width: int) -> str:
    """Return a text in lines of so many characters."""
    return "\n".join(text[at : at + width] for at in range(0, len(text), width))


def escaped(size: int) -> str:
    """Return JSON in JSON in JSON."""
    text = prose(max(1, size // 40))
    for _ in range(5):
        text = json.dumps({"a": text + '"\n'})
    return repeated(text)(size)


def numbered(form: str, between: str = "\n") -> Make:
    """Return a kind in which each line has its number."""
    return lambda size: between.join(form.format(n) for n in range(size // len(form)))[:size]


def data(make: Callable[[int], object], each: int) -> Make:
    """Return a kind of JSON, of so many characters for each part."""
    return lambda size: json.dumps(make(max(1, size // each)))


UNITS: Mapping[str, str] = {
    "key=": "key=",
    "key=key, spaced": "key = ",
    "password: ": "password: ",
    "password=": "password=",
    "api_key: ": "api_key: ",
    'token="': 'token="',
    "secret='": "secret='",
    "passwords in quotes": 'password="x9Yz-',
    "brackets [": "[",
    "brackets []": "[]",
    "parentheses (": "(",
    "braces {": "{",
    "quotes": '"',
    "single quotes": "'",
    "backticks": "`",
    "<": "<",
    "< /": "</",
    "<a ": "<a ",
    "<password>": "<password>",
    "&": "&",
    "&amp;": "&amp;",
    "\\": "\\",
    "\\n escaped": "\\n",
    '\\"': '\\"',
    "\\u0041": "\\u0041",
    "\\x41": "\\x41",
    "zero width space": "\u200b",
    "zero width joined": "a\u200b",
    "soft hyphens": "a\xad",
    "joiners": "\u200d",
    "combining": "\u0301",
    "combining two classes": "\u0301\u0316",
    "combining on letters": "e\u0301",
    "zalgo": "a" + 10 * "\u0301\u0316\u0334\u035c",
    "bidi": "\u202e",
    "bidi both": "a\u202eb\u202c",
    "isolates": "\u2066x\u2069",
    "variation selectors": "\ufe0f",
    "tags": "\U000e0041",
    "BEGIN key": "-----BEGIN RSA PRIVATE KEY-----\n",
    "BEGIN": "-----BEGIN ",
    "dashes": "-",
    "BEGIN and base64": KEY + 3 * "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n",
    "half JWT": "eyJhbGciOiJIUzI1NiJ9.",
    "eyJ": "eyJ",
    "JWT pieces": "eyJhbGciOiJIUzI1NiJ9.eyJ",
    "sk-": "sk-",
    "sk-ant-": "sk-ant-",
    "ghp_": "ghp_",
    "AKIA": "AKIA",
    "xoxb-": "xoxb-",
    "AIza": "AIza",
    "a=b&c=d": "a=b&c=d&",
    "token=b&": "token=b&",
    "?sig=": "?sig=",
    "spaces": " ",
    "tabs": "\t",
    "newlines": "\n",
    "CRLF": "\r\n",
    "CR": "\r",
    "NUL": "\x00",
    "surrogates": "\ud83d",
    "low surrogates": "\udc00",
    "vertical tabs": "\x0b",
    "form feeds": "\x0c",
    "line separators": "\u2028",
    "nbsp": "\xa0",
    "ideographic spaces": "\u3000",
    "family emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
    "emoji": "\U0001f600",
    "flags": "\U0001f1e9\U0001f1ea",
    "keycaps": "1\ufe0f\u20e3",
    "digits": "7",
    "dots": ".",
    "commas": ",",
    "colons": ":",
    "semicolons": ";",
    "hex": "deadbeef0123",
    "one letter": "a",
    "one capital": "A",
    "underscores": "_",
    "equals": "=",
    "slashes": "/",
    "pipes": "|",
    "hashes": "#",
    "stars": "*",
    "at": "@",
    "dollars": "$",
    "percent": "%",
    "%41": "%41",
    "plus": "+",
    "tilde": "~",
    "question": "?",
    "!": "!",
    "URL userinfo": "https://user:pass@",
    "URL user": "https://user",
    "://": "://",
    "://a:": "://a:",
    "curl -H": "curl -H 'A: b' ",
    "curl": "curl ",
    "curl -u": "curl -u ",
    "mysql": "mysql -p",
    "mysql words": "mysql a ",
    "docker login": "docker login ",
    "sshpass": "sshpass -p ",
    "echo": "echo a | ",
    "echo words": "echo x ",
    "sudo": "echo a | sudo ",
    "machine": "machine a ",
    "machine login": "machine a login b ",
    "export": "export A=",
    "export lines": "export X=1\n",
    "env": "ENV A ",
    "--password": "--password ",
    "--option": "--",
    "setx": "setx A B\n",
    "XML entities": "&lt;",
    "CDATA": "<![CDATA[",
    "attributes": '<a name="b" ',
    "markdown links": "[a](b) ",
    "markdown images": "![a](",
    "headings": "## ",
    "heading lines": "# Part 1\n## Said by the user\n- a\n",
    "our summary line": f"{SUMMARY_LINE}\n\n",
    "our note": f"{NOTE}{NOTE_ARCHIVED})\n",
    "notes mark": "\n(notes #123456)\n",
    "clip pointer": MARK.format(left_out=1_000, whole=2_000, pointer=f"{POINTER}abc12345") + "\n",
    "citations": "[abc12345] ",
    "citations many": "[a, b, c] ",
    "bullets": "- a [b]\n",
    "counted calls": "(3 more calls: read 3)\n",
    "CJK": "\u6570\u636e\u5e93\u8fde\u63a5\u5931\u8d25\u8bf7\u68c0\u67e5\u914d\u7f6e",
    "one Han": "\u4e2d",
    "Kana": "\u30c7\u30fc\u30bf\u30d9\u30fc\u30b9",
    "Hangul": "\ub370\uc774\ud130\ubca0\uc774\uc2a4",
    "password Han": "\u5bc6\u7801",
    "password Han is": "\u5bc6\u7801\u662f",
    "Thai": "\u0e10\u0e32\u0e19\u0e02\u0e49\u0e2d\u0e21\u0e39\u0e25\u0e44\u0e21\u0e48\u0e1e\u0e1a",
    "Devanagari": "\u0921\u0947\u091f\u093e\u092c\u0947\u0938",
    "Arabic": "\u0642\u0627\u0639\u062f\u0629",
    "Hebrew points": "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd",
    "Tibetan": "\u0f56\u0f7c\u0f51\u0f0b",
    "Cyrillic": "\u0431\u0430\u0437\u0430 \u0434\u0430\u043d\u043d\u044b\u0445 ",
    "\u043f\u0430\u0440\u043e\u043b\u044c": "\u043f\u0430\u0440\u043e\u043b\u044c ",
    "ligature": "\ufdfa",
    "compat": "\ufb03",
    "fullwidth": "\uff21",
    "Angstrom": "\xc5",
    "Jamo": "\u1100\u1161\u11a8",
    "roles": "user:\n",
    "System:": "System: ",
    "im_start": "<|im_start|>",
    "tags ours": "</message>",
    "[INST]": "[INST]",
    "role heads": "> - * ",
    "numbered": "1. ",
    "nested quotes": "> ",
    "CamelCase": "CamelCase",
    "camel words": "getUserName ",
    "snake": "snake_case_",
    "paths": "/usr/lib/",
    "windows paths": "C:\\Users\\",
    "versions": "1.2.3.",
    "uuid": "123e4567-e89b-12d3-a456-426614174000 ",
    "table": "| a | b ",
    "table rows": "| Password | x |\n",
    "csv": "a,b,c\n",
    "numbers": "123 ",
    "floats": "1.5e10,",
    "diff": "+ a\n- b\n",
    "log": "2024-01-01 00:00:00 INFO a\n",
    "ANSI": "\x1b[31m",
    "data:": "data:image/png;base64,",
    "set-cookie": "Set-Cookie: a=",
    "cookie pairs": "cookie: a=b; ",
    "cookie chain": "cookie: ",
    "authorization": "Authorization: Bearer ",
    "auth": "auth:",
    "bearer": "bearer ",
    "basic": "basic YTpi ",
    "name value": "name: password, value: ",
    "is": "password is ",
    "for the": "password for the ",
    "setPassword(": 'setPassword("',
    "f(": "f(",
    "x)": ")",
    "identified": "identified by ",
    "%3D": "password%3D",
    "=>": "password=>",
    "::": "a::b",
    "**": "**password:** ",
    "quoted answers": '"a": ',
    "sess": "session_id=",
    "mongo": "mongo a ",
    "redacted marks": "[redacted: password] ",
    "${": "${A",
    "{{": "{{a}} ",
    "redact values": "password=hunter2xY ",
    "tool call tags": "<tool_call>",
    "answer [": "[a",
    "\u201c": "\u201c",
    "\u300c": "\u300c",
    "AccountKey": "AccountKey=",
    "x-amz": "X-Amz-Signature=",
    "8Q~": "abc8Q~",
    "discord": "M.a",
    "telegram": "1234567890:AA",
    "v1": ".atlasv1.",
    "-us": "a-us1",
    "pwd": "pwd pwd ",
    "private key data": "client-key-data: ",
    "PuTTY": "PuTTY-User-Key-File-2:",
    "PRIVATE KEY": "PRIVATE KEY",
    "todo": '{"todos": [',
    "error:": "error: ",
    "exit code": "exit code 1\n",
    "<tag>v</tag>": "<a>b</a>",
    "<tag>\\n": "<a>\n",
    "json lines": '{"a": 1}\n',
    "question marks": "? ",
    "paragraphs": "a\n\n",
    "ends": "}, ",
    "arrows": "\u2192",
    "boxes": "\u2500",
    "braille": "\u283f",
    "math": "\U0001d49c",
    "numbers circled": "\u2460",
}
"""Texts that are repeated."""

KINDS: Mapping[str, Make] = {name: repeated(unit) for name, unit in UNITS.items()} | {
    "base64": drawn(BASE64),
    "base64 in small letters": drawn(BASE64[26:]),
    "hexadecimal digits": drawn("0123456789abcdef"),
    "decimal digits": drawn(string.digits),
    "punctuation": drawn(string.punctuation),
    "signs and letters": drawn("ab=:\"' \n<>&\\[]{}"),
    "bytes": drawn("".join(map(chr, range(256)))),
    "characters": drawn("".join(map(chr, range(0x20, 0x3000)))),
    "combining characters": drawn("a\u0301\u0316\u0334\u0345\u05b0\u0f71\u3099"),
    "JSON of many keys": data(lambda count: {f"k{n}": n for n in range(count)}, 14),
    "JSON of secrets": data(lambda count: {f"password_{n}": f"v{n}xY" for n in range(count)}, 30),
    "JSON numbers": data(lambda count: list(range(count)), 8),
    "JSON records": data(lambda count: [{"id": n, "name": f"n{n}"} for n in range(count)], 28),
    "JSON records of odd columns": data(lambda count: [{f"c{n}": n} for n in range(count)], 20),
    "JSON texts": data(lambda count: ["x" * 10] * count, 14),
    "JSON wide and nested": data(
        lambda count: {f"k{n}": {"a": [1, {"b": n}]} for n in range(count)}, 40
    ),
    "deep lists": nested("[", "]"),
    "deep objects": nested('{"a":', "}", "1"),
    "deep parentheses": nested("(", ")"),
    "deep tags": nested("<a>", "</a>"),
    "JSON in JSON": escaped,
    "one line": lambda size: prose(size).replace("\n", " "),
    "different words": numbered("w{}xyz", " "),
    "different keys": numbered("KEY_{0}=v{0}"),
    "different passwords": numbered("password{0}=aB{0}xyz!"),
    "base64 in lines": lambda size: lines(drawn(BASE64)(size), 76)[:size],
    "a key that never ends": lambda size: (KEY + lines(drawn(BASE64)(size), 64))[:size],
    "a quote and escapes": lambda size: ('password="' + "\\" * size)[:size],
    "a quote that never closes": lambda size: ('password="' + "a " * size)[:size],
    "one command": lambda size: ("curl " + "-H a " * size)[:size],
    "long words": repeated("x" * 79 + "Y "),
}
"""All of them by name."""
