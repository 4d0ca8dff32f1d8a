"""Values of the shapes that people use in everyday settings, in any script."""

from __future__ import annotations

import pytest

from conspectus.ledger.values import values

HOLDS = [
    ("旅程は旅行/日程.pyに書きました。", "path", "旅行/日程.py"),
    ("원고/교정본.docx 파일을 열어 주세요.", "path", "원고/교정본.docx"),
    ("共有/合宿/名簿.txtを見てください。", "path", "共有/合宿/名簿.txt"),
    ("文件在资料/春季/名单.xlsx里。", "path", "资料/春季/名单.xlsx"),
    ("Die Datei liegt im Ordner verein/satzung bei uns.", "path", "verein/satzung"),
    ("Siehe `verein/satzung` dazu.", "path", "verein/satzung"),
    ("El archivo está en socios/cuotas ahora.", "path", "socios/cuotas"),
    ("Le dossier prêts/été contient tout.", "path", "prêts/été"),
    ("The claim number is HV/31-b7e2.", "id", "HV/31-b7e2"),
    ("Order K-77x20d arrived.", "id", "K-77x20d"),
    ("Die Buchung BR-4f11c3 steht.", "id", "BR-4f11c3"),
    ("票号是TK-20931。", "id", "TK-20931"),
    ("The mixer peaks at -14 LUFS.", "number", "-14 LUFS"),
    ("Im Keller sind es -3 °C.", "number", "-3 °C"),
    ("The lamp gives 350 lux.", "number", "350 lux"),
    ("Der Wind erreicht 72 km/h.", "number", "72 km/h"),
    ("The service listens on port 3107.", "number", "3107"),
    ("참가자는 24명입니다.", "number", "24명"),
    ("2박 일정입니다.", "number", "2박"),
    ("コップは12杯分です。", "number", "12杯"),
    ("冷蔵庫は-18℃です。", "number", "-18℃"),
]
NOT_PATHS = [
    "Er kommt und/oder sie kommt.",
    "Bring tea/coffee for the team.",
    "男/女どちらでも。",
    "It works on and/or off the file.",
    "Mon/Wed training.",
]


@pytest.mark.parametrize(("text", "kind", "value"), HOLDS)
def test_a_value_is_found_whole(text: str, kind: str, value: str) -> None:
    assert (kind, value) in [(k, v) for k, v, _ in values(text)]


@pytest.mark.parametrize("text", NOT_PATHS)
def test_two_words_with_a_stroke_are_no_path(text: str) -> None:
    assert "path" not in [k for k, _, _ in values(text)]
