"""Files of histories: read in each form, their broken pairs told, mended or refused."""

import io
import json
from typing import Any

import pytest
from langchain_core.load import dumpd
from langchain_core.messages import SystemMessage, ToolMessage, messages_to_dict

import cli_support
from conspectus.errors import InputError, MessageError
from conspectus.messages import SUMMARY_LINE
from conspectus.transcripts import read_history
from made_sessions import random_session
from providers import provider_refusals
from stateful.messages import answering, calling, speaking

FORMS = ("openai", "anthropic", "langchain")
SMALL = ["--trigger", "messages:8", "--keep", "messages:4"]
pytestmark = pytest.mark.usefixtures("own_data_folder")


def ask(form: str, text: str) -> list[Any]:
    return [speaking(form, "user", text)]


def say(form: str, text: str) -> list[Any]:
    return [speaking(form, "assistant", text)]


def call(form: str, *ids: str) -> list[Any]:
    return [calling(form, "I look.", [(call_id, f"/srv/{call_id}.py") for call_id in ids])]


def result(form: str, *ids: str) -> list[Any]:
    """Results, in Anthropic's form in one message."""
    results = [answering(form, call_id, f"there is {call_id}") for call_id in ids]
    if form == "anthropic":
        results[0]["content"] += [call_id["content"][0] for call_id in results[1:]]
    return results[:1] if form == "anthropic" else results


def healthy(form: str) -> list[Any]:
    rows = ask(form, "Look at everything.")
    for turn in range(3):
        rows += call(form, f"c{turn}", f"d{turn}") + result(form, f"c{turn}", f"d{turn}")
        rows += say(form, f"Part {turn} is fine.") + ask(form, f"Go on after {turn}.")
    return rows


def broken(form: str, steps: str) -> list[Any]:
    """A history with one thing wrong near its end, where no compaction reaches."""
    rows = healthy(form)
    for step in steps.split("; "):
        kind_of_message, *ids = step.split()
        rows += {"call": call, "result": result}[kind_of_message](form, *ids)
    return rows + ask(form, "And now?") + say(form, "Now it is done.")


def text_of(form: str, rows: list[Any]) -> str:
    return json.dumps(messages_to_dict(rows) if form == "langchain" else rows)


BROKEN_ENDS = (
    "result gone",
    "call e1; result e1 gone",
    "call e1",
    "call e1 e2; result e1",
    "result e1; call e1",
    "call e1; result e1; result e1",
)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("options", [[], SMALL], ids=["kept", "compacted"])
@pytest.mark.parametrize("steps", BROKEN_ENDS)
@pytest.mark.parametrize("form", FORMS)
def test_written_histories_are_valid_and_mends_are_noted(tmp_path, form, steps, options):
    path = tmp_path / "in.json"
    out = tmp_path / "out.json"
    rows = broken(form, steps)
    assert provider_refusals(rows, form)
    path.write_text(text_of(form, rows), encoding="utf-8")
    data = cli_support.read_json("compact", path, "-o", out, *options)
    history = read_history(out)
    assert provider_refusals(history.messages, form) == []
    assert any(note.startswith("message") for note in data["notes"])
    stayed = data["messages_before"] - data["evicted"] + bool(data["summary"])
    assert data["messages_after"] == stayed
    if data["outcome"] == "kept" and steps.startswith("call") and "result" in steps:
        assert "there is e1" in out.read_text()
    assert history.messages[-1] == read_history(path).messages[-1]


def test_an_output_goes_on_under_its_thread(tmp_path):
    session = random_session(5, events=30)
    path = tmp_path / "s.jsonl"
    out = tmp_path / "out.json"
    later = tmp_path / "later.json"
    path.write_text(session.text(), encoding="utf-8")
    assert cli_support.read_json("compact", path, "-o", out, *SMALL, "--thread", "s")["archived"]
    output = json.loads(out.read_text(encoding="utf-8"))
    later.write_text(json.dumps([*output, *ask("anthropic", "One more thing, please.")]))
    options = ["--force", "--keep", "messages:2", "--thread", "s"]
    assert cli_support.read_json("compact", later, "-o", out, *options)["outcome"] == "compacted"
    assert str(json.loads(out.read_text())).count(SUMMARY_LINE) == 1
    start = session.said[0][1][0]["text"]
    assert start in cli_support.run("recall", "--thread", "s", start).stdout


