"""Many workers on shared conversations, whose notes are prepared beside them.

So many threads, or tasks, share one `Compactor`, ten of them a conversation. All of those send the
same history at one moment, again and again, a little longer each time: some find that notes are
being prepared, one swaps them in, others are late.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from worker_cases import WORD, Seen, _all_at_once, _own_threads, _tell, talk, tasks_left, word
from worker_cases import summary as noted
from worker_places import aplace, place

from conspectus import Compactor, is_summary_message
from conspectus.archive import Archive, Scope
from conspectus.bridge import arun, run
from conspectus.compactor.settings import LOCAL
from conspectus.messages import read_messages
from conspectus_lab.testing.scripted_models import ScriptedChatModel

TOGETHER = 10
"""Workers of one conversation."""

LENGTHS = range(4, 41, 2)
"""Messages of the history, each time that it is sent."""

TAKES = 0.02
"""Seconds of the summariser."""

LONGEST = 120.0
"""Seconds that workers wait for each other at most."""


def shared_threads(database: str, count: int, folder: Path, address: str = "") -> Seen:
    """One compactor, so many threads of the operating system, ten a conversation."""
    seen, before = Seen("in the background, threads", database, count), _own_threads()
    with place(database, folder, address) as (_, store):
        compactor, writer = _compactor(store)
        gates = [threading.Barrier(size) for size in _sizes(count)]

        def work(number: int) -> Any:
            at, result = number // TOGETHER, None
            for sent in _sent(at):
                gates[at].wait(LONGEST)
                result = compactor.compact(sent, thread_id=word(at))
            return result

        done = _all_at_once(work, count, seen)
        compactor.close()
        seen.left = _own_threads() - before
        run(_judged(compactor, writer, done, seen))
    return seen


def shared_tasks(database: str, count: int, folder: Path, address: str = "") -> Seen:
    """One compactor, so many tasks of one event loop, ten a conversation."""
    seen = Seen("in the background, tasks", database, count)

    async def main() -> None:
        async with aplace(database, folder, address) as (_, store):
            before = asyncio.all_tasks()
            compactor, writer = _compactor(store)
            gates = [asyncio.Barrier(size) for size in _sizes(count)]

            async def work(number: int) -> Any:
                at, result = number // TOGETHER, None
                for sent in _sent(at):
                    await asyncio.wait_for(gates[at].wait(), LONGEST)
                    result = await compactor.acompact(sent, thread_id=word(at))
                return result

            done = await asyncio.gather(*map(work, range(count)), return_exceptions=True)
            _tell(seen, done)
            await compactor.aclose()
            seen.left = tasks_left(before)
            await arun(_judged(compactor, writer, done, seen))

    asyncio.run(main())
    return seen


def _sizes(count: int) -> Iterator[int]:
    """Workers of each conversation."""
    for first in range(0, count, TOGETHER):
        yield min(TOGETHER, count - first)


def _sent(conversation: int) -> Iterator[list[dict[str, Any]]]:
    whole = talk(word(conversation), LENGTHS[-1])
    return (whole[:length] for length in LENGTHS)


def _compactor(store: Any) -> tuple[Compactor, ScriptedChatModel]:
    writer = ScriptedChatModel(answers=noted, delay=TAKES)
    made = Compactor(
        writer,
        trigger=("messages", 10),
        keep=("messages", 4),
        window=1_200,
        archive=Archive(store),
        background=True,
    )
    return made, writer


async def _judged(
    compactor: Compactor, writer: ScriptedChatModel, done: Sequence[Any], seen: Seen
) -> None:
    archive = compactor.archive
    assert archive is not None
    for at in range(len(list(_sizes(seen.at_once)))):
        own, scope = word(at), Scope(LOCAL, word(at), "main")
        chain = await archive.flow(archive.chain, scope)
        covers = [key for record in chain for key in record.covers]
        kept = await archive.flow(archive.find, scope, covers)
        seen.compactions += len(chain)
        seen.doubled += len(covers) - len(set(covers))
        keys = {entry.text: entry.key for entry in read_messages(talk(own, LENGTHS[-1]))}
        # Who compacted at the same moment as another may be shown the view before that.
        records = await archive.flow(archive.records, scope)
        ever = {key for record in records for key in record.covers}
        found = {*kept, *(await archive.flow(archive.find, scope, sorted(ever)))}
        for result in done[at * TOGETHER : (at + 1) * TOGETHER]:
            if isinstance(result, BaseException):
                continue
            view = [str(m["content"]) for m in result.messages if not is_summary_message(m)]
            shown = " ".join([*view, result.summary])
            seen.foreign += len(set(WORD.findall(shown)) - {own})
            gone = [text for text, key in keys.items() if text not in view and key not in found]
            seen.missing += len(gone)
            seen.doubled += len(view) - len(set(view))
            seen.said += [f"{own}: {text[:60]}" for text in gone]
    seen.foreign += sum(len(set(WORD.findall(call.text))) - 1 for call in writer.calls)
    seen.paid = len(writer.calls)
    # The same reading is never asked for twice.
    seen.doubled += sum(n - 1 for n in Counter(call.text for call in writer.calls).values())


BACKGROUND_CASES = (shared_threads, shared_tasks)
