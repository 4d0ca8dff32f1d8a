"""Secrets that nobody has, and texts that hold none.

Each is put together from a table in `made_secrets.txt`, so that no file holds what looks like one.
`$a20` stands for 20 letters and digits, `$h` for hexadecimal digits, `$u` for capitals and digits,
`$n` for digits, `$b` for base64 of so many bytes, `$p` for a password and `$t` for a token.
"""

import base64
import random
import re
import string
from pathlib import Path

HEX = "0123456789abcdef"
LETTERS = {"a": string.ascii_letters + string.digits, "h": HEX, "n": "123456789"}
LETTERS["u"] = string.ascii_uppercase + string.digits


class SecretMaker:
    """Random strings of given forms; the same for the same seed."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)

    def of(self, letters: str, count: int) -> str:
        """So many of these letters; a digit and letters of both cases among them, if they may."""
        characters = [self._random.choice(letters) for _ in range(count)]
        for index, letters_of_kind in enumerate(
            (string.digits, string.ascii_lowercase, string.ascii_uppercase)
        ):
            possible = [letter for letter in letters if letter in letters_of_kind]
            if possible and count > 8:
                characters[2 * index + 1] = self._random.choice(possible)
        return "".join(characters)

    def alnum(self, count: int) -> str:
        """Letters and digits."""
        return self.of(LETTERS["a"], count)

    def hex(self, count: int) -> str:
        """Hexadecimal digits."""
        return self.of(HEX, count)

    def base64(self, count: int) -> str:
        """Base64 of so many random bytes."""
        return base64.b64encode(self._random.randbytes(count)).decode()

    def password(self) -> str:
        """One that a person might use."""
        return self.alnum(5) + "!" + self.alnum(4)

    def jwt(self) -> str:
        """A signed token; nobody's."""
        parts = (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1234567890","name":"x"}')
        head = [base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts]
        return ".".join([*head, self.alnum(43)])

    def pem(self, title: str = "RSA PRIVATE KEY", lines: int = 12) -> str:
        """A private key of nobody."""
        body = "\n".join(self.base64(48) for _ in range(lines))
        return f"{'-' * 5}BEGIN {title}{'-' * 5}\n{body}\n{'-' * 5}END {title}{'-' * 5}"

    def filled(self, form: str) -> tuple[str, str]:
        """A row of a table with its secrets made, and the first of them; empty for none."""
        secrets: list[str] = []

        def fill(match: re.Match[str]) -> str:
            letter_kind = match["kind"]
            count = int(match["count"] or 0)
            pair = base64.b64encode(f"ann:{self.password()}".encode()).decode()
            texts = {"p": self.password(), "t": self.alnum(32), "jwt": self.jwt(), "basic": pair}
            texts["b"] = self.base64(count)
            secrets.append(
                texts[letter_kind] if letter_kind in texts else self.of(LETTERS[letter_kind], count)
            )
            return secrets[-1]

        forms = r"\$(?:(?P<kind>basic|jwt|t\b|p(?![a-z])|[ahunb](?=\d))(?P<count>\d*))"
        return re.sub(forms, fill, form), secrets[0] if secrets else ""


TABLES = Path(__file__).with_name("made_secrets.txt").read_text(encoding="utf-8")


def rows(name: str) -> list[tuple[str, str]]:
    """The rows of a table, each with its first column, and its line ends as such."""
    table = TABLES.partition(f"[{name}]\n")[2].partition("\n[")[0]
    split = (line.split(": ", 1) for line in table.strip("\n").split("\n"))
    ends = {"n": "\n", "t": "\t"}
    return [(k, re.sub(r"(?<!\\)\\([nt])", lambda m: ends[m[1]], text)) for k, text in split]


def provider_secrets(maker: SecretMaker) -> dict[str, str]:
    """One secret of each provider's form, by the kind that it is redacted as."""
    return {name: maker.filled(form)[0] for name, form in rows("PROVIDERS")}


def said_secrets(maker: SecretMaker) -> list[tuple[str, str, str]]:
    """Texts in which a secret is told by what stands around it: kind of place, text, the secret."""
    table = [(kind_of_place, *maker.filled(form)) for kind_of_place, form in rows("SAID")]
    words = ("swordfish", "short")
    table = [
        (kind_of_place, text, secret or next(word for word in words if word in text))
        for kind_of_place, text, secret in table
    ]
    token = "ghp" + "_" + maker.alnum(36)
    for hidden in (
        "".join(f"\\u{ord(c):04x}" for c in token),
        token[:8] + "\u200b" + token[8:],
        "".join(f"\\x{ord(c):02x}" for c in token),
    ):
        table.append(("escaped", hidden, token))
    for title in ("RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"):
        pem = maker.pem(title)
        line = pem.split("\n")[6]
        table.append(("private key", f"$ cat key\n{pem}\n$ ls", line))
        table.append(("private key", '"key": "' + pem.replace("\n", "\\n") + '\\n"', line))
        table.append(("private key", pem.replace("\n", "\n      "), line))
        table.append(("private key", "\n".join(pem.split("\n")[:6]), pem.split("\n")[4]))
    return table


def no_secrets(maker: SecretMaker) -> list[tuple[str, str]]:
    """Texts that hold none, though they look or sound like it: what it is, and the text."""
    image = base64.b64encode(b"\x89PNG\r\n\x1a\n" + random.Random(3).randbytes(6_000)).decode()
    files = [f"data:image/png;base64,{image}", f'"data": "{image[:3000]}"']
    return [(kind_of_text, maker.filled(form)[0]) for kind_of_text, form in rows("HARMLESS")] + [
        ("encoded files", text) for text in files
    ]
