"""Exact values in a text: paths, URLs, errors, ids, dates, numbers with units, symbols, commands.

Stricter than `identifiers.py`, which finds whatever an agent may write again: a value is carried
for good, so it must be one. In any script; what an earlier kind claims, a later one does not see.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from conspectus.ledger.commands import commands
from conspectus.ledger.identifiers import Kind
from conspectus.ledger.phrases import CJK
from conspectus.ledger.scanning import one_of, remembered, starting
from conspectus.ledger.wording import LANGUAGES
from conspectus.ledger.wording.marks import DIRECTORIES, NAMES

Found = tuple[Kind, str, int]
"""A value: its kind, itself, and where it starts."""

_W = r"0-9A-Za-z_\u00c0-\u024f"
_NOT_BEFORE = rf"(?<![{_W}])"
_NOT_AFTER = rf"(?![{_W}])"


def _words(lists: Iterable[str]) -> str:
    words = {word for text in lists for word in text.split()}
    return "|".join(sorted(map(re.escape, words), key=lambda word: (-len(word), word)))


_MONTH = rf"(?:{_words(w.months for w in LANGUAGES)})"
_DAY = rf"(?:{_words(w.weekdays for w in LANGUAGES if w.months)})"
_HOUR = r"(?:[01]?\d|2[0-4])"
_TIME = (
    rf"(?:{_HOUR}(?::[0-5]\d){{1,2}}|{_HOUR}\s?[hH]\s?[0-5]\d)(?:\s?(?:[ap]\.?m\b\.?|Uhr\b|h\b))?"
)
_CLOCK = rf"(?:{_TIME}|{_HOUR}\s?(?:[ap]\.m\.|[ap]m\b|Uhr\b|h\b(?!\w)|o'clock\b))"
_AT = r"(?:,?\s+(?:at|um|à|a\s+las?|by|gegen|@|-|–)\s+|,\s*|\s+)"
_ZONE = r"(?:\s?(?:Z|UTC|GMT|CET|CEST|[+-]\d\d:?\d\d)\b)?"
_YEAR = r"(?:,?\s+(?:de\s+|del\s+)?(?:19|20)\d\d\b)?"
_NAMED = (
    rf"(?:\b{_DAY}\.?,?\s+(?:the\s+|den\s+|dem\s+|der\s+|le\s+|el\s+)?)?"
    rf"(?:\b[0-3]?\d(?:st|nd|rd|th|er|º|\.)?(?:\s+(?:of|de)\s+|\s+|-)(?:{_MONTH})\b\.?{_YEAR}"
    rf"|\b{_MONTH}\.?\s+[0-3]?\d(?:st|nd|rd|th)?\b(?![:.]?\d){_YEAR})"
)
_WIDE_TIME = (
    r"(?:(?:上午|下午|晚上|早上|中午|凌晨|傍晚|午前|午後|오전|오후|저녁|밤|아침|正午)?\s?"
    r"(?:\d{1,2}[:：]\d\d|\d{1,2}\s?[点點时時시](?:\s?(?:\d{1,2}\s?[分분]|半|반|整))?)|正午|정오|中午)"
)
_WIDE_DAY = (
    r"(?:\s?[（(]?(?:周|星期|礼拜)[一二三四五六日天][）)]?"
    r"|\s?[（(][月火水木金土日월화수목금토일](?:曜日?|요일)?[）)]|[月火水木金土日]曜日|\s?[월화수목금토일]요일)"
)
_NAMED_DATE = re.compile(
    rf"(?i:{_NAMED})(?:{_AT}{_CLOCK})?|(?i:\b{_MONTH}\s+(?:de\s+)?(?:19|20)\d\d\b)"
)
_DATE = re.compile(
    rf"(?=\d)(?:{_NOT_BEFORE}(?:(?:19|20)\d\d-[01]\d-[0-3]\d"
    rf"(?:(?:T|,?\s)\d\d:\d\d(?::\d\d(?:\.\d+)?)?{_ZONE})?{_NOT_AFTER}"
    rf"|(?:19|20)\d\d/[01]?\d/[0-3]?\d(?:\s\d\d?:\d\d(?::\d\d)?)?{_NOT_AFTER}"
    rf"|[0-3]?\d([./])[0-3]?\d\1(?:(?:19|20)\d\d|\d\d)(?:{_AT}{_CLOCK})?{_NOT_AFTER}"
    rf"|[0-3]?\d\.[01]?\d\.(?=\s)|{_CLOCK}{_NOT_AFTER})"
    rf"|(?:\d{{4}}\s?[年년]\s?)?\d{{1,2}}\s?[月월]\s?\d{{1,2}}\s?[日号號일](?:{_WIDE_DAY})?"
    rf"(?:(?:的|の|에|、|，|,)?\s?{_WIDE_TIME})?"
    r"|\d{4}\s?[年년]\s?\d{1,2}\s?[月월])"
    r"|(?:上午|下午|晚上|早上|中午|凌晨|傍晚|午前|午後|오전|오후|저녁|밤|아침)\s?"
    r"(?:0?\d|1[0-2])(?!\d)\s?(?:[:：]\d\d|[点點時时시](?:\s?(?:\d{1,2}\s?[分분]|半|반))?)"
)
_DAYS = frozenset(
    word.lower() for w in LANGUAGES for word in f"{w.months} {w.weekdays}".split() if w.months
)
_HAS_DIGIT = re.compile(r"\d")
_LETTERS = re.compile(r"[^\W\d_]+")


def _has_day(text: str) -> bool:
    """Whether a text has the name of a month or of a day; far quicker than to try them all."""
    return bool(_HAS_DIGIT.search(text)) and not _DAYS.isdisjoint(_LETTERS.findall(text.lower()))


_SIGNS = (
    r"%|‰|％|℃|℉|°C|°F|°|€|\$|£|¥|₩|EUR|USD|GBP|CHF|JPY|KRW|CNY|RMB|ms|µs|ns|min|KiB|MiB|GiB|TiB|kB|KB|MB|GB|TB|PB"
    r"|Mbit/s|MB/s|GB/s|kbit/s|km/h|req/s|qps|rps|kg|mg|km|cm|mm|µm|ml|cl|dl|kWh|kW|MW|Wh|mAh|Hz|kHz|MHz|GHz|m²|m2"
    r"|m³|px|pt|em|dpi|rpm|fps|bps|bpm|ppm|ppb|dBA?|dBFS|LUFS|LKFS|lux|lx|lm|mV|kV|mA|kPa|Pa|Nm|kN|mbar|psi|mph|kn|m/s|l/h|l/min|kHz|kbps|Mbps|Gbps|GiB|kcal|ha|dag|mol|µg|mcg|°|TWh|GWh|hPa|bar|kcal|cal|lbs?|oz|ft|tok|[hsgmtlVWK](?!['’])"
)
_UNIT = (
    rf"(?:(?:{_SIGNS}){_NOT_AFTER}|(?:%|％|‰|℃|℉|°C|€|\$|£|¥)"
    rf"|{one_of(word for w in LANGUAGES if w.months for word in w.units.split())}{_NOT_AFTER})"
)
_WIDE_UNIT = rf"(?:{_words(w.units for w in LANGUAGES if not w.months)})"
_THOUSANDS = r"\d{1,3}(?:[.,'’ \u00a0\u202f]\d{3})+(?!\d)(?:[.,]\d+)?"
_FIGURE = rf"(?:{_THOUSANDS}|\d+(?:[.,]\d+)?)"
_NUMBER = re.compile(
    rf"(?=[-−€$£¥₩v\d])(?:[€$£¥₩]\s?{_FIGURE}(?:\s?(?:k|K|M|m|bn|million|thousand)\b)?"
    rf"|(?<![\w.,:/-])[-−]?{_FIGURE}(?:\s?[-–]\s?{_FIGURE})?[ \u00a0\u202f-]?{_UNIT}"
    rf"|(?<![\w.,:/-])[-−]?{_FIGURE}(?:\s?[-–~〜]\s?{_FIGURE})?\s?{_WIDE_UNIT}"
    rf"|(?<=[{CJK}])[-−]?{_FIGURE}(?:\s?[-–~〜]\s?{_FIGURE})?\s?(?:{_UNIT}|{_WIDE_UNIT})"
    rf"|{_NOT_BEFORE}(?<![.,:-])v?\d+(?:\.\d+)+(?:-?(?:rc|beta|alpha|b|a|dev)\.?\d+)?(?![{_W}])"
    rf"|{_NOT_BEFORE}(?<![.,:/#-])(?:\d{{4,}}|\d{{1,3}}(?:[.,']\d{{3}})+|\d+,\d+)(?![{_W}]|[.,:/-]\d))"
)
_ROUND_THE_CLOCK = re.compile(
    r"24\s?(?:hours|Stunden|horas|heures|h|小时|個小時|时间|時間|시간)(?!\w{12})|100\s?%\s?(?:sure|sicher)",
    re.I,
)
_EXTENSION = (
    r"(?:pyi?|jsx?|tsx?|jsonl?|mdx?|txt|rst|html?|s?css|less|ya?ml|toml|cfg|ini|conf|env|sh|bash|ps1|bat|cpp|cc|hpp|java|kts?"
    r"|go|rs|rb|php|swift|dart|scala|sql|xml|csv|tsv|png|jpe?g|gif|svg|webp|mp[34]|wav|pdf|docx?|xlsx?|pptx?|odt|ods|ipynb"
    r"|lock|log|diff|patch|zip|gz|tgz|tar|bz2|parquet|db|sqlite3?|bak|tf|tfvars|proto|graphql|vue|svelte|tex|bib|pem|crt|key"
    r"|ics|eml|service|po|mo|exe|dll|so|whl|jar|c|h|R)"
)
_P = r"0-9A-Za-z_@+\u00c0-\u024f"
_PATH = re.compile(
    rf"(?<![{_W}/.@:-])(?:[A-Z]:\\(?:[{_P}.-]+\\)*[{_P}.-]+"
    rf"|(?:~|\.{{1,2}})?/?(?:[{_P}.-]+/)+(?:[{_P}*-][{_P}.*-]*)?"
    rf"|/[{_P}-][{_P}.-]*|\.?[{_P}][{_P}-]*(?:\.[{_P}-]+)*\.{_EXTENSION}{_NOT_AFTER}"
    rf"|\.(?:env|gitignore|bashrc|zshrc|dockerignore|npmrc|gitattributes)\b|\b(?:Dockerfile|Makefile|Jenkinsfile|Procfile)\b)"
)
_WIDE_PATH = re.compile(
    rf"(?:[\w@+~.-]{{1,40}}/)+(?:[\w@+-][\w@+.-]{{0,60}}?)?\.{_EXTENSION}(?![A-Za-z0-9_])"
)
_LAST_PART = re.compile(
    r"(?:[\u4e00-\u9fff々〆\u30a0-\u30ff]+|[\uac00-\ud7af]+|[A-Za-z0-9_@+~.-]+)+$"
)
_LED_IN = re.compile(r"^.*[在是到把从為为见看开進进存放于於的用跟和及叫了成往给与]")
_FOLDERS = re.compile(
    r"\b(?:files?|folders?|directory|director(?:y|ies)|path|repo(?:sitory)?|ordners?|datei(?:en)?|verzeichnis\w*|pfad|archivos?"
    r"|carpetas?|ficheros?|directorio|ruta|dossiers?|fichiers?|répertoire|chemin)\b|文件|目录|路径|フォルダ|ファイル|ディレクトリ|폴더|파일|경로",
    re.IGNORECASE,
)
_EITHER = re.compile(
    r"(?:and|or|und|oder|y|o|et|ou|he|she|er|sie|his|her|yes|no|ja|nein|sí|oui|non|on|off|in|out|am|pm|m|w|f|input|output|min|max)/"
    r"|[A-Za-z]{1,3}/[A-Za-z]{1,3}$",
    re.IGNORECASE,
)
_CASE_NUMBER = re.compile(r"[A-Z]{1,5}/\d[0-9A-Za-z]*(?:[-/][0-9A-Za-z]+)*")
_URL = re.compile(
    r"(?:https?|ftp|wss?|postgres(?:ql)?|redis|s3|ssh|git)://[^\s\"'<>)\]}\\`，。；、（）「」』』“”！？]+"
)
_ERROR = re.compile(
    rf"{_NOT_BEFORE}(?:[A-Za-z_][\w]*\.)*[A-Z][A-Za-z0-9_]*(?:Error|Exception|Warning|Fault|Timeout|Interrupt)(?![A-Za-z0-9_])"
    rf"|{_NOT_BEFORE}(?:ERR_[A-Z0-9_]+|SIG(?:KILL|TERM|SEGV|INT|ABRT|BUS|HUP|PIPE)|E(?:NOENT|ACCES|CONN[A-Z]+|ADDR[A-Z]+|PIPE"
    rf"|PERM|EXIST|INVAL|NOSPC|MFILE|TIMEDOUT|HOSTUNREACH|BUSY|AGAIN|NOTEMPTY|RESOLVE|AI_AGAIN)|ORA-\d{{4,5}}"
    rf"|E-?\d{{3,5}}|0x[0-9A-Fa-f]{{6,}}){_NOT_AFTER}",
    re.ASCII,
)
_ID = re.compile(
    rf"[A-Za-z0-9][A-Za-z0-9.+_-]*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"
    rf"|{_NOT_BEFORE}[0-9a-fA-F]{{8}}-(?:[0-9a-fA-F]{{4}}-){{3}}[0-9a-fA-F]{{12}}{_NOT_AFTER}"
    rf"|{_NOT_BEFORE}(?:sha\d+:)?(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{{7,64}}{_NOT_AFTER}"
    rf"|{_NOT_BEFORE}(?=[A-Z0-9_-]*\d)(?=[A-Z0-9_-]*[A-Z])[A-Z0-9][A-Z0-9_-]{{2,}}[A-Z0-9](?:/[0-9][0-9A-Z-]*)?{_NOT_AFTER}"
    rf"|{_NOT_BEFORE}[a-z]{{2,}}(?:[_-][a-z]+)*[_-](?=[0-9A-Za-z]*\d)(?=[0-9A-Za-z]{{4,}})[0-9A-Za-z]*(?:-[0-9a-z]+)*{_NOT_AFTER}"
    rf"|{_NOT_BEFORE}[A-Z]{{1,5}}(?:/(?=\d)|-(?=[0-9A-Za-z]*\d)(?=[0-9A-Za-z]{{3}}))[0-9A-Za-z]+(?:[-/][0-9A-Za-z]+)*{_NOT_AFTER}"
    rf"|(?<![{_W}&])#\d{{2,}}{_NOT_AFTER}"
    rf"|(?<![{_W}+])\+\d{{1,3}}(?:[ -]?\(?\d{{1,5}}\)?){{2,6}}{_NOT_AFTER}"
)
_SYMBOL = re.compile(
    rf"{_NOT_BEFORE}(?<![.@/-])(?:[A-Za-z_][\w]*(?:(?:\.|::)[A-Za-z_][\w]*)+|_*[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+_*|__\w+__"
    rf"|(?:[A-Z][a-z0-9]+){{2,}}[A-Z]*|[A-Z]{{2,}}(?:[A-Z][a-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]*)+|[A-Za-z_]\w*(?=\(\)))(?![A-Za-z0-9_-]*@)",
    re.ASCII,
)
_DOMAIN = re.compile(
    r"\.(?:com|org|net|io|dev|ai|co|de|fr|es|cn|jp|kr|uk|eu|ch|at|it|nl|gov|edu|info|app|cloud|local|test|example)$"
)
_OWN = re.compile(r"^(?:self|this|cls|super)\.")


def values(text: str) -> Iterator[Found]:
    """The exact values of one line, kind by kind, those of one kind in order.

    Example:
        >>> [f"{kind} {value}" for kind, value, _ in values("2.5 GB in src/app.py by 3 May 2031")]
        ['date 3 May 2031', 'path src/app.py', 'number 2.5 GB']
    """
    return iter(_all(text))


@remembered
def _all(text: str) -> tuple[Found, ...]:
    return tuple(_read(text))


def _read(text: str) -> Iterator[Found]:
    yield from commands(text)
    for kind, hint, finds, known in _KINDS:
        if not hint(text):
            continue
        claimed: list[tuple[int, int]] = []
        for match in finds(text):
            value = known(match, text)
            if value is None:
                continue
            at = match.start() + match.group().index(value)
            claimed.append((at, at + len(value)))
            if value:
                yield kind, value, at
        if claimed:
            text = _masked(text, claimed)


def _masked(text: str, claimed: list[tuple[int, int]]) -> str:
    """The text with what is claimed blanked out, at the same places."""
    parts, last = [], 0
    for start, end in claimed:
        parts += [text[last:start], "\0" * (end - start)]
        last = end
    return "".join([*parts, text[last:]])


def _trimmed(match: re.Match[str], text: str) -> str | None:
    value = match.group().rstrip(".,:;!?'\"*…").strip()
    return value if value and value.lower() not in NAMES else None


def _path(match: re.Match[str], text: str) -> str | None:
    value = match.group().rstrip(".,:;!?*")
    if len(value) < 3 or value.lower() in NAMES:
        return None
    parts = [part for part in value.strip("/~.").split("/") if part]
    if "/" not in value:
        return value
    if all(part.isdigit() for part in parts) or not parts:
        return None
    if value[0] in "/~" and not value.startswith("//"):
        return value if len(parts[0]) > 1 else None
    if _CASE_NUMBER.fullmatch(value):
        return None
    marked = re.search(r"[_.\d-]", value) is not None
    known = any(part.lower() in DIRECTORIES for part in parts)
    if value[0] == "." or known or value.endswith("/") or (len(parts) > 2 and marked):
        return value
    if re.search(rf"\.{_EXTENSION}$", value) or (marked and not value[0].isdigit()):
        return value
    return value if _in_folders(value, match.start(), text) else None


def _in_folders(value: str, at: int, text: str) -> bool:
    """Whether two words with a stroke are a path: written as code, or where files are spoken of."""
    if _EITHER.match(value) or not value.replace("/", "").replace("-", "").isalpha():
        return False
    end = at + len(value)
    if text[at - 1 : at] == "`" and text[end : end + 1] == "`":
        return True
    return _FOLDERS.search(text, max(0, at - 40), min(len(text), end + 12)) is not None


def _wide_path(match: re.Match[str], text: str) -> str | None:
    """A path with folders in a script without spaces, less the words that it is joined to."""
    value = match.group()
    if value.isascii():
        return None
    first, stroke, rest = value.partition("/")
    if not first.isascii() and (last := _LAST_PART.search(first)):
        # The words before the first folder stand joined to it; a folder's name is seldom theirs.
        first = _LED_IN.sub("", last[0]) or last[0]
    return first + stroke + rest


def _id(match: re.Match[str], text: str) -> str | None:
    value = _trimmed(match, text)
    if value is None or re.fullmatch(r"\d+[A-Z]{1,3}|[A-Z]{1,2}\d{1,2}|[\d-]+", value):
        return None
    return value


def _number(match: re.Match[str], text: str) -> str | None:
    value = match.group().strip().rstrip(".,:;")
    if _ROUND_THE_CLOCK.match(text, match.start()):
        return None
    return value


def _symbol(match: re.Match[str], text: str) -> str | None:
    value = match.group()
    if (
        len(value) < 3
        or value.lower() in NAMES
        or value.replace("_", "").isdigit()
        or _OWN.match(value)
        or ("." in value and (_DOMAIN.search(value) or len(value) < 5))
    ):
        return None
    if "." in value and "_" not in value:
        # A full stop without a space after it is no member of anything.
        parts = value.split(".")
        if any(len(part) < 2 for part in parts):
            return None
    return value


_BORDER = r"(?<![0-9A-Za-z])"


_WIDE = re.compile(rf"[{CJK}]")


def _has_wide_path(text: str) -> bool:
    """Whether a stroke stands in one word with a script without spaces; a pattern would look for
    it from each character to the end of the sentence, and texts in these scripts have no spaces."""
    return "/" in text and any("/" in word and _WIDE.search(word) for word in text.split())


_BARE_ID = starting(
    rf"{_BORDER}(?=\d[\d_-]{{0,79}}[A-Za-z]|\d{{8}}-|[\d_-]{{80}}"
    r"|[A-Z][A-Z_-]{0,79}\d|[A-Z]{1,5}[/-][0-9A-Za-z]|[A-Z_-]{80}|[a-fA-F]+\d|sha\d"
    r"|[a-z]+[_-][A-Za-z_-]{0,79}\d|[a-z]+[_-][A-Za-z_-]{80}|[#+]\d)",
    _ID,
)


def _ids(text: str) -> Iterator[re.Match[str]]:
    """Ids; an address of mail may start anywhere, so it is tried only where a line has one."""
    return (_ID if "@" in text else _BARE_ID).finditer(text)


_KINDS: tuple[
    tuple[
        Kind,
        Callable[[str], object],
        Callable[[str], Iterator[re.Match[str]]],
        Callable[[re.Match[str], str], str | None],
    ],
    ...,
] = (
    ("url", re.compile("://").search, _URL.finditer, _trimmed),
    ("date", _has_day, _NAMED_DATE.finditer, _trimmed),
    (
        "date",
        _HAS_DIGIT.search,
        starting(
            rf"(?=[\d\u1100-\uffff])(?:{_BORDER}(?=\d{{4}}[-/]|\d\d?(?:[./:]|\s?[^\W\d]))"
            r"|(?=\d{1,4}\s?[年년月월])|(?=[\u1100-\uffff]))",
            _DATE,
        ).finditer,
        _trimmed,
    ),
    (
        "path",
        _has_wide_path,
        _WIDE_PATH.finditer,
        _wide_path,
    ),
    (
        "path",
        re.compile(r"[/\\]|\.\w|file\b").search,
        starting(
            rf"(?<![0-9A-Za-z_/.@:-])(?=[{_P}~-]{{0,79}}[/\\.:]|[{_P}~-]{{80}}|[A-Z][a-z]+file\b)",
            _PATH,
        ).finditer,
        _path,
    ),
    (
        "error",
        re.compile(
            r"Error|Exception|Warning|Fault|Timeout|Interrupt|ERR_|SIG|E-?\d|E[A-Z]|ORA-|0x"
        ).search,
        _ERROR.finditer,
        _trimmed,
    ),
    (
        "id",
        re.compile(r"[\d@]").search,
        _ids,
        _id,
    ),
    (
        "number",
        _HAS_DIGIT.search,
        starting(
            r"(?=[-v\d€$£¥₩])(?:(?<![0-9A-Za-z_.,:-])(?=[-v]?\d)(?!\d{1,3}(?:\s?[:;/=()\[\]{}<>\"|?!#*&@^`\\]|[.,]?(?:\Z|\s\s)))"
            r"|(?=[€$£¥₩]))",
            _NUMBER,
        ).finditer,
        _number,
    ),
    (
        "symbol",
        re.compile(r"[_A-Z(]|[.:]\w").search,
        starting(rf"{_BORDER}(?=_|[A-Za-z0-9]+[_.:(]|[A-Za-z][a-z0-9]*[A-Z])", _SYMBOL).finditer,
        _symbol,
    ),
)
"""Kinds in the order in which they claim their values: without the hint a line can hold none."""
