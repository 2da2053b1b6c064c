"""Shares by SFTP: what is run, to the last word."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from tests.fakes import FakeHost

from nicbench.core.round import EndpointFacts
from nicbench.testbed.labs.base import Endpoint
from nicbench.testbed.shares.base import Share
from nicbench.testbed.shares.protocols import Sftp

FOUND = {"socat": "/usr/bin/socat", "sftp-server": "/usr/lib/openssh/sftp-server"}


def end(name: str, address: str) -> Endpoint:
    return Endpoint(FakeHost(name), EndpointFacts(name=name, host=name, machine=name, address=address))


def share(number: int = 2, server: str = "198.18.0.1", client: str = "198.18.0.11") -> Share:
    return Share(number, f"/stor/d{number}/ours", end("s0", server), end("c1", client), f"/run/mounts/{number}")


def test_the_server_takes_connections_of_its_client_alone_and_hands_them_over_as_they_are() -> None:
    (server,) = Sftp({}).servers([share()], FOUND)
    assert server.command == (
        "/usr/bin/socat",
        "TCP4-LISTEN:3202,bind=198.18.0.1,range=198.18.0.11/32,reuseaddr,nodelay,fork",
        "EXEC:/usr/lib/openssh/sftp-server -e,nofork",
    )
    assert (server.address, server.tcp_port) == ("198.18.0.1", 3202)


def test_the_client_mounts_by_the_port_of_its_share() -> None:
    assert Sftp({}).mount_command(share()) == (
        *("sshfs", "-o", "directport=3202"),
        *("198.18.0.1:/stor/d2/ours", "/run/mounts/2"),
    )


def test_addresses_of_ipv6_are_told_from_ports() -> None:
    shares = share(1, "2001:db8::1", "2001:db8::2")
    (server,) = Sftp({}).servers([shares], FOUND)
    assert server.command[1].startswith("TCP6-LISTEN:3201,bind=[2001:db8::1],range=[2001:db8::2]/128,")
    assert Sftp({}).mount_command(shares)[3] == "[2001:db8::1]:/stor/d1/ours"


def test_options_reach_sshfs_as_they_were_written() -> None:
    kind = Sftp({"first_port": 9000, "connections": 4, "options": ["direct_io", "max_readahead=0"]})
    assert kind.mount_command(share())[2] == "directport=9001,max_conns=4,direct_io,max_readahead=0"


@pytest.mark.parametrize("option", ["a,b", "a b", "", "a'b"])
def test_an_option_is_one_word(option: str) -> None:
    with pytest.raises(ValidationError):
        Sftp({"options": [option]})
