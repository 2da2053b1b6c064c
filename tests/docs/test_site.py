"""The site builds without a warning: no dead link or anchor, in docs or in another page. What it holds is in order."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from tests.commands import run_tried

from ._pages import ROOT


class Page(HTMLParser):
    """The links of a page, and what they may lead to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.anchors |= {given.get("id", ""), given.get("name", "")}
        self.links += [given[name] for name in ("href", "src") if given.get(name)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site without the reports of studies, which take as long as all the rest."""
    folder = tmp_path_factory.mktemp("site")
    options = ["--fail-on-warning", "--keep-going", "--quiet", "-D", "nicbench_reports=0", "-c", "docs/site"]
    built = run_tried([sys.executable, "-m", "sphinx", *options, ".", str(folder)], cwd=ROOT)
    assert built.returncode == 0, built.stderr
    return folder


def test_every_link_of_the_site_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html") if path.parent.name != "_static"}
    assert len(pages) > 40
    dead = []
    for path, page in pages.items():
        for link in page.links:
            place, _, anchor = link.partition("#")
            place = place.partition("?")[0]
            if re.match(r"[a-z]+:", place) or "reports/" in place:
                continue
            there = (path.parent / unquote(place)).resolve() if place else path
            if not there.exists() or (anchor and there in pages and anchor not in pages[there].anchors):
                dead.append(f"{path.relative_to(site)}: {link}")
    assert not dead
    assert not [path for path in pages if re.search(r"<(script|img|link)[^>]* (src|href)=\"https?:", path.read_text())]


def test_the_search_of_the_site_works_from_a_folder(site: Path) -> None:
    assert "Search.setIndex(" in (site / "searchindex.js").read_text()[:100]
