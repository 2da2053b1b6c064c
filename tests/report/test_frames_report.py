"""What a report says of film frames beside its tables: which test, where the frames were, and each round."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from nicbench import report
from nicbench.cli.summary_table import headline, print_summary
from nicbench.core.judging import Verdict
from nicbench.core.result import Result
from nicbench.core.round import (
    Figures,
    FrameFigures,
    FramesSpec,
    FrameTimes,
    Job,
    JobOutcome,
    JobSpec,
    Round,
    RoundRequest,
)
from nicbench.report.answer.of_run import sentences, study_in_brief
from nicbench.report.document.blocks import plain
from nicbench.report.editors import Study, directory_rows, kind_of, studies
from nicbench.report.facts import facts
from nicbench.report.sections.rounds import job_cells
from nicbench.stats.latency import histogram_of

from . import _editors

Results = tuple[Result, ...]


def run(had: dict[int, list[float]], test: str = "frames", file_systems: tuple[str, ...] = ()) -> Results:
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


def study(found: Results) -> Study:
    (one,) = studies(found, {})
    return one


def test_of_two_tests_every_sentence_and_title_says_which_it_is_about(tmp_path: Path) -> None:
    found = (*run({1: [24.0]}, "small frames"), *run({1: [12.0]}, "large frames"))
    text = io.StringIO()
    print_summary(Console(file=text, width=120, color_system=None), _editors.summary(found))
    shown = " ".join(text.getvalue().split())
    assert "small frames: Reading, the server sustained at least 1 editor" in shown
    assert "large frames: Reading, the server sustained not even 1 editor" in shown
    assert "small frames, reading: sum of all instances [fps]" in shown
    assert "large frames: Frames: each instance: 1 row is in the report" in shown
    assert headline(_editors.summary(found)) == (
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
    assert study_in_brief(study(run(had))) == said


def test_frames_on_local_file_systems_are_no_answer_about_a_server(tmp_path: Path) -> None:
    found = run({2: [24.0, 24.0]}, file_systems=("tmpfs tmpfs", "ext4 /dev/vda1"))
    one = study(found)
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
    one = study(run({2: [24.0, 24.0]}, file_systems=("nfs4 server:/stor/d1", "tmpfs tmpfs")))
    answer, mixed = sentences(one)
    assert answer.startswith("Reading, the server sustained")
    assert mixed.startswith("Of 2 directories 1 was on a local file system")
    assert [(row.instance, row.client, row.directory, row.kind) for row in directory_rows(one)] == [
        (1, "editor1", "/mnt/d1", "network"),
        (2, "editor2", "/mnt/d2", "local"),
    ]


def test_where_file_systems_are_unknown_nothing_is_said_of_them() -> None:
    one = study(run({2: [24.0, 24.0]}))
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
        completion=FrameTimes(
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
