"""`on: NAME`: what is made on which host of the bench file; where it cannot be, the error points there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nicbench.bench_file import BenchFile, WrongBenchFileError
from nicbench.hosts import build_hosts

Read = Callable[[str], BenchFile]

LAB = """nicbench: 1
title: x
lab: {kind: clients, on: rack1}
hosts:
  rack1: {kind: ssh, address: 192.0.2.1}
dut: {kind: server}
tests: [{name: t, method: stream}]
"""
HOSTS = """nicbench: 1
title: x
hosts:
  rack1: {kind: ssh, address: 192.0.2.1}
  server: {kind: netns, namespace: s, on: rack1}
  client: {kind: container, root: /, on: space}
  space: {kind: netns, namespace: c, on: rack1}
ports:
  s0: {host: server, device: e0}
  c0: {host: client, device: e1}
links: [c0 <-> s0]
dut: {kind: server}
tests: [{name: t, method: stream}]
"""

WRONG: dict[str, tuple[str, tuple[str, str], int, int, str, str | None]] = {
    "a lab on a host that is not there": (
        *(LAB, ("on: rack1", "on: rack2")),
        *(3, 26, "there is no host `rack2`", "did you mean `rack1`?"),
    ),
    "a lab on a host, and no hosts": (
        *(LAB, ("hosts:\n  rack1: {kind: ssh, address: 192.0.2.1}\n", "")),
        *(3, 26, "there is no host `rack1`", "name it under `hosts`"),
    ),
    "a lab on a namespace": (
        *(LAB, ("{kind: ssh, address: 192.0.2.1}", "{kind: netns, namespace: x}")),
        *(3, 26, "a lab is made on a whole machine, and `rack1` is a netns", "name a host of the kind `local`, `ssh`"),
    ),
    "a lab that is made nowhere": (
        *(LAB, ("kind: clients", "kind: simulated")),
        *(3, 24, "the simulated lab needs no machine", "remove `on`"),
    ),
    "a host that nothing stands on": (
        *(LAB, ("dut:", "  rack2: {kind: ssh, address: 192.0.2.2}\ndut:")),
        *(6, 3, "the lab is made on `rack1`, so the host `rack2` has no effect", "remove `rack2`, or `lab`"),
    ),
    "hosts beside a lab that is made here": (
        *(LAB, (", on: rack1", "")),
        *(
            4,
            1,
            "`lab` makes its own hosts and links, so `hosts` has no effect",
            "remove `hosts`, or remove `lab`; a lab",
        ),
    ),
    "a name that is none": (
        LAB,
        ("on: rack1", "on: [rack1]"),
        3,
        26,
        "`on` must be the name of a host",
        "write `on: NAME`",
    ),
    "a machine on another": (
        *(HOSTS, ("address: 192.0.2.1}", "address: 192.0.2.1, on: server}")),
        *(
            4,
            42,
            "a host of the kind `ssh` is never made on another one",
            "remove `on`; it is for `container`, `netns`",
        ),
    ),
    "a namespace in a namespace": (
        *(HOSTS, ("namespace: s, on: rack1", "namespace: s, on: space")),
        *(5, 43, "a netns cannot be made on `space`, which is a netns", "name a host of the kind `local`, `ssh`"),
    ),
    "both ways of saying it": (
        *(HOSTS, ("on: space", "on: space, inner: local")),
        *(6, 49, "`client` has both `on` and `inner`", "keep `on`"),
    ),
    "two hosts on each other": (
        *(HOSTS, ("namespace: c, on: rack1", "namespace: c, on: client")),
        *(6, 42, "hosts are made on each other: `client` on `space` on `client`", None),
    ),
    "a host on itself": (
        *(HOSTS, ("namespace: s, on: rack1", "namespace: s, on: server")),
        *(5, 43, "hosts are made on each other: `server` on `server`", None),
    ),
}


@pytest.mark.parametrize(("text", "change", "line", "column", "message", "step"), WRONG.values(), ids=WRONG)
def test_an_error_points_at_what_cannot_stand_there(
    read: Read, text: str, change: tuple[str, str], line: int, column: int, message: str, step: str | None
) -> None:
    assert change[0] in text
    with pytest.raises(WrongBenchFileError) as wrong:
        read(text.replace(*change))
    problem = wrong.value.problems[0]
    assert (problem.position.line, problem.position.column) == (line, column)
    assert message in problem.message
    assert step is None or step in (problem.next_step or "")


def test_a_lab_stands_on_a_host_of_the_bench_file(read: Read) -> None:
    bench = read(LAB)
    assert bench.lab is not None
    assert bench.lab.on == "rack1"


def test_every_host_is_made_once_and_stands_on_the_very_one_that_is_named(read: Read) -> None:
    hosts = build_hosts(read(HOSTS).hosts)
    assert list(hosts) == ["rack1", "server", "client", "space"]
    assert hosts["server"].machine is hosts["rack1"]
    assert hosts["client"].machine is hosts["rack1"]
    assert hosts["client"].network.spec() == hosts["space"].spec()
    assert hosts["client"].spec()["inner"] == hosts["space"].spec()


def test_one_namespace_of_two_machines_is_two_places(read: Read) -> None:
    text = HOSTS.replace("namespace: s, on: rack1", "namespace: c").replace("device: e1", "device: e0")
    read(text)  # both interfaces are called e0, in a namespace c, on two machines
    same = (
        HOSTS.replace("namespace: s", "namespace: c")
        .replace("device: e1", "device: e0")
        .replace("host: client", "host: space")
    )
    with pytest.raises(WrongBenchFileError, match="are both the interface `e0`"):
        read(same)


def test_a_configuration_may_put_a_lab_elsewhere(read: Read) -> None:
    text = LAB.replace(", on: rack1", "").replace("hosts:\n  rack1: {kind: ssh, address: 192.0.2.1}\n", "")
    overlays = (
        "configurations:\n  here:\n  there: {lab: {on: rack1}, hosts: {rack1: {kind: ssh, address: 192.0.2.1}}}\n"
    )
    here, there = read(text + overlays).configurations
    assert here.lab is not None
    assert there.lab is not None
    assert (here.lab.on, there.lab.on) == (None, "rack1")
