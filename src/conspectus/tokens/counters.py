"""Exact counters: vocabularies of `tiktoken` or Hugging Face's `tokenizers`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from conspectus.errors import PolicyError

FORM = "write tiktoken:o200k_base, or tokenizers:path/to/tokenizer.json"


def vocabulary(spec: str) -> Callable[[str], int]:
    """Load a vocabulary as a function that counts the tokens of a text.

    `spec` is `tiktoken:` with an encoding or one of OpenAI's models, or `tokenizers:` with the path
    of a `tokenizer.json` or a model on the Hugging Face hub, which is downloaded if it is not there
    yet. Special tokens count as plain text. A `PolicyError` says why a vocabulary cannot be loaded.
    """
    library, colon, name = spec.partition(":")
    loaders = {"tiktoken": _tiktoken, "tokenizers": _tokenizers}
    if not colon or not name or library not in loaders:
        raise PolicyError(f"token_counter cannot be {spec!r}; {FORM}")
    try:
        return loaders[library](name)
    except PolicyError:
        raise
    except ImportError as error:
        raise PolicyError(
            f"{spec!r} needs {library}, which is not installed: pip install 'conspectus[tokens]'"
        ) from error
    except Exception as error:
        raise PolicyError(
            f"the vocabulary {spec!r} cannot be had ({type(error).__name__}: {error!s:.200}); give "
            "one that is on this machine, or leave token_counter out for the estimate"
        ) from error


def _tiktoken(name: str) -> Callable[[str], int]:
    import tiktoken

    known = name in tiktoken.list_encoding_names()
    encoding = tiktoken.get_encoding(name) if known else tiktoken.encoding_for_model(name)

    def count(text: str) -> int:
        return len(encoding.encode_ordinary(text))

    return count


def _tokenizers(name: str) -> Callable[[str], int]:
    from tokenizers import Tokenizer

    path = Path(name).expanduser()
    if path.is_file():
        found: Any = Tokenizer.from_file(str(path))
    elif path.suffix == ".json":
        raise PolicyError(f"there is no file {path}; {FORM}")
    else:
        found = Tokenizer.from_pretrained(name)
    found.no_truncation()
    found.no_padding()

    def count(text: str) -> int:
        # The library refuses lone surrogates, which no provider takes either.
        text = text.encode("utf-8", "replace").decode("utf-8")
        return len(found.encode(text, add_special_tokens=False).ids)

    return count
