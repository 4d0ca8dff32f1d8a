"""Bytes of an archive on disk, index and journals included, beside its originals.

    make bench-archive-size      or: python benchmarks/archive_size.py [--json] [TRANSCRIPT ...]

Each transcript (a JSON list of messages, or a folder of such files; default: those of the examples)
is played to a compactor with an archive of its own, so many messages at a time, as an agent would;
then one recall builds the search index, and the archive is closed. The bytes of every file that
is left are held against those of the originals that were archived, as UTF-8 JSON without spaces.
Made threads of short messages, of texts that come again, and of Chinese, Japanese and Korean
follow. The exit code is 1 if a limit is passed.
"""

from __future__ import annotations

import json
import random
import sqlite3
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import printed
from made_thread import made_thread
from transcripts import holds_messages

from conspectus import Compactor
from conspectus.archive import Archive, Scope

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "data"
WINDOW = 16_000
STEP = 10
"""Messages that come in between two compactions."""

MOST_TIMES = 1.5
"""Bytes of an archive for each byte of its originals, of agents' transcripts all together."""

MOST_TIMES_CJK = 3.0
MOST_BESIDE = 600
"""Bytes for each short message beyond those of the message."""

SHORT = 5_000
"""Messages in each made thread."""

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One archive, or several together.

    Attributes:
        name: of what.
        messages: originals in it.
        originals: bytes of these, as JSON.
        database: bytes of the database and its journals, without the values of the index.
        index: bytes of the values of the search index.
    """

    name: str
    messages: int
    originals: int
    database: int
    index: int

    @property
    def times(self) -> float:
        """Give the bytes on disk for each byte of the originals."""
        return (self.database + self.index) / max(1, self.originals)

    @property
    def beside(self) -> float:
        """Give the bytes for each message beyond those of the message."""
        return (self.database + self.index - self.originals) / max(1, self.messages)


def measured(name: str, messages: Sequence[Message], step: int = STEP) -> Row:
    """Measure the archive of one history after close."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "archive.db"
        with Archive.open(path) as archive:
            compactor = Compactor(window=WINDOW, trigger=("fraction", 0.8), archive=archive)
            view: list[Any] = []
            for start in range(0, len(messages), step):
                new = list(messages[start : start + step])
                view = list(compactor.compact([*view, *new], thread_id="bench").messages)
            compactor.compact(view, thread_id="bench", force=True)
            if archive.threads("local"):
                compactor.recall("error file", thread_id="bench", tokens=500)
            rows = archive.export(Scope("local", "bench"))
        originals = sum(
            len(json.dumps(row["message"], ensure_ascii=False, separators=(",", ":")).encode())
            for row in rows
        )
        files = [file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()]
        index = index_bytes(path)
    return Row(name, len(rows), originals, sum(files) - index, index)


def index_bytes(path: Path) -> int:
    """Count the bytes of the search index, which lies in the archive itself."""
    with closing(sqlite3.connect(path)) as connection:
        [found] = connection.execute("SELECT sum(length(block)) FROM words_data").fetchone()
    return int(found or 0)


def together(name: str, rows: Iterable[Row]) -> Row:
    """Add up several archives as one row."""
    parts = [(row.messages, row.originals, row.database, row.index) for row in rows]
    return Row(name, *map(sum, zip(*parts, strict=True)))


def short_thread(count: int, seed: int = 3) -> list[Message]:
    """Make turns of a few words, no two of them alike."""
    draw = random.Random(seed)
    asks = ("Is job {n} done?", "What about order {n}?", "Thanks. And {n}?", "Try {n} again.")
    says = ("Yes, {n} is done.", "Order {n} was shipped.", "Nothing new on {n} yet.", "Trying {n}.")
    roles = ("user", "assistant")
    return [
        {
            "role": roles[at % 2],
            "content": draw.choice((asks, says)[at % 2]).format(n=draw.randrange(10**6)),
        }
        for at in range(count)
    ]


