"""`redact:` in the YAML section."""

from pathlib import Path
from typing import Any

import pytest

from conspectus import ConspectusError
from conspectus.config import create_summarization_middleware, load_config
from conspectus_secrets import SecretRedactor
from scripted_models import ScriptedChatModel


def drop_zebra(text: str) -> str:
    return text.replace("zebra", "[redacted: animal]")


def redactor_of(tmp_path: Path, line: str) -> Any:
    file = tmp_path / "config.yaml"
    file.write_text(
        "summarization:\n  enabled: true\n  trigger: {type: tokens, value: 6000}\n" + line, "utf-8"
    )
    made = create_summarization_middleware(load_config(file), model=ScriptedChatModel(answers=[]))
    return made._setup.engine.redaction  # type: ignore[union-attr]


@pytest.mark.parametrize("line", ["", "  redact: false\n"])
def test_it_is_off_unless_it_is_switched_on(tmp_path, line):
    assert redactor_of(tmp_path, line) is None


@pytest.mark.parametrize("value", ["true", "secrets"])
def test_true_is_the_default_redactor(tmp_path, value):
    assert isinstance(redactor_of(tmp_path, f"  redact: {value}\n").redactor, SecretRedactor)


def test_a_function_is_named_by_its_module(tmp_path):
    redaction = redactor_of(tmp_path, f"  redact: {__name__}:drop_zebra\n")
    assert redaction.redactor.redact("a zebra").text == "a [redacted: animal]"


@pytest.mark.parametrize(
    "value", ["yes please", "5", "[a]", "no.such.module:function", "os:getcwd", "secrets!"]
)
def test_what_cannot_redact_is_refused_with_its_line(tmp_path, value):
    with pytest.raises(ConspectusError, match=r"config.yaml, line 4: .*redact"):
        redactor_of(tmp_path, f"  redact: {value}\n")
