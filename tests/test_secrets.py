"""The default redactor: what it finds, what it leaves alone, and that no text makes it slow.

All secrets are put together when the tests run; see `made_secrets`.
"""

import importlib
import json
import os
import pkgutil
import re
from collections.abc import Iterator
from re import _constants as opcodes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import conspectus.redaction
import conspectus_secrets
from conspectus.redaction.values import without_values
from conspectus_secrets import SecretRedactor, formats, places
from made_secrets import Made, no_secrets, provider_secrets, said_secrets

REDACTOR = SecretRedactor()
MADE = Made()
PROVIDERS = provider_secrets(MADE)
SAID, NONE = said_secrets(MADE), no_secrets(MADE)
MISSED = "bare plain word"
"""Known to be missed: `password: swordfish` could as well be a type or prose."""


def redacted(text: str, key: str | None = None) -> str:
    return REDACTOR.redact(text, key).text


@pytest.mark.parametrize("around", ["{}", "use {} here", '"{}"', "X={};", "[{}]\n", "<{}>"])
def test_a_providers_secret_is_replaced_by_its_kind_and_counted(around):
    for kind, secret in PROVIDERS.items():
        done = REDACTOR.redact(around.format(secret))
        named = kind.split(" (")[0]
        assert done.counts == {named: 1}
        assert f"[redacted: {named}]" in done.text
        assert secret[-16:] not in done.text
        assert redacted(done.text) == done.text


@pytest.mark.parametrize("place", sorted({place for place, _, _ in SAID} - {MISSED}))
def test_a_secret_told_by_what_stands_around_it_is_replaced(place):
    for text, secret in [(text, secret) for where, text, secret in SAID if where == place]:
        done = REDACTOR.redact(text)
        assert secret not in done.text
        assert sum(done.counts.values()) >= 1
        assert "[redacted: " in done.text
        assert redacted(done.text) == done.text


@pytest.mark.parametrize("group", sorted({group for group, _ in NONE}))
def test_what_holds_no_secret_is_left_as_it_is(group):
    for text in [text for named, text in NONE if named == group]:
        done = REDACTOR.redact(text)
        assert done.text == text
        assert done.counts == {}


def test_what_stands_around_a_secret_stays():
    password, token = MADE.password(), PROVIDERS["github-token"]
    assert redacted(f"DB_PASSWORD={password} ./run {token}!") == (
        "DB_PASSWORD=[redacted: password] ./run [redacted: github-token]!"
    )
    assert redacted(f"postgres://ann:{password}@db/shop") == (
        "postgres://ann:[redacted: url-password]@db/shop"
    )
    assert redacted(f'{{"password": "{password}", "n": 1}}') == (
        '{"password": "[redacted: password]", "n": 1}'
    )


def test_a_secret_written_in_escapes_goes_as_a_whole():
    token = PROVIDERS["github-token"]
    escaped = "".join(f"\\u{ord(c):04x}" for c in token)
    assert redacted(f'"a": "{escaped}", "b"') == '"a": "[redacted: github-token]", "b"'
    assert redacted("\u200b".join(token)) == "[redacted: github-token]"


@pytest.mark.parametrize(
    "text",
    [
        "the admin password is {} ok? remember: always use password {}.",
        "DB_PASSWORD={}\ntried {} again",
        "tried {}, then: mysql --password={} shop",
        '"out": "tried\\n{}\\n", "password": "{}"',
        "postgres://ann:{}@db/x and 密码是{}。",
        "PASSWORD={}. It is {}!",
    ],
)
def test_a_value_that_was_told_once_goes_wherever_it_stands(text):
    for value in ("Zx9kQ77w", "Zx-kQ_w7", "tr0ub&4dor", "zxQkw&nn", "pässwört9!x"):
        done = REDACTOR.redact(text.format(value, value))
        assert value not in done.text
        assert sum(done.counts.values()) == 2
        assert redacted(done.text) == done.text
    hidden = "\u200b".join("Zx9kQ77w")
    assert redacted(f"PASSWORD=Zx9kQ77w and {hidden}") == (
        "PASSWORD=[redacted: password] and [redacted: password]"
    )


def test_a_plain_word_part_of_a_word_and_a_mark_are_left_alone_elsewhere():
    assert redacted("POSTGRES_PASSWORD=postgres\npsql postgres") == (
        "POSTGRES_PASSWORD=[redacted: password]\npsql postgres"
    )
    assert redacted("PASSWORD=Zx9kQ77w\nZx9kQ77w2 aZx9kQ77w").endswith("\nZx9kQ77w2 aZx9kQ77w")
    assert redacted("PASSWORD=48127731\n48127731").endswith("\n48127731")
    marked = "[redacted: slack-webhook]"
    assert without_values(marked, {"slack-webhook": "password"})[0] == marked


