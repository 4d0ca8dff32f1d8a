"""What clients clear or drop before a compaction is due, through the real endpoint.

It is archived when it is cleared, and not at the next compaction, which may never come or may come
after a kill.
"""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from conspectus import Compactor
from conspectus.archive import Archive, Scope
from conspectus.config import SummarizationConfig
from conspectus.errors import ArchiveError, ConspectusError
from conspectus_serve.protocols import HttpError
from conspectus_serve.settings import DEFAULT_SUMMARIZATION
from conspectus_serve.work import LocalWork
from histories import assistant, tool_result, user
from serve_support import SECRET, Serving, proxied_script

NAMED = {"x-conspectus-thread": "mine"}
PLACEHOLDER = "[Old tool result content cleared]"
FACT = "The relay of Oslo answers on port 48213."
LONG_RESULT = f"RESULT-000 {FACT} " + "data. " * 60
SMALL_RESULT = "Oslo: port 48213."
RANDOM_ID = "call_8Fj3kLq92Zx7"


def turn(number: int, result: str, call_id: str = "call_0") -> list[dict[str, Any]]:
    return [
        user(f"Step {number}. " + "Think well. " * 30),
        assistant("", (call_id, f"{number}")),
        tool_result(call_id, result),
        assistant(f"Step {number} is done. " + "So. " * 20),
    ]


def joined(turns: list[Any]) -> list[Any]:
    return [message for messages in turns for message in messages]


def cleared(messages: list[Any]) -> list[Any]:
    return [
        {**message, "content": PLACEHOLDER} if message["role"] == "tool" else message
        for message in messages
    ]


@contextmanager
def endpoint_of(
    archive: Path | Archive, window: int = 20_000, **settings: Any
) -> Iterator[Serving]:
    """An endpoint without a memory of what any other one has seen."""
    settings = {"recall": "off", "window": window, **settings}
    with proxied_script(lambda request: "fine", archive, **settings) as (_, endpoint):
        yield endpoint


def ask(
    endpoint: Serving,
    messages: list[Any],
    headers: dict[str, str] | None = None,
    question: str = "Go on.",
) -> Any:
    client = OpenAI(base_url=endpoint.openai_url, api_key="k", max_retries=0)
    answer = client.chat.completions.with_raw_response.create(
        model="m", messages=[*messages, user(question)], extra_headers=headers or {}
    )
    return answer.headers


def recalled(archive: Path, headers: Any, query: str = "relay of Oslo port") -> str:
    """What `recall` finds, without the endpoint."""
    with Archive.open(archive) as kept:
        try:
            return (
                Compactor(archive=kept)
                .recall(
                    query,
                    thread_id=headers["x-conspectus-thread"],
                    session=headers.get("x-conspectus-session", "main"),
                    tenant=SECRET.tenant("k"),
                )
                .text
            )
        except ConspectusError as error:
            return str(error)


BOTH = pytest.mark.parametrize("named", [None, NAMED], ids=["found", "named"])


@BOTH
@pytest.mark.parametrize("call_id", [RANDOM_ID, "call_0"])
def test_a_result_is_archived_when_its_client_clears_it(tmp_path, named, call_id):
    archive = tmp_path / "a.db"
    first = turn(0, LONG_RESULT, call_id)
    with endpoint_of(archive) as endpoint:
        ask(endpoint, first, named)
        headers = ask(endpoint, [*cleared(first), *turn(1, "none")], named)
        # Read before the endpoint ends, as after a kill.
        assert "48213" in recalled(archive, headers)
    assert headers["x-conspectus-compacted"] == "false"


def test_a_result_that_is_shorter_than_its_notice_is_archived(tmp_path):
    archive = tmp_path / "a.db"
    first = turn(0, SMALL_RESULT)
    with endpoint_of(archive) as endpoint:
        ask(endpoint, first)
        headers = ask(endpoint, [*cleared(first), *turn(1, "none")])
    assert "48213" in recalled(archive, headers, "Oslo port")


