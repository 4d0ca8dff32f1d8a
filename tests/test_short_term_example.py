"""The example of the short-term memory does what it says."""

import subprocess
import sys

import pytest

from scripts import imported

example = imported("langgraph_short_term", "examples")


def test_the_example_keeps_the_name_over_four_turns(example, capsys):
    assert example.main() == 0
    said = capsys.readouterr().out
    assert said.count("Your name is Bob.") == 2
    assert said.count("messages shown") == 8
    assert "word for word: True" in said


@pytest.mark.slow
def test_the_core_imports_no_graph_for_the_root_package():
    code = (
        "import sys, conspectus; "
        "assert 'conspectus.short_term' not in sys.modules; "
        "from conspectus.short_term import SummarizationNode; "
        "assert 'conspectus.langchain' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
