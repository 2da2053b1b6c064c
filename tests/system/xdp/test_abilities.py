"""What an interface can do with XDP: by the kernel's own word, and by driver and version where it has none."""

from __future__ import annotations

import pytest
from tests.fakes import FakeHost

from nicbench.system.xdp.abilities import Mode, abilities, abilities_of, count_queues, parse_queues
from nicbench.system.xdp.asking import Flags


@pytest.mark.parametrize(
    ("driver", "flags", "kernel", "expected"),
    [
        ("ice", Flags(0b1111), (6, 12), Mode.ZERO_COPY),
        ("veth", Flags(0b100011), (6, 12), Mode.NATIVE),
        ("ice", Flags(0), (6, 12), Mode.GENERIC),  # the kernel's word counts more than the table
        ("ice", None, (5, 10), Mode.ZERO_COPY),
        ("ice", None, (4, 19), Mode.GENERIC),
        ("mlx5_core", None, (4, 19), Mode.NATIVE),
        ("nfp", None, (5, 18), Mode.ZERO_COPY),
        ("virtio_net", None, (6, 1), Mode.NATIVE),
        ("r8169", None, (6, 1), Mode.GENERIC),
        ("ice", None, None, Mode.GENERIC),
        ("ixgbevf", Flags(0b1), (6, 12), Mode.GENERIC),  # native, but it redirects nothing
    ],
)
def test_how_af_xdp_works(driver: str, flags: Flags | None, kernel: tuple[int, int] | None, expected: Mode) -> None:
    assert abilities(driver, flags, kernel).mode is expected


@pytest.mark.parametrize(
    ("driver", "flags", "kernel", "is_target", "with_program"),
    [
        ("virtio_net", Flags(0b101011), (6, 18), True, True),  # it says so once a program is attached
        ("virtio_net", Flags(0b101111), (6, 18), True, False),
        ("mlx4_core", Flags(0b11), (6, 18), False, False),
        ("veth", Flags(0b100011), (6, 18), False, False),  # its peer has neither GRO nor a program
        ("veth", Flags(0b1100111), (6, 18), True, False),
        ("virtio_net", None, (6, 1), True, True),
        ("veth", None, (6, 1), True, False),
        ("mlx4_core", None, (6, 1), False, False),
        ("igb", None, (5, 9), False, False),
        ("i40e", Flags(0), (6, 18), False, False),
    ],
)
def test_who_takes_redirected_frames(
    driver: str, flags: Flags | None, kernel: tuple[int, int], is_target: bool, with_program: bool
) -> None:
    can = abilities(driver, flags, kernel)
    assert (can.redirect_target, can.needs_program_as_target) == (is_target, with_program)


def test_metadata_and_frames_of_several_buffers_are_named_where_the_kernel_tells() -> None:
    can = abilities("mlx5_core", Flags(0b1101111, 0b101, 0b011), (6, 18), queues=8)
    assert can.receive_metadata == ("time stamp", "VLAN tag")
    assert can.transmit_metadata == ("time stamp", "checksum")
    assert (can.multi_buffer_receive, can.multi_buffer_transmit, can.queues) == (True, True, 8)
    assert abilities("ice", Flags(0b11, 0, 0), (6, 18)).receive_metadata == ()


def test_what_an_old_kernel_does_not_tell_is_unknown() -> None:
    can = abilities("mlx5_core", None, (6, 1))
    assert (can.receive_metadata, can.transmit_metadata, can.multi_buffer_receive) == (None, None, None)
    assert can.native_since == "4.9"
    assert abilities("mlx5_core", Flags(0b11), (6, 5)).receive_metadata is None


def test_queues_are_counted_where_the_interface_exists() -> None:
    assert parse_queues("eth0 1\nenp3s0f1np1 16\n") == {"eth0": 1, "enp3s0f1np1": 16}
    assert parse_queues("eth0 many\n\n") == {}


async def test_an_interface_is_looked_up_in_the_hosts_own_network() -> None:
    host = FakeHost(files={"/proc/sys/kernel/osrelease": "6.1.0-21-amd64\n"})
    host.answer("ethtool -i", "driver: igb\nversion: 6.1\n")
    host.answer("sh -c", "eth1 4\n")
    can = await abilities_of(host, "eth1")
    assert (can.driver, can.native, can.redirect_target, can.queues) == ("igb", True, True, 4)
    assert await count_queues(host, ("eth1",)) == {"eth1": 4}