@BOTH
def test_a_turn_is_archived_when_its_client_drops_it(tmp_path, named):
    archive = tmp_path / "a.db"
    turns = [turn(number, LONG_RESULT if number == 0 else "none") for number in range(8)]
    with endpoint_of(archive) as endpoint:
        ask(endpoint, joined(turns[:6]), named)
        headers = ask(endpoint, joined(turns[1:7]), named)
        assert "48213" in recalled(archive, headers)
        ask(endpoint, joined(turns[2:8]), named)
        assert "48213" in recalled(archive, headers)


def test_two_endpoints_may_see_a_result_cleared_and_dropped(tmp_path):
    archive = tmp_path / "a.db"
    turns = [turn(0, LONG_RESULT), *(turn(number, "none") for number in range(1, 9))]
    with endpoint_of(archive) as endpoint:
        ask(endpoint, joined(turns[:6]))
        ask(endpoint, [*cleared(turns[0]), *joined(turns[1:7])])
    with endpoint_of(archive) as endpoint:
        ask(endpoint, [*cleared(turns[0]), *joined(turns[1:8])])
        headers = ask(endpoint, joined(turns[2:9]))
        assert "48213" in recalled(archive, headers)
        assert "Step 0." in recalled(archive, headers, "Step 0")


@pytest.mark.parametrize("call_id", [RANDOM_ID, "call_0"])
def test_after_a_restart_a_cleared_result_is_compacted_whole(tmp_path, call_id):
    archive = tmp_path / "a.db"
    first = turn(0, LONG_RESULT, call_id)
    with endpoint_of(archive) as endpoint:
        ask(endpoint, first)
        ask(endpoint, [*cleared(first), *turn(1, "none")])
    later = [message for number in range(1, 12) for message in turn(number, "none")]
    with endpoint_of(archive, window=3_000) as endpoint:
        headers = ask(endpoint, [*cleared(first), *later])
    assert headers["x-conspectus-compacted"] == "true"
    with Archive.open(archive) as kept:
        scope = Scope(SECRET.tenant("k"), headers["x-conspectus-thread"])
        covered = {key for record in kept.chain(scope) for key in record.covers}
        originals = kept.find(scope, [*covered]).values()
    assert any("48213" in original.text for original in originals)
    assert not any(original.text == PLACEHOLDER for original in originals)


def test_two_endpoints_with_one_archive_know_what_either_was_sent(tmp_path):
    archive = tmp_path / "a.db"
    first = turn(0, LONG_RESULT)
    history = [*first, *turn(1, "none")]
    with endpoint_of(archive) as one, endpoint_of(archive, window=3_000) as other:
        ask(other, first[:1], NAMED)  # it knows the thread, and not the result
        ask(one, history, NAMED)
        history = [*cleared(first), *turn(1, "none"), *turn(2, "none")]
        ask(one, history, NAMED)
        for number in range(3, 12):
            history += turn(number, "none")
        headers = ask(other, history, NAMED)
    assert headers["x-conspectus-compacted"] == "true"
    with Archive.open(archive) as kept:
        scope = Scope(SECRET.tenant("k"), headers["x-conspectus-thread"])
        covered = {key for record in kept.chain(scope) for key in record.covers}
        originals = kept.find(scope, [*covered]).values()
    assert any("48213" in original.text for original in originals)


def test_a_compacted_request_recalls_what_was_cleared_since_the_compaction(tmp_path):
    archive = tmp_path / "a.db"
    history = [message for number in range(1, 12) for message in turn(number, "none")]
    with proxied_script(lambda request: "fine", archive, window=3_000, recall="on") as served:
        upstream, endpoint = served
        headers = ask(endpoint, history)
        assert headers["x-conspectus-compacted"] == "true"
        newest = turn(12, LONG_RESULT)
        ask(endpoint, [*history, *newest])
        ask(endpoint, [*history, *cleared(newest)], question="Which port has the relay of Oslo?")
        assert "48213" in json.dumps(upstream.requests[-1].messages)


