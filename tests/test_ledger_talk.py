"""What later messages do to earlier ones when they say so in other words."""

from __future__ import annotations

import pytest

from conspectus import Ledger
from conspectus.ledger.tasks import under_way
from conspectus.messages import read_messages
from histories import assistant, user


def told(*texts: str) -> Ledger:
    messages = []
    for place, text in enumerate(texts):
        messages += [user(text, id=f"u{place}"), assistant("Ok.", id=f"a{place}")]
    return Ledger().updated(read_messages(messages))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "The lab run may take at most 60 minutes.",
            "The analysts say 90 minutes is OK for the lab run.",
        ),
        (
            "We don't want to spend more than 900 euros on the trip.",
            "My wife says we may spend up to 1,100 euros.",
        ),
        (
            "Das Zimmer darf höchstens 80 Euro kosten.",
            "Meine Frau meint, 95 Euro sind in Ordnung für das Zimmer.",
        ),
        (
            "La cena no puede pasar de 40 euros por persona.",
            "El tesorero dice que podemos gastar hasta 55 euros en la cena.",
        ),
        (
            "Le trajet ne doit pas dépasser 3 heures.",
            "Le chauffeur dit que 4 heures suffisent pour le trajet.",
        ),
        (
            "宿泊は一泊12000円以内でお願いします。",
            "妻が、宿泊は15000円までなら大丈夫だと言っています。",
        ),
        ("住宿每晚最多500元。", "我爱人说，住宿600元也可以。"),
        ("숙박비는 10만 원 이내로 해 주세요.", "아내가 숙박비는 13만 원까지 괜찮대요."),
        ("Send the scans to archive@club.example.", "Write to office@club.example from now on."),
        (
            "Die Anmeldung geht an sport@verein.example.",
            "Schreib ab jetzt an kasse@verein.example.",
        ),
    ],
)
def test_what_somebody_else_allows_takes_the_place_of_the_old_limit(old: str, new: str) -> None:
    book = told("We plan the season.", old, "Thanks, that helps.", new)
    gone = set(book.gone)
    held = {fact.value for fact in book.facts}
    address = old.split()[-1].rstrip(".")
    if "@" in old:
        assert address not in held
    else:
        assert old in gone
        assert new in held


@pytest.mark.parametrize(
    ("task", "report"),
    [
        ("We still have to trim the hedges.", "I've trimmed them."),
        ("Wir müssen noch den Rasen mähen.", "Erledigt."),
        ("Hay que devolver las llaves.", "Listo."),
        ("Il reste à prévenir les parents.", "C'est fait."),
        ("名簿の印刷を忘れずにお願いします。", "直しました。"),
        ("还得给司机打个电话。", "已经办好了。"),
        ("현관문 손잡이를 손봐야 해요.", "고쳤어요."),
    ],
)
def test_the_only_task_said_a_moment_ago_is_what_done_means(task: str, report: str) -> None:
    read = read_messages([user(task, id="u"), assistant(report, id="a")])
    assert [(f.value, f.state) for f in Ledger().updated(read).facts if f.kind == "task"] == [
        (task, "done")
    ]


def test_done_with_two_tasks_open_finishes_neither() -> None:
    read = read_messages(
        [
            user("We still have to trim the hedges. I need to mend the gate.", id="u"),
            assistant("Done.", id="a"),
        ]
    )
    assert {f.state for f in Ledger().updated(read).facts if f.kind == "task"} == {"open"}


@pytest.mark.parametrize(
    "result",
    """
Job accepted, position 3 in the queue.
The comparison kicked off a minute ago; results to follow.
She is working on it and will get back to you.
Die Suche wurde beauftragt, das Ergebnis wird nachgeliefert.
Ist in Arbeit, ich melde mich.
La búsqueda ha comenzado; avisaré cuando acabe.
En proceso, llegará más tarde.
La recherche a commencé, je vous préviendrai.
C'est en train de tourner.
任务已提交，正在排队。
已经开始查了，随后给您结果。
調査に着手しました。分かり次第ご報告します。
順番待ちです。
접수했습니다. 결과는 나오는 대로 알려 드리겠습니다.
지금 돌고 있습니다.
""".strip().split("\n"),
)
def test_work_that_was_only_started_is_under_way(result: str) -> None:
    assert under_way(result)


@pytest.mark.parametrize(
    "result",
    """
I found three clubs with a free pitch on Sunday.
Es gibt zwei Hallen mit Heizung.
He encontrado dos pistas libres.
J'ai trouvé trois gîtes avec four à pain.
找到了三家有停车场的旅馆。
空いている宿が三軒見つかりました。
빈 숙소 세 곳을 찾았습니다.
Two of the five suppliers deliver on Saturdays.
""".strip().split("\n"),
)
def test_an_outcome_is_not_under_way(result: str) -> None:
    assert not under_way(result)


@pytest.mark.parametrize(
    "line",
    """
However, you can prefix any action with a directory change.
If you include zero or multiple blocks, YOUR RESPONSE WILL FAIL.
No warnings.
_No response_
django.db.utils.ProgrammingError: subquery must return only one column
One option is to reject URLs with such characters.
-- the issue is right here
""".strip().split("\n"),
)
def test_lines_of_protocols_and_reports_are_no_rules(line: str) -> None:
    read = read_messages([user(line, id="u")])
    assert not [f.value for f in Ledger().updated(read).facts if f.kind in ("rule", "decision")]


def test_the_last_of_repeated_complaints_is_the_one_that_holds() -> None:
    first = "Please always provide EXACTLY ONE action in triple backticks, found 3 actions."
    last = "Please always provide EXACTLY ONE action in triple backticks, found 5 actions."
    rules = [f.value for f in told(first, last).facts if f.kind == "rule"]
    assert rules == [last]
