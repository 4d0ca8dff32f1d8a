"""Which thread a history is of: only one whose answered history begins it whole."""

from collections.abc import Iterator
from typing import Any

import pytest

from conspectus.archive import Archive, Scope
from conspectus_serve import load_settings
from conspectus_serve.fitting import Exchange, Fitter
from conspectus_serve.models import Models
from conspectus_serve.protocols import CHAT, MESSAGES, Route

LONG = "Its tests say so, and they say why, and what else it may come to, now and later. " * 6


class Endpoint:
    """What an endpoint does with each request, without HTTP."""

    def __init__(self, archive: Archive) -> None:
        settings, config = load_settings(given={"upstream": "http://h", "window": 4_000})
        self.archive = archive
        self.fitter = Fitter(archive, Models(settings, config, archive))

    def look(self, history: list[Any], tenant: str = "ann", protocol: Any = CHAT) -> Exchange:
        route = Route("chat/completions", protocol)
        x = Exchange(tenant, route, b"", {}, history=history, model="m")
        self.fitter.measure(x)
        if x.due:
            self.fitter.compact(x)
        return x

    def ask(self, history: list[Any], tenant: str = "ann", protocol: Any = CHAT) -> Exchange:
        x = self.look(history, tenant, protocol)
        self.fitter.settle(x)
        return x


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Archive.open("memory:") as archive:
        yield Endpoint(archive)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


MANY = [one for n in range(40) for one in (user(f"q{n} {LONG}"), answer(f"a{n} {LONG}"))]
START = [{"role": "system", "content": "It is noon."}, user("Hello."), answer("Hi.")]


def test_a_history_that_goes_on_keeps_its_thread(endpoint):
    first = endpoint.ask(START[:2])
    second = endpoint.ask([*START, user("Go on.")])
    later = [{"role": "system", "content": "It is one."}, *START[1:], user("Go on."), answer("So.")]
    third = endpoint.ask([*later, user("And?")])
    assert first.match.thread == second.match.thread == third.match.thread


def test_a_question_that_is_put_another_way_or_again_keeps_its_thread(endpoint):
    names = {endpoint.ask([*START, user(text)]).match.thread for text in ("One?", "Two?", "Two?")}
    after = endpoint.ask([*START, user("Three?"), answer("3"), user("More.")])
    assert names == {after.match.thread}


def test_conversations_that_begin_alike_part(endpoint):
    mine, yours = START, [*START[:2], answer("Good day.")]
    assert endpoint.ask(START[:2]).match.thread == endpoint.ask(START[:2]).match.thread
    names = [endpoint.ask([*one, user("Go on.")]).match.thread for one in (mine, yours)]
    assert names[0] != names[1]
    for one, name in zip((mine, yours), names, strict=True):
        more = [*one, user("Go on."), answer("So."), user("And?")]
        assert endpoint.ask(more).match.thread == name


def test_of_two_that_go_on_at_the_same_moment_one_leaves(endpoint):
    first = endpoint.ask(START[:2])
    branches = [[*START[:2], answer(text), user("?")] for text in ("a", "b")]
    looks = [endpoint.look(b) for b in branches]
    assert {one.match.thread for one in looks} == {first.match.thread}
    for one in looks:
        endpoint.fitter.settle(one)
    names = [endpoint.ask([*b, answer("So."), user("?")]).match.thread for b in branches]
    assert names[0] != names[1]


def test_tenants_and_protocols_have_no_thread_in_common(endpoint):
    history = [*START, user("Go on.")]
    names = {
        endpoint.ask(history).match.thread,
        endpoint.ask(history, "bob").match.thread,
        endpoint.ask(history, protocol=MESSAGES).match.thread,
    }
    assert len(names) == 3


def test_a_branch_takes_along_what_was_summarised(endpoint):
    for end in range(1, len(MANY), 2):
        whole = endpoint.ask(MANY[:end])
    assert whole.view is not None
    # An answer some turns ago is another one: a thread of its own, with the same compactions.
    branch = endpoint.ask([*MANY[:-5], answer("Otherwise."), user("Go on.")])
    assert branch.match.thread != whole.match.thread
    assert branch.head == whole.head
    assert not branch.fresh
    assert branch.left_out > 40
    mine, theirs = (
        endpoint.archive.export(Scope("ann", one.match.thread)) for one in (branch, whole)
    )
    for row in (*mine, *theirs):
        del row["archived_at"]
    assert mine == theirs


def test_what_is_forgotten_is_gone_and_the_thread_begins_anew(endpoint):
    turn = endpoint.ask([*MANY, user("Go on.")])
    endpoint.archive.forget("ann")
    again = endpoint.ask([*MANY, user("Go on."), answer("So."), user("More.")])
    assert again.match.thread != turn.match.thread
    assert again.view is not None


def test_marks_for_a_cache_change_nothing(endpoint):
    mark = {"type": "ephemeral"}
    block = {"type": "text", "text": "Hello.", "cache_control": mark}
    marked = {"role": "user", "content": [block]}
    first = endpoint.ask([marked], protocol=MESSAGES)
    second = endpoint.ask([*START[1:], marked], protocol=MESSAGES)
    assert first.match.thread == second.match.thread
    assert second.view is None
    assert marked["content"] == [block]


def test_an_image_stays_with_its_message(endpoint):
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    asked = {"role": "user", "content": [{"type": "text", "text": "What is it?"}, picture]}
    turn = endpoint.ask([*MANY, asked])
    assert turn.view[-1] is asked


def test_system_messages_alone_are_each_of_their_own_size_and_thread(endpoint):
    short = endpoint.ask([{"role": "system", "content": "It is noon."}])
    long = endpoint.ask([{"role": "system", "content": LONG}])
    assert long.tokens > 5 * short.tokens
    assert long.match.thread != short.match.thread


def test_the_archive_lists_no_thread_of_which_it_holds_nothing(endpoint):
    endpoint.ask(START[:2])
    assert endpoint.archive.threads("ann") == ()
