"""A later statement takes the place of an earlier one about the same thing; look-alikes stay."""

import pytest

from conspectus import Ledger
from conspectus.messages import read_messages
from histories import assistant, user


def told(*texts: str) -> Ledger:
    messages = []
    for place, text in enumerate(texts):
        messages += [user(text, id=f"u{place}"), assistant("Understood.", id=f"a{place}")]
    return Ledger().updated(read_messages(messages))


def stated(book: Ledger) -> set[str]:
    return {fact.value for fact in book.facts}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Hotels may cost at most 120 EUR per night.", "Raise the hotel cap to 150 EUR per night."),
        ("The report is due by 3 May 2026.", "The deadline for the report moves to 10 May 2026."),
        ("Reply in French.", "From now on answer me in German, please."),
        ("Retries are limited to 3.", "Change that: retries are now limited to 5."),
        ("The timeout must be at most 30 seconds.", "The timeout must be at most 45 seconds."),
        ("Never deploy on Fridays.", "We changed that: you may deploy on Fridays now."),
        ("I prefer window seats.", "I changed my mind: I'd rather have an aisle seat."),
        (
            "We decided to use Redis for the cache.",
            "Change of plan: we decided to use Memcached for the cache instead of Redis.",
        ),
        ("Das Hotel darf höchstens 120 Euro kosten.", "Beim Hotel erhöhen wir auf 150 Euro."),
        ("Die Frist für den Bericht ist der 3. Mai.", "Die Frist verschiebt sich auf den 10. Mai."),
        ("Antworte immer auf Französisch.", "Antworte ab jetzt bitte auf Deutsch."),
        (
            "L'hôtel ne doit pas dépasser 120 euros.",
            "Pour l'hôtel, on augmente le plafond à 150 euros.",
        ),
        (
            "Le rapport doit être rendu le 3 mai.",
            "La remise du rapport est reportée : il doit être rendu le 10 mai.",
        ),
        ("El hotel debe costar como máximo 120 euros.", "Subimos el límite del hotel a 150 euros."),
        (
            "El informe debe entregarse el 3 de mayo.",
            "Cambio de planes: el informe debe entregarse el 10 de mayo.",
        ),
        ("酒店每晚最多500元。", "酒店的上限提高到每晚800元。"),
        ("报告必须在5月3日前提交。", "报告的截止日期改到5月10日。"),
        ("ホテルは一泊2万円以内でお願いします。", "ホテルの上限を一泊3万円に引き上げます。"),
        ("報告書は5月3日までとします。", "報告書の締め切りは5月10日に変更します。"),
        ("호텔은 1박에 최대 20만 원까지입니다.", "호텔 한도를 1박에 30만 원으로 올립니다."),
        ("보고서는 5월 3일까지 제출해야 합니다.", "보고서 마감이 5월 10일까지로 연기됐습니다."),
    ],
)
def test_the_later_statement_stays_and_the_earlier_goes(old, new):
    book = told(old, "Something else entirely happened today.", new)
    assert old not in {fact.value for fact in book.facts}
    assert old in book.gone
    assert new in stated(book)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Staging: at most 3 deploys a day.", "Production: at most 5 deploys a day."),
        ("The hotel must not exceed 120 EUR per night.", "The flight must not exceed 400 EUR."),
        ("Up to 3 rooms at 80 EUR each.", "Up to 5 rooms at 60 EUR each."),
        ("Never delete order 4711.", "Never delete order 4712."),
        (
            "The timeout of the search service must be at most 30 seconds.",
            "The timeout of the mail service must be at most 45 seconds.",
        ),
        ("Meals: at most 40 EUR per day.", "Meals: at most 200 EUR per trip."),
        ("The draft is due by 3 May 2026.", "The final version is due by 17 May 2026."),
        ("Docs must be in English.", "From now on the minutes must be in German."),
        ("Uploads are limited to 25 MB.", "From now on attachments are limited to 10 MB."),
        (
            "We decided to use Redis for the cache.",
            "We decided to use Postgres for the orders, now that it is there.",
        ),
        ("测试环境最多3次部署。", "生产环境最多5次部署。"),
        ("初稿必须在5月3日前提交。", "终稿必须在5月17日前提交。"),
        ("Der Entwurf muss am 3. Mai da sein.", "Die Endfassung muss am 17. Mai da sein."),
        ("El vuelo debe costar máximo 400 euros.", "El tren debe costar máximo 90 euros."),
        ("下書きは5月3日までとします。", "最終版は5月17日までとします。"),
        ("초안은 5월 3일까지 제출해야 합니다.", "최종본은 5월 17일까지 제출해야 합니다."),
    ],
)
def test_two_that_look_alike_stay_apart(one, other):
    assert stated(told(one, other)) == {one, other}


