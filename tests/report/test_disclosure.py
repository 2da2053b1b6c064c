"""What is disclosed is said once, with what was chosen, and without the machine's directories."""

from __future__ import annotations

from nicbench.core.plan import Plan
from nicbench.report import facts

PLAN = Plan(
    run_id="r",
    title="t",
    nicbench_version="0.1.0",
    seed=1,
    command=("/opt/tools/bin/nicbench", "run", "examples/kernel-forward.yaml", "--output", "/home/me/runs", "--quiet"),
    lab={"kind": "veth", "mtu": 1500},
    facts={"lab": "veth", "mtu": 1500, "tester_gro": "on"},
    cores={"worker": 3},
    tester={
        "command": ["/opt/engine/nicbench-packets", "--x"],
        "burst": 32,
        "options": {"worker_cpu": None, "burst": 32},
    },
)


def test_the_command_names_neither_the_directory_of_the_program_nor_that_of_the_output() -> None:
    assert facts.command(PLAN) == ("nicbench", "run", "examples/kernel-forward.yaml", "--quiet")


def test_an_option_of_the_lab_is_listed_once() -> None:
    assert facts.lab(PLAN) == {"kind": "veth", "mtu": 1500, "tester_gro": "on"}


def test_the_tester_is_named_without_its_directory_and_with_the_cpu_that_was_chosen() -> None:
    shown = facts.tester(PLAN)

    assert shown["command"] == ["nicbench-packets", "--x"]
    assert "burst" not in shown
    assert shown["options"] == {"worker_cpu": "chosen: CPU 3", "burst": 32}


def test_a_threshold_names_the_shortest_pause_that_counts() -> None:
    why = "sum of the pauses over the gap floor: the load came in bursts"

    assert facts.threshold_why(why, 100_000) == "sum of the pauses longer than 0.1 ms: the load came in bursts"
    assert facts.threshold_why(why, None) == why


def test_what_configurations_share_is_disclosed_once() -> None:
    def plan(name: str, dut: str, hz: float, **more: object) -> Plan:
        tester = {"options": {"burst": 32}, "clock": {"hz": hz}}
        content = {"run_id": "x", "title": "x", "nicbench_version": "0", "seed": 1, "configuration": name, **more}
        return Plan.model_validate({**content, "dut": {"kind": dut}, "tester": tester})

    others = [plan("b", "bridge", 2.2e9), plan("c", "policer", 2.3e9)]
    whole = plan("a", "policer", 2.1e9, compared=["c", "b", "a"], others=others)
    assert [names for names, _ in facts.of_configurations(whole, "tester")] == [""]
    assert [names for names, _ in facts.of_configurations(whole, "dut")] == ["c, a", "b"]
