"""Examines software: the kernel, the engine, packages, privileges, and programs of DUTs and reports."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

from nicbench.core.errors import NicbenchError, NotReadyError
from nicbench.core.frozen import frozen
from nicbench.core.registry import find
from nicbench.core.round import JobSpec
from nicbench.core.shipped import build_command, clone, shipped
from nicbench.doctor.base import Check, Examination, missing, ok, select_measurable, warning
from nicbench.engine.binaries import find_binary
from nicbench.engine.client import EngineClient
from nicbench.hosts.base import Host
from nicbench.hosts.options import VmOptions
from nicbench.system.inventory.base import parse_meminfo
from nicbench.testbed.duts import l3fwd
from nicbench.testbed.vm.programs import FETCH_COMMAND, Emulator, Kernel, find_emulator, find_kernel, kvm_works
from nicbench.tuning.bpf import attachment, deploy_program
from nicbench.workloads.base import Workload, version_numbers
from nicbench.workloads.processes import Programs

# Tried in a namespace without a name, which ends with the shell: nothing remains.
_VETH = "ip link add name nbdoc0 type veth peer name nbdoc1"
_XDP_SOCKET = "import socket; socket.socket(44, socket.SOCK_RAW).close()"  # 44 is AF_XDP


@frozen
class _Trial:
    """A feature, the command that tries it, what lacks without it, and what may fix it."""

    name: str
    command: tuple[str, ...]
    lacks: str
    fix: str | None


class KernelFeatures(Examination):
    """What the kernel must offer: network namespaces, veth pairs, XDP programs, AF_XDP sockets. Each is tried.

    Tries each feature the way a run uses it.
    """

    kind = "kernel"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        checks = [await _try(host, trial) for trial in _trials()]
        checks.append(await _try_xdp_program(host))
        return tuple(checks)


def _trials() -> tuple[_Trial, ...]:
    alone = ("unshare", "--net")
    return (
        _Trial(
            "network namespaces",  # as `ip netns exec` enters one
            (*alone, "--mount", "--propagation", "slave", "true"),
            "labs cannot be made",
            "sudo nicbench doctor; in a chroot: mount --bind FOLDER FOLDER, before chroot FOLDER",
        ),
        _Trial("veth pairs", (*alone, "sh", "-c", _VETH), "the veth lab cannot be made", "modprobe veth"),
        _Trial(
            "AF_XDP sockets",
            (sys.executable, "-c", _XDP_SOCKET),
            "use `driver: net_af_packet`, or a kernel with CONFIG_XDP_SOCKETS",
            None,
        ),
    )


async def _try(host: Host, trial: _Trial) -> Check:
    try:
        done = await host.run(trial.command, check=False)
    except NicbenchError as error:
        return missing(trial.name, f"{error.message}: {trial.lacks}", error.next_step)
    if done.status == 0:
        return ok(trial.name, "work")
    return missing(trial.name, f"{_reason(done.stderr)}: {trial.lacks}", trial.fix)


async def _try_xdp_program(host: Host) -> Check:
    """Loaded and attached to one end of a veth pair."""
    name = "XDP programs"
    try:
        program = await deploy_program(host, "pass")
        attach = ("sh", "-ec", f'{_VETH}; exec "$@"', "sh", *attachment(program, "nbdoc0", "xdpdrv"))
        done = await host.run(("unshare", "--net", *attach), check=False)
    except NicbenchError as error:
        return missing(name, error.message.splitlines()[0], error.next_step)
    if done.status == 0:
        return ok(name, "are loaded and attached")
    return missing(name, f"{_reason(done.stderr)}: the policer and AF_XDP need them", "sudo nicbench doctor")


def _reason(stderr: str) -> str:
    lines = [line for line in stderr.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "failed without a message"


_CAPABILITIES = re.compile(r"^CapEff:\s*([0-9a-f]+)", re.MULTILINE)
# Numbers of linux/capability.h, with what each is for.
_NEEDED = {
    12: ("CAP_NET_ADMIN", "interfaces, addresses, XDP"),
    13: ("CAP_NET_RAW", "packet sockets and AF_XDP"),
    21: ("CAP_SYS_ADMIN", "network namespaces"),
    39: ("CAP_BPF", "XDP programs"),
}
_SYS_ADMIN, _BPF = 21, 39


class Privileges(Examination):
    """Privileges: root, or the capabilities that making namespaces, XDP and raw sockets take.

    From ``/proc/self/status``.
    """

    kind = "privileges"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        return (judge_privileges(await host.read_file("/proc/self/status") or ""),)


def judge_privileges(status: str) -> Check:
    """What counts is what the process may do, not who it is."""
    found = _CAPABILITIES.search(status)
    held = int(found[1], 16) if found else 0
    # Before Linux 5.8 there was no CAP_BPF: CAP_SYS_ADMIN stood for it, and still does.
    if held >> _SYS_ADMIN & 1:
        held |= 1 << _BPF
    lacking = [f"{name} ({why})" for bit, (name, why) in _NEEDED.items() if not held >> bit & 1]
    if lacking:
        return missing("privileges", f"lacking: {', '.join(lacking)}; only simulated runs work", "sudo nicbench doctor")
    return ok("privileges", "everything a run needs")


_PACKETS = "nicbench-packets"
_MONITOR = "nicbench-monitor"
_FRAMES = "nicbench-frames"
_CONNECTIONS = "nicbench-connections"


class Engine(Examination):
    """The engine: whether its binaries are built, start, and speak this controller's protocol.

    Says hello to the engine's binaries; no port is opened, nothing is sampled, no file is touched.
    """

    kind = "engine"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        return (
            await _examine(host, _PACKETS, judge_engine),
            await _examine(host, _MONITOR, judge_monitor),
            await _examine(host, _FRAMES, judge_frames),
            await _examine_connections(host),
        )


async def _examine(host: Host, program: str, judged: Callable[[dict[str, Any]], Check]) -> Check:
    # Without a monitor runs lack a section of the report, without frames a method; without the engine there are none.
    name, absent = ("engine", missing) if program == _PACKETS else (program.removeprefix("nicbench-"), warning)
    try:
        binary = find_binary(program)
    except NotReadyError as error:
        return absent(name, error.message, build_command())
    try:
        client = EngineClient(await host.start((str(binary),)), program)
        hello = await client.greet()
        await client.close()
    except NicbenchError as error:
        return absent(name, f"{binary} does not answer: {error.message}", build_command())
    return judged(hello)


async def _examine_connections(host: Host) -> Check:
    """Its version: it has no conversation, but does what it is called with. Without it runs lack its methods."""
    try:
        binary = find_binary(_CONNECTIONS)
        said = await host.run((str(binary), "--version"))
    except NicbenchError as error:
        return warning("connections", error.message, build_command())
    return ok("connections", said.stdout.strip())


def judge_engine(hello: dict[str, Any]) -> Check:
    """Its answer to `hello` (protocol/README.md). Built without DPDK it has simulated ports alone."""
    named = f"{_PACKETS} {hello.get('version')}, protocol {hello.get('protocol')}"
    if not hello.get("dpdk"):
        return warning("engine", f"{named}, was built without DPDK: only simulated runs work", build_command())
    drivers = ", ".join(hello.get("drivers") or []) or "none"
    return ok("engine", f"{named}, DPDK {hello['dpdk'].removeprefix('DPDK ')}, drivers: {drivers}")


def judge_monitor(hello: dict[str, Any]) -> Check:
    """Its answer to `hello` (protocol/monitor.md). One that is not static runs here and on hosts like this one."""
    named = f"{_MONITOR} {hello.get('version')}, protocol {hello.get('protocol')}"
    if not hello.get("is_static"):
        return warning(
            "monitor", f"{named}, is not linked statically: it may not start on another host", build_command()
        )
    return ok("monitor", f"{named}, static")


def judge_frames(hello: dict[str, Any]) -> Check:
    """Its answer to `hello` (protocol/frames.md). Without io_uring it takes a thread for each request."""
    named = f"{_FRAMES} {hello.get('version')}, protocol {hello.get('protocol')}"
    if not hello.get("is_static"):
        return warning(
            "frames", f"{named}, is not linked statically: it may not start on another host", build_command()
        )
    return ok("frames", f"{named}, static, engines: {', '.join(hello.get('features') or []) or 'none'}")


_NEEDS = "runtime|build|tools|facts|test|bench|package"
_ROW = re.compile(rf"^([a-z0-9][a-z0-9+.-]+)\s+#\s*({_NEEDS}):\s*(.+)$")
# Those of the arguments that are commands.
_PROGRAMS = 'for name; do if command -v "$name" >/dev/null; then echo "$name"; fi; done'


@frozen
class Package:
    """One row: what needs it (one of the words in ``_ROW``), and why."""

    name: str
    needed_for: str
    why: str


def parse_packages(text: str) -> tuple[Package, ...]:
    """Rows of ``name  # kind: why``; ValueError with the line where one is anything else."""
    packages = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        row = _ROW.match(line.rstrip())
        if row is None:
            raise ValueError(f"line {number} is not `name  # {_NEEDS}: why`: {line!r}")
        packages.append(Package(*row.groups()))
    return tuple(packages)


