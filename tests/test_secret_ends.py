"""Where secrets end: long ones go whole, and JSON stays JSON. And by which forms and names the
default redactor finds them, and what it leaves alone though it looks like one.

All secrets are put together when the tests run; see `made_secrets`.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conspectus.redaction.message_texts import walk
from conspectus.redaction.values import without_values
from conspectus_secrets import SecretRedactor
from made_secrets import Made, provider_secrets

REDACTOR = SecretRedactor()
MADE = Made(11)
TOKEN = MADE.alnum(32)
PASSWORD = "zQ7kW9" + "vT3x"
LONG = {size: MADE.alnum(size) for size in (600, 2_000, 6_000, 30_000)}
BLOCK = "-" * 5 + "{} PRIVATE KEY" + "-" * 5


def redacted(text: str, key: str | None = None) -> str:
    return REDACTOR.redact(text, key).text


@pytest.mark.parametrize("size", LONG)
@pytest.mark.parametrize(
    ("around", "kind"),
    [
        ("DB_PASSWORD={}\nA=1", "password"),
        ("export AWS_SESSION_TOKEN={}", "token"),
        ("    client-key-data: {}\n  more: 1", "private-key"),
        ("https://x/cb?refresh_token={}&state=1", "token"),
        ("GCP_SERVICE_ACCOUNT_KEY={}", "key"),
        ('{{"refresh_token": "{}", "a": 1}}', "token"),
        ('{{\\"refresh_token\\": \\"{}\\"}}', "token"),
        ("{{name: API_TOKEN, value: {}}}", "token"),
        ("- name: API_TOKEN\n  value: {}\n- name: A\n", "token"),
        ("token: |\n  {}\nport: 1", "token"),
        ("<refresh_token>{}</refresh_token>", "token"),
        ("**API key:** {}\nNext.", "api-key"),
        ("| API key | {} |", "api-key"),
        ("tool --token {} --verbose", "token"),
        ("the token is {}", "token"),
        ("docker login -u AWS -p {} r.io", "password"),
        ("echo {} | docker login --password-stdin", "password"),
    ],
)
def test_a_long_secret_goes_as_a_whole(around, kind, size):
    assert redacted(around.format(LONG[size])) == around.format(f"[redacted: {kind}]")


@pytest.mark.parametrize("quote", ['"', "'", '\\"'])
def test_where_a_quote_is_not_closed_the_value_goes_to_its_next_break(quote):
    for value in (PASSWORD, LONG[600]):
        assert redacted(f"password={quote}{value} and more") == (
            f"password={quote}[redacted: password] and more"
        )


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("AWS_SECRET_ACCESS_KEY=/{}/{}/{}A", "AWS_SECRET_ACCESS_KEY=[redacted: aws-secret-key]"),
        ('"SecretAccessKey": "/{}/{}/{}A"', '"SecretAccessKey": "[redacted: aws-secret-key]"'),
        ("JWT_SECRET=/{}/{}/{}==", "JWT_SECRET=[redacted: secret]"),
        ("DB_PASSWORD=/zQ7k{0:.0}W9vT3x+w==", "DB_PASSWORD=[redacted: password]"),
    ],
)
def test_a_secret_that_begins_with_a_slash_is_no_path(text, left):
    assert redacted(text.format("JalrXUtnFEMI", "K7MDENG", "bPxRfiCYzzzzzzKEY")) == left
    assert redacted("/" + PASSWORD, "password") == "[redacted: password]"


@pytest.mark.parametrize(
    "path", ["/run/secrets/db1", "~/.ssh/id_rsa2", "/home/Ann/Project2024/key", "./a/B2.txt"]
)
def test_a_path_is_no_secret(path):
    for text in (f"PASSWORD={path}", f"password: {path}", f'"api_key": "{path}"'):
        assert redacted(text) == text


# JSON stays JSON

FRAGMENTS = st.sampled_from(
    [
        *[secret for _, secret in sorted(provider_secrets(MADE).items())][::7],
        *'password "password" DB_PASSWORD= token api_key = : == " \' \\ \\"'.split(),
        *"{ } | , ; & ` $".split(),
        *'<password> </password> **Password:** name: value: "value":" ://u: @h Bearer '.split(),
        *"-p mysql --password sid= Cookie: setPassword( | Password| _auth= /x".split(),
        "\n",
        "\r\n",
        "\t",
        " ",
        PASSWORD,
        TOKEN,
        LONG[600],
        'name="password"\n\n',
        "password: |\n  ",
        "the password is ",
        "Authorization: token ",
        '" +\n"',
        '",\n "',
        BLOCK.format("BEGIN"),
        BLOCK.format("END"),
        MADE.base64(48),
        "     9\t",
        "é→",
        "[redacted: password]",
    ]
)
TEXTS = st.lists(FRAGMENTS, max_size=10).map("".join)
NAMES = st.sampled_from(["name", "value", "password", "command", "content", "token", "x"])
DATA: st.SearchStrategy[Any] = st.recursive(
    TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES, inner, max_size=3)
        | inner.map(json.dumps)
    ),
    max_leaves=6,
)


def read(text: str) -> Any:
    """What JSON says; None where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def names_of(value: Any) -> Any:
    """The form of some data: its names, and how many parts there are, without the texts."""
    if isinstance(value, dict):
        return {name: names_of(part) for name, part in value.items()}
    return [names_of(part) for part in value] if isinstance(value, list) else None


