"""The lead agent's configuration: edits that count, mistakes and their lines, addresses."""

import json
from pathlib import Path

import pytest

from conspectus.messages import is_summary_message
from lead_agent import LeadAgent
from lead_agent.errors import Conflict
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


def test_the_configuration_that_comes_with_it_is_valid(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text((MAIN.parent / "config.yaml").read_text())
    with LeadAgent(file) as agent:
        assert agent.turn("t", "list workspace")["answer"] == "[empty]"
        assert agent.settings.sandbox.shell is False
        assert json.loads(json.dumps(agent.look("t")))["messages"] == 4