@pytest.mark.parametrize(
    ("texts", "old", "new"),
    [
        (
            ("Write to anna.maier@example.com.", "Sorry, I mistyped it: anna.meyer@example.com."),
            "anna.maier@example.com",
            "anna.meyer@example.com",
        ),
        (
            ("The notes are in docs/notes.md.", "The notes have moved to docs/old/notes.md."),
            "docs/notes.md",
            "docs/old/notes.md",
        ),
        (
            ("The demo is on 3 May 2026.", "The demo has been postponed to 10 May 2026."),
            "3 May 2026",
            "10 May 2026",
        ),
        (("We run version 3.2.1.", "We pin 3.2.4 instead of 3.2.1."), "3.2.1", "3.2.4"),
        (
            ("Die Sitzung ist am 4. März.", "Die Sitzung wurde auf den 9. März verschoben."),
            "4. März",
            "9. März",
        ),
        (("会议在3月4日。", "会议从3月4日改到3月9日。"), "3月4日", "3月9日"),
    ],
)
def test_a_corrected_value_goes_and_the_right_one_stays(texts, old, new):
    book = told(*texts)
    (fact,) = book.facts
    assert fact.value == texts[1]
    assert new in fact.value
    assert old in texts[0]
    assert texts[0] in book.gone


def test_a_warning_not_to_confuse_two_things_corrects_nothing():
    order = "The order is DD-20318."
    book = told(order, "Don't mix it up with DD-20381, that was the wrong one.")
    assert order in stated(book)


def test_what_the_agent_says_replaces_nothing():
    said = [user("A file may have at most 40 lines."), assistant("From now on at most 60 lines.")]
    book = Ledger().updated(read_messages(said))
    assert stated(book) == {"A file may have at most 40 lines."}


@pytest.mark.parametrize(
    ("rule", "later"),
    [
        (
            "Never edit files under tests/ without asking me first.",
            "Find the cause, show it with a failing test, then fix it. Paths that contain dates, "
            "such as logs/2031/05/01/app.log, must of course stay paths.",
        ),
        (
            "Public functions must always keep their docstrings.",
            "Let's raise that cap: up to 60 lines per function are fine from now on.",
        ),
        (
            "For each task you may add one new test file; the existing ones must stay as they are.",
            "Two questions, no changes. Where do we depend on a clock?",
        ),
    ],
)
def test_a_change_to_something_else_takes_no_rule_away(rule, later):
    book = Ledger().updated(read_messages([{"role": "user", "content": t} for t in (rule, later)]))
    assert rule in {fact.value for fact in book.standing()}


@pytest.mark.parametrize(
    ("least", "most"),
    [
        (
            "Passwords must have at least 12 characters.",
            "Passwords must have at most 64 characters.",
        ),
        ("密码至少8个字符。", "密码最多64个字符。"),
        ("Never book flights before 9 am.", "Never book flights after 9 pm."),
    ],
)
def test_both_ends_of_a_range_stay(least, most):
    book = Ledger().updated(read_messages([{"role": "user", "content": t} for t in (least, most)]))
    assert {fact.value for fact in book.standing()} == {least, most}


@pytest.mark.parametrize(
    ("rule", "exception"),
    [
        ("Never delete files.", "Actually, you can delete files in /tmp."),
        ("Lösche niemals Dateien.", "Eigentlich darfst du Dateien in /tmp löschen."),
    ],
)
def test_an_exception_that_names_a_place_takes_no_general_rule_away(rule, exception):
    texts = (rule, exception)
    book = Ledger().updated(read_messages([{"role": "user", "content": t} for t in texts]))
    assert stated(book) == {rule, exception}
