"""The core: where a history may be cut, what a plan keeps, which records fit a history."""

from dataclasses import replace
from typing import Any

import pytest

from conspectus import Compactor
from conspectus.core.items import Compact, Item, Keep, Window, exchanges, must_stay
from conspectus.core.plan import plan, plan_draft
from conspectus.core.records import Cost, Record, RecordedClip
from conspectus.engine.folding import Folded, fold
from conspectus.engine.settings import Settings
from conspectus.messages import Message, read_messages, summary_message, summary_text
from histories import assistant, tool_result, user


def item(role: str, tokens: int, n: int, **more: object) -> Item:
    return Item(f"k{n}", role, tokens, **more)  # type: ignore[arg-type]


class Large(Item):
    """A message of the user that may be clipped."""

    @property
    def least(self) -> int:
        return 40


def talk(count: int, tokens: int = 100) -> list[Item]:
    return [item("user" if n % 2 == 0 else "assistant", tokens, n) for n in range(count)]


def compacting(*given: Any, **more: Any) -> Compact:
    """A plan that compacts."""
    found = plan(*given, **more)
    assert isinstance(found, Compact)
    return found


def test_a_summary_takes_a_third_of_the_trigger_where_no_window_is_known():
    policy = Settings(trigger=("tokens", 3_000), keep=("messages", 4)).policy()
    assert compacting(talk(60), policy).summary_tokens == 1_000


def test_a_standing_summary_is_replaced_and_never_evicted():
    items = [item("user", 300, 0, summary=True), *talk(30)[1:]]
    found = compacting(items, Settings(trigger=("messages", 30), keep=("messages", 10)).policy())
    assert 0 not in found.evicted
    assert found.at_most == 10 * 100 + found.summary_tokens


def test_a_standing_summary_that_stays_keeps_its_room():
    items = [item("user", 120, 0, summary=True), Large("k1", "user", 5_000)]
    found = compacting(items, Settings(trigger=("messages", 1)).policy(), Window(500))
    assert (found.evicted, found.summary_tokens) == ((), 0)
    assert found.at_most == 120 + found.clips[0].limit == 300  # two fifths are free


def test_old_results_are_clipped_beside_a_standing_summary_that_is_counted_once():
    items = [item("user", 3_000, 0, summary=True), Large("k1", "assistant", 8_000), *talk(9)[2:]]
    settings = Settings(trigger=("tokens", 10_000), keep=("messages", 4), stale_results=True)
    found = compacting(items, settings.policy())
    assert ([clip.index for clip in found.clips], found.summary_tokens) == ([1], 0)
    assert found.at_most == 3_000 + 200 + 700


def test_what_is_shown_short_fits_to_the_token():
    items = [Large(f"k{n}", "user", 5_000, pinned=True) for n in range(3)]
    found = compacting(items, Settings(trigger=("tokens", 100)).policy(), Window(2_000))
    assert [clip.limit for clip in found.clips] == [606, 606, 606]  # it may grow by a tenth
    assert found.at_most == 1_818


