"""Find secrets after a name in Chinese, Japanese or Korean: `密码是...`, `パスワードは...`.

There is no space after the name, and a value may stand right behind a verb. So the text after
the name is searched for a sign, a verb, or only a gap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from conspectus.redaction.names import LABELS, named_kind
from conspectus_secrets.bounds import telling
from conspectus_secrets.ends import QUOTE, Found, closing, cut, whole
from conspectus_secrets.names import BARE, BARE_MORE, called, read_printed
from conspectus_secrets.scripts import SPACES, changes, ended, plainly, sure, worded, words_only
from conspectus_secrets.words import can_be

_ENDS = sorted((end for ends in LABELS.values() for end in ends), key=lambda end: (-len(end), end))
_NAME = "|".join(re.escape(end) for end in _ENDS)
_NAME += "|(?:api|アクセス|シークレット|秘密) ?キー|(?:api|액세스|비밀|개인) ?키|비밀 ?번호"
_LATELY = "已经?|現在|现在|目前|暂时|暫時|默认|預設|统一|重新|临时|都|就|仍|被|要|请|先"
_IS = "[是为為はが]|には|[는은이가]"
_BECOMES = (
    "(?:设置|設置|设定|設定|修改|更改|变更|變更|更新|重置|重设|重設|替换|配置|初始化|改|设|設|换|換|定|变|變)"
    "(?:[成为為]|至|到)了?"
)
_OTHER = "[用填叫を을를]|使用|写成"
_SIGN = r"(?:[:：＝]|={1,2}(?!=)|=>|->|[→⇒])"
_LABEL = re.compile(
    rf"(?P<name>(?i:{_NAME}))(?:[（(][^（）()\n]{{1,30}}[）)])?(?P<mark>[*_`”’」』》»】〉]{{0,3}})"
    rf"(?:[{SPACES}]{{0,4}}(?P<sign>{_SIGN})[*_]{{0,3}}"
    rf"|[{SPACES}]{{0,2}}(?:{_LATELY})?(?:(?P<said>{_IS}|{_BECOMES})|{_OTHER})"
    rf"[{SPACES}]{{0,2}}[:：]?"
    rf"|(?=[{SPACES}“‘「『]|(?<=】)))[{SPACES}]{{0,8}}"
)
"""A name, the mark that closes bold type or quotes around it, and a sign or verb."""

_NAMED = (":", "：", "=", "＝")
"""Signs after a password's name that `named_secrets` reads, as in English."""
_LEAD = re.compile(r"[!-~]{4,512}")
_AFTER = re.compile(r"です|でし|だ|に|へ|と|입니다|이다|이에요|예요|로|으로")
"""Ends of sentences that may stand right behind a weaker value."""


def labelled_secrets(text: str) -> Iterator[Found]:
    """Yield secrets after a name in Chinese, Japanese or Korean.

    Example:
        >>> text = "管理员密码改成Zx9#mP2q然后重启"
        >>> [text[a:b] for a, b, _, _ in labelled_secrets(text)]
        ['Zx9#mP2q']
    """
    if text.isascii():
        return
    for match in _LABEL.finditer(text):
        begin = match.start("name")
        before = text[max(0, begin - 4) : begin]
        kind = named_kind(before + match["name"].replace(" ", ""))
        plain = match.end("name") == match.start("mark") and not match["mark"]
        if kind is None or (kind == "password" and plain and match["sign"] in _NAMED):
            continue
        found = _value(text, match.end(), kind, match)
        if found is not None:
            yield found


def _value(text: str, at: int, kind: str, label: re.Match[str]) -> Found | None:
    """Return the value from here, in quotes of any kind or bare."""
    quote = QUOTE.match(text, at)
    stop = closing(text, quote.end(), quote["quote"]) if quote else None
    if quote is None or stop is None:
        found = read_printed(text, at, kind)
        return found or _bare(text, quote.end() if quote else at, kind, label)
    value = text[quote.end() : stop]
    if worded(value):  # words, unless one part of it looks like a secret
        fits = ended(text, quote.end(), stop, "password", False) == stop
    else:
        fits = _fits(kind, value, True) if label["sign"] or label["said"] else _looks(value)
    return (quote.end(), stop, kind, "") if fits else None


def _bare(text: str, at: int, kind: str, label: re.Match[str]) -> Found | None:
    """Return the bare value from here; after a weaker sign it must look more like a secret."""
    bare = None if words_only(text, at) else BARE.match(text, at)
    if bare is None:
        return None
    stop = cut(text, at, bare.end())
    lead = _LEAD.match(text, at, stop)
    if lead and label["said"] and _AFTER.match(text, lead.end()) and _fits(kind, lead[0], False):
        return at, lead.end(), kind, ""
    end = ended(text, at, stop, "password", False) or at
    if not label["sign"]:
        end = at + len(text[at:end].rstrip(".:!?"))
    value = text[at:end]
    if not value or called(text, end):
        return None
    if worded(value):
        fits = lead is None or _looks(lead[0])
        if kind == "password" and (
            label["sign"] or label["said"]
        ):  # `hunter2` with what follows it
            fits = bool(label["sign"]) or lead is None or any(map(str.isalpha, lead[0]))
    else:
        fits = _fits(kind, value, False) if label["sign"] or label["said"] else _looks(value)
    if not fits:
        return None
    return at, whole(text, at, end, BARE_MORE), kind, ""


def _fits(kind: str, value: str, quoted: bool) -> bool:
    """Return whether it can be a secret of this kind.

    A token may be as short as a password, if no word, type or version looks like it.
    """
    if can_be(kind, plainly(value), quoted, False):
        return True
    return kind not in ("password", "private-key") and _looks(value)


def _looks(value: str) -> bool:
    """Return whether its form alone shows a secret."""
    if not telling("password", value) or not sure("password", value):
        return False
    signs = any(not c.isalnum() and c not in "_-./:" for c in value)
    return len(value) >= 8 and (signs or changes(value) >= 5)