def parse_installed_packages(text: str) -> frozenset[str]:
    """Names from rows of name and status, as ``dpkg-query`` was asked for them."""
    rows = (row.split() for row in text.splitlines())
    return frozenset(row[0] for row in rows if row[1:] == ["installed"])


class Packages(Examination):
    """Debian packages: which of ``packages.debian`` are not installed, and the one command that installs them.

    Those that a run needs, those that building the engine needs, and the tools of workloads.
    """

    kind = "packages"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        path = shipped("packages.debian")
        if not path.exists():
            return (warning("Debian packages", f"the list of them is not there: {path}"),)
        packages = parse_packages(path.read_text(encoding="utf-8"))
        names = [package.name for package in packages]
        query = ("dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\\n", *names)
        try:
            # It fails where it does not know one of them, and lists the others all the same.
            installed = parse_installed_packages((await host.run(query, check=False)).stdout)
        except NicbenchError:
            return (
                warning(
                    "Debian packages", f"this is not Debian, where the packages needed are called: {', '.join(names)}"
                ),
            )
        # Ubuntu has bpftool in other packages, and an installed nicbench may bring its own along.
        installed |= set((await host.run(("sh", "-c", _PROGRAMS, "sh", *names), check=False)).stdout.split())
        return judge_packages(packages, installed, engine_is_built=_engine_is_built(), can_build=clone() is not None)


