"""`make golden WRITE=1`: writes the next numbered folder; those that are there stay as they are."""

import gzip
import json
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver

from conspectus.archive import Archive, Scope
from conspectus.errors import ArchiveError
from golden import threads
from golden.threads import AGENTS, DATA, NODE, QUESTIONS, TENANT, VERSIONS
from graph_support import is_summary, said, thread
from short_term_support import PlainModel


def compacted(archive: Archive) -> dict[str, Any]:
    """A history that grows over several compactions, and each record of it."""
    scope, engine = Scope(TENANT, "talk"), threads.compactor(archive)
    view: list[Any] = []
    whole = threads.talk(14)
    for start in range(0, len(whole), 8):
        view += whole[start : start + 8]
        view = engine.compact(view, thread_id="talk", tenant=TENANT).messages
    chain = [record.to_json() for record in archive.chain(scope)]
    assert len(chain) > 2
    assert any(record["clips"] for record in chain)
    for question, answer in QUESTIONS.items():
        found = engine.recall(question, thread_id="talk", tenant=TENANT)
        assert any(answer in hit.text for hit in found.hits), question
    return {
        "whole": whole,
        "view": view,
        "records": chain,
        "rows": archive.export(scope),
        "questions": QUESTIONS,
    }


class Uncommitted(Archive):
    """One that takes originals and drafts, and then fails."""

    plan = ""

    def save_draft(self, scope: Scope, plan: str, draft: Any) -> None:
        """Keep it, and know its place."""
        self.plan = plan
        super().save_draft(scope, plan, draft)

    def commit(self, *given: Any, **more: Any) -> None:
        """Fail."""
        raise ArchiveError("the disk is full")


def drafted(path: Path) -> dict[str, Any]:
    """A summary that was paid for and is not in force."""
    scripted, scope = threads.paid(), Scope(TENANT, "unpaid")
    messages = threads.plain_talk()
    with Uncommitted.open(path) as archive:
        engine = threads.drafting(archive, scripted)
        done = engine.compact(messages, thread_id="unpaid", tenant=TENANT, force=True)
        assert done.outcome == "kept"
        assert len(scripted.requests) == 1
        draft = archive.find_draft(scope, archive.plan)
        return {"messages": messages, "plan": archive.plan, "draft": draft.to_json()}


def graphs(path: Path, archive: Archive) -> dict[str, Any]:
    """Threads of agents, and one with a node that summarises."""
    found: dict[str, Any] = {}
    with SqliteSaver.from_conn_string(str(path)) as saver:
        for name, make in AGENTS.items():
            graph, _ = make(saver, archive)
            for number in range(2):
                out = graph.invoke(said(threads.asked(number)), thread(name))
                if "__interrupt__" in out:
                    break
            values = graph.get_state(thread(name)).values
            assert ("__interrupt__" in out) == (name == "waits for approval"), name
            found[name] = told(values)
        graph = threads.node_graph(saver, PlainModel())
        for number in range(6):
            graph.invoke(said(threads.asked(number)), thread(NODE))
        values = graph.get_state(thread(NODE)).values
        running = values["context"]["running_summary"]
        found[NODE] = told(values) | {
            "running": [running.summary, sorted(running.summarized_message_ids)]
        }
    return found


def told(values: dict[str, Any]) -> dict[str, Any]:
    """What a state holds, in a form of no library."""
    return {
        "messages": [[m.type, m.text, m.id, is_summary(m)] for m in values["messages"]],
        "held": {name: values[name] for name in sorted(values) if name.startswith("_conspectus")},
    }


def packed(path: Path) -> bytes:
    """A database as one file, in as few bytes as it can be."""
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("VACUUM")
    database.close()
    return gzip.compress(path.read_bytes(), mtime=0)


def main() -> None:
    """Write one more folder."""
    if sys.argv[1:] != ["--write"]:
        sys.exit("Golden files are never written anew; WRITE=1 adds the next number beside them.")
    made = DATA / str(max(VERSIONS, default=0) + 1)
    with tempfile.TemporaryDirectory() as name:
        archive_path, checkpoints = Path(name) / "archive.db", Path(name) / "checkpoints.db"
        with Archive.open(archive_path) as archive:
            expected: dict[str, Any] = {"talk": compacted(archive)}
            expected["graphs"] = graphs(checkpoints, archive)
        expected["draft"] = drafted(archive_path)
        files = {path.name: packed(path) for path in (archive_path, checkpoints)}
    made.mkdir()
    for file, raw in files.items():
        (made / f"{file}.gz").write_bytes(raw)
    text = json.dumps(expected, ensure_ascii=False, sort_keys=True, indent=1)
    (made / "expected.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    print(*sorted(made.iterdir()), sep="\n")


if __name__ == "__main__":
    main()
