"""Facts of the operating system: the kernel, its settings, and the software on it."""

from __future__ import annotations

import json
import platform
import re
from datetime import UTC, datetime
from typing import Annotated, Any, TypedDict

import nicbench
from nicbench.core.described import Facts, Label, Subject, Unit, Write
from nicbench.core.errors import NicbenchError, UnknownFactError
from nicbench.hosts.asking import output_of, text_of, values_of
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import outermost
from nicbench.system.inventory.base import CommandFact, Fact, FilesFact, join_texts, part_of


def _tell_operating_system(facts: Facts, write: Write) -> str | None:
    return str(facts["operating_system"]) if facts.get("operating_system") else None


class OperatingSystem(Fact):
    """The distribution, as it names itself.

    From ``/etc/os-release``.
    """

    kind = "operating_system"
    shape = str
    of_machine = True
    subjects = (Subject("Operating system", 40, _tell_operating_system),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> str:
        name = parse_os_release(await text_of(host, "/etc/os-release"))
        if name is None:
            raise UnknownFactError("/etc/os-release has no PRETTY_NAME")
        return name


def parse_os_release(text: str) -> str | None:
    """PRETTY_NAME, unquoted (os-release(5))."""
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip().strip("\"'")
    return None


class _Kernel(TypedDict):
    """As ``uname`` says."""

    release: str
    version: str
    machine: str
    command_line: str


def _tell_kernel(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "kernel")
    return join_texts(found.get("release"), found.get("version"))


def _tell_command_line(facts: Facts, write: Write) -> str | None:
    return part_of(facts, "kernel").get("command_line")


class Kernel(Fact):
    """The kernel: release, version, command line.

    From ``uname`` and ``/proc/cmdline``; the host's name is not a fact of the measurement.
    """

    kind = "kernel"
    shape = _Kernel
    of_machine = True
    subjects = (
        Subject("Kernel", 50, _tell_kernel),
        Subject("Kernel command line", 60, _tell_command_line),
    )

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, str]:
        return {
            "release": (await output_of(host, "uname", "-r")).strip(),
            "version": (await output_of(host, "uname", "-v")).strip(),
            "machine": (await output_of(host, "uname", "-m")).strip(),
            "command_line": parse_command_line(await text_of(host, "/proc/cmdline")),
        }


def parse_command_line(text: str) -> str:
    """The kernel's own part: what follows `--` is for the first process (kernel-parameters.rst)."""
    return text.strip().partition(" -- ")[0]


# The last words of each package manager's own record; of Debian's also the older log, where the new one is still empty.
_ASK = (
    "if [ -e /var/lib/dpkg/status ]; then cat /var/log/dpkg.log.1 /var/log/dpkg.log 2>/dev/null | grep ' installed '"
    " | tail -n 1; "
    "elif command -v rpm >/dev/null; then rpm -qa --queryformat '%{INSTALLTIME} rpm\\n' | sort -n | tail -n 1; "
    "elif [ -e /var/log/apk.log ]; then grep '^Running\\|^Executed' /var/log/apk.log | tail -n 1; "
    "elif [ -e /lib/apk/db/installed ]; then stat -c '%Y apk' /lib/apk/db/installed; "
    "elif [ -e /var/log/pacman.log ]; then grep 'installed\\|upgraded' /var/log/pacman.log | tail -n 1; fi"
)
_DAY = re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)")
_SECONDS = re.compile(r"^(\d{9,10}) (?:rpm|apk)\b", re.MULTILINE)


def _tell_last_updates(facts: Facts, write: Write) -> str | None:
    return str(facts["last_updates"]) if facts.get("last_updates") else None


