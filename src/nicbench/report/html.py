"""report.html: the view of a run rendered into one file without network; its one script makes the charts answer."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from nicbench import __version__
from nicbench.judge.repeats import RepeatPolicy
from nicbench.judge.rounds import MOST_REPEATS, OF_ROUNDS
from nicbench.model.report_wishes import Layout
from nicbench.report import answer, disclosure, facts, numbers
from nicbench.report.contents import with_contents
from nicbench.report.datasheet import cards
from nicbench.report.datasheet.sheets import sheets
from nicbench.report.drawing import charts
from nicbench.report.drawing.failed_link import failed_link_figure
from nicbench.report.drawing.figures import drawn, lead, search_figure, section_figures
from nicbench.report.drawing.moved import moved_figure
from nicbench.report.drawing.multiples import are_numbered, rate_multiples
from nicbench.report.drawing.rates import rates_chart
from nicbench.report.drawing.svg import identifiers
from nicbench.report.drawing.tail_bins import bins_chart
from nicbench.report.drawing.watched import watched_figure
from nicbench.report.editors.directories import directory_rows
from nicbench.report.editors.dots import dot_figures
from nicbench.report.editors.overview import overview_caption, overview_chart
from nicbench.report.editors.sharing import sharing_rows
from nicbench.report.editors.tables import instance_tables, measures, sum_tables, sustained_rows
from nicbench.report.editors.words import target_words
from nicbench.report.gather import gather
from nicbench.report.glossary import with_used_words
from nicbench.report.model import LatencyRow, Report, ThroughputRow
from nicbench.report.statistics import numerals as statistics_numerals
from nicbench.report.statistics.cells import comparison_cells, unit_beside, unit_head
from nicbench.report.statistics.dots import runs_figures
from nicbench.report.study import findings
from nicbench.report.study.procedures import procedures
from nicbench.report.study.question import questions
from nicbench.report.study.repeating import adaptations, prerequisites, spread
from nicbench.report.tables import names_line_rate, spoilt
from nicbench.report.testbed import picture
from nicbench.report.testbed.wiring import wirings
from nicbench.report.throughput import confirmed
from nicbench.report.zero_loss import tells_something, zero_loss_chart, zero_loss_table
from nicbench.store import RunFolder
from nicbench.store.files import write_atomically
from nicbench.units import format_bits_per_s, format_duration_s
from nicbench.visible import visible

_STYLE, _SCRIPT = "style.css", "charts.js"
_PRINTED_TRIALS = 400
"""A table of more is printed only where the reader has opened it: it would fill more than a dozen sheets."""


def build(folder: Path, layout: Layout | None = None) -> Path:
    """Writes the report of the run in ``folder`` and gives its path; a run that ended early gets one, too.

    ``layout`` is the bench file's where it is None. The page in that one is ``report.html``, another lies beside it.
    """
    run = RunFolder.open(folder)
    report = gather(run)
    layout = layout or report.wishes.layout
    path = run.path / file_name(layout, report.wishes.layout)
    write_atomically(path, render(report, layout).encode())
    return path


def file_name(layout: Layout, wished: Layout) -> str:
    """``report.html`` in the layout that the bench file wishes, else ``report-datasheet.html``."""
    return "report.html" if layout is wished else f"report-{layout.value}.html"


def render(report: Report, layout: Layout | None = None) -> str:
    """The page."""
    return rendered(report, f"layouts/{(layout or report.wishes.layout).value}.html.j2")


def rendered(report: Report, template_name: str, **more: Any) -> str:
    """The page of any template, with what it shows beside the report."""
    numbered = identifiers()
    alone = report.comparison is None  # a comparison is drawn once, and each run by itself has its tables alone
    of_sections = {id(section): section_figures(section, numbered) for section in report.sections} if alone else {}
    measured = any(table.rows for table in report.throughput)
    template = _environment().get_template(template_name)
    script = _ours(_SCRIPT)
    page = template.render(
        **more,
        report=report,
        style=_ours(_STYLE),
        script=script,
        script_hash=_hash(script),
        lead=lead(of_sections, report, measured) if alone else None,
        figures_of=lambda section, wanted=alone: (
            (of_sections.get(id(section)) or section_figures(section, numbered)) if wanted else ()
        ),
        search_figure=lambda table: search_figure(report, table, numbered) if alone else None,
        throughput_figure=lambda table: (
            drawn(partial(charts.throughput_chart, plan=report.plan), table, numbered, "Frame rate by frame size")
            if alone
            else None
        ),
        zero_loss_figure=lambda table: (
            drawn(zero_loss_chart, table, numbered, "Frame rate without loss")
            if alone and tells_something(table, report)
            else None
        ),
        rates_figure=lambda table, goal: drawn(
            lambda rates, form: rates_chart(rates, goal, form), table, numbered, f"{goal.name} by frame size"
        ),
        rate_multiples=lambda table, goal: rate_multiples(table, goal, numbered),
        bins_figure=lambda table, wanted=alone: (
            drawn(bins_chart, table, numbered, f"Long tail at {table.load}") if wanted else None
        ),
        overview_figure=lambda study, way: drawn(
            partial(overview_chart, compares=study.compares), way, numbered, "Sum of all instances by their number"
        ),
        dot_figures=lambda study, way: dot_figures(study, way, numbered),
        runs_figures=lambda test: runs_figures(test, numbered),
        failed_link_figure=lambda failed: failed_link_figure(failed, numbered),
        watched_figure=lambda view: watched_figure(view, numbered),
        moved_figure=lambda moved, host: moved_figure(moved, host, numbered),
        tail_figure=lambda table: (
            drawn(charts.tail_chart, table, numbered, f"Latency tail at {table.load}", "latency.hlog")
            if alone
            else None
        ),
    )
    return visible(
        with_contents(with_used_words(page))
    )  # of the page as a whole: what turns text around would reach into what is ours


def _ours(name: str) -> Markup:
    """A file beside the templates, as it is."""
    return Markup((files("nicbench.report") / "templates" / name).read_text(encoding="utf-8"))  # noqa: S704 - ours


def _hash(script: str) -> str:
    """As the page's policy names the one script that a browser may run."""
    whole = f"\n{script}"  # all between the tags
    return f"sha256-{base64.b64encode(hashlib.sha256(whole.encode()).digest()).decode()}"


