"""Judge names and values: what names a secret, and what is one, not a placeholder, a type or code.

Of a name the last words decide: `DB_PASSWORD` names a password, `password_file` a path, and
`max_tokens` a number.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

REMEMBERED = 200  # most characters of a value whose kind is remembered
LAST = 120  # characters of a name that are judged

WORDS = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
"""Words of a name in any case style."""

PASSWORDS = frozenset(
    "password passwort passwd passphrase passcode pwd pass contraseña contrasena contrasenya"
    " пароль motdepasse passe sshpass".split()
)
LABELS = {
    "password": "密码 密碼 口令 パスワード 비밀번호 패스워드 암호".split(),
    "token": "令牌 权杖 權杖 トークン 토큰".split(),
    "secret": "密钥 密鑰 秘钥 金钥 金鑰 シークレット シークレットキー 시크릿 비밀키".split(),
    "api-key": "apiキー アクセスキー api키 액세스키".split(),
    "key": "私钥 私鑰 秘密鍵 秘密キー 개인키".split(),
}
"""Names in Chinese, Japanese and Korean, by kind. There the end of a name decides, without a space
before it: `数据库密码`."""
_ENDINGS = ("password", "passwd", "passphrase", "passwort", "пароль")
_PUBLIC = ("公开密钥", "公共密钥", "公開密鑰", "公有密钥")
_KEYS = frozenset(
    "api access account private encryption signing shared master auth service storage deploy"
    " webhook hmac jwt fernet session secret client preshared subscription".split()
)
_NO_SECRET_TOKEN = frozenset(
    """max min num n next prev page continuation pad eos bos unk sep mask cls special stop prompt
    completion input output cancellation cancel start end last first current previous sync total
    csrf xsrf per count new line op operator keyword string name comment is no the type lookahead
    sub logprob image audio video text text_ special_ target source context vocab word each this
    a one any""".split()
)

Written = Literal["quoted", "shell", "bare"]
"""How a value stands: in quotes, where it is no variable; in `NAME=value` of a shell or an address,
where a word needs no quotes; or bare, where it could be a type, a variable or prose."""

_PLACEHOLDERS = frozenset(
    """your my the some a an insert enter put replace change changeme example sample dummy fake
    mock placeholder todo tbd secret password passwd passphrase passwort pass pwd token tokens api
    key keys apikey access auth client private here me this with value string str text int integer
    number bool boolean bytes none null nil undefined true false yes no required optional missing
    invalid incorrect wrong correct empty unset set not is are was be must should can of in to for
    and or on from by if it default prompt hidden env environment variable var config settings self
    user username name email new old current db database login foo bar baz test testing redacted
    masked removed omitted hash hashed encrypted plain plaintext field input type url id any object
    list dict optionalstr secretstr final charfield textfield stringfield form func function def
    return lambda async await bearer basic authorization header headers read write admin root only
    more less than strength confirm confirmation reset forgot forgotten change changed expired valid
    validator check length session public mysecret mypassword yourpassword guest anonymous error
    failed failure success support generated random unknown blank ignored repeat again""".split()
)
_TEMPLATE = re.compile(
    r"\A(?:<.*>|\$\{.*|\$\(.*|\$[A-Za-z_]\w*|\{\{.*|\{[\w.!:\[\]'\"]*\}|%[sdr]|%\(\w+\)s|%\w+%"
    r"|[*xX•·.…_#?-]+|@\w+@|__\w+__|#\{.*)\Z",
    re.DOTALL,
)
MARKS = re.compile(r"\[redacted: [a-z0-9-]{1,40}\]|\$\{[^{}]{0,200}\}|\{\{[^{}]{0,200}\}\}")
"""Marks of a redactor, and variables: what stands behind them is judged without them."""

_CODE = re.compile(r"\A[A-Za-z_]\w*+(?:(?:\.|->|::)[A-Za-z_]\w*+)+\Z")
_ALGORITHM = re.compile(
    r"\A(?:base|sha|md|utf|aes|rot|hs|rs|argon|pbkdf|bcrypt)-?\d", re.IGNORECASE
)
_PATH = re.compile(r"\A(?:[A-Za-z]:\\|\.{0,2}/|~/|[a-z]+://)")
_DIGIT, _LETTER = re.compile("[0-9]"), re.compile("[A-Za-z]")
_DIGITS = "0123456789"
_SIGN = re.compile("[^A-Za-z0-9_.:/-]")  # of ASCII
_DIGIT_INSIDE = re.compile(r"\d[A-Za-z]")
_DIVIDERS = re.compile("[_.:/,-]")
_HUMPS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_TYPE = re.compile(r"(?:Key|Token|Secret|Password|Credential)(?:s|Types?)?\Z")
_NO_SECRET_KEY = frozenset(
    """PUBLIC PUB PUBLISHABLE ANON PRIMARY FOREIGN PARTITION SORT CACHE OBJECT S3 INDEX ROW GROUP
    REGISTRY HOST LOOKUP IDEMPOTENCY DEDUP SITE BUILD COMMIT VERSION FILE PATH STORE UNIQUE
    NATURAL ROUTING HASH RANGE GPG PGP MESSAGE REDIS CONFIG""".split()
)


class Secret(NamedTuple):
    """A secret's begin, end and kind, and the quotes that its replacement needs in JSON."""

    begin: int
    end: int
    kind: str
    quotes: str = ""


