"""Clients that send their newest messages only, through the real endpoint."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic
from openai import OpenAI

from conspectus.archive import Archive, Scope
from fault_server import FaultServer
from histories import assistant, tool_result, user
from serve_support import METER, SECRET, Serving, serving

WINDOW = 3_000
PORT = "The relay of Oslo answers on port 48213."
THREAD_HEADER = {"x-conspectus-thread": "mine"}
Turns = list[list[dict[str, Any]]]


def turn_of(number: int) -> list[dict[str, Any]]:
    question = f"Step {number}. {PORT if number == 3 else ''} " + "Think well. " * 30
    return [user(question), assistant(f"Step {number} is done. " + "So. " * 20)]


def with_short_words(number: int) -> list[dict[str, Any]]:
    return [*turn_of(number), user("ok"), assistant("yes")]


def with_calls(number: int) -> list[dict[str, Any]]:
    """A turn whose call has the id that each turn's call has."""
    question, answer = turn_of(number)
    call = assistant("", ("call_0", f"{number}"))
    return [question, call, tool_result("call_0", f"RESULT-{number:03} " + "data. " * 60), answer]


def all_of(turns: Turns) -> list[Any]:
    return [message for part in turns for message in part]


def newest_turns_only(count: int) -> Callable[[Turns], list[Any]]:
    return lambda turns: all_of(turns[-count:])


def of_tokens(turns: Turns) -> list[Any]:
    newest_turns: Turns = []
    while len(newest_turns) < len(turns):
        longer = [turns[-len(newest_turns) - 1], *newest_turns]
        if METER.count_messages(all_of(longer)) > 2_400:
            break
        newest_turns = longer
    return all_of(newest_turns)


def oldest_pair_by_pair(turns: Turns) -> list[Any]:
    sent = all_of(turns)
    while METER.count_messages(sent) > 2_300:
        del sent[:2]
    return sent


def with_a_system_prompt(turns: Turns) -> list[Any]:
    return [{"role": "system", "content": "You are kind."}, *all_of(turns[-14:])]


def first_and_newest(turns: Turns) -> list[Any]:
    return all_of([turns[0][:1], *turns[-14:]] if len(turns) > 14 else turns)


def first_turns_and_newest(turns: Turns) -> list[Any]:
    """As of clients that keep their task with its first steps, or examples."""
    return all_of([*turns[:2], *turns[-10:]] if len(turns) > 12 else turns)


def head_and_tail(turns: Turns) -> list[Any]:
    if len(turns) <= 14:
        return all_of(turns)
    note = user(f"Skipped {2 * (len(turns) - 14)} messages.")
    return [*turns[0], *turns[1], note, *all_of(turns[-12:])]


def own_summary(turns: Turns) -> list[Any]:
    if len(turns) <= 14:
        return all_of(turns)
    return [user(f"In short: {len(turns) - 14} steps went well. " * 3), *all_of(turns[-14:])]


def results_cleared(turns: Turns) -> list[Any]:
    sent = json.loads(json.dumps(turns[-12:]))
    for part in sent[:-3]:
        for message in part:
            if message["role"] == "tool":
                message["content"] = "[Old tool result content cleared]"
    return all_of(sent)


class SlidingTalk:
    """A conversation through an endpoint, of which only a part is sent each time."""

    def __init__(self, upstream: FaultServer, endpoint: Serving, archive: Path) -> None:
        self.upstream = upstream
        self.endpoint = endpoint
        self.archive = archive
        self.threads = set[str]()
        self.records = set[str]()

    def run(
        self,
        pick: Callable[[Turns], list[Any]],
        turn: Callable[[int], list[Any]] = turn_of,
        count: int = 40,
        headers: dict[str, str] | None = None,
    ) -> "SlidingTalk":
        client = OpenAI(base_url=self.endpoint.openai_url, api_key="k", max_retries=0)
        turns: Turns = []
        for number in range(count):
            turns.append(turn(number))
            sent = [*pick(turns), user(f"Go on behind {number}.")]
            answer = client.chat.completions.with_raw_response.create(
                model="m", messages=sent, extra_headers=headers
            )
            self.threads.add(answer.headers["x-conspectus-thread"])
            if answer.headers["x-conspectus-compacted"] == "true":
                self.records |= {answer.headers.get("x-conspectus-record", "")}
            assert int(answer.headers["x-conspectus-tokens-after"]) <= WINDOW
        return self

    @property
    def archived(self) -> str:
        [thread] = self.threads
        with Archive.open(self.archive) as archive:
            return json.dumps(archive.export(Scope(SECRET.tenant("k"), thread)))

    @property
    def sent_last(self) -> str:
        return json.dumps(self.upstream.requests[-1].messages)


