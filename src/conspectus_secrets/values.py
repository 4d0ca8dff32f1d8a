"""Judge names and values: which name a secret, and which are one, not a placeholder or code.

The last words of a name decide: `DB_PASSWORD` names a password, `password_file` a path, and
`max_tokens` a number.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

MAX_REMEMBERED = 200  # most characters of a value whose judgement is remembered
JUDGED_OF_NAME = 120  # characters at the end of a name that are judged
JUDGEMENTS = 1_024  # remembered judgements, because texts repeat assignments
LONGEST_PLACEHOLDER = 200  # characters
LONGEST_WORDED = 120  # most characters of a value of words that is no key
MIN_PRIVATE_KEY = 40  # fewest characters of a private key after a name

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
"""Names in Chinese, Japanese and Korean, by kind. The end of a name decides, without a space before
it: `数据库密码`."""
_PASSWORD_ENDINGS = ("password", "passwd", "passphrase", "passwort", "пароль")
_NO_LAST_WORDS = frozenset("value plain plaintext raw".split())  # last words that say nothing
_PUBLIC = ("公开密钥", "公共密钥", "公開密鑰", "公有密钥")
_SECRET_KEYS = frozenset(
    "api access account private encryption signing shared master auth service storage deploy"
    " webhook hmac jwt fernet session secret client preshared subscription".split()
)
_KIND_OF_KEY = {"secret": "secret", "api": "api-key"}
_NO_SECRET_TOKEN = frozenset(
    """max min num n next prev page continuation pad eos bos unk sep mask cls special stop prompt
    completion input output cancellation cancel start end last first current previous sync total
    csrf xsrf per count new line op operator keyword string name comment is no the type lookahead
    sub logprob image audio video text text_ special_ target source context vocab word each this
    a one any""".split()
)

ValueStyle = Literal["quoted", "shell", "bare"]
"""How a value is written: in quotes, so it is no variable; in `NAME=value` of a shell or an
address, where a word needs no quotes; or bare, so it could be a type, a variable or prose."""

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
    # Each begins with one of `_BEGINS_TEMPLATE`.
    r"\A(?:<.*>|\$\{.*|\$\(.*|\$[A-Za-z_]\w*|\{\{.*|\{[\w.!:\[\]'\"]*\}|%[sdr]|%\(\w+\)s|%\w+%"
    r"|[*xX•·.…_#?-]+|@\w+@|__\w+__|#\{.*)\Z",
    re.DOTALL,
)
_BEGINS_TEMPLATE = frozenset("<${%*xX•·.…_#?-@")
MARKS = re.compile(r"\[redacted: [a-z0-9-]{1,40}\]|\$\{[^{}]{0,200}\}|\{\{[^{}]{0,200}\}\}")
"""Replacements of a redactor, and variables. A value after them is judged without them."""

_CODE = re.compile(r"\A[A-Za-z_]\w*+(?:(?:\.|->|::)[A-Za-z_]\w*+)+\Z")
_ALGORITHM = re.compile(
    r"\A(?:base|sha|md|utf|aes|rot|hs|rs|argon|pbkdf|bcrypt)-?\d", re.IGNORECASE
)
_PATH = re.compile(r"\A(?:[A-Za-z]:\\|\.{0,2}/|~/|[a-z]+://)")
_DIGIT = re.compile("[0-9]")
_LETTER = re.compile("[A-Za-z]")
_DIGITS = "0123456789"
_PLAIN_SIGNS = "_-.:/ %()[],"  # of words, paths and code
_SIGN = re.compile("[^A-Za-z0-9_.:/-]")  # of ASCII
_FOUR_DIGITS = re.compile(r"(?:\D*+\d){4}")  # `YOUR_KEY_123` has fewer
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
    """A secret's start, end and kind, and the quotes that its replacement needs in JSON."""

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
    return _kind_under(_judged_end(name))


def may_be_doubtful(name: str) -> bool:
    """Tell whether a name without a kind may name a secret, by its value; see `secret_kind`."""
    return name.endswith("_KEY") or "pass" in name.lower()


def _judged_end(name: str) -> str:
    """Return the end of a name, without its number: numbered names are one name."""
    return name[-JUDGED_OF_NAME:].rstrip(_DIGITS)


