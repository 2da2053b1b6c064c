"""The published frames tables by real command lines, as docs/import.md has them, and what their reports hold."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

PUBLISHED = "frametest_r750_2022_{}.csv"
DOCUMENTATION = Path(__file__).parents[2] / "docs" / "import.md"
REFERENCE = Path(__file__).parents[2] / "src/nicbench/importing/reference/data"
SUSTAINED = {
    ("read", "1x100"): ("9", "9"),
    ("read", "4x25"): ("2", "4"),
    ("write", "1x100"): ("9", "9"),
    ("write", "4x25"): ("3", "4"),
}


def page_of(nicbench: Any, file: str, content: str) -> tuple[str, str]:
    """What the terminal shows, and the report, of the command line that the documentation has for this file."""
    [line] = [line for line in DOCUMENTATION.read_text().splitlines() if line.startswith(f"nicbench import {file} ")]
    Path(file).write_text(content)
    ended = nicbench(*shlex.split(line)[1:], "--source", "Published frames tables", "--year", "2022")
    assert ended.status == 0, ended.stderr
    [path] = Path("runs").iterdir()
    return ended.stdout, (path / "report.html").read_text()


def sustained_in(page: str) -> dict[tuple[str, str], tuple[str, str]]:
    section = page.partition("Streams sustained</h3>")[2].partition("</table>")[0]
    rows = re.findall(
        r'<tr><th scope="row">(\w+)</th><th scope="row">(\w+)</th><td><strong>([^<]+)</strong></td><td>([^<]+)</td>',
        section,
    )
    return {(direction, name): (every, median) for direction, name, every, median in rows}


def rows_in(page: str, doing: str) -> dict[str, list[str]]:
    """Of the table of sums, the text of each cell."""
    table = page.partition(f"{doing}: sum of all instances, run by run</h3>")[2].partition("</table>")[0]
    rows = re.findall(r'<tr[^>]*><th scope="row">([^<]+)</th>(.*?)</tr>', table, re.DOTALL)
    return {head: re.findall(r"<td[^>]*>(?:<strong>)?([^<]*)", cells) for head, cells in rows}


def published(name: str) -> str:
    return (REFERENCE / PUBLISHED.format(name)).read_text()


def test_sums_of_runs(nicbench: Any) -> None:
    shown, page = page_of(nicbench, "sums.csv", published("sums"))
    assert sustained_in(page) == SUSTAINED
    said = (
        "Reading, “1x100” sustained 9 editors at 24\u00a0frames/s each (by the sum of their rates, within 1\u202f%) "
        "in each of 15 imported runs; “4x25” sustained 2 editors"
    )
    assert said in page
    assert said in shown
    assert "Imported: not measured by nicbench. The numbers are those of Published frames tables (2022)." in page
    rows = rows_in(page, "Reading")
    assert list(rows) == [*map(str, range(1, 16)), "Average", "Median", "Target"]
    assert rows["1"][:3] == ["25.2", "50.4", "75.5"]
    assert rows["Median"][:4] == ["25.2", "50.4", "75.6", "100.7"]
    assert rows["Target"] == [f"{24 * count:.1f}" for count in range(1, 13)] * 2
    assert "the file names no target; this is the usual one" in page
    assert "every instance of every run" not in page, "of sums alone nobody knows"


def test_rates_of_instances(nicbench: Any) -> None:
    _, page = page_of(nicbench, "instances.csv", published("read_instances"))
    assert sustained_in(page) == {place: held for place, held in SUSTAINED.items() if place[0] == "read"}
    assert "Reading: every instance of every run" in page
    assert "by the sum of their rates" not in page, "each of them is known"
    assert page.count("<h5 ") == 20
    assert "Std. Deviation is that of the population" in page


def test_printed_statistics(nicbench: Any) -> None:
    """A figure on each row."""
    _, page = page_of(nicbench, "statistics.csv", published("published_statistics"))
    assert sustained_in(page) == {place: held for place, held in SUSTAINED.items() if place[0] == "read"}
    assert "what the source prints over its runs" in page
    assert "Std. Deviation" in page
    assert rows_in(page, "Reading")["1"][0] == "50.4", "of one instance no sum is printed: unlike a sum of nothing"