def judge_packages(
    packages: Iterable[Package], installed: frozenset[str], *, engine_is_built: bool, can_build: bool = True
) -> tuple[Check, ...]:
    """Packages for building are needed in a clone until the engine is built, tools by the tests that name them.

    Those for checks and benchmarks are never missed here, nor those for facts (``report_facts``).
    """
    checks = []
    listed = tuple(packages)
    for purpose, lacking_is in (
        ("runtime", missing),
        ("build", warning if engine_is_built else missing),
        ("tools", warning),
    ):
        wanted = [package for package in listed if package.needed_for == purpose]
        if not wanted or (purpose == "build" and not can_build):
            continue
        absent = [package for package in wanted if package.name not in installed]
        name = f"Debian packages ({purpose})"
        if absent:
            why = "; ".join(f"{package.name} ({package.why})" for package in absent)
            command = f"apt-get install --no-install-recommends {' '.join(package.name for package in absent)}"
            checks.append(lacking_is(name, f"not installed: {why}", command))
        else:
            checks.append(ok(name, f"all {len(wanted)} are installed"))
    return tuple(checks)


def _engine_is_built() -> bool:
    try:
        find_binary("nicbench-packets")
    except NotReadyError:
        return False
    return True


class ToolVersions(Examination):
    """Tools of workloads that are newer than any whose output nicbench was tried with."""

    kind = "tool_versions"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        programs, found = Programs(), dict[str, str]()
        for kind, tool in find("nicbench.workloads.tools", Workload).items():
            with suppress(NicbenchError):
                version = None if tool.tried is None else await programs.version(host, tool(), JobSpec())
                found |= {kind: version} if version else {}
        return judge_tool_versions(found)


def judge_tool_versions(found: Mapping[str, str]) -> tuple[Check, ...]:
    """Warns of tools that are newer than those that were tried; ``found`` has the version of each installed one."""
    tried = {kind: tool.tried[1] for kind, tool in find("nicbench.workloads.tools", Workload).items() if tool.tried}
    newer = [
        f"{kind} {version} (tried up to {tried[kind]})"
        for kind, version in found.items()
        if version_numbers(version) > version_numbers(f"{tried[kind]}.{2**29}")
    ]
    if not newer:
        return (ok("versions of tools", "none is newer than those tried"),) if found else ()
    text = f"{', '.join(newer)}: compare a figure with what the tool prints before you rely on it"
    return (warning("versions of tools", text),)


