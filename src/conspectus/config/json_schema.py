"""The JSON Schema of a configuration file, for completion and checks in an editor."""

from __future__ import annotations

from typing import Any

from conspectus.config.schema import SummarizationConfig
from conspectus.config.source import SECTION

NOTHING: dict[str, Any] = {"enum": [None, []]}
DIALECT = "https://json-schema.org/draft/2020-12/schema"
VARIABLE = {
    "type": "string",
    "pattern": r"^\$(\w+|\{\w+\})$",
    "description": "the value of an environment variable",
}


def json_schema() -> dict[str, Any]:
    """Make the schema of a file with our section; other sections may hold anything."""
    section = SummarizationConfig.model_json_schema()
    section["properties"]["recall"]["enum"].append(False)  # YAML reads a bare `off` as false
    section["properties"]["recall"].pop("type", None)
    defined = section.pop("$defs", {})
    defined = {name: _with_variables(one) for name, one in defined.items()}
    section = _with_variables(section)
    section["title"], section["description"] = SECTION, "When and how a history is summarised."
    section["if"] = {"properties": {"enabled": {"const": True}}, "required": ["enabled"]}
    section["then"] = {"required": ["trigger"], "properties": {"trigger": {"not": NOTHING}}}
    defined["Size"]["allOf"] = [
        _where(["fraction"], {"type": "number", "exclusiveMinimum": 0, "maximum": 1}),
        _where(["tokens", "messages"], {"type": "integer", "minimum": 1}),
    ]
    defined["AllOf"]["minProperties"] = 1
    return {
        "$schema": DIALECT,
        "title": "A configuration with a section for Conspectus",
        "type": "object",
        "properties": {SECTION: {"anyOf": [section, {"type": "null"}]}},
        "$defs": defined,
    }


def _where(types: list[str], value: dict[str, Any]) -> dict[str, Any]:
    """Say which values are allowed for some types."""
    return {
        "if": {"properties": {"type": {"enum": types}}, "required": ["type"]},
        "then": {"properties": {"value": {"anyOf": [value, VARIABLE]}}},
    }


def _with_variables(schema: Any) -> Any:
    """Allow environment variables for numbers, truth values and words of a schema."""
    if isinstance(schema, list):
        return [_with_variables(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") in ("integer", "number", "boolean") or "enum" in schema:
        about = {key: schema[key] for key in ("description", "default", "title") if key in schema}
        bare = {key: value for key, value in schema.items() if key not in about}
        return {**about, "anyOf": [bare, VARIABLE]}
    return {
        key: value if key in ("default", "required", "enum") else _with_variables(value)
        for key, value in schema.items()
    }
