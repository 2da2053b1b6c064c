"""Hosts of a bench file: how they are reached, and what is wrong with guests and the hosts that they stand on."""

from __future__ import annotations

import pytest
from tests.bench_file.conftest import Read, assert_refused

from nicbench.bench_file import BenchFile, WrongBenchFileError
from nicbench.core.errors import BenchFileError
from nicbench.hosts import build_hosts

_HEAD = (
    "nicbench: 1\ntitle: x\ndut: {kind: kernel-forward}\ntests: [{name: t, method: throughput}]\n"
    "ports: {t0: {host: tester, address: 0000:03:00.0}, d0: {host: dut, device: e1}}\nlinks: [t0 <-> d0]\n"
)


def _read(read: Read, section: str) -> BenchFile:
    return read(f"{_HEAD}hosts: {{tester: local, dut: {{kind: ssh, {section}}}}}\n")


def test_every_option_has_its_form(read: Read) -> None:
    bench = _read(
        read,
        "address: 10.0.0.5, user: root, port: 2222, key: ~/.ssh/k, known_hosts: k, jump: [a@b:22, c], "
        "connect_timeout: 5 s, lease: 20 s",
    )
    options = bench.hosts["dut"].options.model_dump(exclude_none=True)

    assert options == {
        "address": "10.0.0.5",
        "user": "root",
        "port": 2222,
        "key": "~/.ssh/k",
        "known_hosts": "k",
        "jump": ("a@b:22", "c"),
        "connect_timeout": 5.0,
        "lease": 20.0,
    }


def test_a_single_jump_host_may_stand_alone_and_a_proxy_command_is_a_list(read: Read) -> None:
    assert _read(read, "address: a, jump: b").hosts["dut"].options.model_dump()["jump"] == ("b",)
    assert _read(read, "address: a, proxy_command: [nc, b]").hosts["dut"].options.model_dump()["proxy_command"] == (
        "nc",
        "b",
    )


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("address: a, password: secret", "password"),
        ("address: a, lease: 1 s", "lease"),
        ("address: a, jump: b, proxy_command: [c]", "one of them"),
        ("address: -oProxyCommand=x", "address"),
        ("user: root", "address"),
    ],
)
def test_what_cannot_be_is_refused(read: Read, section: str, said: str) -> None:
    with pytest.raises(BenchFileError) as caught:
        _read(read, section)

    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("section", "step"), [("user: root", "add `address: 10.0.0.5`"), ("address: -v", "write it like `10.0.0.5`")]
)
def test_the_address_of_a_host_is_none_of_a_card(read: Read, section: str, step: str) -> None:
    with pytest.raises(BenchFileError) as caught:
        _read(read, section)
    assert f"{step}, or an alias of `~/.ssh/config`" in str(caught.value.next_step or caught.value)


FILE = """nicbench: 1
title: t
lab: {kind: veth}
dut: {kind: kernel-forward}
redfish:
  %s
tests:
  - {name: a, method: throughput}
"""


def test_a_controller_is_named_by_role(read: Read) -> None:
    bench = read(FILE % "tester: {url: 'https://bmc-1/', user: monitor, password_env: BMC_PASSWORD}")
    assert bench.redfish["tester"].url == "https://bmc-1"
    assert bench.controller_of("dut", "dut") is bench.redfish["tester"], "a lab is on one machine"


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("tester: {url: 'http://bmc-1', user: u, password_env: P}", "would send the password in the clear"),
        ("tester: {url: 'https://u:hunter2@bmc-1', user: u, password_env: P}", "has a user or a password in it"),
        ("tester: {url: 'ftp://bmc-1', user: u, password_env: P}", "is no address of a management controller"),
        ("tester: {url: 'https://bmc-1/redfish/v1', user: u, password_env: P}", "has a path"),
        ("tester: {url: 'https://bmc-1', user: u, password_env: 'hunter2!'}", "is no name of an environment variable"),
        ("tester: {url: 'https://bmc-1', user: u, password: hunter2}", "unknown key `redfish.tester.password`"),
        ("tester: {url: 'https://bmc-1', user: u}", "needs `password_env` or `password_file`"),
        ("tester: {url: 'https://bmc-1', user: u, password_file: pw}", "is no path of a file"),
        ("tester: {url: 'https://bmc-1', user: u, password_env: P, verify: false}", "cannot be `false`"),
        ("testr: {url: 'https://bmc-1', user: u, password_env: P}", "`redfish` names an unknown host `testr`"),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_without_a_password(read: Read, written: str, told: str) -> None:
    with pytest.raises(WrongBenchFileError) as caught:
        read(FILE % written)
    assert "b.yaml:6:" in str(caught.value)
    assert told in str(caught.value)
    assert "hunter2" not in str(caught.value)


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

WRONG = {
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
    text: str, change: tuple[str, str], line: int, column: int, message: str, step: str | None
) -> None:
    assert change[0] in text
    assert_refused(text.replace(*change), (line, column, message, step), and_more=True)


def test_a_lab_stands_on_a_host_of_the_bench_file(read: Read) -> None:
    bench = read(LAB)
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
    assert (here.lab.on, there.lab.on) == (None, "rack1")