def _environment() -> Environment:
    """Everything is escaped: titles, host names and command lines come from others."""
    environment = Environment(
        loader=PackageLoader("nicbench.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    names = (
        "mpps",
        "gigabits",
        "microseconds",
        "milliseconds",
        "percent",
        "seconds",
        "share",
        "uncertainty",
        "whole",
        "significant",
    )
    environment.filters.update({name: getattr(numbers, name) for name in names})
    environment.filters.update(basis=numbers.basis_words, label=facts.label_of)
    environment.filters.update(duration_s=format_duration_s, bits_per_s=format_bits_per_s)
    environment.globals.update(
        facts=facts.facts,
        columns=facts.columns,
        known_rows=facts.known_rows,
        spans=facts.spans,
        plain=facts.plain,
        named=facts.named,
        interval=numbers.interval,
        only_below=numbers.only_below,
        rate_words=numbers.rate_words,
        confirmed=confirmed,
        limit=numbers.limit,
        threshold=numbers.threshold,
        bounds_decimals=numbers.bounds_decimals,
        mpps_decimals=numbers.mpps_decimals,
        goal_clause=answer.goal_clause,
        throughput_caption=charts.throughput_caption,
        breakable=_breakable,
        beneath=_beneath,
        arguments=_arguments,
        spoilt=spoilt,
        of_configurations=disclosure.of_configurations,
        names_line_rate=names_line_rate,
        zero_loss_table=zero_loss_table,
        repeat_policy=RepeatPolicy(),
        most_repeats=MOST_REPEATS,
        of_rounds=OF_ROUNDS,
        printed_trials=_PRINTED_TRIALS,
        place_of_throughput=findings.place_of_throughput,
        place_of_rates=findings.place_of_rates,
        place_of_latencies=findings.place_of_latencies,
        place_of_study=findings.place_of_study,
        place_of_latency=findings.place_of_latency,
        place_of_section=findings.place_of_section,
        questions=_questions,
        findings=findings.findings,
        procedures=procedures,
        prerequisites=prerequisites,
        adaptations=adaptations,
        spread=spread,
        own_version=__version__,
        sheets=sheets,
        setup_card=cards.setup,
        settings_card=cards.settings,
        wirings=wirings,
        testbed_picture=picture.drawn,
        file_link=_file_link,
        disclosed_lab=disclosure.lab,
        disclosed_tester=disclosure.tester,
        disclosed_command=disclosure.command,
        are_numbered=are_numbered,
        threshold_why=disclosure.threshold_why,
        near_limit=_near_limit,
        overview_caption=overview_caption,
        share=numbers.share,
        directory_rows=directory_rows,
        sum_tables=sum_tables,
        measures=measures,
        sharing_rows=sharing_rows,
        instance_tables=instance_tables,
        sustained_rows=sustained_rows,
        target_words=target_words,
        comparison_cells=comparison_cells,
        plain_figure=statistics_numerals.plain,
        within=statistics_numerals.within,
        ratio_percent=statistics_numerals.percent,
        unit_head=unit_head,
        unit_beside=unit_beside,
    )
    return environment


def _questions(report: Report) -> tuple[str, ...]:
    compared = report.comparison.names if report.comparison and report.comparison.compares else ()
    methods = [result.method for result in report.other_results]
    return questions(report.plan, report.wishes, methods, compared or _imported_beside(report))


def _imported_beside(report: Report) -> tuple[str, ...]:
    """Configurations that an import brought, of which its plan knows nothing."""
    of_studies = next((study.configurations for study in report.studies if study.compares), ())
    return of_studies or (findings.configurations_of(report) if report.imported else ())


def _near_limit(rows: Iterable[ThroughputRow | LatencyRow]) -> tuple[str, ...]:
    """The frame sizes of a table at which a result is near the tester's own limit, by the result's own word."""
    return tuple(row.size_words for row in rows if row.result.near_tester_limit)


def _file_link(name: str) -> Markup:
    """The name of a file of the run folder as a link to it; a name that leads elsewhere is no link."""
    parts = name.split("/")
    if not all(parts) or ".." in parts or "\\" in name:
        return escape(name)
    return Markup('<a href="./{}">{}</a>').format(quote(name), name)


def _arguments(line: str) -> Markup:
    """A command line that is broken between its arguments and not at their hyphens."""
    return Markup(" ").join(Markup('<span class="argument">{}</span>').format(word) for word in line.split(" "))


def _breakable(text: str) -> Markup:
    """A long name may be broken after its slashes, dots and underscores."""
    parts = re.split(r"(?<=[/._])(?=\w)", text)
    return Markup("<wbr>").join(parts)


_SEVERAL_RUNS = re.compile(r"(?P<median>.*\S) \((?P<runs>[^()]* to [^()]*|\d+ of \d+ runs)\)")


def _beneath(text: str) -> Markup:
    """A cell of several runs: the median, and beneath it how far they lie apart."""
    found = _SEVERAL_RUNS.fullmatch(text)
    if found is None:
        return escape(text)
    return Markup('{}<br><span class="caption">{}</span>').format(found["median"], found["runs"])
