"""Read the related parts of other sections: models, and a folder of skills."""

from __future__ import annotations

import re
from typing import Any


def models_in(listed: Any) -> tuple[dict[str, int], dict[str, tuple[str, str]]]:
    """Read the `models:` section: windows in tokens, providers and names."""
    windows: dict[str, int] = {}
    kinds: dict[str, tuple[str, str]] = {}
    for one in listed if isinstance(listed, list) else ():
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            continue
        name = one["name"]
        for key in ("context_window", "max_input_tokens"):
            limit = one.get(key)
            if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0:
                windows.setdefault(name, limit)
        use, model = one.get("use"), one.get("model")
        if isinstance(use, str) and isinstance(model, str) and use.startswith("langchain_"):
            provider = re.split(r"[:.]", use)[0].removeprefix("langchain_")
            kinds[name] = (provider, model)
    return windows, kinds


def skills_in(data: Any) -> str | None:
    """Read the folder that the `skills:` section names; None without one."""
    found = data.get("container_path") if isinstance(data, dict) else None
    return found if isinstance(found, str) and found else None