class LastUpdates(Fact):
    """When software was last installed or updated on this machine.

    From the log of dpkg, apk or pacman, or the database of rpm.
    """

    kind = "last_updates"
    shape = str
    of_machine = True
    subjects = (Subject("Last updates", 70, _tell_last_updates),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> str:
        day = parse_last_update(await output_of(host, "sh", "-c", _ASK))
        if day is None:
            raise UnknownFactError("no package manager's record says when")
        return day


def parse_last_update(text: str) -> str | None:
    """The day of the last row, as an ISO date; seconds since 1970 are of UTC."""
    seconds = _SECONDS.findall(text)
    if seconds:
        return datetime.fromtimestamp(int(seconds[-1]), UTC).date().isoformat()
    days = _DAY.findall(text)
    return "-".join(days[-1]) if days else None


_TOOLS = {
    "iproute2": "ip -V",
    "ethtool": "ethtool --version",
    "bpftool": "bpftool version",
    "nftables": "nft --version",
    "dpdk": "pkg-config --modversion libdpdk",
    "gcc": "gcc --version",
    "clang": "clang --version",
    "rustc": "rustc --version",
    "dmidecode": "dmidecode --version",
    "pciutils": "lspci --version",
    "nvme_cli": "nvme version",
    "ipmitool": "ipmitool -V",
}
_MARK = "the version of "
# One shell for all: it says which answer follows, and nothing for what is not there.
_SOFTWARE_ASK = "; ".join(
    f"if command -v {command.split()[0]} >/dev/null; then echo '{_MARK}{tool}'; {command} 2>&1 </dev/null; fi"
    for tool, command in _TOOLS.items()
)
_LIBRARIES = ("libbpf1", "libxdp1", "libc6")
_RPM_LIBRARIES = ("libbpf", "libxdp", "glibc")
_VERSION = re.compile(r"\bv?(\d+(?:\.\d+)+)")


def _tell_software(facts: Facts, write: Write) -> str | None:
    return join_texts(*(f"{name} {version}" for name, version in part_of(facts, "software").items() if version))


class Software(Fact):
    """Versions of nicbench, Python, the tools and the libraries; the engine reports its own.

    From each tool's own answer, and from dpkg or rpm for the libraries.
    """

    kind = "software"
    shape = dict[str, str | None]
    of_machine = True
    subjects = (Subject("Software", 310, _tell_software),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, str | None]:
        versions: dict[str, str | None] = {"nicbench": nicbench.__version__, "python": platform.python_version()}
        try:
            versions |= dict.fromkeys(_TOOLS) | parse_tools(await output_of(host, "sh", "-c", _SOFTWARE_ASK))
        except UnknownFactError:
            versions |= dict.fromkeys(_TOOLS)
        return versions | await _libraries(host)


async def _libraries(host: Host) -> dict[str, str | None]:
    """Both list what they know and fail where they do not know one of them."""
    listing = ("dpkg-query", "--show", "--showformat", "${Package} ${Version} ${db:Status-Status}\\n", *_LIBRARIES)
    for names, command in (
        (_LIBRARIES, listing),
        (_RPM_LIBRARIES, ("rpm", "-q", "--queryformat", "%{NAME} %{VERSION}-%{RELEASE} installed\\n", *_RPM_LIBRARIES)),
    ):
        try:
            installed = parse_packages((await host.run(command, check=False)).stdout)
        except NicbenchError:
            continue
        if installed:
            return {name: installed.get(name) for name in names}
    return dict.fromkeys(_LIBRARIES)


def parse_tools(text: str) -> dict[str, str | None]:
    """Versions by tool; each answer follows a line with the tool's name."""
    answers = (answer.partition("\n") for answer in f"\n{text}".split(f"\n{_MARK}")[1:])
    return {tool: parse_version(answer) for tool, _, answer in answers if tool in _TOOLS}


def parse_version(text: str) -> str | None:
    """The first version number in a tool's answer."""
    found = _VERSION.search(text)
    return found[1] if found else None


def parse_packages(text: str) -> dict[str, str]:
    """Installed packages and versions from ``dpkg-query`` rows of name, version, status."""
    rows = (row.split() for row in text.splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 3 and row[2] == "installed"}


_FOLDER = "/proc/sys/"
# Some are of the whole machine and are not shown in a namespace: they are read outside it.
_NAMES = (
    "kernel/nmi_watchdog",
    "kernel/numa_balancing",
    "kernel/sched_autogroup_enabled",
    "kernel/sched_rt_runtime_us",
    "kernel/timer_migration",
    "kernel/watchdog",
    "net/bridge/bridge-nf-call-iptables",
    "net/core/bpf_jit_enable",
    "net/core/bpf_jit_harden",
    "net/core/busy_poll",
    "net/core/busy_read",
    "net/core/default_qdisc",
    "net/core/dev_weight",
    "net/core/flow_limit_cpu_bitmap",
    "net/core/gro_normal_batch",
    "net/core/netdev_budget",
    "net/core/netdev_budget_usecs",
    "net/core/netdev_max_backlog",
    "net/core/netdev_tstamp_prequeue",
    "net/core/optmem_max",
    "net/core/rmem_default",
    "net/core/rmem_max",
    "net/core/rps_sock_flow_entries",
    "net/core/somaxconn",
    "net/core/wmem_default",
    "net/core/wmem_max",
    "net/ipv4/conf/all/rp_filter",
    "net/ipv4/fib_multipath_hash_policy",
    "net/ipv4/ip_early_demux",
    "net/ipv4/ip_forward",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_ecn",
    "net/ipv4/tcp_mtu_probing",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_sack",
    "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_wmem",
    "net/ipv6/conf/all/forwarding",
    "net/netfilter/nf_conntrack_max",
    "vm/dirty_ratio",
    "vm/nr_hugepages",
    "vm/overcommit_memory",
    "vm/stat_interval",
    "vm/swappiness",
    "vm/zone_reclaim_mode",
)


class Sysctls(Fact):
    """Kernel settings that bear on packet processing, as they are inside the host's namespace.

    From ``/proc/sys``.
    """

    kind = "sysctls"
    shape = dict[str, str]

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, str]:
        paths = [_FOLDER + name for name in _NAMES]
        inside = await values_of(host, paths)
        return parse_settings(await values_of(outermost(host), paths) | inside)