def test_what_the_user_said_last_stays_whole_beside_half_of_the_notes_room_or_more():
    items = [*talk(10), Large("k10", "user", 690)]
    found = compacting(items, Settings(trigger=("messages", 9)).policy(), Window(1_140))
    assert (found.clips, found.summary_tokens) == ((), (1_140 - 690) // 2)
    items = [*talk(10), Large("k10", "user", 1_060)]
    found = compacting(items, Settings(trigger=("messages", 9)).policy(), Window(1_140))
    assert [clip.index for clip in found.clips] == [10]
    assert found.summary_tokens >= 380 // 2


def test_beside_long_instructions_the_request_is_shown_rather_than_a_long_summary():
    items = [item("system", 700, 0), *talk(11)[1:], Large("k11", "user", 900)]
    found = compacting(items, Settings(trigger=("messages", 9)).policy(), Window(1_000), floor=64)
    assert found.summary_tokens == 64
    assert [clip.limit for clip in found.clips] == [1_000 - 700 - 64]


def test_what_frees_too_little_is_not_made_unless_the_window_or_force_asks():
    policy = Settings(trigger=("tokens", 4_000), keep=("messages", 20)).policy()

    def pinned(count: int) -> list[Item]:
        """A talk of which all but the first messages is pinned."""
        return [replace(one, pinned=n >= count - 20) for n, one in enumerate(talk(count, 300))]

    for window in (None, Window(15_000)):
        found = plan(pinned(21), policy, window)
        assert found == Keep("a compaction would free too little", 6_300)
        assert compacting(pinned(21), policy, window, force=True)
    found = compacting(pinned(24), policy)
    assert found.tokens - found.at_most >= 720
    assert found.summary_tokens >= 300
    tight = [item("user", 290, 0), *talk(20, 300)[1:], item("user", 300, 99)]
    assert compacting(tight, policy, Window(sum(one.tokens for one in tight) - 1))
    assert compacting(talk(5, 10), Settings(trigger=("tokens", 40), keep=("messages", 1)).policy())


@pytest.mark.parametrize(
    ("window", "tokens", "share"),
    [(None, 100, 2_999), (16_000, 100, 2_800), (128_000, 100, 2_999), (128_000, 1_000, 15_000)],
)
def test_where_messages_are_counted_the_notes_have_half_of_what_leaves(window, tokens, share):
    """Of much; of little they may take all but the gain."""
    policy = replace(
        Settings(trigger=("messages", 50), keep=("messages", 20)).policy(), keep_is_set=True
    )
    found = compacting(talk(50, tokens), policy, window and Window(window), floor=170)
    assert (len(found.evicted), found.summary_tokens) == (30, share)


def test_for_a_prepared_draft_just_what_it_stands_for_leaves():
    talk = [Item(f"{n}", "user" if n % 2 == 0 else "assistant", 100) for n in range(12)]
    decided = Compact("trigger", tuple(range(8)), (), 200, 1_200, 600, 1_500)
    planned = plan_draft(talk, Window(1_500), decided, [0, 1, 2, 3], 150)
    assert planned is not None
    assert planned.evicted == (0, 1, 2, 3)
    assert planned.at_most <= 1_500


def u(tokens: int = 1, **more: object) -> Item:
    return Item("k", "user", tokens, **more)  # type: ignore[arg-type]


def a(*calls: str) -> Item:
    return Item("k", "assistant", 1, calls=calls)


def t(*answers: str) -> Item:
    return Item("k", "tool", 1, answers=answers)


SYSTEM = Item("k", "system", 1)
PINNED = Item("k", "tool", 1, answers=("2",), pinned=True)
THOUGHT = [u(), a(), replace(a("1"), continues_answer=True), replace(a("2"), continues_answer=True)]
PROGRAM = [u(), a("p", "1"), t("1"), replace(a("2"), needs=("p",)), t("2")]
STAY = {
    "an unanswered call with the answers that it has": (
        [u(), a("1", "2"), t("1"), u(), a()],
        {1, 2, 3},
    ),
    "a call that waits for approval at the end": ([u(), a(), u(), a("1")], {2, 3}),
    "the newest user message, and a summary is none": ([u(), a(), u(summary=True), a()], {0}),
    "a user's words beside results, with their call": (
        [u(), a("1"), Item("k", "user", 1, answers=("1",)), a()],
        {1, 2},
    ),
    "leading system messages, not later ones": ([SYSTEM, SYSTEM, u(), SYSTEM, a()], {0, 1, 2}),
    "what goes on with an answer, where it waits": ([*THOUGHT, t("1"), u()], {1, 2, 3, 4, 5}),
    "what needs a call that runs": ([*PROGRAM, u()], {1, 2, 3, 4, 5}),
    "nothing of what a message answers itself": ([u(), replace(a("s"), answers=("s",)), u()], {2}),
    "a pinned result with its call and its brothers": (
        [a("1", "2"), t("1"), PINNED, a(), u()],
        {0, 1, 2, 4},
    ),
    "an unread late answer and its call": ([u(), a("1"), t("1"), a(), t("1")], {0, 1, 2, 4}),
    "a pinned one": ([u(), a("2"), t("2"), a(), PINNED, a()], {0, 1, 2, 4}),
    "no late answer that was read": ([u(), a("1"), t("1"), a(), t("1"), a()], {0}),
}


@pytest.mark.parametrize(("items", "places"), STAY.values(), ids=STAY)
def test_what_must_stay(items, places):
    assert set(must_stay(items, exchanges(items))) == places


CUTS = {
    "ids that are used again are matched within their turn": (
        [u(), a("1"), t("1"), u(), a("1"), t("1"), u()],
        [0, 1, 3, 4, 6, 7],
    ),
    "a late second answer goes with its call and does not glue turns together": (
        [a("1"), t("1"), u(), a(), t("1"), u()],
        [0, 2, 3, 4, 5, 6],
    ),
    "what goes on with an answer is not cut off from it": (
        [*THOUGHT, t("2"), t("1"), u()],
        [0, 1, 6, 7],
    ),
    "what needs a call stays with it": ([*PROGRAM, u()], [0, 1, 5, 6]),
}


@pytest.mark.parametrize(("items", "places"), CUTS.values(), ids=CUTS)
def test_where_a_history_may_be_cut(items, places):
    found = exchanges(items)
    assert [i for i, legal in enumerate(found.cuts) if legal] == places
    assert found.orphans == frozenset()


def test_notes_under_a_trigger_of_messages_may_take_a_sixteenth_of_the_window():
    items = [u(tokens=200) for _ in range(90)]
    often = Settings(trigger=("messages", 50)).policy()
    rooms = [plan(items, often, Window(size)).summary_tokens for size in (64_000, 160_000, 999_000)]
    assert rooms == [7_000, 10_000, 13_999]  # of 14,000 that leave


def test_an_exchange_that_is_tied_to_another_brings_the_results_that_it_had():
    items = [a("1"), a("2", "3"), t("2"), t("1", "3"), u()]
    assert exchanges(items).group == (0, 0, 0, 0, 4)


def test_a_late_second_answer_stays_in_view_with_its_call_until_it_was_read():
    """Then it stays while its call does; where that leaves, the notes tell both outcomes."""
    talk = [user(f"Look at module {n}. " * 40) for n in range(12)]
    late = [user("Run the tests."), assistant("", ("c", "all")), tool_result("c", "still running")]
    late += [assistant("They are running."), tool_result("c", "3 tests failed")]
    compactor = Compactor(keep=("messages", 8), archive="memory:")
    kept = compactor.compact([*talk, *late], thread_id="t", force=True)
    assert kept.outcome == "compacted"
    assert late[-1] in kept.messages
    late.append(assistant("So they fail."))
    gone = compactor.compact([*late, *talk], thread_id="gone", force=True)
    assert late[-2] not in gone.messages
    assert "3 tests failed" in gone.summary


def test_a_late_answer_of_half_the_room_leaves_rather_than_block():
    talk = [user(f"Look at module {n}. " * 40) for n in range(12)]
    late = [user("Run the tests."), assistant("", ("c", "all")), tool_result("c", "still running")]
    late += [assistant("They are running."), tool_result("c", "a test failed. " * 1_500)]
    for archive in (None, "memory:"):
        compactor = Compactor(window=8_000, keep=("messages", 2), archive=archive)
        result = compactor.compact([*talk, *late], thread_id="t", force=True)
        assert result.outcome == "compacted"
        assert late[-1] not in result.messages
        assert result.tokens_after < 4_000


def sent(*names: str, summary: Record | None = None) -> list[Message]:
    """Messages with these texts and ids, behind the summary of a record if one is given."""
    roles = {"s": "system", "u": "user"}
    messages: list[Any] = [
        {"role": roles.get(name[0], "assistant"), "content": name, "id": name} for name in names
    ]
    if summary is not None:
        text = summary_text(summary.summary, archived=True, number=summary.notes_number)
        messages.insert(messages[0]["role"] == "system", summary_message(text, summary.id))
    return read_messages(messages)


def key(name: str) -> str:
    return sent(name)[0].key


def record(
    parent: Record | None, *covers: str, clips: tuple[RecordedClip, ...] = (), **more: Any
) -> Record:
    parts: dict[str, Any] = {
        "parent": parent.id if parent else None,
        "covers": tuple(map(key, covers)),
        "clips": clips,
        "summary": f"about {covers}" if covers else "",
        "notes": {},
        "cause": "test",
        "tokens_before": 10,
        "tokens_after": 5,
        "messages_after": 1,
        "archived": True,
        "by": "x",
        "cost": Cost(),
    }
    return Record.make(**{**parts, **more})


def shown(view: Folded, history: list[Message]) -> list[str]:
    return [history[message.position].text for message in view.remaining]


R1 = record(None, "a", "b")
R2 = record(R1, "c", "d")


FIT = {
    "a whole history sent again": (sent("s", "a", "b", "c", "d", "e"), "s e", [R1, R2]),
    "what was given back and is sent again": (sent("s", "e", "f", summary=R2), "s e f", [R1, R2]),
    "an edit drops the records of it and all after": (sent("a", "b", "c2", "d"), "c2 d", [R1]),
    "an edit of the first one drops all": (sent("a2", "b", "c", "d"), "a2 b c d", []),
    "a summary brings no deleted message back": (sent("a", "c", "d"), "a c d", []),
    "another order is another history": (sent("b", "a", "e"), "b a e", []),
    "an earlier summary drops the later record": (sent("c", "q", summary=R1), "c q", [R1]),
    "what comes after a summary stays": (sent("a", "e", summary=R1), "a e", [R1]),
}


@pytest.mark.parametrize(("history", "in_view", "chain"), FIT.values(), ids=FIT)
def test_which_records_fit(history, in_view, chain):
    view = fold([R1, R2], history)
    assert shown(view, history) == in_view.split()
    assert list(view.chain) == chain


def test_of_two_clips_of_one_message_the_later_is_shown():
    first = record(None, clips=(RecordedClip(key("b"), "b-short", 50),))
    later = RecordedClip(key("b"), "b-shorter", 20)
    second = record(first, clips=(later,))
    view = fold([first, second], sent("a", "b", "c"))
    assert [one.clip for one in view.remaining] == [None, later, None]


def test_a_record_that_shows_short_what_is_not_there_is_dropped():
    only = record(None, clips=(RecordedClip(key("b"), "b-short", 50),))
    assert fold([only], sent("a", "b")).chain == (only,)
    assert fold([only], sent("a", "c")).chain == ()
