"""The tables of keys, commands and columns in ``docs/tables`` are those of the program, and a page leads to each."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ._pages import PAGES, ROOT

sys.path.insert(0, str(ROOT / "docs/site"))
from nicbench_docs.reading import LINK, sections
from nicbench_docs.schemas import summary_schema_text
from nicbench_docs.tables import FOLDER, MARK, SCHEMA, written

FILES = sorted(FOLDER.iterdir())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_tables_are_those_of_the_program(path: Path) -> None:
    text = path.read_text()
    assert text == written(text), "the program has changed: scripts/tables writes its tables anew"


def test_the_published_schema_is_that_of_the_program() -> None:
    assert SCHEMA.read_text() == summary_schema_text(), "the program has changed: scripts/tables writes the schema anew"


def test_a_page_leads_to_each_table_and_each_link_to_one() -> None:
    links = [((page.parent / link[1]).resolve(), link[2]) for page in PAGES for link in LINK.finditer(page.read_text())]
    tables = [
        (path, anchor)
        for path in FILES
        for anchor, below in sections(path.read_text()).items()
        if MARK.search(below) and (path, None) not in links
    ]
    assert sorted(link for link in links if link[1]) == sorted(tables)