_NAME = "facts of the report"
_SOURCES = (
    ("dmidecode", "dmidecode", ("/sys/firmware/dmi/tables/DMI",)),
    ("ipmitool", "ipmitool", ("/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0", "/sys/firmware/dmi/entries/38-0")),
)
"""Package, program, and the paths of which one is there where the program has something to tell."""
# The other end of these is a program of the host, which sends no LLDP.
_EMULATED = frozenset({"virtio_net", "hv_netvsc", "xen_netfront", "vmxnet3", "ena", "gve"})
_ASK = 'for p in "$@"; do [ -e "$p" ] && echo "$p"; done; for p in dmidecode ipmitool lldpcli; do command -v "$p"; done'


@frozen
class Lack:
    """A package that is not there, and what it would tell."""

    package: str
    why: str


class ReportFacts(Examination):
    """Programs that tell what only a report needs: memory modules, fans and power supplies, what a cable ends at.

    Each is missed only where something would come of it. Sources: Documentation/ABI/testing/sysfs-firmware-dmi-entries
    of the kernel; SMBIOS 3.7 section 7.39 (type 38, a management controller by IPMI).

    From the paths of the firmware's tables, of the management controller, and of the cards.
    """

    kind = "report_facts"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        paths = [path for _, _, places in _SOURCES for path in places]
        there = set((await host.run(("sh", "-c", f"{_ASK}; true", "sh", *paths), check=False)).stdout.split())
        cabled = [one.name for one in await select_measurable(host) if one.driver not in _EMULATED]
        return (judge_report_facts(there, cabled, _reasons()),)


def judge_report_facts(there: Collection[str], cabled: Collection[str], reasons: dict[str, str]) -> Check:
    """``there``: paths and programs that were found; ``cabled``: interfaces whose cable ends at another machine."""
    programs = {path.rpartition("/")[2] for path in there}
    telling = {package: any(path in there for path in places) for package, _, places in _SOURCES}
    telling["lldpd"] = bool(cabled)
    names = {package: program for package, program, _ in _SOURCES} | {"lldpd": "lldpcli"}
    absent = [package for package, tells in telling.items() if tells and names[package] not in programs]
    if absent:
        why = "; ".join(f"{package} ({reasons.get(package, 'facts of the machine')})" for package in absent)
        command = f"apt-get install --no-install-recommends {' '.join(absent)}"
        return warning(_NAME, f"not installed, so the report will lack: {why}", command)
    silent = [package for package, tells in telling.items() if not tells]
    if silent:
        return ok(_NAME, f"nothing is missing; {', '.join(silent)} would add nothing on this machine")
    return ok(_NAME, f"{', '.join(telling)} are installed")


def _reasons() -> dict[str, str]:
    path = shipped("packages.debian")
    rows = parse_packages(path.read_text(encoding="utf-8")) if path.exists() else ()
    return {row.name: row.why for row in rows if row.needed_for == "facts"}


class UserSpaceDuts(Examination):
    """DUTs in user space: DPDK's testpmd, and its example router l3fwd, which is built here from Debian's sources.

    They are needed only by a bench file that names them, so their lack is a warning.
    """

    kind = "user_space_duts"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        found = await host.run(("sh", "-c", "command -v dpdk-testpmd"), check=False)
        has_sources = await host.read_file(f"{l3fwd.SOURCES}/l3fwd/main.c") is not None
        return (judge_testpmd(found.stdout.strip()), judge_l3fwd(await l3fwd.read_build(host), has_sources=has_sources))


def judge_testpmd(path: str) -> Check:
    """Where it is, empty where it is nowhere."""
    if path:
        return ok("DUT testpmd", path)
    text = "not there: bench files with `dut: {kind: testpmd}` cannot run"
    return warning("DUT testpmd", text, "apt-get install --no-install-recommends dpdk-dev")


class EmulatedRouters(Examination):
    """The daemon BIRD, which plays the routers that clients of ``nicbench serve`` configure; its lack is a warning."""

    kind = "emulated_routers"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        found = await host.run(("sh", "-c", "PATH=$PATH:/usr/sbin; command -v bird"), check=False)
        return (judge_bird(found.stdout.strip()),)


def judge_bird(path: str) -> Check:
    """Where it is, empty where it is nowhere."""
    if path:
        return ok("emulated routers", path)
    text = "BIRD is not there: configurations of `nicbench serve` with `bgp` are refused"
    return warning("emulated routers", text, "apt-get install --no-install-recommends bird2")


