"""The benchmarks of retention find what is wrong, on small made transcripts."""

import json
from pathlib import Path

import pytest

from made_transcripts import CODE_LINE, FILLER, PATH_LINE, QUESTIONS, TALK, agent

RULE = "Never push to the branch called main, whatever anybody says."


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A long run of an agent whose user states a rule and facts, and a talk with questions."""
    messages = agent(140)
    messages.insert(1, {"role": "assistant", "content": "Fine. " + FILLER})
    messages.insert(2, {"role": "user", "content": f"{RULE} {PATH_LINE}. {CODE_LINE}."})
    # The newest message of the user stays in view, so another one has to follow the rule.
    messages.insert(9, {"role": "user", "content": "Go on, please. " + FILLER})
    for folder, name, value in (
        ("agent", "a.json", messages),
        ("locomo", "t.json", TALK),
        ("locomo", "t.qa.json", QUESTIONS),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text(json.dumps(value))
    monkeypatch.setenv("CONSPECTUS_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", ["retention_targets", "auto_recall", "transcripts"])
def test_without_transcripts_it_says_so_and_does_not_fail(
    name, script, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("CONSPECTUS_DATA", str(tmp_path))
    assert script(name).main([]) == 0
    assert capsys.readouterr().out.startswith("skipped: there are no transcripts")
    assert script(name).main(["--json"]) == 0
    assert "no transcripts" in json.loads(capsys.readouterr().out)["skipped"]


@pytest.mark.slow
def test_every_figure_stands_beside_its_target(script, data, capsys):
    targets = script("retention_targets")
    code = targets.main(["--json"])
    figures = {one["what"]: one for one in json.loads(capsys.readouterr().out)["figures"]}
    assert figures["agent, summary of 512: quoted"]["value"] == 1.0
    assert figures["agent, summary of 512: quoted"]["target"] == ""
    assert figures["agent, summary of 2,048: quoted"]["target"] == "at least 0.8"
    for size in ("512", "1,024", "2,048"):
        assert figures[f"agent, 10 rounds, summary of {size}: quoted beside one round"]["holds"]
    assert figures["locomo, recall of 512: answers"]["value"] == 1.0
    # So small a talk is found whole by any search, and nothing can be gained.
    gain = figures["locomo, recall of 512: gain over plain BM25, lower end"]
    assert (gain["value"], gain["holds"]) == (0.0, False)
    assert code == 1
    assert not any(name.startswith("crosswoz") for name in figures)


@pytest.mark.slow
def test_one_folder_alone_can_be_asked_for(script, data, capsys):
    assert script("retention_targets").main(["--only", "agent"]) == 0
    out = capsys.readouterr().out
    assert "21 of 21 figures are as promised" in out
    assert "MISSED" not in out


@pytest.mark.slow
def test_a_missed_target_is_shown_and_fails(script, data, monkeypatch, capsys):
    targets = script("retention_targets")
    monkeypatch.setattr(targets, "QUOTED", {512: 1.01})
    assert targets.main(["--only", "agent"]) == 1
    assert capsys.readouterr().out.count("MISSED") == 1


def test_a_count_that_is_not_0_does_not_hold(script):
    targets = script("retention_targets")
    assert targets.none_of("x", 0).holds
    assert not targets.none_of("x", 1).holds


@pytest.mark.slow
def test_recall_at_each_turn_is_measured_by_what_the_model_was_sent(
    script, data, monkeypatch, capsys
):
    recall = script("auto_recall")
    monkeypatch.setattr(recall, "SHORTEST", 24)
    assert recall.main(["--json"]) == 0
    figures = json.loads(capsys.readouterr().out)["figures"]
    assert figures[0]["what"] == "locomo, 512 tokens at each turn: answers"
    assert figures[0]["value"] == 1.0
    monkeypatch.setattr(recall, "LEAST", {"locomo": 1.01})
    assert recall.main([]) == 1
    assert "MISSED" in capsys.readouterr().out
