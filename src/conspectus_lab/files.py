"""Read the files of settings, prices and questions that a user names."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from conspectus.errors import InputError

FORMS = {"JSON": json.loads, "TOML": tomllib.loads}


def read_data(file: Path, form: str = "JSON", advice: str = "") -> Any:
    """Read the data of a file, in one of `FORMS`.

    Raises:
        InputError: it cannot be read; `advice` ends the error of another form.
    """
    try:
        return FORMS[form](file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is no {form}: {error}{advice}") from error
