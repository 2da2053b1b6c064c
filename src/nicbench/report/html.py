"""report.html: a document as one file that needs no network; its one script lets charts and tables answer.

Every text is escaped, because titles, host names and command lines come from others.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files

from markupsafe import escape

from nicbench.core.redaction import make_visible
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
    Inlines,
    Listing,
    Note,
    Panel,
    Paragraph,
    Row,
    Table,
    TableLook,
    Text,
    Tone,
    Verdict,
)

_CLASSES: dict[Tone, str] = {
    "quiet": "quiet",
    "good": "valid",
    "warn": "disturbed",
    "bad": "incomplete",
    "missed": "missed",
}
"""Classes of the style sheet, by the tone of a text."""
_AROUND: dict[TableLook, str] = {
    "result": "scroll result",
    "heat": "scroll result heat",
    "sums": "scroll result sums",
    "broad": "scroll result sums broad",
    "measures": "scroll result sums measures",
}
"""Classes of the element within which a table is scrolled sideways, by the kind of table."""
_OF_TABLES: dict[TableLook, str] = {
    "facts": "facts",
    "system": "facts system",
    "ledger": "ledger",
    "testbed": "testbed",
}


def write_html(document: Document) -> str:
    """Returns the document as an HTML page."""
    main = "\n".join(_blocks(document.blocks))
    script = _script(zooms=_has_dense_charts(main))
    title = escape(document.title)
    header = _blocks(document.header)
    # The title stands below the eyebrow, where there is one.
    eyebrow, others = (header[:1], header[1:]) if _has_eyebrow(document) else ([], header)
    head = "\n".join(
        (
            "<!DOCTYPE html>",
            f'<html lang="{escape(document.language)}">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">',
            f'<meta name="generator" content="{escape(document.generator)}">',
            f"<title>{title}</title>",
            f"<style>\n{_style()}\n</style>",
            f'<script type="module">\n{script}</script>',
            "</head>",
        )
    )
    body = "\n".join(
        (
            "<body>",
            "<header>",
            *_logo(document.logo),
            *eyebrow,
            f"<h1>{title}</h1>",
            *others,
            "</header>",
            *_contents(document),
            "<main>",
            main,
            "</main>",
            f"<footer>{_inlines(document.footer)}</footer>",
            "</body>",
            "</html>",
        )
    )
    return make_visible(f"{head}\n{body}\n")


def _logo(png: bytes) -> Iterator[str]:
    if png:
        source = f"data:image/png;base64,{base64.b64encode(png).decode()}"
        yield f'<img class="logo" src="{source}" alt="The publisher’s logo">'


def fragment(*blocks: Block) -> str:
    """Returns blocks as HTML without the page around them."""
    return "\n".join(_blocks(blocks))


def style() -> str:
    """Returns the style sheet; its light colours are also those of paper."""
    return _asset("style.css")


@cache
def _asset(name: str) -> str:
    return (files("nicbench.report") / name).read_text(encoding="utf-8")


@cache
def _style() -> str:
    """Returns the style sheet without its comments and the spaces that it can do without."""
    text = re.sub(r"/\*.*?\*/", "", _asset("style.css"), flags=re.DOTALL)
    text = re.sub(r"\s*\n\s*", "\n", text.strip())
    return re.sub(r"([;{,:]) +", r"\1", re.sub(r" +\{", "{", text))


@cache
def _script(*, zooms: bool) -> str:
    """Returns the page's script: its files without their comments and indents, which a page need not carry."""
    names = (*(("zoom.js",) if zooms else ()), "charts.js", "tables.js")
    lines = (line.strip() for name in names for line in _asset(name).splitlines())
    return "\n".join(_COMMENT.sub("", line) for line in lines if line and not line.startswith("//")) + "\n"


_COMMENT = re.compile(r" // [^\"'`]*$")
_DENSE = 60
"""The least number of marks on a page at which a part of a chart may be worth seeing larger."""


def _has_dense_charts(blocks: str) -> bool:
    return "data-points=" in blocks or blocks.count("data-says=") >= _DENSE


def _policy(script: str) -> str:
    """Returns the content security policy: the browser runs the one script, and fetches nothing."""
    whole = f"\n{script}"  # all between the tags
    digest = base64.b64encode(hashlib.sha256(whole.encode()).digest()).decode()
    return f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:"


def _has_eyebrow(document: Document) -> bool:
    first = document.header[0] if document.header else None
    return isinstance(first, Paragraph) and first.role == "eyebrow"