def named_kind(name: str) -> str | None:
    """Return the kind of secret under a name, such as `password`, or None.

    Example:
        >>> named_kind("DB_PASSWORD"), named_kind("max_tokens"), named_kind("clientSecret")
        ('password', None, 'secret')
    """
    return _kind_under(name[-LAST:].rstrip(_DIGITS))


def may_name(name: str) -> bool:
    """Return whether any value under a name may be a secret; see `secret_kind`."""
    return name.endswith("_KEY") or _may_end(name[-LAST:].rstrip(_DIGITS))


@lru_cache(1_024)
def _may_end(end: str) -> bool:
    return "pass" in end.lower() or _kind_under(end) is not None


@lru_cache(1_024)  # numbered names are one without their numbers, which say nothing
def _kind_under(end: str) -> str | None:
    words = [word.lower() for word in WORDS.findall(end)]
    while words and (words[-1].isdigit() or words[-1] in ("value", "plain", "plaintext", "raw")):
        words.pop()
    last, before = ["", "", *words][-1], ["", "", *words][-2]
    if not last.isascii():
        ending = "".join(words[-3:])
        kinds = [kind for kind, ends in LABELS.items() if ending.endswith(tuple(ends))]
        if kinds:
            return None if ending.endswith(_PUBLIC) else kinds[0]
    if last in PASSWORDS or last.endswith(_ENDINGS):
        return "password" if last != "pass" or before else None
    if last.endswith("secret") or (last == "base" and words[-3:-1] == ["secret", "key"]):
        return "secret"
    if last.endswith("token"):
        return None if (before or last.removesuffix("token")) in _NO_SECRET_TOKEN else "token"
    if last == "key" and before in _KEYS:
        return "secret" if before == "secret" else "api-key" if before in ("api", "x") else "key"
    if last.endswith("apikey") or last in ("secretkey", "accesskey", "privatekey", "accountkey"):
        return "api-key"
    return "private-key" if last == "data" and words[-3:-1] == ["client", "key"] else None


def has_digit(value: str) -> bool:
    """Return whether a character of it is a digit."""
    return bool(_DIGIT.search(value)) if value.isascii() else any(map(str.isdigit, value))


def has_letter(value: str) -> bool:
    """Return whether a character of it is a letter."""
    return bool(_LETTER.search(value)) if value.isascii() else any(map(str.isalpha, value))


def _has_sign(value: str) -> bool:
    if value.isascii():
        return _SIGN.search(value) is not None
    return any(not c.isalnum() and c not in "_-.:/" for c in value)


def mixed(value: str) -> bool:
    """Return whether it has letters and digits, unlike a plain word or number."""
    return has_digit(value) and has_letter(value)


def scattered(value: str) -> bool:
    """Return whether it has digits and letters of both cases, or of one and a sign.

    Example:
        >>> scattered("Zx9kq"), scattered("zx9#q"), scattered("step-2"), scattered("Step")
        (True, True, False, False)
    """
    if not mixed(value):
        return False
    signs = any(not c.isalnum() and c not in "_-.:/ %()[]," for c in value)
    return signs or value.lower() != value != value.upper()


def secret_kind(name: str, value: str, written: Written) -> str | None:
    """Return the kind of a secret under a name, or None if the value is none.

    Args:
        name: what the value stands under.
        value: without quotes.
        written: how it stands there.

    Example:
        >>> secret_kind("DB_PASSWORD", "swordfish", "shell"), secret_kind("token", "str", "bare")
        ('password', None)
    """
    kind = named_kind(name)
    if kind is None:
        return _kind_of_value(name, value, written)
    judge = _remembered_can_be if len(value) <= REMEMBERED else can_be
    return kind if judge(kind, value, written) else None


