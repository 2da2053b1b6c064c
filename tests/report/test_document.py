"""A document made of blocks: named, with ids and contents; what paper has of it, and what a page makes of it."""

from __future__ import annotations

import base64
import errno
import pkgutil
import shutil
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pypdf
import pytest

from nicbench import report
from nicbench.cli.options import kinds as kinds_of
from nicbench.core.errors import HostError, UsageError
from nicbench.core.plan import Layout
from nicbench.report import Format, formats, layouts
from nicbench.report.document.blocks import (
    Block,
    Cell,
    Code,
    Definitions,
    Document,
    Drawing,
    Fact,
    Facts,
    Figure,
    FoldedBlocks,
    Group,
    Heading,
    Listing,
    Note,
    Panel,
    Paragraph,
    Row,
    Table,
    Text,
    plain,
)
from nicbench.report.document.finishing import drawing, on_paper, pages
from nicbench.report.document.making import (
    BREAK,
    breakable,
    cell,
    code,
    file_link,
    heading,
    heads,
    inlines,
    link,
    median_and_runs,
    name,
    paragraph,
    row,
    strong,
    superscript,
    table,
)
from nicbench.report.html import fragment, write_html
from nicbench.store import RunFolder
from nicbench.store import files as storage

from ._documents import PALETTE, document


def blocks(*made: Block) -> tuple[Block, ...]:
    """As paper has them, behind a heading."""
    return pages(document(heading(1, "S"), *made)).blocks[1:-1]


def simple(text: str = "1") -> Table:
    return table((heads("a"),), ((cell(text),),))


def figure(label: str, caption: str = "") -> Figure:
    return Figure((Panel(drawing(f'<svg aria-label="{label}"></svg>')),), inlines(caption))


def test_white_space_is_that_of_a_page() -> None:
    assert inlines("\n  one ", strong(" two"), "\n three", BREAK, "\n four ") == (
        Text("one "),
        Text("two", strong=True),
        Text(" three\nfour"),
    )


def test_what_steers_is_seen_wherever_it_stands() -> None:
    evil = "a\x1b[31m\u202eb"

    for made in (inlines(evil), (strong(evil),), (code(evil),), (breakable(evil),), (link(evil, "#x"),)):
        assert plain(made) == "a\\x1b[31m\\u202eb"


def test_a_name_that_leads_out_of_the_folder_is_no_link() -> None:
    assert file_link("raw/a b.csv").link == "./raw/a%20b.csv"
    assert [file_link(each).link for each in ("../x", "/etc/passwd", "a\\b", "a//b")] == [None] * 4


def test_beneath_a_median_stands_how_far_runs_lie_apart() -> None:
    assert plain(median_and_runs("0.5 (0.4 to 0.6)")) == "0.5 0.4 to 0.6"
    assert median_and_runs("plain") == (Text("plain"),)
    assert median_and_runs("5 (2 of 3 runs)", is_main=True)[0] == Text("5", strong=True)


def test_rows_fill_the_table_whatever_they_span() -> None:
    found = table(
        (heads("a", "b", "c"),),
        (row(Cell(inlines("x"), rows=2, is_head=True), cell("y", columns=13)), (cell("z"),)),
    )

    assert found.columns == 3
    assert [[each.columns for each in row.cells] for row in found.body] == [[1, 2], [1, 1]]


def test_facts_within_facts_are_rows_that_are_indented() -> None:
    beside = table(((cell(), *heads("eth0")),), ((name("MTU"), cell("9000")),), "facts")
    inner = (Fact(inlines("Speed"), inlines("10 Gb/s")), Fact(inlines("Ports"), beside=beside))
    made = Facts((Fact(inlines("Link"), children=inner),))
    (found,) = blocks(made)

    assert isinstance(found, Table)
    assert [(plain(row.cells[0].inlines), row.cells[0].indent) for row in found.body] == [
        ("Link", 0),
        ("Speed", 1),
        ("Ports", 1),
        ("MTU", 2),
    ]
    assert plain(found.body[-1].cells[1].inlines) == "eth0: 9000"
    assert fragment(made).count("<table") == 3, "a page nests them"


def test_a_figure_on_paper_has_the_colours_of_paper() -> None:
    path = '<path stroke="var(--series-1, #abc)" fill="var(--ink)"/>'
    made = drawing(f'<svg role="img" aria-label="Rates &lt;1&gt;" width="9" data-heads="x">{path}</svg>')
    svg = on_paper(made.svg, PALETTE)

    assert made.label == "Rates <1>"
    assert 'stroke="#0072b2" fill="#111111"' in svg
    assert 'xmlns="http://www.w3.org/2000/svg"' in svg
    assert "data-heads" not in svg


def test_what_is_for_a_phone_is_on_the_page_alone() -> None:
    panel = Panel(Drawing("<svg><g/></svg>", "wide"), narrow=Drawing("<svg><b/></svg>", "narrow"))
    page = fragment(Figure((panel,)))

    assert page.count("<svg") == 2
    (found,) = blocks(Figure((panel,)))
    assert isinstance(found, Figure)
    assert found.title == "wide"