def test_a_rewound_named_thread_recalls_nothing_it_left(tmp_path):
    archive = tmp_path / "a.db"
    first, second = turn(0, "none"), turn(1, LONG_RESULT)
    with endpoint_of(archive) as endpoint:
        ask(endpoint, [*first, *second], NAMED)
        headers = ask(endpoint, [*first, *cleared(second), *turn(2, "none")], NAMED)
        assert "48213" in recalled(archive, headers)
        ask(endpoint, [*first, *turn(3, "none")], NAMED)
        assert "48213" not in recalled(archive, headers)


def test_a_new_history_of_a_name_recalls_nothing_old(tmp_path):
    archive = tmp_path / "a.db"
    turns = [turn(number, LONG_RESULT if number == 0 else "none") for number in range(8)]
    with endpoint_of(archive) as endpoint:
        ask(endpoint, joined(turns[:6]), NAMED)
        headers = ask(endpoint, joined(turns[2:7]), NAMED)
        assert "48213" in recalled(archive, headers)
        ask(endpoint, [], NAMED, "Another matter.")
        assert "48213" not in recalled(archive, headers)


def test_walls_stand_between_tenants_and_threads(tmp_path):
    archive = tmp_path / "a.db"
    first = turn(0, LONG_RESULT)
    with endpoint_of(archive) as endpoint:
        ask(endpoint, first)
        ask(endpoint, [*cleared(first), *turn(1, "none")])
        other = ask(endpoint, [*turn(5, "none"), *turn(6, "none")])
        assert "48213" not in recalled(archive, other)


def test_secrets_are_taken_out_of_what_is_cleared(tmp_path):
    archive = tmp_path / "a.db"
    secret = "ghp_" + "aB3dE5fG7h" * 4
    first = turn(0, f"{LONG_RESULT} token={secret}")
    config = SummarizationConfig.model_validate(DEFAULT_SUMMARIZATION | {"redact": True})
    with proxied_script(lambda request: "fine", archive, config, window=20_000, recall="off") as (
        _,
        endpoint,
    ):
        ask(endpoint, first)
        headers = ask(endpoint, [*cleared(first), *turn(1, "none")])
        text = recalled(archive, headers)
    assert "48213" in text
    assert secret not in text
    with Archive.open(archive) as kept:
        scope = Scope(SECRET.tenant("k"), headers["x-conspectus-thread"])
        assert secret not in json.dumps(kept.export(scope))


def count_writes(archive: Archive) -> list[str]:
    """Return the list in which each write from now on is named by what it writes."""
    written: list[str] = []
    write = archive.backend.write

    def counting(scope: Scope, items: Any, **options: Any) -> Any:
        written.extend(items)
        return write(scope, items, **options)

    archive.backend.write = counting  # type: ignore[method-assign]
    return written


def test_originals_are_written_only_when_something_is_cleared_and_once(tmp_path):
    first = turn(0, LONG_RESULT)
    history = [*first]
    with Archive.open(tmp_path / "a.db") as archive:
        written = count_writes(archive)
        with endpoint_of(archive) as endpoint:
            for number in range(1, 5):
                ask(endpoint, history)
                history += turn(number, "none")
            assert "messages" not in written
            for number in range(5, 9):
                ask(endpoint, [*cleared(first), *history[4:]])
                history += turn(number, "none")
            assert written.count("messages") == 1


def test_a_rewound_named_thread_recalls_no_later_drops(tmp_path):
    archive = tmp_path / "a.db"
    turns = [turn(number, LONG_RESULT if number == 1 else "none") for number in range(9)]
    with endpoint_of(archive) as endpoint:
        ask(endpoint, joined(turns[:6]), NAMED)
        headers = ask(endpoint, joined(turns[2:7]), NAMED)
        assert "48213" in recalled(archive, headers)
        ask(endpoint, [*turns[0], *turn(8, "none")], NAMED)
        assert "48213" not in recalled(archive, headers)
        # And on to where it had come before.
        ask(endpoint, joined(turns[:7]), NAMED)
        ask(endpoint, joined(turns[2:8]), NAMED)
        assert "48213" in recalled(archive, headers)