def test_many_values_are_looked_for_at_once():
    values = [MADE.alnum(12) for _ in range(300)]
    text = "".join(f"A{n}_PASSWORD={value}\n" for n, value in enumerate(values))
    done = REDACTOR.redact(text + " ".join(values))
    assert done.counts == {"password": 600}
    assert not any(value in done.text for value in values)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("密码是 Zx9kQ7", "密码是 [redacted: password]"),
        ("das Passwort lautet Geheim123", "das Passwort lautet [redacted: password]"),
        ('SECRET="short"', 'SECRET="[redacted: secret]"'),
        (
            "echo 'Zx9kQ77w' | docker login --password-stdin",
            "echo '[redacted: password]' | docker login --password-stdin",
        ),
        (f"aws secret {19 * 'aB'}1x", "aws secret [redacted: aws-secret-key]"),
    ],
)
def test_ways_to_tell_a_secret_in_words_languages_and_pipes(text, left):
    assert redacted(text) == left
    assert redacted(left) == left


def test_a_private_key_goes_as_a_whole_and_what_follows_stays():
    key = MADE.pem()
    assert redacted(f"a\n{key}\nb") == "a\n[redacted: private-key]\nb"
    assert redacted(f"{key}\n{key}") == "[redacted: private-key]\n[redacted: private-key]"
    half = "\n".join(key.split("\n")[:5])
    assert redacted(f"{half}\nand the rest is prose.") == (
        "[redacted: private-key]\nand the rest is prose."
    )


@pytest.mark.parametrize("glue", ["\n", "\\n", "\r\n    "])
def test_of_a_key_that_has_lost_its_beginning_no_line_stays(glue):
    key = MADE.pem()
    for cut in (40, 100, 150, 300):
        tail = key[cut:].replace("\n", glue)
        assert redacted(f"{tail}{glue}more") == f"[redacted: private-key]{glue}more"
        assert redacted(f"{tail}\n{key}\nb") == (
            "[redacted: private-key]\n[redacted: private-key]\nb"
        )
    assert redacted(f"Done.\n{key[100:]}") == "Done.\n[redacted: private-key]"
    last = key.rsplit("\n", 1)[1]
    for text in (last, f"a\n{last}", f"The line that closes it is {last}", f"{key}\nAnd {last}"):
        assert redacted(text) == text.replace(key, "[redacted: private-key]")


def test_a_value_under_a_telling_name_is_a_secret_by_itself():
    assert redacted("swordfish", "password") == "[redacted: password]"
    assert redacted("swordfish", "user") == "swordfish"
    assert redacted("swordfish", "password_hint") == "swordfish"
    assert redacted("<password>", "password") == "<password>"
    assert redacted(MADE.alnum(32), "api_key") == "[redacted: api-key]"


def test_an_ampersand_ends_a_value_only_where_something_else_begins():
    assert redacted("DB_PASSWORD=tr0ub4dor&3x now") == "DB_PASSWORD=[redacted: password] now"
    assert redacted("the password is tr0ub4dor&3x!") == "the password is [redacted: password]!"
    for rest in ("&user=ann", "&amp;user=ann", "&& make", "& wait", "&"):
        assert redacted(f"?password=tr0ub4dor{rest}") == f"?password=[redacted: password]{rest}"


@pytest.mark.parametrize(
    ("around", "left"),
    [
        ("- name: DB_PASSWORD\n  value: {}\n- name: U\n", "hV7k,Q2m'Z9xW4 and[more\"of}it"),
        ("- name: DB_PASSWORD\n  value: '{}'\n", "hV7k''Q2mZ9 xW4"),
        ('{{"name":"DB_PASSWORD","value":"{}"}}', 'hV7k\\"Q2m, Z9xW4\\\\'),
        ('{{"value":"{}","name":"DB_PASSWORD"}}', "it's-Q2mZ9xW4"),
        ("x: {{name: DB_PASSWORD, value: {}}}", "hV7k}Q2,mZ9xW4"),
        ("**Password:** {}", "hV7k'Q2mZ9<xW4!"),
        ("**Password:** `{}`, for ann", "hV7kQ2 mZ9x"),
        ("**Password:** {}\nNext.", "hV7kQ2mZ, Z9xW4"),
        ("<b>Password:</b> {}<br>", "hV7k&lt;Q2mZ9"),
        ('setPassword("{}")', "it's9Secret\\\\"),
        ("set_password('{}')", 'hV7k"Q2mZ'),
        ('getenv("DB_PASSWORD", "{}")', "it's9Secret"),
        ("<password>{}</password>", "hV7k<Q2mZ"),
        ("<password><![CDATA[{}]]></password>", "hV7k</Q2>mZ"),
        ("password: |\n  {}\nport: 1", "hV7kQ2mZ9x yz\n\n  second8Line\n    third"),
        ("ENV DB_PASSWORD {}\nRUN x", "hV7k,Q2mZ9 xW4"),
    ],
)
def test_no_end_of_a_secret_is_left_behind(around, left):
    assert redacted(around.format(left)) == around.format("[redacted: password]")
    assert redacted(around.format("[redacted: password]")) == around.format("[redacted: password]")


