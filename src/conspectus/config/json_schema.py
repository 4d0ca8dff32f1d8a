"""The JSON Schema of a configuration file, for editors that complete and check as one types."""

from __future__ import annotations

from typing import Any

from conspectus.config.reading import SECTION
from conspectus.config.schema import SummarizationConfig

DIALECT = "https://json-schema.org/draft/2020-12/schema"
VARIABLE = {
    "type": "string",
    "pattern": r"^\$(\w+|\{\w+\})$",
    "description": "the value of an environment variable",
}


def json_schema() -> dict[str, Any]:
    """The schema of a file with our section in it; other sections may hold anything.

    Example:
        >>> sorted(json_schema()["properties"])
        ['summarization']
    """
    section = SummarizationConfig.model_json_schema()
    defined = section.pop("$defs", {})
    defined = {name: _with_variables(one) for name, one in defined.items()}
    section = _with_variables(section)
    section["title"], section["description"] = SECTION, "When and how a history is summarised."
    section["properties"]["recall"] = {
        **section["properties"]["recall"],
        "enum": [*section["properties"]["recall"]["enum"], False],
    }
    section["properties"]["recall"].pop("type", None)
    return {
        "$schema": DIALECT,
        "title": "A configuration with a section for Conspectus",
        "type": "object",
        "properties": {SECTION: {"anyOf": [section, {"type": "null"}]}},
        "$defs": defined,
    }


def _with_variables(schema: Any) -> Any:
    """A schema whose numbers and truth values may come from environment variables."""
    if isinstance(schema, list):
        return [_with_variables(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") in ("integer", "number", "boolean"):
        about = {key: schema[key] for key in ("description", "default", "title") if key in schema}
        bare = {key: value for key, value in schema.items() if key not in about}
        return {**about, "anyOf": [bare, VARIABLE]}
    return {
        key: value if key in ("default", "required", "enum") else _with_variables(value)
        for key, value in schema.items()
    }
