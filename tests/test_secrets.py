"""The default redactor: what it finds, what it leaves alone, and that no text makes it slow.

All secrets are put together when the tests run; see `made_secrets`.
"""

import json
import os
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.stateful import rule

from conspectus_secrets import SecretRedactor
from made_secrets import SecretMaker, no_secrets, provider_secrets, said_secrets
from redaction_support import stored_values
from stateful.budgets import budgeted
from stateful.compactor_talk import CALL_IDS
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look
from stateful.messages import answering, calling, speaking
from stateful.oracle import text_of

REDACTOR = SecretRedactor()
MADE = SecretMaker()
PROVIDERS = provider_secrets(MADE)
SAID = said_secrets(MADE)
NONE = no_secrets(MADE)
MISSED = "known to be missed"  # docs/redaction.md lists what is
TOKEN = MADE.alnum(32)
PASSWORD = "zQ7kW9" + "vT3x"


def redacted(text: str, key: str | None = None) -> str:
    return REDACTOR.redact(text, key).text


@pytest.mark.parametrize("around", ["{}", "use {} here", '"{}"', "X={};", "[{}]\n", "<{}>"])
def test_a_providers_secret_is_replaced_by_its_kind_and_counted(around):
    for name, secret in PROVIDERS.items():
        result = REDACTOR.redact(around.format(secret))
        kind_name = name.split(" (")[0]
        assert result.counts == {kind_name: 1}
        assert f"[redacted: {kind_name}]" in result.text
        assert secret[-16:] not in result.text
        assert redacted(result.text) == result.text


@pytest.mark.parametrize(
    "kind_of_place", sorted({kind_of_place for kind_of_place, _, _ in SAID} - {MISSED})
)
def test_a_secret_told_by_what_stands_around_it_is_replaced(kind_of_place):
    for text, secret in [
        (text, secret) for told_by, text, secret in SAID if told_by == kind_of_place
    ]:
        result = REDACTOR.redact(text)
        assert secret not in result.text
        assert sum(result.counts.values()) >= 1
        assert redacted(result.text) == result.text


@pytest.mark.parametrize("group", sorted({group for group, _ in NONE}))
def test_what_holds_no_secret_is_left_as_it_is(group):
    for text in [text for named, text in NONE if named == group]:
        assert (REDACTOR.redact(text).text, REDACTOR.redact(text).counts) == (text, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DB_PASSWORD={} ./run x!", "DB_PASSWORD=[redacted: password] ./run x!"),
        ("postgres://ann:{}@db/shop", "postgres://ann:[redacted: url-password]@db/shop"),
        ('{"password": "{}", "n": 1}', '{"password": "[redacted: password]", "n": 1}'),
        ("?password={}&user=ann", "?password=[redacted: password]&user=ann"),
        ("DB_PASSWORD=a&{} now", "DB_PASSWORD=[redacted: password] now"),
        ("DB_PASSWORD={}，然后重启", "DB_PASSWORD=[redacted: password]，然后重启"),
        ("密码是{}。", "密码是[redacted: password]。"),
        ("note: password={}, go", "note: password=[redacted: password], go"),
        ("password: {}", "password: [redacted: password]"),
        ("mysql -p" * 9, "mysql -p" + "[redacted: password] -p" * 8),
        ('password="{} and more', 'password="[redacted: password] and more'),
    ],
)
def test_what_stands_around_a_secret_stays(text, expected):
    assert redacted(text.replace("{}", PASSWORD)) == expected
    assert redacted(expected) == expected


@pytest.mark.parametrize(
    "text", ["the admin password is {} ok? use {} now", "DB_PASSWORD={}\ntried {} again"]
)
def test_a_value_that_was_told_once_goes_wherever_it_stands(text):
    for value in ("Zx9kQ77w", "Zx-kQ_w7", "tr0ub&4dor", "zxQkw&nn2", "pässwört9!x"):
        result = REDACTOR.redact(text.format(value, value))
        assert value not in result.text
        assert sum(result.counts.values()) == 2
    assert redacted("POSTGRES_PASSWORD=postgres\npsql postgres").endswith("\npsql postgres")
    assert redacted("PASSWORD=Zx9kQ77w\nZx9kQ77w2").endswith("\nZx9kQ77w2")