@pytest.mark.parametrize("value", ['hV7k"Q2m,Z9xW4', "hV7k\\Q2m'Z9xW4", "hV7k}Q2mZ9x, W4"])
@pytest.mark.parametrize(
    "around",
    [
        "- name: DB_PASSWORD\n  value: {}\n- name: U\n  value: x\n",
        "**Password:** {}",
        "set up:\npassword: |\n  {}\n  second8Line\nport: 1\n",
        "FROM x\nENV DB_PASSWORD {}\n",
    ],
)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_json_is_still_json_however_deep_the_secret_lies(value, around, depth):
    text, said = around.format(value), value
    for _ in range(depth):
        text, said = json.dumps({"text": text, "more": "kept"}), json.dumps(said)[1:-1]
    done = redacted(text)
    assert "Q2m" not in done
    assert redacted(done) == done
    for _ in range(depth):
        read = json.loads(done)
        assert read["more"] == "kept"
        done = read["text"]
    assert around.split("{}")[0] + "[redacted: password]" in done


def test_a_number_beside_its_name_is_a_text_once_redacted():
    done = redacted('{"name": "DB_PASSWORD", "value": 48127731}')
    assert json.loads(done) == {"name": "DB_PASSWORD", "value": "[redacted: password]"}


@pytest.mark.parametrize(
    "text",
    [
        "**Password:** stored in the vault",
        "**Password:** 12-character minimum",
        "**Password**: don't share it!",
        "| Password | VARCHAR(255) |",
        "| Password | 8-64 |",
        "    def load_private_key(self) -> Ed448PrivateKey | X25519PrivateKey | None: ...",
        "| Secret | 2024-01-05 |",
        "<td>password</td><td>string(64)</td>",
        '<string name="wrong_password">Falsch!</string>',
        '<string name="password">请输入8位密码</string>',
        '<property name="password" value="${db.password}"/>',
        '<add key="PasswordHashAlgorithm" value="SHA256"/>',
        '{"name": "password", "type": "string", "description": "at least 8, as in v1.2.3"}',
        '[{"name": "password", "label": "x"}, {"value": "annabel42x"}]',
        '{"value": "annabel42x"}, {"name": "password"}',
        "{ name: 'password', value: formData.password }",
        "{ name: 'password',\n  value: form.password,\n}",
        "{ name: 'password', value: getPassword1() }",
        'name = "password"; value = compute9(x)',
        'key = "password"\nvalue = os.environ[key]',
        "- name: DB_PASSWORD\n- name: HOST\n  value: db-7.internal",
        "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      name: db-9x",
        'form.password("required")',
        'cache.put("token", "bearer")',
        'props.put("password", password);',
        'process.env.MAX_TOKENS || "4096"',
        'variable "db_password" {\n}\nvariable "host" {\n  default = "db-7.internal"\n}',
        'secret_key_base: <%= ENV["SECRET_KEY_BASE"] %>',
        "password: |\n  The password of the user.\n  At least 8 characters.",
        "ENV DB_PASSWORD $DB_PASSWORD",
        "aws configure set aws_secret_access_key $AWS_SECRET",
        'ConvertTo-SecureString "$password" -AsPlainText',
        "*password* b9x!kk",
    ],
)
def test_what_stands_beside_a_name_and_is_no_secret_stays(text):
    assert redacted(text) == text


def test_a_mark_of_ones_own_hides_no_secret():
    password = MADE.password()
    assert password not in redacted(f'password="[redacted: password]{password}"')
    assert password not in redacted(f"[redacted: password] password={password}")