def parse_settings(values: dict[str, str]) -> dict[str, str]:
    """Under the names that ``sysctl`` uses."""
    return {path.removeprefix(_FOLDER).replace("/", "."): value for path, value in values.items()}


_ACTIVE = "/sys/kernel/security/lsm"
_SELINUX = "/sys/fs/selinux/enforce"
_APPARMOR = "/sys/module/apparmor/parameters/enabled"


class _Security(TypedDict):
    """Which are active, and in which state two of them are."""

    active: str | None
    selinux: str
    apparmor: bool | None


def _tell_security(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "security_modules")
    if not found:
        return None
    apparmor = found.get("apparmor")
    return join_texts(
        f"SELinux {found.get('selinux')}", None if apparmor is None else f"AppArmor {'on' if apparmor else 'off'}"
    )


def parse_security(values: dict[str, str]) -> dict[str, Any]:
    """SELinux: enforcing, permissive, or off where its file system is not there."""
    enforce = values.get(_SELINUX)
    apparmor = values.get(_APPARMOR)
    return {
        "active": values.get(_ACTIVE),
        "selinux": "off" if enforce is None else "enforcing" if enforce == "1" else "permissive",
        "apparmor": None if apparmor is None else apparmor == "Y",
    }


class SecurityModules(FilesFact):
    """Security modules of the kernel (SELinux, AppArmor): their hooks are in the path of every system call and socket.

    From ``/sys/kernel/security`` and ``/sys/fs/selinux``.
    """

    kind = "security_modules"
    shape = _Security
    of_machine = True
    subjects = (Subject("Security modules", 290, _tell_security),)
    paths = (_ACTIVE, _SELINUX, _APPARMOR)
    parse = staticmethod(parse_security)


class _Ruleset(TypedDict):
    """How many rules there are, and where the kernel asks them."""

    rules: int
    rules_by_table: dict[str, int]
    hooks: list[str]


def _tell_firewall(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "firewall")
    if found.get("rules") is None:
        return None
    return join_texts(f"{found['rules']} rules" if found["rules"] else "no rules", *found.get("hooks", ()), by="; ")


def parse_ruleset(text: str) -> dict[str, Any]:
    """Rules by table, and the chains that packets meet: ``forward, policy drop`` (libnftables-json(5))."""
    rules: dict[str, int] = {}
    hooks = []
    for entry in json.loads(text)["nftables"]:
        if "table" in entry:
            rules.setdefault(f"{entry['table']['family']} {entry['table']['name']}", 0)
        elif "rule" in entry:
            table = f"{entry['rule']['family']} {entry['rule']['table']}"
            rules[table] = rules.get(table, 0) + 1
        elif "hook" in entry.get("chain", {}):
            chain = entry["chain"]
            hooks.append(f"{chain['family']} {chain['table']} {chain['hook']}, policy {chain.get('policy', 'accept')}")
    return {"rules": sum(rules.values()), "rules_by_table": rules, "hooks": hooks}


class Firewall(CommandFact):
    """The firewall inside the host's namespace: tables of nftables (iptables' too) with their hooks and rules.

    From ``nft -j list ruleset``.
    """

    kind = "firewall"
    shape = _Ruleset
    subjects = (Subject("Firewall", 300, _tell_firewall),)
    command = (
        "nft",
        "-j",
        "list",
        "ruleset",
    )
    parse = staticmethod(parse_ruleset)


