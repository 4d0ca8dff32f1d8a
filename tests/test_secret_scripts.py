"""Secrets in texts that are not all ASCII: by which names of Chinese, Japanese and Korean they are
found, and that no sentence behind one goes with it, nor half of one stays.

All secrets are put together when the tests run; see `made_secrets`.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from conspectus import Compactor
from conspectus_secrets import SecretRedactor
from engine import Scope
from made_secrets import Made

REDACTOR = SecretRedactor()
PASSWORD = "Qq8#mP" + "2qLz7"
TOKEN = Made(5).alnum(24)
AFTER = "上线前必须先备份数据库，端口是5433。"
NAMES = """密码 数据库密码 数据库的密码 管理员密码 登录密码 邮箱密码 新密码 测试环境密码 root密码
Wi-Fi密码 資料庫密碼 口令 令牌 访问令牌 私钥 密钥 接口密钥 API密钥 应用密钥
パスワード データベースのパスワード トークン 秘密鍵 APIキー 비밀번호 토큰"""
LABELS = [*NAMES.split(), "데이터베이스 비밀번호", "API 키", "API キー"]
HALVES = ["päss" + "wörd7!", "密密Qq8" + "#x", "Qq8#mP" + "密2qLz7", "Qq8，" + "x9Lz7"]
HALVES += ["Qq8mP2" + "—Lz7x", "Qq8#mP" + "密2345", "it’s9" + "Qq#x"]
AROUND = """DB_PASSWORD={}|export DB_PASSWORD={}|password={}|password: {}|密码：{}|口令是{}
mysql -p{}|--password {}|the password is {}|curl -u ann:{}|**Password:** {}|mot de passe : {}"""


def redacted(text: str) -> str:
    done = REDACTOR.redact(text).text
    assert REDACTOR.redact(done).text == done
    return done


def left(text: str, secret: str = PASSWORD) -> None:
    """The secret goes, and nothing else does; it is noted as what it is."""
    done = REDACTOR.redact(text)
    kinds = {done.values.get(secret)}
    assert None not in kinds, text
    assert redacted(text) == text.replace(secret, f"[redacted: {kinds.pop()}]")


@pytest.mark.slow
@pytest.mark.parametrize("label", LABELS)
def test_a_value_under_a_chinese_japanese_or_korean_name_is_found(label):
    for told in "： : = 是 为 改成 改为 设为 设置为 已更新为 は を 는".split():
        for after in ("", "。" + AFTER, "然后重启", "（测试）", "です", "입니다"):
            left(f"请记住{label}{told}{PASSWORD}{after}")
            left(f"{label}{told} {TOKEN}{after}", TOKEN)
    for text in (f"{label} {PASSWORD}", f"**{label}：** {PASSWORD}", f"【{label}】{PASSWORD}"):
        left(text)
    left(f"| {label} | {TOKEN} |", TOKEN)
    left(json.dumps({label.replace(" ", ""): PASSWORD, "more": "好"}, ensure_ascii=False))


def test_a_name_in_a_string_of_json_is_read_through_its_escapes():
    text = f"数据库密码：{PASSWORD}。{AFTER}"
    for _ in range(2):
        text = json.dumps({"text": text, "more": "好"})
        left(text)
        assert json.loads(redacted(text))["more"] == "好"


@pytest.mark.parametrize(
    "around", [*AROUND.replace("\n", "|").split("|"), "- name: PASSWORD\n  value: {}"]
)
def test_the_sentence_behind_a_password_stays(around):
    for stop in (*"。，；、！？（）】」》”：", "……", "——", ""):
        for value in (PASSWORD, TOKEN):
            left(around.replace("{}", f"{value}{stop}{AFTER}"), value)


@pytest.mark.parametrize("around", ["API_KEY=", "token: ", "--token ", "the token is ", "令牌："])
def test_the_sentence_behind_a_key_stays(around):
    for value in (TOKEN, "abcd1234" + "efgh5678"):
        for after in (f"。{AFTER}", "然后运行迁移脚本", "，port=5433"):
            left(f"{around}{value}{after}", value)


@pytest.mark.parametrize("dash", "—–…")
def test_a_dash_of_print_ends_a_value_where_a_sentence_goes_on(dash):
    value = PASSWORD.replace("#", "")
    for around in ("password: ", "DB_PASSWORD=", "the password is "):
        left(f"{around}{value}{dash}never touch prod with it.", value)
        left(f"{around}{value}{dash}don’t lose it", value)


@pytest.mark.parametrize(
    "quotes", '“ ”|‘ ’|„ “|「 」|『 』|« »|«  »|` `|《 》|" "'.split("|"), ids=str
)
def test_quotes_of_print_are_quotes(quotes):
    opened, closed = quotes[0], quotes[-1]
    space = " " if "  " in quotes else ""
    for around in ("密码：", "密码是", "password: ", "the password is ", "mot de passe : "):
        text = f"{around}{opened}{space}{{}}{space}{closed}，然后重启。\n再用{{}}登录"
        assert redacted(text.replace("{}", PASSWORD)) == text.replace("{}", "[redacted: password]")


@pytest.mark.parametrize("value", HALVES)
def test_no_half_of_a_password_that_is_not_all_ascii_stays(value):
    for around in ("密码：", "DB_PASSWORD=", "password: ", "数据库密码："):
        for after in ("", "\nnext", "。", " and more"):
            assert redacted(f"{around}{value}{after}") == f"{around}[redacted: password]{after}"
    quoted = f"password: “{value}”, and {value}"
    assert redacted(quoted) == "password: “[redacted: password]”, and [redacted: password]"


@given(st.text("Qq8#xmP2密码。，—”é ", min_size=1, max_size=16))
def test_what_follows_a_password_leaves_no_part_of_it(after):
    done = redacted(f"密码：{PASSWORD}{after}")
    assert PASSWORD not in done


def test_a_providers_key_is_found_where_chinese_follows_it():
    made = Made(9)
    telegram = made.of("123456789", 9) + ":AA" + made.alnum(33)
    for key in (made.jwt(), telegram, "ghp" + "_" + made.alnum(36)):
        done = redacted(f"请用{key}登录")
        assert done.startswith("请用[redacted: ")
        assert done.endswith("]登录")


def test_what_stands_behind_a_password_is_recalled_and_the_password_kept_nowhere():
    told = [f"密码：{PASSWORD}。{AFTER}", f"API_KEY={TOKEN}。然后运行迁移脚本，绝不能跳过。"]
    told += [
        f"记住：测试环境密码改成“{PASSWORD}”，不要写进仓库。",
        f"再用{PASSWORD}登录，{TOKEN}也行。",
    ]
    history = [HumanMessage(text, id=f"u{n}") for n, text in enumerate(told)]
    history += [AIMessage("好的。", id="a"), HumanMessage("谢谢。", id="last")]
    compactor = Compactor(archive="memory:", keep=("messages", 1), redact=True)
    result = compactor.compact(history, thread_id="t", force=True)
    assert result.redacted
    assert set(result.redacted) <= {"password", "api-key"}
    found = [
        compactor.recall(query, thread_id="t").text
        for query in ("备份数据库", "迁移脚本", "仓库", "登录", PASSWORD, TOKEN)
    ]
    rows = json.dumps(compactor.archive.export(Scope("local", "t")), ensure_ascii=False)
    everything = "\n".join([repr(result.redacted), str(result.record.to_json()), rows, *found])
    everything += result.summary
    for part in (PASSWORD, TOKEN, PASSWORD[:6], PASSWORD[-5:], TOKEN[:8], TOKEN[-8:]):
        assert part not in everything
    assert "上线前必须先备份数据库" in found[0]
    assert "然后运行迁移脚本" in found[1]
    assert "不要写进仓库" in found[2]
