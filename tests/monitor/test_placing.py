"""Where a monitor runs: beside the CPUs that measure, or silent while they do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.fakes import FakeHost

from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.monitor.base import WatchedNetwork, machines, measuring_cpus, place
from nicbench.testbed.cores import CoreMap
from nicbench.testbed.labs.base import Testbed, TestHost

TESTBED = Testbed(
    tester=FakeHost("t"),
    dut=FakeHost("d"),
    tester_ports=(),
    dut_ports=(),
    cores=CoreMap(worker=0, dut=(1,), housekeeping=(2, 3), shared=False),
    link_bits_per_s=10e9,
    link_is_nominal=True,
)


def test_it_runs_on_the_cpus_that_do_not_measure() -> None:
    where = place(online=(0, 1, 2, 3, 5), measuring=(0, 1))
    assert where.cpus == (2, 3, 5)
    assert not where.paused
    assert where.during_trials == "on CPUs 2-3,5, which do not measure"


def test_where_every_cpu_measures_it_is_silent() -> None:
    where = place(online=(0, 1), measuring=(0, 1))
    assert where.paused
    assert "every CPU measures (0, 1)" in where.during_trials


@pytest.mark.parametrize(("online", "measuring"), [(None, (0,)), ((0, 1, 2, 3), ())])
def test_where_something_is_not_known_it_is_silent(online: tuple[int, ...] | None, measuring: tuple[int, ...]) -> None:
    where = place(online, measuring)
    assert where.paused
    assert not where.cpus


def test_workers_and_the_dut_measure() -> None:
    assert measuring_cpus(TESTBED, (1, 2), {}) == (0, 1, 2)
    assert measuring_cpus(TESTBED, (1,), {"options": {"worker_cpu": 3}}) == (1, 3)
    assert measuring_cpus(TESTBED, (1,), {"options": {"workers": [{"cpu": 2}, {"cpu": 3}]}}) == (1, 2, 3)


def test_who_sends_is_not_known_of_a_tester_that_names_no_cpu() -> None:
    cores = CoreMap(worker=None, dut=(), housekeeping=(), shared=False)
    assert measuring_cpus(replace(TESTBED, cores=cores), (1,), {}) == ()


def test_namespaces_of_one_machine_have_one_monitor() -> None:
    local = LocalHost("local")
    hosts = {"tester": NetnsHost(local, "one", "tester"), "dut": NetnsHost(local, "two", "dut"), "local": local}
    found = machines([TestHost("dut", name, host, ("eth9",)) for name, host in hosts.items()])
    assert list(found) == ["local"]
    machine = found["local"]
    assert (machine.host, machine.namespaces) == (local, {"one": "/run/netns/one", "two": "/run/netns/two"})


def test_all_of_a_namespace_is_watched_and_of_a_machine_its_ports() -> None:
    local = LocalHost("local")
    hosts = {"tester": NetnsHost(local, "one", "tester"), "dut": local}
    watched = machines([TestHost("dut", name, host, ("eth9",)) for name, host in hosts.items()])["local"].watched
    assert watched == {
        "/run/netns/one": WatchedNetwork(["tester"], []),
        None: WatchedNetwork(["dut"], ["eth9"]),
    }
