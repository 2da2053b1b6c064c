"""Markdown for a repository: nothing of a run becomes markup, and every picture and anchor is there."""

from __future__ import annotations

import re
from html import unescape

import pytest
from markdown_it import MarkdownIt

from nicbench.report import markdown
from nicbench.report.document.blocks import Block, Document
from nicbench.report.document.making import BREAK, NOTHING, cell, head, heads, small, table
from nicbench.report.document.making import code as as_code
from nicbench.report.markdown import Anchors, code, escape_text, fence_lines

from ._documents import document


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
