"""A study of editors on the terminal: the answer, and for each direction the sums over the number of instances."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nicbench.report.answer.of_studies import answers
from nicbench.report.editors.study import OneWay, Study
from nicbench.report.editors.words import rate_decimals, rate_text
from nicbench.stats.frames import OverRuns


def print_studies(console: Console, studies: Sequence[Study]) -> None:
    """Of several, everything says which test it is about. The report has every run and every instance."""
    for text in answers(studies):
        console.print(text, markup=False, soft_wrap=True)
    for study in studies:
        of = study.test if len(studies) > 1 else ""
        for way in study.ways:
            console.print(_table(study, way, of))


def _table(study: Study, way: OneWay, of: str) -> Table:
    """Of each configuration the median run, between the least and the greatest, and how many runs met the target."""
    about = ", ".join(filter(None, (of, way.doing and (way.doing.lower() if of else way.doing))))
    doing = f"{about}: sum" if about else "Sum"
    table = Table(
        header_style="bold", title=escape(f"{doing} of all instances [fps]"), title_justify="left", title_style="bold"
    )
    over = {name: way.over(name) for name in way.configurations}
    decimals = rate_decimals(one.minimum_frames_per_s for of in over.values() for one in of.values())
    table.add_column("instances", justify="right")
    if way.targets:
        table.add_column("target", justify="right")
    for name in way.configurations:
        table.add_column(escape(name) if study.named(name) else "median run", justify="right")
        if way.targets:
            table.add_column("met", justify="right")
    for count in way.counts:
        cells = [str(count)]
        if way.targets:
            each = dict.fromkeys(way.at[column].target for column in way.columns if column[1] == count)
            cells.append(", ".join("-" if one is None else rate_text(one.of(count), decimals) for one in each))
        for name in way.configurations:
            found = over[name].get(count)
            cells.append("-" if found is None else _sums(found, decimals))
            if way.targets:
                limited = found is not None and way.at[name, count].target is not None
                cells.append(_met(found) if found is not None and limited else "-")
        table.add_row(*cells)
    several = any(one.runs > 1 for of in over.values() for one in of.values())
    table.caption = "Median of the runs, between the least and the greatest" if several else None
    table.caption_justify = "left"
    return table


def _sums(over: OverRuns, decimals: int) -> str:
    median, least, most = (
        rate_text(rate, decimals)
        for rate in (over.median_frames_per_s, over.minimum_frames_per_s, over.maximum_frames_per_s)
    )
    return median if over.runs == 1 or least == most else f"{least} .. {median} .. {most}"


def _met(over: OverRuns) -> str:
    text = f"{over.runs_met} of {over.runs}"
    return f"[green]{text}[/]" if over.runs_met == over.runs else f"[yellow]{text}[/]"
