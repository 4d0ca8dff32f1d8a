"""`conspectus config`, and agents out of a configuration: models, archives, hooks."""

import asyncio
import json
import re
import textwrap
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime

import cli_support
from cli_support import read_json
from config_support import (
    SUMMARY,
    answering_model,
    build_bench,
    fits,
    load_section,
    summarising_model,
    write_file,
)
from conspectus.config import (
    ConfigError,
    create_middleware,
    create_summarization_middleware,
    load_config,
)
from conspectus.errors import ArchiveError, ConspectusError, InputError, PolicyError
from conspectus.langchain import SummarizationEvent
from conspectus.messages import is_summary_message
from graph_support import summaries
from scripted_models import ScriptedChatModel

run = partial(cli_support.run, "config")
check_report = partial(read_json, "config", "check")


def section(folder: Path, *lines: str) -> Path:
    return write_file(folder, "summarization:\n" + "".join(f"  {line}\n" for line in lines))


ENABLED = ("enabled: true", "trigger: {type: tokens, value: 4000}")


def test_check_shows_every_setting_and_the_window(tmp_path):
    file = section(
        tmp_path,
        "enabled: true",
        "window: 20000",
        "trigger: [{type: fraction, value: '0.8'}, {tokens: 9000, messages: 30}]",
    )
    report = check_report(file)
    assert (report["valid"], report["enabled"], report["window"]) == (True, True, 20_000)
    settings = report["settings"]
    assert settings["trigger"][1] == {"tokens": 9000, "messages": 30}
    assert settings["keep"] == {"type": "messages", "value": 20}  # the default
    shown = run("check", file).stdout
    assert "valid" in shown
    assert "20,000 tokens" in shown


def test_check_knows_windows_of_option_models_and_profile(tmp_path):
    share = ("enabled: true", "trigger: {type: fraction, value: 0.8}")
    assert check_report(section(tmp_path, *share), "--window", "10000")["window"] == 10_000
    file = write_file(tmp_path, """
        models: [{name: house, use: "langchain_openai:ChatOpenAI", model: x, context_window: 9000}]
        summarization: {enabled: true, trigger: {type: fraction, value: 0.5}}
        """)  # fmt: skip
    assert check_report(file)["window"] == 9_000
    model = pytest.importorskip("langchain_openai").ChatOpenAI(model="x", api_key="x")
    assert create_summarization_middleware(load_config(file), model=model).window == 9_000
    assert check_report(section(tmp_path, *share, "model_name: gpt-4o-mini"))["window"] == 128_000
    assert (
        check_report(section(tmp_path, *ENABLED, "model_name: a-model-of-ones-own"))["window"]
        is None
    )


def test_check_opens_nothing_and_shows_no_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("HIDDEN", "hunter2")
    path = tmp_path / "archive.db"
    assert check_report(section(tmp_path, *ENABLED, f"archive: sqlite:///{path}"))["valid"]
    assert not path.exists()
    file = section(
        tmp_path, *ENABLED, "archive: postgresql://ann:hunter2@db/x", "model_name: $HIDDEN"
    )
    finished = run("check", file)
    assert "hunter2" not in finished.output
    assert "postgresql://ann:***@db/x" in finished.output


def test_check_reads_the_endpoints_section_and_windows(tmp_path):
    serve = "serve: {windows: {gpt-5*: 272000}}\n"
    share = "summarization: {enabled: true, trigger: {type: fraction, value: 0.8}, model_name: a}\n"
    notes = " ".join(check_report(write_file(tmp_path, serve + share))["notes"])
    assert "serve: windows in tokens: gpt-5* 272,000, other" in notes
    assert "the model 'a' is not under 'models'; pass it in model_registry=" in notes
    assert check_report(write_file(tmp_path, serve))["settings"]["trigger"] == [{"fraction": 0.85}]
    finished = run("check", write_file(tmp_path, serve.replace("s:", "z:") + share), code=2)
    assert "line 1: serve.windowz: unknown key; did you mean 'window'?" in finished.stderr


@pytest.mark.parametrize("text", ["", "models: []\n"])
def test_check_of_a_file_without_our_section_fails(tmp_path, text):
    file = write_file(tmp_path, text)
    line = cli_support.error_line("config", "check", file)
    assert f"{file}: there is no section 'summarization'; write 'summarization:'" in line