def _contents(document: Document) -> Iterator[str]:
    """Yields the table of contents, which is folded on a phone."""
    if document.contents:
        items = "".join(
            f'<li><a href="#{escape(heading.id)}">{_inlines(heading.inlines)}</a></li>' for heading in document.contents
        )
        folded = f"<details><summary>Contents</summary><ul>{items}</ul></details>"
        yield f'<nav class="contents" aria-label="Contents">{folded}</nav>'


def _blocks(blocks: Iterable[Block]) -> list[str]:
    return list(map(_block, blocks))


def _block(block: Block) -> str:
    match block:
        case Heading():
            tag = f"h{block.level + 1}"
            return f"<{tag}{_attribute('id', block.id)}>{_inlines(block.inlines)}</{tag}>"
        case Paragraph():
            return _paragraph(block)
        case Verdict():
            badges = " ".join(_run(badge) for badge in block.badges)
            return f'<div class="verdict"><span>{badges}</span><p>{_inlines(block.inlines)}</p></div>'
        case Table():
            return _table(block)
        case Facts():
            return _facts(block.facts)
        case Figure():
            return _figure(block)
        case Code(file=""):
            return f"<pre>{escape(block.text)}</pre>"
        case Code():
            address = f"data:text/plain;base64,{base64.b64encode(make_visible(block.text).encode()).decode()}"
            name = escape(block.file)
            return f'<p><a download="{name}" href="{address}">{name}</a>, {len(block.text.splitlines())} lines</p>'
        case Listing():
            tag = "ol" if block.ordered else "ul"
            items = "\n".join(f"<li>{_inlines(item)}</li>" for item in block.items)
            return f"<{tag}{_attribute('class', block.look)}>{items}</{tag}>"
        case Definitions():
            pairs = "\n".join(f"<dt>{_inlines(word)}</dt><dd>{_inlines(told)}</dd>" for word, told in block.pairs)
            return f"<dl>\n{pairs}\n</dl>"
        case Note():
            return f'<div class="{block.look}">{"".join(_blocks(block.blocks))}</div>'
        case FoldedBlocks():
            return _folded(block)
        case Group(look="folded"):
            above, *behind = _blocks(block.blocks)
            folded = f"<details><summary>{above}</summary>\n{chr(10).join(behind)}\n</details>"
            return f'<section class="folded">\n{folded}\n</section>'
        case Group():
            tag = "div" if block.look in ("besides", "overview") else "section"
            inner = "\n".join(_blocks(block.blocks))
            return f"<{tag}{_attribute('class', block.look)}>\n{inner}\n</{tag}>"


def _folded(block: FoldedBlocks) -> str:
    classes = " ".join(filter(None, ("many" if block.is_for_screens else "", block.look)))
    is_open = " open" if block.is_open else ""
    opening = f"<details{_attribute('id', block.id)}{_attribute('class', classes)}{is_open}>"
    inner = "\n".join(_blocks(block.blocks))
    return f"{opening}<summary>{_inlines(block.summary)}</summary>\n{inner}\n</details>"


def _figure(figure: Figure) -> str:
    if figure.is_of_multiples:
        classes = "multiples of-runs" if figure.look == "of-runs" else "multiples"
        small = "\n".join(f"<figure>{_panel(panel)}{_below(panel.caption)}</figure>" for panel in figure.panels)
        below = f'\n<p class="caption">{_inlines(figure.caption)}</p>' if figure.caption else ""
        return f'<div class="{classes}">\n{small}\n</div>{below}'
    kind = " diagram" if figure.look == "testbed-picture" else ""
    panels = "".join(_panel(panel, kind) for panel in figure.panels)
    return f"<figure{_attribute('class', figure.look)}>{panels}{_below(figure.caption)}</figure>"


def _panel(panel: Panel, kind: str = "") -> str:
    """Returns a panel with both drawings, of which the style sheet shows the one that fits."""
    above = f"<p>{_inlines(panel.head)}</p>" if panel.head else ""
    if panel.narrow is None:
        return f"{above}{panel.drawing.svg}"
    wide = f'<div class="wide{kind}">{panel.drawing.svg}</div>'
    narrow = f'<div class="narrow{kind}">{panel.narrow.svg}</div>'
    return f"{above}{wide}{narrow}"


def _below(caption: Inlines) -> str:
    return f"<figcaption>{_inlines(caption)}</figcaption>" if caption else ""


def _paragraph(block: Paragraph) -> str:
    if not block.inlines:
        return ""
    return f"<p{_attribute('class', block.role)}>{_inlines(block.inlines)}</p>"


