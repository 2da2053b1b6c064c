"""What a bench file names and this machine lacks: interfaces, PCI devices, images, kernels, nodes. Changes nothing.

Only this machine is looked at. Nothing is said to other machines: a file can be checked far from its rack.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from nicbench.bench_file.models import BenchFile
from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.registry import find
from nicbench.hosts import build_hosts
from nicbench.hosts.base import Host
from nicbench.hosts.containers import engine_command
from nicbench.hosts.kinds.container import ContainerHost
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.hosts.kinds.vm import VmHost
from nicbench.testbed.interfaces.base import Port
from nicbench.testbed.vm.programs import find_emulator, find_kernel, own_kernel
from nicbench.tuning.lock import holder_words
from nicbench.tuning.record import RUNTIME_FOLDER, has_records
from nicbench.workloads.base import Workload

ROOT: Final = Path("/")
_SYSTEM: Final = "sys/devices/system"


@dataclass(frozen=True, slots=True)
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