def test_a_drawing_that_is_described_at_length_is_called_after_its_caption() -> None:
    (found,) = blocks(figure("long " * 30, "The testbed. All of it."))

    assert isinstance(found, Figure)
    assert found.title == "The testbed"


def test_small_drawings_of_one_scale_are_named_after_the_heading() -> None:
    panels = tuple(Panel(Drawing(f'<svg aria-label="{n}"></svg>', n), inlines(n)) for n in ("1", "2"))
    (found,) = blocks(Figure(panels, look="multiples"))

    assert isinstance(found, Figure)
    assert found.title == "S"
    assert fragment(found).count("<figure>") == 2


def titles(found: Iterable[Block]) -> list[str]:
    return [block.title for block in found if isinstance(block, Table)]


def test_tables_of_one_heading_have_titles_of_their_own() -> None:
    assert titles(blocks(simple(), simple())) == ["S", "S (2)"]
    again = (heading(2, "T"), simple())
    assert titles(blocks(*again, heading(1, "U"), *again)) == ["T, S", "T, U"]
    folded = FoldedBlocks(inlines("Each point"), (simple(),))
    (found,) = blocks(folded)
    assert isinstance(found, FoldedBlocks)
    assert titles(found.blocks) == ["S: Each point"]


@pytest.mark.parametrize("is_for_screens", [True, False])
def test_what_has_very_many_rows_is_a_sentence_on_paper(is_for_screens: bool) -> None:
    rows = ((cell("1"),),) * (3 if is_for_screens else 401)
    made = FoldedBlocks(inlines("All"), (table((), rows),), is_for_screens=is_for_screens)

    assert made.left_out
    assert made.rows == len(rows)
    assert fragment(made).count("<tr>") == len(rows)


def test_what_is_folded_away_is_on_paper() -> None:
    (found,) = blocks(FoldedBlocks(inlines("More"), (Code("a\n  b"),)))

    assert isinstance(found, FoldedBlocks)
    assert found.blocks == (Code("a\n  b"),)


def test_groups_lie_open_on_paper_and_no_level_of_headings_is_skipped() -> None:
    made = document(Group((heading(3, "a"), heading(2, "b")), "trials"))
    levels = [block.level for block in pages(made).blocks if isinstance(block, Heading)]

    assert levels == [1, 2]


def test_an_opening_stands_before_the_contents() -> None:
    made = document(Group((heading(1, "Answer"), paragraph("42")), "opening"), heading(1, "Rest"))
    shown = pages(made)

    assert [plain(block.inlines) for block in shown.front if isinstance(block, Paragraph)] == ["nicbench", "42"]
    assert isinstance(shown.blocks[0], Heading)
    assert [plain(each.inlines) for each in made.contents] == ["Answer", "Rest"]


def test_ids_are_unique_and_the_contents_lead_to_them() -> None:
    page = write_html(
        document(heading(1, "A"), heading(1, "A"), FoldedBlocks((), (), id="a-3"), heading(1, "A", id="a"))
    )

    assert [f'<h2 id="{each}">' in page for each in ("a", "a-2", "a-4")] == [True] * 3
    assert page.count('<a href="#a') == 3


def test_a_page_has_every_kind_of_block() -> None:
    page = fragment(
        Note((paragraph("Mind."),), "forced"),
        Listing((inlines("one"),), ordered=True),
        table((heads("a\n[b]"),), (row(name("x"), look="about"), row(cell("y"), look="made")), "ledger"),
        paragraph(code("ip -br a"), " 10", superscript("6"), breakable("a/b")),
        Code("<x>"),
    )

    assert '<div class="forced"><p>Mind.</p></div>' in page
    assert "<ol><li>one</li></ol>" in page
    assert '<div class="scroll"><table class="ledger"><thead><tr><th scope="col">a<br>[b]</th></tr></thead>' in page
    assert '<tr class="about"><th scope="rowgroup">x</th></tr>' in page
    assert '<code><span class="argument">ip</span> <span class="argument">-br</span>' in page
    assert "10<sup>6</sup>a/<wbr>b</p>" in page
    assert "<pre>&lt;x&gt;</pre>" in page


def test_every_text_of_a_page_is_escaped() -> None:
    evil = '<img src=x onerror="alert(1)">'
    page = fragment(
        heading(1, evil),
        paragraph(strong(evil), link(evil, evil)),
        Table(1, (), (Row((Cell(inlines(evil), title=evil),)),)),
        Code(evil),
    )

    assert "<img" not in page
    assert 'title="&lt;img src=x onerror=&#34;alert(1)&#34;&gt;"' in page


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


LOGO = b"".join(
    (
        b"\x89PNG\r\n\x1a\n",
        _chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 1, 8, 2, 0, 0, 0)),
        _chunk(b"IDAT", zlib.compress(bytes(7))),
        _chunk(b"IEND", b""),
    )
)
"""A PNG of two black pixels."""


