"""PDF and Markdown: whole, the same twice, and no text of a run is code or markup to them."""

from __future__ import annotations

import io
import os
import re
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any

import pypdf
import pytest
from markdown_it import MarkdownIt

from nicbench.core.errors import NotReadyError
from nicbench.core.plan import Layout
from nicbench.report import layouts, markdown, pdf
from nicbench.report.document.blocks import Block, Code, Document, FoldedBlocks, Row, Table, Text, plain
from nicbench.report.document.making import (
    BREAK,
    NOTHING,
    cell,
    head,
    heading,
    heads,
    link,
    name,
    paragraph,
    small,
    table,
)
from nicbench.report.document.making import code as as_code
from nicbench.report.markdown import Anchors, code, escape_text, fence_lines
from nicbench.report.model import Report
from nicbench.report.pdf import data
from nicbench.report.pdf.widths import LANDSCAPE, PORTRAIT, breakable, fit_tables, tokens

from ._documents import document

CREATED = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def made(*blocks: Block, title: str = "Title") -> pypdf.PdfReader:
    return pypdf.PdfReader(io.BytesIO(pdf.make_pdf(document(*blocks, title=title), "run run-1", CREATED)))


def words(reader: pypdf.PdfReader) -> str:
    return " ".join("".join(page.extract_text() for page in reader.pages).replace("\u200b", "").split())


def structure(node: Any) -> list[Any]:
    """The elements of the tree of tags, from the top, in reading order."""
    node = node.get_object()
    kids = node.get("/K", [])
    found = [node] if "/S" in node else []
    for kid in kids if isinstance(kids, list) else [kids]:
        inner = kid.get_object()
        if isinstance(inner, pypdf.generic.DictionaryObject) and ("/S" in inner or "/K" in inner):
            found += structure(inner)
    return found


@pytest.fixture(scope="session")
def whole(whole_document: Document) -> bytes:
    return pdf.make_pdf(whole_document, "run run-1", CREATED)


def test_the_report_of_a_run_is_tagged_for_screen_readers(whole: bytes) -> None:
    reader = pypdf.PdfReader(io.BytesIO(whole))
    root = reader.root_object

    assert root["/MarkInfo"]["/Marked"]
    assert root["/Lang"].startswith("en")
    assert root["/ViewerPreferences"]["/DisplayDocTitle"]
    assert "pdfuaid:part>1" in root["/Metadata"].get_object().get_data().decode()
    kinds = [element["/S"] for element in structure(root["/StructTreeRoot"])]
    assert {"/H1", "/H2", "/Table", "/TH", "/TD", "/Figure", "/L", "/Caption", "/TOC"} <= set(kinds)
    pictures = [each for each in structure(root["/StructTreeRoot"]) if each["/S"] == "/Figure"]
    assert all(each.get("/Alt") for each in pictures)
    tables = [each for each in structure(root["/StructTreeRoot"]) if each["/S"] == "/Table"]
    assert all("/TH" in {inner["/S"] for inner in structure(each)} for each in tables)


def test_a_long_title_is_broken_on_the_page_and_whole_in_the_properties() -> None:
    title = "a/very_long.name/" * 10
    told = made(paragraph("text"), title=title).metadata
    assert told.title == title


def test_title_author_and_date_are_those_of_the_run(whole: bytes) -> None:
    told = pypdf.PdfReader(io.BytesIO(whole)).metadata

    assert told.title == "Linux IP forwarding between two veth ports"
    assert told.author
    assert told.creation_date == CREATED


def test_pages_are_numbered_and_named(whole: bytes) -> None:
    reader = pypdf.PdfReader(io.BytesIO(whole))
    last = reader.pages[-1].extract_text()

    assert f"{len(reader.pages)} of {len(reader.pages)}" in last
    assert "run run-1" in last
    assert any("Contents" in page.extract_text() for page in reader.pages[:2])


def test_tables_and_figures_are_listed_with_their_pages(whole: bytes) -> None:
    front = " ".join("".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(whole)).pages[:3]).split())
    assert re.search(r"Tables Table 1[^\d].*?\. \d+ Table 2", front)
    assert re.search(r"Figures Figure 1[^\d].*?\. \d+", front)


def test_a_study_has_at_most_twelve_pages_and_a_datasheet_two(whole: bytes, view: Report) -> None:
    sheet = pdf.make_pdf(layouts.document(view, Layout.DATASHEET), "run run-1", CREATED)
    pages = pypdf.PdfReader(io.BytesIO(sheet)).pages

    assert len(pypdf.PdfReader(io.BytesIO(whole)).pages) <= 12
    assert len(pages) == 2
    assert "Results" in pages[0].extract_text()
    assert "Command" in pages[1].extract_text()


def test_evidence_behind_the_results_stays_on_the_page_and_paper_says_so() -> None:
    every = FoldedBlocks((Text("throughput: 3 trials"),), (heading(3, "Inside"), paragraph("Hidden")), is_detail=True)
    told = words(made(heading(1, "Every trial"), every))

    assert "Left out here: throughput: 3 trials. It is in report.html." in told
    assert "Hidden" not in told


