"""Every key of a bench file has a meaning in its model, and every kind stands on a page with a table of them."""

from __future__ import annotations

import re
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from nicbench.bench_file.models import Document
from nicbench.core.registry import find

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs/site"))
from nicbench_docs.models import FAMILIES, keys_of, model_of  # noqa: E402

PAGES = "".join(page.read_text() for page in sorted((ROOT / "docs").rglob("*.md")))
TABLES = "".join(path.read_text() for path in sorted((ROOT / "docs/tables").iterdir()))
SHOWN = set(re.findall(r"^<!-- keys (\S+)", TABLES, re.MULTILINE))


def kinds() -> Iterator[str]:
    for family, base in FAMILIES.items():
        module, _, name = base.partition(":")
        for kind in find(f"nicbench.{family}", getattr(sys.modules[module], name)):
            yield f"{family}/{kind}"


def sections_within(declared: Any) -> Iterator[type[BaseModel]]:
    if isinstance(declared, type) and issubclass(declared, BaseModel):
        yield declared
    for each in typing.get_args(declared):
        yield from sections_within(each)


def models_of(model: type[BaseModel]) -> dict[type[BaseModel], None]:
    """A model and the sections within it, in their order."""
    found = {model: None}
    for field in model.model_fields.values():
        for each in sections_within(field.annotation):
            if each is not model:
                found |= models_of(each)
    return found


@pytest.mark.parametrize("kind", list(kinds()))
def test_every_kind_stands_on_a_page_and_each_of_its_keys_has_a_meaning(kind: str) -> None:
    model = model_of(kind)
    if not set(model.model_fields) - {"on"}:
        return
    page = re.search(rf"^#+ .*`{re.escape(kind.partition('/')[2])}`", PAGES, re.MULTILINE)
    assert page, f"no heading of a page in docs names `{kind}`"
    assert kind in SHOWN or kind in SAME_KEYS, f"no file of docs/tables has <!-- keys {kind} -->"
    for each in models_of(model):
        assert not [key.name for key in keys_of(each) if not key.meaning], each


SAME_KEYS = {"testbed.duts/xdp-tx": "testbed.duts/xdp-forward", "search/guided": "search.base:SearchOptions"}
"""Kinds without keys of their own, whose page refers to the table of another."""


def test_a_kind_that_refers_to_the_table_of_another_has_the_same_keys() -> None:
    for kind, other in SAME_KEYS.items():
        assert set(model_of(kind).model_fields) == set(model_of(other).model_fields)


@pytest.mark.parametrize("model", list(models_of(Document)), ids=lambda model: model.__name__)
def test_every_key_of_the_bench_file_itself_has_a_meaning(model: type[BaseModel]) -> None:
    assert not [key.name for key in keys_of(model) if not key.meaning]


def test_every_table_of_a_page_is_of_a_model_that_exists() -> None:
    assert all(keys_of(model_of(name)) for name in SHOWN)


@pytest.mark.parametrize(
    ("kind", "key", "accepts", "default"),
    [
        ("testbed.duts/policer", "rate", "frame rate, 1 pps to 1 Gpps", "`200 kpps`"),
        ("methods/latency", "loads", "list of percentages, 0 % to 100 %", "`[100 %, 90 %, 50 %, 10 %]`"),
        ("methods/latency", "at", "text", "required"),
        ("testbed.labs/veth", "mtu", "whole number, 68 to 3498", "`1500`"),
        ("testbed.testers/packets", "timestamps", "`tsc`, `card`, `kernel`", "`tsc`"),
    ],
)
def test_a_key_is_told_with_its_unit_its_bounds_and_its_default(
    kind: str, key: str, accepts: str, default: str
) -> None:
    found = next(each for each in keys_of(model_of(kind)) if each.name == key)
    assert (found.accepts, found.default) == (accepts, default)
