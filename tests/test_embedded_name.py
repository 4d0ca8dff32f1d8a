"""One word names the embedded summariser everywhere: `embedded`."""

import json

import pytest
from typer.testing import CliRunner

from conspectus import Compactor
from conspectus.cli import options
from conspectus.cli.app import app
from conspectus.errors import InputError
from conspectus_lab.replay import replay
from scripted_models import ScriptedChatModel

WORDS = ("embedded",)
TALK = [
    {"role": "user" if n % 2 == 0 else "assistant", "content": f"message {n} " * 30}
    for n in range(12)
]


@pytest.mark.slow
@pytest.mark.parametrize("word", WORDS)
def test_a_fallback_and_a_replay_take_it_too(word):
    failing = ScriptedChatModel(answers=[RuntimeError("no")] * 9)
    compactor = Compactor(failing, fallbacks=[word], trigger=("messages", 6), keep=("messages", 2))
    record = compactor.compact(TALK, thread_id="t").record
    assert record.by == "embedded"
    assert replay(TALK, summarizer=word, policies=["none"]).summarizer == "embedded"


@pytest.mark.slow
@pytest.mark.parametrize("word", WORDS)
def test_the_command_line_takes_it_and_reports_say_embedded(tmp_path, word):
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(TALK), encoding="utf-8")
    args = ["replay", str(path), "--summarizer", word, "--window", "900", "--json"]
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["replays"][0]["summarizer"] == "embedded"


def test_an_error_and_the_default_name_it_by_the_one_word():
    with pytest.raises(InputError, match="write embedded, or provider:model"):
        options.summarizer_of("magic")
    for command in (["compact"], ["replay"]):
        shown = CliRunner().invoke(app, [*command, "--help"]).output
        assert "embedded" in shown