@pytest.mark.parametrize(
    ("summary", "rest"), [("7 notes on the searches", "They are"), ("1 note on the searches", "It is")]
)
def test_several_parts_that_stay_on_the_page_are_told_in_the_plural(summary: str, rest: str) -> None:
    told = words(made(FoldedBlocks((Text(summary),), (paragraph("Hidden"),), is_detail=True)))

    assert f"Left out here: {summary}. {rest} in report.html." in told


@pytest.mark.parametrize("title", ["Forwarding of a card " * 20, "a/very_long.name/" * 30])
def test_the_header_of_later_pages_has_a_long_title_on_one_line_with_an_ellipsis(title: str) -> None:
    long = [paragraph(f"Sentence {number}.") for number in range(200)]
    lines = made(heading(1, "Part"), *long, title=title).pages[2].extract_text().splitlines()

    (header,) = [line for line in lines if "…" in line]
    assert header.startswith(title[:20].strip())
    assert sum(title[:10] in line for line in lines) == 1


def test_two_builds_are_equal_byte_for_byte(whole: bytes, whole_document: Document) -> None:
    assert pdf.make_pdf(whole_document, "run run-1", CREATED) == whole


@pytest.mark.parametrize(
    "text",
    [
        '#read("/etc/passwd")',
        "$x$ and $",
        "@ref",
        "<label>",
        "\\",
        "*b* _i_ `c`",
        "= H",
        "//x /*y",
        '#eval("1+1")',
        "]",
    ],
)
def test_no_text_is_code_to_typst(text: str) -> None:
    shown = words(made(heading(1, text), paragraph(text), Code(text), table((), ((cell(text),),)), title=text))

    assert "root:" not in shown
    assert shown.replace(" ", "").count(text.replace(" ", "")) >= 4


def test_a_word_of_a_megabyte_is_cut_and_stays_on_the_paper() -> None:
    long = "x" * 1_000_000
    reader = made(paragraph(long), table((), ((cell(long), cell("1")),)), title="t" * 500)

    assert len(reader.pages) < 60
    assert "996,000 more characters" in words(reader)


def test_a_link_leads_abroad_or_to_a_heading_and_nowhere_else() -> None:
    targets = ("#there", "#gone", "https://example.org/", "javascript:alert(1)", "file:///etc/passwd")
    links = (part for target in targets for part in (link("to", target), " "))
    reader = made(heading(1, "There", id="there"), paragraph(*links))
    notes = [note.get_object() for page in reader.pages for note in page.get("/Annots", [])]
    found = [str(note["/A"]["/URI"]) for note in notes if "/A" in note and "/URI" in note["/A"]]

    assert found == ["https://example.org/"]


def test_characters_that_no_font_has_do_no_harm() -> None:
    reader = made(paragraph("\U000f1234 is private"), title="日本")

    assert "is private" in words(reader)
    assert reader.root_object["/MarkInfo"]["/Marked"]


def test_a_table_that_is_longer_than_a_page_repeats_its_head() -> None:
    rows = ((cell(str(number)), cell("value")) for number in range(120))
    reader = made(table((heads("Number", "Measured"),), rows))
    pages = [page.extract_text() for page in reader.pages if "value" in page.extract_text()]

    assert len(pages) > 1
    assert all("Measured" in text for text in pages)


def wide(columns: int, text: str = "123 456") -> Table:
    above = ((NOTHING, head("over", columns=columns - 1)), heads(*(f"head {number}" for number in range(columns))))
    return table(above, ((cell(text),) * columns,))


@pytest.mark.parametrize("columns", [2, 8, 14, 21, 30, 75])
def test_no_table_is_wider_than_the_paper(columns: int) -> None:
    for part in fit_tables(wide(columns)):
        assert sum(part.widths) <= (LANDSCAPE if part.turned else PORTRAIT) + 0.5
        assert part.size >= 6.5


def test_what_does_not_fit_on_turned_paper_is_parts_that_hold_every_column() -> None:
    parts = fit_tables(wide(75))

    assert len(parts) > 1
    assert "part 1 of" in parts[0].table.title

    def titles(row: Row) -> list[str]:
        return [plain(cell.inlines) for cell in row.cells]

    assert all(titles(part.table.head[1])[0] == "head 0" for part in parts)
    assert [name for part in parts for name in titles(part.table.head[1])[1:]] == [f"head {n}" for n in range(1, 75)]
    assert all(titles(part.table.head[0])[1] == "over" for part in parts)


def test_what_stands_under_upper_heads_is_parts_rather_than_turned_paper() -> None:
    over = (NOTHING, head("one", columns=12), head("other", columns=12))
    numbers = heads(*map(str, range(12)))
    found = table((over, (head("Run"), *numbers, *numbers)), ((name("1"), *[cell("123.4")] * 24),))

    parts = fit_tables(found)

    assert [part.turned for part in parts] == [False, False]
    assert [plain(part.table.head[0].cells[1].inlines) for part in parts] == ["one", "other"]
    assert all(part.table.columns == 13 for part in parts)