def _kind_of_value(name: str, value: str, written: Written) -> str | None:
    """Return the kind of a secret under a name that may also name something else."""
    words = [word.lower() for word in WORDS.findall(name)]
    if words == ["pass"]:  # it may also be a result of a test
        sure = len(value) >= 6 and scattered(value) and can_be("password", value, written)
        return "password" if sure else None
    parts = name.split("_")
    if name.isupper() and parts[-1] == "KEY" and parts[:-1] and parts[-2] not in _NO_SECRET_KEY:
        digits, letters = sum(map(str.isdigit, value)), sum(map(str.isalpha, value))
        made = len(value) >= 16 and digits >= 3 and letters >= 3 and can_be("key", value, written)
        return "key" if made else None
    return None


def without_marks(value: str) -> str:
    """Return a value without marks of a redactor and variables."""
    return MARKS.sub("", value) if "[redacted: " in value or "{" in value else value


def is_placeholder(value: str) -> bool:
    """Return whether it stands for a missing value, as `<password>` or `YOUR_API_KEY`."""
    value = without_marks(value)
    if len(value) > 200:
        return False
    if not value or _TEMPLATE.match(value):
        return True
    if value.isalpha() and any(word in value.lower() for word in ("passwor", "passwd")):
        return True  # `testpassword`
    letters = 0  # words that are no numbers
    for match in WORDS.finditer(value):
        word = match[0].lower()
        if word.isdigit():
            continue
        if word not in _PLACEHOLDERS and word.strip("x"):
            return False
        letters += 1
    if not letters:
        return not has_digit(value)
    digits = "".join(filter(str.isdigit, value))
    return len(digits) <= 3 and (digits in "0123" or letters > 1)


def can_be(kind: str, value: str, written: Written) -> bool:
    """Return whether a value can be a secret of this kind."""
    value = without_marks(value)
    if not value or is_placeholder(value):
        return False
    words = value.split()
    if len(words) > 1 and written == "quoted" and kind == "password":
        return any(len(word) >= 6 and scattered(word) for word in words)
    size = len(value)
    if size < 4 or len(words) > 1 or _is_path(value):
        return False
    bare = written == "bare"
    digit = has_digit(value)
    may_be_code = bare or (written == "shell" and not digit)
    if may_be_code and not value.isalnum() and _CODE.match(value):
        return False
    if bare and (_ALGORITHM.match(value) or _is_prose(value)):
        return False
    if kind == "password":
        return (digit or not bare or _has_sign(value)) and not _names_a_secret(value)
    letter = has_letter(value)
    if kind == "secret":
        told_apart = (digit and letter) or _has_sign(value)
        return size >= (8 if bare else 6) and told_apart and not _is_prose(value)
    if kind == "private-key":
        return size >= 40
    # Tokens and keys are made by machines.
    if _is_worded(value) or "{" in value or (bare and _TYPE.search(value)):
        return False
    if digit and letter:
        return size >= (12 if bare else 8)
    return size >= 20 and letter and value.lower() != value != value.upper()


_remembered_can_be = lru_cache(1_024)(can_be)  # texts repeat what they assign


def _is_path(value: str) -> bool:
    """Return whether it is a path, not base64 that begins with a slash."""
    if not _PATH.match(value) or value[-1] == "=":
        return False
    return not any(
        len(part) >= 7 and scattered(part) and _DIGIT_INSIDE.search(part)
        for part in value.split("/")
    )


def _is_prose(value: str) -> bool:
    """Return whether it could be words, a version, a date, or the end of a sentence."""
    if value[-1] in ".:?!" and value[:-1].isalpha():
        return True
    parts = _DIVIDERS.split(value.strip(".,:;!?()*_`'\""))
    if len(parts) == 1:
        return False
    short = all(part.isalpha() or not part or (part.isdigit() and len(part) < 4) for part in parts)
    return short or all(map(str.isdigit, parts))


def _is_worded(value: str) -> bool:
    """Return whether it consists of words, as `gpt-4o-mini` or `TextStreamOutputToken`."""
    parts = re.split(r"[_.-]", value)
    if len(parts) > 1:
        return all(p.isalpha() or (p.isdigit() and len(p) < 4) or len(p) < 4 for p in parts)
    humps = _HUMPS.findall(value) if value.isalpha() and len(value) < 120 else []
    return len(humps) >= 3 and min(map(len, humps)) >= 2 and sum(map(len, humps)) >= 4 * len(humps)


def _names_a_secret(value: str) -> bool:
    """Return whether it only names a secret, as `new_password1` does."""
    if "_" not in value and "-" not in value:
        return False
    words = [word.lower() for word in WORDS.findall(value)]
    named = any(word in PASSWORDS or word in ("token", "secret") for word in words)
    return named and sum(map(str.isdigit, value)) < 3
