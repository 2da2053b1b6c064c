"""Versions of what takes part beside the engine, which names its own: nicbench, Python, the tools, the libraries."""

from __future__ import annotations

import platform
import re

import nicbench
from nicbench.errors import NicbenchError
from nicbench.hosts.base import Host
from nicbench.inventory._asking import output_of
from nicbench.inventory.base import Fact, UnknownFactError

_TOOLS = {
    "iproute2": ("ip", "-V"),
    "ethtool": ("ethtool", "--version"),
    "bpftool": ("bpftool", "version"),
    "clang": ("clang", "--version"),
}
_LIBRARIES = ("libbpf1", "libxdp1", "libc6")
_VERSION = re.compile(r"\bv?(\d+(?:\.\d+)+)")


class Software(Fact):
    """From each tool's own answer, and from dpkg for the libraries."""

    kind = "software"

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, str | None]:
        versions: dict[str, str | None] = {"nicbench": nicbench.__version__, "python": platform.python_version()}
        for tool, command in _TOOLS.items():
            try:
                versions[tool] = parse_version(await output_of(host, *command))
            except UnknownFactError:
                versions[tool] = None
        listing = ("dpkg-query", "--show", "--showformat", "${Package} ${Version} ${db:Status-Status}\\n", *_LIBRARIES)
        try:
            # It fails where it does not know one of them, and lists the others all the same.
            installed = parse_packages((await host.run(listing, check=False)).stdout)
        except NicbenchError:
            installed = {}  # not a Debian
        return versions | {name: installed.get(name) for name in _LIBRARIES}


def parse_version(text: str) -> str | None:
    """The first version number in a tool's answer."""
    found = _VERSION.search(text)
    return found[1] if found else None


def parse_packages(text: str) -> dict[str, str]:
    """Installed packages and versions from ``dpkg-query`` rows of name, version, status."""
    rows = (row.split() for row in text.splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 3 and row[2] == "installed"}
