"""The scripted model: what its script raises again and again does not pile up."""

import traceback

import pytest

from scripted_models import ScriptedChatModel


def test_an_error_that_a_script_raises_again_forgets_where_it_was_raised_before():
    error = ValueError("busy")
    model = ScriptedChatModel(answers=lambda messages: error)
    frames = []
    for _ in range(4):
        with pytest.raises(ValueError, match="busy"):
            model.invoke("hello")
        frames.append(len(traceback.extract_tb(error.__traceback__)))
    assert len(set(frames)) == 1