@pytest.mark.parametrize("glue", ["\n", "\\n", "\r\n    "])
def test_no_line_of_a_cut_private_key_stays(glue):
    key = MADE.pem()
    assert redacted(f"a\n{key}\nb") == "a\n[redacted: private-key]\nb"
    half = glue.join(key.split("\n")[:5])
    assert redacted(f"{half}{glue}and prose.") == f"[redacted: private-key]{glue}and prose."


NUMBERED: dict[str, Callable[[int, str], str]] = {
    "cat -n": lambda n, line: f"{n:6}\t{line}",
    "grep -n": lambda n, line: f"keys/id_rsa:{n}:{line}",
    "arrow": lambda n, line: f"{n:6}→{line}",
    "source": lambda n, line: f'"{line}" +',
}


@pytest.mark.parametrize("numbering", NUMBERED)
@pytest.mark.parametrize("lines", [slice(0, 20), slice(None)])
def test_no_line_of_a_numbered_or_quoted_key_stays(numbering, lines):
    key = MADE.pem(lines=25).split("\n")
    shown = "\n".join([NUMBERED[numbering](n, line) for n, line in enumerate(key, 1)][lines])
    for text in (shown, json.dumps({"out": shown}), json.dumps(key[lines])):
        shown_text = redacted(f"{text}\n")
        assert "[redacted: private-key]" in shown_text
        assert not any(line in shown_text for line in key[1:-1])


FRAGMENTS = st.sampled_from(
    [
        *[secret for _, secret in sorted(PROVIDERS.items())][::7],
        *[text for _, text, _ in SAID][::9],
        *'password "password" DB_PASSWORD= token: = : == " \' \\ \\" { } | , ; & ` “ ”'.split(),
        *'<password> </password> name: value: "value":" ://u: @h Bearer --password sid='.split(),
        *"Cookie: setPassword( | Password| _auth= /x 密码是Zx9#mP2q 令牌 。 — é\u200b".split(),
        *"[redacted: password] \\u0070 12345678".split(),
        *("\n", "\r\n", "\t", " ", "password: |\n  ", "the password is ", '" +\n"', '",\n "'),
        "-" * 5 + "BEGIN PRIVATE KEY" + "-" * 5,
        "-" * 5 + "END PRIVATE KEY" + "-" * 5,
        MADE.base64(48),
        PASSWORD,
        TOKEN,
        "[redacted: password]",
    ]
)
TEXTS = st.lists(FRAGMENTS | st.text(max_size=4), max_size=10).map("".join)
NAMES = st.sampled_from(["name", "value", "password", "content", "token", "x"])
NAMED = ["password", "api_key", "token", "SECRET_KEY", "cookie", "Authorization", "-u", "pass"]
DATA: st.SearchStrategy[Any] = st.recursive(
    TEXTS | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES, inner, max_size=3)
        | inner.map(json.dumps)
    ),
    max_leaves=6,
)


def names_of(value: Any) -> Any:
    """The names in some data. Of a key in a list of lines, one line is left."""
    if isinstance(value, dict):
        return {name: names_of(part) for name, part in value.items()}
    return [named for part in value if (named := names_of(part))] if isinstance(value, list) else ()


@example(data={"x": f'password="{PASSWORD}', "token": 'a "b" c'}, ascii_only=True, indent=None)
@given(st.dictionaries(NAMES, DATA, max_size=3), st.booleans(), st.sampled_from([None, 2]))
def test_json_is_still_json_with_the_same_names(data, ascii_only, indent):
    redacted_text = redacted(json.dumps(data, ensure_ascii=ascii_only, indent=indent))
    assert names_of(json.loads(redacted_text)) == names_of(data)
    assert redacted(redacted_text) == redacted_text


def test_the_rest_of_a_secret_beside_a_mark_is_secret():
    """Otherwise the second reading would change the first, and nothing be compacted any more."""
    text = f"staging2024: {PROVIDERS['github-token']}"
    result = REDACTOR.redact(text, "api_key")
    assert (result.text, result.counts) == (
        "[redacted: api-key]",
        {"github-token": 1, "api-key": 1},
    )
    assert redacted(result.text, "api_key") == result.text


