"""The page read as blocks: nothing that it says is lost, and what only a screen needs stays there."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from nicbench.report.document import read
from nicbench.report.document.blocks import (
    Block,
    Code,
    Definitions,
    Document,
    Drawing,
    Figure,
    Folded,
    Heading,
    Listing,
    Note,
    Paragraph,
    Table,
    Text,
    plain,
)
from nicbench.report.document.tree import KNOWN, SKIPPED, tree

STYLE = ":root { --ink: #111111; --series-1: #0072b2; } @media dark { :root { --ink: #eeeeee; } }"


def document(body: str) -> Document:
    return read(
        f'<html lang="en"><head><meta name="generator" content="nicbench 1"><style>{STYLE}</style></head>'
        f"<body><header><h1>Title</h1></header><main><h2>S</h2>{body}</main></body></html>"
    )


def first(body: str) -> Block:
    return document(body).blocks[1]


def table(rows: str) -> Table:
    found = first(f"<table>{rows}</table>")
    assert isinstance(found, Table)
    return found


def test_every_tag_of_a_template_is_known() -> None:
    folder = files("nicbench.report") / "templates"
    templates = [
        each for place in (folder, folder / "layouts") for each in place.iterdir() if each.name.endswith(".j2")
    ]

    assert templates
    for template in templates:
        text = re.sub(r"<svg\b.*?</svg>", "", template.read_text(encoding="utf-8"), flags=re.DOTALL)
        used = set(re.findall(r"<([a-z][a-z0-9]*)\b", text))
        assert used <= KNOWN | SKIPPED, f"{template.name}: tell report/document what these mean"


def test_the_page_of_a_run_is_read_whole(page: str) -> None:
    whole = read(page)

    assert whole.title == "Linux IP forwarding between two veth ports"
    assert whole.palette["ink"].startswith("#")
    kinds = {type(block) for block in whole.blocks}
    assert {Heading, Paragraph, Table, Figure, Folded, Listing, Definitions} <= kinds
    body = tree(page).every("body")[0]
    drawn = [each for each in body.every("figure") if each.every("svg")]
    assert len([block for block in whole.blocks if isinstance(block, Figure)]) == len(drawn)


def test_a_tag_that_is_closed_by_another_is_refused() -> None:
    with pytest.raises(ValueError, match="closes <p>"):
        document("<p>open</div>")


def test_white_space_is_that_of_html() -> None:
    found = first("<p>\n  one <b> two</b>\n three<br>\n four </p>")

    assert isinstance(found, Paragraph)
    assert found.inlines == (Text("one "), Text("two", strong=True), Text(" three\nfour"))


def test_looks_links_and_badges_are_kept() -> None:
    found = first(
        '<p>10<sup>6</sup> <a href="#x">there</a> <span class="badge valid">valid</span> <code>ip a</code></p>'
    )

    assert isinstance(found, Paragraph)
    assert [run for run in found.inlines if run != Text(" ")] == [
        Text("10"),
        Text("6", raised=True),
        Text("there", link="#x"),
        Text("valid", badge=True, tone="good"),
        Text("ip a", code=True),
    ]


def test_a_figure_is_its_wide_drawing_in_the_colours_of_paper() -> None:
    path = '<path stroke="var(--series-1, #abc)" fill="var(--ink)"/>'
    svg = f'<svg role="img" aria-label="Rates &lt;1&gt;" width="9">{path}</svg>'
    found = first(
        f'<figure><div class="wide">{svg}</div><div class="narrow"><svg aria-label="no"></svg></div>'
        "<figcaption>By size.</figcaption></figure>"
    )

    assert isinstance(found, Figure)
    assert found.title == "Rates <1>"
    assert plain(found.caption) == "By size."
    (panel,) = found.panels
    assert 'stroke="#0072b2" fill="#111111"' in panel.drawing.svg
    assert 'xmlns="http://www.w3.org/2000/svg"' in panel.drawing.svg


def test_a_drawing_that_is_described_at_length_is_called_after_its_caption() -> None:
    found = first(
        f'<figure><svg aria-label="{"long " * 30}"></svg><figcaption>The testbed. All of it.</figcaption></figure>'
    )

    assert isinstance(found, Figure)
    assert found.title == "The testbed"
    assert found.panels[0].drawing.label.startswith("long long")


def test_small_figures_of_one_scale_are_one_figure() -> None:
    one = '<figure><p><b>{n}</b></p><svg aria-label="{n}"></svg></figure>'
    found = first(f'<div class="multiples">{one.format(n=1)}{one.format(n=2)}</div>')

    assert isinstance(found, Figure)
    assert [plain(panel.head) for panel in found.panels] == ["1", "2"]


def test_rows_fill_the_table_whatever_they_span() -> None:
    found = table(
        "<thead><tr><th>a</th><th>b</th><th>c</th></tr></thead>"
        '<tbody><tr><th rowspan="2">x</th><td colspan="13">y</td></tr>'
        "<tr><td>z</td></tr></tbody>"
    )

    assert found.columns == 3
    assert [[cell.columns for cell in row.cells] for row in found.body] == [[1, 2], [1, 1]]


def test_facts_within_facts_are_rows_that_are_indented() -> None:
    inner = '<table class="facts tree"><tbody><tr><th>Speed</th><td>10 Gb/s</td></tr></tbody></table>'
    found = first(
        f'<table class="facts tree"><tbody><tr class="group"><th>Link</th><td>{inner}</td></tr></tbody></table>'
    )

    assert isinstance(found, Table)
    assert [(plain(row.cells[0].inlines), row.cells[0].indent) for row in found.body] == [("Link", 0), ("Speed", 1)]
    assert plain(found.body[1].cells[1].inlines) == "10 Gb/s"


def titles(body: str) -> list[str]:
    return [block.title for block in document(body).blocks if isinstance(block, Table)]


def test_tables_of_one_heading_have_titles_of_their_own() -> None:
    one = "<table><thead><tr><th>a</th></tr></thead></table><table></table>"

    assert titles(one * 2) == ["S", "S (2)"]
    assert titles(f"<h3>T</h3>{one}<h2>U</h2><h3>T</h3>{one}") == ["T, S", "T, U"]


def test_facts_that_follow_one_another_are_one_table() -> None:
    one = '<table class="facts"><tbody><tr><th>a</th><td>b</td></tr></tbody></table>'

    assert titles(one * 3) == ["S"]
    assert titles(f"{one}<p>between</p>{one}") == ["S", "S (2)"]


@pytest.mark.parametrize("opening", ['<details class="many">', "<details>"])
def test_what_has_very_many_rows_is_left_out(opening: str) -> None:
    rows = "<tr><td>1</td></tr>" * 401
    found = first(f"{opening}<summary>All</summary><table><tbody>{rows}</tbody></table></details>")

    assert isinstance(found, Folded)
    assert found.left_out
    assert found.rows == 401
    assert not found.blocks


def test_what_is_folded_away_is_read() -> None:
    found = first("<details><summary>More</summary><pre>a\n  b</pre></details>")

    assert isinstance(found, Folded)
    assert found.blocks == (Code("a\n  b"),)


def test_what_only_a_screen_needs_is_left_out() -> None:
    left = '<nav>n</nav><script>s</script><p class="screen">p</p><button>b</button>'
    assert len(document(left).blocks) == 1


def test_no_level_of_headings_is_skipped() -> None:
    levels = [block.level for block in document("<h4>a</h4><h3>b</h3>").blocks if isinstance(block, Heading)]

    assert levels == [1, 2, 2]


def test_a_note_and_a_drawing_in_a_cell() -> None:
    found = first('<div class="plainly"><p>Mind.</p></div>')
    assert found == Note((Paragraph((Text("Mind."),)),))
    cell = table('<tbody><tr><td><svg aria-label="spark"></svg><br>5</td></tr></tbody>').body[0].cells[0]
    assert isinstance(cell.inlines[0], Drawing)
    assert plain(cell.inlines[1:]) == "5"