@lru_cache(JUDGEMENTS)
def _kind_under(end: str) -> str | None:
    words = [word.lower() for word in WORDS.findall(end)]
    while words and (words[-1].isdigit() or words[-1] in _NO_LAST_WORDS):
        words.pop()
    last = words[-1] if words else ""
    before = words[-2] if len(words) > 1 else ""
    if not last.isascii():
        ending = "".join(words[-3:])
        for kind, labels in LABELS.items():
            if ending.endswith(tuple(labels)):
                return None if ending.endswith(_PUBLIC) else kind
    if last in PASSWORDS or last.endswith(_PASSWORD_ENDINGS):
        return "password" if last != "pass" or before else None
    if last.endswith("secret") or (last == "base" and words[-3:-1] == ["secret", "key"]):
        return "secret"
    if last.endswith("token"):
        told_by = before or last.removesuffix("token")
        return None if told_by in _NO_SECRET_TOKEN else "token"
    if last == "key" and before in _SECRET_KEYS:
        return _KIND_OF_KEY.get(before, "key")
    if last.endswith("apikey") or last in ("secretkey", "accesskey", "privatekey", "accountkey"):
        return "api-key"
    if last == "data" and words[-3:-1] == ["client", "key"]:
        return "private-key"
    return None


def has_digit(value: str) -> bool:
    """Tell whether a value contains a digit."""
    return bool(_DIGIT.search(value)) if value.isascii() else any(map(str.isdigit, value))


def has_letter(value: str) -> bool:
    """Tell whether a value contains a letter."""
    return bool(_LETTER.search(value)) if value.isascii() else any(map(str.isalpha, value))


def _has_sign(value: str) -> bool:
    if value.isascii():
        return _SIGN.search(value) is not None
    return any(not c.isalnum() and c not in "_-.:/" for c in value)


def has_letters_and_digits(value: str) -> bool:
    """Tell whether a value has letters and digits, unlike a plain word or number."""
    return has_digit(value) and has_letter(value)


def looks_random(value: str) -> bool:
    """Tell whether a value has letters, digits, and either letters of both cases or a sign.

    Example:
        >>> [looks_random(value) for value in ("Zx9kq", "zx9#q", "step-2", "Step")]
        [True, True, False, False]
    """
    if not has_letters_and_digits(value):
        return False
    if value.lower() != value != value.upper():
        return True
    return any(not sign.isalnum() and sign not in _PLAIN_SIGNS for sign in value)


def secret_kind(name: str, value: str, style: ValueStyle) -> str | None:
    """Return the kind of a secret with a name, or None if the value is no secret.

    Args:
        name: the name of the value.
        value: without quotes.
        style: how the value is written there.

    Example:
        >>> secret_kind("DB_PASSWORD", "swordfish", "shell"), secret_kind("token", "str", "bare")
        ('password', None)
    """
    return kind_of_value(value, style, name, named_kind(name))


def kind_of_value(value: str, style: ValueStyle, name: str, kind: str | None) -> str | None:
    """Do what `secret_kind` does, for a name whose kind is known."""
    if kind is None:
        return _kind_under_doubtful_name(name, value, style)
    judge = _remembered_can_be_secret if len(value) <= MAX_REMEMBERED else can_be_secret
    return kind if judge(kind, value, style) else None


def _kind_under_doubtful_name(name: str, value: str, style: ValueStyle) -> str | None:
    """Return the kind of a secret with a name that may also name something else."""
    words = [word.lower() for word in WORDS.findall(name)]
    if words == ["pass"]:  # it may also be a result of a test
        is_sure = (
            len(value) >= 6 and looks_random(value) and can_be_secret("password", value, style)
        )
        return "password" if is_sure else None
    parts = name.split("_")
    is_a_key = name.isupper() and parts[-1] == "KEY" and len(parts) > 1
    if not is_a_key or parts[-2] in _NO_SECRET_KEY:
        return None
    digits = sum(map(str.isdigit, value))
    letters = sum(map(str.isalpha, value))
    is_random = len(value) >= 16 and digits >= 3 and letters >= 3
    return "key" if is_random and can_be_secret("key", value, style) else None


def without_marks(value: str) -> str:
    """Return a value without replacements of a redactor and variables."""
    return MARKS.sub("", value) if "[redacted: " in value or "{" in value else value


def is_placeholder(value: str) -> bool:
    """Tell whether a value is a placeholder, such as `<password>` or `YOUR_API_KEY`."""
    return _stands_for_nothing(without_marks(value))


