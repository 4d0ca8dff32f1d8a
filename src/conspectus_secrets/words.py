"""Judge whether a value can be a secret of the kind of its name.

It is one unless it is a placeholder, a type, a variable, a call or a sentence.
"""

from __future__ import annotations

import re

from conspectus.redaction.names import PASSWORDS, WORDS, named_kind

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
_TEMPLATE = re.compile(
    r"\A(?:<.*>|\$\{.*|\$\(.*|\$[A-Za-z_]\w*|\{\{.*|\{[\w.!:\[\]'\"]*\}|%[sdr]|%\(\w+\)s|%\w+%"
    r"|\[redacted: [a-z0-9-]+\]|[*xX•·.…_#?-]+|@\w+@|__\w+__|#\{.*)\Z",
    re.DOTALL,
)
STANDS_FOR = re.compile(r"\[redacted: [a-z0-9-]{1,40}\]|\$\{[^{}]{0,200}\}|\{\{[^{}]{0,200}\}\}")
CODE = re.compile(r"\A[A-Za-z_]\w*+(?:(?:\.|->|::)[A-Za-z_]\w*+)+\Z")
ALGORITHM = re.compile(r"\A(?:base|sha|md|utf|aes|des|argon|rot|hs|rs)-?\d{1,4}\Z", re.IGNORECASE)
"""A way of writing, as in `the password is base64`."""
_PATH = re.compile(r"\A(?:[A-Za-z]:\\|\.{0,2}/|~/|[a-z]+://)")
_DIGIT_INSIDE = re.compile(r"\d[A-Za-z]")
_HUMPS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_CALLED_AFTER = re.compile(r"(?:Key|Token|Secret|Password|Credential)(?:s|Types?)?\Z")
"""Ends of types that are named after their content, such as `X25519PrivateKey`."""

_NO_SECRET_KEY = frozenset(
    """PUBLIC PUB PUBLISHABLE ANON PRIMARY FOREIGN PARTITION SORT CACHE OBJECT S3 INDEX ROW GROUP
    REGISTRY HOST LOOKUP IDEMPOTENCY DEDUP SITE BUILD COMMIT VERSION FILE PATH STORE UNIQUE
    NATURAL ROUTING HASH RANGE GPG PGP MESSAGE REDIS CONFIG""".split()
)
_MACHINE_MADE = re.compile(r"\A(?:base64:)?[A-Za-z0-9_+/=-]{20,}\Z")
_PARTS = re.compile(r"[A-Za-z0-9]{16,}")


def scattered(value: str) -> bool:
    """Return whether it has digits and letters of both cases, or of one and a sign."""
    if not any(map(str.isdigit, value)) or not any(map(str.isalpha, value)):
        return False
    signs = any(not c.isalnum() and c not in "_-.:/ %()[]," for c in value)
    return signs or (value != value.lower() and value != value.upper())


def passes(value: str) -> bool:
    """Return whether it is a password under the name `pass`, which may also be a result."""
    return len(value) >= 6 and can_be("password", value, True, False) and scattered(value)


def env_key(name: str, value: str) -> bool:
    """Return whether `OPENAI_KEY` and the like hold a key made by a machine.

    Example:
        >>> env_key("ACME_KEY", "0f" * 16), env_key("CACHE_KEY", "0f" * 16)
        (True, False)
    """
    words = name.split("_")
    if not name.isupper() or words[-1] != "KEY" or not words[:-1]:
        return False
    if words[-2] in _NO_SECRET_KEY or not _MACHINE_MADE.match(value):
        return False
    run = max(_PARTS.findall(value), key=len, default="")
    many = sum(map(str.isdigit, run)) >= 3 and sum(map(str.isalpha, run)) >= 3
    return many and can_be("key", value, True, False)


