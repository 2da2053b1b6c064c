"""What is published about summary.json is true, and what was released stays readable."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from nicbench.core.result import Summary
from nicbench.store.files import json_text
from nicbench.store.schema import summary_schema, summary_schema_text

ROOT = Path(__file__).parents[2]
RELEASED = sorted((ROOT / "tests" / "golden").glob("summary-*.json"))


def test_the_published_schema_is_current() -> None:
    published = (ROOT / "docs" / "summary.schema.json").read_text(encoding="utf-8")

    assert published == summary_schema_text(), (
        "make it anew: python -m nicbench.store.schema > docs/summary.schema.json"
    )


def test_a_summary_of_every_format_is_kept() -> None:
    current = Summary.model_fields["format"].default
    assert [path.stem for path in RELEASED] == [
        f"summary-{version}" for version in (*(f"1.{minor}" for minor in range(7)), current)
    ]


@pytest.mark.parametrize("path", RELEASED, ids=lambda path: path.stem)
def test_every_released_summary_is_read_and_written_as_it_was(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert json_text(Summary.model_validate_json(text), sort_keys=True) + "\n" == text


@pytest.mark.parametrize("path", RELEASED, ids=lambda path: path.stem)
def test_every_released_summary_fits_the_schema(path: Path) -> None:
    jsonschema.validate(json.loads(path.read_text(encoding="utf-8")), summary_schema())


def test_a_summary_with_an_unknown_key_does_not_fit() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"title": "x", "verdict": "valid", "format": "1.0", "speed": 1}, summary_schema())