def _stands_for_nothing(value: str) -> bool:
    """Do what `is_placeholder` does, for a value without replacements."""
    if not value:
        return True
    if len(value) > LONGEST_PLACEHOLDER:
        return False
    if value[0] in _BEGINS_TEMPLATE and _TEMPLATE.match(value):
        return True
    if _FOUR_DIGITS.match(value):
        return False
    if value.isalpha() and any(word in value.lower() for word in ("passwor", "passwd")):
        return True  # `testpassword`
    words = 0  # that are no numbers
    for match in WORDS.finditer(value):
        word = match[0].lower()
        if word.isdigit():
            continue
        if word not in _PLACEHOLDERS and word.strip("x"):
            return False
        words += 1
    if not words:
        return not has_digit(value)
    digits = "".join(filter(str.isdigit, value))
    return len(digits) <= 3 and (digits in "0123" or words > 1)


def can_be_secret(kind: str, value: str, style: ValueStyle) -> bool:
    """Tell whether a value can be a secret of this kind."""
    value = without_marks(value)
    if _stands_for_nothing(value):
        return False
    words = value.split()
    if len(words) > 1 and style == "quoted" and kind == "password":
        return any(len(word) >= 6 and looks_random(word) for word in words)
    if len(value) < 4 or len(words) > 1 or _is_path(value):
        return False
    is_bare = style == "bare"
    if _is_code(value, style):
        return False
    if is_bare and (_ALGORITHM.match(value) or _is_prose(value)):
        return False
    if kind == "password":
        needs_no_sign = not is_bare or has_digit(value) or _has_sign(value)
        return needs_no_sign and not _names_a_secret(value)
    if kind == "secret":
        return _can_be_named_secret(value, is_bare)
    if kind == "private-key":
        return len(value) >= MIN_PRIVATE_KEY
    return _can_be_made_by_machine(value, is_bare)


_remembered_can_be_secret = lru_cache(JUDGEMENTS)(can_be_secret)


def _is_code(value: str, style: ValueStyle) -> bool:
    """Tell whether it is an expression such as `config.password`, if the style allows one."""
    if style == "quoted" or value.isalnum():
        return False
    if style == "shell" and has_digit(value):
        return False
    return _CODE.match(value) is not None


def _can_be_named_secret(value: str, is_bare: bool) -> bool:
    if len(value) < (8 if is_bare else 6) or _is_prose(value):
        return False
    return has_letters_and_digits(value) or _has_sign(value)


def _can_be_made_by_machine(value: str, is_bare: bool) -> bool:
    """Tell whether a value can be a token or a key: letters and digits, or many mixed letters."""
    if _is_worded(value) or "{" in value or (is_bare and _TYPE.search(value)):
        return False
    if has_letters_and_digits(value):
        return len(value) >= (12 if is_bare else 8)
    has_both_cases = value.lower() != value != value.upper()
    return len(value) >= 20 and has_letter(value) and has_both_cases


def _is_path(value: str) -> bool:
    """Tell whether it is a path, not base64 that begins with a slash."""
    if not _PATH.match(value) or value[-1] == "=":
        return False
    return not any(
        len(part) >= 7 and looks_random(part) and _DIGIT_INSIDE.search(part)
        for part in value.split("/")
    )


def _is_prose(value: str) -> bool:
    """Tell whether it could be words, a version, a date, or the end of a sentence."""
    if value[-1] in ".:?!" and value[:-1].isalpha():
        return True
    parts = _DIVIDERS.split(value.strip(".,:;!?()*_`'\""))
    if len(parts) == 1:
        return False
    if all(map(str.isdigit, parts)):
        return True
    return all(part.isalpha() or not part or _is_short_number(part) for part in parts)


def _is_worded(value: str) -> bool:
    """Tell whether it consists of words, such as `gpt-4o-mini` or `TextStreamOutputToken`."""
    parts = re.split(r"[_.-]", value)
    if len(parts) > 1:
        return all(part.isalpha() or len(part) < 4 for part in parts)
    if not value.isalpha() or len(value) >= LONGEST_WORDED:
        return False
    humps = _HUMPS.findall(value)
    if len(humps) < 3 or min(map(len, humps)) < 2:
        return False
    return sum(map(len, humps)) >= 4 * len(humps)


def _is_short_number(part: str) -> bool:
    return part.isdigit() and len(part) < 4


def _names_a_secret(value: str) -> bool:
    """Tell whether it only names a secret, such as `new_password1`."""
    if "_" not in value and "-" not in value:
        return False
    words = [word.lower() for word in WORDS.findall(value)]
    names_one = any(word in PASSWORDS or word in ("token", "secret") for word in words)
    return names_one and sum(map(str.isdigit, value)) < 3
