"""What a browser's accessibility check finds most often, held without a browser; scripts/check-pages has the whole."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import html5lib
import pytest

from nicbench import report
from nicbench.core.plan import Layout
from nicbench.core.result import ResultVerdict
from nicbench.report import html

from . import _editors
from ._documents import page_of
from .test_rounds import finished, missing

PAGES = ("whole", "datasheet", "disturbed", "editors", "rounds")
STYLE = html.style()


@pytest.fixture(scope="module")
def trees(whole_run: Path, synthetic: Any, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """Pages as a browser reads them; an error of syntax is refused."""
    folder = tmp_path_factory.mktemp("pages")
    disturbed = synthetic.SyntheticRun(folder).start()
    disturbed.measure((64, 1518), disturbed_size=1518)
    studied = _editors.write(folder, _editors.results(instances=(1, 2), runs=2), ("1x100", "4x25"))
    pages = {
        "whole": report.build(whole_run).read_text(encoding="utf-8"),
        "datasheet": page_of(whole_run, Layout.DATASHEET),
        "disturbed": report.build(disturbed.finish(ResultVerdict.DISTURBED)).read_text(encoding="utf-8"),
        "editors": report.build(studied).read_text(encoding="utf-8"),
        "rounds": report.build(finished(folder, missing)).read_text(encoding="utf-8"),
    }
    parse: Callable[[str], Any] = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse
    return {name: parse(page) for name, page in pages.items()}


@pytest.fixture(params=PAGES)
def tree(request: pytest.FixtureRequest, trees: Mapping[str, Any]) -> Any:
    return trees[request.param]


def test_a_page_says_its_language_its_title_and_where_its_main_part_is(tree: Any) -> None:
    assert tree.get("lang") == "en"
    assert tree.find(".//title").text.strip()
    assert len(tree.findall(".//main")) == len(tree.findall(".//h1")) == 1


def test_ids_are_unique_and_links_lead_to_them(tree: Any) -> None:
    ids = [element.get("id") for element in tree.iter() if element.get("id")]

    assert len(ids) == len(set(ids))
    for link in tree.iter("a"):
        if link.get("href").startswith("#"):
            assert link.get("href")[1:] in ids


def test_headings_go_down_one_level_at_a_time(tree: Any) -> None:
    levels = [int(element.tag[1]) for element in tree.iter() if re.fullmatch(r"h[1-6]", str(element.tag))]

    assert levels[0] == 1
    assert all(below <= above + 1 for above, below in itertools.pairwise(levels))


def test_every_table_has_heads_that_say_what_they_are_the_heads_of(tree: Any) -> None:
    for table in tree.iter("table"):
        heads = list(table.iter("th"))
        assert heads, "".join(table.itertext())[:80]
        for head in heads:
            assert head.get("scope") in ("col", "row", "colgroup", "rowgroup"), "".join(head.itertext())


def test_no_head_of_a_column_is_empty(tree: Any) -> None:
    for row in (row for head in tree.iter("thead") for row in head.iter("tr")):
        assert all("".join(cell.itertext()).strip() for cell in row.iter("th"))


def test_every_drawing_has_a_name(tree: Any) -> None:
    for drawing in (element for element in tree.iter() if str(element.tag).endswith("svg")):
        assert drawing.get("role") == "img"
        assert drawing.get("aria-label", "").strip()


def test_every_folded_part_says_what_is_in_it(tree: Any) -> None:
    for folded in tree.iter("details"):
        assert "".join(folded[0].itertext()).strip()
        assert folded[0].tag == "summary"


TEXTS = ("ink", "muted", "accent", "good", "warn", "bad")
GROUNDS = ("paper", "raised", "warn-paper")


@pytest.mark.parametrize("place", [0, 1, 2], ids=["light", "dark", "print"])
def test_every_text_stands_out_from_every_ground(place: int) -> None:
    """WCAG 2.2, 1.4.3: 4.5 to 1 of text; 1.4.11: 3 to 1 of what must be seen in a drawing."""
    colours = list(palettes())[place]
    for ground in GROUNDS:
        for text in TEXTS:
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for series in (name for name in colours if name.startswith("series-")):
        assert contrast(colours[series], colours["paper"]) >= 3.0, series


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


def palettes() -> Iterator[dict[str, str]]:
    """The colours of the style sheet, by name: those of light, of dark, and of paper."""
    for block in re.findall(r":root \{(.*?)\}", STYLE, flags=re.DOTALL):
        yield dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", block))


def contrast(one: str, other: str) -> float:
    """The ratio of two colours, 1 to 21 (WCAG 2.2, "contrast ratio")."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    """Relative, 0 to 1."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
