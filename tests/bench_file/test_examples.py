"""Every example validates, and the demo's one declares what the demo promises."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from nicbench.bench_file import WrongBenchFileError, load
from nicbench.bench_file.load import parse
from nicbench.cli.app import COMMANDS
from nicbench.core.errors import UsageError
from nicbench.core.plan import Layout
from nicbench.hosts import build_hosts
from nicbench.importing.reference.data_sets import data_sets
from nicbench.stages.served import require_servable
from nicbench.stages.tester import estimate_s

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
PAGES = [*EXAMPLES, ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# What a text refers to: files of the repository, published data sets, commands.
FILE = re.compile(r"(?<![\w./-])((?:examples|docs|scripts)/[\w./-]*\w|[\w-]+\.yaml\b)")
DATA_SET = re.compile(r"reference(?: (?:show|import) |:)([a-z][a-z0-9-]+)")
COMMAND = re.compile(r"(?:`|^#? {2,}(?:sudo )?)nicbench ([a-z]+)", re.MULTILINE)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_validates(path: Path) -> None:
    assert load(path).tests


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_hosts_of_an_example_can_be_made_before_any_is_touched(path: Path) -> None:
    hosts = load(path).hosts
    assert build_hosts(hosts).keys() == hosts.keys()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_file_that_an_example_refers_to_is_there(path: Path) -> None:
    named = FILE.findall(path.read_text())
    assert not [name for name in named if not (ROOT / name).exists() and not (path.parent / name).exists()]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_data_set_and_command_that_a_text_refers_to_is_there(path: Path) -> None:
    text = path.read_text()
    assert not set(DATA_SET.findall(text)) - data_sets().keys()
    assert not set(COMMAND.findall(text)) - set(COMMANDS)


def test_there_are_examples_for_every_kind_of_dut() -> None:
    assert {load(path).dut.kind for path in EXAMPLES} >= {
        "kernel-forward",
        "policer",
        "bridge",
        "external",
        "simulated",
        "testpmd",
        "reflector",
    }


def test_the_first_example_to_copy_measures_the_seven_sizes_of_rfc_2544() -> None:
    bench = load(EXAMPLES[0].with_name("kernel-forward.yaml"))
    assert bench.tests[0].build().frame_sizes() == (64, 128, 256, 512, 1024, 1280, 1518)


def test_the_demo_has_the_known_device_first_and_then_the_kernel() -> None:
    bench = load(EXAMPLES[0].with_name("demo.yaml"))
    assert [bench.of_turn(turn).dut.kind for turn in bench.turns] == ["policer", "kernel-forward"]


def test_the_comparison_takes_less_than_three_minutes_and_has_an_even_number_of_runs() -> None:
    bench = load(EXAMPLES[0].with_name("configurations.yaml"))
    assert [each.configuration for each in bench.configurations] == ["bare", "rules"]
    assert bench.runs.at_most % 2 == 0
    assert sum(estimate_s(bench.of_turn(turn)) for turn in bench.turns) < 120


_FILE = """nicbench: 1
title: a run
lab: simulated
dut: simulated
{}tests:
  - {{name: throughput, method: throughput}}
"""


def _written(tmp_path: Path, report: str) -> Path:
    path = tmp_path / "bench.yaml"
    path.write_text(_FILE.format(report))
    return path


def test_without_a_word_it_is_a_study_without_author(tmp_path: Path) -> None:
    report = load(_written(tmp_path, "")).report

    assert (report.layout, report.title, report.question, report.author, report.revisions) == (
        Layout.STUDY,
        None,
        None,
        None,
        (),
    )


def test_every_key_is_read(tmp_path: Path) -> None:
    text = (
        "report:\n  layout: datasheet\n  title: T\n  question: Q?\n  author: A\n"
        "  about: |\n    One.\n\n    Two.\n  audience: Everybody\n"
        "  revisions: [{number: 1, date: 2026-11-22, text: first edition}]\n"
    )
    report = load(_written(tmp_path, text)).report

    assert (report.layout, report.title, report.question, report.author) == (Layout.DATASHEET, "T", "Q?", "A")
    assert (report.about, report.audience) == ("One.\n\nTwo.", "Everybody")
    assert (report.revision.number, report.revision.date) == ("1", date(2026, 11, 22))
    assert [each.text for each in report.revisions] == ["first edition"]


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ("{layout: poster}", "`report.layout` cannot be `poster`"),
        ("{lay_out: study}", "unknown key `report.lay_out`"),
        ("{title: ''}", "`report.title` is empty"),
        ("{revisions: [{date: yesterday, text: x}]}", "`report.revisions[0].date`"),
        ("{about: ''}", "`report.about` is empty"),
        ("{revisions: [{number: 1.10, date: 2026-11-22, text: x}]}", "write the number in quotes"),
        (
            "{revisions: [{number: 1, date: 2026-11-22, text: x}, {date: 2026-11-23, text: y}]}",
            "give one to each, or to none",
        ),
        ("{revisions: [{date: 2026-11-23, text: x}, {date: 2026-11-22, text: y}]}", "write the oldest revision first"),
        ("{revisions: [{date: 2026-11-22}]}", "`report.revisions[0].text` is missing"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, report: str, said: str) -> None:
    with pytest.raises(WrongBenchFileError) as refused:
        load(_written(tmp_path, f"report: {report}\n"))

    assert said in str(refused.value)
    assert ":5:" in str(refused.value)


PATH = Path("bench.yaml")
LAB = "nicbench: 1\ntitle: t\nlab: {kind: veth}\ndut: {kind: bridge}\n"
THROUGHPUT = "tests: [{name: a, method: throughput}]\n"


@pytest.mark.parametrize("text", [LAB, LAB + THROUGHPUT])
def test_what_is_served_has_no_tests_but_what_clients_ask_for(text: str) -> None:
    assert [test.method_kind for test in parse(text.encode(), PATH, serves=True).tests] == ["transmission"]


def test_a_run_needs_tests_and_cannot_measure_for_clients() -> None:
    with pytest.raises(WrongBenchFileError, match="tests"):
        parse(LAB.encode(), PATH)
    text = LAB + "tests: [{name: a, method: transmission}]\n"
    with pytest.raises(WrongBenchFileError, match=r"bench.yaml:5:27: `transmission` is measured for clients"):
        parse(text.encode(), PATH)


def test_configurations_are_not_served() -> None:
    text = LAB + THROUGHPUT + "configurations: {a: {seed: 1}, b: {seed: 2}}\n"
    with pytest.raises(WrongBenchFileError, match="`configurations` cannot be served"):
        parse(text.encode(), PATH, serves=True)


def test_a_tester_in_the_kernel_or_of_others_is_refused() -> None:
    assert require_servable(parse(LAB.encode(), PATH, serves=True)).tester_kind().driver == "net_af_xdp"
    with pytest.raises(UsageError, match="programs in the kernel send by the trial"):
        require_servable(parse(f"{LAB}tester: {{driver: xdp}}\n".encode(), PATH, serves=True))
