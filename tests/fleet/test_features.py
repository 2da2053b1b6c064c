"""What Slurm is told of a machine: its free ports, their cards and cables, and its kernel."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nicbench.first_steps.ports import FoundPort, Neighbour, read_name, write_name
from nicbench.fleet.jobs import features_of

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
