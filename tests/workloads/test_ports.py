"""Who listens where, from /proc/net as the kernel prints it."""

from __future__ import annotations

from nicbench.workloads.base import Listening
from nicbench.workloads.processes import is_open, parse_listeners

HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
REST = "00000000:00000000 00:00000000 00000000     0        0 4764617 1 0000000000000000 100 0 0 10 0\n"
TABLES = (
    "@/proc/net/tcp\n"
    f"{HEADER}   0: 025A12C6:1518 00000000:0000 0A {REST}"
    f"   1: 025A12C6:157C 015A12C6:ACFD 06 {REST}"
    f"@/proc/net/tcp6\n{HEADER}"
    f"   0: 00000000000000000000000000000000:15E0 00000000000000000000000000000000:0000 0A {REST}"
    f"   1: B80D01200000000000000000{'01000000'}:1F90 00000000000000000000000000000000:0000 0A {REST}"
    f"   2: 0000000000000000FFFF0000025A12C6:1F91 00000000000000000000000000000000:0000 0A {REST}"
    f"@/proc/net/udp\n{HEADER} 9544: 00000000:1518 00000000:0000 07 {REST}@/proc/net/udp6\n{HEADER}"
)


def test_a_listening_socket_is_found_at_its_address_and_at_no_other() -> None:
    sockets = parse_listeners(TABLES)
    assert is_open(Listening("tcp", 5400, "198.18.90.2"), sockets)
    assert is_open(Listening("tcp", 5400), sockets)
    assert not is_open(Listening("tcp", 5400, "198.18.90.3"), sockets)
    assert is_open(Listening("udp", 5400, "198.18.90.3"), sockets)
    assert not is_open(Listening("udp", 5401), sockets)


def test_a_socket_of_ipv6_takes_ipv4_too() -> None:
    sockets = parse_listeners(TABLES)
    assert is_open(Listening("tcp", 5600, "198.18.90.2"), sockets)
    assert is_open(Listening("tcp", 8080, "2001:db8::1"), sockets)
    assert is_open(Listening("tcp", 8080, "2001:db8::1%eth0"), sockets)
    assert is_open(Listening("tcp", 8081, "198.18.90.2"), sockets)


def test_a_connection_that_has_ended_does_not_listen() -> None:
    assert not is_open(Listening("tcp", 5500), parse_listeners(TABLES))


def test_lines_that_are_none_of_a_socket_are_passed_over() -> None:
    assert (
        parse_listeners("@/proc/net/tcp\n  1: zz:1 0 0A\n x\n  2: 0100007F:FFFFFFFFFFFFFFFFFFFF 0 0A\n\n") is not None
    )
