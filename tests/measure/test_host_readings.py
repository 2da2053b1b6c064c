"""What interfaces count: files of the kernel and the statistics of a driver that tell why."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.errors import HostError
from nicbench.core.round import EndpointFacts, HostCommand
from nicbench.hosts.kinds.local import LocalHost
from nicbench.measure.host_player import HostPlayer
from nicbench.measure.host_readings import (
    SenderCounts,
    is_telling,
    mount_of,
    parse_counters,
    parse_moment,
    parse_sockets,
    plain_address,
)
from nicbench.testbed.labs.base import Endpoint, EndpointTestbed
from nicbench.tuning.stack import UndoStack

TEXT = """\
/sys/class/net/s0/statistics/rx_bytes:123456
/sys/class/net/s0/statistics/tx_dropped:0
NIC statistics:
     rx_prio3_pause: 7
     rx_discards_phy: 2
     tx_queue_0_packets: 99
     peer_ifindex: 4
no stats available
/sys/class/infiniband/mlx5_0/ports/1/hw_counters/np_ecn_marked_roce_packets:5
"""


def test_bytes_drops_pauses_and_marks_are_kept_and_the_drivers_other_hundreds_are_not() -> None:
    assert parse_counters(TEXT) == {
        "rx_bytes": 123456,
        "tx_dropped": 0,
        "rx_prio3_pause": 7,
        "rx_discards_phy": 2,
        "np_ecn_marked_roce_packets": 5,
    }


def test_a_counter_of_what_rdma_repeated_that_did_not_rise_is_kept_for_it_says_that_nothing_was() -> None:
    assert is_telling("duplicate_request")
    assert is_telling("rx_prio3_pause")
    assert not is_telling("rcvd_pkts")


# Commands before a round that do not come to their end.


@pytest.fixture
def player(tmp_path: Path) -> HostPlayer:
    host = LocalHost("c0a")
    end = Endpoint(host, EndpointFacts(name="c0a", host="c0a", machine="local", address="127.0.0.1"))
    testbed = EndpointTestbed(servers=(end,), clients=(), link_is_nominal=True)
    return HostPlayer(testbed, tmp_path, UndoStack("a-run", None, tmp_path / "runtime"))


@pytest.mark.parametrize(
    ("run", "why"),
    [("sleep 60", "did not end within 0.1 s"), ("sleep 60 &", "did not end within 0.1 s")],
    ids=["hangs", "leaves something behind"],
)
async def test_one_that_does_not_end_is_named_with_its_host_its_time_and_what_to_do(
    run: str, why: str, player: HostPlayer
) -> None:
    with pytest.raises(HostError) as stopped:
        await player.run_before(HostCommand(host="c0a", run=run, timeout_s=0.1))
    assert stopped.value.place == "c0a"
    assert stopped.value.message.startswith(f"`before_each`, the command {run!r}")
    assert why in stopped.value.message
    assert ">/dev/null 2>&1 &" in str(stopped.value.next_step)


async def test_one_that_prints_too_much_is_named_as_well(player: HostPlayer) -> None:
    with pytest.raises(HostError, match=r"^c0a: `before_each`, the command 'yes' .*bytes of output; it was killed"):
        await player.run_before(HostCommand(host="c0a", run="yes", timeout_s=60.0))


async def test_caches_that_are_not_dropped_in_time_are_called_by_their_option(player: HostPlayer) -> None:
    with pytest.raises(HostError, match=r"^c0a: `drop_caches`") as stopped:
        await player.run_before(HostCommand(host="c0a", run="sleep 60", timeout_s=0.1, on_machine=True))
    assert "drop_caches: false" in str(stopped.value.next_step)


# Connections in the output of ss, and connections of mounts.


GOLDEN = Path(__file__).parent / "golden"


def golden(name: str) -> str:
    return (GOLDEN / name).read_text()


def test_a_connection_has_its_ends_its_bytes_and_its_process() -> None:
    control, stream, other = parse_sockets(golden("ss_tcp.txt"))
    assert stream.key == ("127.0.0.1", 39044, "127.0.0.1", 5999)
    assert (stream.sent_bytes, stream.received_bytes, stream.pids) == (2229937842, 0, frozenset({18298}))
    assert (control.sent_bytes, control.received_bytes) == (164, 4)
    assert other.key == ("127.0.0.1", 5999, "127.0.0.1", 39038)


def test_an_older_ss_tells_what_was_acknowledged() -> None:
    (socket,) = parse_sockets("ESTAB 0 0 [fe80::1%eth0]:1 [fe80::2]:2\n\t cubic rto:204 bytes_acked:7\n")
    assert socket.key == ("fe80::1", 1, "fe80::2", 2)
    assert (socket.sent_bytes, socket.received_bytes) == (7, 0)


def test_without_the_kernels_counts_bytes_are_unknown() -> None:
    (socket,) = parse_sockets("ESTAB 0 0 10.0.0.1:5201 10.0.0.2:40000\n")
    assert (socket.sent_bytes, socket.received_bytes) == (None, None)


def test_lines_of_others_are_left_out() -> None:
    assert parse_sockets("LISTEN 0 4096 *:22 *:*\nState Recv-Q\n\n   what\n") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [("[::ffff:10.0.0.1]", "10.0.0.1"), ("2001:DB8::1", "2001:db8::1"), ("fe80::1%bond0", "fe80::1")],
)
def test_an_address_is_written_in_one_way(text: str, expected: str) -> None:
    assert plain_address(text) == expected


def test_an_nfs_mount_has_the_connections_that_it_names() -> None:
    mount = mount_of(golden("mount_nfs.txt"))
    assert (mount.target, mount.kind, mount.shared) == ("/mnt/b", "nfs4", False)
    assert [socket.local_port for socket in mount.connections] == [875, 901]


def test_an_nfs_mount_that_names_none_may_share_those_of_others() -> None:
    mount = mount_of(golden("mount_nfs.txt").replace("tcp 875", "tcp 0").replace("tcp 901", "tcp 0"))
    assert mount.shared
    assert [socket.local_port for socket in mount.connections] == [832, 875, 901]


def test_a_file_system_in_user_space_has_those_of_its_process() -> None:
    mount = mount_of(golden("mount_fuse.txt"))
    assert [socket.local_port for socket in mount.connections] == [700]


def test_a_local_directory_has_none() -> None:
    assert mount_of(golden("mount_local.txt")) is None
    assert mount_of("") is None


def test_a_moment_has_counters_connections_and_next_hops() -> None:
    moment = parse_moment(golden("moment.txt"))
    assert moment.ports == {"eth3": (12000000, 700), "eth2": (13000000, 500)}
    assert [socket.peer for socket in moment.tcp] == ["10.0.0.2"]
    assert moment.mac_towards("10.0.0.2") == "44:38:39:00:00:a0"
    assert moment.mac_towards("10.9.0.2") == "44:38:39:00:00:fe"  # by way of a router
    assert moment.mac_towards("10.0.0.77") is None


def test_a_sender_tells_what_was_marked_and_sent_again() -> None:
    line = (
        "\t ts sack ecn ecnseen dctcp wscale:7,7 rto:204 rtt:1.25/0.5 mss:1448 cwnd:12 ssthresh:9 bytes_sent:30000 "
        "bytes_retrans:1448 bytes_acked:28000 delivered:20 delivered_ce:5 unacked:2 retrans:0/1 minrtt:0.5"
    )
    (socket,) = parse_sockets(f"ESTAB 0 0 10.0.0.1:40000 10.0.0.2:5201 timer:(on,1.2ms,0)\n{line}\n")
    assert socket.sender == SenderCounts(28000, 20, 5, 1, 1.25e6, 12, "dctcp", True)


def test_a_sender_without_ecn_has_no_marks() -> None:
    (socket,) = parse_sockets("ESTAB 0 0 10.0.0.1:1 10.0.0.2:2\n\t ts sack cubic rto:204 delivered:7 cwnd:10\n")
    assert socket.sender == SenderCounts(0, 7, 0, 0, None, 10, "cubic", False)