@contextmanager
def talking(folder: Path, **settings: Any) -> Iterator[SlidingTalk]:
    archive = folder / "a.db"
    with (
        FaultServer(lambda request: "fine") as upstream,
        serving(
            upstream.anthropic_url, archive, window=WINDOW, recall="off", **settings
        ) as endpoint,
    ):
        yield SlidingTalk(upstream, endpoint, archive)


SLIDING: dict[str, Any] = {
    "newest 16": (newest_turns_only(16), turn_of),
    "newest 8, which always fit": (newest_turns_only(8), turn_of),
    "newest 4, which always fit": (newest_turns_only(4), turn_of),
    "newest by tokens": (of_tokens, turn_of),
    "oldest pair by pair": (oldest_pair_by_pair, turn_of),
    "the system prompt stays": (with_a_system_prompt, turn_of),
    "the first message stays": (first_and_newest, turn_of),
    "the first turns stay": (first_turns_and_newest, turn_of),
    "the first turns stay with their calls": (first_turns_and_newest, with_calls),
    "a note behind the first turns": (head_and_tail, turn_of),
    "a summary of its own": (own_summary, turn_of),
    "short words in each turn": (newest_turns_only(12), with_short_words),
    "equal ids of calls": (newest_turns_only(10), with_calls),
    "results are cleared": (results_cleared, with_calls),
}
QUICK = ("newest 16", "results are cleared")


@pytest.mark.parametrize("headers", [None, THREAD_HEADER], ids=["found", "named"])
@pytest.mark.parametrize(
    ("pick", "turn"),
    [
        pytest.param(*case, id=name, marks=() if name in QUICK else pytest.mark.slow)
        for name, case in SLIDING.items()
    ],
)
def test_a_sliding_client_has_one_whole_history(tmp_path, pick, turn, headers):
    (tmp_path / "whole").mkdir()
    with talking(tmp_path / "whole") as whole:
        whole.run(all_of, turn, headers=headers)
    with talking(tmp_path) as talk:
        talk.run(pick, turn, headers=headers)
        assert len(talk.threads) == 1
        # It is compacted again and again, and hardly more often than a history sent whole.
        assert 3 <= len(talk.records) <= len(whole.records) + 1
        archived = talk.archived
        assert PORT in archived
        # What the client has dropped was sent and archived before, and nothing is lost between.
        assert all(f"Step {n}." in archived + talk.sent_last for n in range(40))
        if turn is with_calls:
            result_numbers = [n for n in range(36) if f"RESULT-{n:03}" in archived + talk.sent_last]
            assert result_numbers == [*range(36)]


@pytest.mark.slow
@pytest.mark.parametrize("headers", [{}, THREAD_HEADER], ids=["found", "named"])
def test_after_a_restart_the_next_request_goes_on_from_the_notes(tmp_path, headers):
    turns: Turns = []
    records = set[str]()
    threads = set[str]()
    for _ in range(8):
        with talking(tmp_path) as talk:
            for _ in range(5):
                turns.append(turn_of(len(turns)))
                sent = [*all_of(turns[-16:]), user("Go on.")]
                thread, record = ask(talk.endpoint, sent, **headers)
                threads.add(thread)
                records |= {record} - {""}
    assert len(threads) == 1
    assert 3 <= len(records) <= 8  # again and again, and not anew after each of 8 restarts


def test_a_client_of_anthropic_slides_as_well(tmp_path):
    turns: Turns = []
    with talking(tmp_path) as talk:
        client = Anthropic(base_url=talk.endpoint.anthropic_url, api_key="k", max_retries=0)
        for number in range(40):
            turns.append(turn_of(number))
            answer = client.messages.with_raw_response.create(
                model="m", max_tokens=9, messages=[*all_of(turns[-16:]), user("Go on.")]
            )
            talk.threads.add(answer.headers["x-conspectus-thread"])
            talk.records.add(answer.headers.get("x-conspectus-record", ""))
        assert len(talk.threads) == 1
        assert len(talk.records - {""}) <= 8
        assert PORT in talk.archived


def ask(endpoint: Serving, sent: list[Any], key: str = "k", **headers: str) -> tuple[str, str]:
    """Ask; gives the thread, and the record in force, empty for none."""
    client = OpenAI(base_url=endpoint.openai_url, api_key=key, max_retries=0)
    answer = client.chat.completions.with_raw_response.create(
        model="m", messages=sent, extra_headers={k.replace("_", "-"): v for k, v in headers.items()}
    )
    return answer.headers["x-conspectus-thread"], answer.headers.get("x-conspectus-record", "")


