"""What published studies have (``docs/studies/items.csv``), and what the commands that repeat it print.

``python -m nicbench_docs.items RUNS [NAME ...]`` runs the commands of the items, or those of these bench files and data
sets alone, unless the folder RUNS has a run of theirs. It writes the places of the reports that the items name to
``docs/studies/STUDY.txt``: of each the title, the heads and up to three rows of its table, or its first lines.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nicbench.cli.main import main
from nicbench.importing.reference.data_sets import data_sets

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs/studies"
ITEMS = FOLDER / "items.csv"
_NEEDED = {"esxi": "a host of ESXi", "sriov-guest": "a host of KVM and a card with virtual functions"}
_MOST_LINES = 2
_MOST_CHARACTERS = 400
_TITLE = re.compile(r"(?m)^(?=#+ |\*\*(?:Table|Figure) )")


@dataclass(frozen=True)
class Item:
    """A table, figure, setting or sentence of a study, and what repeats it: bench files, a test, places in reports."""

    number: int
    study: str
    published: str
    data_set: str | None
    bench_files: tuple[str, ...]
    test: str
    in_the_report: str
    note: str

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that show the published numbers, and that measure again."""
        runs = (f"nicbench run examples/{name}.yaml" for name in self.bench_files)
        if self.data_set is None:
            return tuple(runs)
        doing = "show" if data_sets()[self.data_set].reading is None else "import"
        return (f"nicbench reference {doing} {self.data_set}", *runs)

    @property
    def places(self) -> tuple[str, ...]:
        """Headings, or beginnings of titles, in the report."""
        return tuple(re.findall(r"“([^”]+)”", self.in_the_report))


def items() -> Iterator[Item]:
    """Yields every item, numbered from 1."""
    with ITEMS.open(encoding="utf-8") as file:
        for number, row in enumerate(csv.DictReader(file), 1):
            yield Item(
                number=number,
                study=row["study"],
                published=row["published"],
                data_set=row["data_set"] or None,
                bench_files=tuple(row["bench_files"].split()),
                test=row["test"],
                in_the_report=row["in_the_report"],
                note=row["note"],
            )


def printed_at(place: str, report: str) -> list[str]:
    """Returns what a report in Markdown has under a title with these words: its first table, or its first lines."""
    found: list[list[str]] = []
    for title, below in _parts(report):
        if place.lower() in title.lower():
            lines = [line.strip() for line in below.splitlines() if line.strip()]
            rows = [line for line in lines if line.startswith("|") and set(line) - set("|-: ")]
            if rows:
                return _cut([title, *rows[:3], *rows[3:][-1:]])
            found.append([title, *(line for line in lines if line[0] not in "|<!*[")][: 1 + _MOST_LINES])
    return _cut(max(found, key=len, default=[]))


def _parts(report: str) -> Iterator[tuple[str, str]]:
    """Yields each title with the heading above it, and what stands below; the first is that of the run."""
    heading = ""
    for part in _TITLE.split(re.sub(r"\\([^\w\s])", r"\1", report))[2:]:
        title, _, below = part.partition("\n")
        words = title.strip("#* ")
        if title.startswith("### "):
            heading = words
        yield words if heading in ("", words) else f"{heading}: {words}", below


def _cut(lines: Sequence[str]) -> list[str]:
    return [line if len(line) < _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]} ..." for line in lines]


def printed(study: str, outputs: Mapping[str, str]) -> str:
    """Returns the page of a study; ``outputs`` are tables, or reports in Markdown, by the commands that made them."""
    page: list[str] = []
    shown: dict[tuple[str, ...], int] = {}
    for item in items():
        if item.study != study:
            continue
        page.append(f"{item.number}. {item.published}")
        for command in item.commands:
            page.append(f"$ {command}")
            for lines in _places(item, outputs.get(command, "")):
                first = shown.setdefault((command, *lines), item.number)
                page += [f"  {line}" for line in lines] if first == item.number else [f"  {lines[0]}: see {first}"]
        page.append("")
    return "\n".join(page)


def _places(item: Item, output: str) -> list[list[str]]:
    """Returns the lines at each place of an item; of a report without any of them, its first table of results."""
    if not output.startswith("# "):
        return [output.splitlines()] if output else []
    # Of several tests of one method, each has the title of its own.
    found = [printed_at(f"{place}: {item.test}", output) or printed_at(place, output) for place in item.places]
    return [lines for lines in found if lines] or [printed_at("Table 2.", output)]


def output_of(command: str, runs: Path) -> str | None:
    """Returns the report of a command's run in this folder, made now where there is none, or the table that the command
    shows; None where it fails.
    """
    words = command.split()[1:]
    name = Path(words[-1]).stem
    if name in _NEEDED:
        return f"not run: it needs {_NEEDED[name]}"
    if "show" in words:
        with contextlib.redirect_stdout(io.StringIO()) as table:
            status = main(words)
        return "\n".join(line for line in table.getvalue().splitlines() if line[0] in "┃│") if status == 0 else None
    folder = runs / name
    if not folder.is_dir() and main([*words, "--runs", str(folder)]) != 0:
        return None
    if main(["report", "latest", "--runs", str(folder), "--format", "md"]) != 0:
        return None
    return next(folder.glob("*/report.md")).read_text(encoding="utf-8")


def write(runs: Path, names: Sequence[str]) -> None:
    """Writes what is printed for every study; with ``names``, of these bench files and data sets alone."""
    commands = {command: None for item in items() for command in item.commands}
    wanted = [command for command in commands if not names or Path(command.split()[-1]).stem in names]
    outputs = {command: output for command in wanted if (output := output_of(command, runs)) is not None}
    for study in {item.study: None for item in items()}:
        (FOLDER / f"{study}.txt").write_text(printed(study, outputs), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2:])
