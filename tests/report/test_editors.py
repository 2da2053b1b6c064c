"""The report of a study of editors: its answer, tables and figures say what the results hold, and nothing beyond."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from nicbench import report
from nicbench.cli.summary_table import print_summary
from nicbench.core.judging import Verdict
from nicbench.core.reading import Times
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.round import (
    Figures,
    FrameFigures,
    FramesSpec,
    Job,
    JobOutcome,
    JobSpec,
    Round,
    RoundRequest,
)
from nicbench.importing.reference.data_sets import data_set, results_of
from nicbench.report.answer.of_run import in_brief, sentences, study_in_brief
from nicbench.report.cells import fill_digits
from nicbench.report.document.blocks import Cell, Table, Text, plain
from nicbench.report.drawing.runs import dot_figures
from nicbench.report.drawing.svg import identifiers
from nicbench.report.editors import Study, directory_rows, kind_of, rate_decimals, share_text, studies
from nicbench.report.facts import facts
from nicbench.report.gather import gather
from nicbench.report.numbers import UNKNOWN
from nicbench.report.sections.editors import (
    MOST_COLUMNS,
    instance_table,
    measures,
    sharing_table,
    sum_tables,
    sustained_table,
)
from nicbench.report.sections.rounds import job_cells
from nicbench.stats.frames import RATE, FilmRun, Target, trusted_number
from nicbench.stats.latency import histogram_of
from nicbench.store import RunFolder

from . import _editors

NAMES = ("1x100", "4x25")
Results = tuple[Result, ...]


def study(found: Results, order: tuple[str, ...] = NAMES) -> Study:
    (one,) = studies([result for result in found if not result.warm_up], {}, order)
    return one


def run(had: dict[int, list[float]], number: int = 1, target: Target | None = _editors.TARGET) -> Results:
    """One run of one configuration, reading, with these rates by the number of instances."""
    return tuple(
        result
        for rates in had.values()
        for result in _editors.of_round("default", "read", [(rate, None) for rate in rates], number, target)
    )


def rows_of(table: Table) -> dict[str, list[str]]:
    """The cells of each row by its name."""
    return {plain(first.inlines): [plain(cell.inlines) for cell in rest] for first, *rest in cells_of(table)}


def cells_of(table: Table) -> list[tuple[Cell, ...]]:
    return [row.cells for row in table.body]


def met(cell: Cell) -> bool | None:
    """Whether a rate met its target, by how it is set."""
    is_bold = any(isinstance(run, Text) and run.strong for run in cell.inlines)
    return False if cell.tone == "missed" else is_bold or None


@pytest.fixture(scope="module")
def both() -> Study:
    """Up to six instances, five runs, and one before them that warms up."""
    return study(_editors.results(instances=(2, 3, 4, 6), runs=5, warm_up=1))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = _editors.results(instances=(2, 3, 4, 10), runs=4, warm_up=1)
    return report.build(_editors.write(tmp_path_factory.mktemp("runs"), found, NAMES)).read_text()


def test_the_answer_says_how_many_editors_each_configuration_fed(both: Study) -> None:
    read, write = sentences(both)
    assert read.startswith("Reading, “1x100” sustained at least 6 editors (no more were tried)")
    assert "at 24\u00a0frames/s each (within 1\u202f%) in each of 5 runs; “4x25” sustained " in read
    assert write.startswith("Writing, “1x100”")


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ([{1: [24.0], 2: [24.0, 24.0]}], "The server sustained at least 2 editors (no more were tried) at 24"),
        (
            [{1: [24.0], 2: [24.0, 12.0]}],
            "The server sustained 1 editor at 24\u00a0frames/s each (within 1\u202f%) in the",
        ),
        ([{1: [24.0], 4: [12.0] * 4}], "The server sustained 1 editor (the next that was tried: 4) at 24"),
        ([{1: [20.0]}], "sustained not even 1 editor at 24"),
        ([{4: [24.0, 24.0, 12.0, 12.0]}], "sustained not even the fewest that were tried at 24"),
        ([{1: [20.0], 2: [24.0, 24.0], 3: [20.0] * 3}], "sustained 2 editors (though not 1) at 24"),
        (
            [{1: [24.0], 2: rates} for rates in ([24.0] * 2, [24.0] * 2, [24.0, 12.0])],
            "in each of 3 runs, at least 2 in",
        ),
    ],
    ids=["at least", "one", "sparse", "none", "fewest", "gap", "median"],
)
def test_what_qualifies_a_number_is_said(runs: list[dict[int, list[float]]], said: str) -> None:
    found = [result for number, had in enumerate(runs, start=1) for result in run(had, number)]
    (text,) = (text for text in sentences(study(tuple(found))) if "sustained" in text)
    assert said in text.replace("Reading, the", "The")


def test_an_instance_that_got_less_behind_a_sum_that_was_met_is_not_hidden() -> None:
    one = study(run({2: [26.0, 22.0]}))
    assert (
        "each editor has to reach its rate by itself in every run, the number is not even the fewest"
        in sentences(one)[1]
    )
    table = sustained_table(one)
    assert table is not None
    assert rows_of(table) == {"read": ["≥ 2", "≥ 2", "fewer than tried", "2", "1"]}


def test_a_run_that_warms_up_counts_for_nothing(both: Study) -> None:
    assert {way.runs for way in both.ways} == {(2, 3, 4, 5, 6)}


def test_without_a_frame_limit_there_is_no_target() -> None:
    one = study(run({1: [100.0], 2: [60.0, 60.0]}, target=None))
    (text,) = sentences(one)
    assert text == (
        "Reading without a frame limit, the server moved up to 120\u00a0frames/s (6\u202f126\u00a0MB/s), "
        "with 2 instances (median run)."
    )
    assert sustained_table(one) is None
    assert study_in_brief(one) is None
    (table,) = sum_tables(one, one.ways[0])
    assert list(rows_of(table)) == ["1"]
    assert {met(cell) for _, *cells in cells_of(table) for cell in cells} == {None}


def test_an_instance_that_failed_is_unknown_and_meets_nothing() -> None:
    found = [
        result.replace(values={**result.values, "frames_per_s": None})
        if result.parameters.get("instance") == 2
        else result
        for result in run({2: [24.0, 24.0]})
    ]
    one = study(tuple(found))
    (table,) = sum_tables(one, one.ways[0])
    assert rows_of(table)["1"] == [UNKNOWN]
    assert met(cells_of(table)[0][1]) is False
    each = instance_table(one.ways[0].at["default", 2])
    assert list(rows_of(each).values())[:3] == [["24.0"], [UNKNOWN], [UNKNOWN]]


def test_sums_stand_by_run_with_average_median_and_target(both: Study) -> None:
    (table,) = sum_tables(both, both.ways[0])
    assert heads_of(table) == [("1x100", 4), ("4x25", 4)]
    rows = rows_of(table)
    assert list(rows) == ["2", "3", "4", "5", "6", "Average", "Median", "Target"]
    assert rows["2"][:4] == rows["Average"][:4] == ["48.0", "72.0", "96.0", "144.0"]
    assert rows["Target"] == ["48.0", "72.0", "96.0", "144.0"] * 2
    assert [cell.look for cell in cells_of(table)[0][1:]] == [""] * 4 + ["first"] + [""] * 3
    seen = [met(cell) for _, *cells in cells_of(table)[:5] for cell in cells]
    assert True in seen
    assert False in seen


def heads_of(table: Table) -> list[tuple[str, int]]:
    """The configurations above the columns of a table, each with the number of its columns."""
    return [(plain(cell.inlines), cell.columns) for cell in table.head[0].cells[1:]]


def test_a_study_too_broad_for_one_table_has_one_for_each_configuration() -> None:
    counts = tuple(range(1, MOST_COLUMNS // 2 + 2))
    one = study(_editors.results(directions=("read",), instances=counts, runs=1))
    assert [heads_of(table) for table in sum_tables(one, one.ways[0])] == [[(name, len(counts))] for name in NAMES]


def test_instances_stand_by_run_with_sum_average_and_deviation() -> None:
    found = (*run({3: [24.0, 24.0, 12.0]}, 1), *run({3: [24.0, 24.0, 24.0]}, 2))
    table = instance_table(study(found).ways[0].at["default", 3])
    rows = {
        plain(first.inlines): [(plain(cell.inlines), met(cell)) for cell in rest] for first, *rest in cells_of(table)
    }
    assert rows["Instance 3"] == [("12.0", False), ("24.0", True)]
    assert rows["Sum"] == [("60.0", False), ("72.0", True)]
    assert rows["Average"] == [("20.0", None), ("24.0", None)]
    assert rows["Std. Deviation"] == [("5.66", None), ("0.00", None)]
    assert rows["Frames dropped"] == [("240", None), ("0", None)]


def test_published_rates_stand_with_the_digits_that_were_printed() -> None:
    """Many of the 2340 cells end with zeros, which are printed."""
    found = results_of(data_set("frametest-read-instances")).results
    at = study(tuple(found)).ways[0].at
    cells = 0
    for (configuration, count), tried in at.items():
        rows = rows_of(instance_table(tried))
        rates = [rate for title, row in rows.items() if title.startswith("Instance ") for rate in row]
        cells += len(rates)
        assert {len(rate.partition(".")[2]) for rate in rates} == {2 if count == 4 else 1}, (configuration, count)
    assert cells == 2340


def test_too_few_digits_are_not_filled() -> None:
    assert fill_digits(["25", "25.1", "24.9"]) == ["25.0", "25.1", "24.9"]
    assert fill_digits(["25", "24", "25", "25.25"]) == ["25", "24", "25", "25.25"]
    assert fill_digits([None, "< 0.1", "1e3", "7", "7.5", "7.25"]) == [None, "< 0.1", "1e3", "7.00", "7.50", "7.25"]
    assert fill_digits([]) == []


def test_what_runs_come_to_is_told_as_far_as_it_is_known(both: Study) -> None:
    told = measures(both.ways[0])
    assert told["Runs that met the target [%]"]["1x100"] == ["100"] * 4
    assert list(told["Average [MB/s]"]) == list(NAMES)
    bytes_per_s = 48.0 * _editors.FRAME_BYTES
    assert told["Average [MB/s]"]["1x100"][0].replace("\u202f", "") == f"{bytes_per_s / 1e6:.0f}"
    assert told["Average [MiB/s]"]["1x100"][0].replace("\u202f", "") == f"{bytes_per_s / 2**20:.0f}"
    unknown = [result.replace(values={"sum_frames_per_s": 48.0}) for result in run({2: [24.0, 24.0]}, target=None)[:1]]
    assert measures(study(tuple(unknown)).ways[0]) == {}


def rates_of(ran: FilmRun) -> list[float | None]:
    return [None if one is None else trusted_number(one, RATE) for one in ran.instances]


def test_what_an_instance_had_is_told_by_how_many_were_on_its_port_of_the_bond(both: Study, page: str) -> None:
    table = sharing_table(both, both.ways[0])
    assert table is not None
    rows = rows_of(table)
    assert {row[0] for row in rows.values()} == {"4x25"}, "the other has no bond"
    assert rows["1"][1:5] == rows["2"][1:5] == ["24.0", "24.0", "24.0", "100"]
    assert rows["3"][1:5] == ["19.6", "19.6", "19.6", "0"]
    assert sum(int(row[5]) for row in rows.values()) == 5 * (2 + 3 + 4 + 6)
    assert "Reading: instances that shared a port of the bond" in page


def test_of_a_port_that_is_only_predicted_nothing_is_concluded() -> None:
    found = [
        result.replace(values={**result.values, "bond_port": port})
        for number, port in ((1, "eth1 (predicted)"), (2, "eth1"))
        for result in run({2: [12.0, 12.0]})
        if result.parameters.get("instance") == number
    ]
    one = study(tuple(found))
    assert sharing_table(one, one.ways[0]) is None


def test_every_instance_of_every_run_is_a_dot_and_those_that_missed_are_hollow(both: Study) -> None:
    way = both.ways[0]._replace(configurations=NAMES)
    figures = dot_figures(both, way, identifiers())
    drawings = [figure.drawing.svg for figure in figures]
    assert [plain(figure.head) for figure in figures] == [f"{count} instances" for count in (2, 3, 4, 6)]
    for count, drawing in zip((2, 3, 4, 6), drawings, strict=True):
        marks = re.findall(r'<g class="mark-symbol[^>]*>(.*?)</g>', drawing, re.DOTALL)
        assert sum(group.count("<path") for group in marks) == 2 * 5 * count
    assert "Runs that met the target: “1x100” 5 of 5, “4x25”" in plain(figures[0].caption)
    hollow = [len(re.findall(r'<path [^>]*d="[^"]*" stroke="var\(--series-2', drawing)) for drawing in drawings]
    missed = [
        sum(not _editors.TARGET.is_met(rate) for ran in way.at["4x25", count].runs for rate in rates_of(ran))
        for count in (2, 3, 4, 6)
    ]
    assert hollow == missed
    assert all(f">{name}</text>" in drawing for drawing in drawings for name in NAMES)
    assert missed[-1] > 0


def test_the_page_answers_first_and_has_every_table_and_figure(page: str) -> None:
    assert page.index("sustained at least") if "sustained at least" in page else page.index("sustained 4")
    order = ["Reading, ", "<figure>", ">Streams sustained<", "Reading: sum of all instances", "every instance of every"]
    places = [page.index(text) for text in order]
    assert places == sorted(places)
    assert page.count('class="multiples"') == 2
    assert page.count("<h5 ") == 2 * 2 * 4
    assert "Average [MB/s]" in page
    assert "10<sup>6</sup> bytes" in page
    assert ">eth1</span>" in page
    assert "Frames: each instance" in page
    assert "Each run by itself" not in page, "its own tables have every run"


def test_a_run_alone_has_its_details_and_no_medians(tmp_path: Path) -> None:
    folder = _editors.write(tmp_path, run({1: [24.0], 2: [24.0, 24.0]}))
    view = gather(RunFolder.open(folder))
    assert view.comparison is None
    assert [section.table.part for section in view.sections] == ["runs", "instances"]
    assert view.headline.startswith("Reading, the server sustained at least 2 editors")
    page = report.build(folder).read_text()
    assert "A point is the one run that was made." in page
    assert "“default”" not in page


def test_a_disturbed_run_is_marked_where_its_number_stands(tmp_path: Path) -> None:
    found = list(run({1: [24.0]}, 1))
    found += _editors.of_round("default", "read", [(24.0, None)], 2, _editors.TARGET, verdict=ResultVerdict.DISTURBED)
    page = report.build(_editors.write(tmp_path, tuple(found))).read_text()
    assert re.search(r'24\.0</strong><span class="disturbed"|24\.0</strong> <span class="disturbed"', page)


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    names = ("<script>alert(1)</script>", 'a "b" & c')
    found = _editors.results(configurations=names, directions=("read",), instances=(1, 2), runs=2)
    page = report.build(_editors.write(tmp_path, found, names)).read_text()
    assert page.count("<script") == 1, "the page's own"
    assert "&lt;script&gt;" in page


def test_the_terminal_has_the_answer_and_the_sums() -> None:
    text = io.StringIO()
    summed = _editors.summary(_editors.results(instances=(1, 2, 10), runs=3), NAMES)
    print_summary(Console(file=text, width=120, color_system=None), summed)
    shown = text.getvalue()
    assert "Reading, “1x100” sustained 2 editors" in shown
    assert "Writing: sum of all instances [fps]" in shown
    assert "0 of 3" in shown
    assert shown.count("rows are in the report") == 2
    assert in_brief(summed) == study_in_brief(study(_editors.results(instances=(1, 2, 10), runs=3)))


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.0, "0"), (1.0, "100"), (0.9999, "> 99.9"), (0.0001, "< 0.1"), (0.467, "46.7"), (None, UNKNOWN)],
)
def test_a_share_is_all_or_none_only_where_it_is(ratio: float | None, text: str) -> None:
    assert share_text(ratio) == text


def test_rates_have_the_digits_that_the_smallest_of_a_table_needs() -> None:
    assert [rate_decimals(rates) for rates in ([235.1], [24.0, 8.1], [0.41], [0.0, None], [])] == [1, 2, 3, 1, 1]


@pytest.mark.parametrize("kept", ["runs", "instances"])
def test_either_part_alone_makes_a_study(kept: str) -> None:
    found = tuple(result for result in run({2: [24.0, 24.0]}) if result.parameters["part"] == kept)
    table = sustained_table(study(found))
    assert table is not None
    assert rows_of(table)["read"][0] == "≥ 2"


@pytest.mark.acceptance
def test_a_whole_study_is_drawn_in_seconds(tmp_path: Path, record_property: Callable[[str, Any], None]) -> None:
    found = _editors.results()
    folder = _editors.write(tmp_path, found, NAMES)
    began = time.monotonic()
    path = report.build(folder)
    took_s, size = time.monotonic() - began, path.stat().st_size
    assert path.read_text().count('class="multiples"') == 2
    record_property("shown", f"{len(found)} results of 12 x 15 x 2 x 2: report in {took_s:.1f} s, {size / 1e6:.1f} MB")


def frames_run(had: dict[int, list[float]], test: str = "frames", file_systems: tuple[str, ...] = ()) -> Results:
    """One run, reading, with these rates by the number of instances; instances take file systems in turn."""
    return tuple(
        result.replace(
            test=test,
            id=f"{test}/{result.id}",
            values={**result.values, **_where(result, file_systems)},
        )
        for rates in had.values()
        for result in _editors.of_round("default", "read", [(rate, None) for rate in rates], 1, _editors.TARGET)
    )


def _where(result: Result, file_systems: tuple[str, ...]) -> dict[str, str]:
    number = result.parameters.get("instance")
    return {"file_system": file_systems[(number - 1) % len(file_systems)]} if number and file_systems else {}


def frames_study(found: Results) -> Study:
    (one,) = studies(found, {})
    return one


def test_of_two_tests_every_sentence_and_title_says_which_it_is_about(tmp_path: Path) -> None:
    found = (*frames_run({1: [24.0]}, "small frames"), *frames_run({1: [12.0]}, "large frames"))
    text = io.StringIO()
    print_summary(Console(file=text, width=120, color_system=None), _editors.summary(found))
    shown = " ".join(text.getvalue().split())
    assert "small frames: Reading, the server sustained at least 1 editor" in shown
    assert "large frames: Reading, the server sustained not even 1 editor" in shown
    assert "small frames, reading: sum of all instances [fps]" in shown
    assert "large frames: Frames: each instance: 1 row is in the report" in shown
    assert in_brief(_editors.summary(found)) == (
        "small frames: read: at least 1 editor in every run; large frames: read: not even 1 editor in every run"
    )
    page = report.build(_editors.write(tmp_path, found)).read_text()
    assert "small frames: Reading, the server sustained" in page
    assert "large frames: Reading, the server sustained" in page


@pytest.mark.parametrize(
    ("had", "said"),
    [
        ({4: [12.0] * 4}, "read: fewer editors than were tried in every run"),
        ({1: [24.0]}, "read: at least 1 editor in every run"),
        ({1: [20.0], 2: [24.0] * 2, 3: [20.0] * 3}, "read: 2 editors (though not 1) in every run"),
    ],
    ids=["fewest", "one", "gap"],
)
def test_the_line_of_a_list_reads_as_a_sentence(had: dict[int, list[float]], said: str) -> None:
    assert study_in_brief(frames_study(frames_run(had))) == said


def test_frames_on_local_file_systems_are_no_answer_about_a_server(tmp_path: Path) -> None:
    found = frames_run({2: [24.0, 24.0]}, file_systems=("tmpfs tmpfs", "ext4 /dev/vda1"))
    one = frames_study(found)
    answer, local, *_ = sentences(one)
    assert answer.startswith("Reading, the local file system sustained at least 2 editors")
    assert local.startswith("The frames did not go over the network: ")
    assert "(tmpfs, ext4)" in local
    assert not any("the server" in text for text in sentences(one))
    assert study_in_brief(one) == "read: at least 2 editors in every run (local file systems: tmpfs, ext4)"
    page = report.build(_editors.write(tmp_path, found)).read_text()
    assert page.index("did not go over the network") < page.index(">Directories</h3>")
    assert "ext4 /dev/vda1" in page.replace("<wbr>", "")


def test_a_share_that_one_instance_had_not_mounted_is_told() -> None:
    one = frames_study(frames_run({2: [24.0, 24.0]}, file_systems=("nfs4 server:/stor/d1", "tmpfs tmpfs")))
    answer, mixed = sentences(one)
    assert answer.startswith("Reading, the server sustained")
    assert mixed.startswith("Of 2 directories 1 was on a local file system")
    assert [(row.instance, row.client, row.directory, row.kind) for row in directory_rows(one)] == [
        (1, "editor1", "/mnt/d1", "network"),
        (2, "editor2", "/mnt/d2", "local"),
    ]


def test_where_file_systems_are_unknown_nothing_is_said_of_them() -> None:
    one = frames_study(frames_run({2: [24.0, 24.0]}))
    assert len(sentences(one)) == 1
    assert directory_rows(one) == ()


@pytest.mark.parametrize(
    ("file_system", "kind"),
    [
        ("tmpfs tmpfs", "local"),
        ("overlay overlay", "local"),
        ("nfs4 server:/stor/d1", "network"),
        ("cifs //server/d1", "network"),
        ("ceph 10.0.0.1:6789:/", "network"),
        ("fuse.sshfs editor@server:/d1", "FUSE"),
    ],
)
def test_a_file_system_is_local_by_its_type_and_source(file_system: str, kind: str) -> None:
    assert kind_of(file_system) == kind


def test_a_round_of_frames_says_what_was_asked_and_what_came_of_it() -> None:
    ask = FramesSpec(task="write", directory="/mnt/d1", frame_bytes=262_144, frames_per_s=24.0, direct=True)
    figures = FrameFigures(
        engine="io_uring",
        measured_ns=1_000_000_000,
        frames=23,
        bytes=23 * 262_144,
        frames_per_s=23.0,
        bytes_per_s=23 * 262_144.0,
        dropped_frames=1,
        due_frames=24,
        completion=Times(
            count=23, minimum_ns=8_000_000, mean_ns=9e6, maximum_ns=40_000_000,
            histogram=histogram_of([(8_000_000, 22), (40_000_000, 1)]),
        ),
    )  # fmt: skip
    job = Job(
        workload="nicbench-frames",
        client="c0a",
        server=None,
        ask=JobSpec(operation="frames", duration_s=1.0, frames=ask),
        port=0,
    )
    one = Round(
        id="r0001",
        key="frames/0/0",
        test="frames",
        configuration="default",
        parameters={},
        repeat=0,
        request=RoundRequest(jobs=(job,), duration_s=1.0),
        outcomes=(JobOutcome(figures=Figures(frames=figures)),),
        counters={},
        verdict=Verdict(),
    )
    _, _, asked, said, *_ = (plain(cell.inlines) for cell in job_cells(job, one.outcomes[0]))
    for text in ("frames written", "262 144 bytes each", "24 frames/s", "engine auto", "depth 4", "direct", "1 s long"):
        assert text in asked
    assert "TCP" not in asked
    for text in (
        "23 frames/s, 6.03 MB/s",
        "1 dropped of 24 frames due",
        "median 8.0",
        "greatest 40.0",
        "engine io_uring",
    ):
        assert text in said


def test_hosts_and_programs_are_called_as_they_are() -> None:
    versions, commands = facts(
        {"versions": {"sftp-server": "1", "sshfs": "3"}, "commands": {"server": ["a"], "c0a": ["b"], "dut": ["c"]}}
    )
    assert [child.label for child in versions.children] == ["sftp-server", "sshfs"]
    assert [child.label for child in commands.children] == ["server", "c0a", "DUT"]
