# ruff: noqa: E501
"""Names by which somebody might reach what is another's: of tenants, threads and sessions; and
queries that might say something to a database."""

LABELS = [
    "a", "A", "ａ", "а", "ɑ", "a ", " a", "a\u200b", "\u200ba", "a\u00ad", "a\ufeff", "a\u0301", "á",
    "é", "e\u0301", "Å", "\u212b", "ß", "ss", "ﬁ", "fi", "İ", "i\u0307", "ı", "Ⅷ", "VIII",
    "a.b", "a/b", "a\\b", "a:b", "a|b", "a\x00b", "a\nb", "a,b", "a b", "a\tb", "a\x1fb",
    ".", "..", "../a", "../../etc/passwd", "/", "//", "/a", "a/", "./a", "a/../b", "~", "~root",
    "%", "_", "a%", "%a%", "a_", "*", "?", "[a]", "a'--", "'; DROP TABLE store;--", '"', "\\", "`",
    "' OR '1'='1", "a' UNION SELECT value FROM store --", "{a}", "${a}", "$(a)", "a;b", "\r\n",
    "\ud800", "\udfff", "a\ud800", "\ufffe", "\U0010ffff", "\x00", "\x7f", "\u202ea", "NULL", "None",
    "null", "true", "0", "00", "-1", "1e309", "nan", "threads", "head", "messages", "records", "main",
    "local", "conspectus", "con", "prn", "a" * 5_000, "a" * 4_999 + "b", "ä" * 300, "\U0001f600",
]  # fmt: skip
