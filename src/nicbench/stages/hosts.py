"""The hosts of a bench file before the testbed: made, looked at for what they lack, and inventoried."""

from __future__ import annotations

import json
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from nicbench.bench_file.models import BenchFile
from nicbench.core.errors import HostError, NotReadyError, UnknownFactError
from nicbench.core.frozen import frozen
from nicbench.core.redaction import Redactor
from nicbench.core.registry import find
from nicbench.hosts import build_hosts, host_from_spec
from nicbench.hosts.asking import values_of
from nicbench.hosts.base import Host
from nicbench.hosts.containers import engine_command
from nicbench.hosts.kinds.container import ContainerHost
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.hosts.kinds.vm import VmHost
from nicbench.system.inventory.base import Known, collect_host, host_name
from nicbench.testbed.interfaces.base import Making, Port
from nicbench.testbed.interfaces.bond import make_bonds
from nicbench.testbed.interfaces.cards import bind_cards, make_virtual_functions
from nicbench.testbed.interfaces.host_interfaces import make_rdma_devices
from nicbench.testbed.interfaces.namespaces import (
    assign_addresses,
    bring_up_interfaces,
    make_namespaces,
    move_interfaces,
)
from nicbench.testbed.vm.booting import boot
from nicbench.testbed.vm.programs import find_emulator, find_kernel, own_kernel
from nicbench.tuning.changes import Changes
from nicbench.tuning.lock import holder_words
from nicbench.tuning.record import RUNTIME_FOLDER, has_records
from nicbench.workloads.base import Workload

# Before the testbed: the live hosts of a bench file, each once, and what nicbench makes of its ports on them.


async def make_hosts(bench: BenchFile, changes: Changes) -> Mapping[str, Host]:
    """Every host by its name: virtual machines are booted, and interfaces that ports name are up.

    NotReadyError where a machine does not come up.
    """
    guests = {name: host.options for name, host in build_hosts(bench.hosts).items() if isinstance(host, VmHost)}
    hosts = build_hosts(bench.hosts, await boot(guests, changes, LocalHost("local")))
    await bring_up_interfaces(bench.ports, hosts, changes)
    return hosts


def machine_of_lab(bench: BenchFile, hosts: Mapping[str, Host]) -> Host:
    """The host that the lab of a bench file is made on: this machine, or the one that `on` names."""
    return LocalHost("local") if bench.lab is None or bench.lab.on is None else hosts[bench.lab.on]


