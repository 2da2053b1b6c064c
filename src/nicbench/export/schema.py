"""The JSON Schema of an export, for docs/export.schema.json: ``python -m nicbench.export.schema`` prints it."""

from __future__ import annotations

from typing import Any

from nicbench.export.document import ExportDocument
from nicbench.store.files import json_text


def export_schema() -> dict[str, Any]:
    """The schema as it follows from the model."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "Made from nicbench.export.document.ExportDocument by `python -m nicbench.export.schema`.",
        **ExportDocument.model_json_schema(mode="serialization"),
    }


def export_schema_text() -> str:
    """The content of docs/export.schema.json."""
    return json_text(export_schema(), indent=2) + "\n"


if __name__ == "__main__":
    print(export_schema_text(), end="")
