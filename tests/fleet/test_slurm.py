"""What Slurm's commands print, recorded from Slurm 22.05.8, and what they are called with."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicbench.core.errors import HostError, NotReadyError, UsageError
from nicbench.first_steps.ports import FoundPort, Neighbour, read_name, write_name
from nicbench.fleet import slurm
from nicbench.fleet.jobs import features_of
from nicbench.fleet.slurm import Machine, bind, bind_given, constraint_of

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


# Roles and machines: what Slurm is asked for, and who is who among the machines that it gave.

ROLES = {"tester": frozenset({"role=tester"}), "dut": frozenset({"role=dut", "card=cx6"})}


def machine(name: str, *features: str) -> Machine:
    return Machine(name, f"10.0.0.{name[1:]}", frozenset(features))


PAIRS = [
    machine("n1", "role=tester", "card=cx5", "cable=c1"),
    machine("n2", "role=dut", "card=cx5", "cable=c1"),
    machine("n3", "role=tester", "card=cx6", "cable=c2"),
    machine("n4", "role=dut", "card=cx6", "cable=c2"),
    machine("n5", "role=tester", "card=cx5", "cable=c3"),
    machine("n6", "role=dut", "card=cx6", "cable=c3"),
]


def names(bound: dict[str, Machine] | None) -> dict[str, str] | None:
    return None if bound is None else {role: one.name for role, one in bound.items()}


def test_joined_machines_are_asked_for_by_the_cables_that_will_do() -> None:
    assert constraint_of(ROLES, PAIRS, "cable", "f") == "[cable=c2|cable=c3]"


def test_what_all_roles_need_stands_in_front() -> None:
    both = {role: features | {"card=cx6"} for role, features in ROLES.items()}
    assert constraint_of(both, PAIRS, "cable", "f") == "card=cx6&[cable=c2]"


def test_machines_that_are_not_joined_are_asked_for_by_counts() -> None:
    assert constraint_of(ROLES, PAIRS, None, "f") == "[(role=tester)*1&(card=cx6&role=dut)*1]"


def test_machines_of_one_kind_are_asked_for_without_counts() -> None:
    assert constraint_of({"one": frozenset({"card=cx5"})}, PAIRS, None, "f") == "card=cx5"
    two = {"one": frozenset({"card=cx5"}), "other": frozenset({"card=cx5"})}
    assert constraint_of(two, PAIRS, None, "f") == "card=cx5"


def test_one_fabric_is_asked_for_with_counts_of_its_roles() -> None:
    fabric = [
        machine(f"n{number}", "fabric=f1", "role=tester" if number % 2 else "role=dut", "card=cx6")
        for number in range(6)
    ]
    assert constraint_of(ROLES, fabric, "fabric", "f") == "fabric=f1&[(role=tester)*1&(card=cx6&role=dut)*1]"


def test_one_of_two_fabrics_cannot_be_asked_for() -> None:
    fabrics = [
        machine(f"n{number}", f"fabric=f{number % 2}", role, "card=cx6")
        for number in range(6)
        for role in ("role=tester", "role=dut")
    ]
    with pytest.raises(UsageError, match="fabric=f0 joins 6 machines, and 1 other groups will do as well"):
        constraint_of(ROLES, fabrics, "fabric", "f")


@pytest.mark.parametrize(
    ("needed", "joined_by", "why"),
    [
        ({"role=dut", "card=cx9"}, "cable", "no machine has what the role dut needs .*: none has card=cx9"),
        ({"role=dut", "cable=c1"}, "speed", "no machines that could have the roles tester, dut have the same speed"),
    ],
)
def test_machines_that_are_not_there_are_said(needed: set[str], joined_by: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        constraint_of({**ROLES, "dut": frozenset(needed)}, PAIRS, joined_by, "fleet.yaml, a cell")


def test_too_few_machines_are_said() -> None:
    many = {f"tester{number}": frozenset({"role=tester"}) for number in range(4)}
    with pytest.raises(UsageError, match="there are too few machines"):
        constraint_of(many, PAIRS, None, "f")


def test_roles_are_bound_to_machines_on_one_cable() -> None:
    assert names(bind(ROLES, PAIRS, "cable")) == {"tester": "n3", "dut": "n4"}
    assert names(bind(ROLES, [PAIRS[0], PAIRS[3]], "cable")) is None
    assert names(bind(ROLES, [PAIRS[0], PAIRS[3]], None)) == {"tester": "n1", "dut": "n4"}


def test_a_machine_that_can_have_two_roles_leaves_one_to_the_other() -> None:
    every = machine("n1", "role=tester", "role=dut", "card=cx6")
    tester = machine("n2", "role=tester")
    assert names(bind(ROLES, [every, tester], None)) == {"tester": "n2", "dut": "n1"}


def test_machines_that_cannot_have_the_roles_are_refused_with_what_they_have() -> None:
    with pytest.raises(HostError, match="n1 has cable=c1, card=cx5, role=tester; n2 has"):
        bind_given(ROLES, PAIRS[:2], "cable")


@given(
    st.dictionaries(st.sampled_from("abcd"), st.frozensets(st.sampled_from("xyz")), min_size=1),
    st.lists(st.frozensets(st.sampled_from("xyz")), max_size=6),
)
def test_a_binding_is_found_where_there_is_one(
    roles: dict[str, frozenset[str]], features: list[frozenset[str]]
) -> None:
    from itertools import permutations

    machines = [Machine(f"n{number}", "", each) for number, each in enumerate(features)]
    possible = any(
        all(roles[role] <= one.features for role, one in zip(roles, chosen, strict=True))
        for chosen in permutations(machines, len(roles))
    )
    found = bind(roles, machines, None)
    assert (found is not None) == possible
    if found is not None:
        assert len({one.name for one in found.values()}) == len(roles) == len(found)
        assert all(roles[role] <= one.features for role, one in found.items())


# What Slurm is told of a machine: its free ports, their cards and cables, and its kernel.

FACTS = {
    "kernel": {"release": "6.12.8-amd64"},
    "pci_adapters": {
        "0000:03:00.0": {"model": "MT27800 Family [ConnectX-5]", "id": "15b3:1017"},
        "0000:03:00.1": {"model": "MT27800 Family [ConnectX-5]", "id": "15b3:1017"},
        "0000:00:03.0": {"model": "Virtio 1.0 network device", "id": "1af4:1041"},
    },
}
PORTS = [
    FoundPort(
        "ens1f0", driver="mlx5_core", bus="0000:03:00.0", speed_bits_per_s=100_000_000_000, neighbour="sw1, port 7"
    ),
    FoundPort("ens1f1", driver="mlx5_core", bus="0000:03:00.1", speed_bits_per_s=25_000_000_000),
    FoundPort("eth0", driver="virtio_net", bus="0000:00:03.0", never="carries the default route"),
]


def test_features_are_those_of_ports_that_a_test_may_use() -> None:
    assert features_of("n1", FACTS, PORTS, [Neighbour("ens1f1", "n2", "ens1f1")]) == [
        "kernel=6.12.8-amd64",
        "kernel=6.12",
        "card=connectx-5",
        "driver=mlx5_core",
        "speed=100g",
        "speed=25g",
        "cable=n1.ens1f1--n2.ens1f1",
        "cable=n1.ens1f0--sw1.7",
    ]


def test_both_ends_of_a_cable_give_it_one_name() -> None:
    one = features_of("n1", {}, [], [Neighbour("a", "n2", "b")])
    other = features_of("n2", {}, [], [Neighbour("b", "n1", "a")])
    assert one == other == ["cable=n1.a--n2.b"]


def test_nothing_is_said_of_what_is_not_known() -> None:
    assert features_of("n1", {"kernel": None, "pci_adapters": None}, [FoundPort("p0")], []) == []


@given(
    st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=60),
    st.from_regex(r"[a-z0-9.]{1,15}", fullmatch=True),
)
def test_what_a_port_says_of_itself_is_read_by_others(machine: str, port: str) -> None:
    assert read_name(write_name(machine, port).ljust(60, b"\0")) == (machine, port)


@given(st.binary(max_size=80))
def test_other_frames_name_nobody(payload: bytes) -> None:
    read_name(b"nicbench is here:" + payload)  # whatever it says, it is read or refused
    assert read_name(payload) is None or payload.startswith(b"nicbench is here:")