def judge_l3fwd(build: l3fwd.L3fwdBuild | None, *, has_sources: bool) -> Check:
    """Built, or what is missing for it."""
    name = "DUT l3fwd"
    if build is not None:
        return ok(name, f"built from {l3fwd.PACKAGE} {build.sources} with DPDK {build.library}: {l3fwd.program()}")
    if has_sources:
        return warning(name, "not built: bench files with `dut: {kind: l3fwd}` cannot run", l3fwd.BUILD_COMMAND)
    return warning(name, "neither built nor are its sources there", f"{l3fwd.INSTALL_COMMAND} && {l3fwd.BUILD_COMMAND}")


_KVM = "/dev/kvm"
_ORDINARY_GUEST_BYTES = int(VmOptions().memory)
_OWN_BYTES = 512 << 20
"""What QEMU takes beside its guest's memory, and nicbench itself."""


class VirtualMachines(Examination):
    """What a lab in a virtual machine needs: QEMU, a kernel, memory, and KVM where guests are to be fast.

    Only bench files with a virtual machine need any of it, so what lacks is a warning.
    """

    kind = "virtual_machines"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        emulator, kernel = _emulator(), _kernel()
        return (
            judge_emulator(emulator),
            judge_kernel(kernel),
            await _kvm(emulator, kernel),
            judge_memory(parse_meminfo(await host.read_file("/proc/meminfo") or "").get("MemAvailable")),
        )


def judge_emulator(found: Emulator | None) -> Check:
    """Without the card igb all works but what is asked of that card."""
    name = "virtual machines (QEMU)"
    if found is None:
        return warning(name, "there is no QEMU: labs in a virtual machine cannot run", FETCH_COMMAND)
    text = f"QEMU {found.version}, {found.path}"
    if found.has_igb:
        return ok(name, f"{text}, with the card igb")
    return warning(
        name, f"{text}, has no card igb (8.0 and newer have): no virtual functions or hardware stamps", FETCH_COMMAND
    )


def judge_kernel(found: Kernel | None) -> Check:
    """Which one is booting."""
    name = "virtual machines (kernel)"
    if found is None:
        return warning(name, "no kernel was fetched: labs in a virtual machine cannot run", FETCH_COMMAND)
    return ok(name, f"{found.version}, {found.image}")


def judge_kvm(*, is_there: bool, may_be_used: bool, works: bool | None = None) -> Check:
    """A machine without it emulates: that is slow and no fault. ``works``: a kernel came up on it; None: not tried."""
    name = "virtual machines (KVM)"
    if not is_there:
        return ok(name, f"there is no {_KVM}: guests are emulated, many times slower")
    if not may_be_used:
        return warning(
            name,
            f"{_KVM} may not be used: guests are emulated, many times slower",
            "sudo usermod --append --groups kvm $USER",
        )
    if works is None:
        return ok(
            name, f"{_KVM} is there; whether a kernel comes up on it is tried when QEMU and a kernel are there too"
        )
    if not works:
        return ok(name, f"{_KVM} is there, and no kernel comes up on it: guests are emulated, many times slower")
    return ok(name, f"a kernel comes up on {_KVM}: guests run on it")


def judge_memory(available: int | None) -> Check:
    """For a guest of the ordinary size."""
    name = "virtual machines (memory)"
    needed = _ORDINARY_GUEST_BYTES + _OWN_BYTES
    if available is None:
        return warning(name, "this kernel does not say how much memory is available")
    text = f"{available >> 20} MiB are available, a guest of the ordinary size needs {needed >> 20} MiB"
    if available < needed:
        return warning(name, f"{text}: write a smaller `memory` in the bench file")
    return ok(name, text)


async def _kvm(emulator: Emulator | None, kernel: Kernel | None) -> Check:
    may_be_used = os.access(_KVM, os.R_OK | os.W_OK)
    works = await kvm_works(emulator, kernel) if may_be_used and emulator and kernel else None
    return judge_kvm(is_there=os.access(_KVM, os.F_OK), may_be_used=may_be_used, works=works)


def _emulator() -> Emulator | None:
    try:
        return find_emulator()
    except NotReadyError:
        return None


def _kernel() -> Kernel | None:
    try:
        return find_kernel()
    except NotReadyError:
        return None
