"""The results section: every result, configurations side by side where there are several, then each run by itself."""

from __future__ import annotations

from collections.abc import Iterator

from nicbench.report.document.blocks import Block, FoldedBlocks
from nicbench.report.document.inlines import inlines
from nicbench.report.drawing.figures import Figures
from nicbench.report.model import Report
from nicbench.report.sections import comparing
from nicbench.report.sections.editors import study_details
from nicbench.report.sections.results import other_results, runs
from nicbench.report.sections.statistics import statistics
from nicbench.report.sections.watched import failed_link_parts


def all_results(report: Report, figures: Figures) -> Iterator[Block]:
    """Yields the blocks of all results in the order in which a reader needs them."""
    yield from study_details(report, figures)
    yield from comparing.injected_faults(report.injected)
    compared = report.comparison
    if compared is None:
        yield from runs(report, figures)
        yield from statistics(report, figures)
    else:
        yield from comparing.compared_configurations(compared, report)
        yield from comparing.over_axes(compared, figures)
        yield from comparing.rates(compared, report, figures)
        yield from comparing.every_value(compared, report, figures)
        yield from statistics(report, figures)
        if report.runs_by_themselves:
            summary = inlines(f"Each run by itself: {', '.join(compared.order)}")
            yield FoldedBlocks(summary, tuple(runs(report, figures)), "runs", is_detail=True)
    yield from failed_link_parts(report.failed_links, figures)
    yield from other_results(report.other_results)