TEXT = """nicbench: 1
title: x
hosts:
  a: {kind: vm, cards: {n0: {model: igb, network: x}, n1: {network: y}}}
  b: {kind: vm, cards: {n0: {network: x}, n1: {network: x}}}
  inside: {kind: netns, namespace: i, on: b, create: true}
ports:
  s0: {host: a, device: n0, ip: 198.18.0.1/24}
  c0: {host: b, device: n0, ip: 198.18.0.2/24}
  c1: {host: inside, device: n1, ip: 198.18.0.3/24}
links: [c0 <-> s0, c1 <-> s0]
dut: {kind: server, host: a}
tests: [{name: t, method: stream}]
"""
S0 = "device: n0, ip: 198.18.0.1/24"
WRONG_GUESTS = {
    "a card that is not there": (
        *(("b, device: n0", "b, device: n7"), 9),
        *("the virtual machine `b` has no card `n7`", "known cards: `n0`, `n1`"),
    ),
    "the machine's own interface": (
        *(("a, device: n0", "a, device: eth0"), 8),
        *("the virtual machine `a` has no card `eth0`", ""),
    ),
    "a card that is not there, of a namespace in the guest": (
        *(("inside, device: n1", "inside, device: e1"), 10),
        *("the virtual machine `b` has no card `e1`", ""),
    ),
    "a bond of cards that are not there": (
        *((S0, "bond: {of: [n0, n5]}, ip: 198.18.0.1/24"), 8),
        *("has no card `n5`", ""),
    ),
    "a guest without cards": (
        *(("a: {kind: vm, cards: {n0: {model: igb, network: x}, n1: {network: y}}}", "a: {kind: vm}"), 8),
        *("has no card `n0`", "write `cards: {n0: {}}` of a"),
    ),
    "more cards than a guest takes": (
        *(("n1: {network: y}", ", ".join(f"m{number}: {{}}" for number in range(16))), 4),
        *("`hosts.a.cards` is too long", "write at most 16"),
    ),
    "an address without a prefix": (
        *(("198.18.0.2/24", "198.18.0.2"), 9),
        *("`c0` is a card of a virtual machine, and it needs an address there", "write `ip: 198.18.0.1/24`"),
    ),
    "a virtual function of a card that has none": (
        *((S0, "virtual_function: {of: n1, number: 0}, ip: 198.18.0.1/24"), 8),
        *("a card `virtio-net-pci` has no virtual functions", "write `model: igb`"),
    ),
    "the eighth virtual function": (
        *((S0, "virtual_function: {of: n0, number: 7}, ip: 198.18.0.1/24"), 8),
        *("virtual functions of a card `igb` are 0 to 6", "write `number: 6` or less"),
    ),
    "a link between networks": (
        *(("a, device: n0", "a, device: n1"), 11),
        *("no network joins the cards of `c0` and `s0`", "write the same `network`"),
    ),
    "a link of a card whose cable ends nowhere": (
        *(("n0: {network: x}", "n0: {}"), 11),
        *("no network joins the cards of `c0` and `s0`", ""),
    ),
    "ends of a link in two networks": (
        *(("198.18.0.2/24", "198.19.0.2/24"), 11),
        *("have addresses of two networks, 198.19.0.0/24 and 198.18.0.0/24", "addresses of one network"),
    ),
    "one address of two guests": (
        *(("n1: {network: y}", "n1: {network: y, mac: '02:00:00:00:00:09'}"), 5),
        *("`a` and `b` both have a card with the address 02:00:00:00:00:09", "of its own"),
    ),
}


@pytest.mark.parametrize(("change", "line", "message", "step"), WRONG_GUESTS.values(), ids=WRONG_GUESTS)
def test_what_no_guest_can_be_is_refused(
    read: Read, change: tuple[str, str], line: int, message: str, step: str
) -> None:
    assert change[0] in TEXT
    text = TEXT.replace(*change)
    if "mac" in change[1]:
        text = text.replace("n1: {network: x}", "n1: {network: x, mac: '02:00:00:00:00:09'}")
    with pytest.raises(WrongBenchFileError) as wrong:
        read(text)
    problem = wrong.value.problems[0]
    assert message in problem.message
    assert problem.position.line == line
    assert step in (problem.next_step or "")


def test_guests_whose_ports_fit_are_accepted(read: Read) -> None:
    assert read(TEXT).ports["c1"].device == "n1"
    assert read(TEXT.replace(S0, "virtual_function: {of: n0, number: 6}, ip: 198.18.0.1/24")).ports["s0"].is_made
    two = "a: {kind: vm, cards: {n0: {pci: '0000:65:02.0'}, n1: {pci: '0000:65:02.1'}}}"
    given = TEXT.replace("a: {kind: vm, cards: {n0: {model: igb, network: x}, n1: {network: y}}}", two)
    assert read(given).links  # where the machine's cables lead is not known


def test_one_card_of_the_machine_is_not_given_to_two_guests(read: Read) -> None:
    card = "n0: {pci: '0000:65:02.0'}"
    text = TEXT.replace("n0: {model: igb, network: x}", card).replace("n0: {network: x}", card)
    with pytest.raises(WrongBenchFileError, match=r"both have the machine's card 0000:65:02\.0"):
        read(text)
