"""What a plan says of the CPUs of tester and DUT: also that two of them are one physical core."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nicbench.stages.plan import cores_disclosure
from nicbench.testbed.cores import core_map
from nicbench.testbed.testers.packets import Packets

FOUR_CORES = ((0, 4), (1, 5), (2, 6), (3, 7))


def disclosed(cpus: tuple[int, ...], *, core_cpus: list[int] | None = None, **options: Any) -> dict[str, Any]:
    """Of a testbed on these CPUs; ``core_cpus`` are those that a DUT in user space says that it has."""
    bench = SimpleNamespace(tester=SimpleNamespace(options=Packets.Options.model_validate(options)))
    testbed = SimpleNamespace(cores=core_map(cpus, FOUR_CORES, dut_apart=True))
    told = {} if core_cpus is None else {"core_cpus": core_cpus}
    dut = SimpleNamespace(is_set_up=True, disclosure=lambda: told)
    return cores_disclosure(bench, testbed, dut)


def test_separate_cores_are_disclosed_as_before() -> None:
    assert disclosed((0, 1, 2)) == {"worker": 0, "dut": (1,), "housekeeping": (2,), "shared": False}


@pytest.mark.parametrize(
    ("told", "halved"),
    [
        (disclosed((0, 4)), ["0,4"]),
        (disclosed(tuple(range(8)), worker_cpu=5), ["1,5"]),
        (disclosed(tuple(range(8)), workers=[{"cpu": 6, "transmit": ["t0"]}, {"cpu": 7, "receive": ["t1"]}]), None),
        (disclosed(tuple(range(8)), core_cpus=[1, 2, 3, 5, 6, 7, 4]), ["0,4"]),
        (disclosed(tuple(range(8)), core_cpus=[1, 5]), None),
    ],
    ids=[
        "no other physical core may be used",
        "the bench file has the tester beside the DUT",
        "the bench file has the tester elsewhere",
        "the DUT has all other CPUs",
        "both hyperthreads are the DUT's",
    ],
)
def test_a_physical_core_that_tester_and_dut_halve_is_named(told: dict[str, Any], halved: list[str] | None) -> None:
    assert told.get("halved_cores") == halved
