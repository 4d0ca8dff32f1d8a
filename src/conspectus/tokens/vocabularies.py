"""Real tokenizers, from the libraries `tiktoken` and `tokenizers` (extra `tokens`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from conspectus.errors import PolicyError, install_command

FORM = "write tiktoken:o200k_base, or tokenizers:path/to/tokenizer.json"


def vocabulary(spec: str) -> Callable[[str], int]:
    """Load a vocabulary as a function that counts the tokens of a text.

    `spec` is `tiktoken:` with an encoding or one of OpenAI's models, or `tokenizers:` with the path
    of a `tokenizer.json` or a model on the Hugging Face hub, which is downloaded if it is not there
    yet. Special tokens count as plain text. A `PolicyError` says why a vocabulary cannot be loaded.
    """
    library, _, name = spec.partition(":")
    loader = {"tiktoken": _tiktoken, "tokenizers": _tokenizers}.get(library)
    if not name or loader is None:
        raise PolicyError(f"token_counter cannot be {spec!r}; {FORM}")
    try:
        return loader(name)
    except PolicyError:
        raise
    except ImportError as error:
        raise PolicyError(
            f"{spec!r} needs {library}, which is not installed: {install_command('tokens')}"
        ) from error
    except Exception as error:
        raise PolicyError(
            f"the vocabulary {spec!r} cannot be had ({type(error).__name__}: {error!s:.200}); give "
            "one that is on this machine, or leave token_counter out for the estimate"
        ) from error


def _tiktoken(name: str) -> Callable[[str], int]:
    import tiktoken

    known = name in tiktoken.list_encoding_names()
    encode = (tiktoken.get_encoding if known else tiktoken.encoding_for_model)(name).encode_ordinary
    return lambda text: len(encode(text))


def _tokenizers(name: str) -> Callable[[str], int]:
    from tokenizers import Tokenizer

    path = Path(name).expanduser()
    if path.suffix == ".json" and not path.is_file():
        raise PolicyError(f"there is no file {path}; {FORM}")
    load = Tokenizer.from_file if path.is_file() else Tokenizer.from_pretrained
    found: Any = load(str(path) if path.is_file() else name)
    found.no_truncation()
    found.no_padding()

    def count(text: str) -> int:
        # The library refuses lone surrogates, which no provider takes either.
        plain = text.encode("utf-8", "replace").decode()
        return len(found.encode(plain, add_special_tokens=False).ids)

    return count