@given(TEXTS, st.sampled_from([None, *NAMED]))
def test_redacting_again_changes_nothing_under_any_name(text, key):
    redacted_once = redacted(text, key)
    assert redacted(redacted_once, key) == redacted_once


HOSTILE = r"""
password= password=" token=' ://a:b eyJ eyJaaaaaaaa. sk- AKIA A = \ \" cookie:a=b; \u0061 key pass
:// [redacted: -----BEGIN\u0020 **password**a9!xk {name:password,value:a <password> _- \\\\"
getenv('PASSWORD','a "value":"x","name":"password", setpassword("x9!abc") |password|a9b8c7d6 1\\t
auth/ auth: ["password":" curl\u0020-u\u0020a curl\u0020&\u0020 password\u0020is\u0020 密码：
mysql\u0020- machine\u0020a\u0020 密码是a9!xk 密码：「Zx9 password:\u0020“ password:a9!xk—b— \\u5bc6
-----BEGIN\u0020PRIVATE\u0020KEY----- -----END\u0020PRIVATE\u0020KEY-----
""".split()


@pytest.mark.slow
@pytest.mark.parametrize("piece", HOSTILE)
def test_a_long_hostile_text_comes_to_an_end(piece):
    # One that went over it again for each of its pieces would take hours.
    size = 1_000_000 if os.environ.get("CONSPECTUS_PROFILE") == "long" else 250_000
    text = piece.replace(r"\u0020", " ") * (size // len(piece))
    assert len(redacted(text)) < 4 * len(text) + 1_000


KINDS = ("openai-key", "aws-access-key", "github-token", "slack-token", "stripe-key", "jwt")
REMEMBER = "Always use {0} for the build. The deploy key is {0}, never write it down."
ENV = "DEBUG=1\nTOKEN={0}\nPORT=80\n"


class SecretsAreKeptNowhere(CompactorWorld):
    archives = False  # so that there always is one
    settings_of: ClassVar = {"redact": True}
    summarizer_kinds = ("model", "side by side", "embedded")

    def __init__(self) -> None:
        super().__init__()
        self.secrets: list[str] = []

    def secret(self, name: str) -> str:
        self.secrets.append(provider_secrets(SecretMaker(len(self.secrets)))[name])
        return self.secrets[-1]

    @rule(name=st.sampled_from(KINDS), role=st.sampled_from(["user", "assistant"]))
    def somebody_says_a_secret(self, name: str, role: str) -> None:
        text = self.text(REMEMBER.format(self.secret(name)))
        self.say(speaking(self.form, role, text, name=self.name()))

    @rule(name=st.sampled_from(KINDS), lines=st.sampled_from([1, 400]))
    def a_tool_shows_a_secret(self, name: str, lines: int) -> None:
        free = [call for call in CALL_IDS if call not in self.current.pending]
        if not free:
            return
        secret = self.secret(name)
        command = self.text(f"curl -H 'Authorization: Bearer {secret}' example.org")
        self.say(calling(self.form, self.text("Looking."), [(free[0], command)], self.name()))
        shown = self.text("a line\n" * lines + ENV.format(secret))
        self.say(answering(self.form, free[0], shown, self.name()))

    def judge(self, look: Look) -> None:
        outputs = {
            "the store": "\n".join(value.text for value in stored_values(self.store)),
            "a summary": "\n".join(text_of(m) for m in look.parts.summaries),
            "a summary in force": look.summary,
            "a prompt": "\n".join(look.prompts),
            "an event": repr(self.events),
        }
        if look.error is None and look.reach:  # of a thread without a record nothing is recalled
            recalled = self.compactor.recall(
                "deploy key TOKEN Bearer", tokens=4_000, **self.current.scope_arguments
            )
            outputs["what was recalled"] = recalled.text
        for output, text in outputs.items():
            folded = text.casefold()  # as the words of a search index are
            for secret in self.secrets:
                assert secret.casefold() not in folded, f"a secret is in {output}"
        if look.error is None and any(
            s in text_of(m) for s in self.secrets for m in look.not_shown
        ):
            assert "[redacted" in repr(look.reach), "it left, and nothing says that it was there"


TestSecretsAreKeptNowhere = budgeted(SecretsAreKeptNowhere, short=5, long=300)