def placeholder(value: str) -> bool:
    """Return whether it stands for a missing value, as `<password>` or `YOUR_API_KEY`."""
    if len(value) > 200:
        return False
    if _TEMPLATE.match(value):
        return True
    words = [word.lower() for word in WORDS.findall(value)]
    letters = [word for word in words if not word.isdigit()]
    if not letters:
        return not any(c.isdigit() for c in value)
    digits = "".join(word for word in words if word.isdigit())
    if value.isalpha() and any(word in value.lower() for word in ("passwor", "passwd")):
        return True  # `testpassword`
    known = all(word in _PLACEHOLDERS or set(word) == {"x"} for word in letters)
    return known and len(digits) <= 3 and (not digits or digits in "0123" or len(letters) > 1)


def can_be(kind: str, value: str, quoted: bool, shell: bool) -> bool:
    """Return whether a value can be a secret of this kind.

    Args:
        kind: from `named_kind`.
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
    if _is_path(value) or (not quoted and ALGORITHM.match(value)):
        return False
    digit = any(c.isdigit() for c in value)
    letter = any(c.isalpha() for c in value)
    sign = any(not c.isalnum() and c not in "_-.:/" for c in value)
    if kind == "password":
        if not quoted and not shell:
            # Bare, it could be a variable, a type or prose.
            return (digit or sign) and not CODE.match(value) and _ends_plain(value)
        if not quoted and CODE.match(value):
            return False
        return not _is_identifier_of_secret(value)
    if not quoted and CODE.match(value):
        return False
    if kind == "secret":
        return size >= 6 and ((digit and letter) or sign) and _ends_plain(value)
    # Tokens and keys are made by machines.
    if kind == "private-key":
        return size >= 40
    if _is_type(value) or (not quoted and _CALLED_AFTER.search(value)):
        return False
    if not (digit and letter):
        cases = value.lower() != value != value.upper()
        return size >= 20 and letter and cases and not _worded(value)
    return size >= (8 if quoted or shell else 12) and not _worded(value)


def _is_path(value: str) -> bool:
    """Return whether it is a path, not base64 or a password that begins with a slash."""
    if not _PATH.match(value):
        return False
    if value[:1] != "/" and value[:2] != "~/":
        return True
    return "+" not in value and value[-1] != "=" and not any(map(_is_random, value.split("/")))


def _is_random(part: str) -> bool:
    """Return whether it has letters of both cases, and a digit before a letter."""
    mixed = part.lower() != part != part.upper()
    return len(part) >= 7 and mixed and _DIGIT_INSIDE.search(part) is not None


def _is_type(value: str) -> bool:
    """Return whether it consists of three words or more, as `TextStreamOutputToken`."""
    if not value.isalpha() or len(value) > 120:
        return False
    humps = _HUMPS.findall(value)
    return len(humps) >= 3 and min(map(len, humps)) >= 2 and sum(map(len, humps)) >= 4 * len(humps)


def _ends_plain(value: str) -> bool:
    """Return whether it is no sentence or code, such as `word.` or `word:`."""
    return value[-1] not in ".:?!" or sum(not c.isalpha() for c in value) > 1


def _worded(value: str) -> bool:
    """Return whether it is a name made of words, such as `token_2_end` or `gpt-4o-mini`."""
    if "_" not in value and "-" not in value and "." not in value:
        return False
    parts = re.split(r"[_.-]", value)
    return all(
        part.isalpha() or (part.isdigit() and len(part) < 4) or len(part) < 4 for part in parts
    )


def _is_identifier_of_secret(value: str) -> bool:
    """Return whether it only names a secret, as `new_password1` does."""
    words = [word.lower() for word in WORDS.findall(value)]
    named = any(word in PASSWORDS or word in ("token", "secret") for word in words)
    return named and ("_" in value or "-" in value) and sum(map(str.isdigit, value)) < 3


def value_kind(name: str, value: str) -> str | None:
    """Return the kind of secret of a value alone under a name, as in a dict; None for none."""
    kind = named_kind(name)
    if kind is None:
        if name.lower() == "pass":
            return "password" if passes(value) else None
        if name.lower() in ("cookies", "cookiejar"):
            return "cookie" if len(value) >= 12 and value.isascii() and scattered(value) else None
        return "key" if env_key(name, value) else None
    if kind == "password" and name.isupper() and len(value) <= 200 and not placeholder(value):
        value = "-".join(value.split())  # several words are no sentence there
    return kind if can_be(kind, value, True, False) else None
