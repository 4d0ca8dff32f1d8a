"""Secrets that the default redactor finds, and its false alarms.

    python benchmarks/redaction.py [FOLDER]

Prints the share of made secrets that are gone from texts, by kind; the texts without secrets that
it changed, by what they are; and, of transcripts in a folder, how many texts it changed. It exits
with 1 if a text without secrets was changed, or if fewer were found than `LEAST`; with 2 if there
is no such folder.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from command_line import Options, ended

from conspectus_secrets import SecretRedactor

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from made_secrets import Made, no_secrets, provider_secrets, said_secrets  # noqa: E402

PROVIDERS = "keys and tokens of providers"
"""The row of all kinds that are told by their form; what is missed names the kind."""

LEAST = 0.95
"""Share of the made secrets that must be found."""

AROUND = (
    "{}",
    "the key is {}, keep it",
    '{{"value": "{}"}}',
    "A={}\n",
    "({})",
    "see\n{}\n",
    "`{}`",
)
"""Texts in which a provider's secret stands."""

SEEDS = range(5)


def found(redactor: SecretRedactor, text: str, secret: str) -> bool:
    """Say whether the secret is gone, and a second redaction changes nothing."""
    done = redactor.redact(text)
    again = redactor.redact(done.text)
    gone = secret not in done.text and done.text != text and sum(done.counts.values()) > 0
    return gone and again.text == done.text


def recall(redactor: SecretRedactor) -> tuple[Counter[str], Counter[str], list[str]]:
    """Count made secrets by kind, and those found; list texts with a miss."""
    all_, hit = Counter[str](), Counter[str]()
    missed = []
    for seed in SEEDS:
        made = Made(seed)
        cases = [
            (kind, around.format(secret), _core(secret))
            for kind, secret in provider_secrets(made).items()
            for around in AROUND
        ]
        of_providers = {kind for kind, _, _ in cases}
        for kind, text, secret in [*cases, *said_secrets(made)]:
            name = PROVIDERS if kind in of_providers else kind.split(",")[0]
            all_[name] += 1
            if found(redactor, text, secret):
                hit[name] += 1
            else:
                missed.append(f"{kind}: {text!r:.150}")
    return all_, hit, missed


def _core(secret: str) -> str:
    """Give the end of a secret; the words before it may stay."""
    return secret[-12:]


def false_alarms(redactor: SecretRedactor) -> tuple[Counter[str], list[str]]:
    """Count texts without secrets by kind, and list those that were changed."""
    counts, wrong = Counter[str](), []
    for seed in SEEDS:
        for group, text in no_secrets(Made(seed)):
            counts[group] += 1
            done = redactor.redact(text)
            if done.text != text:
                wrong.append(f"{group}: {text!r:.100} -> {done.text!r:.100}")
    return counts, wrong


def texts_of(value: Any, key: str | None = None) -> Iterator[tuple[str, str | None]]:
    """Find all texts of plain data, each with the name that it stands under."""
    if isinstance(value, str):
        yield value, key
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from texts_of(part, name)
    elif isinstance(value, list):
        for part in value:
            yield from texts_of(part)


def transcripts(redactor: SecretRedactor, folder: Path) -> tuple[int, int, int, list[str]]:
    """Count transcripts, texts and characters in a folder; list replacements."""
    files = texts = characters = 0
    changed = []
    for file in sorted(folder.glob("*.json")):
        files += 1
        for text, key in texts_of(json.loads(file.read_text("utf-8"))):
            texts += 1
            characters += len(text)
            done = redactor.redact(text, key)
            changed += [f"{file.name}: {kind} ({n})" for kind, n in done.counts.items()]
    return files, texts, characters, changed


def main(folder: Path | None = None) -> int:
    """Print the tables; 1 if a claim does not hold."""
    redactor = SecretRedactor()
    all_, hit, missed = recall(redactor)
    print(f"{'kind of secret':28} {'texts':>7} {'found':>7}")
    for kind in sorted(all_, key=lambda kind: (kind != PROVIDERS, kind)):
        print(f"{kind:28} {all_[kind]:7,} {hit[kind]:7,}")
    total, hits = sum(all_.values()), sum(hit.values())
    print(f"{'all':28} {total:7,} {hits:7,}  {hits / total:.1%}")
    for line in missed:
        print(f"  missed  {line}")
    counts, wrong = false_alarms(redactor)
    print(f"\n{'texts without secrets':28} {'texts':>7} {'changed':>7}")
    for group in counts:
        bad = sum(line.startswith(f"{group}:") for line in wrong)
        print(f"{group:28} {counts[group]:7,} {bad:7,}")
    print(f"{'all':28} {sum(counts.values()):7,} {len(wrong):7,}")
    for line in wrong:
        print(f"  changed  {line}")
    if folder is not None and folder.is_dir():
        files, texts, characters, changed = transcripts(redactor, folder)
        print(
            f"\n{files} recorded transcripts, {texts:,} texts, {characters:,} characters: "
            f"{len(changed)} replaced"
        )
        for line in changed:
            print(f"  {line}")
    return int(bool(wrong) or hits < LEAST * total)


def asked(arguments: Sequence[str] | None = None) -> Path:
    """Give the named folder, or that of the recorded transcripts."""
    parser = Options(description="What the default redactor finds, and takes for a secret.")
    usual = ROOT.parent / "shared" / "data" / "agent"
    parser.add_argument("folder", nargs="?", type=Path, help="of transcripts, *.json")
    folder: Path | None = parser.parse_args(arguments).folder
    if folder is not None and not folder.is_dir():
        parser.error(f"{folder} is no folder; give one with transcripts (*.json), or none")
    return folder or usual


if __name__ == "__main__":
    ended(lambda: main(asked()))
