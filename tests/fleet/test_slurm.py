"""What Slurm's commands print, recorded from Slurm 22.05.8, and what they are called with."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from nicbench.core.errors import NotReadyError
from nicbench.fleet import slurm

NODES = (
    "NodeName=n1 Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUEfctv=2 CPUTot=2 CPULoad=2.13 "
    "AvailableFeatures=role=tester,card=cx5,cable=c1 ActiveFeatures=role=tester,card=cx5,cable=c1 Gres=(null) "
    "NodeAddr=10.77.0.11 NodeHostName=n1 Version=22.05.8 OS=Linux 6.18.44 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=23081\n"
    "NodeName=n2 Arch=x86_64 AvailableFeatures=(null) ActiveFeatures=(null) NodeAddr=n2 NodeHostName=n2\n"
)
QUEUE = "1_3|fleet.0|RUNNING|None|n[1-2]\n6_2|fleet.1|PENDING|BeginTime|\n7|other|RUNNING|None|n5\n"
ACCOUNTING = """\
1_3|fleet.0|COMPLETED|0:0|n[1-2]
6_1|fleet.1|CANCELLED by 0|0:0|n1
6_2|fleet.1|FAILED|3:0|n2
6_[3-9]|fleet.1|PENDING|0:0|None assigned
6_2|fleet.1|TIMEOUT|0:0|n2
"""


def test_nodes_have_names_addresses_and_features() -> None:
    one, other = slurm.parse_nodes(NODES)
    assert (one.name, one.address) == ("n1", "10.77.0.11")
    assert one.features == {"role=tester", "card=cx5", "cable=c1"}
    assert (other.name, other.features) == ("n2", frozenset())


def test_the_queue_tells_of_runs_of_arrays_alone() -> None:
    found = slurm.parse_queue(QUEUE)
    assert set(found) == {("fleet.0", 3), ("fleet.1", 2)}
    waiting = found["fleet.1", 2]
    assert (waiting.state, waiting.reason, waiting.nodes, waiting.is_alive) == ("PENDING", "BeginTime", "", True)


@pytest.mark.parametrize("order", [1, -1])
def test_a_run_that_was_submitted_again_is_the_one_that_lives_or_the_later_one(order: int) -> None:
    again = ["13_0|fleet.0|RUNNING|None|n3", "12_0|fleet.0|FAILED|NonZeroExitCode|n2"]
    found = slurm.parse_queue("\n".join(again[::order]))
    assert (found["fleet.0", 0].job, found["fleet.0", 0].is_alive) == ("13_0", True)
    both_ended = ["9_0|fleet.0|TIMEOUT|TimeLimit|n1", "10_0|fleet.0|FAILED|NonZeroExitCode|n2"]
    assert slurm.parse_queue("\n".join(both_ended[::order]))["fleet.0", 0].job == "10_0"


def test_accounting_tells_how_runs_ended_and_of_repeated_ones_the_last_end() -> None:
    found = slurm.parse_accounting(ACCOUNTING)
    assert {key: (job.state, job.exit_status, job.is_alive) for key, job in found.items()} == {
        ("fleet.0", 3): ("COMPLETED", 0, False),
        ("fleet.1", 1): ("CANCELLED", 0, False),
        ("fleet.1", 2): ("TIMEOUT", 0, False),
    }


def test_a_run_that_the_controller_has_forgotten_does_not_run_whatever_accounting_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = {
        "sacct": "1_0|fleet.0|RUNNING|0:0|n1\n1_1|fleet.0|FAILED|4:0|n2\n1_3|fleet.0|RUNNING|0:0|n2\n",
        "squeue": QUEUE,
    }
    monkeypatch.setattr(slurm, "call", lambda command: said[command[0]])
    found, has_accounting = slurm.states_of(["fleet.0"], datetime(2026, 1, 1, tzinfo=UTC))
    assert has_accounting
    assert ("fleet.0", 0) not in found
    assert (found["fleet.0", 1].state, found["fleet.0", 3].state) == ("FAILED", "RUNNING")


def test_an_array_is_asked_for_with_its_runs_in_ranges() -> None:
    command = slurm.submit_command("f.0", [7, 1, 2, 3], 2, "[cable=c1]", 90, "/log", {"qos": "nightly"})
    assert command[:2] == ("sbatch", "--parsable")
    assert {"--array=1-3,7", "--nodes=2", "--constraint=[cable=c1]", "--time=90", "--qos=nightly"} <= set(command)
    assert not any(word.startswith("--constraint") for word in slurm.submit_command("f", [0], 1, "", 1, "/log", {}))


def test_a_machine_without_slurm_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NotReadyError, match="the command scontrol is not installed\n  next: install Slurm"):
        slurm.list_machines()


@pytest.mark.parametrize("number", ["9" * 5000, "-1", "٣", "1_2", "[3-9]", ""])
def test_what_is_no_number_of_a_run_is_left_out(number: str) -> None:
    assert slurm.parse_queue(f"7_{number}|fleet.0|RUNNING|None|n1\n") == {}
    (state,) = slurm.parse_accounting(f"7_1|fleet.0|FAILED|{number}:0|n1\n").values()
    assert state.exit_status is None
