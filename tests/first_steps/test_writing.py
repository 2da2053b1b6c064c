"""Every answer makes a bench file that the loader takes, and whose lines a reader can follow."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from nicbench.bench_file import load
from nicbench.bench_file.load import parse
from nicbench.bench_file.problems import WrongBenchFileError
from nicbench.core.errors import UsageError
from nicbench.first_steps.writing import Device, End, Frames, Streams, text_of, write

PORTS = ("enp1s0f0", "enp1s0f1")
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
ENDS = [
    (None, None),
    (End("e0"), End("e1")),
    (End("e0", "alice@nas"), End("e1")),
    (End("e0", ip="10.0.0.1/24"), End("e1", "client", ip="10.0.0.2/24")),
    (End("e0", "nas"), End("e1", "client")),
]
FRAMES = [
    Frames(PORTS, device, MACS if device is Device.ROUTER else (), full, sheet, virtual)
    for device, full, sheet, virtual in itertools.product(Device, (False, True), (False, True), (False, True))
]
STREAMS = [
    Streams(*ends, folder=folder, editors=editors, is_full=full)
    for ends, folder, editors, full in itertools.product(
        ENDS, (None, "/srv/media", "/stor/d{share}", "/"), (1, 5), (False, True)
    )
]


@pytest.mark.parametrize("wish", [*FRAMES, *STREAMS], ids=str)
def test_every_answer_makes_a_valid_commented_bench_file(wish: Frames | Streams) -> None:
    text = text_of(wish, "mine.yaml")
    assert parse(text.encode(), Path("mine.yaml")).tests
    assert max(map(len, text.splitlines())) <= 120
    assert "sudo nicbench run mine.yaml" in text


def test_the_answers_are_in_the_file(tmp_path: Path) -> None:
    wish = Frames(
        ("0000:03:00.0", "eth1"), Device.ROUTER, MACS, is_full=True, is_datasheet=True, title='yes: a "title"'
    )
    write(wish, tmp_path / "a.yaml")
    bench = load(tmp_path / "a.yaml")
    assert bench.title == 'yes: a "title"'
    assert (bench.ports["t0"].address, bench.ports["t1"].device) == ("0000:03:00.0", "eth1")
    assert bench.dut.options.model_dump()["macs"] == MACS
    assert bench.report.layout == "datasheet"
    assert bench.tests[0].options.model_dump()["trial"]["duration"] == 60.0  # RFC 2544 section 24


def test_virtual_ports_get_a_coarse_search_and_a_threshold_for_a_tester_that_shares_its_machine() -> None:
    virtual = parse(text_of(Frames(PORTS, are_virtual=True), "a.yaml").encode(), Path("a.yaml"))
    cards = parse(text_of(Frames(PORTS), "a.yaml").encode(), Path("a.yaml"))
    assert (dict(virtual.thresholds), virtual.tests[0].options.model_dump()["search"]["precision"]) == (
        {"unsent_share": 0.01},
        0.05,
    )
    assert (dict(cards.thresholds), cards.tests[0].options.model_dump()["search"]["precision"]) == ({}, 0.005)


def test_each_editor_has_a_folder_and_the_file_names_them_all(tmp_path: Path) -> None:
    wish = Streams(End("e0"), End("e1"), folder="/srv/media", editors=3)
    write(wish, tmp_path / "a.yaml")
    bench = load(tmp_path / "a.yaml")
    assert bench.dut.options.model_dump()["folder"] == "/srv/media/editor{share}"
    assert wish.folders == ("/srv/media/editor1", "/srv/media/editor2", "/srv/media/editor3")
    assert bench.tests[0].options.model_dump()["instances"] == (1, 2, 3)


def test_a_file_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("mine\n")
    with pytest.raises(UsageError, match="there is such a file already"):
        write(Frames(PORTS), path)
    assert path.read_text() == "mine\n"


def test_an_answer_that_no_bench_file_may_have_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(WrongBenchFileError, match="whole path"):
        write(Streams(folder="media"), tmp_path / "mine.yaml")
    assert not (tmp_path / "mine.yaml").exists()