def _table(table: Table) -> str:
    head = "".join(
        _row(row, table, in_head=True, is_over=at < len(table.head) - 1) for at, row in enumerate(table.head)
    )
    groups: list[list[str]] = [[]]
    for row in table.body:
        if row.begins_group and groups[-1]:
            groups.append([])
        groups[-1].append(_row(row, table))
    caption = f'<caption class="caption">{_inlines(table.caption)}</caption>' if table.caption else ""
    above = f"<thead>{head}</thead>\n" if head else ""
    body = "\n".join(f"<tbody>\n{chr(10).join(rows)}\n</tbody>" for rows in groups)
    whole = f"<table{_attribute('class', _OF_TABLES.get(table.look, ''))}>{caption}{above}{body}</table>"
    if table.look == "facts" and not table.head:
        return whole
    return f'<div class="{_AROUND.get(table.look, "scroll")}">{whole}</div>'


def _row(row: Row, table: Table, *, in_head: bool = False, is_over: bool = False) -> str:
    look = "over" if is_over else row.look
    cells = "".join(_cell(cell, row, table, in_head=in_head) for cell in row.cells)
    return f"<tr{_attribute('class', look)}>{cells}</tr>"


def _cell(cell: Cell, row: Row, table: Table, *, in_head: bool) -> str:
    inner = "".join(_run(run, "strong") for run in cell.inlines)
    is_words = cell.words and table.look not in ("facts", "system")
    if is_words or cell.tone or cell.look or cell.columns > 1 or cell.rows > 1 or cell.title or cell.heat is not None:
        names = ("words" if is_words else "", _CLASSES.get(cell.tone, ""), cell.look)
        span = f' colspan="{cell.columns}"' if cell.columns > 1 else ""
        span += f' rowspan="{cell.rows}"' if cell.rows > 1 else ""
        heat = f' style="--heat: {cell.heat}%"' if cell.heat is not None else ""
        more = f"{_attribute('class', ' '.join(filter(None, names)))}{span}{_attribute('title', cell.title)}{heat}"
        if is_words and cell.columns > 1 and not cell.is_head:
            inner = f'<span class="held">{inner}</span>'
    else:
        more = ""
    if not cell.is_head or not cell.inlines:  # a heading that says nothing is none
        return f"<td{more}>{inner}</td>"
    of_head = "colgroup" if cell.columns > 1 else "col"
    of_row = "rowgroup" if row.look == "about" else "row"
    return f'<th scope="{of_head if in_head else of_row}"{more}>{inner}</th>'


def _facts(facts: Iterable[Fact]) -> str:
    """Returns facts as a table; facts within others are a table within a cell."""
    rows = "\n".join(map(_fact, facts))
    return f'<table class="facts tree"><tbody>\n{rows}\n</tbody></table>'


def _fact(fact: Fact) -> str:
    if fact.children:
        inner = _facts(fact.children)
    elif fact.beside:
        inner = _table(fact.beside)
    elif fact.code:
        inner = "<br>".join(_run(Text(line, code=True)) for line in fact.code)
    else:
        inner = _inlines(fact.inlines)
    group = ' class="group"' if fact.children or fact.beside else ""
    return f'<tr{group}><th scope="row">{_inlines(fact.label)}</th><td>{inner}</td></tr>'


def _attribute(name: str, value: str | None) -> str:
    return f' {name}="{escape(value)}"' if value else ""


def _inlines(inlines: Inlines) -> str:
    return "".join(map(_run, inlines))


def _run(run: Text | Drawing, bold: str = "b") -> str:
    if isinstance(run, Drawing):
        return run.svg
    text = str(escape(run.text))
    if "\n" in text:
        text = text.replace("\n", "<br>")
    if "\u200b" in text:
        text = text.replace("\u200b", "<wbr>")
    if run.code:
        text = f"<code>{_arguments(text)}</code>"
    if run.raised:
        text = f"<sup>{text}</sup>"
    classes = _classes(run)
    if run.strong:
        text = f"<{bold}{_attribute('class', classes)}{_attribute('title', run.title)}>{text}</{bold}>"
    elif classes or (run.title and not run.link):
        text = f"<span{_attribute('class', classes)}{_attribute('title', run.title)}>{text}</span>"
    if run.link:
        text = f'<a href="{escape(run.link)}"{_attribute("title", run.title)}>{text}</a>'
    return text


def _classes(run: Text) -> str:
    if run.small:
        return "caption"
    if run.badge:
        return f"badge {_CLASSES.get(run.tone, '') if run.tone != 'quiet' else 'label'}"
    return _CLASSES.get(run.tone, "")


def _arguments(line: str) -> str:
    """Returns a command line that is broken between its arguments and not at their hyphens."""
    words = line.split(" ")
    return line if len(words) == 1 else " ".join(f'<span class="argument">{word}</span>' for word in words)
