"""Two instances side by side on PostgreSQL, and conversations at once."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from conspectus.archive import Archive, Scope
from fault_server import FaultServer
from postgres_support import postgres_schema
from serve_support import SECRET, WINDOW, serving
from test_serve_clients import LONG, sent_tokens

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


def answered(request: Any) -> str:
    return f"Answer. {LONG}"


def test_two_instances_serve_the_same_conversations():
    with (
        postgres_schema() as address,
        FaultServer(
            lambda request: f"Answer. {LONG}", window=WINDOW, count=sent_tokens
        ) as upstream,
        serving(upstream.anthropic_url, address, secret_file="unused") as one,
        serving(upstream.anthropic_url, address, secret_file="unused") as other,
        httpx.Client(timeout=120) as client,
    ):

        def converse(number: int) -> list[str]:
            history: list[Any] = []
            threads = []
            for turn in range(18):
                # All begin with the same words.
                asked = f"Question {turn} of {number}." if turn else "Hello."
                history.append({"role": "user", "content": f"{asked} {LONG}"})
                answer = client.post(
                    f"{(one, other)[turn % 2].openai_url}/chat/completions",
                    json={"model": "m", "messages": history},
                    headers={"authorization": "Bearer k"},
                )
                assert answer.status_code == 200, answer.text
                threads.append(answer.headers["x-conspectus-thread"])
                message = answer.json()["choices"][0]["message"]
                said = f"{message['content']} {number}"
                history.append({"role": "assistant", "content": said})
            return threads

        with ThreadPoolExecutor(6) as pool:
            found = list(pool.map(converse, range(6)))
        assert upstream.refused == []
        # Once they differ, each keeps to one thread, and no two share any.
        kept = [set(threads[4:]) for threads in found]
        assert all(len(threads) == 1 for threads in kept)
        assert len(set.union(*kept)) == 6
        with Archive.open(address) as archive:
            for number, [thread] in enumerate(kept):
                rows = str(archive.export(Scope(SECRET.tenant("k"), thread)))
                assert f"Question 1 of {number}." in rows
                others = (n for n in range(6) if n != number)
                assert not any(f"Question 1 of {n}." in rows for n in others)
