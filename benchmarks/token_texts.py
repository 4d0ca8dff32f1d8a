"""Texts by class that check the estimate of tokens; none was used to fit it.

Those in `token_texts/` were written for this, base64 and hexadecimal ids are generated.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import uuid
import zlib
from pathlib import Path

FOLDER = Path(__file__).with_name("token_texts")

CLASSES = {
    "English": "english",
    "European prose": "european",
    "Greek": "greek",
    "Hebrew": "hebrew",
    "Thai": "thai",
    "Chinese": "chinese",
    "Japanese": "japanese",
    "Korean": "korean",
    "Russian": "russian",
    "Arabic": "arabic",
    "Hindi": "hindi",
    "Python source": "python",
    "other source": "code",
    "minified JSON": "json",
    "indented JSON": "",
    "logs": "logs",
    "base64": "",
    "hex ids": "",
    "Markdown tables": "tables",
    "shell output": "shell",
}
"""Classes and the files with their texts, one after another with a line of `%%` between."""


def texts() -> dict[str, list[str]]:
    """Give the texts of every class."""
    made = {"base64": _base64(), "hex ids": _hex(), "indented JSON": _indented()}
    return {name: made.get(name) or _read(file) for name, file in CLASSES.items()}


def _read(file: str) -> list[str]:
    text = (FOLDER / f"{file}.txt").read_text(encoding="utf-8")
    return [part.strip("\n") for part in text.split("\n%%\n")]


def _indented() -> list[str]:
    return [json.dumps(json.loads(text), indent=2) for text in _read("json")]


def _base64() -> list[str]:
    """Make base64 of random bytes, compressed text, text, a token and an image."""
    some = random.Random(20_26)
    prose = (FOLDER / "english.txt").read_bytes()
    packed = base64.b64encode(zlib.compress(prose, 9)).decode()
    lines = base64.encodebytes(some.randbytes(900)).decode()
    plain = base64.b64encode(prose[:700]).decode()
    parts = [base64.urlsafe_b64encode(some.randbytes(size)).decode() for size in (30, 300, 32)]
    image = "data:image/png;base64," + base64.b64encode(some.randbytes(600)).decode()
    return [packed, lines, plain, ".".join(part.rstrip("=") for part in parts), image]


def _hex() -> list[str]:
    """Make UUIDs, commits, checksums, object ids, addresses and short ids."""
    some = random.Random(7_001)
    sums = [hashlib.sha256(some.randbytes(8)).hexdigest() for _ in range(12)]
    return [
        "\n".join(str(uuid.UUID(int=some.getrandbits(128), version=4)) for _ in range(24)),
        "\n".join(f"commit {some.randbytes(20).hex()}" for _ in range(20)),
        "\n".join(f"{digest}  part-{i:02}.bin" for i, digest in enumerate(sums)),
        "[" + ",".join(f'"{some.randbytes(12).hex()}"' for _ in range(25)) + "]",
        " ".join(f"0x{some.getrandbits(48):012x}" for _ in range(40)),
        ", ".join(some.randbytes(4).hex()[:7] for _ in range(60)),
    ]
