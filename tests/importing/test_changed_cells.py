"""Every changed cell of a published table that a sum, mean, median or deviation can reveal is found by an import.

What can be revealed is decided by exact arithmetic of its own (``tests/stats/reachable.py``).
"""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest
from tests.stats.reachable import Reach, average_reach, deviation_reach, median_reach, sum_reach

from nicbench.importing.columns import parse_unit
from nicbench.importing.results import ImportedResults

REFERENCE = Path(__file__).parents[2] / "src/nicbench/importing/reference/data"
CHANGES = 10
HEADS = ("direction", "configuration", "instances", "run", "instance", "rate [fps]")
STATISTICS = ("sum", "average", "stdev", "median", "target")

Imported = Callable[..., ImportedResults]


@dataclass(frozen=True)
class Place:
    """A cell of a table: the run (None: of all runs), and an instance or a statistic."""

    run: int | None
    column: int | str


@dataclass(frozen=True)
class Table:
    """The instances of a configuration's runs, what the source prints of each run, and of all of them."""

    configuration: str
    instances: int
    cells: dict[Place, str]

    def text(self) -> str:
        """As a CSV with a row for each instance, for each run, and for all runs."""
        lines = [",".join((*HEADS, *(f"{name} [fps]" for name in STATISTICS)))]
        for place, printed in self.cells.items():
            if isinstance(place.column, int):
                lines.append(self._line(place.run, place.column, printed))
        for run in (*dict.fromkeys(place.run for place in self.cells if place.run is not None), None):
            printed = [self.cells.get(Place(run, name), "") for name in STATISTICS]
            lines.append(self._line(run, "", "", *printed))
        return "\n".join(lines)

    def _line(self, run: int | None, *cells: int | str) -> str:
        known = (*cells, *("" for _ in range(len(STATISTICS) + 2 - len(cells))))
        place = ("read", self.configuration, self.instances, "" if run is None else run)
        return ",".join(str(cell) for cell in (*place, *known))


def lines(name: str) -> list[dict[str, str]]:
    with (REFERENCE / f"frametest_r750_2022_{name}.csv").open() as file:
        return list(csv.DictReader(file))


@cache
def tables() -> tuple[Table, ...]:
    """The published tables of instances, each with its sums and statistics."""
    found = {}
    for row in lines("read_instances"):
        cells = found.setdefault((row["configuration"], int(row["instances"])), {})
        cells[Place(int(row["run"]), int(row["instance"]))] = row["fps"]
    for row in lines("sums"):
        cells = found.get((row["configuration"], int(row["instances"])), {})
        if row["direction"] == "read":
            cells[Place(int(row["run"]), "sum")] = row["fps_sum"]
    for row in lines("published_statistics"):
        cells = found.get((row["configuration"], int(row["instances"])), {})
        if row["direction"] == "read":
            cells[Place(int(row["run"]) if row["run"] else None, row["statistic"])] = row["value"]
    return tuple(Table(*key, cells) for key, cells in found.items())


def units(table: Table) -> dict[tuple[bool, str], Fraction]:
    """One unit of the last digit of each column: zeros at the end are not printed, a tenth is."""
    digits = {}
    for place, printed in table.cells.items():
        key = column_of(place)
        digits[key] = max(digits.get(key, 1), len(printed.partition(".")[2]))
    return {key: Fraction(1, 10**count) for key, count in digits.items()}


def column_of(place: Place) -> tuple[bool, str]:
    return place.run is None, "rate" if isinstance(place.column, int) else place.column


def contradictions(table: Table, unit: dict[tuple[bool, str], Fraction]) -> set[tuple[Place, str]]:
    """Every statistic that no numbers have which round to the figures that it summarises.

    Deviations are the population's; where all of a table could be the sample's, none of them is wrong.
    """
    statistics = list(statistics_of(table, unit))
    wrong = {(place, against) for place, against, reach in statistics if not holds(table, unit, place, reach)}
    deviations = [(place, reach) for place, _, reach in statistics if place.column == "stdev"]
    if table.instances > 1:
        more = Fraction(table.instances, table.instances - 1)
        of_samples = [
            (place, Reach(one.lowest * more, one.highest * more, is_squared=True)) for place, one in deviations
        ]
        if all(holds(table, unit, place, reach) for place, reach in of_samples):
            wrong = {(place, against) for place, against in wrong if place.column != "stdev"}
    return wrong


