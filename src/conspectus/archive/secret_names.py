"""Secrets that are told by the name before them: `password: ...`, `API_KEY=...`, `--token ...`.

A name says what its last words say: `DB_PASSWORD` holds a password, `password_file` a path and
`max_tokens` a number. A value is a secret if it can be one: no placeholder, no type, no variable,
no call, no sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Found = tuple[int, int, str, str]
"""Begin, end and kind of a secret in a text, and the quotes that what replaces it needs."""

_KEYWORDS = (
    "passw passphrase passcode pwd secret token key pass contrase"
    " 密码 口令 密钥 パスワード 비밀번호 пароль"
).split()
"""One of these stands in every name that tells of a secret."""

_LONGEST_NAME = 60
_RIGHT = re.compile(r"[\w-]{0,80}")
_WORDS = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")

_SEPARATOR = re.compile(
    r"""(?P<close>\\{0,8}["'`])?(?P<gap>\s{0,4})(?:\]\s{0,2})?"""
    r"""(?:(?P<typed>:\s{0,2}[A-Za-z_][\w.\[\]| ]{0,40}?\s{0,2}=(?!=))"""
    r"""|(?P<sign>=>|:=|={1,3}(?![=~])|:(?!:)|：|%3[Aa]|%3[Dd]))(?P<after>[ \t]{0,8})"""
)
_SAID = re.compile(
    r"""\s{1,4}(?:(?:for|of|to|on|at|in)\s[^\n.,;:!?"'=]{1,60}?\s)?"""
    r"""(?:is|was|lautet|ist|war|es|est|è):?[ \t]{1,4}"""
)
"""A sentence: `the password for staging is ...`."""

QUOTE = re.compile(r"""[bBrRfFuU]{0,2}(?P<quote>\\{0,8}(?:\"\"\"|'''|["'`]))""")
_LINE = re.compile(r"""[^\s"'`\\]{1,512}+""")
"""A value to the end of its line, as in an `.env` file."""

_STARTS_LINE = re.compile(r"(?:\A|\n|\\n|\bexport |\bENV |\bset |-e |--env[= ])\s{0,8}\Z")
_BARE = re.compile(
    r"""(?:[^\s"'`,;&|<>(){}\[\]]|(?<=[^\s&])&(?=[^\s"'`,;&|<>(){}\[\]])(?!amp;|[\w.%-]{1,64}=)){1,512}+"""
)
"""A `&` belongs to it unless the next field of an address, or another command, follows."""

_GAP = re.compile(r"(?:[ \t]{1,4}|[\"'],\s{0,4}(?=[\"'])|\\\s?\n\s{0,8})")
"""Between `--password` and its value."""

LONGEST = 4_096
"""Characters of a value in quotes at most."""

PASSWORDS = frozenset(
    "password passwort passwd passphrase passcode pwd pass contraseña contrasena contrasenya"
    " 密码 口令 パスワード 비밀번호 пароль motdepasse passe".split()
)
SECRETS = frozenset("secret 密钥".split())
_KEYS = frozenset(
    "api access account private encryption signing shared master auth service storage deploy"
    " webhook hmac jwt fernet session secret client".split()
)
_NO_SECRET_TOKEN = frozenset(
    """max min num n next prev page continuation pad eos bos unk sep mask cls special stop prompt
    completion input output cancellation cancel start end last first current previous sync total
    csrf xsrf per count new line op operator keyword string name comment is no the type lookahead
    sub logprob image audio video text text_ special_ target source context vocab word each this
    a one any""".split()
)
_PLACEHOLDERS = frozenset(
    """your my the some a an insert enter put replace change changeme example sample dummy fake
    mock placeholder todo tbd secret password passwd passphrase passwort pass pwd token tokens api
    key keys apikey access auth client private here me this with value string str text int integer
    number bool boolean bytes none null nil undefined true false yes no required optional optionally
    missing invalid incorrect wrong correct empty unset set not is are was be must should can of in
    to for and or on from by if it default prompt hidden env environment variable var config
    settings self user username name email new old current db database login foo bar baz qux test
    testing redacted masked removed omitted hash hashed encrypted plain plaintext field input type
    varchar char file path url id any object list dict tuple optionalstr secretstr final field
    charfield textfield stringfield form forms func function method class def return lambda async
    await bearer basic authorization header headers read write admin root only more less than
    strength confirm confirmation confirmed reset forgot forgotten change changed expired expires
    valid validator validators validation check length minlength maxlength match matches mismatch
    session public secretkey mysecret mypassword yourpassword pw guest anonymous ok error failed
    failure success support generated generate generator random randomly unknown blank ignored
    repeat again via using use used""".split()
)
_TYPES = frozenset("str int bool bytes float any none null true false undefined string".split())
_TEMPLATE = re.compile(
    r"\A(?:<.*>|\$\{.*|\$\(.*|\$[A-Za-z_]\w*|\{\{.*|\{[\w.!:\[\]'\"]*\}|%[sdr]|%\(\w+\)s|%\w+%"
    r"|\[redacted: [a-z0-9-]+\]|[*xX•·.…_#?-]+|@\w+@|__\w+__|#\{.*)\Z",
    re.DOTALL,
)
STANDS_FOR = re.compile(r"\[redacted: [a-z0-9-]{1,40}\]|\$\{[^{}]{0,200}\}|\{\{[^{}]{0,200}\}\}")
_CODE = re.compile(r"\A[A-Za-z_]\w*+(?:(?:\.|->|::)[A-Za-z_]\w*+)+\Z")
_ALGORITHM = re.compile(r"\A(?:base|sha|md|utf|aes|des|argon|rot|hs|rs)-?\d{1,4}\Z", re.IGNORECASE)
"""How something is written: `the password is base64`."""
_PATH = re.compile(r"\A(?:[A-Za-z]:\\|\.{0,2}/|~/|[a-z]+://)")


def named_kind(name: str) -> str | None:
    """What kind of secret stands under a name: `password`, `secret`, or None for no secret.

    Example:
        >>> named_kind("DB_PASSWORD"), named_kind("max_tokens"), named_kind("clientSecret")
        ('password', None, 'secret')
    """
    words = [word.lower() for word in _WORDS.findall(name[-120:])]
    while words and (words[-1].isdigit() or words[-1] in ("value", "plain", "plaintext", "raw")):
        words.pop()
    if not words:
        return None
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in PASSWORDS or last.endswith(
        ("password", "passwd", "passphrase", "passwort", "пароль")
    ):
        return "password" if last != "pass" or before or name[:1] in "\"'" else None
    if last in SECRETS or last.endswith(("secret", "密钥")):
        return "secret"
    if last == "base" and words[-3:-1] == ["secret", "key"]:
        return "secret"
    if last.endswith("token"):
        told = before or last.removesuffix("token")
        return None if told in _NO_SECRET_TOKEN else "token"
    if last == "key" and before in _KEYS:
        return "secret" if before == "secret" else "api-key" if before in ("api", "x") else "key"
    if last.endswith("apikey") or last in ("secretkey", "accesskey", "privatekey", "accountkey"):
        return "api-key"
    if last == "data" and words[-3:-1] == ["client", "key"]:
        return "private-key"
    return None


def placeholder(value: str) -> bool:
    """Whether it stands for a value that is not there: `<password>`, `YOUR_API_KEY`."""
    if len(value) > 200:
        return False
    if _TEMPLATE.match(value):
        return True
    words = [word.lower() for word in _WORDS.findall(value)]
    letters = [word for word in words if not word.isdigit()]
    if not letters:
        return not any(c.isdigit() for c in value)
    digits = "".join(word for word in words if word.isdigit())
    if value.isalpha() and any(word in value.lower() for word in ("passwor", "passwd")):
        return True  # `testpassword`
    known = all(word in _PLACEHOLDERS or set(word) == {"x"} for word in letters)
    return known and len(digits) <= 3 and (not digits or digits in "0123" or len(letters) > 1)


def can_be(kind: str, value: str, quoted: bool, shell: bool) -> bool:
    """Whether a value can be a secret of this kind.

    Args:
        kind: as `named_kind` has it.
        value: without its quotes.
        quoted: it stood in quotes, so it is no variable and no type.
        shell: it stood in a line such as `NAME=value` of a shell, where words need no quotes.
    """
    if placeholder(value):
        return False
    value = STANDS_FOR.sub("", value)  # marks of ours, and variables, hide nothing behind them
    size = len(value)
    if size < 4 or placeholder(value) or any(c.isspace() for c in value.strip()):
        return False
    if _PATH.match(value) or (not quoted and _ALGORITHM.match(value)):
        return False
    digit = any(c.isdigit() for c in value)
    letter = any(c.isalpha() for c in value)
    sign = any(not c.isalnum() and c not in "_-.:/" for c in value)
    if kind == "password":
        if not quoted and not shell:
            # Bare, it could be a variable, a type or prose.
            return (digit or sign) and not _CODE.match(value) and _ends_plain(value)
        if not quoted and _CODE.match(value):
            return False
        return not _is_identifier_of_secret(value)
    if not quoted and _CODE.match(value):
        return False
    if kind == "secret":
        return size >= 6 and ((digit and letter) or sign) and _ends_plain(value)
    # Tokens and keys are made by machines.
    if kind == "private-key":
        return size >= 40
    if not (digit and letter):
        cases = value.lower() != value != value.upper()
        return size >= 20 and letter and cases and not _worded(value)
    return size >= (8 if quoted or shell else 12) and not _worded(value)


def _ends_plain(value: str) -> bool:
    """No sentence, no code: `word.` and `word:` end a sentence or open a block."""
    return value[-1] not in ".:?!" or sum(not c.isalpha() for c in value) > 1


def _worded(value: str) -> bool:
    """Whether it is a name made of words, such as `token_2_end` or `gpt-4o-mini`."""
    if "_" not in value and "-" not in value and "." not in value:
        return False
    parts = re.split(r"[_.-]", value)
    return all(
        part.isalpha() or (part.isdigit() and len(part) < 4) or len(part) < 4 for part in parts
    )


def _is_identifier_of_secret(value: str) -> bool:
    """Whether it only names what it would be, such as `new_password1` or `id_password`."""
    words = [word.lower() for word in _WORDS.findall(value)]
    named = any(word in PASSWORDS or word in ("token", "secret") for word in words)
    return named and ("_" in value or "-" in value) and sum(map(str.isdigit, value)) < 3


def named_secrets(text: str, lower: str) -> Iterator[Found]:
    """Secrets that are told by the name before them.

    Args:
        text: what is searched.
        lower: the same in lower case, each character in its place.
    """
    done = 0
    for at in _keywords(lower):
        if at < done:
            continue
        begin = at
        least = max(done, at - _LONGEST_NAME)
        while begin > least and (text[begin - 1].isalnum() or text[begin - 1] in "_.-"):
            begin -= 1
        rest = _RIGHT.match(text, at)
        end = rest.end() if rest else at
        name = text[begin:end]
        kind = named_kind(name)
        done = end
        if kind is None:
            continue
        value = _value_of(text, begin, end, kind, name)
        if value is not None:
            yield value
            done = value[1]


def _keywords(lower: str) -> list[int]:
    places = set()
    for word in _KEYWORDS:
        at = lower.find(word)
        while at >= 0:
            places.add(at)
            at = lower.find(word, at + len(word))
    return sorted(places)


def _value_of(text: str, begin: int, end: int, kind: str, name: str) -> Found | None:
    flag = name.startswith("--") or text[max(0, begin - 2) : begin] == "--"
    sign = _SEPARATOR.match(text, end)
    if sign is None:
        return _flagged(text, end, kind) if flag else _said(text, end, kind)
    at = sign.end()
    if (sign["sign"] or "").startswith("==") and kind != "password":
        return None  # code that compares
    plain = sign["sign"] in ("=", "%3D", "%3d") and not sign["gap"] and not sign["after"]
    lined = plain and name.isupper() and _STARTS_LINE.search(text, max(0, begin - 24), begin)
    quote = QUOTE.match(text, at)
    if quote is not None:
        start = quote.end()
        stop = closing(text, start, quote["quote"])
        if stop is None:
            return None
        value = text[start:stop]
        if lined and kind == "secret" and value.isalnum():
            return (start, stop, kind, "") if can_be("password", value, True, False) else None
        if "passphrase" in name.lower() and not placeholder(value):
            value = value.replace(" ", "-")  # several words are no sentence there
        if lined and kind == "password":
            value = value.replace(" ", "-")
        return (start, stop, kind, "") if can_be(kind, value, True, False) else None
    if (sign["sign"] or "").startswith("=="):
        return None
    bare = (_LINE if lined else _BARE).match(text, at)
    if bare is None:
        return None
    value, stop = bare.group(), bare.end()
    while value and value[-1] in "\\":
        value, stop = value[:-1], stop - 1
    if (cut := re.search(r"\\+[nrt]", value)) is not None:  # a line ends there, in JSON
        value, stop = value[: cut.start()], at + cut.start()
    if not value or text[stop : stop + 1] in ("(", "["):  # a call, an element
        return None
    if sign["close"] is not None:
        # A name in quotes and a bare value, as in JSON: a number may be a password.
        number = kind == "password" and value.isdigit() and len(value) >= 4
        return (at, stop, kind, sign["close"]) if number else None
    shell = (
        plain and (name.isupper() or flag or text[max(0, begin - 1) : begin] in ("?", "&"))
    ) or (sign["sign"] == "=" and _in_connection_string(text, begin))
    return (at, stop, kind, "") if can_be(kind, value, False, shell) else None


def _in_connection_string(text: str, begin: int) -> bool:
    """Whether a name stands after a semicolon, as in `Server=db;Password=...`."""
    return (
        text[max(0, begin - 2) : begin].rstrip().endswith(";")
        and "=" in text[max(0, begin - 80) : begin]
    )


def _flagged(text: str, end: int, kind: str) -> Found | None:
    """The value of `--password value`."""
    gap = _GAP.match(text, end)
    if gap is None:
        return None
    quote = QUOTE.match(text, gap.end())
    if quote is not None:
        stop = closing(text, quote.end(), quote["quote"])
        value = "" if stop is None else text[quote.end() : stop]
        if stop is not None and can_be(kind, value, True, False):
            return quote.end(), stop, kind, ""
        return None
    bare = _BARE.match(text, gap.end())
    if bare is None or bare.group().startswith("-"):
        return None
    return (
        (bare.start(), bare.end(), kind, "") if can_be(kind, bare.group(), False, False) else None
    )


def _said(text: str, end: int, kind: str) -> Found | None:
    """The value in a sentence such as `the password is ...`."""
    gap = _SAID.match(text, end)
    if gap is None:
        return None
    quote = QUOTE.match(text, gap.end())
    if quote is not None and quote["quote"]:
        stop = closing(text, quote.end(), quote["quote"])
        if stop is not None and can_be(kind, text[quote.end() : stop], True, False):
            return quote.end(), stop, kind, ""
        return None
    bare = _BARE.match(text, gap.end())
    value = bare.group().partition("\\")[0].rstrip(".:!?") if bare else ""
    fits = value and can_be(kind, value, False, False)
    return (gap.end(), gap.end() + len(value), kind, "") if fits else None


def closing(text: str, start: int, quote: str) -> int | None:
    """Where a value in quotes ends; within `LONGEST` characters, and one line."""
    limit = min(len(text), start + LONGEST)
    at = start
    mark, escaped = quote[-1:], quote.count("\\")
    while True:
        at = text.find(quote, at, limit)
        if at < 0:
            return None
        backslashes = 0
        while at - 1 - backslashes >= start and text[at - 1 - backslashes] == "\\":
            backslashes += 1
        if (not escaped and backslashes % 2 == 0) or (escaped and backslashes == 0) or not mark:
            break
        at += len(quote)
    return None if "\n" in text[start:at] else at


def can_be_password(value: str) -> bool:
    """Whether a bare word after `the password is` can be one: no plain word, no variable.

    Example:
        >>> can_be_password("Geheim123"), can_be_password("required"), can_be_password("sha256")
        (True, False, False)
    """
    return can_be("password", value, False, False)


def value_kind(name: str, value: str) -> str | None:
    """What kind of secret a value is that stands by itself under a name, as in a dict."""
    kind = named_kind(name)
    if kind == "password" and name.isupper() and len(value) <= 200 and not placeholder(value):
        value = "-".join(value.split())  # several words are no sentence there
    return kind if kind is not None and can_be(kind, value, True, False) else None
