"""Callers that drop the beginning of a history, as a sliding window does."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conspectus import Archive, Compactor
from conspectus.archive import Scope
from conspectus_sdk import Fitter
from histories import assistant, user

WINDOW = 3_000
PORT = "The relay of Oslo answers on port 48213."
Turns = list[list[dict[str, Any]]]
Pick = Callable[[Turns], Turns]


def turn(number: int, **ids: str) -> list[dict[str, Any]]:
    """A turn whose last words are said in each turn alike."""
    question = f"Step {number}. {PORT if number == 3 else ''} " + "Think well. " * 30
    first_exchange = [user(question), assistant(f"Step {number} is done. " + "So. " * 20)]
    return [*first_exchange, user("ok"), assistant("yes")]


def with_ids(turns: Turns) -> Turns:
    return [
        [{**message, "id": f"m{number}-{index}"} for index, message in enumerate(part)]
        for number, part in enumerate(turns)
    ]


def all_turns(turns: Turns) -> Turns:
    return turns


def newest_turns(turns: Turns) -> Turns:
    return turns[-14:]


def first_messages_and_newest(turns: Turns) -> Turns:
    return [turns[0][:2], *turns[-14:]] if len(turns) > 15 else turns


def first_turns_and_newest(turns: Turns) -> Turns:
    return [*turns[:2], *turns[-12:]] if len(turns) > 14 else turns


def own_note_behind_first_turn(turns: Turns) -> Turns:
    if len(turns) <= 13:
        return turns
    note = [user(f"Skipped {4 * (len(turns) - 13)} messages.")]
    return [turns[0], note, *turns[-12:]]


def own_summary_and_newest(turns: Turns) -> Turns:
    if len(turns) <= 12:
        return turns
    return [[user(f"In short: {len(turns) - 12} steps went well. " * 3)], *turns[-12:]]


class Caller:
    """Call for a view after each turn, and keep what came of it."""

    def __init__(self, pick: Pick, *, ids: bool = False, fitter: bool = False) -> None:
        self.archive = Archive.open("memory:")
        self.pick = pick
        self.ids = ids
        self.fitter = fitter
        self.records = list[str]()
        self.turns: Turns = []
        self.view = list[Any]()
        self._new()

    def _new(self) -> None:
        if self.fitter:
            self._engine: Any = Fitter(archive=self.archive, window=WINDOW)
        else:
            self._engine = Compactor(archive=self.archive, window=WINDOW)

    def run(self, turns: int, *, restart: bool = False) -> None:
        for number in range(turns):
            if restart:
                self._new()
            self.turns.append(turn(number))
            turns_sent = with_ids(self.turns) if self.ids else self.turns
            sent = [message for part in self.pick(turns_sent) for message in part]
            self.sent = [*sent, user(f"Go on behind {number}.")]
            model = {"model": "m"} if self.fitter else {}
            compact_or_fit = self._engine.compact if not self.fitter else self._engine.fit
            view_result = compact_or_fit(self.sent, thread_id="t", **model)
            assert view_result.tokens_after <= WINDOW
            self.view = list(view_result.messages)
            if view_result.record is not None:
                self.records.append(view_result.record.id)

    @property
    def archived(self) -> list[str]:
        rows = self.archive.export(Scope("local", "t"))
        return [str(row["message"]["content"]) for row in rows]


@pytest.mark.parametrize("fitter", [False, True])
@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("pick", [newest_turns, first_messages_and_newest, first_turns_and_newest])
def test_a_history_without_its_beginning_is_compacted_as_the_whole(pick, ids, fitter):
    callers = [Caller(choose, ids=ids, fitter=fitter) for choose in (all_turns, pick)]
    for caller in callers:
        caller.run(40)
    assert callers[0].records
    assert len(callers[1].records) == len(callers[0].records)
    assert [message["content"] for message in callers[1].view] == [
        message["content"] for message in callers[0].view
    ]
    assert callers[1].archived == callers[0].archived


@pytest.mark.parametrize(
    "pick",
    [
        newest_turns,
        first_messages_and_newest,
        first_turns_and_newest,
        own_note_behind_first_turn,
        own_summary_and_newest,
    ],
)
def test_a_new_process_goes_on_with_a_history_that_begins_later(pick):
    caller = Caller(pick)
    caller.run(40, restart=True)
    assert len(caller.archive.chain(Scope("local", "t"))) == len(caller.records) > 4
    assert any(PORT in text for text in caller.archived)
    view = " ".join(str(message["content"]) for message in caller.view)
    assert all(
        f"Step {n}." in view or any(f"Step {n}." in t for t in caller.archived) for n in range(40)
    )


def test_words_that_were_said_before_are_another_message_in_the_view():
    caller = Caller(newest_turns)
    caller.run(40)
    texts = [str(message["content"]) for message in caller.view]
    # Each turn in view has its own short words, although equal ones have left.
    assert (
        texts.count("ok") == sum(text.startswith("Step") and "done" in text for text in texts) > 2
    )


def test_a_caller_that_drops_all_that_was_in_view_goes_on():
    compactor = Compactor(archive="memory:", window=WINDOW)
    turns = [turn(n) for n in range(60)]
    for end in range(1, 21):
        sent = [message for part in turns[:end] for message in part]
        compactor.compact([*sent, user("Go on.")], thread_id="t")
    for end in range(21, 41):  # the newest three fit by far
        sent = [message for part in turns[end - 3 : end] for message in part]
        result = compactor.compact([*sent, user("Go on.")], thread_id="t")
    assert result.summary in str(result.messages[0]["content"])
    texts = [message["content"] for message in (*sent, user("Go on."))]
    assert [message["content"] for message in result.messages][-len(texts) + 1 :] == texts[1:]
    assert "48213" in compactor.recall("relay of Oslo port", thread_id="t").text


def test_newest_messages_after_quiet_steps_continue_the_record():
    compactor = Compactor(archive="memory:", window=WINDOW)
    messages = history(range(60))
    records = 0
    end = 0
    while records < 2:
        end += 1
        records += compactor.compact(messages[:end], thread_id="t").record is not None
    for _ in range(12):  # one message a step: after the first, none is read in full
        end += 1
        assert compactor.compact(messages[:end], thread_id="t").outcome == "kept"
    result = compactor.compact(messages[end - 11 : end + 1], thread_id="t")
    assert result.summary
    assert "48213" in compactor.recall("relay of Oslo port", thread_id="t").text


@pytest.mark.parametrize("last_words", [[], [user("Go on.")]], ids=["quiet", "read in full"])
def test_a_caller_that_dropped_the_whole_view_continues(last_words):
    compactor = Compactor(archive="memory:", window=WINDOW)
    turns = [turn(n) for n in range(60)]
    for end in range(1, 21):
        sent = [message for part in turns[:end] for message in part]
        compactor.compact([*sent, user("Go on.")], thread_id="t")
    outcomes = set[str]()
    for end in range(21, 40):  # begins at the same message each time
        sent = [message for part in turns[18:end] for message in part]
        result = compactor.compact([*sent, *last_words], thread_id="t")
        outcomes.add(result.outcome)
        assert result.summary
        assert "48213" in compactor.recall("relay of Oslo port", thread_id="t").text
    assert outcomes == {"kept", "compacted"}


def test_a_window_from_the_last_kept_message_is_compacted_once():
    compactor = Compactor(archive="memory:", trigger=("messages", 100), keep=("messages", 1))
    *covered, newest_user_message = [*history(range(6)), user("Now the harbour. " + "Why? " * 40)]
    compactor.compact([*covered, newest_user_message], thread_id="t", force=True)
    later = [newest_user_message, assistant("It is done."), *history([7])]
    compactor.compact([*covered, *later, user("Go on.")], thread_id="t")
    sent = [*later, *history([8, 9]), user("And now?")]
    result = compactor.compact(sent, thread_id="t", force=True)
    second_result = compactor.compact(sent, thread_id="t")
    assert (result.outcome, second_result.outcome) == ("compacted", "kept")
    assert second_result.messages == result.messages


def test_a_smaller_window_that_only_shortens_the_summary_asks_no_summariser():
    findings = "\n".join(
        f"- Relay {n} answers on port {48213 + n}, and it was done with very much care."
        for n in range(90)
    )
    requests = list[Any]()

    def summarizer(request: Any) -> str:
        requests.append(request)
        return f"## Findings\n{findings}"

    archive = Archive.open("memory:")
    common: dict[str, Any] = {"keep": ("messages", 2), "summarizer": summarizer}
    common |= {"archive": archive, "on_failure": "raise"}
    messages = history(range(30))
    compactor = Compactor(window=20_000, **common)
    first = compactor.compact(messages, thread_id="t", force=True)
    shorter = Compactor(window=3_000, **common).compact(messages, thread_id="t")
    assert (first.outcome, shorter.outcome, len(requests)) == ("compacted", "compacted", 1)
    assert shorter.evicted == 0
    assert shorter.tokens_after < first.tokens_after
    assert shorter.summary.count("Relay 3 answers") == 1


def history(numbers: Any) -> list[dict[str, Any]]:
    return [message for number in numbers for message in turn(number)]


WHOLE = history(range(20))
OTHERS = {
    "another conversation": [user("Hello."), assistant("Hi."), user("What is new?")],
    "one message in common": [WHOLE[-1], user("Another matter.")],
    "an edit of the first message": [user("Edited."), *WHOLE[1:]],
    "a deleted message": [WHOLE[0], *WHOLE[2:]],
    "a deleted turn in the middle": [*WHOLE[:12], *WHOLE[16:]],
    "a question that is asked again": WHOLE[8:13],
    "another order": [*WHOLE[8:16], *WHOLE[:8], *WHOLE[16:]],
}


@pytest.mark.parametrize("other_history", OTHERS.values(), ids=OTHERS)
def test_another_history_gets_no_summary_of_a_record(other_history):
    with tempfile.TemporaryDirectory() as folder:
        archive = str(Path(folder) / "a.db")
        first = Compactor(archive=archive, window=WINDOW).compact(WHOLE, thread_id="t")
        assert first.record is not None
        result = Compactor(archive=archive, window=100_000).compact(other_history, thread_id="t")
    assert result.summary == ""
    assert list(result.messages) == other_history