def fail_to_archive(monkeypatch: pytest.MonkeyPatch, error: Exception) -> list[Any]:
    """Let the next attempt to archive something cleared fail; return the errors to come."""
    errors = [error]
    archive_originals = LocalWork.archive_originals

    def failing(work: LocalWork, *args: Any) -> list[str]:
        if errors:
            raise errors.pop()
        return archive_originals(work, *args)

    monkeypatch.setattr(LocalWork, "archive_originals", failing)
    return errors


@pytest.mark.parametrize(
    "error",
    [ArchiveError("it is full"), HttpError(503, "the process has ended", reason="summariser")],
    ids=["archive", "worker"],
)
@pytest.mark.parametrize("send", ["clears", "drops"])
def test_a_request_passes_if_archiving_fails(tmp_path, monkeypatch, error, send):
    archive = tmp_path / "a.db"
    turns = [turn(number, LONG_RESULT if number == 0 else "none") for number in range(8)]
    kept = cleared(turns[0]) if send == "clears" else []
    errors = fail_to_archive(monkeypatch, error)
    with endpoint_of(archive) as endpoint:
        ask(endpoint, joined(turns[:6]))
        headers = ask(endpoint, [*kept, *joined(turns[1:7])])
        assert not errors
        assert "48213" not in recalled(archive, headers)
        headers = ask(endpoint, [*kept, *joined(turns[1:8])])
        assert "48213" in recalled(archive, headers)


def test_what_cannot_be_noted_is_noted_by_the_next_request(tmp_path, monkeypatch):
    archive = tmp_path / "a.db"
    first = turn(0, LONG_RESULT)
    errors = [ArchiveError("it is full")]
    note_uncovered = Archive.note_uncovered

    def failing(kept: Archive, *args: Any) -> None:
        if errors:
            raise errors.pop()
        note_uncovered(kept, *args)

    monkeypatch.setattr(Archive, "note_uncovered", failing)
    with endpoint_of(archive) as endpoint:
        ask(endpoint, first)
        headers = ask(endpoint, [*cleared(first), *turn(1, "none")])
        assert not errors
        ask(endpoint, [*cleared(first), *turn(1, "none"), *turn(2, "none")])
        assert "48213" in recalled(archive, headers)


def test_two_requests_at_once_archive_what_each_has_cleared(tmp_path):
    archive = tmp_path / "a.db"
    first, second = turn(0, LONG_RESULT), turn(1, f"Bergen. {LONG_RESULT}")
    histories = [[*cleared(first), *second], [*first, *cleared(second)]]
    with endpoint_of(archive) as endpoint:
        ask(endpoint, [*first, *second], NAMED)
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda history: ask(endpoint, history, NAMED), histories))
        with Archive.open(archive) as kept:
            scope = Scope(SECRET.tenant("k"), answers[0]["x-conspectus-thread"])
            originals = kept.find(scope, kept.uncovered(scope)).values()
    assert sorted("Bergen" in original.text for original in originals) == [False, True]


def test_a_slow_archive_of_one_conversation_holds_up_no_other(tmp_path, monkeypatch):
    archive = tmp_path / "a.db"
    may_go_on = threading.Event()
    is_under_way = threading.Event()
    archive_originals = LocalWork.archive_originals

    def slow_for_one(work: LocalWork, key: Any, scope: Scope, *args: Any) -> list[str]:
        if scope.thread == "slow":
            is_under_way.set()
            assert may_go_on.wait(60)
        return archive_originals(work, key, scope, *args)

    monkeypatch.setattr(LocalWork, "archive_originals", slow_for_one)
    first = turn(0, LONG_RESULT)
    history = [*cleared(first), *turn(1, "none")]
    slow = {"x-conspectus-thread": "slow"}
    with endpoint_of(archive) as endpoint, ThreadPoolExecutor(2) as pool:
        ask(endpoint, first, slow)
        ask(endpoint, first, NAMED)
        waiting = pool.submit(ask, endpoint, history, slow)
        try:
            assert is_under_way.wait(60)
            other = pool.submit(ask, endpoint, history, NAMED)
            assert "48213" in recalled(archive, other.result(20))
        finally:
            may_go_on.set()
        assert "48213" in recalled(archive, waiting.result(60))