def holds(table: Table, unit: dict[tuple[bool, str], Fraction], place: Place, reach: Reach) -> bool:
    return reach.holds(Fraction(table.cells[place]), unit[column_of(place)])


def statistics_of(table: Table, unit: dict[tuple[bool, str], Fraction]) -> Iterator[tuple[Place, str, Reach]]:
    value = {place: Fraction(printed) for place, printed in table.cells.items()}
    runs = dict.fromkeys(place.run for place in value if place.run is not None)
    of_rates = {"sum": sum_reach, "average": average_reach, "stdev": deviation_reach}
    for run in runs:
        rates = [value[Place(run, instance)] for instance in range(1, table.instances + 1)]
        for name, reach in of_rates.items():
            if Place(run, name) in value:
                yield Place(run, name), "rates", reach(rates, unit[False, "rate"])
        if Place(run, "average") in value:
            summed, half = value[Place(run, "sum")], unit[False, "sum"] / 2
            of_sum = Reach((summed - half) / table.instances, (summed + half) / table.instances)
            yield Place(run, "average"), "sum", of_sum
    sums = [value[Place(run, "sum")] for run in runs]
    for name, reach in (("average", average_reach), ("median", median_reach)):
        yield Place(None, name), "sums", reach(sums, unit[False, "sum"])


def changed(draw: random.Random, table: Table, unit: dict[tuple[bool, str], Fraction]) -> tuple[Place, Table]:
    """With one cell more or less by 1.0, or by one unit of its last digit, written with the digits of both."""
    kinds = sorted({column_of(place) for place in table.cells if place.column != "target"})
    kind = draw.choice(kinds)
    place = draw.choice([place for place in table.cells if column_of(place) == kind])
    step = draw.choice((Decimal("1"), Decimal(unit[kind].numerator) / Decimal(unit[kind].denominator)))
    return place, replace(table, cells={**table.cells, place: stepped(draw, table.cells[place], step)})


def stepped(draw: random.Random, printed: str, step: Decimal) -> str:
    was = Decimal(printed)
    return f"{was - step if draw.random() < 0.5 and was >= step else was + step:f}"


def found_in(imported: Imported, table: Table) -> set[tuple[int | None, str, str]]:
    """The errata: the run, what is wrong, and the reason."""
    taken = imported(table.text(), "frames", configurations=("configuration",), errata=True)
    return {(result.parameters.get("run"), one.value, one.reason) for result, one in taken.errata}


def test_what_the_source_printed_is_possible_but_for_its_two_known_errata(imported: Imported) -> None:
    found = [(table, one) for table in tables() for one in sorted(found_in(imported, table))]
    assert [(table.configuration, table.instances, run, value) for table, (run, value, _) in found] == [
        ("4x25", 1, 3, "sum_frames_per_s"),
        ("4x25", 1, 15, "standard_deviation_frames_per_s"),
    ]


def test_every_change_that_can_be_revealed_is_found(
    imported: Imported, draw: random.Random, record_property: Callable[[str, object], None]
) -> None:
    revealed = Counter()
    hidden = 0
    before = {number: found_in(imported, table) for number, table in enumerate(tables())}
    while revealed.total() < CHANGES:
        number = draw.randrange(len(tables()))
        table = tables()[number]
        unit = units(table)
        place, other = changed(draw, table, unit)
        news = contradictions(other, unit) - contradictions(table, unit)
        if not news:
            hidden += 1
            continue
        found = found_in(imported, other) - before[number]
        assert {one.run for one, _ in news} & {run for run, *_ in found}, (
            table.configuration,
            place,
            other.cells[place],
        )
        assert all(names_the_rows(reason) for *_, reason in found)
        revealed[column_of(place)[1]] += 1
    by_column = ", ".join(f"{name} {number}" for name, number in sorted(revealed.items()))
    record_property(
        "shown", f"{CHANGES} of {CHANGES} changed cells found ({by_column}); {hidden} could not be revealed"
    )


def names_the_rows(reason: str) -> bool:
    """Whether it says which rows or figures the contradiction is with."""
    return "the first on line" in reason or "with a sum of" in reason or "of one instance" in reason


