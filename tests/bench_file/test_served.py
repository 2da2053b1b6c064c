"""A bench file for `nicbench serve`: it needs no tests, and what clients ask for is no test of another."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.bench_file.load import parse
from nicbench.bench_file.reader import WrongBenchFileError
from nicbench.core.errors import UsageError
from nicbench.stages.served import require_servable

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
