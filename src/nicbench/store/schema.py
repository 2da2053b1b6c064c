"""The JSON Schema of summary.json, for docs/summary.schema.json: ``python -m nicbench.store.schema`` prints it."""

from __future__ import annotations

from typing import Any

from nicbench.core.result import Summary
from nicbench.store.files import json_text


def summary_schema() -> dict[str, Any]:
    """Generates the schema from the model ``Summary``."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "Made from nicbench.core.result.Summary by `python -m nicbench.store.schema`.",
        **Summary.model_json_schema(mode="serialization"),
    }


def summary_schema_text() -> str:
    """Returns the content of docs/summary.schema.json."""
    return json_text(summary_schema(), indent=2) + "\n"


if __name__ == "__main__":
    print(summary_schema_text(), end="")