def repeating_thread(count: int, seed: int = 3) -> list[Message]:
    """Make reads of the same few files, again and again."""
    draw = random.Random(seed)
    files = ["".join(f"line {n}: {draw.random()}\n" for n in range(80)) for _ in range(5)]
    made: list[Message] = []
    for at in range(count // 3):
        call = {"id": f"c{at}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        made += [
            {"role": "user", "content": f"Read it again, please ({at})."},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{at}", "content": draw.choice(files)},
        ]
    return made


def eastern_thread(count: int, seed: int = 3) -> list[Message]:
    """Make random sentences in Chinese, Japanese and Korean."""
    draw = random.Random(seed)
    parts = (
        "订单 的 金额 不对 请 检查 数据库 日志 今天 凌晨 两点 开始 报错 用户 投诉 支付 失败 "
        "我们 已经 修复 配置 文件 需要 重新 部署 服务 延迟 增加 缓存 没有 更新 原因 不明",
        "注文 の 配送 状況 が 更新 され ません 確認 して ください 昨日 から 障害 発生 中 です "
        "設定 ファイル 変更 前 に バックアップ 取得 再起動 しました ログ 調査 結果 報告 します",
        "주문 의 배송 상태 가 갱신 되지 않습니다 확인 부탁 드립니다 어제 부터 장애 발생 중 입니다 "
        "설정 파일 변경 전 백업 을 받아 주세요 재시작 후 로그 조사 결과 보고 합니다",
    )
    marks = ("", "", " ")
    roles = ("user", "assistant")
    made = []
    for at in range(count):
        words, space = parts[at % 3].split(), marks[at % 3]
        text = space.join(draw.choice(words) for _ in range(draw.randrange(20, 120)))
        made.append({"role": roles[at % 2], "content": f"{text}。{draw.randrange(10**5)}"})
    return made


def transcripts(paths: Sequence[Path]) -> Iterator[tuple[str, list[Message]]]:
    """Read the histories in some files and folders, each with its name."""
    for path in paths:
        for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
            data = json.loads(file.read_text(encoding="utf-8"))
            messages = data.get("messages") if isinstance(data, dict) else data
            if holds_messages(messages):
                yield file.stem, messages


def limits(short: int = SHORT) -> list[tuple[Row, float | None, int | None]]:
    """Measure the made threads, each with its limit."""
    return [
        (measured("short messages", short_thread(short), step=200), None, MOST_BESIDE),
        (measured("repeated texts", repeating_thread(short // 5)), 1.0, None),
        (measured("Chinese, Japanese, Korean", eastern_thread(short // 5)), MOST_TIMES_CJK, None),
        (measured("made agent thread", made_thread(short // 2)), MOST_TIMES, None),
    ]


def main() -> int:
    """Print a table, or JSON."""
    parser = printed.options(__doc__)
    parser.add_argument("transcripts", nargs="*", type=Path, default=[EXAMPLES])
    parser.add_argument("--short", type=int, default=SHORT, help="messages in each made thread")
    parser.add_argument("--each", action="store_true", help="a row for each transcript too")
    given = parser.parse_args()
    each = [measured(name, messages) for name, messages in transcripts(given.transcripts)]
    if not each:
        print("no transcript is there; give files or a folder of *.json", file=sys.stderr)
        return 2
    total = together(f"{len(each)} transcripts", each)
    judged = [(total, MOST_TIMES, None), *limits(given.short)]
    passed = [
        row.name
        for row, times, beside in judged
        if (times and row.times > times) or (beside and row.beside > beside)
    ]
    shown = [*each, *(row for row, *_ in judged)] if given.each else [row for row, *_ in judged]
    rows = [{**asdict(row), "times": row.times, "beside": row.beside} for row in shown]
    return printed.end(
        given.json,
        lambda: {"rows": rows, "passed": passed},
        lambda: show(shown, passed),
        not passed,
    )


def show(rows: Sequence[Row], passed: Sequence[str]) -> None:
    """Print the table, and the rows that pass their limits."""
    columns = ("archive of", "messages", "originals", "database", "index", "times", "beside")
    table = printed.table("", columns)
    for row in rows:
        sizes = (row.messages, row.originals, row.database, row.index)
        table.add_row(
            row.name, *(f"{size:,}" for size in sizes), f"{row.times:.2f}", f"{row.beside:,.0f}"
        )
    printed.screen().print(
        table,
        "Bytes. times: on disk for each byte of the originals; beside: on disk beyond the "
        "originals, for each message.",
        *(f"over its limit: {name}" for name in passed),
        sep="\n",
    )


if __name__ == "__main__":
    sys.exit(main())