OPENAI: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is in 数据.csv?", "name": "ana"},
    *call("openai", "c1"),
    *result("openai", "c1"),
    {"role": "assistant", "content": "Two columns.", "x_extra": {"kept": [1, 2.5, None]}},
]


def test_a_class_that_a_file_names_is_not_made(tmp_path):
    bomb = {"lc": 1, "type": "constructor", "id": ["os", "PathLike"], "kwargs": {"content": "x"}}
    file = cli_support.write_json(tmp_path / "a.json", [dumpd(SystemMessage("Be brief.")), bomb])
    problem = "message 1 of the type 'pathlike' is no message of LangChain's"
    with pytest.raises(MessageError, match=problem):
        read_history(file)
    inner = {"lc": 1, "type": "constructor", "id": ["langchain", "X"], "kwargs": {}}
    message = dumpd(ToolMessage("r", tool_call_id="c"))
    message["kwargs"]["artifact"] = inner
    history = read_history(cli_support.write_json(tmp_path / "b.json", [message]))
    assert history.messages[0].artifact == inner  # type: ignore[union-attr]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_utf_8_and_utf_16_are_read(tmp_path, encoding):
    path = tmp_path / "a.json"
    path.write_bytes(json.dumps(OPENAI, ensure_ascii=False).encode(encoding))
    assert read_history(path).messages == OPENAI


def test_standard_input_is_named_after_its_first_message(tmp_path, monkeypatch):
    def piped(value: Any) -> str:
        raw = io.TextIOWrapper(io.BytesIO(json.dumps(value).encode()))
        monkeypatch.setattr("sys.stdin", raw)
        history = read_history("-")
        assert history.messages == value
        assert history.path is None
        return history.thread_hint

    assert piped(OPENAI) == piped(OPENAI[:2])
    assert piped(OPENAI) != piped(OPENAI[1:])
    assert piped([])


BAD_FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "text": (b"hello there", "is not JSON (line 1, column 1"),
    "number": (b"42", "holds no messages; expected a list"),
    "image": (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff\xfe", "is no text in UTF-8 or UTF-16"),
    "object": (b'{"a": 1}', "holds no messages; expected a list"),
    "deep": (b"[" * 100_000, "recursion"),
    "many digits": (b"[" + b"9" * 5000 + b"]", "cannot be read as JSON"),
    "item": (b'[{"role": "user", "content": "x"}, 7]', "message 1 is no message"),
    "role": (b'[{"role": "robot", "content": "x"}]', "message 0 has the unknown role 'robot'"),
    "role in a line": (
        b'{"role": "user", "content": "x"}\n\n{"role": "robot", "content": "x"}\n',
        "line 3: message 1 has the unknown role 'robot'",
    ),
    "no role": (b'[{"content": "x"}]', 'message 0 has no "role"'),
    "content": (b'[{"role": "user", "content": 7}]', "message 0 has content of the type int"),
    "system": (b'{"system": 7, "messages": []}', "the system prompt has content of the type int"),
    "type": (
        b'[{"type": "human", "content": "x"}, {"type": "robot", "content": "x"}]',
        "message 1 of the type 'robot' is no message of LangChain's",
    ),
    "mixed": (
        b'[{"type": "human", "content": "x"}, {"role": "user", "content": "x"}]',
        "message 1 of the type 'None' is no message of LangChain's, as others are",
    ),
    "bad calls": (
        b'[{"type": "ai", "content": "x", "tool_calls": 7}]',
        "message 0 of the type 'ai' is no message of LangChain's",
    ),
    "a session of another version": (
        b'{"type": "gemini", "id": {}}',
        "not of a form that is known",
    ),
    "removal": (b'[{"type": "remove", "content": "", "id": "x"}]', "message 0 is a RemoveMessage"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_told_in_one_sentence(tmp_path, name):
    data, expected = BAD_FILES[name]
    path = tmp_path / "a.json"
    path.write_bytes(data)
    with pytest.raises((InputError, MessageError)) as caught:
        read_history(path)
    message = str(caught.value)
    assert expected in message
    assert message.startswith(f"{path}")
    assert "\n" not in message


def test_a_path_that_is_no_file_says_so(tmp_path):
    for path, problem in (
        (tmp_path / "none.json", ": No such file"),
        (tmp_path, ": Is a directory; check its path"),
        ("a\0b", ""),
        ("x" * 5000, ""),
    ):
        with pytest.raises(InputError, match=f"cannot be read{problem}"):
            read_history(path)
