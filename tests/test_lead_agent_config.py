"""The lead agent's configuration: edits that count, mistakes and their lines, addresses."""

import json
import re
from pathlib import Path

import pytest

from conspectus.messages import is_summary_message
from lead_agent import LeadAgent
from lead_agent.errors import Conflict, SettingsError
from lead_agent_support import configured, model, opened, sent

ROOT = Path(__file__).resolve().parents[1]
MAIN = ROOT / "examples" / "lead_agent" / "main.py"


def test_an_edit_while_it_runs_counts_at_the_next_turn(tmp_path, caplog):
    with opened(tmp_path, own := model(), trigger=200) as agent:
        for n in range(4):
            agent.turn("t", f"write workspace/{n}.txt: hello")
        assert not any(map(is_summary_message, sent(own)))
        configured(tmp_path, trigger="many")
        agent.turn("t", "list")
        assert "the configuration in force is kept" in caplog.text
        assert not any(map(is_summary_message, sent(own)))
        configured(tmp_path, trigger=6)
        reply = agent.turn("t", "list workspace")
        assert any(map(is_summary_message, sent(own)))
        assert "3.txt" in reply["answer"]
        assert reply["title"] == "write workspace/0.txt: hello"


def test_summarisation_can_be_switched_on_by_an_edit_of_a_running_agent(tmp_path, caplog):
    with opened(tmp_path, own := model(), enabled="false") as agent:
        for n in range(4):
            agent.turn("t", f"write workspace/{n}.txt: hello")
        with pytest.raises(Conflict, match="is disabled"):
            agent.compact("t")
        configured(tmp_path, enabled="yes please")
        agent.turn("t", "list")
        assert "the configuration in force is kept" in caplog.text
        configured(tmp_path, enabled="true", trigger=6)
        agent.turn("t", "list")
        assert any(map(is_summary_message, sent(own)))
        configured(tmp_path, enabled="false")
        with pytest.raises(Conflict, match="is disabled"):
            agent.compact("t")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("lead_agent: {modle: x}", "unknown key 'modle' in 'lead_agent'; did you mean 'model'?"),
        (
            "lead_agent:\n  server:\n    prot: 1\n",
            "line 3: unknown key 'prot' in 'lead_agent.server'; did you mean 'port'?",
        ),
        ("lead_agent: {sandbox: {shell: perhaps}}", "lead_agent.sandbox.shell"),
        ("lead_agent: {title: {by: nobody}}", "lead_agent.title.by"),
        ("lead_agent: [1]", "lead_agent"),
        ("lead_agent: {checkpointer: ", "is no YAML"),
        ("lead_agent: {checkpointer: $NOT_SET_ANYWHERE}", "NOT_SET_ANYWHERE is not set"),
        ("lead_agent: {checkpointer: 'mysql://me:hunter2@x'}", "must be sqlite:///FILE"),
        ("lead_agent: {model: 'nobody:nothing'}", "'nobody:nothing' cannot be had"),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_key(tmp_path, text, why):
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=re.escape(why)) as told:
        LeadAgent(file)
    assert "hunter2" not in str(told.value)
    assert [path.name for path in tmp_path.glob("data/*")] in ([], ["checkpoints.sqlite"])


def test_all_mistakes_of_a_configuration_are_told_at_once_with_their_lines(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(
        "summarization:\n  enabled: perhaps\nlead_agent:\n  checkpointer: mysql://me:hunter2@x\n"
        "  modle: x\n  data: $NOT_SET_ANYWHERE\n  title: {words: 0}\n"
    )
    with pytest.raises(SettingsError) as told:
        LeadAgent(file)
    problems = str(told.value).split(f"{file}, ")[1:]
    assert [one.partition(":")[0] for one in problems] == [f"line {n}" for n in (4, 5, 6, 7, 2)]
    assert "summarization.enabled" in problems[-1]
    assert "hunter2" not in str(told.value)


def test_the_configuration_that_comes_with_it_is_valid(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text((MAIN.parent / "config.yaml").read_text())
    with LeadAgent(file) as agent:
        assert agent.turn("t", "list workspace")["answer"] == "[empty]"
        assert agent.settings.sandbox.shell is False
        assert json.loads(json.dumps(agent.look("t")))["messages"] == 4


def test_relative_paths_of_checkpoints_and_archive_are_from_the_folder_of_the_file(
    tmp_path, monkeypatch
):
    folder, elsewhere = tmp_path / "agent", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    file = configured(folder, checkpointer="sqlite:///kept.sqlite")
    file.write_text(file.read_text() + "  archive: sqlite:///originals.sqlite\n")
    monkeypatch.chdir(elsewhere)
    with LeadAgent(Path("..", "agent", "config.yaml"), model=model()) as agent:
        for _ in range(3):
            agent.turn("t", "list")
        assert agent.compact("t")["compacted"]
    assert {"kept.sqlite", "originals.sqlite"} <= {path.name for path in folder.iterdir()}
    assert list(elsewhere.iterdir()) == []