def disclose_hosts(hosts: Mapping[str, Host]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """What the report says plainly of the hosts, and the fact ``hosts``: how each was made that was not there."""
    statements = dict.fromkeys(sentence for host in hosts.values() for sentence in host.statements())
    made = {name: told for name, host in hosts.items() if (told := host.disclosure())}
    return tuple(statements), {"hosts": made} if made else {}


def describe_making(bench: BenchFile) -> str:
    """``making the testbed``, and what of it takes its time."""
    guests = [name for name, choice in bench.hosts.items() if choice.plugin.made_here]
    return f"making the testbed: {', '.join(guests)} is booting" if guests else "making the testbed"


def starts_hosts(bench: BenchFile) -> bool:
    """Whether a host is named that is not there before it is booting."""
    return any(choice.plugin.made_here for choice in bench.hosts.values())


# A virtual function is an interface before it is moved; a bond is made where its members are; an address is of what is
# made last; an RDMA device is over an interface with its address.
_STEPS: Final[tuple[Callable[[Making], Awaitable[None]], ...]] = (
    make_virtual_functions,
    bind_cards,
    make_namespaces,
    move_interfaces,
    make_bonds,
    assign_addresses,
    make_rdma_devices,
)


async def make_ports(bench: BenchFile, hosts: Mapping[str, Host], changes: Changes) -> Making:
    """The ports as they are then, with facts for the report; NotReadyError where something cannot be made."""
    making = Making(hosts, dict(bench.ports), changes, created=tuple(_created_namespaces(bench, hosts)))
    for step in _STEPS:
        await step(making)
    return making


def makes_ports(bench: BenchFile) -> bool:
    """Whether anything is made for the hosts and ports of a bench file."""
    created = any(getattr(choice.options, "create", False) for choice in bench.hosts.values())
    return created or any(port.is_made for port in bench.ports.values())


def _created_namespaces(bench: BenchFile, hosts: Mapping[str, Host]) -> list[NetnsHost]:
    found = [hosts[name] for name, choice in bench.hosts.items() if getattr(choice.options, "create", False)]
    return [host for host in found if isinstance(host, NetnsHost)]


# What a bench file names and this machine lacks: interfaces, PCI devices, images, kernels, nodes. Changes nothing.
# Only this machine is looked at. Nothing is said to other machines: a file can be checked far from its rack.

ROOT: Final = Path("/")
_SYSTEM: Final = "sys/devices/system"


@frozen
class Absent:
    """Something that is not there. ``place`` is where the bench file names it, ``next_step`` what to do."""

    place: str
    what: str
    next_step: str
    may_come: bool = False
    """Whether it may be there once other runs have ended: they move interfaces, and make namespaces."""

    def __str__(self) -> str:
        return f"{self.place}: {self.what}; {self.next_step}"


@dataclass(slots=True)
class Presence:
    """What was looked for on this machine, what of it is absent, and what could not be looked at."""

    looked_for: dict[str, None] = field(default_factory=dict)
    absent: dict[Absent, None] = field(default_factory=dict)
    not_looked_at: dict[str, None] = field(default_factory=dict)

    def expect(self, thing: str, there: bool, place: str, next_step: str, *, may_come: bool = False) -> None:
        """Notes that ``thing`` was looked for, and where it is absent."""
        self.looked_for[thing] = None
        if not there:
            self.absent[Absent(place, f"there is no {thing}", next_step, may_come)] = None

    def search(self, thing: str, place: str, search: Callable[[], object]) -> None:
        """The same by a function that raises NotReadyError where it is absent."""
        self.looked_for[thing] = None
        try:
            search()
        except NotReadyError as error:
            self.absent[Absent(place, error.message, error.next_step or "see `nicbench doctor`")] = None

    def document(self) -> dict[str, Any]:
        """Plain data for programs."""
        absent = [{"place": one.place, "message": one.what, "next_step": one.next_step} for one in self.absent]
        return {"looked_for": list(self.looked_for), "absent": absent, "not_looked_at": list(self.not_looked_at)}


async def require_named(bench: BenchFile, runtime: Path = RUNTIME_FOLDER) -> None:
    """Raises NotReadyError for what a bench file names and this machine lacks, before anything is waited for.

    What other runs on this machine, or their undo, may bring back is left to whoever holds the machine.
    """
    absent = (await look_for_named(bench)).absent
    if holder_words(runtime) is not None or has_records(runtime):
        absent = {one: None for one in absent if not one.may_come}
    for first in absent:
        others = f" (and {len(absent) - 1} more: `nicbench validate` names them)" if len(absent) > 1 else ""
        raise NotReadyError(f"{first.what}{others}", place=first.place, next_step=first.next_step)


async def look_for_named(bench: BenchFile, root: Path = ROOT) -> Presence:
    """Looks for what the configurations of a bench file name on this machine, whose files are below ``root``."""
    found = Presence()
    for each in bench.configurations:
        hosts = build_hosts(each.hosts)
        created = {name for name, choice in each.hosts.items() if getattr(choice.options, "create", False)}
        for name, host in hosts.items():
            await _look_for_host(found, f"hosts.{name}", host, name in created, root)
        for name, port in each.ports.items():
            host = hosts[port.host]
            if isinstance(host.machine, LocalHost):
                _look_for_cards(found, f"ports.{name}", port, root)
                await _look_for_interfaces(found, f"ports.{name}", port, host, port.host in created)
        if each.measures == "frames" and each.tester_kind().own_ports():
            found.not_looked_at[f"the ports of the tester {each.tester.kind}: only its server knows them"] = None
        _look_for_meters(found, each, hosts, root)
        _look_for_programs(found, each, hosts)
    return found


def _look_for_programs(found: Presence, bench: BenchFile, hosts: Mapping[str, Host]) -> None:
    """What the DUT needs, and the tools of tests whose every job runs on this machine; a container has its own."""
    ends = hosts.values()
    is_here = all(isinstance(end, LocalHost | NetnsHost) and isinstance(end.machine, LocalHost) for end in ends)
    if not is_here or (bench.lab is not None and bench.lab.on is not None):
        return
    for program, step in bench.dut.plugin(bench.dut.options).programs().items():
        found.expect(f"program {program}", shutil.which(program) is not None, "dut", step)
    if bench.measures == "frames":
        return
    tools = find("nicbench.workloads.tools", Workload)
    for test in bench.tests:
        for choice, ask in test.build().job_specs():
            tool = tools[choice.kind](choice.options)
            if not tool.is_ours:
                program = tool.program(ask)
                step = f"install it: apt-get install {tool.package}"
                found.expect(f"program {program}", shutil.which(program) is not None, f"test {test.name}", step)


_METERS: Final = {
    "rapl": ("sys/class/powercap/*-rapl:*",),
    "hwmon": ("sys/class/hwmon/hwmon*/power*_average", "sys/class/hwmon/hwmon*/power*_input"),
    "ipmi": ("dev/ipmi*",),
}
"""Where the meters of a machine are, by the words of ``power``."""


def _look_for_meters(found: Presence, bench: BenchFile, hosts: Mapping[str, Host], root: Path) -> None:
    """A meter of this machine, where the DUT is on it and a test asks for one; `redfish` is on the network."""
    is_real_lab = bench.lab is not None and bench.lab.plugin.touches_machine
    is_here = is_real_lab or any(
        isinstance(host.machine, LocalHost) for name, host in hosts.items() if bench.role_of(name) == "dut"
    )
    for test in bench.tests:
        wish = test.build().power_wish()
        if wish is None or not is_here or (bench.redfish and "redfish" in wish.methods):
            continue
        places = [place for method in wish.methods for place in _METERS.get(method, ())]
        there = any(next(iter(root.glob(place)), None) is not None for place in places)
        step = "a virtual machine seldom has one; name the machine's management controller under `redfish`"
        found.expect(f"meter of power ({', '.join(wish.methods)})", there, f"test {test.name}", step)


async def _look_for_host(found: Presence, place: str, host: Host, is_created: bool, root: Path) -> None:
    if isinstance(host, VmHost):
        _look_for_guest(found, place, host, root)
    elif not isinstance(host.machine, LocalHost):
        if not host.machine.made_here:
            found.not_looked_at[f"{place}: another machine ({host.machine.kind})"] = None
    elif isinstance(host, ContainerHost):
        await _look_for_image(found, place, host, root)
    elif isinstance(host, NetnsHost) and not is_created:
        step = "make it (`ip netns add`), or write `create: true`"
        found.expect(f"network namespace {host.namespace}", await host.exists(), place, step, may_come=True)


def _look_for_guest(found: Presence, place: str, host: VmHost, root: Path) -> None:
    options = host.options
    found.search("QEMU", place, find_emulator)
    found.search("a kernel for guests", place, find_kernel if options.kernel == "fetched" else own_kernel)
    if options.accelerator == "kvm":
        step = "switch virtualisation on in the BIOS, or write `accelerator: auto`"
        found.expect("/dev/kvm", (root / "dev/kvm").exists(), place, step)
    for card in options.cards.values():
        if card.pci is not None:
            _look_for_card(found, place, card.pci, root)
    for word, numbers, path in (("CPU", options.pin, "cpu/cpu"), ("NUMA node", options.memory_nodes, "node/node")):
        lacking = [number for number in numbers if not (root / f"{_SYSTEM}/{path}{number}").exists()]
        named = lacking or numbers
        thing = f"{word} {', '.join(map(str, named))}"
        if numbers:
            found.expect(thing, not lacking, place, "`lscpu` lists those that there are")
    if options.huge_pages is not None:
        size = int(options.huge_pages) // 1024
        there = (root / f"sys/kernel/mm/hugepages/hugepages-{size}kB").exists()
        found.expect(
            f"kind of huge pages of {size // 1024} MiB", there, place, "choose a size of /sys/kernel/mm/hugepages"
        )


async def _look_for_image(found: Presence, place: str, host: ContainerHost, root: Path) -> None:
    options = host.options
    if options.root is not None:
        there = (root / options.root.lstrip("/")).is_dir()
        found.expect(f"folder {options.root}", there, place, "write the folder of a root file system")
        return
    there = shutil.which(options.engine) is not None
    found.expect(f"program {options.engine}", there, place, f"install {options.engine}")
    if there:
        command = (*engine_command(options), "image", "inspect", str(options.image))
        done = await host.machine.run(command, check=False)
        step = f"`{options.engine} pull {options.image}`, because nicbench pulls no images"
        found.expect(f"image {options.image} of {options.engine}", done.status == 0, place, step)


def _look_for_cards(found: Presence, place: str, port: Port, root: Path) -> None:
    if port.address is not None:
        _look_for_card(found, place, port.address, root)


def _look_for_card(found: Presence, place: str, address: str, root: Path) -> None:
    there = (root / "sys/bus/pci/devices" / address.lower()).exists()
    found.expect(f"PCI device {address}", there, place, "`lspci -D` lists those that there are")


async def _look_for_interfaces(found: Presence, place: str, port: Port, host: Host, is_created: bool) -> None:
    """Those that are there before nicbench makes or moves anything."""
    names = port.devices or ((port.device,) if port.device is not None else ())
    names = (port.virtual_function.of,) if port.virtual_function is not None else names
    # The ports of a namespace that nicbench makes are moved there out of the one around it.
    seen_from = host.inner if is_created and isinstance(host, NetnsHost) else host.network
    if not names or (isinstance(seen_from, NetnsHost) and not await seen_from.exists()):
        return
    if isinstance(seen_from, ContainerHost):
        found.not_looked_at[f"{place}: the interfaces of a container that is not started"] = None
        return
    try:
        links = json.loads((await seen_from.run(("ip", "-j", "link", "show"))).stdout or "[]")
    except HostError as error:
        found.not_looked_at[f"{place}: {error.message}"] = None
        return
    for name in names:
        step = "`ip link` lists those that there are"
        found.expect(f"interface {name}", name in _names_of(links), place, step, may_come=True)


def _names_of(links: list[Mapping[str, Any]]) -> set[str]:
    """With their alternative names, by which the kernel finds them too."""
    return {name for link in links for name in (link.get("ifname", ""), *link.get("altnames", ()))}


# The inventory without a run: of this machine, or of the hosts that a bench file names. Changes nothing.

THIS_MACHINE: Final = "this machine"
_INTERFACES: Final = "/sys/class/net"


async def inventory_of(bench: BenchFile | None, *, redact: bool) -> dict[str, Any]:
    """Facts by host; of a bench file with a lab, which is made on this machine, this one's."""
    redactor = Redactor() if redact else None
    known: Known = {}
    found = {}
    for host, devices in await _hosts(bench):
        controller = None if bench is None else bench.controller_of(bench.role_of(host.name), host.name)
        found[host.name] = await collect_host(host, devices, known, controller)
        if redactor is not None:
            redactor.learn_host_name(await host_name(host))
            redactor.learn(found[host.name])
    return found if redactor is None else {name: redactor(facts) for name, facts in found.items()}


async def _hosts(bench: BenchFile | None) -> list[tuple[Host, tuple[str, ...]]]:
    """Returns each host with the interfaces to report: the interfaces of the test, or all of its cards."""
    if bench is None or not bench.hosts:
        local = LocalHost(THIS_MACHINE)
        return [(local, await _interfaces(local))]
    every = []
    for name, host in build_hosts(bench.hosts).items():
        if host.machine.made_here:
            continue  # it is not there yet, and has no facts of its own: a run's inventory has them
        devices = tuple(port.device for port in bench.ports.values() if port.host == name and port.device is not None)
        every.append((await _outside_host(host), devices))
    return every


async def _outside_host(host: Host) -> Host:
    """Of a namespace that a run makes, where its interfaces are until then."""
    network = host.network
    if not isinstance(network, NetnsHost) or await network.exists():
        return host
    return host_from_spec(network.inner.spec(), host.name)


async def _interfaces(host: Host) -> tuple[str, ...]:
    """Those with a device behind them, and those in use; what the kernel made and nobody uses says nothing."""
    try:
        states = await values_of(host, [f"{_INTERFACES}/*/operstate", f"{_INTERFACES}/*/device/uevent"])
    except UnknownFactError:
        return ()
    found: dict[str, bool] = {}
    for path, value in states.items():
        name = path.removeprefix(f"{_INTERFACES}/").partition("/")[0]
        found[name] = found.get(name, False) or path.endswith("/uevent") or value == "up"
    return tuple(name for name, told in found.items() if told and name != "lo")