@pytest.fixture
def run(whole_run: Path, whole_document: Document, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a run whose report is drawn already."""
    monkeypatch.setattr(formats, "document", lambda *_: whole_document)
    return Path(shutil.copytree(whole_run, tmp_path / whole_run.name))


def test_every_format_is_written_and_the_folder_is_as_the_run_left_it(run: Path) -> None:
    paths = report.build_formats(run, tuple(Format))

    assert {kind.value: path.name for kind, path in paths.items()} == {
        "html": "report.html",
        "pdf": "report.pdf",
        "md": "report.md",
    }
    assert paths[Format.PDF].read_bytes().startswith(b"%PDF")
    assert list((run / "report-figures").glob("figure-*.svg"))
    assert RunFolder.open(run).differences() == ()


def test_another_layout_stands_beside_it_under_its_own_name(run: Path, tmp_path: Path) -> None:
    paths = report.build_formats(run, (Format.MARKDOWN,), Layout.DATASHEET, tmp_path / "new" / "folder")

    assert paths == {Format.MARKDOWN: tmp_path / "new" / "folder" / "report-datasheet.md"}
    assert "](report-datasheet-figures/figure-01.svg)" in paths[Format.MARKDOWN].read_text(encoding="utf-8")


def test_a_logo_stands_above_the_title_of_page_and_sheet(run: Path) -> None:
    paths = report.build_formats(run, (Format.HTML, Format.PDF), logo=LOGO)

    page = paths[Format.HTML].read_text(encoding="utf-8")
    assert page.index(base64.b64encode(LOGO).decode()) < page.index("<h1>")
    objects = pypdf.PdfReader(paths[Format.PDF]).pages[0]["/Resources"]
    assert "/Image" in [one["/Subtype"] for one in objects["/XObject"].values()]


def test_figures_of_an_earlier_report_go_and_a_link_is_not_followed(run: Path, tmp_path: Path) -> None:
    (run / "report-figures").mkdir()
    (run / "report-figures" / "figure-99.svg").write_text("old")
    report.build_formats(run, (Format.MARKDOWN,))
    assert not (run / "report-figures" / "figure-99.svg").exists()

    shutil.rmtree(run / "report-figures")
    (tmp_path / "outside").mkdir()
    (run / "report-figures").symlink_to(tmp_path / "outside")
    report.build_formats(run, (Format.MARKDOWN,))
    assert list((tmp_path / "outside").iterdir()) == []
    assert list((run / "report-figures").glob("figure-*.svg"))


def test_a_full_disk_is_said_with_the_way_out(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(storage.os, "fsync", full)

    with pytest.raises(HostError, match="disk is full") as refused:
        report.build_formats(run, (Format.HTML,))
    assert "--out" in str(refused.value.next_step)


def test_a_folder_that_cannot_be_made_is_said_with_the_way_out(run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(UsageError, match="is no folder, but a file") as refused:
        report.build_formats(run, (Format.HTML,), out=tmp_path / "file" / "below")
    assert "--out" in str(refused.value.next_step)


def test_the_inside_of_a_run_folder_is_no_place_for_a_report(run: Path) -> None:
    with pytest.raises(UsageError, match="lies in the folder of a run"):
        report.build_formats(run, (Format.HTML,), out=run / "raw")


@pytest.mark.parametrize(
    ("texts", "kinds"),
    [
        (["pdf"], (Format.PDF,)),
        (["md,pdf", "md"], (Format.MARKDOWN, Format.PDF)),
        (["all"], tuple(Format)),
        (["html, all"], tuple(Format)),
    ],
)
def test_formats_are_named_by_commas_or_again(texts: list[str], kinds: Any) -> None:
    assert kinds_of(texts) == kinds


def test_a_format_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="odt") as refused:
        kinds_of(["pdf,odt"])
    assert "pdf" in str(refused.value.next_step)


WORDS = {"PDR": "of NDR", "NDR": "no", "Holm": "how often", "p99.9": "latency"}


def test_words_that_the_report_does_not_use_are_left_out() -> None:
    glossary = Definitions(tuple((inlines(word), inlines(meaning)) for word, meaning in WORDS.items()))
    made = document(paragraph("The ", strong("PDR"), ", p99.99 and Holmes, Holm"), glossary).blocks[-1]

    assert isinstance(made, Definitions)
    assert [plain(word) for word, _ in made.pairs] == ["PDR", "Holm", "p99.9"]


def test_every_layout_has_its_file() -> None:
    known = {each.name for each in pkgutil.iter_modules(layouts.__path__)}

    assert known == {layout.value for layout in Layout}


def test_the_layout_of_the_bench_file_is_the_report_and_the_other_stands_beside_it(whole_run: Path) -> None:
    assert report.build(whole_run, Layout.STUDY).name == "report.html"
    assert report.build(whole_run, Layout.DATASHEET).name == "report-datasheet.html"
