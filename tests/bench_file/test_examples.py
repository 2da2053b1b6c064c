"""Every example validates, and the demo's one declares what the demo promises."""

import re
from pathlib import Path

import pytest

from nicbench.bench_file import load
from nicbench.cli.app import COMMANDS
from nicbench.hosts import build_hosts
from nicbench.importing.reference.data_sets import data_sets
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