@example(data={"x": [MADE.base64(48), BLOCK.format("END")]}, ascii_only=True, indent=None)
@given(st.dictionaries(NAMES, DATA, max_size=3), st.booleans(), st.sampled_from([None, 2]))
def test_json_is_still_json_with_the_same_names(data, ascii_only, indent):
    done = redacted(json.dumps(data, ensure_ascii=ascii_only, indent=indent))
    assert names_of(read(done)) == names_of(data)
    assert redacted(done) == done


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "content",
    [
        f'sh -c "login --password {PASSWORD}"',
        f"{MADE.base64(60)}\n{BLOCK.format('END')}\n",
        f"{BLOCK.format('BEGIN')}\n{MADE.base64(60)}",
        f"{BLOCK.format('BEGIN')}\n{MADE.base64(60)}\n",
        f"x\n{provider_secrets(MADE)['github-token']}",
    ],
)
def test_a_secret_ends_with_its_string_however_deep_it_lies(content, indent):
    data = {"content": content, "path": "/x", "more": ["a", "b"]}
    text = json.dumps(data, indent=indent)
    for depth in range(2):
        done = read(redacted(text))
        if depth and isinstance(done, dict):
            done = read(done["text"])
        assert isinstance(done, dict), text
        assert "[redacted: " in done.pop("content")
        assert done == {"path": "/x", "more": ["a", "b"]}
        text = json.dumps({"text": text})


def test_a_private_key_in_several_strings_goes_from_all_of_them():
    lines = MADE.pem().split("\n")
    for text in (json.dumps(lines), json.dumps(lines, indent=1), json.dumps(lines[:6])):
        done = redacted(text)
        assert isinstance(json.loads(done), list)
        assert not any(line in done for line in lines[1:6])
    joined = " +\n".join(f'"{line}\\n"' for line in lines)
    assert redacted(joined).count("[redacted: private-key]") == 1
    assert not any(line in redacted(joined) for line in lines[1:6])


NUMBERED: dict[str, Callable[[int, str], str]] = {
    "cat -n": lambda n, line: f"{n:6}\t{line}",
    "grep -n": lambda n, line: f"keys/id_rsa:{n}:{line}",
    "arrow": lambda n, line: f"{n:6}→{line}",
    "colon": lambda n, line: f"{n}: {line}",
    "bar": lambda n, line: f"{n:3} | {line}",
}


@pytest.mark.parametrize("way", NUMBERED)
@pytest.mark.parametrize("lines", [slice(0, 20), slice(8, None), slice(None)])
def test_no_line_of_a_key_stays_where_lines_are_numbered(way, lines):
    key = MADE.pem(lines=25).split("\n")
    shown = "\n".join([NUMBERED[way](n, line) for n, line in enumerate(key, 1)][lines])
    for text in (shown, json.dumps({"out": shown}), json.dumps({"o": shown}, ensure_ascii=False)):
        done = redacted(f"{text}\n")
        assert "[redacted: private-key]" in done
        assert not any(line in done for line in key[1:-1])


# Names and forms