@dataclass(frozen=True)
class Row:
    """A row of a published table of rates: what is printed, and what the link carries."""

    line: int
    cells: dict[str, str]

    def is_possible(self) -> bool:
        """Whether rate, line rate, share and bit rate agree, by exact arithmetic."""
        ports, gigabits = (Fraction(part) for part in self.cells["ports"].removesuffix("GbE").split("x"))
        size = int(self.cells["frame_bytes"])
        line = ports * gigabits * 1000 / ((size + 20) * 8)
        least, most = ends(self.cells["frame_rate_mpps"])
        fits = [within(line, self.cells["line_rate_mpps"]), least <= line]
        if share := self.cells.get("percent_of_line_rate"):
            fits += [overlap(share, 100 * least / line, 100 * most / line), ends(share)[0] <= 100]
        if throughput := self.cells.get("throughput_gbps"):
            fits += [overlap(throughput, least * size * 8 / 1000, most * size * 8 / 1000)]
            fits += [ends(throughput)[0] <= line * size * 8 / 1000]
        return all(fits)


def ends(printed: str) -> tuple[Fraction, Fraction]:
    half = Fraction(1, 2 * 10 ** len(printed.partition(".")[2]))
    return Fraction(printed) - half, Fraction(printed) + half


def within(value: Fraction, printed: str) -> bool:
    least, most = ends(printed)
    return least <= value <= most


def overlap(printed: str, least: Fraction, most: Fraction) -> bool:
    return ends(printed)[0] <= most and least <= ends(printed)[1]


@pytest.mark.parametrize(
    ("file", "method", "options"),
    [
        ("connectx5_dpdk1908_zero_loss", "throughput", {"configurations": ("nic", "scope"), "ignore": ("test", "dut")}),
        (
            "connectx5_dpdk1908_single_core",
            "single-core",
            {
                "configurations": ("nic",),
                "ignore": ("test", "dut", "cpu_frequency_ghz", "cpu_cycles_per_packet"),
                "units": {"throughput_gbps": parse_unit("Gb/s L2")},
            },
        ),
    ],
)
def test_every_changed_rate_that_its_row_contradicts_is_found(
    imported: Imported, draw: random.Random, file: str, method: str, options: dict[str, object]
) -> None:
    heads, *texts = (REFERENCE / f"{file}.csv").read_text().splitlines()
    rows = [Row(line, dict(zip(heads.split(","), text.split(","), strict=True))) for line, text in enumerate(texts)]
    rows = [row for row in rows if row.is_possible()]
    columns = [name for name in heads.split(",") if name.endswith(("mpps", "gbps", "line_rate"))]
    revealed = 0
    while revealed < CHANGES:
        row, column = draw.choice(rows), draw.choice(columns)
        last = Decimal(1).scaleb(-len(row.cells[column].partition(".")[2]))
        cells = {**row.cells, column: stepped(draw, row.cells[column], draw.choice((Decimal("1.0"), last)))}
        found = imported(
            f"{heads}\n{','.join(cells.values())}", method, columns={"ports": "link"}, errata=True, **options
        ).errata
        if not Row(row.line, cells).is_possible():
            revealed += 1
            assert found, cells
        else:
            assert not found, cells


def test_what_all_ports_carry_is_the_sum_of_their_clients(imported: Imported, draw: random.Random) -> None:
    heads = "link,duplex,port,client,at once,throughput_mbps"
    clients = [
        f"100Mb/s,{row['duplex']},{row['port']},{row['client']},together,{row['throughput_mbps']}"
        for row in rows_of("nsfnic4_2000_two_clients_per_port")
    ]
    combined = [
        f"4x100Mb/s,{row['duplex']},all,,together,{row['combined_throughput_mbps']}"
        for row in rows_of("nsfnic4_2000_combined")
        if row["table"] == "9"
    ]
    lines = [*clients, *combined]
    taken = imported("\n".join((heads, *lines)), "stream")
    assert ("sums with their ports", 2) in [(one.what, one.comparisons) for one in taken.checks]
    for number, line in enumerate(lines):
        place, _, printed = line.rpartition(",")
        other = [*lines]
        other[number] = f"{place},{stepped(draw, printed, Decimal('1.0'))}"
        [(result, erratum)] = imported("\n".join((heads, *other)), "stream", errata=True).errata
        assert result.parameters["duplex"] == line.split(",")[1]
        assert erratum.reason.startswith("8 ports, the first on line")


def rows_of(name: str) -> list[dict[str, str]]:
    with (REFERENCE / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))