def test_a_long_text_beside_numbers_makes_no_row_that_fills_a_page() -> None:
    found = table((), ((*[cell("123 456")] * 13, cell("t0 to t1: 100, " * 12)),))

    (part,) = fit_tables(found)

    assert part.most_lines < 12


def test_words_are_broken_behind_their_punctuation() -> None:
    assert max(map(len, tokens(breakable("/sys/devices/system/cpu/cpufreq/policy0/scaling_driver")))) <= 24
    assert breakable("short") == "short"
    assert re.sub("\u200b", "", breakable("a" * 99)) == "a" * 99


def test_without_typst_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data.importlib.util, "find_spec", lambda name: None if name == "typst" else object())

    with pytest.raises(NotReadyError, match=r"pip install 'nicbench\[pdf\]'"):
        pdf.make_pdf(document(paragraph("x")), "run run-1", CREATED)


def test_nothing_is_left_in_the_folder_for_passing_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data.tempfile, "tempdir", str(tmp_path))
    made(paragraph("x"))

    assert os.listdir(tmp_path) == []


def written(*blocks: Block) -> markdown.MarkdownText:
    return markdown.write_markdown(document(*blocks), "report-figures")


def shown(text: str) -> str:
    """As GitHub shows it: CommonMark with tables and links of bare addresses."""
    return MarkdownIt("commonmark", {"html": True, "linkify": False}).enable(["table", "strikethrough"]).render(text)


HOSTILE = [
    "a|b",
    "`c`",
    "*x* _y_ ~~z~~",
    "<b>t</b><script>alert(1)</script>",
    "[l](javascript:alert(1))",
    "![i](http://example.org/x.png)",
    "# h",
    "- item",
    "1. one",
    "&lt;",
    "\\",
    "$x$",
    "> quote",
    "=== ",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_is_shown_as_it_is(text: str) -> None:
    html = shown(escape_text(text))

    assert re.sub(r"</?p>|<!-- -->", "", html).strip() == re.sub(
        r'[<>&"]', lambda found: {"<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;"}[found[0]], text.strip()
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_a_cell_stays_one_cell(text: str) -> None:
    found = written(table((), ((cell(text), cell(as_code(text)), cell("end")),)))
    html = shown(found.text)

    assert html.count("<td") == 3
    assert html.count("<th ") == 3
    assert "<script" not in html
    assert "<img" not in html
    assert "<a " not in html


def test_code_is_shown_as_it_is() -> None:
    for text in ("a|b", "`tick`", "x\\y", "<b>", "ip -br a"):
        assert f"<code>{text}</code>" in unescape(shown(code(text)))


def test_a_fence_is_longer_than_any_in_the_text() -> None:
    assert shown(fence_lines("```\nx\n````")).count("<code") == 1


def test_an_address_in_a_text_is_no_link() -> None:
    assert "https://" not in escape_text("see https://example.org/x")


def test_a_line_with_a_break_stays_one_cell() -> None:
    found = written(table((), ((cell("0.5", BREAK, small("0.4 to 0.6")),),)))

    assert "| 0.5<br>0.4 to 0.6 |" in found.text


def test_heads_that_span_stand_before_each_head_below() -> None:
    above = ((NOTHING, head("NDR", columns=2)), heads("Frame\n[bytes]", "Rate", "Limit"))
    found = written(table(above, ((cell("64"), cell("1"), cell("2")),)))

    assert r"| Frame \[bytes\] | NDR: Rate | NDR: Limit |" in found.text
    assert "| ---: | ---: | ---: |" in found.text


def test_the_contents_lead_to_every_section(whole_document: Document) -> None:
    text = markdown.write_markdown(whole_document, "report-figures").text
    links = re.findall(r"^ *- \[.*\]\(#([^)]*)\)$", text, re.MULTILINE)
    anchors = Anchors()
    headings = [anchors.of(re.sub(r"\\(.)", r"\1", line)) for line in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]

    assert len(links) > 5
    assert set(links) <= set(headings)


def test_every_picture_is_there_and_named(whole_document: Document) -> None:
    found = markdown.write_markdown(whole_document, "report-figures")
    named = re.findall(r"!\[[^\]]+\]\(report-figures/([\w.-]+)\)", found.text)

    assert named == list(found.pictures)
    assert all(svg.startswith("<svg") and "var(" not in svg for svg in found.pictures.values())


def test_the_same_heading_again_has_a_number() -> None:
    anchors = Anchors()

    assert [anchors.of("Lab"), anchors.of("Lab"), anchors.of("Latency at 50 % of the NDR")] == [
        "lab",
        "lab-1",
        "latency-at-50--of-the-ndr",
    ]