SHORT = [user("Hello."), assistant("Hi! How can I help you?")]
COURTESIES = [user("How are you?"), assistant("Fine, thank you.")]


def test_walls_stand_where_little_or_another_tenants_is_shared(tmp_path):
    turns = [turn_of(number) for number in range(20)]
    secret = [user("My secret is a heron."), assistant("It is safe. " + "So. " * 30)]
    begin = [*secret, *all_of(turns), *SHORT, *COURTESIES]
    with talking(tmp_path) as talk:
        thread_of_mine, record = ask(talk.endpoint, [*begin, user("Go on.")])
        assert record
        foreign_requests = {
            "a greeting": [*SHORT, user("Another matter.")],
            "a greeting with courtesies": [*SHORT, *COURTESIES, user("Another matter.")],
            "a greeting behind other words": [user("I am new."), *SHORT, user("And so?")],
            "one long turn": [*turns[-1], user("Another matter.")],
            "its middle": [*all_of(turns[4:12]), user("Another matter.")],
        }
        for sent in foreign_requests.values():
            thread, _ = ask(talk.endpoint, sent)
            assert thread != thread_of_mine
            assert "heron" not in talk.sent_last
        # The same words with another key.
        slid = [*all_of(turns[-8:]), *SHORT, *COURTESIES, user("And now?")]
        ask(talk.endpoint, slid, key="another")
        assert "heron" not in talk.sent_last
        thread_and_record = ask(talk.endpoint, slid)
        assert thread_and_record == (thread_of_mine, record)
        assert "heron" in talk.sent_last


def test_another_session_of_a_client_does_not_slide_into_a_history(tmp_path):
    turns = [turn_of(number) for number in range(20)]
    with talking(tmp_path) as talk:
        first, _ = ask(talk.endpoint, [*all_of(turns), user("Go on.")], x_session_id="one")
        slid = [*all_of(turns[-8:]), user("And now?")]
        second, _ = ask(talk.endpoint, slid, x_session_id="two")
        third, _ = ask(talk.endpoint, [*all_of(turns[-10:]), user("And now?")], x_session_id="one")
    assert second != first
    assert third == first


def test_a_fitting_request_gets_no_dropped_messages(tmp_path):
    turns: Turns = []
    with talking(tmp_path) as talk:
        for number in range(8):  # all of them fit
            turns.append(turn_of(number))
            sent = [*all_of(turns[-3:]), user("Go on.")]
            ask(talk.endpoint, sent)
            assert talk.upstream.requests[-1].messages == sent


def test_conversations_that_differ_in_what_both_have_dropped_share_no_notes(tmp_path):
    with talking(tmp_path) as talk:
        for number in range(8, 20):
            later_turns = all_of([turn_of(n) for n in range(1, number)])
            for name, other_name in (("heron", "otter"), ("otter", "heron")):
                whole = [user(f"The password is {name}."), *all_of([turn_of(0)])[1:], *later_turns]
                sent = whole if number < 12 else whole[-10:]
                ask(talk.endpoint, [*sent, user("Go on.")])
                assert other_name not in talk.sent_last


def test_a_first_drop_of_one_message_loses_nothing(tmp_path):
    def drop_slowly(turns: Turns) -> list[Any]:
        """Two first messages stay, and what is behind them goes: first one message, then more."""
        sent = all_of(turns)
        drops = {10: 1, 11: 3}
        count = drops.get(len(turns), max(0, len(sent) - 18))
        return sent[:2] + sent[2 + count :]

    with talking(tmp_path) as talk:
        talk.run(drop_slowly, count=30)
        archived_or_sent = talk.archived + talk.sent_last
        assert [n for n in range(30) if f"Step {n}. " not in archived_or_sent] == []


def test_a_named_client_with_newest_turns_has_one_history(tmp_path):
    history: list[Any] = []
    records = set()
    with talking(tmp_path) as talk:
        for number in range(30):
            question, answer = turn_of(number)
            history.append(question)
            thread, record = ask(talk.endpoint, history[-3:], **THREAD_HEADER)
            talk.threads.add(thread)
            records |= {record} - {""}
            history.append(answer)
        archived_or_sent = talk.archived + talk.sent_last
    assert len(records) >= 3
    # The newest that no record covers yet are held in memory.
    assert [n for n in range(22) if f"Step {n}. " not in archived_or_sent] == []
