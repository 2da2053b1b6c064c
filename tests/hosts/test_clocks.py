"""Clocks of hosts are compared by asking them."""

from __future__ import annotations

import pytest
from tests.fakes import FakeHost, FakeProcess

from nicbench.core.errors import HostError
from nicbench.hosts import compare_clocks
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost

from .sshd_server import Server


async def test_a_host_by_ssh_that_has_our_clock_is_found_to_have_it(sshd: Server) -> None:
    (found,) = await compare_clocks([sshd.host()])

    assert (found.host, found.exchanges) == ("client1", 10)
    assert abs(found.offset_s) <= found.uncertainty_s + 1e-6  # it tells whole microseconds


async def test_what_is_on_this_machine_is_not_asked() -> None:
    found = await compare_clocks([LocalHost("tester"), NetnsHost(LocalHost(), "lab")])

    assert [(each.host, each.offset_s, each.exchanges) for each in found] == [("tester", 0.0, 0), ("lab", 0.0, 0)]


async def test_a_host_that_does_not_tell_the_time_is_an_error() -> None:
    host = FakeHost("odd")
    host.process(("sh", "-c"), FakeProcess(["%s.%N"]))
    with pytest.raises(HostError, match="odd: it does not tell the time"):
        await compare_clocks([host])