@pytest.mark.parametrize(
    "text",
    [
        '{"user":"a","pass":"{}"}',
        'auth: { user: "me@x.io", pass: "{}" }',
        "$pass = '{}';",
        "PASS={}",
        "tool --pass {}",
        "SSHPASS={}",
        "define('DB_PASSWORD', '{}');",
        'Content-Disposition: form-data; name="password"\r\n\r\n{}\r\n--x',
        "curl -su ann:{} x",
        "curl -uann:{} x",
        "curl https://x \\\n  -u ann:{}",
        "curl 'https://x?a=1&b=2' -u ann:{}",
        "postgres://ann:{}@${HOST}/d",
        "postgres://ann:{}@$HOST/d",
        'f"postgres://ann:{}@{host}/d"',
        "postgres://ann:ab9K/{}@h/db",
        "postgres://ann:ab9#{}@h/db",
        "DB_PASSWORD=a'{}",
        "DB_PASSWORD=a\\{}",
        "DB_PASSWORD=Winter.{}",
        "password: zQ7,{}",
        "  password: zQ7[k]{}",
        "password: zQ7{k{}",
        "password: zQ7|{}",
    ],
)
def test_a_password_under_these_names_and_with_these_signs_is_found(text):
    done = redacted(text.replace("{}", PASSWORD))
    assert "vT3x" not in done
    assert "zQ7" not in done
    assert redacted(done) == done


@pytest.mark.parametrize(
    "text",
    [
        "OPENAI_KEY={}",
        "export STRIPE_KEY='{}'",
        "APP_KEY=base64:{}",
        "Ocp-Apim-Subscription-Key: {}",
        "PresharedKey = {}",
        "Use this API key: {}",
        "my api key is {}",
        "VAULT_TOKEN=s.{}",
        "Authorization: token {}",
        "Authorization: ApiKey {}",
        "Authorization: {}",
        '{"Authorization": "{}"}',
        "set -x API_KEY {}",
        'let api_key: &str = "{}";',
        '{"text": "a\\nTOKEN={}\\nb"}',
    ],
)
def test_a_key_under_these_names_is_found(text):
    done = redacted(text.replace("{}", TOKEN))
    assert TOKEN not in done
    assert redacted(done) == done


def test_a_header_a_cookie_and_an_argument_in_a_call_are_found():
    call = {
        "headers": {"Authorization": f"token {TOKEN}", "Accept": "text/html"},
        "cookies": {"sid": TOKEN, "theme": "dark"},
        "args": ["mysql", "--password", PASSWORD, "--host", "db7Internal"],
        "cmd": ["/usr/bin/curl", "-u", f"ann:{PASSWORD}", "https://x"],
        "env": {"ACME_KEY": TOKEN, "CACHE_KEY": TOKEN},
        "smtp": {"user": "ann", "pass": PASSWORD},
    }
    made = walk({"args": call}, lambda text, key: redacted(text, key))["args"]
    assert made == {
        "headers": {"Authorization": "token [redacted: authorization]", "Accept": "text/html"},
        "cookies": {"sid": "[redacted: cookie]", "theme": "dark"},
        "args": ["mysql", "--password", "[redacted: password]", "--host", "db7Internal"],
        "cmd": ["/usr/bin/curl", "-u", "ann:[redacted: password]", "https://x"],
        "env": {"ACME_KEY": "[redacted: key]", "CACHE_KEY": TOKEN},
        "smtp": {"user": "ann", "pass": "[redacted: password]"},
    }


@pytest.mark.parametrize(
    "text",
    [
        "token: TextGenerationStreamOutputToken\n\nclass TextGenerationStreamOutputToken(Base): x",
        "storage_key: SerializedStorageKey",
        "private_key: CertificateIssuerPrivateKeyTypes",
        "secret_access_key: AwsSecretAccessKey",
        "private_key: X25519PrivateKey",
        "pass: 12 tests",
        "PASS=12 FAIL=3",
        '{"pass": "step2", "fail": "v1.2.3"}',
        "    pass\n",
        f"CACHE_KEY={TOKEN}",
        f"PUBLIC_KEY={TOKEN}",
        "curl https://x && docker run -u 1000:1000 image",
        "http://localhost:8080/@vite/client",
        "https://unpkg.com:443/react@17",
        "password: args[1],",
        "Authorization: OAuth2PasswordBearer",
        "password: Optional[str]|None2,",
        "PASSWORD=settings.password",
    ],
)
def test_names_results_and_addresses_are_left_alone(text):
    assert redacted(text) == text


def test_the_longest_of_several_values_goes_wherever_it_stands():
    values = {"ab1-cd": "a", "ab1-cd-ef": "b", "cd-ef-gh": "c", "ef-gh2": "d"}
    for text, left in [
        ("ab1-cd-ef-gh2", "[redacted: b]-gh2"),
        ("ab1-cd-gh", "[redacted: a]-gh"),
        ("x-cd-ef-gh2 cd-ef-gh", "x-cd-[redacted: d] [redacted: c]"),
        ("ab1-ab1-cd ef-ef-gh2", "ab1-[redacted: a] ef-[redacted: d]"),
    ]:
        assert without_values(text, values)[0] == left