def test_schema_is_printed_and_written(tmp_path):
    printed = run("schema")
    out = tmp_path / "schema.json"
    run("schema", "-o", out)
    schema = json.loads(out.read_text())
    assert json.loads(printed.stdout) == schema
    good = {"summarization": {"enabled": True, "trigger": {"tokens": 5, "messages": 9}}}
    assert fits(good, schema)
    run("schema", "-o", tmp_path / "no" / "x.json", code=2)


FILE = """
models:
  - name: house
    display_name: House model
    use: {use}
    model: gpt-4o-mini
    api_key: $HOUSE_KEY
    temperature: 0.2
    context_window: 10000
    supports_thinking: true
    when_thinking_enabled: {{extra_body: {{thinking: {{type: enabled}}}}}}
    when_thinking_disabled: {{temperature: 0.4}}
summarization:
  enabled: true
  model_name: house
  trigger: [{{type: messages, value: 6}}]
  keep: {{type: messages, value: 2}}
"""


class HouseModel(ScriptedChatModel):
    """A model that an entry of `models` names."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(answers=lambda messages: SUMMARY)
        BUILT_WITH.append(settings)


BUILT_WITH: list[dict[str, Any]] = []


def config_of(folder: Path, use: str = f"{__name__}:HouseModel") -> Any:
    return load_config(write_file(folder, FILE.format(use=use)))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOUSE_KEY", "hunter2")
    BUILT_WITH.clear()


def test_a_model_that_the_file_defines_is_built_from_there(tmp_path):
    middleware = create_summarization_middleware(config_of(tmp_path), model=answering_model())
    assert BUILT_WITH == [{"model": "gpt-4o-mini", "api_key": "hunter2", "temperature": 0.4}]
    assert middleware is not None
    messages = [HumanMessage(f"look at module {n}, the one in src/module_{n}.py") for n in range(6)]
    update = middleware.before_model({"messages": messages}, Runtime())
    assert SUMMARY.splitlines()[1] in str(update["messages"][1].text)


@pytest.mark.parametrize(
    ("use", "name", "reason"),
    [
        ("no_such_package:Model", "house", "No module named 'no_such_package'"),
        (f"{__name__}:BUILT_WITH", "house", "not callable"),
        (f"{__name__}:refusing", "house", "cannot be had"),
        ("langchain_openai:ChatOpenAI", "hosue", "known are house"),
        ("langchain_openai:ChatOpenAI\n    base_url: $NO_SUCH_URL", "house", "NO_SUCH_URL is not"),
    ],
)
def test_the_runs_own_model_replaces_an_unavailable_one(use, name, reason, tmp_path, caplog):
    text = FILE.format(use=use).replace("model_name: house", f"model_name: {name}")
    config = load_config(write_file(tmp_path, text))
    agents_model = summarising_model()
    middleware = create_summarization_middleware(config, model=agents_model, model_registry={})
    assert middleware is not None
    assert len(middleware._setup.engine.summarizers) == 1
    [line] = [record.getMessage() for record in caplog.records]
    assert re.search(r"line 1[45]: the model '", line)
    assert reason in line
    assert "the agent's own model stands in" in line
    assert not {"hunter2", "\n"} & {*re.findall("hunter2|\n", line)}
    with pytest.raises(ConfigError, match=r"line 1[45]: the model"):
        create_summarization_middleware(config, model_registry={})


def refusing(**settings: Any) -> BaseChatModel:
    raise ValueError(f"no such key:\n\n{settings['api_key']}")


def test_a_file_of_an_earlier_version_loads(tmp_path):
    earlier = "preserve_recent_skill_count: 5\npreserve_recent_skill_tokens: 25000\n"
    another = "preserve_recent_skill_tokens_per_skill: 5000\n"
    config = load_section(
        tmp_path, "enabled: true\ntrigger: {type: tokens, value: 4000}\n" + earlier + another
    )
    assert config.enabled


SIX_LINES = """
enabled: true
trigger: {type: messages, value: 6}
keep: {type: messages, value: 2}
archive: "memory:"
"""


def count_words(messages: Any) -> int:
    """A counter that a file can name."""
    return sum(len(str(message.text).split()) for message in messages)


def about_money(message: Any) -> bool:
    """A pin that a file can name."""
    return "money" in str(message.text)


def test_what_is_not_enabled_is_no_middleware(tmp_path):
    config = load_section(tmp_path, "enabled: false\ntrigger: {type: tokens, value: 4000}")
    assert create_summarization_middleware(config, model=answering_model()) is None
    middleware = create_summarization_middleware(
        load_section(tmp_path, SIX_LINES), model=answering_model()
    )
    assert middleware is not None
    assert create_middleware(config, middleware, model=answering_model()) == [middleware]


def test_models_come_from_a_mapping_or_a_function(tmp_path):
    config = load_section(tmp_path, SIX_LINES + "model_name: small\n")
    small = summarising_model()
    for registry in ({"small": small}, {"small": small}.__getitem__):
        build_bench(config, model_registry=registry)
    with pytest.raises(ConfigError, match=r"line 6: .*no such name; known are smal"):
        create_summarization_middleware(config, model_registry={"smal": small})
    with pytest.raises(ConfigError, match=r"line 6: the model 'small' cannot be had \(KeyError"):
        create_summarization_middleware(config, model_registry={}.__getitem__)
    with pytest.raises(ConfigError, match="int is no chat model"):
        create_summarization_middleware(config, model_registry=lambda name: 7)  # type: ignore


def test_a_wrong_model_argument_is_not_the_files_mistake(tmp_path):
    config = load_section(tmp_path, SIX_LINES)
    with pytest.raises(ConfigError, match=r"^the model 'm' cannot be had"):
        create_middleware(config, model="m")
    no_middleware: Any = answering_model()
    with pytest.raises(PolicyError, match=r"own middleware, and is none; .* model="):
        create_middleware(config, no_middleware)


def test_null_is_the_agents_own_model_which_must_then_be_given(tmp_path):
    config = load_section(tmp_path, SIX_LINES)
    with pytest.raises(ConfigError, match="pass it as model="):
        create_summarization_middleware(config)
    model = answering_model("## Goal\n- Look at the modules.")
    middleware = create_summarization_middleware(config, model="own", model_registry={"own": model})
    assert middleware.model is model


def test_null_beside_models_is_the_first_of_them(tmp_path, monkeypatch):
    monkeypatch.setenv("FIRST_KEY", "abc-key")
    models = """
        models:
          - {name: first, use: "langchain_openai:ChatOpenAI", model: gpt-4o, api_key: $FIRST_KEY}
          - {name: second, use: "langchain_openai:ChatOpenAI", model: gpt-5, api_key: none}
          - {name: first, use: "langchain_openai:ChatOpenAI", model: gpt-5, api_key: none}
        """
    file = write_file(
        tmp_path, textwrap.dedent(models) + "summarization:\n  " + "\n  ".join(ENABLED)
    )
    middleware: Any = create_summarization_middleware(load_config(file))

    assert middleware.model.model_name == "gpt-4o"
    assert check_report(file)["window"] == middleware.window == 128_000


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (("model_name: frist",), "the model 'frist' is not under 'models'; did you mean 'first'?"),
        (("model_name: first",), "the environment variable FIRST_KEY is not set"),
        ((), "the environment variable FIRST_KEY is not set"),
        (("model_name: embedded", "fallback_models: [third]"), "'third' is not under 'models'"),
    ],
)
def test_check_finds_a_model_that_cannot_be_had(tmp_path, monkeypatch, lines, problem):
    monkeypatch.delenv("FIRST_KEY", raising=False)
    model = '{name: first, use: "langchain_openai:ChatOpenAI", model: gpt-4o, api_key: $FIRST_KEY}'
    text = f"models:\n  - {model}\nsummarization:\n"
    file = write_file(tmp_path, text + "".join(f"  {line}\n" for line in (*ENABLED, *lines)))
    assert problem in " ".join(cli_support.error_line("config", "check", file).split())


def test_check_names_a_providers_key_that_is_not_set(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    file = section(tmp_path, *ENABLED, "model_name: openai:gpt-5-mini")
    assert "OPENAI_API_KEY is not set here" in " ".join(check_report(file)["notes"])
    monkeypatch.setenv("OPENAI_API_KEY", "abc")
    assert "OPENAI_API_KEY" not in " ".join(check_report(file)["notes"])


def test_models_are_tried_in_their_order_and_the_agents_own_last(tmp_path):
    model_names: list[str] = []

    def failing(name: str) -> Any:
        model = answering_model()
        model.answers = lambda messages: model_names.append(name) or ValueError("no key")
        return model

    config = load_section(tmp_path, SIX_LINES + "model_name: one\nfallback_models: [two, three]\n")
    agent = build_bench(config, model_registry=failing, model=summarising_model())
    for n in range(4):
        agent.say(f"look at module {n}")
    assert model_names == ["one"] * 3 + ["two"] * 3 + ["three"] * 3
    assert len(summaries(agent.values["messages"])) == 1


@pytest.mark.parametrize("archive", ["sqlite:///notes.db", "notes.db"])
def test_a_relative_archive_is_beside_the_configuration(tmp_path, monkeypatch, archive):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    folder = tmp_path / "settings"
    folder.mkdir()
    middleware = create_summarization_middleware(
        load_section(folder, SIX_LINES.replace("memory:", archive)), model=answering_model()
    )
    assert (folder / "notes.db").is_file()
    assert not list(elsewhere.iterdir())
    middleware.close()


def test_an_archive_error_has_a_line_and_no_password(tmp_path):
    (tmp_path / "notes.txt").write_text("not a database, whatever its name")
    config = load_section(tmp_path, SIX_LINES.replace("memory:", f"sqlite:///{tmp_path}/notes.txt"))
    with pytest.raises(ArchiveError, match=r"line 5: .*not a SQLite database"):
        create_summarization_middleware(config, model=answering_model())
    broken = load_section(
        tmp_path, SIX_LINES.replace("memory:", "postgresql://ann:hunter2@:hunter2/x")
    )
    with pytest.raises(InputError, match="line 5: the PostgreSQL address is malformed") as caught:
        create_summarization_middleware(broken, model=answering_model())
    assert "hunter2" not in str(caught.value)
    assert "@host:5432/database" in str(caught.value)
    assert "%40 for @" in str(caught.value)


def test_a_file_may_name_functions_for_counter_and_pin(tmp_path):
    config = load_section(tmp_path, """
        enabled: true
        trigger: {type: tokens, value: 40}
        keep: {type: messages, value: 2}
        token_counter: test_config_cli:count_words
        pin: test_config_cli:about_money
        alternate_roles: off
        archive: "memory:"
        """)  # fmt: skip
    agent = build_bench(config, model=summarising_model(), model_registry={})
    agent.say("the money is in the safe")
    for n in range(8):
        agent.say(f"please look at module number {n} now")
    assert len(summaries(agent.values["messages"])) == 1
    assert "the money is in the safe" in [message.text for message in agent.requests[-1]]


@pytest.mark.parametrize("loop", [False, True])
def test_a_failing_hook_is_logged_and_harms_nothing(loop, tmp_path, caplog):
    called: list[int] = []

    def broken(event: SummarizationEvent) -> None:
        for message in (*event.messages_to_summarize, *event.preserved_messages):
            message.content = "gone"  # type: ignore[union-attr]
        raise ConnectionError("the memory is down")

    async def slow(event: SummarizationEvent) -> None:
        await asyncio.sleep(60)

    agent = build_bench(
        load_section(tmp_path, SIX_LINES + "summarizer_timeout: 0.2\n"),
        model=summarising_model(),
        before_summarization=[broken, slow, lambda event: called.append(1)],
    )
    for n in range(4):
        messages = agent.say(f"look at module {n}", "async" if loop else "sync")
    assert called == [1]
    assert is_summary_message(messages[0])
    assert "gone" not in [message.text for message in messages]
    assert caplog.text.count("before_summarization") >= 2
    assert "the memory is down" in caplog.text


def drop_zebra(text: str) -> str:
    return text.replace("zebra", "[redacted: animal]")


def test_redaction_is_off_or_default_or_a_function(tmp_path):
    for line, redact in {
        "": False,
        "redact: false": False,
        "redact: 'yes'": True,
        "redact: secrets": "secrets",
        f"redact: {__name__}:drop_zebra": drop_zebra,
    }.items():
        middleware = create_summarization_middleware(
            load_section(tmp_path, SIX_LINES + line), model=answering_model()
        )
        assert middleware is not None
        assert middleware.redact == redact
    for value in ("yes please", "5", "[a]", "no.such.module:function", "secrets!"):
        with pytest.raises(ConspectusError, match=r"config.yaml, line 6: .*redact"):
            load_section(tmp_path, SIX_LINES + f"redact: {value}")