_PROFILE = "/etc/tuned/active_profile"
_MODE = "/etc/tuned/profile_mode"
_PROCESS = "/run/tuned/tuned.pid"


class _TunedShape(TypedDict):
    """Its profile, who chose it, whether it runs."""

    profile: str | None
    chosen: str | None
    running: bool


def parse_tuned(values: dict[str, str]) -> dict[str, Any]:
    """A profile without a running daemon is only what was chosen last."""
    return {"profile": values.get(_PROFILE) or None, "chosen": values.get(_MODE), "running": _PROCESS in values}


class TunedProfile(FilesFact):
    """The profile of tuned: it sets governor, C-states, sysctls and more, and sets them again.

    From ``/etc/tuned`` and ``/run/tuned``.
    """

    kind = "tuned"
    shape = _TunedShape
    of_machine = True
    paths = (_PROFILE, _MODE, _PROCESS)
    parse = staticmethod(parse_tuned)


def _tell_interrupts(facts: Facts, write: Write) -> str | None:
    running = facts.get("irqbalance_running")
    return None if running is None else "irqbalance runs" if running else "irqbalance does not run"


class Irqbalance(Fact):
    """Whether irqbalance runs: it moves interrupts between CPUs in the middle of a trial.

    From the names of the running processes.
    """

    kind = "irqbalance_running"
    shape = bool
    of_machine = True
    subjects = (Subject("Interrupts", 170, _tell_interrupts),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> bool:
        # A process may end while the shell reads: its file is then missing, which is no failure.
        return is_running(await output_of(host, "sh", "-c", "cat /proc/[0-9]*/comm 2>/dev/null; true"), "irqbalance")


def is_running(names: str, name: str) -> bool:
    """Whether a process of this name is among the lines."""
    return name in names.split("\n")


class InterruptDefaults(Fact):
    """Where interrupts go that nobody placed.

    From ``/proc/irq/default_smp_affinity``.
    """

    kind = "default_interrupt_cpu_mask"
    shape = Annotated[str, Label("Default interrupt CPU mask"), Unit.CPU_MASK]
    of_machine = True

    async def read(self, host: Host, devices: tuple[str, ...]) -> str:
        return parse_mask(await text_of(host, "/proc/irq/default_smp_affinity"))


def parse_mask(text: str) -> str:
    """Parses a mask of CPUs, hexadecimal in groups of eight digits; ValueError for any other text."""
    mask = text.strip()
    int(mask.replace(",", ""), 16)
    return mask


# Units by name, then the type of each group: DMA, DMA-FQ (lazy), identity (passthrough).
_IOMMU_ASK = (
    'ls /sys/class/iommu 2>/dev/null | sed "s/^/unit /"; '
    'for f in /sys/kernel/iommu_groups/*/type; do [ -e "$f" ] && cat "$f"; done; true'
)


class _Iommu(TypedDict):
    """Whether it is at work; groups by how they translate."""

    active: bool
    units: list[str]
    groups: int
    groups_by_type: dict[str, int]


def _tell_iommu(facts: Facts, write: Write) -> str | None:
    found = part_of(facts, "iommu")
    if found.get("active") is None:
        return None
    groups = ", ".join(f"{count} groups {kind}" for kind, count in part_of(found, "groups_by_type").items())
    return join_texts("on" if found["active"] else "off", groups)


class Iommu(Fact):
    """The IOMMU: whether one is at work, and how its groups translate. Translation costs transfers of a card.

    From ``/sys/class/iommu`` and ``/sys/kernel/iommu_groups``.
    """

    kind = "iommu"
    shape = _Iommu
    of_machine = True
    subjects = (Subject("IOMMU", 260, _tell_iommu),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        try:
            return parse_iommu(await output_of(host, "sh", "-c", _IOMMU_ASK))
        except UnknownFactError:
            return parse_iommu("")  # neither units nor groups: it is off


def parse_iommu(text: str) -> dict[str, Any]:
    """Units, groups, and how many groups are of each type (Documentation/ABI/testing/sysfs-kernel-iommu_groups)."""
    rows = [line.strip() for line in text.splitlines() if line.strip()]
    units = [row.removeprefix("unit ") for row in rows if row.startswith("unit ")]
    types = [row for row in rows if not row.startswith("unit ")]
    return {
        "active": bool(units or types),
        "units": units,
        "groups": len(types),
        "groups_by_type": {kind: types.count(kind) for kind in sorted(set(types))},
    }
