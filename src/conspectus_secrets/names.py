"""Recognise names of secrets: `DB_PASSWORD` names a password.

The last words of a name decide: `password_file` names a path, and `max_tokens` a number.
"""

from __future__ import annotations

import re

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


def named_kind(name: str) -> str | None:
    """Return the kind of secret under a name, such as `password`, or None.

    Example:
        >>> named_kind("DB_PASSWORD"), named_kind("max_tokens"), named_kind("clientSecret")
        ('password', None, 'secret')
    """
    words = [word.lower() for word in WORDS.findall(name[-120:])]
    while words and (words[-1].isdigit() or words[-1] in ("value", "plain", "plaintext", "raw")):
        words.pop()
    last, before = ["", "", *words][-1], ["", "", *words][-2]
    if not last.isascii():
        ending = "".join(words[-3:])
        kinds = [kind for kind, ends in LABELS.items() if ending.endswith(tuple(ends))]
        if kinds:
            return None if ending.endswith(_PUBLIC) else kinds[0]
    if last in PASSWORDS or last.endswith(
        ("password", "passwd", "passphrase", "passwort", "пароль")
    ):
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
