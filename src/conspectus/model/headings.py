"""The headings that our prompt asks for, in the languages in which models write them."""

from __future__ import annotations

LONGEST_HEADING = 60
"""Characters of a line that may be a heading."""

HEADING_WORDS = {
    "goal": """goal objective ziel aufgabe objectif objetivo meta obiettivo scopo cel hedef amaç
        doel mål цель задача мета هدف الهدف लक्ष्य उद्देश्य 目标 目標 目的 ゴール 목표 목적 เป้าหมาย""",
    "next": """next nächste weiter prochain suite siguiente próxim prossim następn
        dalej sonraki sıradaki volgende nästa следующ далее дальше наступн التالي الخطوة अगला अगले आगे
        下一步 接下来 后续 次の 次に 今後 다음 ต่อไป ขั้นตอนต่อไป""",
    "rules": """rule binding regel vorgaben règle consigne regla reglas regra regole zasady reguły
        kural regels regler правила правило قواعد القواعد नियम 规则 規則 ルール 規則 규칙 กฎ""",
    "found": """found finding decision fact done open ergebnis erkenntnis befund entscheid gefunden
        offen résultat constat décision trouvé hallazgo resultado decision descubr encontrado
        achado decis risultat scopert decision trovato ustaleni wynik decyzj bulgu karar
        bulunan bevinding resultat fynd находк результат выяснено решени найдено النتائج نتائج
        القرارات निष्कर्ष निर्णय 发现 结论 决定 結果 発見 分かったこと 決定 결과 발견 결정
        ผลลัพธ์ สิ่งที่พบ""",
}
"""How a heading of each section begins, in small letters."""

_NUMBERING = "0123456789.) "

_BEGINNINGS = {
    section: tuple(dict.fromkeys(words.split())) for section, words in HEADING_WORDS.items()
}


def heading_of(line: str) -> str:
    """Return the words of a heading, in small letters; empty for other lines."""
    line = line.strip()
    has_number_signs = line.startswith("#") and line.lstrip("#")[:1] == " "
    is_bold = line.startswith("**") and line.rstrip(": ").endswith("**")
    is_heading = len(line) <= LONGEST_HEADING and (has_number_signs or is_bold)
    return line.strip("#*: ").lstrip(_NUMBERING).casefold() if is_heading else ""


def section_of(heading: str) -> str:
    """Return the section of a heading; empty if our prompt asks for none like it.

    Example:
        >>> section_of("nächste schritte"), section_of("weather")
        ('next', '')
    """
    return next(
        (section for section, words in _BEGINNINGS.items() if heading.startswith(words)), ""
    )
