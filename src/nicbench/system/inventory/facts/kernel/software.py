"""Versions of what takes part beside the engine, which names its own: nicbench, Python, the tools, the libraries."""

from __future__ import annotations

import platform
import re

import nicbench
from nicbench.core.described import Facts, Subject, Write
from nicbench.core.errors import NicbenchError, UnknownFactError
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.system.inventory.base import Fact
from nicbench.system.inventory.subjects import join_texts, part_of

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
_ASK = "; ".join(
    f"if command -v {command.split()[0]} >/dev/null; then echo '{_MARK}{tool}'; {command} 2>&1 </dev/null; fi"
    for tool, command in _TOOLS.items()
)
_LIBRARIES = ("libbpf1", "libxdp1", "libc6")
_RPM_LIBRARIES = ("libbpf", "libxdp", "glibc")
_VERSION = re.compile(r"\bv?(\d+(?:\.\d+)+)")


def _tell_software(facts: Facts, write: Write) -> str | None:
    return join_texts(*(f"{name} {version}" for name, version in part_of(facts, "software").items() if version))


class Software(Fact):
    """From each tool's own answer, and from dpkg or rpm for the libraries."""

    kind = "software"
    shape = dict[str, str | None]
    of_machine = True
    subjects = (Subject("Software", 310, _tell_software),)

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, str | None]:
        versions: dict[str, str | None] = {"nicbench": nicbench.__version__, "python": platform.python_version()}
        try:
            versions |= dict.fromkeys(_TOOLS) | parse_tools(await output_of(host, "sh", "-c", _ASK))
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