PIECES = st.sampled_from(
    [
        *[secret for _, secret in sorted(PROVIDERS.items())][::6],
        *'password token secret api_key = : == " \' \\ \\" \n { } [redacted: [redacted:'.split(" "),
        "password=",
        '"password": "',
        "://a:",
        "@h",
        "Bearer ",
        "Cookie: a=",
        "-p",
        "--token ",
        "[redacted: password]",
        "hunter2!x",
        "\u200b",
        "\\u0070",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        MADE.base64(48),
        "é密码",
        "密码：",
        "密码是Zx9#mP2q",
        "。",
        "，然后",
        "「",
        "”",
        "—",
        "令牌",
        "改成",
        "İ",
    ]
)


@given(st.lists(PIECES | st.text(max_size=6), max_size=6))
def test_whatever_is_redacted_stays_as_it_is_when_redacted_again(parts):
    done = REDACTOR.redact("".join(parts))
    assert redacted(done.text) == done.text
    assert all(count > 0 for count in done.counts.values())


@given(st.text(), st.sampled_from(sorted(PROVIDERS)), st.text())
def test_no_text_around_a_secret_brings_it_through(before, kind, after):
    secret = PROVIDERS[kind]
    assert secret not in redacted(f"{before} {secret} {after}")


# However long and hostile a text is


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    for form in formats.FORMATS:
        yield form.kind, form.pattern
    for place in places.PLACES:
        yield place.kind, place.pattern
    for package in (conspectus.redaction, conspectus_secrets):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(found.name)
            for name, value in vars(module).items():
                if isinstance(value, re.Pattern):
                    yield f"{module.__name__}.{name}", value


def steps_back(parsed: Any, inside: bool = False) -> Iterator[str]:
    """Repeats without end that lie in one another, and could be divided in many ways."""
    for code, value in parsed:
        endless = False
        if code in (opcodes.MAX_REPEAT, opcodes.MIN_REPEAT):
            endless = value[1] == opcodes.MAXREPEAT
            if endless and inside:
                yield str(value)
        for part in value if isinstance(value, (tuple, list)) else ():
            for sub in part if isinstance(part, list) else [part]:
                if isinstance(sub, parser.SubPattern):
                    yield from steps_back(sub, inside or endless)


def test_no_pattern_repeats_what_repeats():
    every = set(patterns())
    assert len(every) > 100
    for name, pattern in every:
        parsed = parser.parse(pattern.pattern, pattern.flags & re.IGNORECASE)
        assert not list(steps_back(parsed)), name


def test_a_pattern_that_repeats_what_repeats_would_be_noticed():
    assert list(steps_back(parser.parse(r"(?:a+b?)*c")))


HOSTILE = r"""
password= password=" token=' ://a:b eyJ eyJaaaaaaaa. sk- AKIA A = \ \" cookie: a=b; \u0061
key pass :// [redacted:""".split()
HOSTILE += ["-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "-----BEGIN ", "bearer "]
HOSTILE += ["**password** a\\n", "**password** a9!xk b ", "{name: password, value: a "]
HOSTILE += ["<password>", "<password>aaaa</password>", "getenv('PASSWORD', 'a"]
HOSTILE += [
    "name: password value: a ",
    '"value":"x","name":"password",',
    "password: |\n  a b\n",
    "''",
]
HOSTILE += ['setpassword("x9!abc")', "|password|a9b8c7d6", '**password** x9"a\\n', '\\\\"']
HOSTILE += ["auth/", "auth:", "/auth/a", "api key: ", "pass='", "_-", '["password":"', "1\\t"]
HOSTILE += ["curl -u a", "curl & ", 'name="password"\n\n', "\n  9\tAAAAAAAAAAAAAAAAAAAA"]
HOSTILE += ["basic aaaaaaaa", "mysql -", "machine a ", "password is ", "password for is "]
HOSTILE += [
    "密码：",
    "密码是a9!xk",
    "密码：Zx9#mP2q，x8",
    "密码：「Zx9",
    "password: “",
    "パスワードは",
]
HOSTILE += ["password:a9!xk—b—", "密码：a9B。c9", "密码是Zx9#mP2qLz密9", "\\u5bc6\\u7801："]


@pytest.mark.slow
@pytest.mark.parametrize("piece", HOSTILE)
def test_a_long_hostile_text_comes_to_an_end(piece):
    # One that went over it again for each of its pieces would take hours.
    size = 1_000_000 if os.environ.get("CONSPECTUS_PROFILE") == "long" else 250_000
    text = piece * (size // len(piece))
    assert len(redacted(text)) < 4 * len(text) + 1_000
